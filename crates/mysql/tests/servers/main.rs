//! Real servers, brought up and taken down: those of `./dev servers` and the system's.

#![allow(clippy::unwrap_used, reason = "helpers of tests count as tests")]

mod leftovers;
mod life;
mod links;
mod memory;
mod recovery;
mod refusals;
mod replication;
mod sampling;
mod settings;
mod status;
mod support;
mod volumes;
