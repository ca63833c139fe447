//! Runs experiments: a real, unmodified server on emulated volumes, measured arm by arm.
//!
//! An [`experiment::Experiment`] names the volumes, settings and loads that are compared. A run prepares the
//! data once, gives every trial a copy-on-write clone of the same bytes, interleaves the arms, and keeps
//! a [`record::LabRun`]: what was measured, from which verdicts, comparisons and the report are made.
#![forbid(unsafe_code)]

#[cfg(test)]
mod agreement;
pub mod cost;
#[cfg(test)]
#[path = "../../../tests/support/documented.rs"]
mod documented;
pub mod documents;
pub mod experiment;
mod load_report;
mod observation;
pub mod page;
pub mod record;
pub mod results;
pub mod run;
#[cfg(test)]
#[path = "../../../tests/support/sections.rs"]
mod sections;
pub mod shell_words;
pub mod summary;
