//! How much of a volume a workload takes, with the doublewrite buffer and without it.

use serde::Serialize;

use super::figures::{Doublewrite, PageWriteSettings, Workload};

/// Bytes and operations a second.
///
/// Operations are counted as the volume would: a page is one, and adjacent pages count by its units.
/// Left out is what no counter has: the binary log's writes but for its bytes, the file system's journal, and
/// adjacent pages that are written together. The first two would lower the ceilings, the last would
/// raise that of the operations: [`Demand::packed`] is how far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Demand {
    /// Bytes.
    pub bytes: f64,
    /// Operations.
    pub ios: f64,
}

impl Demand {
    /// What a workload takes without the doublewrite buffer, at the same pace.
    ///
    /// Reads count where they are known to go past the page cache: what that answers never reaches the volume.
    #[must_use]
    pub fn without(work: &Workload, settings: &PageWriteSettings, unit_bytes: u64) -> Self {
        let reads = if settings.direct == Some(true) { work.page_reads } else { 0.0 };
        let logs = work.redo_bytes + work.binlog_bytes.unwrap_or(0.0);
        let units = |bytes: f64| bytes / unit_bytes as f64;
        let redo = units(work.redo_bytes).max(work.redo_writes.unwrap_or(0.0));
        Self {
            bytes: (reads + work.page_writes) * settings.page_bytes as f64 + logs,
            ios: reads + work.page_writes + redo + units(work.binlog_bytes.unwrap_or(0.0)),
        }
    }

    /// The same with as few operations as pages can be written in: all of them side by side, in full units.
    #[must_use]
    pub fn packed(self, work: &Workload, page_bytes: u64, unit_bytes: u64) -> Self {
        let in_a_unit = (unit_bytes as f64 / page_bytes as f64).max(1.0);
        Self { ios: self.ios - work.page_writes + work.page_writes / in_a_unit, ..self }
    }

    /// What the doublewrite buffer takes, nothing where pages are not written twice: an upper bound of the operations, so
    /// that the ceiling is one.
    ///
    /// Only the number of the batches and of their pages is known. With `k` pages to a unit, a batch of `n` is
    /// `n / k` units rounded up, which is at most `(n + k - 1) / k`; and never more than its pages.
    #[must_use]
    pub fn of_doublewrite(work: &Workload, settings: &PageWriteSettings, unit_bytes: u64) -> Self {
        // With DETECT_ONLY MySQL counts pages in Innodb_dblwr_pages_written of which it writes the numbers alone.
        if settings.doublewrite != Doublewrite::On {
            return Self { bytes: 0.0, ios: 0.0 };
        }
        let page_bytes = settings.page_bytes;
        // A page is written where it belongs too, so that more were only counted earlier.
        let pages = work.doublewrite_pages.min(work.page_writes);
        let in_a_unit = (unit_bytes as f64 / page_bytes as f64).max(1.0);
        let batches = work.doublewrite_batches;
        let ios = pages / in_a_unit + batches * (in_a_unit - 1.0) / in_a_unit;
        Self { bytes: pages * page_bytes as f64, ios: ios.min(pages) }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, ios: self.ios + other.ios }
    }
}
