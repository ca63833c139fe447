//! The shape of a workload, from a server's counters and the sums of its statement digests: how much is read and written in a
//! transaction, by how many clients at a time, over how much data. No value of a row and no text of a statement is in it.

use ebbtide_observe::{Observation, Rates};

/// What an observation does not show of a workload, as a sentence without a full stop.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownWorkload {
    /// There is one status, or the server was started again between two.
    #[error("the server's counters were not read twice, so that its workload is not known")]
    OneLook,
    /// No counter of statements was among them.
    #[error("the statements that the server runs were not counted")]
    NoStatements,
    /// The server did next to nothing.
    #[error("the server ran {statements:.1} statements a second: look while it has its usual load")]
    Idle {
        /// Statements a second.
        statements: f64,
    },
    /// The variables do not have the size of the buffer pool.
    #[error("the size of the buffer pool is not known")]
    NoPool,
}

/// What clients have a server do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// Transactions a second: see [`Rates::transactions`].
    pub(crate) tps: f64,
    /// Whether every statement commits by itself.
    pub(crate) autocommit: bool,
    /// SELECT statements in a transaction.
    pub(crate) reads: f64,
    /// Rows that a SELECT looks at.
    pub(crate) rows_per_read: f64,
    /// UPDATE statements in a transaction.
    pub(crate) updates: f64,
    /// INSERT and REPLACE statements in a transaction.
    pub(crate) inserts: f64,
    /// DELETE statements in a transaction.
    pub(crate) deletes: f64,
    /// Clients whose statements run at a time.
    pub(crate) clients: f64,
    /// Bytes of the pages that are in use: what would make the buffer pool miss as often if all were used alike.
    pub(crate) working_set: f64,
    /// Rows that a transaction writes; None: they were not counted.
    pub(crate) rows: Option<RowsWritten>,
    /// Bytes of redo in a transaction; None: they were not counted.
    pub(crate) redo_bytes: Option<f64>,
    /// Bytes of binary log in a transaction; None: they were not counted.
    pub(crate) binlog_bytes: Option<f64>,
    /// Mean bytes of a row, free space of its page included; None: the server showed no statistics of its tables.
    pub(crate) row_bytes: Option<f64>,
}

/// Rows that are written, by what is done to them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RowsWritten {
    /// Rows updated.
    pub(crate) updated: f64,
    /// Rows inserted.
    pub(crate) inserted: f64,
    /// Rows deleted.
    pub(crate) deleted: f64,
}

impl RowsWritten {
    /// All of them.
    pub(crate) fn all(&self) -> f64 {
        self.updated + self.inserted + self.deleted
    }
}

/// A server with fewer statements a second is idle.
const LEAST_STATEMENTS: f64 = 1.0;
/// Digests of a smaller share of the statements do not stand for the rest.
const DIGESTED: f64 = 0.5;
/// Rows on a page where their length is not known, about: sysbench's. A range reads so many fewer pages.
const ROWS_ON_A_PAGE: f64 = 70.0;
/// The share of a buffer pool that holds rows.
const ROWS_IN_POOL: f64 = 0.9;
/// The share of a buffer pool up to which data that are all in it may grow.
const ALL_IN_POOL: f64 = 0.7;
/// More misses than this for an access come from reading ahead.
const MOST_MISSES: f64 = 0.95;
/// Data of less are no data, bytes.
const LEAST_DATA: f64 = (16_u64 << 20) as f64;

impl Shape {
    /// The shape.
    ///
    /// # Errors
    /// What is missing of the observation.
    pub(crate) fn of(seen: &Observation) -> Result<Self, UnknownWorkload> {
        let Some(rates) = seen.rates.filter(|_| seen.span.is_some_and(|span| !span.restarted)) else {
            return Err(UnknownWorkload::OneLook);
        };
        let Some((tps, autocommit)) = rates.transactions() else {
            return Err(UnknownWorkload::NoStatements);
        };
        let (reads, writes) = (rates.read_statements.unwrap_or(0.0), rates.write_statements.unwrap_or(0.0));
        if reads + writes < LEAST_STATEMENTS || tps <= 0.0 {
            return Err(UnknownWorkload::Idle { statements: reads + writes });
        }
        let [updates, inserts, deletes] = writing(seen, writes);
        let rows = written(seen);
        let rows_per_read = rows_per_read(seen, reads, rows, updates + deletes);
        let row_bytes = seen.tables.as_ref().and_then(|tables| tables.rows).map(|rows| rows.row_bytes());
        let page = page_bytes(seen);
        let rows_on_a_page = row_bytes.map_or(ROWS_ON_A_PAGE, |bytes| (page / bytes).max(1.0));
        let each = |rate: Option<f64>| rate.map(|rate| rate / tps);
        Ok(Self {
            tps,
            autocommit,
            reads: reads / tps,
            rows_per_read,
            updates: updates / tps,
            inserts: inserts / tps,
            deletes: deletes / tps,
            clients: seen.clients.or(rates.threads_running).unwrap_or(1.0).max(1.0),
            working_set: working_set(seen, &rates, reads * (1.0 + rows_per_read / rows_on_a_page) + writes)?,
            rows: rows.map(|rows| RowsWritten {
                updated: rows.updated / tps,
                inserted: rows.inserted / tps,
                deleted: rows.deleted / tps,
            }),
            redo_bytes: each(rates.redo_bytes),
            binlog_bytes: each(rates.binlog_bytes),
            row_bytes,
        })
    }
}

impl Shape {
    /// Statements in a transaction that write.
    pub(crate) fn writing(&self) -> f64 {
        self.updates + self.inserts + self.deletes
    }

    /// Rows that the load writes in a transaction, each with a statement of its own. Where statements commit by themselves,
    /// they are as many as the server's statements, so that the load does not commit once for each row of a longer one.
    pub(crate) fn changes(&self) -> RowsWritten {
        let statements = RowsWritten { updated: self.updates, inserted: self.inserts, deleted: self.deletes };
        self.rows.filter(|_| !self.autocommit).unwrap_or(statements)
    }
}

/// The growth a second of those status variables that are known; None where none is.
fn grown(seen: &Observation, names: &[&str]) -> Option<f64> {
    let growth = &seen.status.as_ref()?.growth_per_s;
    let mut known = names.iter().filter_map(|name| growth.get(*name)).peekable();
    known.peek()?;
    Some(known.sum())
}

/// UPDATE, INSERT and DELETE statements a second; all that write are updates where their kinds are not known.
fn writing(seen: &Observation, writes: f64) -> [f64; 3] {
    let updates = grown(seen, &["com_update", "com_update_multi"]);
    let inserts = grown(seen, &["com_insert", "com_insert_select", "com_replace", "com_replace_select"]);
    let deletes = grown(seen, &["com_delete", "com_delete_multi"]);
    match (updates, inserts, deletes) {
        (Some(updates), Some(inserts), Some(deletes)) => [updates, inserts, deletes],
        _ => [writes, 0.0, 0.0],
    }
}

/// Rows a second that InnoDB wrote for statements; where it does not count them (MariaDB from 10.9 on), those that statements
/// had the storage engines write. None where neither is known.
fn written(seen: &Observation) -> Option<RowsWritten> {
    let of = |updated, inserted, deleted| {
        let [updated, inserted, deleted] = [updated, inserted, deleted].map(|name| grown(seen, &[name]));
        Some(RowsWritten { updated: updated?, inserted: inserted?, deleted: deleted? })
    };
    of("innodb_rows_updated", "innodb_rows_inserted", "innodb_rows_deleted")
        .or_else(|| of("handler_update", "handler_write", "handler_delete"))
}

/// Bytes of InnoDB's pages.
pub(crate) fn page_bytes(seen: &Observation) -> f64 {
    let variable = seen.variables.as_ref().and_then(|all| all.get("innodb_page_size"));
    let bytes = variable.and_then(|bytes| bytes.parse().ok());
    bytes.filter(|bytes| (4_096.0..=65_536.0).contains(bytes)).unwrap_or(16_384.0)
}

/// Rows that a SELECT looks at: those that InnoDB read, without what updates and deletions need; where it does not count them,
/// as digests count them; else what the storage engines were asked for, temporary tables included.
fn rows_per_read(seen: &Observation, reads: f64, rows: Option<RowsWritten>, changes: f64) -> f64 {
    let each = |read: f64, changes: f64| (reads > 0.0).then(|| (read - changes) / reads);
    let innodb = || {
        let rows = rows?;
        each(grown(seen, &["innodb_rows_read"])?, rows.updated + rows.deleted)
    };
    let digests = || {
        let select = seen.selects?;
        // Prepared statements have no digests: those that there are may be of others.
        let most = select.count > 0.0 && select.count >= DIGESTED * reads;
        most.then(|| select.rows_examined / select.count)
    };
    let engines = || {
        let names = ["handler_read_key", "handler_read_next", "handler_read_prev", "handler_read_rnd_next"];
        each(grown(seen, &names)?, changes)
    };
    innodb().or_else(digests).or_else(engines).unwrap_or(1.0).max(1.0)
}

/// Bytes in use. With as many of `accesses` a second missing as pages are read, the buffer pool holds the rest of them.
fn working_set(seen: &Observation, rates: &Rates, accesses: f64) -> Result<f64, UnknownWorkload> {
    let variable = |name: &str| seen.variables.as_ref()?.get(name)?.parse::<f64>().ok();
    let pool =
        variable("innodb_buffer_pool_size").filter(|bytes| *bytes > 0.0).ok_or(UnknownWorkload::NoPool)?;
    let data =
        seen.tables.as_ref().filter(|tables| !tables.bounded).map(|tables| tables.innodb_bytes() as f64);
    let misses = (rates.page_reads.unwrap_or(0.0) / accesses.max(1.0)).min(MOST_MISSES);
    let set = if misses > 0.005 {
        pool * ROWS_IN_POOL / (1.0 - misses)
    } else {
        rates.data_pages.map_or(pool, |pages| pages * page_bytes(seen)).min(pool * ALL_IN_POOL)
    };
    Ok(data.map_or(set, |data| set.min(data)).max(LEAST_DATA))
}

#[cfg(test)]
mod tests {
    use ebbtide_observe::{
        Engine, Origin, RowStatistics, SelectRates, Span, StatusVariables, Tables, Variables,
    };

    use super::*;

    const MIB: f64 = (1_u64 << 20) as f64;

    fn seen(rates: Rates, growth: &[(&str, f64)]) -> Observation {
        let growth_per_s = growth.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let variables = [("innodb_buffer_pool_size", "1048576000"), ("innodb_page_size", "16384")];
        Observation {
            span: Some(Span { began_unix_s: None, seconds: 60.0, restarted: false }),
            rates: Some(rates),
            status: Some(StatusVariables { last: Variables::default(), growth_per_s }),
            variables: Some(variables.into_iter().collect()),
            ..Observation::of(Origin::Capture { path: "/c".into() })
        }
    }

    fn rates() -> Rates {
        Rates {
            commits: Some(100.0),
            read_statements: Some(1_400.0),
            write_statements: Some(400.0),
            threads_running: Some(12.0),
            page_reads: Some(0.0),
            data_pages: Some(10_000.0),
            ..Rates::default()
        }
    }

    #[test]
    fn statements_are_counted_by_the_transaction() {
        let growth = [
            ("com_update", 200.0),
            ("com_insert", 90.0),
            ("com_replace", 10.0),
            ("com_delete", 100.0),
            ("handler_read_key", 1_700.0),
            ("handler_read_next", 5_600.0),
        ];
        let shape = Shape::of(&seen(rates(), &growth)).unwrap();
        assert_eq!((shape.tps, shape.autocommit, shape.clients), (100.0, false, 12.0));
        assert_eq!((shape.reads, shape.updates, shape.inserts, shape.deletes), (14.0, 2.0, 1.0, 1.0));
        assert_eq!(shape.rows_per_read, 5.0, "7,300 rows, of which changes took 300, for 1,400 statements");
        assert_eq!(shape.working_set, 10_000.0 * 16_384.0, "what the pool holds");
        assert_eq!(
            (shape.rows, shape.changes()),
            (None, RowsWritten { updated: 2.0, inserted: 1.0, deleted: 1.0 }),
            "one of a statement"
        );
    }

    #[test]
    fn rows_and_bytes_of_logs_are_counted_by_the_transaction() {
        let growth = [
            ("com_update", 200.0),
            ("com_insert", 100.0),
            ("com_delete", 100.0),
            ("handler_update", 1_000.0),
            ("handler_write", 300.0),
            ("handler_delete", 100.0),
        ];
        let logged = Rates { redo_bytes: Some(5e5), binlog_bytes: Some(2e5), ..rates() };
        let mut with = seen(logged, &growth);
        let rows = Some(RowStatistics { rows: 10_000, bytes: 4_000_000 });
        with.tables = Some(Tables { rows, ..Tables::default() });
        let shape = Shape::of(&with).unwrap();
        assert_eq!(shape.rows, Some(RowsWritten { updated: 10.0, inserted: 3.0, deleted: 1.0 }));
        assert_eq!((shape.updates, shape.changes().all()), (2.0, 14.0));
        // Where each statement commits by itself, one of several rows is one commit all the same.
        assert_eq!(Shape { autocommit: true, ..shape.clone() }.changes().all(), shape.writing());
        assert_eq!(
            (shape.redo_bytes, shape.binlog_bytes, shape.row_bytes),
            (Some(5_000.0), Some(2_000.0), Some(400.0))
        );
        // What InnoDB counts has no temporary tables in it.
        let innodb =
            [("innodb_rows_updated", 200.0), ("innodb_rows_inserted", 100.0), ("innodb_rows_deleted", 100.0)];
        let shape = Shape::of(&seen(rates(), &[&growth[..], &innodb].concat())).unwrap();
        assert_eq!(shape.changes().all(), 4.0);
        assert_eq!((shape.redo_bytes, shape.row_bytes), (None, None));
    }

    #[test]
    fn digests_go_before_the_counters_of_the_engines() {
        let mut with = seen(rates(), &[("handler_read_next", 1e6)]);
        let mut of = |count: f64| {
            with.selects = Some(SelectRates { count, rows_examined: 40.0 * count });
            Shape::of(&with).unwrap().rows_per_read
        };
        assert_eq!(of(1_400.0), 40.0);
        assert_eq!(of(700.0), 40.0);
        assert!(of(699.0) > 700.0, "the others are not in the digests: {}", of(699.0));
    }

    #[test]
    fn the_rows_that_innodb_reads_go_before_digests_and_temporary_tables() {
        let growth = [
            ("innodb_rows_read", 14_300.0),
            ("innodb_rows_updated", 200.0),
            ("innodb_rows_inserted", 100.0),
            ("innodb_rows_deleted", 100.0),
            ("handler_read_next", 1e6),
        ];
        let mut with = seen(rates(), &growth);
        with.selects = Some(SelectRates { count: 1_400.0, rows_examined: 1e6 });
        let rows = Shape::of(&with).unwrap().rows_per_read;
        assert_eq!(rows, 10.0, "14,300 rows, of which changes took 300, for 1,400 statements");
    }

    #[test]
    fn statements_without_commit_are_transactions_and_so_are_reads_alone() {
        let of = |commits, write_statements, read_statements| {
            Rates { commits, write_statements, read_statements, ..Rates::default() }.transactions()
        };
        assert_eq!(of(Some(100.0), Some(400.0), Some(9.0)), Some((100.0, false)));
        assert_eq!(of(Some(20.0), Some(400.0), Some(9.0)), Some((400.0, true)));
        assert_eq!(of(None, Some(0.5), Some(1_000.0)), Some((1_000.0, true)));
        assert_eq!(of(None, None, Some(1.0)), None);
    }

    #[test]
    fn the_data_in_use_are_what_makes_the_pool_miss_so_often() {
        let of = |page_reads, data: Option<u64>| {
            let mut seen = seen(Rates { page_reads: Some(page_reads), ..rates() }, &[]);
            seen.tables = data.map(|bytes| Tables {
                engines: vec![Engine { name: "InnoDB".into(), tables: 1, bytes }],
                ..Tables::default()
            });
            Shape::of(&seen).unwrap().working_set
        };
        // 1,400 reads of a row and 400 writes are 1,820 accesses, of which half miss.
        assert_eq!(of(910.0, None), 2.0 * 0.9 * 1_048_576_000.0);
        assert_eq!(of(910.0, Some(500 << 20)), 500.0 * MIB, "there are no more");
        assert!(of(1e9, None) < 20.0 * 1_048_576_000.0, "reading ahead is no working set without bounds");
        assert_eq!(of(0.0, Some(1)), LEAST_DATA);
    }

    #[test]
    fn an_idle_server_and_one_without_rates_have_no_shape() {
        let idle = Rates { read_statements: Some(0.4), write_statements: Some(0.0), ..Rates::default() };
        assert!(Shape::of(&seen(idle, &[])).unwrap_err().to_string().contains("usual load"));
        let nothing = Observation { rates: None, ..seen(rates(), &[]) };
        assert!(Shape::of(&nothing).unwrap_err().to_string().contains("twice"));
        let unknown = Observation { variables: None, ..seen(rates(), &[]) };
        assert!(Shape::of(&unknown).unwrap_err().to_string().contains("buffer pool"));
    }
}
