//! The crash lab on a real server and real volumes: one test at a time.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

mod cuts;
mod harm;
#[allow(dead_code, unused_imports, reason = "the tests of the lab use the rest of it")]
#[path = "../../../lab/tests/run/support.rs"]
mod support;
mod tpcc;
