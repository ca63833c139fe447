//! TPC-C: its tables, its runs, its report, and the check of its consistency conditions.

mod check;
mod marked;
mod options;
mod report;
mod tables;

use ebbtide_workload::Program;
use ebbtide_workload::tpcc::{Constants, Scale, Tpcc};

use crate::error::LoadError;
use crate::load::{Loading, Prepared, Progress, load};
use crate::options::Target;
use crate::report::Sample;
use crate::run::{Cancel, execute_with_ledger};

pub use check::{CheckOptions, ConditionReport, ConsistencyReport, check};
pub use ebbtide_workload::tpcc::{Isolation, MAX_TABLE_SETS, Statements, WaitMode};
pub use marked::{MarkedOptions, check_marked, start};
pub use options::{TpccOptions, TpccPrepareOptions};
pub use report::{Kit, TpccReport, TpccTransaction};
pub use tables::{TpccTables, cleanup, inspect, tables_present};

/// The storage engine of the tables.
const ENGINE: &str = "InnoDB";

/// Creates the tables (and the database, where it is missing), fills them, and creates indexes and foreign keys. The
/// rows depend on the seed alone.
///
/// # Errors
/// Options out of range, and the server's errors, such as 1050 where a table is there already.
pub fn prepare(
    target: &Target,
    options: &TpccPrepareOptions,
    cancel: &Cancel,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Prepared, LoadError> {
    let tpcc = options.tpcc();
    tpcc.check()?;
    let loading = Loading { seed: options.seed, connections: options.threads };
    load(target, &tpcc.describe(), loading, cancel, on_progress)
}

/// Runs the transactions on tables that are there, and answers with what was found out. Calls `on_sample` once a second.
///
/// A server error that is not to be ignored ends the run early; the report is made all the same and reports it in
/// [`crate::Outcome::ended`].
///
/// # Errors
/// Wrong options, tables of another number of warehouses, and everything that goes wrong before the first transaction.
pub fn run(
    target: &Target,
    options: &TpccOptions,
    cancel: &Cancel,
    on_sample: &mut dyn FnMut(&Sample),
) -> Result<TpccReport, LoadError> {
    options.check()?;
    let tables = inspect(target, options.table_sets)?;
    tables.must_have(options.warehouses, target)?;
    let tpcc = Tpcc {
        warehouses: options.warehouses,
        table_sets: options.table_sets,
        scale: Scale { items: tables.items, customers: tables.customers },
        constants: Constants::of_run(options.clients.seed, tables.c_last),
        foreign_keys: false,
        isolation: options.isolation,
        wait: options.wait,
        statements: options.statements,
        marks: options
            .ledger
            .as_ref()
            .filter(|ledger| ledger.marks)
            .map_or(0, |_| options.clients.connections),
    };
    tpcc.check()?;
    let program = Program::new(tpcc.describe()).expect("our own description is in order");
    let ledger = options.ledger.as_ref().map(|ledger| (ledger, ENGINE));
    let (outcome, records) =
        execute_with_ledger(target, &program, &options.clients, ledger, cancel, on_sample)?;
    Ok(TpccReport::new(options.clone(), tables, tpcc.constants, outcome, records))
}
