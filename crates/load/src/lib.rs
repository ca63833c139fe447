//! Generates transactions against a MySQL or MariaDB server: the only crate that does.
//!
//! The sysbench OLTP family on sysbench's own tables, in a closed loop or at a fixed or Poisson rate.
//! [`prepare`] loads the tables, [`run`] drives a [`Workload`] as [`RunOptions`] say and answers with
//! a [`RunReport`], [`cleanup`] drops the tables.
//!
//! Latency in an open loop counts from the intended start of a transaction; how late the generator
//! itself was is measured beside it, and a run whose generator could not keep up is disqualified.
//! A few event-loop threads carry many connections, so that the driver takes little of the machine
//! that the server under test also needs.
//!
//! [`invariant`] is another load, for crashes: its tables prove what a server kept.
#![forbid(unsafe_code)]

mod error;
mod options;
mod report;

mod distribution;
mod latency;
mod schedule;

mod plan;
mod sql;
mod wire;

mod prepare;
mod run;
mod usage;

pub mod invariant;
pub mod ledger;

pub use distribution::{Distribution, DistributionError};
pub use error::LoadError;
pub use latency::{Bucket, Latency};
pub use options::{
    Arrival, Endpoint, IgnoreErrors, LedgerOptions, Mix, OptionError, RunOptions, Schema, Target, Tls,
    Workload,
};
pub use prepare::{PrepareOptions, Prepared, Progress, cleanup, prepare, tables_present};
pub use report::{
    ClientUse, Ended, ErrorCount, Fairness, Generator, Omission, OpenLoop, RunReport, Sample, ServerInfo,
    StatementLatency, Totals,
};
pub use run::{Cancel, run};
pub use wire::{Session, own_version};
