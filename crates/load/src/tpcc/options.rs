//! What to load and what to run.

use ebbtide_workload::tpcc::{
    Constants, Isolation, MAX_TABLE_SETS, MAX_WAREHOUSES, Scale, Statements, Tpcc, WaitMode,
};
use ebbtide_workload::{OptionError, in_range};
use serde::{Deserialize, Serialize};

use crate::execution::Arrival;
use crate::options::{ClientOptions, LedgerOptions};

/// What to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TpccPrepareOptions {
    /// Warehouses, 1 to 9000; of each set of tables where there are several.
    pub warehouses: u32,
    /// Sets of tables with numbers in their names, 1 to 1000; 0 for one set without ([`Tpcc::table_sets`]).
    pub table_sets: u32,
    /// What a warehouse holds: the specification's, but in a test.
    pub scale: Scale,
    /// Foreign keys between the tables, as tpcc-mysql has them.
    pub foreign_keys: bool,
    /// The seed; the rows depend on it and on nothing else.
    pub seed: u64,
    /// Connections that load at the same time.
    pub threads: u32,
    /// Clients whose transactions may be marked ([`Tpcc::marks`]); 0 for no marks.
    pub marks: u32,
}

impl TpccPrepareOptions {
    /// One warehouse of the specification's size, loaded by one connection with seed 1.
    #[must_use]
    pub fn new() -> Self {
        Self {
            warehouses: 1,
            table_sets: 0,
            scale: Scale::default(),
            foreign_keys: true,
            seed: 1,
            threads: 1,
            marks: 0,
        }
    }

    /// TPC-C as these options load it.
    #[must_use]
    pub fn tpcc(&self) -> Tpcc {
        Tpcc {
            warehouses: self.warehouses,
            table_sets: self.table_sets,
            scale: self.scale,
            constants: Constants::of_load(self.seed),
            foreign_keys: self.foreign_keys,
            isolation: Isolation::default(),
            wait: WaitMode::None,
            statements: Statements::default(),
            marks: self.marks,
        }
    }
}

impl Default for TpccPrepareOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TpccOptions {
    /// Warehouses: those that the tables have, each set of them where there are several.
    pub warehouses: u32,
    /// Sets of tables with numbers in their names, 1 to 1000, each transaction in one of them; 0 for one set without.
    #[serde(default)]
    pub table_sets: u32,
    /// The isolation level of all connections.
    pub isolation: Isolation,
    /// Whether clients wait for keying and think times.
    pub wait: WaitMode,
    /// How the work of a transaction is divided into statements.
    #[serde(default)]
    pub statements: Statements,
    /// The clients; with waits, terminals.
    #[serde(flatten)]
    pub clients: ClientOptions,
    /// Write acknowledged commits.
    #[serde(default)]
    pub ledger: Option<LedgerOptions>,
}

impl Default for TpccOptions {
    /// One connection on one warehouse for 10 s without waits, at REPEATABLE READ, with seed 1.
    fn default() -> Self {
        Self {
            warehouses: 1,
            table_sets: 0,
            isolation: Isolation::default(),
            wait: WaitMode::None,
            statements: Statements::default(),
            clients: ClientOptions::default(),
            ledger: None,
        }
    }
}

impl TpccOptions {
    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// The first option that is wrong.
    pub fn check(&self) -> Result<(), OptionError> {
        in_range("warehouses", self.warehouses, 1, MAX_WAREHOUSES, "1 to 9000 warehouses")?;
        in_range("table-sets", self.table_sets, 0, MAX_TABLE_SETS, "0 (names without numbers) to 1000 sets")?;
        self.clients.check()?;
        if self.wait == WaitMode::Spec && self.clients.arrival != Arrival::Closed {
            return Err(OptionError::Contradiction(
                "--wait-mode=spec and --rate exclude each other: users who key and think make the rate",
            ));
        }
        if self.table_sets > 0 && self.ledger.as_ref().is_some_and(|ledger| ledger.marks) {
            return Err(OptionError::Contradiction(
                "marks of commits need one set of tables: leave out --table-sets, or --ledger-marks=off",
            ));
        }
        Ok(())
    }
}
