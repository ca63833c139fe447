//! Volumes as the formulas describe them, and a run that keeps its intervals.

use std::ops::ControlFlow;

use ebbtide_twin::{Interval, Observer, Outcome, Percentiles, Setup, SimulateError, fio, simulate};
use ebbtide_volume::{
    Accounting, Array, AtomicUnit, Durability, GIB, Instance, Limits, MIB, Merge, Nanos, QuantileCurve,
    RateLimit, ServiceTimes,
};

pub(crate) const SEED: u64 = 42;

/// Keeps every interval, by volume.
#[derive(Debug, Default)]
pub(crate) struct Kept(pub(crate) Vec<Vec<Interval>>);

impl Observer for Kept {
    fn interval(&mut self, volume: usize, interval: &Interval, latencies: &Percentiles) -> ControlFlow<()> {
        if self.0.len() <= volume {
            self.0.resize(volume + 1, Vec::new());
        }
        assert_eq!(latencies.count(), interval.reads + interval.writes);
        self.0[volume].push(*interval);
        ControlFlow::Continue(())
    }
}

/// An SSD volume whose service takes a constant time.
pub(crate) fn ssd(gib: u64, service_us: u64, iops: Option<RateLimit>, mib_s: Option<u64>) -> Limits {
    let curve = QuantileCurve::constant(Nanos::from_us(service_us));
    Limits {
        size_bytes: gib * GIB,
        iops,
        throughput: mib_s.map(|rate| RateLimit::flat(rate * MIB)),
        accounting: Accounting { merge: Merge::Waiting, ..Accounting::per_io() },
        service: ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() },
        durability: Durability { atomic_unit: AtomicUnit::FourKib, volatile_cache_bytes: 0 },
    }
}

/// gp2: 3 IOPS per GiB, 5.4 million credits, 3,000 while they last.
pub(crate) fn gp2(gib: u64) -> Limits {
    let credits = RateLimit { rate: 3 * gib, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
    ssd(gib, 700, Some(credits), Some(128))
}

/// gp3 with its default figures.
pub(crate) fn gp3() -> Limits {
    ssd(100, 700, Some(RateLimit::flat(3_000)), Some(125))
}

/// st1: 40 MiB/s per TiB, 250 with credits of 1 TiB per TiB; a small random I/O costs a MiB.
pub(crate) fn st1(tib: u64) -> Limits {
    let throughput =
        RateLimit { rate: 40 * tib * MIB, ceiling: 250 * tib * MIB, allowance: 0, credits: tib << 40 };
    Limits {
        throughput: Some(throughput),
        accounting: Accounting {
            unit_bytes: 1 << 20,
            merge: Merge::Contiguous,
            whole_units: true,
            ..Accounting::per_io()
        },
        ..ssd(tib * 1024, 2_000, None, None)
    }
}

pub(crate) fn array(limits: Limits) -> Array {
    Array::single(limits, Nanos::ZERO).expect("the limits are valid")
}

pub(crate) fn try_run(
    volumes: Vec<Array>,
    instance: Option<Instance>,
    words: &str,
    seed: u64,
    interval: Nanos,
) -> Result<(Outcome, Kept), SimulateError> {
    println!("seed {seed}: {words}");
    let workload = fio::parse_words(words, &fio::Nothing).unwrap_or_else(|error| panic!("{words}: {error}"));
    let mut kept = Kept::default();
    let outcome = simulate(Setup { volumes, instance, workload: &workload, seed, interval }, &mut kept)?;
    Ok((outcome, kept))
}

pub(crate) fn run(limits: Limits, words: &str) -> (Outcome, Vec<Interval>) {
    let (outcome, mut kept) = try_run(vec![array(limits)], None, words, SEED, Nanos::SECOND).expect(words);
    (outcome, kept.0.remove(0))
}

/// Asserts a figure within a share of what a formula gives.
pub(crate) fn assert_near(what: &str, figure: f64, formula: f64, tolerance: f64) {
    let off = (figure - formula).abs() / formula;
    assert!(off <= tolerance, "{what}: {figure} is {:.3}% off {formula}", off * 100.0);
}
