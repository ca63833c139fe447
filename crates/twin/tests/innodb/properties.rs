//! What holds of every run: the limits of queueing networks, nothing is lost, more of a volume never hurts, and a seed
//! decides everything.

use ebbtide_twin::innodb::{FileKind, Flavour, ModelSetup, run};
use ebbtide_volume::{MIB, Nanos};
use proptest::prelude::*;

use crate::mva;
use crate::support::{one_read, settings, setup, shape, volume};

/// What simulated means may be off by.
const NOISE: f64 = 0.02;

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
    fn throughput_is_between_the_asymptotic_bounds(
        reads in 0.5_f64..8.0,
        clients in 1_u32..80,
        cpu_us in 50.0_f64..3_000.0,
        vcpus in 1_u32..9,
        iops in 500_u64..8_000,
    ) {
        let latency = Nanos::from_ms(1);
        let setup = setup(shape(reads, 0.0, 0.0), volume(latency, Some(iops), None), clients, cpu_us, vcpus);
        let got = run(ModelSetup { duration: Nanos::from_secs(130), ..setup }).tps();
        // All demands of a transaction, and the largest of a station that serves one thing at a time, s.
        let all = cpu_us / 1e6 + reads * latency.as_secs_f64();
        let most = (cpu_us / 1e6 / f64::from(vcpus)).max(reads / iops as f64);
        let clients = f64::from(clients);
        let upper = (clients / all).min(1.0 / most);
        let lower = clients / (all + reads / iops as f64 + (clients - 1.0) * most);
        prop_assert!(got <= upper * (1.0 + NOISE), "{got} is above the bound of {upper}");
        prop_assert!(got >= lower * (1.0 - NOISE), "{got} is below the bound of {lower}");
    }

    #[test]
    fn processors_with_a_delay_follow_exact_mva(
        clients in 1_usize..40,
        delay_ms in 1_u64..10,
        work_us in 500.0_f64..6_000.0,
        vcpus in 1_u32..5,
    ) {
        let delay = Nanos::from_ms(delay_ms);
        let setup = setup(one_read(), volume(delay, None, None), u32::try_from(clients).unwrap(), work_us, vcpus);
        let got = run(ModelSetup { duration: Nanos::from_secs(310), ..setup }).tps();
        let exact = mva::throughput(clients, delay.as_secs_f64(), work_us / 1e6, |n| n.min(vcpus as usize) as f64);
        prop_assert!((got / exact - 1.0).abs() < NOISE, "{got}, not {exact}");
    }

    #[test]
    fn clients_are_their_throughput_by_their_latency_and_every_operation_is_of_a_file(
        reads in 0.0_f64..6.0,
        clients in 1_u32..64,
        iops in 500_u64..6_000,
        flavour in 0_usize..Flavour::ALL.len(),
    ) {
        let base = setup(shape(reads, reads * 0.5, 700.0), volume(Nanos::from_ms(1), Some(iops), None), clients, 300.0, 4);
        let settings = settings(Flavour::ALL[flavour].0);
        let outcome = run(ModelSetup { settings, duration: Nanos::from_secs(130), ..base });
        // Little's law, of a closed loop without think times.
        let inside = outcome.latency.mean() / 1e9 * outcome.tps();
        prop_assert!((inside / f64::from(clients) - 1.0).abs() < NOISE, "{inside} of {clients} clients");
        prop_assert_eq!(outcome.latency.len(), outcome.transactions);
        let of_files: u64 = outcome.files.iter().map(|file| file.operations).sum();
        prop_assert!((of_files as f64 / outcome.measured.as_secs_f64() - outcome.iops()).abs() < 1e-6);
        prop_assert!(outcome.iops() <= iops as f64 * (1.0 + NOISE), "{} of {iops} IOPS", outcome.iops());
    }

    #[test]
    fn more_throughput_never_slows_a_server_down(
        reads in 0.5_f64..8.0,
        clients in 1_u32..64,
        mib_s in 10_u64..200,
        seed in 0_u64..1_000,
    ) {
        let with = |mib_s| {
            let base = setup(shape(reads, reads * 0.6, 800.0), volume(Nanos::from_ms(1), None, Some(mib_s)), clients, 300.0, 8);
            run(short(ModelSetup { seed, ..base })).tps()
        };
        let (less, more) = (with(mib_s), with(mib_s * 2));
        prop_assert!(more >= less * (1.0 - NOISE), "{less} with {mib_s} MiB/s ({} bytes), {more} with twice as much", mib_s * MIB);
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
