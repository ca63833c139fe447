//! Virtual time: fio-like jobs on volumes, driven as fast as the machine can count.
//!
//! [`fio::parse_words`] and [`fio::parse_file`] read a workload in fio's own words;
//! [`simulate`] runs it on one or more volumes and hands every interval of virtual time to an
//! [`Observer`]. The volumes are the same state machines that a live device is driven by
//! (`ebbtide-volume`), so a simulation and an emulation cannot disagree about what a volume is.
//!
//! Nothing here reads a real clock, a file or a random source of the machine: a seed and a
//! workload give the same run everywhere.
#![forbid(unsafe_code)]

mod address;
mod balance;
mod driver;
pub mod fio;
mod job;
mod queue;
mod sample;
mod thread;

pub use balance::{Balance, BalanceChange};
pub use driver::{Outcome, Setup, SimulateError, VolumeOutcome, simulate};
pub use job::{Access, BlockSizes, Direction, Distribution, Extent, Job, Rate, Workload};
pub use sample::{Interval, Observer, OpTotals, Percentiles, Totals};
