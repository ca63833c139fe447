//! The text of the sections of a page, for the tests of the crates whose pages are made of runs. With `EBBTIDE_PAGES` set
//! to a directory the pages are left there, to be looked at.

#![allow(clippy::unwrap_used, reason = "a test panics where something is missing")]

use std::path::Path;

use ebbtide_report::{Block, Report};

/// Leaves a page to be looked at, where that is asked for.
pub(crate) fn keep(name: &str, html: &str) {
    if let Some(directory) = std::env::var_os("EBBTIDE_PAGES") {
        std::fs::write(Path::new(&directory).join(format!("{name}.html")), html).unwrap();
    }
}

/// The text of the blocks, their folds included.
pub(crate) fn text(blocks: &[Block]) -> String {
    serde_json::to_string(blocks).unwrap()
}

/// The text of the section with this heading.
pub(crate) fn section_text(report: &Report, heading: &str) -> String {
    let section = report.sections.iter().find(|section| section.heading == heading);
    text(&section.unwrap_or_else(|| panic!("no section '{heading}'")).blocks)
}
