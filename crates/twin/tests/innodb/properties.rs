//! What holds of every run: nothing is lost, more IOPS never hurt, and a seed decides everything.

use ebbtide_twin::innodb::{FileKind, Flavour, ModelSetup, run};
use ebbtide_volume::Nanos;
use proptest::prelude::*;

use crate::support::{settings, setup, shape, volume};

fn short(setup: ModelSetup) -> ModelSetup {
    ModelSetup { duration: Nanos::from_secs(30), settle: Nanos::from_secs(10), ..setup }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_that_are_read_and_written_are_those_of_the_transactions(
        reads in 1.0_f64..8.0,
        share in 0.2_f64..1.0,
        flavour in 0_usize..Flavour::ALL.len(),
        iops in 1_000_u64..6_000,
    ) {
        let writes = reads * share;
        let base = setup(shape(reads, writes, 500.0), volume(Nanos::from_ms(1), Some(iops), None), 24, 200.0, 8);
        let settings = settings(Flavour::ALL[flavour].0);
        let outcome = run(ModelSetup { settings, duration: Nanos::from_secs(120), settle: Nanos::from_secs(20), ..base });
        let each = |kind| outcome.file(kind).ios as f64 / outcome.transactions as f64;
        prop_assert!((each(FileKind::DataRead) / reads - 1.0).abs() < 0.05, "{} reads, not {reads}", each(FileKind::DataRead));
        let written = each(FileKind::DataWrite);
        // What is dirty at the end is not written, which is much where the volume is slow.
        prop_assert!((0.75..1.15).contains(&(written / writes)), "{written} writes, not {writes}");
        // Every page is written twice, but for the batches at the ends of the span.
        let copied = outcome.file(FileKind::Doublewrite).bytes as f64 / outcome.file(FileKind::DataWrite).bytes as f64;
        prop_assert!((copied - 1.0).abs() < 0.05, "{copied}");
    }

    #[test]
    fn more_iops_never_slow_a_server_down(
        reads in 0.5_f64..8.0,
        clients in 1_u32..64,
        iops in 500_u64..8_000,
        seed in 0_u64..1_000,
    ) {
        let with = |iops| {
            let base = setup(shape(reads, reads * 0.6, 800.0), volume(Nanos::from_ms(1), Some(iops), None), clients, 300.0, 8);
            run(short(ModelSetup { seed, ..base })).tps()
        };
        let (less, more) = (with(iops), with(iops * 2));
        prop_assert!(more >= less * 0.98, "{less} with {iops} IOPS, {more} with twice as many");
    }

    #[test]
    fn a_seed_decides_the_whole_run(seed in 0_u64..1_000_000, clients in 1_u32..40) {
        let once = || {
            let base = setup(shape(3.0, 2.0, 800.0), volume(Nanos::from_ms(1), Some(3_000), None), clients, 300.0, 4);
            let outcome = run(short(ModelSetup { seed, ..base }));
            (outcome.transactions, outcome.files, outcome.latency_at(0.99), outcome.limits, outcome.spans)
        };
        prop_assert_eq!(once(), once());
    }
}
