//! What the kernel reports of this machine, its mounts and its processes: the only crate that knows the formats of `/proc`.
//!
//! `procfs` reads what it can (docs/decisions/dependencies.md). Everything is read anew at each call, and cheap
//! enough for once a second.
#![forbid(unsafe_code)]

mod block;
mod group;
pub mod machine;
mod mounts;
mod pressure;
pub mod process;

pub use block::{BlockStatistics, Discards, Flushes, block_statistics, parse_block_statistics};
pub use group::{GroupVersion, MemoryGroup};
pub use mounts::{Mount, host_mounts, is_mount_point, mount_of, mounts, parse_mounts};
pub use pressure::{Pressure, Stall, parse_stall, pressure};
