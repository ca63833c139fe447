//! Bytes that a transaction adds to the redo log and to the binary log.
//!
//! One table for all who need them: the twin, and the proofs of the doctor. Its figures explain what `./dev bench log-bytes` measured
//! on MariaDB 10.11 and 11.8 and on MySQL 8.0 and 9.7, which is in docs/decisions/log-bytes.md. Versions of a maker differ by
//! less than one version from run to run, so that there is one row for each maker.

use crate::sysbench::RowLengths;

/// Whose server writes the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMaker {
    /// MariaDB.
    MariaDb,
    /// MySQL and Percona Server.
    MySql,
}

/// Changes of rows of sysbench's tables, which have an index on k. Each is a statement of its own, but for bulk rows. Fractions
/// are means.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Changes {
    /// Updates of k, the column with an index.
    pub index_updates: f64,
    /// Updates of c, the column without one.
    pub plain_updates: f64,
    /// Pairs of a delete and an insert of the same id.
    pub pairs: f64,
    /// Inserts at the end of a table.
    pub inserts: f64,
    /// Deletes whose row does not come back.
    pub deletes: f64,
    /// Rows of statements that insert many, into the tables of `bulk_insert`, which have two numbers, no text and no index on k.
    pub bulk_rows: f64,
}

impl Changes {
    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(self) -> bool {
        let Self { index_updates, plain_updates, pairs, inserts, deletes, bulk_rows } = self;
        index_updates + plain_updates + pairs + inserts + deletes + bulk_rows <= 0.0
    }
}

/// What changes add to the redo log, bytes: with undo records, indexes, and what purge does.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RedoCosts {
    /// The records of a transaction besides its changes: its undo log, its commit.
    transaction: f64,
    /// A transaction's share of blocks of 512 bytes that are not full when they are written; commits that are written together share
    /// them.
    partial_blocks: f64,
    /// An update of the column with an index.
    index_update: f64,
    /// An update of the column without one, besides its text.
    plain_update: f64,
    /// A delete and an insert of one row, besides its texts.
    pair: f64,
    /// An insert at the end of a table, besides its texts.
    insert: f64,
    /// A delete alone. Its texts are in no record: the row is marked, and purge removes it.
    delete: f64,
    /// A row among many of one statement, without a text.
    bulk_row: f64,
    /// A byte of a text that changes: its new value is in the page's records, and its old one in the undo record
    /// (`trx0rec.cc`). An insert over a row that is marked as deleted is such a change
    /// (`row_ins_clust_index_entry_by_modify`).
    text: f64,
}

/// Since 10.8 the log has no blocks (MDEV-14425).
const MARIADB_REDO: RedoCosts = RedoCosts {
    transaction: 200.0,
    partial_blocks: 0.0,
    index_update: 400.0,
    plain_update: 60.0,
    pair: 510.0,
    insert: 115.0,
    delete: 145.0,
    bulk_row: 53.0,
    text: 2.02,
};
const MYSQL_REDO: RedoCosts = RedoCosts {
    transaction: 490.0,
    partial_blocks: 210.0,
    index_update: 487.0,
    plain_update: 82.0,
    pair: 460.0,
    insert: 80.0,
    delete: 170.0,
    bulk_row: 58.0,
    text: 2.1,
};

impl RedoCosts {
    const fn of(maker: LogMaker) -> Self {
        match maker {
            LogMaker::MariaDb => MARIADB_REDO,
            LogMaker::MySql => MYSQL_REDO,
        }
    }
}

/// What events add to the binary log, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct BinlogCosts {
    /// The events around those of a transaction: its GTID, its beginning and its end.
    transaction: f64,
    /// The events of a statement besides the images of its rows.
    statement: f64,
    /// What those of an INSERT have more: its text is longer.
    insert: f64,
    /// Whether the text of a statement, with its values, stands before the images of its rows
    /// (`binlog_annotate_row_events`, on by default).
    annotated: bool,
}

const MARIADB_BINLOG: BinlogCosts =
    BinlogCosts { transaction: 83.0, statement: 141.0, insert: 32.0, annotated: true };
const MYSQL_BINLOG: BinlogCosts =
    BinlogCosts { transaction: 205.0, statement: 91.0, insert: 0.0, annotated: false };
/// Id, k, the lengths of both texts and the null bits in a row image, bytes.
const BINLOG_ROW: f64 = 13.0;
/// A statement's event with its text but for the values of c and pad, bytes: counted from the format of `Query_log_event`, not
/// measured. An INSERT has 30 more.
const BINLOG_QUERY: f64 = 125.0;
const BINLOG_QUERY_INSERT: f64 = 30.0;
/// A row of two numbers among many of one statement, bytes: its image, and its values in the text of the statement, of four to
/// six digits each.
const BULK_IMAGE: f64 = 9.0;
const BULK_TEXT: f64 = 13.0;

/// What a binary log holds of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinlogImage {
    /// The statement with its values.
    Statement,
    /// Whole rows before and after.
    Full,
    /// The whole row before, and changed columns after.
    FullOnce,
    /// The key, and changed columns after.
    Minimal,
}

impl BinlogImage {
    /// By the values of `binlog_format` and `binlog_row_image`. `MIXED` has rows where a statement is not safe, and those of
    /// sysbench are.
    #[must_use]
    pub fn of(format: &str, image: &str) -> Self {
        let is = |text: &str, word: &str| text.eq_ignore_ascii_case(word);
        if !is(format, "ROW") {
            Self::Statement
        } else if is(image, "MINIMAL") {
            Self::Minimal
        } else if is(image, "FULL_NODUP") {
            Self::FullOnce
        } else {
            Self::Full
        }
    }
}

/// Bytes of redo that `commits` transactions with these changes in all write: 0 where nothing is changed.
#[must_use]
pub fn redo(maker: LogMaker, changes: Changes, commits: f64, lengths: RowLengths) -> f64 {
    if changes.is_empty() {
        return 0.0;
    }
    let costs = RedoCosts::of(maker);
    let c = costs.text * f64::from(lengths.c);
    let texts = costs.text * f64::from(lengths.c + lengths.pad);
    commits * (costs.transaction + costs.partial_blocks)
        + changes.index_updates * costs.index_update
        + changes.plain_updates * (costs.plain_update + c)
        + changes.pairs * (costs.pair + texts)
        // The text of a new row is in its page alone, and a row that is removed is only marked.
        + changes.inserts * (costs.insert + texts / 2.0)
        + changes.deletes * costs.delete
        + changes.bulk_rows * costs.bulk_row
}

/// Bytes of binary log of the same.
#[must_use]
pub fn binlog(
    maker: LogMaker,
    image: BinlogImage,
    changes: Changes,
    commits: f64,
    lengths: RowLengths,
) -> f64 {
    if changes.is_empty() {
        return 0.0;
    }
    let costs = match maker {
        LogMaker::MariaDb => MARIADB_BINLOG,
        LogMaker::MySql => MYSQL_BINLOG,
    };
    let (c, texts) = (f64::from(lengths.c), f64::from(lengths.c + lengths.pad));
    let row = BINLOG_ROW + texts;
    // An update of k, an update of c, a delete, an insert.
    let images = match image {
        BinlogImage::Statement => [0.0, c, 0.0, texts],
        BinlogImage::Full => [2.0 * row, 2.0 * row, row, row],
        BinlogImage::FullOnce => [row + BINLOG_ROW, row + BINLOG_ROW + c, row, row],
        BinlogImage::Minimal => [BINLOG_ROW, BINLOG_ROW + c, BINLOG_ROW, row],
    };
    let events = match image {
        BinlogImage::Statement => {
            [BINLOG_QUERY, BINLOG_QUERY, BINLOG_QUERY, BINLOG_QUERY + BINLOG_QUERY_INSERT]
        }
        _ if costs.annotated => {
            let statement = costs.statement;
            [statement, statement + c, statement, statement + costs.insert + texts]
        }
        _ => [costs.statement; 4],
    };
    let each = |change: usize| images[change] + events[change];
    let bulk_row = match image {
        BinlogImage::Statement => BULK_TEXT,
        _ if costs.annotated => BULK_IMAGE + BULK_TEXT,
        _ => BULK_IMAGE,
    };
    commits * costs.transaction
        + changes.index_updates * each(0)
        + changes.plain_updates * each(1)
        + changes.pairs * (each(2) + each(3))
        + changes.inserts * each(3)
        + changes.deletes * each(2)
        + changes.bulk_rows * bulk_row
}

/// Bytes that a transaction of TPC-C adds to the logs on average, with whole row images in the binary log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TpccLogs {
    /// To the redo log.
    pub redo: f64,
    /// To the binary log.
    pub binlog: f64,
}

/// Those of New-Order, Payment, Order-Status, Delivery and Stock-Level, with one warehouse. Order-Status and Stock-Level change
/// nothing. MariaDB's redo of Delivery is mostly pages that are reorganized (findings/mariadb-reorganized-page-in-redo.sh).
#[must_use]
pub fn tpcc(maker: LogMaker) -> [TpccLogs; 5] {
    let records: [(f64, f64); 5] = match maker {
        LogMaker::MariaDb => {
            [(3_028.0, 13_638.0), (860.0, 2_605.0), (0.0, 0.0), (123_296.0, 30_212.0), (0.0, 0.0)]
        }
        LogMaker::MySql => {
            [(4_305.0, 9_760.0), (1_468.0, 2_201.0), (0.0, 0.0), (25_876.0, 25_814.0), (0.0, 0.0)]
        }
    };
    let blocks = RedoCosts::of(maker).partial_blocks;
    records.map(|(redo, binlog)| TpccLogs { redo: if redo > 0.0 { redo + blocks } else { 0.0 }, binlog })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page with what was measured.
    const MEASURED: &str = include_str!("../../../docs/decisions/log-bytes.md");
    /// The servers of its columns, two for each: records of redo, and the binary log.
    const SERVERS: [LogMaker; 4] = [LogMaker::MariaDb, LogMaker::MariaDb, LogMaker::MySql, LogMaker::MySql];

    /// A server, and bytes of a transaction in its redo and its binary log. None: not measured.
    type MeasuredLogs = (LogMaker, [Option<f64>; 2]);

    /// The rows of its table: what was executed, and for each server bytes of a transaction in both logs. None: not measured.
    fn measured() -> impl Iterator<Item = (&'static str, Vec<MeasuredLogs>)> {
        MEASURED.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.trim_end_matches('|').split('|').map(str::trim);
            let what = cells.next()?;
            let bytes = |cell: &str| (cell != "-").then(|| cell.replace(',', "").parse().ok());
            let bytes: Vec<Option<Option<f64>>> = cells.map(bytes).collect();
            // Headings have cells that are no numbers.
            if bytes.len() != 2 * SERVERS.len() || bytes.contains(&Some(None)) {
                return None;
            }
            let pairs = bytes.chunks(2).map(|pair| [pair[0].flatten(), pair[1].flatten()]);
            Some((what, SERVERS.into_iter().zip(pairs).collect()))
        })
    }

    /// The changes of a transaction, and the lengths of its texts, by its name in the table. None for a name of TPC-C.
    fn changes(what: &str) -> Option<(Changes, RowLengths)> {
        let of = |name: &str, times: f64| match name {
            "UPDATE of k" => Changes { index_updates: times, ..Changes::default() },
            "UPDATE of c" => Changes { plain_updates: times, ..Changes::default() },
            "DELETE and INSERT" => Changes { pairs: times, ..Changes::default() },
            other => panic!("'{other}' is no statement"),
        };
        let none = Changes::default();
        Some(match what {
            "oltp_update_index" => (of("UPDATE of k", 1.0), RowLengths::SYSBENCH),
            "oltp_update_non_index" => (of("UPDATE of c", 1.0), RowLengths::SYSBENCH),
            "oltp_delete" => (Changes { deletes: 1.0, ..none }, RowLengths::SYSBENCH),
            "oltp_insert" => (Changes { inserts: 1.0, ..none }, RowLengths::SYSBENCH),
            "oltp_write_only" => {
                (Changes { index_updates: 1.0, plain_updates: 1.0, pairs: 1.0, ..none }, RowLengths::SYSBENCH)
            }
            "bulk_insert, a row" => (Changes { bulk_rows: 1.0, ..none }, RowLengths::SYSBENCH),
            _ if what.starts_with("TPC-C") => return None,
            _ => {
                let (name, lengths) = what.split_once(", c ").unwrap();
                let (c, pad) = lengths.split_once(", pad ").unwrap();
                let lengths = RowLengths { c: c.parse().unwrap(), pad: pad.parse().unwrap() };
                let ten = name.strip_prefix("10 times ");
                (of(ten.unwrap_or(name), ten.map_or(1.0, |_| 10.0)), lengths)
            }
        })
    }

    #[test]
    fn each_transaction_of_sysbench_writes_what_servers_were_measured_to_write() {
        let mut compared = 0;
        for (what, bytes) in measured() {
            let Some((changes, lengths)) = changes(what) else { continue };
            // Of the rows of a long statement its transaction is a small part.
            let commits = if changes.bulk_rows > 0.0 { 0.0 } else { 1.0 };
            for (maker, bytes) in bytes {
                let records =
                    redo(maker, changes, commits, lengths) - commits * RedoCosts::of(maker).partial_blocks;
                let of_binlog = binlog(maker, BinlogImage::Full, changes, commits, lengths);
                // What an index adds depends on how full its pages are and how far purge is behind.
                let Changes { index_updates, pairs, inserts, deletes, .. } = changes;
                let indexed = index_updates + pairs + inserts + deletes > 0.0;
                let most = if indexed { 1.35 } else { 1.1 };
                // Some ids of oltp_delete were deleted before.
                let of_events = if changes.deletes > 0.0 { 1.08 } else { 1.06 };
                for (is, wanted, most) in [(records, bytes[0], most), (of_binlog, bytes[1], of_events)] {
                    let Some(wanted) = wanted else { continue };
                    let off = (is / wanted).max(wanted / is);
                    assert!(off < most, "{what}, {maker:?}: {is} is not within {most} of {wanted}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 24 * 6, "{compared} figures of 24 rows were compared");
    }

    #[test]
    fn the_figures_of_tpc_c_are_those_that_were_measured() {
        for (place, name) in
            ["new_order", "payment", "order_status", "delivery", "stock_level"].into_iter().enumerate()
        {
            let (_, bytes) = measured().find(|(what, _)| *what == format!("TPC-C {name}")).unwrap();
            for (maker, bytes) in bytes {
                let logs = tpcc(maker)[place];
                let records = (logs.redo - RedoCosts::of(maker).partial_blocks).max(0.0);
                for (is, wanted, most) in [(records, bytes[0], 1.2), (logs.binlog, bytes[1], 1.02)] {
                    let Some(wanted) = wanted else { continue };
                    // A transaction that only reads has a few bytes of what the server does meanwhile.
                    let near = if is > 0.0 { (is / wanted).max(wanted / is) < most } else { wanted < 10.0 };
                    assert!(near, "{name}, {maker:?}: {is} is not within {most} of {wanted}");
                }
            }
        }
    }

    /// Index updates, other updates and pairs of a transaction, the lengths of c and pad, and bytes of both logs: measured in November
    /// 2026 with the log on a disk, on 2 tables of 10,000 or 40,000 rows. Redo is `Innodb_os_log_written`, with blocks.
    #[test]
    fn a_transaction_on_a_disk_writes_what_servers_were_measured_to_write() {
        use LogMaker::{MariaDb, MySql};
        let measured = [
            (MariaDb, [0.0, 1.0, 0.0], 30, 30, [348.0, 399.0]),
            (MariaDb, [1.0, 0.0, 0.0], 120, 60, [477.0, 610.0]),
            (MariaDb, [0.0, 0.0, 1.0], 600, 300, [2_289.0, 3_125.0]),
            (MariaDb, [1.0, 1.0, 1.0], 120, 60, [1_499.0, 2_139.0]),
            (MariaDb, [1.0, 1.0, 1.0], 60, 1_500, [3_913.0, 11_744.0]),
            (MariaDb, [0.0, 10.0, 0.0], 600, 300, [12_886.0, 25_849.0]),
            (MySql, [0.0, 1.0, 0.0], 600, 300, [2_015.0, 2_125.0]),
            (MySql, [1.0, 1.0, 1.0], 120, 60, [2_452.0, 1_742.0]),
            (MySql, [1.0, 1.0, 1.0], 600, 300, [4_686.0, 6_073.0]),
            (MySql, [0.0, 10.0, 0.0], 120, 60, [3_945.0, 5_010.0]),
        ];
        for (maker, [index_updates, plain_updates, pairs], c, pad, [wanted_redo, wanted_binlog]) in measured {
            let changes = Changes { index_updates, plain_updates, pairs, ..Changes::default() };
            let lengths = RowLengths { c, pad };
            // MariaDB's indexes had fewer pages to split than those of the larger tables.
            let most = if index_updates > 0.0 && maker == MariaDb { 1.3 } else { 1.12 };
            let redo = redo(maker, changes, 1.0, lengths);
            let binlog = binlog(maker, BinlogImage::Full, changes, 1.0, lengths);
            for (is, wanted, most) in [(redo, wanted_redo, most), (binlog, wanted_binlog, 1.05)] {
                let off = (is / wanted).max(wanted / is);
                assert!(
                    off < most,
                    "{maker:?}, {changes:?}, {lengths:?}: {is} is not within {most} of {wanted}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_written_where_nothing_is_changed() {
        let lengths = RowLengths::SYSBENCH;
        for maker in [LogMaker::MariaDb, LogMaker::MySql] {
            assert_eq!(redo(maker, Changes::default(), 1.0, lengths), 0.0);
            assert_eq!(binlog(maker, BinlogImage::Full, Changes::default(), 1.0, lengths), 0.0);
        }
    }
}
