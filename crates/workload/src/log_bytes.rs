//! Bytes that a transaction adds to the redo log and to the binary log.
//!
//! One table for everything that needs them: the twin, and the proofs of the doctor. The figures are `./dev bench log-bytes`'s
//! on MariaDB 10.11.19 and 11.8.9 and on MySQL 8.0.15 and 9.7.4, read at `Innodb_os_log_written` once purge had ended, with 8
//! connections and both logs synced at each commit. The two versions of a maker differ by less than what one figure differs from
//! run to run, so that there is one row for each maker.

use crate::sysbench::RowLengths;

/// Whose server writes the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMaker {
    /// MariaDB.
    MariaDb,
    /// MySQL and Percona Server.
    MySql,
}

/// Changes of rows of sysbench's tables, each by a statement of its own. Fractions are means.
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
    /// Rows of statements that insert many, at the end of a table without an index on k.
    pub bulk_rows: f64,
}

impl Changes {
    /// Whether nothing is changed.
    #[must_use]
    pub fn are_none(self) -> bool {
        let Self { index_updates, plain_updates, pairs, inserts, deletes, bulk_rows } = self;
        index_updates + plain_updates + pairs + inserts + deletes + bulk_rows <= 0.0
    }
}

/// What changes add to the redo log, bytes: with undo records, indexes, and what purge does.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RedoCosts {
    /// The beginning and the end of a transaction.
    transaction: f64,
    /// An update of the column with an index.
    index_update: f64,
    /// An update of the column without one, besides its text.
    plain_update: f64,
    /// A delete and an insert of one row, besides its texts.
    pair: f64,
    /// An insert at the end of a table, besides its texts.
    insert: f64,
    /// A delete alone, besides its texts: as that of a pair, and purge removes the row.
    delete: f64,
    /// A row among many of one statement, besides its texts.
    bulk_row: f64,
    /// A byte of a text that changes: its new value is in the page's records, and its old one in the undo record
    /// (`trx0rec.cc`). An insert over a row that is marked as deleted is such a change
    /// (`row_ins_clust_index_entry_by_modify`).
    text: f64,
}

const MARIADB_REDO: RedoCosts = RedoCosts {
    transaction: 236.0,
    index_update: 410.0,
    plain_update: 60.0,
    pair: 500.0,
    insert: 80.0,
    delete: 130.0,
    bulk_row: 0.0, // not measured yet
    text: 2.02,
};
/// A transaction has a share of the blocks of 512 bytes that are not full when they are written.
const MYSQL_REDO: RedoCosts = RedoCosts {
    transaction: 700.0,
    index_update: 490.0,
    plain_update: 80.0,
    pair: 460.0,
    insert: 160.0,
    delete: 170.0,
    bulk_row: 0.0, // not measured yet
    text: 2.1,
};

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

/// Bytes of redo that `commits` transactions with these changes in all write: 0 where nothing is changed. Within a tenth of what
/// was measured for texts of 30 to 1,500 characters.
#[must_use]
pub fn redo(maker: LogMaker, changes: Changes, commits: f64, lengths: RowLengths) -> f64 {
    if changes.are_none() {
        return 0.0;
    }
    let costs = match maker {
        LogMaker::MariaDb => MARIADB_REDO,
        LogMaker::MySql => MYSQL_REDO,
    };
    let c = costs.text * f64::from(lengths.c);
    let texts = costs.text * f64::from(lengths.c + lengths.pad);
    commits * costs.transaction
        + changes.index_updates * costs.index_update
        + changes.plain_updates * (costs.plain_update + c)
        + changes.pairs * (costs.pair + texts)
        // The text of a new row is in its page alone, and a row that is removed is only marked.
        + changes.inserts * (costs.insert + texts / 2.0)
        + changes.deletes * costs.delete
        + changes.bulk_rows * (costs.bulk_row + texts / 2.0)
}

/// Bytes of binary log of the same.
#[must_use]
pub fn binlog(maker: LogMaker, image: BinlogImage, changes: Changes, commits: f64, lengths: RowLengths) -> f64 {
    if changes.are_none() {
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
    let each = |at: usize| images[at] + events[at];
    // Rows of a statement with many share its events; its text has the values of all.
    let bulk_row = images[3] + if costs.annotated && image != BinlogImage::Statement { texts } else { 0.0 };
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

/// Those of New-Order, Payment, Order-Status, Delivery and Stock-Level, as `./dev bench log-bytes` measured them with one
/// warehouse. Order-Status and Stock-Level change nothing.
#[must_use]
pub const fn tpcc(maker: LogMaker) -> [TpccLogs; 5] {
    const NOTHING: TpccLogs = TpccLogs { redo: 0.0, binlog: 0.0 };
    match maker {
        LogMaker::MariaDb => [
            TpccLogs { redo: 3_044.0, binlog: 13_635.0 },
            TpccLogs { redo: 737.0, binlog: 2_605.0 },
            NOTHING,
            TpccLogs { redo: 123_279.0, binlog: 30_212.0 },
            NOTHING,
        ],
        LogMaker::MySql => [
            TpccLogs { redo: 4_904.0, binlog: 9_762.0 },
            TpccLogs { redo: 1_852.0, binlog: 2_199.0 },
            NOTHING,
            TpccLogs { redo: 26_305.0, binlog: 25_814.0 },
            NOTHING,
        ],
    }
}
