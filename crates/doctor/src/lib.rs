//! Asks a server and its machine what is wrong: the only crate that does. What is judged is `ebbtide-advisor`'s.
#![forbid(unsafe_code)]

pub mod machine;
