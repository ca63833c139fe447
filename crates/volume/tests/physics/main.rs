//! The physics against AWS's formulas and against its own promises, in virtual time.
#![allow(clippy::unwrap_used)] // a test fails by a panic

mod accounting;
mod credits;
mod devices;
mod limits;
mod loading;
mod properties;
mod reporting;
mod sequential;
mod support;
