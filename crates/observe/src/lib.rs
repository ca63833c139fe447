//! What can be known of a server while it runs: plain data, which the sampler fills and the checks
//! read. Neither has to know the other.
//!
//! # Where to begin reading
//!
//! - A metric is a row of [`Rates`] in `src/rates.rs`; the sampler, SQLite, JSON and the schemas are made of these rows. A fact is a row
//!   of [`Facts`] in `src/facts.rs`. How to add one: docs/extending.md.
//! - [`Observation`] has everything that was seen of one server. `ebbtide_mysql::status::Observer` makes it of a live server,
//!   `ebbtide_captured::observation` of files.
//! - What lies on which volume of a server: [`Role`] in `src/role.rs`; something for each volume, and its text
//!   `data=...,redo+binlog=...`: [`Volumes`] in `src/volumes.rs`.
#![forbid(unsafe_code)]

mod asked;
mod facts;
mod host;
mod load;
pub mod metric;
mod observation;
mod rates;
mod replica;
mod role;
mod server;
mod shared_logs;
mod status;
mod tables;
mod volumes;

pub use asked::{AskedCounters, UPTIME};
pub use facts::{FACTS, Fact, Facts, Variables, switch};
pub use host::{
    Device, DeviceIo, Exceeded, Files, Host, ServerDirectory, StartAlignment, SyncProbe, VolumePeaks,
    directories,
};
pub use load::{Limited, LoadInterval, VolumeLoad};
pub use metric::{Counter, Interval, Metric, Readings};
pub use observation::{Configured, FileSystem, NotSeen, Observation, Origin, REDO_SYNC_FLUSH_SHARE, Span};
pub use rates::{METRICS, Rates};
pub use replica::worst_channel;
pub use role::{Role, UnknownRole};
pub use server::{Flavour, Version};
pub use shared_logs::{SharedLogs, TwoSpecs};
pub use status::{SelectRates, StatusVariables};
pub use tables::{Engine, RowStatistics, Tables};
pub use volumes::{Volumes, WrongVolumes};
