//! The `ebbtide` program: parses arguments, prints, exits.
#![forbid(unsafe_code)]

fn main() {}
