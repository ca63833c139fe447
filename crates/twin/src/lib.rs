//! Virtual time: fio-like jobs and servers on volumes, driven as fast as the machine can count.
//!
//! [`fio::parse_words`] and [`fio::parse_file`] read a workload in fio's own words;
//! [`simulate`] runs it on one or more volumes and hands every interval of virtual time to an
//! [`Observer`]. The volumes are the same state machines that a live device is driven by
//! (`ebbtide-volume`), so a simulation and an emulation cannot disagree about what a volume is.
//!
//! [`innodb::run`] is a model of a database server on a volume; [`profile`] describes one, and [`accuracy`] says how sure
//! a prediction is.
//!
//! Nothing here reads a real clock, a file or a random source of the machine: a seed and a
//! workload give the same run everywhere.
//!
//! # Where to begin reading
//!
//! - [`simulate`] in `src/driver.rs` is the event loop of jobs and traces.
//! - [`innodb::run`] in `src/innodb/model.rs` is that of a server. Beside it are its classes of pages (`pages.rs`), the page cache below
//!   the pool (`page_cache.rs`), which kind of file lies on which volume (`file_kind.rs`), and its calibration on measured points
//!   (`calibrate.rs`).
//! - [`profile`] reads and writes profiles; `ebbtide-forecast` makes them of what was measured.
#![forbid(unsafe_code)]

pub mod accuracy;
mod address;
mod balance;
mod driver;
pub mod fio;
pub mod innodb;
mod job;
mod lanes;
mod outcome;
mod percentiles;
pub mod profile;
mod queue;
mod replay;
mod sample;
mod shadow;
mod think;
mod thread;
pub mod trace;

pub use balance::{Balance, BalanceChange};
pub use driver::{Setup, simulate};
pub use job::{Access, BlockSizes, Direction, Distribution, Extent, Job, Rate, Workload};
pub use outcome::{Outcome, SimulateError, VolumeOutcome};
pub use percentiles::Percentiles;
pub use replay::{ReplayError, ReplaySetup, replay};
pub use sample::{Interval, Observer, OpTotals, Totals};
pub use shadow::{Latencies, Shadow};
pub use think::{READ_AHEAD, replay_closed};
