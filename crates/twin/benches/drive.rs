//! How many I/Os a second of real time the simulator drives. Run with `cargo bench -p ebbtide-twin`.
//!
//! An argument gives the millions of I/Os for each case (default 10).

use std::ops::ControlFlow;
use std::time::Instant;

use ebbtide_twin::{Interval, Observer, Percentiles, Setup, fio, simulate};
use ebbtide_volume::{
    Accounting, Array, AtomicUnit, Durability, GIB, KIB, Limits, MIB, Merge, Nanos, QuantileCurve, RateLimit,
    ServiceTimes,
};

struct Ignore;

impl Observer for Ignore {
    fn interval(&mut self, _: usize, _: &Interval, _: &Percentiles) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn gp3() -> Limits {
    let curve = QuantileCurve::new(vec![
        (0, 300_000),
        (500_000, 500_000),
        (990_000, 1_200_000),
        (999_000, 4_000_000),
        (1_000_000, 20_000_000),
    ])
    .expect("the points rise");
    Limits {
        size_bytes: 100 * GIB,
        iops: Some(RateLimit { allowance: 3_000, ..RateLimit::flat(3_000) }),
        throughput: Some(RateLimit::flat(125 * MIB)),
        accounting: Accounting {
            unit_bytes: u32::try_from(256 * KIB).expect("256 KiB"),
            merge: Merge::InFlight,
            whole_units: false,
        },
        service: ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() },
        durability: Durability { atomic_unit: AtomicUnit::FourKib, volatile_cache_bytes: 0 },
    }
}

fn main() {
    let millions = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(10_u64);
    let unthrottled = Limits { iops: None, throughput: None, ..gp3() };
    let cases = [
        ("gp3 at its cap, depth 64", gp3(), "rw=randread,bs=16k,iodepth=64"),
        ("gp3 at its cap, depth 1024, mixed", gp3(), "rw=randrw,bs=4k,iodepth=32,numjobs=32"),
        ("gp3 below its cap, depth 1", gp3(), "rw=randread,bs=16k"),
        ("gp3 below its cap, open loop", gp3(), "rw=randread,bs=16k,rate_iops=2000"),
        ("no limits, depth 64", unthrottled, "rw=randread,bs=16k,iodepth=64"),
    ];
    for (name, limits, words) in cases {
        let workload = fio::parse_words(words).expect("the words are fio's");
        let mut workload = workload;
        let clones = u64::from(workload.jobs[0].clones);
        workload.jobs[0].amount = Some(u64::MAX);
        workload.jobs[0].max_ios = Some(millions * 1_000_000 / clones);
        let volumes = vec![Array::single(limits, Nanos::ZERO).expect("the limits are sound")];
        let setup = Setup { volumes, instance: None, workload: &workload, seed: 1, interval: Nanos::SECOND };
        let began = Instant::now();
        let outcome = simulate(setup, &mut Ignore).expect("the workload runs");
        let took = began.elapsed().as_secs_f64();
        let ios = outcome.volumes[0].totals().all().ios as f64;
        println!(
            "{name:36} {:6.2} million I/Os a second ({:.2} s for {:.0} s of virtual time)",
            ios / took / 1e6,
            took,
            outcome.duration.as_secs_f64()
        );
    }
}
