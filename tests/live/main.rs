//! Live volumes under a real kernel: conformance with the model, and what kills and power cuts leave.
//!
//! These tests need root, FUSE and loop devices; without them they print what is missing and count as
//! skipped.
#![allow(clippy::unwrap_used)] // a test fails by a panic

mod conformance;
mod durability;
mod ledger;

#[path = "../support/host.rs"]
mod host;
