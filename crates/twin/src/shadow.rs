//! A shadow: a volume that gets the requests of another one as they arrive, and answers nobody.

use ebbtide_volume::{Array, Instance, Io, Nanos, Op, Stats};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::percentiles::Percentiles;

/// Latencies by direction.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Of reads.
    pub read: Percentiles,
    /// Of writes.
    pub write: Percentiles,
}

impl Latencies {
    /// Adds one; those of flushes and discards are left out.
    pub fn record(&mut self, op: Op, latency: Nanos) {
        match op {
            Op::Read => self.read.record(latency),
            Op::Write => self.write.record(latency),
            Op::Flush | Op::Discard => {}
        }
    }
}

/// A volume in the place of another one.
///
/// Requests arrive when they arrived at the other one, however long this one takes: an open loop. A shadow that is too slow
/// for them queues them without bound.
#[derive(Debug)]
pub struct Shadow {
    array: Array,
    instance: Option<Instance>,
    rng: Xoshiro256PlusPlus,
    latencies: Latencies,
}

impl Shadow {
    /// A shadow with burst credits as `array` has them. It has the instance for itself.
    #[must_use]
    pub fn new(array: Array, instance: Option<Instance>, seed: u64) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { array, instance, rng, latencies: Latencies::default() }
    }

    /// Takes a request that arrived at a time.
    pub fn submit(&mut self, at: Nanos, io: Io) {
        let grant = self.array.submit(io, at, &mut self.rng, self.instance.as_mut());
        self.latencies.record(io.op, grant.completes.since(at));
    }

    /// The latencies of all requests so far.
    #[must_use]
    pub const fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// The volume's counters at a time.
    #[must_use]
    pub fn stats(&mut self, now: Nanos) -> Stats {
        self.array.stats(now)
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::{Accounting, GIB, Limits, Merge, QuantileCurve, RateLimit, ServiceTimes};

    use super::*;

    fn flat(iops: u64) -> Shadow {
        let curve = QuantileCurve::constant(Nanos::from_us(500));
        let limits = Limits {
            iops: Some(RateLimit::flat(iops)),
            accounting: Accounting { merge: Merge::Waiting, ..Accounting::per_io() },
            service: ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() },
            ..Limits::unlimited(GIB)
        };
        Shadow::new(Array::single(limits, Nanos::ZERO).unwrap(), None, 1)
    }

    #[test]
    fn a_shadow_that_is_too_slow_queues_and_one_that_is_not_is_never_over_its_limit() {
        let (mut slow, mut quick) = (flat(500), flat(5_000));
        let every = Nanos::from_us(1_000);
        let mut at = Nanos::ZERO;
        for number in 0..10_000_u64 {
            let io = Io { op: Op::Write, offset: number * 7_919 % 60_000 * 16_384, len: 16_384 };
            slow.submit(at, io);
            quick.submit(at, io);
            at += every;
        }
        // 10,000 requests at 1,000 a second on 500: the last one waits for about 10 s, the median one for about 5 s.
        let seconds =
            |shadow: &Shadow, quantile| shadow.latencies().write.at(quantile).unwrap().as_secs_f64();
        assert!((seconds(&slow, 0.5) - 4.5).abs() < 0.6, "{}", seconds(&slow, 0.5));
        assert!(seconds(&slow, 1.0) > 8.5 && seconds(&quick, 1.0) < 0.01);
        let over = |shadow: &mut Shadow| shadow.stats(at).volume_iops_exceeded.as_secs_f64();
        assert!(over(&mut slow) > 8.0, "{}", over(&mut slow));
        assert!(over(&mut quick) < 0.1, "{}", over(&mut quick));
        assert_eq!((slow.latencies().read.count(), quick.latencies().write.count()), (0, 10_000));
    }
}
