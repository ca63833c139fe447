//! What figures mean: statistics of series and of trials, and the sentences about them.
//!
//! All of it is pure: the same records give the same answer, on any machine and at any time. `cargo xtask tidy` keeps
//! clocks, files, threads and processes out of this crate.
//!
//! # Where to begin reading
//!
//! - [`summary::summarize`] in `src/summary/mod.rs` makes the summary of a run; its text says what calls what.
//! - [`claim::Claim`] is a claim of a document. `crates/lab/src/experiment/claims.rs` reads it from an experiment, and [`claim::judge()`]
//!   holds it against the summary of either lab, as its [`claim::Evidence`].
#![forbid(unsafe_code)]

pub mod claim;
pub mod cost;
pub mod record;
pub mod stats;
pub mod summary;
