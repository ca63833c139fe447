//! The statements of the load: whole numbers of each kind that come near to the shape of a workload.

use super::shape::Shape;

/// Statements of each kind that the load repeats. Each that writes changes one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mix {
    pub(crate) points: u32,
    pub(crate) ranges: u32,
    pub(crate) range_rows: u32,
    /// Updates of the indexed column.
    pub(crate) index_updates: u32,
    /// Updates of the column without an index.
    pub(crate) plain_updates: u32,
    /// Pairs of a delete and an insert of one row.
    pub(crate) delete_inserts: u32,
}

/// A SELECT that looks at so many rows or more reads a range.
const RANGE: f64 = 3.0;
/// Statements of a kind in a transaction at most.
const MOST_STATEMENTS: f64 = 1_000.0;
const MOST_ROWS: f64 = 100_000.0;

impl Mix {
    /// Whole numbers of statements. Where statements commit by themselves, what is repeated stands for as many of them as
    /// give whole numbers; a transaction stays one.
    pub(crate) fn of(shape: &Shape) -> Self {
        let most = if shape.autocommit { 10 } else { 1 };
        let rows = shape.changes();
        let apart = |times: &u32| {
            let parts = [shape.reads, rows.updated, rows.inserted, rows.deleted];
            let off = |part: f64| (part * f64::from(*times) - (part * f64::from(*times)).round()).abs();
            parts.into_iter().map(off).sum::<f64>() / f64::from(*times)
        };
        // Of equal ones the shortest.
        let times = (1..=most).min_by(|one, other| apart(one).total_cmp(&apart(other))).unwrap_or(1);
        Self::times(shape, f64::from(times))
    }

    fn times(shape: &Shape, times: f64) -> Self {
        let count = |part: f64| whole((part * times).round().min(MOST_STATEMENTS));
        let changes = shape.changes();
        let (reads, updates) = (count(shape.reads), count(changes.updated));
        let pairs = count((changes.inserted + changes.deleted) / 2.0);
        let is_range = shape.rows_per_read >= RANGE;
        let nothing = reads + updates + pairs == 0;
        // The indexed column changes in half of the updates.
        let index_updates = updates / 2;
        Self {
            points: if is_range { 0 } else { reads.max(u32::from(nothing)) },
            ranges: if is_range { reads.max(u32::from(nothing)) } else { 0 },
            range_rows: whole(shape.rows_per_read.round().clamp(1.0, MOST_ROWS)),
            index_updates,
            plain_updates: updates - index_updates,
            delete_inserts: pairs,
        }
    }

    /// The same without changes of the index: each update changes the column that has none.
    pub(crate) const fn without_index(self) -> Self {
        Self { index_updates: 0, plain_updates: self.index_updates + self.plain_updates, ..self }
    }

    /// Rows that it writes, and statements that do: one each.
    pub(crate) fn written(self) -> f64 {
        f64::from(self.index_updates) + f64::from(self.plain_updates) + 2.0 * f64::from(self.delete_inserts)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, and bounded by the caller"
)]
pub(crate) fn whole(number: f64) -> u32 {
    number as u32
}
