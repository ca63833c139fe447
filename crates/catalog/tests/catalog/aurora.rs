//! Aurora's storage: what it counts, and how long its quorum takes.

use ebbtide_volume::{Array, AtomicUnit, Io, Nanos, Op};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::support::resolve;

const SEED: u64 = 11;
const KINDS: [&str; 3] = ["aurora-pages", "aurora-log", "aurora-enhanced-binlog"];

fn rng() -> Xoshiro256PlusPlus {
    println!("seed {SEED}");
    Xoshiro256PlusPlus::seed_from_u64(SEED)
}

/// What an I/O of so many KiB counts, on a volume that has nothing in flight.
fn counted(array: &mut Array, op: Op, kib: u32) -> u64 {
    array.submit(Io { op, offset: 1 << 30, len: kib << 10 }, Nanos::ZERO, &mut rng(), None).operations
}

#[test]
fn aurora_counts_pages_read_and_units_of_log_and_no_page_written() {
    for suffix in ["", "-io-optimized"] {
        let array = |kind: &str| resolve(&format!("{kind}{suffix}")).array(Nanos::ZERO);
        for (kib, reads) in [(4, 1), (16, 1), (64, 4)] {
            assert_eq!(counted(&mut array("aurora-pages"), Op::Read, kib), reads, "{kib} KiB read");
            assert_eq!(counted(&mut array("aurora-pages"), Op::Write, kib), 0, "{kib} KiB of pages written");
        }
        for kind in &KINDS[1..] {
            for (kib, units) in [(1, 1), (4, 1), (6, 2), (64, 16)] {
                assert_eq!(counted(&mut array(kind), Op::Write, kib), units, "{kib} KiB on {kind}");
            }
        }
    }
    // Log that follows what is still on its way shares its unit.
    let mut log = resolve("aurora-log").array(Nanos::ZERO);
    let mut at = |offset| {
        let io = Io { op: Op::Write, offset, len: 1_024 };
        log.submit(io, Nanos::ZERO, &mut rng(), None).operations
    };
    assert_eq!([at(0), at(1_024), at(2_048), at(3_072), at(4_096)], [1, 0, 0, 0, 1]);
}

#[test]
fn a_commit_on_aurora_waits_for_the_log_and_for_nothing_else() {
    let [pages, log, enhanced] = KINDS.map(|kind| resolve(kind).members[0].clone());
    let mean = |limits: &ebbtide_volume::Limits| {
        let sum: u64 = (0..1_000).map(|n| limits.service.write.quantile(n * 1_000 + 500).as_us()).sum();
        sum as f64 / 1e3
    };
    assert_eq!(pages.service.write.quantile(1_000_000), Nanos::ZERO, "pages are never waited for");
    // Two of them, and the network to the client, took 1.56 to 1.86 ms at least.
    let classic_ms = 2.0 * log.service.write.minimum().as_secs_f64() * 1e3;
    assert!((1.2..=1.86).contains(&classic_ms), "{classic_ms} ms");
    assert_eq!(
        enhanced.service.write.quantile(500_000),
        Nanos::ZERO,
        "in half of the cases the redo log is slower"
    );
    let (log_us, enhanced_us) = (mean(&log), mean(&enhanced));
    assert!((0.05..0.4).contains(&(enhanced_us / log_us)), "{enhanced_us} beside {log_us} us");
    for limits in [pages, log, enhanced] {
        assert_eq!(limits.service.flush.quantile(1_000_000), Nanos::ZERO, "an answered write is durable");
        assert_eq!(limits.durability.atomic_unit, AtomicUnit::SixteenKib);
        assert_eq!((limits.iops, limits.throughput), (None, None));
    }
}
