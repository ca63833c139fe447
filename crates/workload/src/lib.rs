//! Describes work as plain data: the only crate that does.
//!
//! A [`Description`] has everything that a workload is: its tables with their sizes and rows, what warms them up, and
//! its transactions as scripts of [`Step`]s, whose values are [`Expr`]essions over registers, random draws and
//! what earlier statements returned. Whoever executes it (the load, on a server) or models it (in virtual time)
//! takes a [`Program`] of it and steps through that with one [`Play`] for each client.
//!
//! [`sysbench`] describes sysbench's OLTP family, [`tpcc`] TPC-C, [`invariant`] the workload of the crash lab.
//! [`WORKLOADS`] is the list of those that have names. Nothing here knows a clock, a file, a thread or a server: what is
//! drawn depends on a seed alone.
//!
//! # Where to begin reading
//!
//! [`Description`] in `src/description.rs`, then [`Play`] in `src/play.rs`. The names are in `src/registry.rs`. How to add a workload:
//! docs/extending.md.
#![forbid(unsafe_code)]

mod check;
mod description;
mod error;
mod expr;
mod script;

mod distribution;
mod play;
mod program;
mod rows;
mod unique;
mod values;

#[cfg(test)]
mod sent;

pub mod invariant;
pub mod log_bytes;
pub mod sysbench;
pub mod tpcc;

mod registry;

pub use description::{Description, Fill, Index, Keep, Opening, Table};
pub use distribution::{Distribution, DistributionError, Drawer, Random};
pub use error::{DescriptionError, OptionError, in_range};
pub use expr::{Datum, Expr, Op, Register};
pub use play::{Next, Play, Situation};
pub use program::Program;
pub use registry::{LoadKind, Registered, WORKLOADS};
pub use rows::{Part, RowWriter, parts};
pub use script::{
    Access, AccessKind, Append, Bind, Call, Collect, Key, ParamKind, Path, Statement, Step, Transaction,
    numbered,
};
pub use unique::UniqueIds;
pub use values::Alphabet;

/// The database of the tables, where nobody names another one: sysbench's.
pub const DATABASE: &str = "sbtest";

/// The table that holds the number of each client's last transaction, where a workload marks its transactions.
pub const LEDGER_TABLE: &str = "ebbtide_ledger";
