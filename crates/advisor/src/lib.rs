//! Judges what was measured.
//!
//! This is the only crate that says what figures mean for the one who runs the server: each judgement is a
//! pure function of measurements and catalogue, and carries the arithmetic that it rests on, what has to
//! be true, what it risks, and where the facts come from. It asks no server, reads no clock and prints
//! nothing.
#![forbid(unsafe_code)]

pub mod optimized_writes;
