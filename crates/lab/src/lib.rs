//! Runs experiments: a real, unmodified server on emulated volumes, measured arm by arm.
//!
//! An [`experiment::Experiment`] says which volumes, settings and loads are compared. A run prepares the
//! data once, gives every trial a copy-on-write clone of the same bytes, interleaves the arms, and keeps
//! a [`record::Run`]: what was measured, from which verdicts, comparisons and the report are made.
#![forbid(unsafe_code)]

#[cfg(test)]
mod agreement;
#[cfg(test)]
#[path = "../../../tests/support/browser.rs"]
mod browser;
pub mod cost;
pub mod experiment;
pub mod page;
pub mod record;
pub mod results;
pub mod run;
pub mod summary;
pub mod words;
