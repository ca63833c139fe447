//! Purge and the change buffer: what they read and write beside the clients.

use ebbtide_twin::innodb::{
    FileKind, Flavour, ModelOutcome, ModelSetup, PageKind, Pool, Settings, Shape, TransactionType,
    pages_per_transaction, run,
};
use ebbtide_volume::{MIB, Nanos};
use proptest::prelude::*;

use crate::support::{settings, setup, volume};

const PAGES: f64 = 100_000.0;

fn writer() -> Shape {
    let kind = TransactionType {
        name: "t".into(),
        share: 1.0,
        statements: 1.0,
        redo_bytes: 2_000.0,
        ..TransactionType::default()
    };
    Shape::new("test", vec![kind])
}

fn pages() -> PageKind {
    PageKind::Reused { pages: PAGES, revisits: None }
}

/// Transactions that each delete rows on four pages of a table.
fn deleting(purged: bool) -> Shape {
    let mut shape = writer();
    let class = shape.class("rows", pages(), &[(0, 4.0, 1.0)]);
    if purged {
        shape.purge(class, 0, 4.0);
    }
    shape
}

/// A server whose purge reads with 32 threads, on a volume that is limited to so many IOPS.
fn server(shape: Shape, clients: u32, pool_mib: u64, iops: Option<u64>) -> ModelSetup {
    let base = setup(shape, volume(Nanos::from_ms(1), iops, None), clients, 4_000.0, 8);
    let settings = Settings {
        buffer_pool_bytes: pool_mib * MIB,
        buffer_pool_instances: 1,
        lru_scan_depth: 512,
        purge_threads: 32,
        ..settings(Flavour::MySql84)
    };
    ModelSetup { settings, ..base }
}

fn outcome(shape: Shape, clients: u32, pool_mib: u64) -> ModelOutcome {
    run(server(shape, clients, pool_mib, None))
}

fn reads(outcome: &ModelOutcome) -> f64 {
    outcome.file(FileKind::DataRead).ios as f64 / outcome.transactions as f64
}

#[test]
fn purge_reads_again_what_has_left_the_pool_while_transactions_ran() {
    println!("seed 1");
    // 800 transactions run at a time, and a page stays for 370.
    let (with, without) = (outcome(deleting(true), 800, 24), outcome(deleting(false), 800, 24));
    assert!(reads(&with) > reads(&without) + 1.0, "{} and {}", reads(&with), reads(&without));
}

#[test]
fn purge_reads_nothing_where_its_pages_are_still_there() {
    println!("seed 1");
    let (with, without) = (outcome(deleting(true), 8, 400), outcome(deleting(false), 8, 400));
    assert!((reads(&with) / reads(&without) - 1.0).abs() < 0.02, "{} and {}", reads(&with), reads(&without));
    assert!(with.unpurged < 1_000, "{} wait to be purged", with.unpurged);
}

#[test]
fn the_history_grows_where_the_clients_use_all_iops_that_purge_needs() {
    println!("seed 1");
    let outcome = run(server(deleting(true), 800, 24, Some(2_000)));
    assert!(outcome.unpurged > outcome.transactions / 4, "{} of {}", outcome.unpurged, outcome.transactions);
}

#[test]
fn undo_pages_are_written_for_each_turn_of_a_small_redo_log() {
    println!("seed 1");
    let written = |undo| {
        let mut shape = writer();
        shape.class("rows", PageKind::Reused { pages: 1.0, revisits: None }, &[(0, 1.0, 1.0)]);
        if undo {
            shape.undo(0.3);
        }
        let base = setup(shape, volume(Nanos::from_us(200), Some(20_000), None), 32, 200.0, 8);
        let settings = Settings { redo_capacity_bytes: 16 * MIB, ..settings(Flavour::MySql80) };
        let outcome = run(ModelSetup { settings, ..base });
        outcome.file(FileKind::DataWrite).ios
    };
    let (with, without) = (written(true), written(false));
    assert!(with > 10 * without.max(100), "{with} and {without}");
}

/// Transactions that change four entries of a secondary index.
fn indexing(secondary: bool) -> Shape {
    let mut shape = writer();
    if secondary {
        shape.secondary("index", pages(), &[(0, 4.0, 1.0)]);
    } else {
        shape.class("index", pages(), &[(0, 4.0, 1.0)]);
    }
    shape
}

#[test]
fn the_change_buffer_reads_less_on_servers_that_have_it() {
    println!("seed 1");
    let of = |flavour| {
        let base = setup(indexing(true), volume(Nanos::from_ms(1), Some(3_000), None), 32, 100.0, 8);
        let settings = Settings { buffer_pool_bytes: 400 * MIB, ..settings(flavour) };
        let outcome = run(ModelSetup { settings, ..base });
        (reads(&outcome), outcome.tps())
    };
    let (none, slow) = of(Flavour::MySql84);
    for flavour in [Flavour::MySql57, Flavour::MySql80] {
        let (buffered, fast) = of(flavour);
        assert!(
            buffered < none / 3.0 && fast > slow * 2.0,
            "{flavour}: {buffered} of {none} reads, {fast} tps"
        );
    }
    assert!((of(Flavour::MariaDb11).0 / none - 1.0).abs() < 0.1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_change_buffer_never_adds_reads_and_runs_count_what_the_formula_says(
        changed in 0.0_f64..1.0,
        pool_mib in 64_u64..1_200,
    ) {
        let mut shape = writer();
        shape.secondary("index", pages(), &[(0, 4.0, changed)]);
        let settings = Settings { buffer_pool_bytes: pool_mib * MIB, ..settings(Flavour::MySql80) };
        let pool = Pool::of(&settings, &shape.classes);
        let (plain, _) = pages_per_transaction(&shape.classes, &Pool::plain(settings.pool_pages()));
        let (expected, _) = pages_per_transaction(&shape.classes, &pool);
        prop_assert!(expected <= plain * 1.000_1, "{expected} reads with it, {plain} without");
        let base = setup(shape, volume(Nanos::from_ms(1), Some(6_000), None), 16, 100.0, 8);
        let outcome = run(ModelSetup { settings, ..base });
        let counted = reads(&outcome);
        prop_assert!((counted - expected).abs() < 0.02 + 0.05 * expected, "{counted} reads, not {expected}");
    }
}
