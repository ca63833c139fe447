//! The physics of a block volume.
//!
//! A [`Volume`] is a pure state machine: [`Volume::submit`] takes an I/O and the present time and
//! names the time at which the I/O completes. It holds no clock, no file, no thread and no random
//! source of its own. The same code therefore runs behind a real block device, in the simulator's
//! virtual time, and in the shadow of a recorded stream, and the three cannot disagree.
//!
//! This crate knows no vendor: what a gp3 or an r5.large may do is data ([`Limits`],
//! [`InstanceLimits`]) that the catalogue crate supplies.
//!
//! # Where to begin reading
//!
//! [`Volume::submit`] in `src/volume.rs` is the life of one I/O. It asks the modules beside it:
//!
//! | What | Where |
//! |---|---|
//! | Whether the blocks are loaded from the snapshot yet | `Loading` in `src/loading.rs` |
//! | How many operations and bytes the I/O counts as | `Accountant` in `src/account.rs` |
//! | The queue of the device; the arm of a disk | `Stations` in `src/stations.rs`; `Arm` in `src/disk.rs` |
//! | How long the service takes | [`QuantileCurve`] in `src/latency.rs` |
//! | Credits of the volume and of the instance | [`BurstBucket`] in `src/bucket.rs`, [`Instance`] in `src/instance.rs` |
//! | What a power cut leaves | [`PowerCut`] in `src/durability.rs` |
//!
//! [`BurstBucket::flow`] takes an even load of many I/Os at once: sizing searches with it. `tests/physics` compares the model with
//! the formulas of the documentation. A new type of volume needs no change here: docs/extending.md.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod array;
mod bucket;
mod credits;
mod disk;
mod durability;
mod error;
mod in_flight;
mod instance;
mod interval;
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
pub use credits::{CreditUnit, Credits};
pub use disk::Mechanics;
pub use durability::{AtomicUnit, Durability, PowerCut, UnitWrite};
pub use error::LimitsError;
pub use instance::{Instance, InstanceLimits};
pub use interval::{MinuteMetrics, VolumeInterval};
pub use io::{Grant, Io, Op};
pub use latency::{QuantileCurve, QuantileError, ServiceTimes};
pub use limits::{Accounting, Limits, Merge};
pub use loading::{LOAD_BLOCK_BYTES, LoadCounts, LoadProgress, LoadState, Loader};
pub use modify::{Modification, ModificationPhase};
pub use stats::{LatencyHistogram, OpStats, SplitStats, Stats};
pub use units::{GIB, KIB, MIB, Nanos, SizeError, TIB, binary_instead, format_size, parse_size};
pub use volume::Volume;
