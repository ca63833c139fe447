//! Runs experiments: a real, unmodified server on emulated volumes, measured arm by arm.
//!
//! An [`experiment::Experiment`] names the volumes, settings and loads that are compared. A run prepares the
//! data once, gives every trial a copy-on-write clone of the same bytes, interleaves the arms, and keeps
//! a [`record::LabRun`]: what was measured, from which verdicts, comparisons and the report are made.
//!
//! # Where to begin reading
//!
//! In the order in which an experiment passes:
//!
//! - [`experiment::load`] reads the file, [`experiment::check()`] checks it, [`run::plan()`] decides what is run.
//! - [`run::run`] makes the data and runs the trials. Its text says which module does what; `run::topology` has replicas follow the
//!   server of the load.
//! - [`results`] stores each trial as it ends ([`record`]); [`summary`] gives records to `ebbtide-analysis`; [`page`] makes the report.
//!
//! | Question | Where |
//! |---|---|
//! | What lies on which volume of a server? | `layout_on` in `src/run/arm_server.rs`, by `ebbtide_analysis::record::Role` |
//! | Which servers has an arm? | `Topology` in `src/experiment/topology.rs`; [`run::topology::connect`] has them follow each other |
//! | Which program is each server? | `Programs` in `src/experiment/programs.rs`; from then on it is `PlannedArm::server` |
//! | How far are replicas behind? A promotion? | `src/run/lag.rs`; `src/run/promotion.rs` |
//! | A backup under load, restored and checked? | `src/run/backup`, by the tools of `ebbtide_mysql::backup`; `restore.rs` there |
//! | Which experiments belong to public documents? | `SET` in `src/experiment/documents.rs`. [`document_set`] runs them, their results are [`documents`] |
//!
//! How to add an experiment or a section of the report: docs/extending.md.
#![forbid(unsafe_code)]

#[cfg(test)]
mod agreement;
pub mod cost;
pub mod document_set;
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
pub mod summary;
pub mod words;
