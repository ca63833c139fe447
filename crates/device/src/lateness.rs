//! How late answers were against the model's completion times.

use ebbtide_volume::{LatencyHistogram, Nanos};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::sys::Scheduling;

/// Longest lateness that has a bucket of its own, in nanoseconds: a minute.
const LATEST_NS: u64 = 60_000_000_000;

/// How late answers were against the model's completion times, from the due time to the moment when
/// the answer had been handed over. Only I/O that the model makes wait is counted, also where its time was over when it was
/// submitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PacingReport {
    /// Answers counted.
    pub count: u64,
    /// Median lateness in nanoseconds, to 1%.
    pub p50_ns: u64,
    /// 99th percentile in nanoseconds, to 1%.
    pub p99_ns: u64,
    /// 99.9th percentile in nanoseconds, to 1%.
    pub p999_ns: u64,
    /// Largest lateness in nanoseconds, to 1%; above a minute counts as a minute.
    pub max_ns: u64,
    /// How the pacer's threads are scheduled.
    pub scheduling: Scheduling,
}

/// Lateness as counters that are never set back, counted as a [`PacingReport`] counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatenessTotals {
    /// Answers by their lateness.
    pub histogram: LatencyHistogram,
    /// Sum of the lateness of all answers.
    pub sum: Nanos,
}

impl LatenessTotals {
    /// These answers and others.
    #[must_use]
    pub fn combined(&self, other: &Self) -> Self {
        Self { histogram: self.histogram.combined(&other.histogram), sum: self.sum + other.sum }
    }
}

/// What was recorded, under one lock.
#[derive(Debug)]
struct Recorded {
    /// Since the last reset.
    histogram: Histogram<u64>,
    totals: LatenessTotals,
}

/// Collects lateness without allocating.
#[derive(Debug)]
pub(crate) struct Lateness {
    recorded: Mutex<Recorded>,
    pub(crate) scheduling: Mutex<Scheduling>,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, LATEST_NS, 2).expect("the bounds are constants in order");
        let recorded = Recorded { histogram, totals: LatenessTotals::default() };
        Self { recorded: Mutex::new(recorded), scheduling: Mutex::default() }
    }

    pub(crate) fn record(&self, late: Nanos) {
        let mut recorded = self.recorded.lock();
        recorded.histogram.saturating_record(late.0);
        recorded.totals.histogram.record(late);
        recorded.totals.sum += late;
    }

    pub(crate) fn reset(&self) {
        self.recorded.lock().histogram.reset();
    }

    /// What was recorded since the start, whatever was reset: a copy of some hundred bytes under the lock.
    pub(crate) fn totals(&self) -> LatenessTotals {
        self.recorded.lock().totals
    }

    pub(crate) fn later_than(&self, limit: Nanos) -> u64 {
        let recorded = self.recorded.lock();
        let late = recorded.histogram.iter_recorded().filter(|value| value.value_iterated_to() > limit.0);
        late.map(|value| value.count_since_last_iteration()).sum()
    }

    pub(crate) fn report(&self) -> PacingReport {
        let recorded = self.recorded.lock();
        let histogram = &recorded.histogram;
        PacingReport {
            count: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
            scheduling: *self.scheduling.lock(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_forgets_the_report_and_keeps_the_totals() {
        let lateness = Lateness::new();
        for us in [3, 40, 5_000] {
            lateness.record(Nanos::from_us(us));
        }
        lateness.reset();
        lateness.record(Nanos::from_us(3));
        assert_eq!(lateness.report().count, 1);
        let totals = lateness.totals();
        assert_eq!((totals.histogram.bins.iter().sum::<u64>(), totals.sum), (4, Nanos::from_us(5_046)));
        // 3 us are in the bin from 2 to 4 us.
        assert_eq!(totals.histogram.bins[2], 2);
    }
}
