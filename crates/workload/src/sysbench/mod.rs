//! sysbench's OLTP family, and a key-value workload on its tables, as the command line and experiment files name them:
//! which workload, on which tables, with how many statements. [`Sysbench`] makes a [`crate::Description`] of it.

mod describe;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::error::{OptionError, in_range};

pub use describe::BULK_BYTES;

/// What the names of the tables begin with; their numbers follow, from 1.
pub const TABLES: &str = "sbtest";

/// What a transaction without a statement is refused with.
const NOTHING_TO_SEND: &str = "--skip-trx=on and no statement leave a transaction nothing to send: set --skip-trx=off, \
                               or one of --point-selects, --simple-ranges, --sum-ranges, --order-ranges, \
                               --distinct-ranges (with --range-selects=on), --index-updates, --non-index-updates and \
                               --delete-inserts that the workload has to 1 or more";

/// One of sysbench's workloads with everything that decides what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Sysbench {
    /// What each transaction does.
    pub workload: Workload,
    /// The tables.
    pub schema: Schema,
    /// How many statements of each kind.
    pub mix: Mix,
    /// How ids are drawn; for the rows, how the values of k are.
    pub distribution: Distribution,
    /// Clients: `bulk_insert` has a table for each.
    pub clients: u32,
    /// Each transaction also writes its client and number into [`crate::LEDGER_TABLE`].
    pub marks: bool,
}

/// The workloads: sysbench's OLTP scripts, and one that uses a table as a key-value store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// One primary-key read.
    PointSelect,
    /// Ten primary-key reads and four range reads in a transaction.
    ReadOnly,
    /// The reads of `ReadOnly` and the writes of `WriteOnly` in a transaction.
    ReadWrite,
    /// Two updates, a delete and an insert in a transaction.
    WriteOnly,
    /// One insert.
    Insert,
    /// One delete by primary key.
    Delete,
    /// One update of the indexed column.
    UpdateIndex,
    /// One update of a column without an index.
    UpdateNonIndex,
    /// Rows appended in statements of half a mebibyte.
    BulkInsert,
    /// A get or a put: one primary-key read, or one update of a column without an index ([`Mix::gets_pct`]). sysbench has
    /// no such script.
    KeyValue,
}

impl Workload {
    /// Whether it changes data.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::PointSelect | Self::ReadOnly)
    }

    /// Whether sysbench wraps its statements in BEGIN and COMMIT.
    #[must_use]
    pub fn is_transaction(self) -> bool {
        matches!(self, Self::ReadOnly | Self::ReadWrite | Self::WriteOnly)
    }

    /// Whether a mark can be added to its transactions ([`Sysbench::marks`]), which shows that they are there.
    #[must_use]
    pub fn leaves_marks(self, mix: &Mix) -> bool {
        self.writes() && self != Self::BulkInsert && !mix.skip_trx
    }

    /// Whether each transaction leaves the number of rows as it was, so that any moment between transactions shows it.
    #[must_use]
    pub const fn keeps_rows(self, mix: &Mix) -> bool {
        match self {
            Self::PointSelect
            | Self::ReadOnly
            | Self::UpdateIndex
            | Self::UpdateNonIndex
            | Self::KeyValue => true,
            Self::ReadWrite | Self::WriteOnly => !mix.skip_trx,
            Self::Insert | Self::Delete | Self::BulkInsert => false,
        }
    }
}

/// The tables, as sysbench's `oltp_common.lua` defines them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Number of tables, `sbtest1` and up.
    pub tables: u32,
    /// Rows per table.
    pub table_size: u32,
    /// The id column is AUTO_INCREMENT.
    pub auto_inc: bool,
    /// The id has a secondary index in place of the primary key.
    pub secondary: bool,
    /// Column k has an index.
    pub create_secondary: bool,
    /// The storage engine.
    pub engine: String,
    /// Text appended to CREATE TABLE.
    pub create_table_options: String,
    /// Lengths of the text columns; None: sysbench's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengths: Option<RowLengths>,
}

/// Lengths of a row's text columns, which sysbench has fixed. They decide what a change adds to the redo log and the binary
/// log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowLengths {
    /// Characters of column c, which updates without an index change; 1 to 7000.
    pub c: u32,
    /// Characters of column pad, which only inserts write; 1 to 7000.
    pub pad: u32,
}

impl RowLengths {
    /// sysbench's.
    pub const SYSBENCH: Self = Self { c: 120, pad: 60 };
    /// Characters of a column, at most. A row of less than half a page stays on its page.
    pub const MOST: u32 = 7_000;

    /// Bytes of a row in its page, without free space: the record with its header and system columns (`rem0rec.cc`: 5 bytes
    /// before it, and 2 for the lengths of both texts; 6 of the transaction and 7 of the rollback pointer), id and k.
    #[must_use]
    pub fn record_bytes(self) -> u32 {
        self.c + self.pad + 28
    }

    /// Bytes of the table's own pages for a row: pages of `page` bytes are filled to 15/16, with whole rows.
    #[must_use]
    pub fn page_bytes(self, page: u32) -> f64 {
        f64::from(page) / f64::from((page / 16 * 15 / self.record_bytes()).max(1))
    }

    /// The same with the row's entry in the index on k.
    #[must_use]
    pub fn disk_bytes(self, page: u32) -> f64 {
        self.page_bytes(page) + ENTRY_BYTES
    }
}

/// What an entry of the index on k takes in its pages, bytes.
const ENTRY_BYTES: f64 = 14.0;
/// The default of `innodb_page_size`, bytes.
pub const PAGE_BYTES: u32 = 16_384;

impl Default for Schema {
    fn default() -> Self {
        Self {
            tables: 1,
            table_size: 10_000,
            auto_inc: true,
            secondary: false,
            create_secondary: true,
            engine: "innodb".into(),
            create_table_options: String::new(),
            lengths: None,
        }
    }
}

impl Schema {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        in_range("tables", self.tables, 1, 100_000, "1 to 100000 tables")?;
        if let Some(RowLengths { c, pad }) = self.lengths {
            in_range("c-length", c, 1, RowLengths::MOST, "1 to 7000 characters")?;
            in_range("pad-length", pad, 1, RowLengths::MOST, "1 to 7000 characters")?;
        }
        in_range(
            "table-size",
            self.table_size,
            0,
            MAX_TABLE_SIZE,
            "0 to 2147483647 rows, the range of INTEGER",
        )
    }
}

/// Rows of a table, at most: ids are MySQL INTEGER.
pub const MAX_TABLE_SIZE: u32 = 2_147_483_647;

/// How many statements of each kind a transaction has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// Primary-key reads (`point_select` always has one).
    pub point_selects: u32,
    /// Range reads of column c.
    pub simple_ranges: u32,
    /// Range sums of column k.
    pub sum_ranges: u32,
    /// Range reads with ORDER BY.
    pub order_ranges: u32,
    /// Range reads with DISTINCT.
    pub distinct_ranges: u32,
    /// Rows per range.
    pub range_size: u32,
    /// Whether there are range reads at all.
    pub range_selects: bool,
    /// Updates of the indexed column.
    pub index_updates: u32,
    /// Updates of the column without an index.
    pub non_index_updates: u32,
    /// Pairs of a delete and an insert of the same id.
    pub delete_inserts: u32,
    /// No BEGIN and COMMIT: every statement commits by itself.
    pub skip_trx: bool,
    /// Share of gets in `key_value`, 0 to 100 percent; the others are puts. Other workloads do not look at it.
    #[serde(default = "usual_gets")]
    pub gets_pct: u32,
}

/// 95%, as in the mostly reading workload of YCSB (workload B).
const fn usual_gets() -> u32 {
    95
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_size: 100,
            range_selects: true,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            skip_trx: false,
            gets_pct: usual_gets(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_need_a_transaction_and_rows_stay_where_nothing_is_only_inserted_or_deleted() {
        let (whole, torn) = (Mix::default(), Mix { skip_trx: true, ..Mix::default() });
        for (workload, marks, keeps) in [
            (Workload::ReadOnly, false, true),
            (Workload::ReadWrite, true, true),
            (Workload::Insert, true, false),
            (Workload::BulkInsert, false, false),
            (Workload::KeyValue, true, true),
        ] {
            assert_eq!(
                (workload.leaves_marks(&whole), workload.keeps_rows(&whole)),
                (marks, keeps),
                "{workload}"
            );
            assert!(!workload.leaves_marks(&torn), "{workload}");
        }
        // A delete and its insert are two transactions then.
        assert!(!Workload::WriteOnly.keeps_rows(&torn) && Workload::UpdateIndex.keeps_rows(&torn));
    }
}
