//! What Ebbtide shows to a monitoring system: the only crate that raises alarms and knows Prometheus's names.
//!
//! Today it has the names, and the text that a scrape answers with. It is pure: what was read, and how long that took, come from the
//! caller. `ebbtide serve --metrics` reads the volumes through [`ebbtide_control::VolumeObserver`], and serves the text.
//!
//! # Where to begin reading
//!
//! - [`names`] is the one table of metric families: name, type, unit, labels, help and source.
//! - [`scrape_text`] in `scrape` writes all of them. `volumes` and `process` know where each value comes from.
//! - `exposition` is the text format 0.0.4 of Prometheus.
//! - [`view::View`] is what the views show, as plain data; [`terminal::draw`] draws it on a terminal.
//! - [`names_page`] is the table as docs/generated/metrics.md has it.
//!
//! A new family is a row of [`names`] and a row of `volumes`; a test fails where one of the two is missing.
#![forbid(unsafe_code)]

mod exposition;
mod family;
pub mod names;
mod names_page;
mod process;
mod scrape;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod view;
mod volumes;

pub use exposition::CONTENT_TYPE;
pub use family::{Family, FamilyKind};
pub use names_page::names_page;
pub use scrape::{Build, Scrape, scrape_text};
