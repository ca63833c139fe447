//! The block store on real files: what it promises, and what it does when the host, the disk or the process fails.

#![allow(clippy::unwrap_used)] // in a test a failed step is a failed test

mod blocks;
mod damage;
mod encryption;
mod full_disk;
mod kill;
mod layers;
mod memory;
mod model;
mod names;
mod replaced;
mod support;
