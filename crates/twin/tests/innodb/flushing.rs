//! When page writes are flushed, and what is written while nothing changes.

use ebbtide_twin::innodb::{FileKind, Flavour, ModelLoad, ModelSetup, Settings, run};
use ebbtide_volume::{
    Accounting, Array, AtomicUnit, Durability, GIB, Limits, MIB, Nanos, QuantileCurve, ServiceTimes,
};

use crate::support::{in_memory, settings, setup, shape, volume};

/// A volume without limits whose flushes take as long as its writes.
fn with_flushes(latency: Nanos) -> Array {
    let curve = QuantileCurve::constant(latency);
    let limits = Limits {
        size_bytes: 500 * GIB,
        iops: None,
        throughput: None,
        accounting: Accounting::per_io(),
        service: ServiceTimes {
            read: curve.clone(),
            write: curve.clone(),
            flush: curve,
            ..ServiceTimes::instant()
        },
        durability: Durability { atomic_unit: AtomicUnit::FourKib, volatile_cache_bytes: 0 },
    };
    Array::single(limits, Nanos::ZERO).expect("the limits are sound")
}

#[test]
fn fast_doublewrite_saves_the_flush_of_the_data_files_after_each_batch() {
    let latency = Nanos::from_ms(20);
    let written = |doublewrite_fast: bool| {
        let base = setup(shape(1.0, 4.0, 200.0), with_flushes(latency), 2_000, 20.0, 32);
        let settings = Settings { doublewrite_fast, ..settings(Flavour::MariaDb11) };
        let outcome = run(ModelSetup { settings, ..base });
        outcome.file(FileKind::DataWrite).ios as f64 / outcome.measured.as_secs_f64()
    };
    // A batch of 128 pages: copies and their flush, pages and, but for `fast`, theirs.
    for (fast, steps) in [(false, 4.0), (true, 3.0)] {
        let (got, expected) = (written(fast), 128.0 / (steps * latency.as_secs_f64()));
        assert!((got / expected - 1.0).abs() < 0.1, "fast {fast}: {got} pages a second, not {expected}");
    }
}

#[test]
fn an_idle_mysql_writes_the_dirty_pages_that_a_busy_one_would_keep() {
    println!("seed 1");
    let written = |flavour, idle_flush_pct: u32| {
        let quick = volume(Nanos::from_us(200), None, None);
        let base = setup(shape(0.0, 60.0, 4_096.0), quick, 16, 200.0, 8);
        let settings = Settings { idle_flush_pct, ..settings(flavour) };
        // One transaction in three seconds, and nothing between them.
        let load = ModelLoad { clients: 16, rate: Some(0.3) };
        let setup = ModelSetup { settings, load, cold: true, duration: Nanos::from_secs(310), ..base };
        run(setup).file(FileKind::DataWrite).ios
    };
    let (none, some) = (written(Flavour::MySql80, 0), written(Flavour::MySql80, 100));
    assert!(some > none + 1_000, "{some} pages with idle flushing, {none} without");
    assert_eq!(written(Flavour::MariaDb11, 0), written(Flavour::MariaDb11, 100), "MariaDB does not go by it");
}

/// A server whose pool holds all data.
fn with_redo(redo_mib: u64, of: Settings, iops: Option<u64>) -> ModelSetup {
    let base = setup(in_memory(), volume(Nanos::from_ms(1), iops, None), 16, 200.0, 8);
    ModelSetup { settings: Settings { redo_capacity_bytes: redo_mib * MIB, ..of }, ..base }
}

#[test]
fn the_page_cleaner_of_mariadb_sleeps_until_its_redo_log_is_seven_eighths_full() {
    println!("seed 1");
    let written = |lwm: f64, seconds: u64| {
        let of = Settings { max_dirty_pages_pct_lwm: lwm, ..settings(Flavour::MariaDb11) };
        // The log of 64 MiB has its asynchronous age after some 90 s.
        let load = ModelLoad { clients: 16, rate: Some(50.0) };
        let base = with_redo(64, of, None);
        let setup = ModelSetup { load, cold: true, duration: Nanos::from_secs(seconds), ..base };
        run(setup).file(FileKind::DataWrite).ios
    };
    assert_eq!(written(0.0, 80), 0);
    assert!(written(0.0, 180) > 1_000, "it is woken");
    assert!(written(10.0, 80) > 1_000, "with a low-water mark it writes before");
}

#[test]
fn clients_of_mariadb_that_wait_for_a_full_redo_log_wait_for_all_pages_of_a_round() {
    println!("seed 1");
    let longest_s = |io_capacity_max: u32| {
        let of = Settings { io_capacity: 200, io_capacity_max, ..settings(Flavour::MariaDb11) };
        let outcome = run(ModelSetup { duration: Nanos::from_secs(130), ..with_redo(32, of, Some(800)) });
        assert!(outcome.redo_waits > 0);
        outcome.latency_at(1.0).expect("transactions ended").as_secs_f64()
    };
    let (small, large) = (longest_s(200), longest_s(2_000));
    assert!(large > 2.0 && large > 3.0 * small, "{small} s with rounds of 200 pages, {large} s with 2,000");
}
