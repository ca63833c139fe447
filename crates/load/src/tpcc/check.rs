//! The consistency conditions of clause 3.3.2 on the tables of a server.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ebbtide_workload::tpcc::{Condition, Scale, conditions};
use ebbtide_workload::{OptionError, in_range};
use serde::{Deserialize, Serialize};

use super::tables::{TpccTables, inspect};
use crate::error::LoadError;
use crate::options::Target;
use crate::run::Cancel;
use crate::wire::Session;

/// How to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckOptions {
    /// The warehouses that the tables must have; none takes those that they have.
    pub warehouses: Option<u32>,
    /// Sets of tables with numbers in their names, 1 to 1000; 0 for one set without.
    pub table_sets: u32,
    /// Connections that check at the same time, 1 to 1024.
    pub threads: u32,
}

/// What was found out about a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionReport {
    /// Its number in clause 3.3.2, 1 to 12.
    pub condition: u8,
    /// What it is about.
    pub about: String,
    /// Whether it holds.
    pub holds: bool,
    /// Rows at fault; at most 1,000 are counted for a query, which looks at a warehouse, or at ten.
    pub rows_at_fault: u64,
    /// The first of them, with what was compared: at most 20.
    pub first_rows: Vec<String>,
}

/// What a check found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsistencyReport {
    /// What the tables hold.
    pub tables: TpccTables,
    /// Whether all conditions hold.
    pub consistent: bool,
    /// Whether it was cancelled before its end: not all warehouses were looked at.
    pub cancelled: bool,
    /// The twelve conditions, in their order.
    pub conditions: Vec<ConditionReport>,
}

/// Warehouses that a query of all of `history` looks at: what it groups must fit into the memory of the server. Other
/// queries look at one, so that its pages are read once for all conditions, whatever the size of the buffer pool.
const RANGE: u32 = 10;
/// Rows at fault that a query counts.
const COUNTED: u32 = 1_000;
/// Rows at fault that are shown.
const SHOWN: usize = 20;

/// Checks the twelve conditions, each in a snapshot. Calls `on_progress` with the number of queries that are done, and
/// with that of all.
///
/// # Errors
/// The server's, and tables that are not TPC-C's or have another number of warehouses.
pub fn check(
    target: &Target,
    options: CheckOptions,
    cancel: &Cancel,
    on_progress: &(dyn Fn(u32, u32) + Sync),
) -> Result<ConsistencyReport, LoadError> {
    in_range("threads", options.threads, 1, 1024, "1 to 1024 connections")?;
    if options.warehouses == Some(0) {
        let (option, value, allowed) = ("warehouses", "0".into(), "1 to 9000 warehouses");
        return Err(OptionError::OutOfRange { option, value, allowed }.into());
    }
    let tables = inspect(target, options.table_sets)?;
    if let Some(warehouses) = options.warehouses {
        tables.must_have(warehouses, target)?;
    }
    let all = conditions(Scale { items: tables.items, customers: tables.customers });
    let found = find(target, &all, &tables, options.threads, cancel, on_progress)?;
    let report = |(condition, rows): (&Condition, Vec<(usize, Vec<String>)>)| {
        let rows: Vec<String> = rows.into_iter().flat_map(|(_, rows)| rows).collect();
        ConditionReport {
            condition: condition.number,
            about: condition.about.into(),
            holds: rows.is_empty(),
            rows_at_fault: u64::try_from(rows.len()).expect("a length fits"),
            first_rows: rows.into_iter().take(SHOWN).collect(),
        }
    };
    let reports: Vec<ConditionReport> = all.iter().zip(found).map(report).collect();
    Ok(ConsistencyReport {
        tables,
        consistent: reports.iter().all(|of| of.holds),
        cancelled: cancel.is_cancelled(),
        conditions: reports,
    })
}

/// A query: a condition on some warehouses of a set of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Query {
    /// The place of the condition.
    condition: usize,
    set: u32,
    first: u32,
    last: u32,
}

/// All queries, those of the same warehouses one after the other.
fn queries(all: &[Condition], tables: &TpccTables) -> Vec<Query> {
    let mut queries = Vec::new();
    // Sets are numbered from 1; the only one without a number is 0.
    let sets = if tables.table_sets == 0 { 0..=0 } else { 1..=tables.table_sets };
    for set in sets {
        for first in (1..=tables.warehouses).step_by(usize::try_from(RANGE).expect("ten")) {
            let last = (first + RANGE - 1).min(tables.warehouses);
            let mut add = |of_history: bool, first, last| {
                let conditions = all.iter().enumerate().filter(|(_, of)| of.reads_history() == of_history);
                queries.extend(conditions.map(|(condition, _)| Query { condition, set, first, last }));
            };
            (first..=last).for_each(|one| add(false, one, one));
            add(true, first, last);
        }
    }
    queries
}

/// The rows at fault of each condition, by the place of their query.
type Found = Vec<Vec<(usize, Vec<String>)>>;

fn find(
    target: &Target,
    all: &[Condition],
    tables: &TpccTables,
    threads: u32,
    cancel: &Cancel,
    on_progress: &(dyn Fn(u32, u32) + Sync),
) -> Result<Found, LoadError> {
    let queries = queries(all, tables);
    let count =
        u32::try_from(queries.len()).expect("108,000 of 9,000 warehouses, of a thousand sets less than 2^32");
    let (next, done) = (AtomicUsize::new(0), AtomicU32::new(0));
    let found: Mutex<Found> = Mutex::new(vec![Vec::new(); all.len()]);
    let work = || -> Result<(), LoadError> {
        let mut session = Session::open(target, target.endpoint(0)?)?;
        session.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(query) = queries.get(place).filter(|_| !cancel.is_cancelled()) else { return Ok(()) };
            // All parts of a query see one state, whatever else goes on.
            session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
            let text = all[query.condition].query(query.set, query.first, query.last, COUNTED);
            let rows = session.rows(&text)?;
            session.execute("COMMIT")?;
            let rows: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next()?).collect();
            found.lock().unwrap_or_else(PoisonError::into_inner)[query.condition].push((place, rows));
            on_progress(done.fetch_add(1, Ordering::Relaxed) + 1, count);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(count)).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().expect("a check does not panic"));
        ended.fold(Ok(()), Result::and)
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    for rows in &mut found {
        rows.sort_unstable();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_looks_at_every_warehouse_of_every_set_once() {
        for (warehouses, table_sets) in [(1, 0), (10, 0), (23, 0), (3, 2), (11, 3)] {
            let tables =
                TpccTables { warehouses, table_sets, items: 100_000, customers: 3_000, c_last: None };
            let all = conditions(Scale::default());
            let queries = queries(&all, &tables);
            let mut seen: Vec<_> = queries
                .iter()
                .flat_map(|query| (query.first..=query.last).map(|of| (query.set, of, query.condition)))
                .collect();
            seen.sort_unstable();
            let sets = if table_sets == 0 { 0..=0 } else { 1..=table_sets };
            let expected: Vec<_> = sets
                .flat_map(|set| (1..=warehouses).flat_map(move |of| (0..12).map(move |at| (set, of, at))))
                .collect();
            assert_eq!(seen, expected);
            let of_history = |query: &&Query| all[query.condition].reads_history();
            let scans = queries.iter().filter(of_history).count();
            assert_eq!(scans, 3 * (table_sets.max(1) * warehouses.div_ceil(RANGE)) as usize);
        }
    }
}
