//! Counters and gauges of one moment, and the rates between two.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ebbtide_observe::Rates;

use super::sources::Figure as F;

const PICOSECONDS: f64 = 1e12;

/// A server's status at one moment.
#[derive(Debug, Clone)]
pub struct Counters {
    /// When it was read.
    pub at: Instant,
    pub(super) figures: BTreeMap<F, u64>,
}

impl Counters {
    /// What happened between two moments, per second; gauges as they are `after`. A counter that went
    /// back, because the server was started again or its status flushed, is none for once.
    #[must_use]
    pub fn between(before: &Self, after: &Self) -> Rates {
        let span = Span { before, after, seconds: after.at.duration_since(before.at).as_secs_f64() };
        let redo_syncs = span.rate(F::RedoSyncs);
        Rates {
            checkpoint_age: span.gauge(F::CheckpointAge),
            checkpoint_age_max: span.gauge(F::CheckpointAgeMax),
            dirty_pages: span.gauge(F::DirtyPages),
            data_pages: span.gauge(F::DataPages),
            page_reads: span.rate(F::PageReads),
            page_requests: span.rate(F::PageRequests),
            page_writes: span.rate(F::PageWrites),
            lru_flushed: span.rate(F::LruFlushed),
            list_flushed: span.list_flushed(),
            adaptive_flushed: span.rate(F::AdaptiveFlushed),
            sync_flushed: span.rate(F::SyncFlushed),
            neighbour_flushed: span.rate(F::NeighbourFlushed),
            wait_free: span.rate(F::WaitFree),
            redo_bytes: span.rate(F::RedoBytes),
            redo_writes: span.rate(F::RedoWrites),
            redo_syncs,
            redo_sync_us: span.mean(F::RedoSyncTime, F::RedoSyncCount).map(|ps| ps / 1e6),
            data_syncs: less(span.rate(F::Syncs), redo_syncs),
            syncs: span.rate(F::Syncs),
            log_waits: span.rate(F::LogWaits),
            doublewrite_pages: span.rate(F::DoublewritePages),
            doublewrite_batches: span.rate(F::DoublewriteBatches),
            doublewrite_wait: span.rate(F::DoublewriteWait).map(|ps| ps / PICOSECONDS),
            doublewrite_mutex_wait: span.rate(F::DoublewriteMutexWait).map(|ps| ps / PICOSECONDS),
            data_bytes: span.rate(F::DataBytes),
            binlog_bytes: span.rate(F::BinlogBytes),
            row_lock_waits: span.rate(F::RowLockWaits),
            history_length: span.gauge(F::HistoryLength),
            // The sampler's own thread runs whenever it asks.
            threads_running: span.gauge(F::ThreadsRunning).map(|threads| (threads - 1.0).max(0.0)),
            redo_wait: span.rate(F::RedoWait).map(|ps| ps / PICOSECONDS),
            data_wait: span.rate(F::DataWait).map(|ps| ps / PICOSECONDS),
            binlog_wait: span.rate(F::BinlogWait).map(|ps| ps / PICOSECONDS),
            commits: span.rate(F::Commits),
            write_statements: span.rate(F::WriteStatements),
            read_statements: span.rate(F::ReadStatements),
        }
    }

    /// How long the server has run; none where it does not tell.
    #[must_use]
    pub fn uptime(&self) -> Option<Duration> {
        self.figures.get(&F::Uptime).copied().map(Duration::from_secs)
    }
}

struct Span<'a> {
    before: &'a Counters,
    after: &'a Counters,
    seconds: f64,
}

impl Span<'_> {
    fn gauge(&self, figure: F) -> Option<f64> {
        self.after.figures.get(&figure).map(|value| *value as f64)
    }

    fn grown(&self, figure: F) -> Option<f64> {
        let before = *self.before.figures.get(&figure)?;
        let after = *self.after.figures.get(&figure)?;
        after.checked_sub(before).map(|grown| grown as f64)
    }

    fn rate(&self, figure: F) -> Option<f64> {
        (self.seconds > 0.0).then_some(self.grown(figure)? / self.seconds)
    }

    /// MySQL counts by reason, and single pages that a query flushes by none; MariaDB counts all pages and
    /// those of the LRU list.
    fn list_flushed(&self) -> Option<f64> {
        let by_reason =
            [F::AdaptiveFlushed, F::BackgroundFlushed, F::SyncFlushed].map(|reason| self.rate(reason));
        match by_reason {
            [Some(adaptive), Some(background), Some(sync)] => Some(adaptive + background + sync),
            _ => less(self.rate(F::Flushed), self.rate(F::LruFlushed)),
        }
    }

    fn mean(&self, total: F, count: F) -> Option<f64> {
        let (total, count) = (self.grown(total)?, self.grown(count)?);
        (count > 0.0).then_some(total / count)
    }
}

/// Figures are read one after the other: a page may be in the one and not yet in the other.
fn less(all: Option<f64>, part: Option<f64>) -> Option<f64> {
    Some((all? - part?).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(at: Instant, figures: &[(F, u64)]) -> Counters {
        Counters { at, figures: figures.iter().copied().collect() }
    }

    #[test]
    fn counters_become_rates_and_gauges_stay_as_they_are() {
        let at = Instant::now();
        let before = counters(at, &[(F::PageReads, 100), (F::DirtyPages, 7), (F::ThreadsRunning, 9)]);
        let after = counters(
            at + Duration::from_secs(2),
            &[(F::PageReads, 400), (F::DirtyPages, 5), (F::ThreadsRunning, 3)],
        );
        let rates = Counters::between(&before, &after);
        assert_eq!(rates.page_reads, Some(150.0));
        assert_eq!(rates.dirty_pages, Some(5.0));
        assert_eq!(rates.threads_running, Some(2.0));
    }

    #[test]
    fn what_is_not_counted_is_none_and_so_is_a_counter_that_went_back() {
        let at = Instant::now();
        let before = counters(at, &[(F::PageReads, 100), (F::Syncs, 10)]);
        let after = counters(at + Duration::from_secs(1), &[(F::PageReads, 50), (F::Syncs, 30)]);
        let rates = Counters::between(&before, &after);
        assert_eq!(rates.page_reads, None);
        assert_eq!(rates.syncs, Some(20.0));
        assert_eq!((rates.redo_syncs, rates.data_syncs), (None, None));
        assert_eq!(Counters::between(&after, &after), Rates::default());
    }

    #[test]
    fn pages_of_the_flush_list_are_all_that_the_lru_list_did_not_flush() {
        let at = Instant::now();
        let before = counters(at, &[(F::Flushed, 0), (F::LruFlushed, 0)]);
        let after = counters(at + Duration::from_secs(1), &[(F::Flushed, 50), (F::LruFlushed, 30)]);
        assert_eq!(Counters::between(&before, &after).list_flushed, Some(20.0));
    }

    #[test]
    fn waits_are_threads_and_a_sync_takes_its_mean_time() {
        let at = Instant::now();
        let start = [(F::RedoWait, 0), (F::RedoSyncCount, 0), (F::RedoSyncTime, 0)];
        let before = counters(at, &start);
        let end =
            [(F::RedoWait, 500_000_000_000), (F::RedoSyncCount, 100), (F::RedoSyncTime, 400_000_000_000)];
        let after = counters(at + Duration::from_secs(1), &end);
        let rates = Counters::between(&before, &after);
        assert_eq!(rates.redo_wait, Some(0.5));
        assert_eq!(rates.redo_sync_us, Some(4000.0));
    }
}
