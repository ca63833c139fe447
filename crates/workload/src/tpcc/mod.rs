//! TPC-C, revision 5.11, on the tables of tpcc-mysql. [`Tpcc`] makes a [`crate::Description`] of it.
//!
//! Clauses in comments are those of the specification, "TPC Benchmark C, Standard Specification, Revision 5.11",
//! February 2010.

mod batched;
mod conditions;
mod constants;
mod numbered;
mod rows;
mod statements;
mod transactions;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::description::Description;
use crate::error::{OptionError, in_range};
use crate::script::Statement;

pub use conditions::{Condition, conditions};
pub use constants::Constants;

/// The names of the tables.
pub const TABLES: [&str; 9] =
    ["warehouse", "district", "customer", "history", "new_orders", "orders", "order_line", "item", "stock"];

/// Warehouses, at most: the rows that are drawn for order lines are numbered with 32 bits.
pub const MAX_WAREHOUSES: u32 = 9_000;
/// Sets of numbered tables, at most: each statement is prepared for each of them.
pub const MAX_TABLE_SETS: u32 = 1_000;
/// Districts of a warehouse (clause 1.2.1).
pub const DISTRICTS: u32 = 10;
/// New-Order transactions a minute that a warehouse allows with the keying and think times of clause 5.2.5.7.
pub const TPMC_PER_WAREHOUSE: f64 = 12.86;

/// TPC-C with everything that decides what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tpcc {
    /// Warehouses; of each set of tables where there are several.
    pub warehouses: u32,
    /// Sets of tables with numbers in their names (`warehouse1`), as sysbench-tpcc has them; 0 for one set without.
    pub table_sets: u32,
    /// What a warehouse holds.
    pub scale: Scale,
    /// The constants of the non-uniform draws.
    pub constants: Constants,
    /// Foreign keys between the tables.
    pub foreign_keys: bool,
    /// The isolation level of all connections.
    pub isolation: Isolation,
    /// Whether clients wait.
    pub wait: WaitMode,
    /// How the work of a transaction is divided into statements.
    pub statements: Statements,
    /// Clients that write the number of each transaction into a mark of their own ([`crate::LEDGER_TABLE`]), so that one
    /// that was acknowledged and is not there is seen; 0 for none, as the specification has it.
    pub marks: u32,
}

/// What a warehouse holds. The specification has one scale; smaller ones make a test short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Items, and stock rows of each warehouse.
    pub items: u32,
    /// Customers, orders and history rows of each district.
    pub customers: u32,
}

impl Default for Scale {
    /// The specification's (clause 1.2.1).
    fn default() -> Self {
        Self { items: 100_000, customers: 3_000 }
    }
}

impl Scale {
    /// Orders of a district that are delivered when they are loaded: seven tenths, 2,100 of 3,000 (clause 4.3.3.1).
    #[must_use]
    pub fn delivered(self) -> u32 {
        self.customers / 10 * 7
    }

    /// Orders of a district that wait for their delivery when they are loaded: 900 of 3,000.
    #[must_use]
    pub fn new_orders(self) -> u32 {
        self.customers - self.delivered()
    }

    /// Last names, of which the first customers have one each: 1,000.
    #[must_use]
    pub fn last_names(self) -> u32 {
        self.customers.min(1_000)
    }
}

/// An isolation level, in sysbench-tpcc's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ.
    #[default]
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

impl Isolation {
    /// The name, as SQL has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether clients wait as the users of the specification do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// They do not wait, and take any warehouse for each transaction, as in tpcc-mysql and sysbench-tpcc.
    #[default]
    None,
    /// They wait for the keying and think times of clause 5.2.5.7, and each stays with its warehouse (clause 2.4.1.1),
    /// ten to a warehouse.
    Spec,
}

/// How the work of a transaction is divided into statements. Keys, rows and results are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statements {
    /// One for each row, as tpcc-mysql sends them: about 36 for a transaction.
    #[default]
    Single,
    /// One for the items, the stock and the lines of an order each, for all orders of a Delivery and for a Stock-Level, as
    /// go-tpc sends them: about 14.
    Batched,
}

impl Tpcc {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        in_range("warehouses", self.warehouses, 1, MAX_WAREHOUSES, "1 to 9000 warehouses")?;
        in_range("table-sets", self.table_sets, 0, MAX_TABLE_SETS, "0 (names without numbers) to 1000 sets")?;
        // Not on a command line: a multiple of ten, so that seven tenths are whole.
        in_range("customers", self.scale.customers, 10, 3_000, "10 to 3000 customers of a district")?;
        in_range("items", self.scale.items, 100, 100_000, "100 to 100000 items")
    }

    /// The workload as plain data.
    #[must_use]
    pub fn describe(&self) -> Description {
        let plain = self.describe_one();
        if self.table_sets == 0 { plain } else { numbered::in_sets(plain, self.table_sets) }
    }

    /// With one set of tables, whose names have no number.
    fn describe_one(&self) -> Description {
        Description {
            name: "tpcc".into(),
            form: format!("tpcc-{:08x}{}", rows::form(), if self.marks > 0 { "-marked" } else { "" }),
            tables: self.tables(),
            statements: self.all_statements(),
            transactions: match self.statements {
                Statements::Single => self.transactions(),
                Statements::Batched => self.batched_transactions(),
            },
            session: vec![
                format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", self.isolation),
                "SET SESSION autocommit=0".into(),
            ],
            opening: Vec::new(),
            undo: Some(statements::Stmt::RollBack.call(Vec::new())),
            finish: if self.foreign_keys { rows::foreign_keys() } else { Vec::new() },
            registers: transactions::REGISTERS,
        }
    }

    fn all_statements(&self) -> Vec<Statement> {
        let mut all = statements::all(self.marks > 0);
        if self.statements == Statements::Batched {
            all.extend(batched::statements());
        }
        all
    }
}

#[cfg(test)]
mod tests;
