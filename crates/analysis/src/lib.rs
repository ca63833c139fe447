//! What figures mean: statistics of series and of trials, and the sentences about them.
//!
//! All of it is pure: the same records give the same answer, on any machine and at any time. `cargo xtask tidy` keeps
//! clocks, files, threads and processes out of this crate.
#![forbid(unsafe_code)]

pub mod claim;
pub mod cost;
pub mod record;
pub mod stats;
pub mod summary;
