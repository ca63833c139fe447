//! How figures, names and seeds are written for people, and read back: the only crate that decides it.
//!
//! The terminal, the findings and the report take every figure from here, so that one value is rounded once. A report
//! passes the text through [`typeset`], which changes its signs and spaces and none of its digits; the script of its
//! charts (`crates/report/assets/report/text.js`) has the same rules, and a test holds it against these functions.
//!
//! A duration that a program reads back, of an option or a file, is read and written here. Such a size is written by
//! whoever reads it. Words of a command are quoted for a shell by [`shell_words`].
//!
//! # Where to begin reading
//!
//! [`figure()`], [`percent`] and [`change`] are in `src/figure.rs`, [`latency`] and [`span`] in `src/time.rs`, [`size()`] in
//! `src/size.rs`, [`parse_duration`] in `src/duration.rs`. They write figures for the terminal and for the report.
#![forbid(unsafe_code)]

mod duration;
mod figure;
mod names;
pub mod seed;
pub mod shell_words;
mod size;
mod time;
mod words;

pub use duration::{DurationError, duration, parse_duration};
pub use figure::{change, change_interval, figure, fixed, percent, rate, whole, without_zeros};
pub use names::{closest, did_you_mean};
pub use size::{bytes, size};
pub use time::{latency, rough, seconds, span, timestamp};
pub use words::{count, first_of, first_sentence, list, printable, typeset};
