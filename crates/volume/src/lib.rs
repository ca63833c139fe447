//! The physics of a block volume.
//!
//! A [`Volume`] is a pure state machine: [`Volume::submit`] takes an I/O and the present time and
//! names the time at which the I/O completes. It holds no clock, no file, no thread and no random
//! source of its own. The same code therefore runs behind a real block device, in the simulator's
//! virtual time, and in the shadow of a recorded stream, and the three cannot disagree.
//!
//! This crate knows no vendor: what a gp3 or an r5.large may do is data ([`Limits`],
//! [`InstanceLimits`]) that the catalogue crate supplies.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod array;
mod bucket;
mod disk;
mod durability;
mod error;
mod in_flight;
mod instance;
mod io;
mod latency;
mod limits;
mod loading;
mod modify;
mod stations;
mod stats;
mod units;
mod volume;

pub use array::{Array, ArrayError};
pub use bucket::{BurstBucket, FlowWait, RateLimit, WaitLine};
pub use disk::Mechanics;
pub use durability::{AtomicUnit, Durability, PowerCut, UnitWrite};
pub use error::LimitsError;
pub use instance::{Instance, InstanceLimits};
pub use io::{Grant, Io, Op};
pub use latency::{QuantileCurve, QuantileError, ServiceTimes};
pub use limits::{Accounting, Limits, Merge};
pub use loading::{LOAD_BLOCK_BYTES, LoadCounts, LoadProgress, LoadState, Loader};
pub use modify::{Modification, ModificationPhase};
pub use stats::{LatencyHistogram, MinuteMetrics, OpStats, SplitStats, Stats};
pub use units::{GIB, KIB, MIB, Nanos, SizeError, TIB, format_size, parse_size};
pub use volume::Volume;
