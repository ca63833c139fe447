//! The consistency conditions of clause 3.3.2 on the tables of a server.

use std::sync::atomic::{AtomicU32, Ordering};
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
    /// Rows at fault; at most 1,000 are counted for every ten warehouses.
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

/// Warehouses that one query looks at: what it groups must fit into the memory of the server.
const RANGE: u32 = 10;
/// Rows at fault of a range that are counted.
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
    let report = |(condition, rows): (&Condition, Vec<(u32, Vec<String>)>)| {
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

/// The rows at fault of each condition, by the place of their query.
type Found = Vec<Vec<(u32, Vec<String>)>>;

fn find(
    target: &Target,
    all: &[Condition],
    tables: &TpccTables,
    threads: u32,
    cancel: &Cancel,
    on_progress: &(dyn Fn(u32, u32) + Sync),
) -> Result<Found, LoadError> {
    let conditions = u32::try_from(all.len()).expect("twelve");
    let ranges = tables.warehouses.div_ceil(RANGE);
    let queries = ranges * tables.table_sets.max(1) * conditions;
    let (next, done) = (AtomicU32::new(0), AtomicU32::new(0));
    let found: Mutex<Found> = Mutex::new(vec![Vec::new(); all.len()]);
    let work = || -> Result<(), LoadError> {
        let mut session = Session::open(target, target.endpoint(0)?)?;
        session.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        loop {
            let query = next.fetch_add(1, Ordering::Relaxed);
            if query >= queries || cancel.is_cancelled() {
                return Ok(());
            }
            let at = usize::try_from(query % conditions).expect("less than twelve");
            let place = query / conditions;
            // Sets are numbered from 1; the only one without a number is 0.
            let set = place / ranges + tables.table_sets.min(1);
            let start = place % ranges * RANGE + 1;
            let end = (start + RANGE - 1).min(tables.warehouses);
            // All parts of a query see one state, whatever else goes on.
            session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
            let rows = session.rows(&all[at].query(set, start, end, COUNTED))?;
            session.execute("COMMIT")?;
            let rows: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next()?).collect();
            found.lock().unwrap_or_else(PoisonError::into_inner)[at].push((place, rows));
            on_progress(done.fetch_add(1, Ordering::Relaxed) + 1, queries);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(queries)).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().expect("a check does not panic"));
        ended.fold(Ok(()), Result::and)
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    for rows in &mut found {
        rows.sort_unstable();
    }
    Ok(found)
}
