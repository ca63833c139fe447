//! A closed-loop load in virtual time: a fixed number of I/Os is kept in flight.

use std::{cmp::Reverse, collections::BinaryHeap};

use ebbtide_volume::{
    Accounting, Array, AtomicUnit, Durability, Instance, Io, Limits, Merge, Nanos, Op, QuantileCurve,
    RateLimit, ServiceTimes, TIB,
};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) const SEED: u64 = 20_260_101;

pub(crate) fn rng(seed: u64) -> Xoshiro256PlusPlus {
    println!("seed {seed}");
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// An SSD volume without limits or latency, to be limited by the test.
pub(crate) fn unlimited() -> Limits {
    Limits {
        accounting: Accounting { merge: Merge::Waiting, ..Accounting::per_io() },
        durability: Durability { atomic_unit: AtomicUnit::SixteenKib, volatile_cache_bytes: 0 },
        ..Limits::unlimited(TIB)
    }
}

/// Service times of an EBS SSD volume: half a millisecond, with a tail.
pub(crate) fn with_service(mut limits: Limits) -> Limits {
    let curve = QuantileCurve::new(vec![
        (0, 300_000),
        (500_000, 500_000),
        (990_000, 1_500_000),
        (1_000_000, 8_000_000),
    ])
    .unwrap();
    limits.service = ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() };
    limits
}

pub(crate) fn gp3(iops: u64, mib_s: u64) -> Limits {
    let bytes = mib_s << 20;
    Limits {
        iops: Some(RateLimit { allowance: iops, ..RateLimit::flat(iops) }),
        throughput: Some(RateLimit { allowance: bytes, ..RateLimit::flat(bytes) }),
        ..unlimited()
    }
}

pub(crate) fn gp2(gib: u64) -> Limits {
    let rate = (3 * gib).clamp(100, 16_000);
    Limits {
        size_bytes: gib << 30,
        iops: Some(RateLimit { rate, ceiling: rate.max(3_000), allowance: 0, credits: 5_400_000 }),
        throughput: Some(RateLimit::flat(250 << 20)),
        ..unlimited()
    }
}

pub(crate) fn st1(tib: u64) -> Limits {
    let capacity = tib * TIB;
    Limits {
        size_bytes: capacity,
        throughput: Some(RateLimit {
            rate: (40 * tib).min(500) << 20,
            ceiling: (250 * tib).min(500) << 20,
            allowance: 0,
            credits: capacity,
        }),
        accounting: Accounting {
            unit_bytes: 1 << 20,
            merge: Merge::Contiguous,
            whole_units: true,
            ..Accounting::per_io()
        },
        ..unlimited()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Pattern {
    Random,
    Sequential,
}

pub(crate) struct Load {
    pub(crate) op: Op,
    pub(crate) pattern: Pattern,
    pub(crate) len: u32,
    pub(crate) depth: usize,
}

impl Load {
    pub(crate) const fn random(op: Op, len_kib: u32, depth: usize) -> Self {
        Self { op, pattern: Pattern::Random, len: len_kib << 10, depth }
    }

    pub(crate) const fn sequential(op: Op, len_kib: u32, depth: usize) -> Self {
        Self { op, pattern: Pattern::Sequential, len: len_kib << 10, depth }
    }

    fn offset(&self, number: u64, size: u64) -> u64 {
        let slots = size / u64::from(self.len);
        let slot = match self.pattern {
            // Far apart on purpose: no two neighbours in a row.
            Pattern::Random => number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (slots / 2) * 2,
            Pattern::Sequential => number % slots,
        };
        slot * u64::from(self.len)
    }
}

/// Completion times and latencies of every I/O that completes between `from` and `to`.
pub(crate) fn drive(
    array: &mut Array,
    load: &Load,
    from: Nanos,
    to: Nanos,
    mut instance: Option<&mut Instance>,
) -> Vec<(Nanos, Nanos)> {
    let mut rng = rng(SEED);
    let mut slots: BinaryHeap<_> = (0..load.depth).map(|_| Reverse(from)).collect();
    let mut done = Vec::new();
    let size = array.size_bytes();
    for number in 0.. {
        let Reverse(now) = slots.pop().expect("a slot is pushed for every one popped");
        if now >= to {
            break;
        }
        let io = Io { op: load.op, offset: load.offset(number, size), len: load.len };
        let grant = array.submit(io, now, &mut rng, instance.as_deref_mut());
        assert!(grant.completes >= grant.unthrottled && grant.unthrottled >= now);
        if grant.completes <= to {
            done.push((grant.completes, grant.completes.since(now)));
        }
        slots.push(Reverse(grant.completes.max(now + Nanos(1))));
    }
    done
}

/// I/Os a second that complete in `from..to` (seconds).
pub(crate) fn rate(done: &[(Nanos, Nanos)], from: u64, to: u64) -> f64 {
    let window = Nanos::from_secs(from)..Nanos::from_secs(to);
    done.iter().filter(|(at, _)| window.contains(at)).count() as f64 / (to - from) as f64
}

pub(crate) fn percentile(done: &[(Nanos, Nanos)], share: f64) -> Nanos {
    let mut latencies: Vec<_> = done.iter().map(|&(_, latency)| latency).collect();
    latencies.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index below the length")]
    let index = ((latencies.len() - 1) as f64 * share) as usize;
    latencies[index]
}

#[track_caller]
pub(crate) fn assert_within(got: f64, wanted: f64, share: f64) {
    let error = (got - wanted).abs() / wanted;
    assert!(error <= share, "got {got}, wanted {wanted} within {share}: off by {error:.5}");
}

pub(crate) const PAGE: u32 = 16 << 10;
