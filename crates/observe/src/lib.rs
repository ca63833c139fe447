//! What can be known of a server while it runs: plain data, which the sampler fills and the checks
//! read. Neither has to know the other.
#![forbid(unsafe_code)]

mod asked;
mod facts;
mod host;
mod load;
pub mod metric;
mod observation;
mod rates;
mod replica;
mod server;
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
pub use observation::{Configured, FileSystem, NotSeen, Observation, Origin, Span};
pub use rates::{METRICS, Rates};
pub use replica::worst_channel;
pub use server::{Flavour, Version};
pub use status::{SelectRates, StatusVariables};
pub use tables::{Engine, RowStatistics, Tables};
pub use volumes::{SharedLogs, TwoSpecs, VolumeFiles};
