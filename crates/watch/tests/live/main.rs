//! The watcher on made-up sources in virtual time: servers that restart, hang and refuse, devices that go, clocks that are set.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test panics where something is missing")]

mod faults;
mod recorded;
mod world;
