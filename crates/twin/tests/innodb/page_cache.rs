//! The page cache below the buffer pool: it saves reads and no writes, and no page is lost on the way.

use ebbtide_twin::innodb::{
    FileKind, Flavour, Memory, ModelLoad, ModelOutcome, ModelSetup, PageKind, Settings, Shape,
    TransactionType, run,
};
use ebbtide_volume::{GIB, MIB, Nanos};
use proptest::prelude::*;

use crate::support::{settings, setup, shape, volume};

/// Transactions that change a part of the pages which they reference, of 4 GiB of data.
fn changing(modified: f64) -> Shape {
    let kind = TransactionType {
        name: "t".into(),
        share: 1.0,
        statements: 1.0,
        redo_bytes: 800.0,
        ..TransactionType::default()
    };
    let mut shape = Shape::new("test", vec![kind]);
    shape.class("hot", PageKind::Reused { pages: 60_000.0, revisits: None }, &[(0, 6.0, modified)]);
    shape.class("cold", PageKind::Reused { pages: 200_000.0, revisits: None }, &[(0, 2.0, modified)]);
    shape
}

/// The server on a machine whose memory leaves so much to the page cache.
fn with_cache(base: ModelSetup, cache_bytes: u64) -> ModelSetup {
    let pool = base.settings.buffer_pool_bytes;
    let memory = Memory { bytes: pool + pool / 10 + cache_bytes, other_bytes: 0 };
    let settings = Settings { buffered: true, ..base.settings };
    ModelSetup {
        settings,
        machine: ebbtide_twin::innodb::Machine { memory: Some(memory), ..base.machine },
        ..base
    }
}

fn base(shape: Shape, seed: u64) -> ModelSetup {
    let base = setup(shape, volume(Nanos::from_ms(1), Some(2_000), None), 24, 200.0, 8);
    ModelSetup { seed, duration: Nanos::from_secs(60), settle: Nanos::from_secs(20), ..base }
}

fn each(outcome: &ModelOutcome, count: u64) -> f64 {
    count as f64 / outcome.transactions as f64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_memory_never_gives_more_reads_and_no_page_is_lost(
        modified in 0.0_f64..1.0,
        cache_mib in 0_u64..3_000,
        seed in 0_u64..1_000,
    ) {
        // Page writes come in waves: a minute has more of them in one run than in another.
        let base = || {
            let (duration, settle) = (Nanos::from_secs(360), Nanos::from_secs(60));
            ModelSetup { duration, settle, ..base(changing(modified), seed) }
        };
        let none = run(base());
        let missed = each(&none, none.file(FileKind::DataRead).ios);
        let of = |cache_mib: u64| run(with_cache(base(), cache_mib * MIB));
        let (less, more) = (of(cache_mib), of(cache_mib + 1_000));
        for one in [&less, &more] {
            let all = each(one, one.file(FileKind::DataRead).ios + one.page_cache_reads);
            prop_assert!((all / missed - 1.0).abs() < 0.03, "{all} pages, not {missed}");
        }
        let reads = |one: &ModelOutcome| each(one, one.file(FileKind::DataRead).ios);
        prop_assert!(reads(&more) <= reads(&less) * 1.03, "{} after {}", reads(&more), reads(&less));
        prop_assert!(more.tps() >= less.tps() * 0.98, "{} after {}", more.tps(), less.tps());
    }

    #[test]
    fn a_page_cache_of_nothing_is_o_direct(modified in 0.0_f64..1.0, seed in 0_u64..1_000) {
        let figures = |one: ModelOutcome| (one.transactions, one.files, one.latency_at(0.99), one.spans);
        let direct = figures(run(base(changing(modified), seed)));
        prop_assert_eq!(figures(run(with_cache(base(changing(modified), seed), 0))), direct);
    }
}

#[test]
fn data_that_fit_the_page_cache_are_written_and_not_read() {
    let flavour = |flavour| ModelSetup { settings: settings(flavour), ..base(changing(0.5), 1) };
    for of in [Flavour::MySql80, Flavour::MariaDb105] {
        let direct = run(flavour(of));
        let cached = run(with_cache(flavour(of), 5 * GIB));
        assert_eq!(cached.file(FileKind::DataRead).ios, 0, "{of}");
        assert!(cached.tps() > 1.3 * direct.tps(), "{of}: {} after {}", cached.tps(), direct.tps());
        let written = |one: &ModelOutcome| each(one, one.file(FileKind::DataWrite).ios);
        // At one rate: a faster run changes more pages again before they are written.
        let load = ModelLoad { clients: 256, rate: Some(direct.tps() * 0.8) };
        let at_rate = |setup: ModelSetup| written(&run(ModelSetup { load, ..setup }));
        let (now, before) = (at_rate(with_cache(flavour(of), 5 * GIB)), at_rate(flavour(of)));
        assert!(now > before * 0.97, "{of}: {now} pages written, and {before} without a page cache");
    }
}

#[test]
fn pages_that_were_measured_need_the_size_of_the_data() {
    let reads = |shape: Shape| {
        let outcome = run(with_cache(base(shape, 1), 5 * GIB));
        each(&outcome, outcome.file(FileKind::DataRead).ios)
    };
    // One point of a curve says nothing of a cache.
    assert!((reads(shape(4.0, 1.0, 500.0)) - 4.0).abs() < 0.1);
    let mut known = shape(4.0, 1.0, 500.0);
    let PageKind::Observed(curve) = &mut known.classes[0].kind else { panic!("it is observed") };
    curve.data_pages = Some(300_000.0);
    assert_eq!(reads(known), 0.0);
}
