//! The EC2 service on a real control plane: block store, engine and NBD exports, without root.
#![allow(clippy::unwrap_used)]

mod access;
mod attach;
mod bin;
mod block_device;
mod commands;
mod copy_volumes;
mod direct;
mod encryption;
mod errors;
mod events;
mod fast_restores;
mod fuzz;
mod instances;
mod key_policies;
mod keys;
mod kill;
mod lists;
mod lookups;
mod model;
mod multi_attach;
mod other_hosts;
mod places;
#[path = "../support/fuzz.rs"]
mod requests;
mod rights;
mod roots;
#[path = "../support/rows.rs"]
mod rows;
mod session_tags;
mod sessions;
mod snapshots;
mod steps;
mod support;
mod tags;
mod threads;
mod tiers;
mod volumes;
#[path = "../support/wire.rs"]
mod wire;
