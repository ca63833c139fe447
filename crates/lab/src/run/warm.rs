//! Having the server answer a list of statements: above all the tables read through, the same way
//! before every trial.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ebbtide_load::{Cancel, LoadError, Session, Target};

use super::error::StageError;
use crate::experiment::DataPlan;

/// Ranges of ids that a table's primary key is read in.
const RANGES: u32 = 4;
/// Connections at most. The volume is without limits then, and the machine has few processors.
const READERS: usize = 4;
/// How often it is looked whether the user has ended the run.
const LOOK: Duration = Duration::from_millis(20);

/// The statements, in order: all rows by primary key, then the index.
fn statements(data: &DataPlan) -> Vec<String> {
    let mut all = Vec::new();
    for table in 1..=data.tables {
        let step = data.rows.div_ceil(RANGES).max(1);
        for first in (1..=data.rows).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let last = first.saturating_add(step - 1);
            all.push(format!(
                "SELECT SUM(LENGTH(c)) FROM sbtest{table} FORCE INDEX (PRIMARY) WHERE id BETWEEN {first} AND {last}"
            ));
        }
    }
    let index = |table| format!("SELECT COUNT(k) FROM sbtest{table} FORCE INDEX (k_{table}) WHERE k >= 0");
    all.extend((1..=data.tables).map(index));
    all
}

/// Reads everything once; see [`answer_all`] for `stop`.
pub(crate) fn read_tables(
    target: &Target,
    data: &DataPlan,
    cancel: &Cancel,
    stop: impl FnOnce(),
) -> Result<(), StageError> {
    answer_all(target, &statements(data), cancel, stop)
}

/// Has the server answer statements, a few at a time. On a cancelled run `stop` is called, which must
/// end the server or its connections, so that those who wait for an answer come back.
pub(crate) fn answer_all(
    target: &Target,
    statements: &[String],
    cancel: &Cancel,
    stop: impl FnOnce(),
) -> Result<(), StageError> {
    let next = AtomicUsize::new(0);
    let read = || -> Result<(), LoadError> {
        let mut session = Session::open(target, &target.endpoints[0])?;
        while let Some(sql) = statements.get(next.fetch_add(1, Ordering::Relaxed)) {
            if cancel.is_cancelled() {
                break;
            }
            session.execute(sql)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS.min(statements.len())).map(|_| scope.spawn(read)).collect();
        while !cancel.is_cancelled() && readers.iter().any(|reader| !reader.is_finished()) {
            std::thread::sleep(LOOK);
        }
        if cancel.is_cancelled() {
            stop();
        }
        let joined =
            readers.into_iter().map(|reader| reader.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        let read: Vec<Result<(), LoadError>> = joined.collect();
        if cancel.is_cancelled() {
            return Err(StageError::Cancelled);
        }
        Ok(read.into_iter().collect::<Result<(), LoadError>>()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_once_and_every_index() {
        let all = statements(&DataPlan { tables: 2, rows: 10, aged: false });
        assert_eq!(all.len(), 2 * 4 + 2);
        assert!(all[0].ends_with("BETWEEN 1 AND 3") && all[3].ends_with("BETWEEN 10 AND 12"), "{all:?}");
        assert!(all[9].contains("sbtest2") && all[9].contains("k_2"), "{all:?}");
        assert_eq!(statements(&DataPlan { tables: 1, rows: 1, aged: false }).len(), 2);
    }
}
