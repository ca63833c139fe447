//! How figures, names and seeds are written for people, and read back: the only crate that decides it.
//!
//! The terminal, the findings and the report take every figure from here, so that one value is rounded once. A report
//! passes the text through [`typeset`], which changes its signs and spaces and none of its digits; the script of its
//! charts (`crates/report/assets/report/text.js`) has the same rules, and a test holds it against these functions.
//!
//! A size or a time that a program or a user reads back, in a spec or an option, is written by whoever reads it.
#![forbid(unsafe_code)]

mod figure;
mod names;
pub mod seed;
mod size;
mod time;
mod words;

pub use figure::{change, change_interval, figure, fixed, percent, whole, without_zeros};
pub use names::{closest, did_you_mean};
pub use size::{bytes, size};
pub use time::{latency, rough, seconds, span, timestamp};
pub use words::{count, list, typeset};
