//! The statements, word for word sysbench's, so that a server cannot tell the two tools apart.

use crate::options::Schema;

/// The kinds of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stmt {
    Begin,
    Commit,
    PointSelects,
    SimpleRanges,
    SumRanges,
    OrderRanges,
    DistinctRanges,
    IndexUpdates,
    NonIndexUpdates,
    Deletes,
    Inserts,
    Mark,
    BulkInsert,
}

impl Stmt {
    /// All kinds, in the order of their declaration.
    pub(crate) const ALL: [Self; 13] = [
        Self::Begin,
        Self::Commit,
        Self::PointSelects,
        Self::SimpleRanges,
        Self::SumRanges,
        Self::OrderRanges,
        Self::DistinctRanges,
        Self::IndexUpdates,
        Self::NonIndexUpdates,
        Self::Deletes,
        Self::Inserts,
        Self::Mark,
        Self::BulkInsert,
    ];

    /// Place in [`Self::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// sysbench's word for it, where it has one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Commit => "commit",
            Self::PointSelects => "point_selects",
            Self::SimpleRanges => "simple_ranges",
            Self::SumRanges => "sum_ranges",
            Self::OrderRanges => "order_ranges",
            Self::DistinctRanges => "distinct_ranges",
            Self::IndexUpdates => "index_updates",
            Self::NonIndexUpdates => "non_index_updates",
            Self::Deletes => "deletes",
            Self::Inserts => "inserts",
            Self::Mark => "ledger_marks",
            Self::BulkInsert => "bulk_inserts",
        }
    }

    /// Whether there is one of it for each table.
    pub(crate) fn is_per_table(self) -> bool {
        !matches!(self, Self::Begin | Self::Commit | Self::Mark)
    }

    /// The text, with a question mark for each parameter.
    pub(crate) fn text(self, table: u32) -> String {
        match self {
            Self::Begin => "BEGIN".into(),
            Self::Commit => "COMMIT".into(),
            Self::PointSelects => format!("SELECT c FROM sbtest{table} WHERE id=?"),
            Self::SimpleRanges => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            Self::SumRanges => format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            Self::OrderRanges => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c"),
            Self::DistinctRanges => {
                format!("SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Self::IndexUpdates => format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"),
            Self::NonIndexUpdates => format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            Self::Deletes => format!("DELETE FROM sbtest{table} WHERE id=?"),
            Self::Inserts => format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            Self::Mark => format!("UPDATE {LEDGER_TABLE} SET seq=? WHERE client=?"),
            Self::BulkInsert => format!("INSERT INTO sbtest{table} VALUES"),
        }
    }
}

/// The table that holds each client's last sequence number.
pub(crate) const LEDGER_TABLE: &str = "ebbtide_ledger";

/// Groups of digits in column c.
pub(crate) const C_GROUPS: usize = 10;
/// Groups of digits in column pad.
pub(crate) const PAD_GROUPS: usize = 5;
/// sysbench's size of a multi-row insert.
pub(crate) const BULK_BYTES: usize = 512 * 1024;

/// CREATE TABLE as `oltp_common.lua` writes it.
pub(crate) fn create_table(schema: &Schema, table: u32) -> String {
    let id = if schema.auto_inc { "INTEGER NOT NULL AUTO_INCREMENT" } else { "INTEGER NOT NULL" };
    let key = if schema.secondary { "KEY xid" } else { "PRIMARY KEY" };
    format!(
        "CREATE TABLE sbtest{table}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
         c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) \
         /*! ENGINE = {} */ {}",
        schema.engine, schema.create_table_options
    )
}

/// The index on k, which is created after the rows are in.
pub(crate) fn create_index(table: u32) -> String {
    format!("CREATE INDEX k_{table} ON sbtest{table}(k)")
}

/// The two-column table of `bulk_insert.lua`.
pub(crate) fn create_bulk_table(table: u32) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS sbtest{table} (\n          id INTEGER NOT NULL,\n          \
         k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_listed_in_their_order() {
        for (at, kind) in Stmt::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), at);
        }
    }
}
