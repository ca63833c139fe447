//! How many I/Os a second the model takes on one core: a throttled gp3 with service times under a
//! closed loop of 64. A tiny run (`BENCH_TINY=1`, or under `cargo test`) is a thousandth of one round.
#![allow(clippy::unwrap_used)] // a bench fails by a panic

use std::{collections::VecDeque, hint::black_box, time::Instant};

use ebbtide_volume::{
    Accounting, AtomicUnit, Durability, Io, Limits, Merge, Nanos, Op, QuantileCurve, RateLimit, ServiceTimes,
    TIB, Volume,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const ROUNDS: usize = 7;
const IOS: u64 = 10_000_000;

fn gp3() -> Limits {
    let microseconds =
        [(0, 300), (100_000, 400), (500_000, 600), (900_000, 800), (990_000, 1_500), (1_000_000, 20_000)];
    let curve =
        QuantileCurve::new(microseconds.iter().map(|&(ppm, us)| (ppm, us * 1_000)).collect()).unwrap();
    Limits {
        size_bytes: TIB,
        iops: Some(RateLimit { allowance: 3_000, ..RateLimit::flat(3_000) }),
        throughput: Some(RateLimit { allowance: 125 << 20, ..RateLimit::flat(125 << 20) }),
        accounting: Accounting { merge: Merge::Waiting, ..Accounting::per_io() },
        service: ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() },
        durability: Durability { atomic_unit: AtomicUnit::SixteenKib, volatile_cache_bytes: 0 },
    }
}

fn main() {
    let (rounds, ios) = if ebbtide_testing::tiny() { (1, IOS / 1_000) } else { (ROUNDS, IOS) };
    let mut rates: Vec<_> = (0..rounds).map(|round| round_millions_per_second(round as u64, ios)).collect();
    rates.sort_by(f64::total_cmp);
    let (low, median, high) = (rates[0], rates[rounds / 2], rates[rounds - 1]);
    println!("throttled gp3 with service times: {median:.1} million I/Os a second [{low:.1}-{high:.1}]");
}

fn round_millions_per_second(seed: u64, ios: u64) -> f64 {
    let mut volume = Volume::new(gp3(), Nanos::ZERO).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut next: VecDeque<Nanos> = (0..64).map(|_| Nanos::ZERO).collect();
    let start = Instant::now();
    for _ in 0..ios {
        let now = next.pop_front().unwrap();
        let io = Io { op: Op::Read, offset: (rng.next_u64() >> 38) << 14, len: 16 << 10 };
        next.push_back(volume.submit(io, now, &mut rng, None).completes);
    }
    black_box(volume.stats(Nanos::ZERO));
    ios as f64 / start.elapsed().as_secs_f64() / 1e6
}
