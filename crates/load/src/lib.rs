//! Generates transactions against a MySQL or MariaDB server: the only crate that does.
//!
//! [`execute`] runs any workload that `ebbtide-workload` describes, in a closed loop or at a fixed or Poisson rate, and
//! answers with an [`Outcome`]; [`load`] makes and fills its tables. There is one event loop for all of them.
//!
//! sysbench's OLTP family has its own options: [`prepare`] loads its tables, [`run`] drives a [`Workload`] as
//! [`RunOptions`] describe and returns a [`RunReport`], [`cleanup`] drops the tables.
//!
//! Latency in an open loop counts from the intended start of a transaction; how late the generator
//! itself was is measured next to it, and a run whose generator could not keep up is disqualified.
//! A few event-loop threads carry many connections, so that the driver takes little of the machine
//! that the server under test also needs.
//!
//! [`tpcc`] runs TPC-C and checks its consistency conditions. [`invariant`] is another load, for crashes: its tables
//! prove what a server kept. [`answer`] has what a load prints for people.
//!
//! # Where to begin reading
//!
//! [`execute`] and [`run`] in `src/run/mod.rs` start the threads; the event loop of each is `src/run/worker.rs`, what it does for one
//! client `src/run/worker/transact.rs`. [`load`] in `src/load.rs` makes tables. The protocol of MySQL is `src/wire`. TPC-C is
//! `src/tpcc/mod.rs`, the load of the crash lab `src/invariant`.
#![forbid(unsafe_code)]

pub mod answer;
mod error;
mod execution;
mod options;
mod report;

mod latency;
mod schedule;

mod wire;

mod load;
mod prepare;
mod run;
mod usage;

pub mod invariant;
pub mod ledger;
pub mod tpcc;

pub use ebbtide_workload::sysbench::{Mix, RowLengths, Schema, Workload};
pub use ebbtide_workload::{
    DATABASE, Distribution, DistributionError, LoadKind, OptionError, Registered, WORKLOADS,
};
pub use error::LoadError;
pub use execution::{Arrival, Execution, IgnoreErrors, LONGEST_ROUND_TRIP, Refused};
pub use latency::{Bucket, Latency};
pub use load::{Loading, Prepared, Progress, load};
pub use options::{ClientOptions, Endpoint, LedgerOptions, RunOptions, Target, Tls};
pub use prepare::{PrepareOptions, cleanup, prepare, tables_present};
pub use report::{
    ClientUse, Ended, ErrorCount, Fairness, Generator, Omission, OpenLoop, Outcome, RunReport, Sample,
    ServerInfo, StatementLatency, Totals, TransactionLatency,
};
pub use run::{Cancel, Commit, RunObserver, execute, run};
pub use wire::{Session, own_version};
