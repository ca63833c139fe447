//! The load against real servers.

#![allow(clippy::unwrap_used, reason = "helpers of tests count as tests")]

mod support;

mod compatibility;
mod extending;
mod invariant;
mod ledger;
mod open_loop;
mod script;
mod tpcc;
mod workloads;
