//! Experiments on a real server and real volumes: a few seconds each, one at a time.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

mod backup;
mod ends;
mod others;
mod refusals;
mod support;
mod topology;
mod tpcc;
mod trials;
