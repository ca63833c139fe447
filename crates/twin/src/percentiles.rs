//! A distribution of latencies that costs an I/O little to record in.

use ebbtide_volume::Nanos;

/// Leading bits of a latency that its bucket keeps. Ten bits below the leading one: an error of at most 0.1%.
const KEPT_BITS: u32 = 11;
/// Buckets for each power of two from `2 * HALF` ns on. Below it, each nanosecond has a bucket.
const HALF: usize = 1 << (KEPT_BITS - 1);
/// Buckets that are summed at a time when a quantile is searched: the compiler makes vector instructions of it.
const CHUNK: usize = 64;

/// A distribution of latencies, exact to 0.1%.
///
/// The buckets, and so the percentiles, are those of an `hdrhistogram` with three significant digits. Recording is cheaper, since
/// the digits are a constant and no smallest and largest value is kept. Reading and clearing pass over the buckets in use alone,
/// not over all up to the longest latency: there are 15,500 of them up to 20 ms.
#[derive(Debug, Clone)]
pub struct Percentiles {
    /// I/Os by bucket. It grows to the longest latency.
    counts: Vec<u64>,
    total: u64,
    /// The first bucket that is in use; `usize::MAX` without I/O.
    first: usize,
    /// The bucket after the last one that is in use; 0 without I/O.
    end: usize,
}

impl Default for Percentiles {
    fn default() -> Self {
        Self { counts: Vec::new(), total: 0, first: usize::MAX, end: 0 }
    }
}

impl Percentiles {
    #[inline]
    pub(crate) fn record(&mut self, latency: Nanos) {
        let bucket = bucket_of(latency.0);
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.record_beyond(bucket),
        }
        self.total += 1;
        self.first = self.first.min(bucket);
        self.end = self.end.max(bucket + 1);
    }

    /// Records an I/O that is longer than any before it.
    #[cold]
    fn record_beyond(&mut self, bucket: usize) {
        self.grow(bucket + 1);
        self.counts[bucket] += 1;
    }

    /// Makes room for so many buckets, and for the rest of a power of two.
    fn grow(&mut self, buckets: usize) {
        if self.counts.len() < buckets {
            self.counts.resize(buckets.next_multiple_of(HALF), 0);
        }
    }

    /// The buckets in use.
    fn used(&self) -> &[u64] {
        self.counts.get(self.first..self.end).unwrap_or_default()
    }

    pub(crate) fn clear(&mut self) {
        if let Some(used) = self.counts.get_mut(self.first..self.end) {
            used.fill(0);
        }
        (self.total, self.first, self.end) = (0, usize::MAX, 0);
    }

    /// Adds another distribution.
    pub fn add(&mut self, other: &Self) {
        if other.total == 0 {
            return;
        }
        self.grow(other.end);
        for (count, more) in self.counts[other.first..other.end].iter_mut().zip(other.used()) {
            *count += more;
        }
        self.total += other.total;
        self.first = self.first.min(other.first);
        self.end = self.end.max(other.end);
    }

    /// The latency that `quantile` (0 to 1) of the I/Os did not exceed; none without I/O. It is the longest one of its bucket, and for
    /// the quantile 0 the shortest.
    #[must_use]
    pub fn at(&self, quantile: f64) -> Option<Nanos> {
        if self.total == 0 {
            return None;
        }
        let bucket = self.bucket_at(rank(quantile, self.total));
        Some(Nanos(if quantile == 0.0 { shortest_of(bucket) } else { longest_of(bucket) }))
    }

    /// The bucket of the I/O with this rank, from 1 to the number of I/Os.
    fn bucket_at(&self, rank: u64) -> usize {
        let (mut before, mut bucket) = (0, self.first);
        for chunk in self.used().chunks(CHUNK) {
            let all: u64 = chunk.iter().sum();
            if before + all < rank {
                before += all;
                bucket += chunk.len();
                continue;
            }
            for count in chunk {
                before += count;
                if before >= rank {
                    return bucket;
                }
                bucket += 1;
            }
        }
        unreachable!("the buckets in use hold {} I/Os, and the rank {rank} is not above it", self.total)
    }

    /// How many I/Os it holds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }
}

/// The rank, from 1, of the I/O at a quantile.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
fn rank(quantile: f64, total: u64) -> u64 {
    let rank = (quantile.min(1.0) * total as f64).ceil() as u64;
    rank.clamp(1, total)
}

/// The bucket of a latency in nanoseconds.
#[inline]
fn bucket_of(latency_ns: u64) -> usize {
    // Bits that the bucket does not keep. The lowest buckets, which keep all, are those of 2 * HALF nanoseconds.
    let dropped = u64::BITS - KEPT_BITS - (latency_ns | (2 * HALF as u64 - 1)).leading_zeros();
    let kept = usize::try_from(latency_ns >> dropped).expect("it has KEPT_BITS bits");
    dropped as usize * HALF + kept
}

/// Bits that a bucket does not keep, and those that it keeps.
fn parts_of(bucket: usize) -> (usize, u64) {
    let dropped = (bucket / HALF).saturating_sub(1);
    (dropped, (bucket - dropped * HALF) as u64)
}

/// The shortest latency of a bucket, in nanoseconds.
fn shortest_of(bucket: usize) -> u64 {
    let (dropped, kept) = parts_of(bucket);
    kept << dropped
}

/// The longest latency of a bucket, in nanoseconds.
fn longest_of(bucket: usize) -> u64 {
    let (dropped, _) = parts_of(bucket);
    shortest_of(bucket) + ((1_u64 << dropped) - 1)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    const QUANTILES: [f64; 9] = [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0, 2.0];

    fn recorded(latencies: &[u64]) -> Percentiles {
        let mut percentiles = Percentiles::default();
        latencies.iter().for_each(|&latency| percentiles.record(Nanos(latency)));
        percentiles
    }

    fn by_hdrhistogram(latencies: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        latencies.iter().for_each(|&latency| histogram.record(latency).unwrap());
        histogram
    }

    fn assert_same(percentiles: &Percentiles, histogram: &Histogram<u64>) {
        assert_eq!(percentiles.count(), histogram.len());
        for quantile in QUANTILES {
            let theirs = (!histogram.is_empty()).then(|| Nanos(histogram.value_at_quantile(quantile)));
            assert_eq!(percentiles.at(quantile), theirs, "quantile {quantile}");
        }
    }

    /// Latencies of each order of magnitude alike, up to 2^62 ns.
    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        let latency = (0_u32..63, any::<u64>()).prop_map(|(bits, random)| random & ((1_u64 << bits) - 1));
        prop::collection::vec(latency, 0..200)
    }

    proptest! {
        #[test]
        fn the_percentiles_are_those_of_an_hdrhistogram(first in latencies(), second in latencies()) {
            let (mut sum, mut sum_by_hdrhistogram) = (recorded(&first), by_hdrhistogram(&first));
            assert_same(&sum, &sum_by_hdrhistogram);
            sum.add(&recorded(&second));
            sum_by_hdrhistogram.add(by_hdrhistogram(&second)).unwrap();
            assert_same(&sum, &sum_by_hdrhistogram);
        }

        #[test]
        fn what_was_cleared_leaves_nothing_behind(first in latencies(), second in latencies()) {
            let mut percentiles = recorded(&first);
            percentiles.clear();
            prop_assert_eq!(percentiles.at(0.5), None);
            second.iter().for_each(|&latency| percentiles.record(Nanos(latency)));
            assert_same(&percentiles, &by_hdrhistogram(&second));
        }

        #[test]
        fn a_latency_is_in_its_bucket_and_the_bucket_is_at_most_a_thousandth_wide(latency in any::<u64>()) {
            let bucket = bucket_of(latency);
            let (shortest, longest) = (shortest_of(bucket), longest_of(bucket));
            prop_assert!(shortest <= latency && latency <= longest);
            prop_assert!(longest - shortest <= shortest / 1000);
        }
    }

    #[test]
    fn buckets_follow_each_other_without_gap_or_overlap() {
        let last = bucket_of(u64::MAX);
        assert_eq!((shortest_of(0), longest_of(last)), (0, u64::MAX));
        for bucket in 0..last {
            assert_eq!(longest_of(bucket) + 1, shortest_of(bucket + 1), "after the bucket {bucket}");
        }
    }
}
