//! `ebbtide simulate`, `ebbtide predict` and `ebbtide size` as a user runs them: what they print, their JSON, their pages, and what
//! they refuse.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

#[path = "../support/lab_run.rs"]
mod lab_run;
mod output;
mod page;
mod pages;
mod predict;
mod profile_from;
mod refusals;
mod size;
mod size_counts;
mod size_files;
mod size_metrics;
mod support;
mod trace;
