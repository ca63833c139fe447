//! A workload whose tables prove what a server kept, for power cuts.
//!
//! Every transaction moves an amount between two accounts, raises the counters of three rows, changes a
//! secondary index, writes a history row and drops an old one, and puts its number into its client's
//! mark ([`crate::LEDGER_TABLE`]). So whatever set of whole transactions a server has, sums and
//! counters agree with the marks; half a transaction breaks them. What a transaction does depends on the seed, the
//! client and its number alone.

mod describe;
mod schema;

pub use schema::{
    ABORTED, ABORTED_PAYLOAD, ACCOUNT, BALLAST, CheckedTable, HISTORY, INITIAL_BALANCE, Index, MAX_CLIENTS,
    Schema, check_clients,
};

/// The workload with everything that decides what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invariants {
    /// The tables.
    pub schema: Schema,
    /// Clients that the tables are made for, 1 to 64.
    pub clients: u32,
    /// One transaction in so many is preceded by one that is rolled back on purpose; 0 for none.
    pub abort_every: u32,
}
