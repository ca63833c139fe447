//! How late answers were against the model's completion times.

use ebbtide_volume::Nanos;
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

/// Collects lateness without allocating.
#[derive(Debug)]
pub(crate) struct Lateness {
    histogram: Mutex<Histogram<u64>>,
    pub(crate) scheduling: Mutex<Scheduling>,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, LATEST_NS, 2).expect("the bounds are constants in order");
        Self { histogram: Mutex::new(histogram), scheduling: Mutex::default() }
    }

    pub(crate) fn record(&self, late: Nanos) {
        self.histogram.lock().saturating_record(late.0);
    }

    pub(crate) fn reset(&self) {
        self.histogram.lock().reset();
    }

    pub(crate) fn later_than(&self, limit: Nanos) -> u64 {
        let histogram = self.histogram.lock();
        let late = histogram.iter_recorded().filter(|value| value.value_iterated_to() > limit.0);
        late.map(|value| value.count_since_last_iteration()).sum()
    }

    pub(crate) fn report(&self) -> PacingReport {
        let histogram = self.histogram.lock();
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
