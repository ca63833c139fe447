//! Developer jobs.
fn main() {}
