//! What a server is asked each second and each minute, for as long as somebody watches it. It is not changed, and hardly notices:
//!
//! - one connection, one statement at a time, and none whose cost grows with the number of tables;
//! - settings of the session alone: no statement waits for a lock on metadata, runs for over 2 s, or gets into the slow log;
//! - a server that is slow or does not answer is left alone for ten times as long as it took;
//! - one that hangs is not asked by a second connection;
//! - a login that is refused is tried again after 10 minutes, and then less often: attempts count towards a lock of the account;
//! - no statement that its version does not know;
//! - what that costs is counted ([`Cost`]), and what the server does not give is listed with what would enable it ([`Missing`]).
//!
//! # Where to begin reading
//!
//! [`ServerSampler::sample`] in `sampler.rs`. The statements are those of [`Collector`], when they are due decides `schedule.rs`, and
//! [`Reading`] is what they brought. To add a question: a variant of [`Collector`], and a field of [`Reading`].

mod collector;
mod connection;
mod missing;
mod reading;
mod sampler;
mod schedule;

pub use collector::Collector;
pub use reading::{
    Applier, BinaryLogs, CollectorRun, CompressedPool, Cost, InnodbMetric, Missing, PageCompression, Reading,
    Receiver, ReplicaRow, ResponseClass, ResponseTimes, Timed, Transaction,
};
pub use sampler::{SampleError, Sampled, ServerSampler};
