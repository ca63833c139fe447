//! Scans: what read-ahead makes of their I/O, and that they leave the hot pages where they are.

use ebbtide_twin::innodb::{
    FileKind, Flavour, ModelOutcome, ModelSetup, PageKind, Settings, Shape, TransactionType, run,
};
use ebbtide_volume::{KIB, MIB, Nanos};
use proptest::prelude::*;

use crate::support::{settings, setup, volume};

fn reader(types: &[(&str, f64)]) -> Shape {
    let kind = |&(name, share): &(&str, f64)| TransactionType {
        name: name.into(),
        share,
        statements: 1.0,
        ..TransactionType::default()
    };
    Shape::new("test", types.iter().map(kind).collect())
}

/// A table of 160 GiB, of which each transaction reads a run of pages.
fn scanning(run: f64) -> Shape {
    let mut shape = reader(&[("scan", 1.0)]);
    let class = shape.class("table", PageKind::Reused { pages: 1e7, revisits: None }, &[]);
    shape.scan(class, 0, run, run);
    shape
}

fn read(outcome: &ModelOutcome) -> (f64, f64) {
    let file = outcome.file(FileKind::DataRead);
    (file.ios as f64 / outcome.transactions as f64, file.bytes as f64 / outcome.transactions as f64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_read_page_by_page_for_an_extent_and_then_by_extents(extents in 2_u32..40) {
        let run_of = f64::from(extents) * 64.0;
        let base = setup(scanning(run_of), volume(Nanos::from_us(500), None, None), 4, 100.0, 8);
        let (ios, bytes) = read(&run(base));
        let expected = 64.0 + f64::from(extents - 1) * 4.0;
        prop_assert!((ios / expected - 1.0).abs() < 0.06, "{ios} I/Os of {run_of} pages, not {expected}");
        let expected = run_of * 16.0 * KIB as f64;
        prop_assert!((bytes / expected - 1.0).abs() < 0.06, "{bytes} bytes, not {expected}");
    }
}

#[test]
fn a_range_that_is_shorter_than_an_extent_is_read_page_by_page() {
    println!("seed 1");
    let base = setup(scanning(20.0), volume(Nanos::from_us(500), None, None), 4, 100.0, 8);
    let (ios, bytes) = read(&run(base));
    assert!((ios / 20.0 - 1.0).abs() < 0.05, "{ios}");
    assert!((bytes / ios / (16.0 * KIB as f64) - 1.0).abs() < 1e-9);
}

#[test]
fn a_scan_beside_a_load_costs_it_few_of_its_hot_pages() {
    println!("seed 1");
    // 15,000 hot pages in a pool of 24,500, which a scan reads through every 13 of its transactions.
    let of = |scans: bool, old_blocks_pct: f64| {
        let mut shape = reader(&[("point", 0.99), ("scan", 0.01)]);
        shape.class("hot", PageKind::Reused { pages: 15_000.0, revisits: None }, &[(0, 10.0, 0.0)]);
        let table = shape.class("table", PageKind::Reused { pages: 1e7, revisits: None }, &[]);
        if scans {
            shape.scan(table, 1, 1_920.0, 1_920.0);
        }
        let base = setup(shape, volume(Nanos::from_us(500), None, None), 16, 500.0, 8);
        let settings =
            Settings { buffer_pool_bytes: 400 * MIB, old_blocks_pct, ..settings(Flavour::MySql84) };
        let outcome = run(ModelSetup { settings, ..base });
        // Of a hundred transactions one scans: 64 pages and 29 extents.
        let scanned = if scans { 0.01 * (64.0 + 29.0 * 4.0) } else { 0.0 };
        read(&outcome).0 - scanned
    };
    let (alone, with, plain) = (of(false, 37.0), of(true, 37.0), of(true, 100.0));
    assert!(alone < 0.1, "{alone} reads without a scan");
    assert!(with < 1.5, "{with} reads beside a scan");
    assert!(plain > with * 2.0, "{plain} reads with a list without a midpoint, {with} with one");
}
