//! Latency histograms and what is read from them.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Values are nanoseconds. Three significant digits up to 1,000 s: at most 0.1% off.
pub(crate) type Nanos = Histogram<u64>;

/// Below this the values share buckets as narrow as the digits demand.
const LOWEST_NS: u64 = 64;
/// A transaction that takes longer is counted at this.
const HIGHEST_NS: u64 = 1_000_000_000_000;

/// An empty histogram with three significant digits.
pub(crate) fn fine() -> Nanos {
    Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, 3).expect("the bounds are valid constants")
}

/// An empty histogram with two significant digits (1%), for figures by statement.
pub(crate) fn coarse() -> Nanos {
    Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, 2).expect("the bounds are valid constants")
}

/// The whole part of a number that is not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
pub(crate) fn whole_u64(value: f64) -> u64 {
    value as u64
}

/// Adds `more` to `total`.
pub(crate) fn merge(total: &mut Nanos, more: &Nanos) {
    total.add(more).expect("histograms of one kind have the same bounds");
}

/// A latency distribution in microseconds. Percentiles come from a histogram with three significant
/// digits and are never outside of minimum and maximum.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many values.
    pub count: u64,
    /// Smallest, us.
    pub min_us: f64,
    /// Arithmetic mean, us.
    pub mean_us: f64,
    /// Median, us.
    pub p50_us: f64,
    /// 90th percentile, us.
    pub p90_us: f64,
    /// 95th percentile, us.
    pub p95_us: f64,
    /// 99th percentile, us.
    pub p99_us: f64,
    /// 99.9th percentile, us.
    pub p99_9_us: f64,
    /// 99.99th percentile, us.
    pub p99_99_us: f64,
    /// Largest, us.
    pub max_us: f64,
}

impl Latency {
    pub(crate) fn of(histogram: &Nanos) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let at = |quantile| percentile_us(histogram, quantile);
        Self {
            count: histogram.len(),
            min_us: us(histogram.min()),
            mean_us: (histogram.mean() / 1e3).min(us(histogram.max())),
            p50_us: at(50.0),
            p90_us: at(90.0),
            p95_us: at(95.0),
            p99_us: at(99.0),
            p99_9_us: at(99.9),
            p99_99_us: at(99.99),
            max_us: us(histogram.max()),
        }
    }
}

/// A percentile in microseconds, within the values that were seen.
pub(crate) fn percentile_us(histogram: &Nanos, percentile: f64) -> f64 {
    if histogram.is_empty() {
        return 0.0;
    }
    us(histogram.value_at_percentile(percentile).clamp(histogram.min(), histogram.max()))
}

/// Nanoseconds in microseconds.
pub(crate) fn us(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// One bucket of a whole histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// The upper end of the bucket, us.
    pub up_to_us: f64,
    /// How many values are in it.
    pub count: u64,
}

/// The buckets that hold anything, lowest first.
pub(crate) fn buckets(histogram: &Nanos) -> Vec<Bucket> {
    histogram
        .iter_recorded()
        .map(|step| Bucket { up_to_us: us(step.value_iterated_to()), count: step.count_at_value() })
        .collect()
}

/// The distribution that clients would have seen who do not wait for one another: for every value
/// longer than `interval_ns`, the ones that the waiting client did not send are filled in.
pub(crate) fn without_omission(histogram: &Nanos, interval_ns: u64) -> Nanos {
    histogram.clone_correct(interval_ns.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_stay_between_minimum_and_maximum() {
        let mut histogram = fine();
        for value in [2_003_456_789_u64, 2_003_456_790, 1_234] {
            histogram.saturating_record(value);
        }
        let latency = Latency::of(&histogram);
        assert!(latency.p99_99_us <= latency.max_us);
        assert!(latency.min_us <= latency.p50_us);
        assert!((latency.max_us - 2_003_456.79).abs() < 2_003.5, "{}", latency.max_us);
    }

    #[test]
    fn a_stall_that_a_closed_loop_hides_shows_in_the_corrected_figure() {
        // One client, 10,000 transactions of 1 ms, then one of 2 s.
        let mut histogram = fine();
        histogram.saturating_record_n(1_000_000, 10_000);
        histogram.saturating_record(2_000_000_000);
        assert!(Latency::of(&histogram).p99_us < 1_010.0);
        let corrected = Latency::of(&without_omission(&histogram, 1_200_000));
        assert!(corrected.p99_us > 1_800_000.0, "{}", corrected.p99_us);
    }

    #[test]
    fn an_empty_histogram_reads_as_zeros() {
        assert_eq!(Latency::of(&fine()), Latency::default());
    }
}
