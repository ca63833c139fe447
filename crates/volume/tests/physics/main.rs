//! The physics against AWS's formulas and against its own promises, in virtual time.
#![allow(clippy::unwrap_used)] // a test may fail where it stands

mod accounting;
mod credits;
mod limits;
mod properties;
mod reporting;
mod support;
