//! The options that only TPC-C has.

use anyhow::Result;
use clap::{Args, ValueEnum};
use ebbtide_load::tpcc::{Isolation, MAX_TABLE_SETS, Statements, WaitMode};

use super::switch::parse_switch;
use crate::exit::Refusal;

/// The tables of TPC-C.
#[derive(Debug, Args)]
#[command(next_help_heading = "TPC-C (tpcc)")]
pub(super) struct TablesArgs {
    /// tpcc: warehouses, 1 to 9000; one takes about 100 MB [default: 1]
    #[arg(long, value_name = "N")]
    pub(super) warehouses: Option<u32>,
    /// tpcc: N sets of tables with numbers in their names (warehouse1), as sysbench-tpcc's --tables makes them, each with
    /// the warehouses [default: one set without numbers]
    #[arg(long, alias = "table_sets", value_name = "N")]
    pub(super) table_sets: Option<u32>,
    /// tpcc: foreign keys between the tables [default: on]
    #[arg(long, alias = "foreign_keys", value_name = "on|off", value_parser = parse_switch)]
    pub(super) foreign_keys: Option<bool>,
}

/// How TPC-C runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "TPC-C (tpcc)")]
pub(super) struct TransactionsArgs {
    /// tpcc: warehouses of the tables [default: 1]
    #[arg(long, value_name = "N")]
    pub(super) warehouses: Option<u32>,
    /// tpcc: N sets of tables with numbers in their names (warehouse1), as sysbench-tpcc's --tables makes them; each
    /// transaction takes one of them [default: one set without numbers]
    #[arg(long, alias = "table_sets", value_name = "N")]
    pub(super) table_sets: Option<u32>,
    /// tpcc: keying and think times: none, or those of the specification [default: none]
    #[arg(long, alias = "wait_mode", value_enum, value_name = "MODE")]
    pub(super) wait_mode: Option<WaitWord>,
    /// tpcc: isolation level: READ COMMITTED, REPEATABLE READ or SERIALIZABLE [default: rr]
    #[arg(long, alias = "trx_level", value_enum, ignore_case = true, value_name = "LEVEL")]
    pub(super) trx_level: Option<Level>,
    /// tpcc: statements: one for each row, as tpcc-mysql sends them, or one for all lines of an order and all orders of a
    /// Delivery, as go-tpc does [default: single]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(super) statements: Option<StatementsWord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WaitWord {
    None,
    Spec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StatementsWord {
    Single,
    Batched,
}

/// sysbench-tpcc's words, and those of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Level {
    #[value(alias = "read-committed")]
    Rc,
    #[value(alias = "repeatable-read")]
    Rr,
    #[value(alias = "serializable")]
    Ser,
}

impl TablesArgs {
    pub(super) fn is_given(&self) -> bool {
        self.warehouses.is_some() || self.table_sets.is_some() || self.foreign_keys.is_some()
    }
}

impl TransactionsArgs {
    pub(super) fn is_given(&self) -> bool {
        self.warehouses.is_some()
            || self.table_sets.is_some()
            || self.wait_mode.is_some()
            || self.trx_level.is_some()
            || self.statements.is_some()
    }

    pub(super) fn wait(&self) -> WaitMode {
        match self.wait_mode {
            Some(WaitWord::Spec) => WaitMode::Spec,
            Some(WaitWord::None) | None => WaitMode::None,
        }
    }

    pub(super) fn statements(&self) -> Statements {
        match self.statements {
            Some(StatementsWord::Batched) => Statements::Batched,
            Some(StatementsWord::Single) | None => Statements::Single,
        }
    }

    pub(super) fn isolation(&self) -> Isolation {
        match self.trx_level {
            Some(Level::Rc) => Isolation::ReadCommitted,
            Some(Level::Ser) => Isolation::Serializable,
            Some(Level::Rr) | None => Isolation::RepeatableRead,
        }
    }
}

/// How many sets of tables were asked for.
pub(super) fn table_sets(given: u32) -> Result<u32> {
    if (1..=MAX_TABLE_SETS).contains(&given) {
        return Ok(given);
    }
    let message = format!(
        "--table-sets={given} is out of range: 1 to {MAX_TABLE_SETS}, or none for names without numbers"
    );
    Err(Refusal::usage(message).into())
}
