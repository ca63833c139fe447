//! The model of InnoDB against analytic results, and what must hold of every run of it.

mod background;
mod calibration;
mod flushing;
mod generated;
mod mva;
mod page_cache;
mod points;
mod properties;
mod scans;
mod statements;
mod support;
mod volumes;

use ebbtide_twin::innodb::{
    Costs, FileKind, FileSystem, Flavour, Limiter, ModelLoad, ModelOutcome, ModelSetup, Settings, run,
};
use ebbtide_volume::{MIB, Nanos};
use support::{in_memory, one_read, settings, setup, shape, volume};

fn close(got: f64, expected: f64, within: f64) {
    println!("seed 1");
    assert!((got / expected - 1.0).abs() < within, "{got} is not within {within} of {expected}");
}

const MS: Nanos = Nanos::from_ms(1);

#[test]
fn clients_on_processors_alone_follow_exact_mva() {
    // Reads of 2 ms on average that wait for no limit, then exponential work on four processors.
    for clients in [1, 2, 4, 6, 10, 24] {
        let outcome = run(setup(one_read(), volume(Nanos::from_ms(2), None, None), clients, 3_000.0, 4));
        let rate = |n: usize| n.min(4) as f64;
        close(outcome.tps(), mva::throughput(clients as usize, 0.002, 0.003, rate), 0.02);
    }
}

#[test]
fn one_client_takes_the_sum_of_all_demands() {
    // 4 reads and the redo's write of 1 ms each, and 1 ms of work: 6 ms.
    let outcome = run(setup(shape(4.0, 0.0, 2_000.0), volume(MS, None, None), 1, 1_000.0, 4));
    close(outcome.tps(), 1_000.0 / 6.0, 0.02);
    assert_eq!(outcome.limiter().0, Limiter::ReadLatency);
}

#[test]
fn a_volume_at_its_iops_limits_as_the_bound_says() {
    // 5 reads, 3 page writes, and their copies, which the volume merges to 256 KiB: 5 + 3 + 3/16 operations.
    let outcome = run(setup(shape(5.0, 3.0, 200.0), volume(MS, Some(2_000), None), 64, 100.0, 8));
    let log = outcome.file(FileKind::Redo).operations as f64 / outcome.transactions as f64;
    close(outcome.tps(), 2_000.0 / (8.0 + 3.0 / 16.0 + log), 0.02);
    close(outcome.iops(), 2_000.0, 0.01);
    assert_eq!(outcome.limiter().0, Limiter::VolumeIops);
}

#[test]
fn a_volume_at_its_throughput_limits_as_the_bound_says() {
    let outcome = run(setup(shape(5.0, 3.0, 200.0), volume(MS, None, Some(60)), 64, 100.0, 8));
    let redo = outcome.file(FileKind::Redo).bytes as f64 / outcome.transactions as f64;
    close(outcome.tps(), 60.0 * MIB as f64 / (11.0 * 16_384.0 + redo), 0.02);
    assert_eq!(outcome.limiter().0, Limiter::VolumeThroughput);
}

#[test]
fn processors_that_are_all_busy_limit_as_the_bound_says() {
    let outcome = run(setup(shape(0.0, 0.0, 0.0), volume(MS, None, None), 64, 2_000.0, 4));
    close(outcome.tps(), 2_000.0, 0.02);
    assert_eq!(outcome.limiter().0, Limiter::Processors);
}

#[test]
fn an_open_load_below_the_knee_is_carried_and_above_it_latency_grows_without_bound() {
    let open = |rate| {
        let base = setup(shape(4.0, 0.0, 0.0), volume(MS, Some(2_000), None), 200, 100.0, 4);
        run(ModelSetup { load: ModelLoad { clients: 200, rate: Some(rate) }, ..base })
    };
    let (below, above) = (open(400.0), open(600.0));
    close(below.tps(), 400.0, 0.03);
    assert_eq!(below.limiter().0, Limiter::Load);
    close(above.tps(), 500.0, 0.03);
    assert_eq!((below.late, below.share_carried()), (0, 1.0));
    close(above.share_carried(), 500.0 / 600.0, 0.05);
    // Here all that are late are in connections, of which there are enough for the whole run.
    let slow = |rate| {
        let base = setup(shape(4.0, 0.0, 0.0), volume(MS, Some(200), None), 20_000, 100.0, 4);
        run(ModelSetup { load: ModelLoad { clients: 20_000, rate: Some(rate) }, ..base }).share_carried()
    };
    assert!((slow(40.0) - 1.0).abs() < 1e-9 && slow(60.0) < 0.97, "{} {}", slow(40.0), slow(60.0));
    let p50 = |outcome: &ModelOutcome| outcome.latency_at(0.5).unwrap();
    assert!(p50(&above) > Nanos(p50(&below).0 * 20), "{} {}", p50(&above), p50(&below));
}

#[test]
fn commits_join_groups_while_the_log_is_written() {
    // 32 clients that only commit: with a write of 5 ms, a group has what arrived during the one before.
    let outcome = run(setup(shape(0.0, 0.0, 1_000.0), volume(Nanos::from_ms(5), None, None), 32, 50.0, 8));
    let group = outcome.transactions as f64 / outcome.file(FileKind::Redo).ios as f64;
    assert!((14.0..=18.0).contains(&group), "{group}");
    assert_eq!(outcome.limiter().0, Limiter::CommitLatency);
}

#[test]
fn a_binary_log_synced_for_each_group_adds_its_writes_and_its_time() {
    let with = |log_bin, sync_binlog, file_system| {
        let mut shape = shape(0.0, 0.0, 1_000.0);
        shape.types[0].binlog_bytes = 1_000.0;
        let base = setup(shape, volume(MS, None, None), 1, 100.0, 8);
        let settings = Settings { log_bin, sync_binlog, file_system, ..settings(Flavour::MySql80) };
        run(ModelSetup { settings, ..base })
    };
    let off = with(false, 1, FileSystem::Ext4);
    close(off.tps(), 1_000.0 / 1.1, 0.02);
    // Redo, the binary log, and the journal of the file system: one after the other. ext4 writes its journal in two steps.
    close(with(true, 1, FileSystem::Ext4).tps(), 1_000.0 / 4.1, 0.02);
    close(with(true, 1, FileSystem::Xfs).tps(), 1_000.0 / 3.1, 0.02);
    let unsynced = with(true, 0, FileSystem::Ext4);
    close(unsynced.tps(), off.tps(), 0.02);
    assert!(unsynced.file(FileKind::Binlog).bytes > 0);
}

#[test]
fn a_slow_volume_takes_turns_between_the_redo_log_and_each_step_of_the_binary_log() {
    // Four clients, and 100 operations a second. The data of a binary log's group and the journal take a turn each, and a write of
    // the redo log may follow each of them: more redo groups than groups of the binary log. Written at once, they would be as many.
    let mut shape = shape(0.0, 0.0, 1_000.0);
    shape.types[0].binlog_bytes = 500.0;
    let base = setup(shape, volume(Nanos::from_us(100), Some(100), None), 4, 10.0, 8);
    let settings = Settings { log_bin: true, file_system: FileSystem::Xfs, ..settings(Flavour::MySql80) };
    let outcome = run(ModelSetup { settings, duration: Nanos::from_secs(300), ..base });
    let of = |kind| outcome.file(kind).ios as f64;
    let (redo, binlog) = (of(FileKind::Redo), of(FileKind::Binlog) / 2.0);
    assert!((1.2..2.0).contains(&(redo / binlog)), "{redo} redo groups, {binlog} of the binary log");
    close(outcome.tps() * (redo + 2.0 * binlog) / outcome.transactions as f64, 100.0, 0.02);
}

#[test]
fn a_small_redo_log_writes_hot_pages_more_often_than_a_large_one() {
    let writes = |redo_mib: u64| {
        let base = hot(redo_mib);
        let outcome = run(base);
        outcome.file(FileKind::DataWrite).ios as f64 / outcome.transactions as f64
    };
    let (small, large) = (writes(32), writes(512));
    assert!(small > large * 1.5, "{small} {large}");
}

/// A pool that holds all data, of which each transaction changes ten pages.
fn hot(redo_mib: u64) -> ModelSetup {
    let base = setup(in_memory(), volume(MS, Some(20_000), None), 16, 1_000.0, 8);
    let settings = Settings { redo_capacity_bytes: redo_mib * MIB, ..settings(Flavour::MySql80) };
    ModelSetup { settings, duration: Nanos::from_secs(180), settle: Nanos::from_secs(120), ..base }
}

#[test]
fn transactions_wait_for_a_full_redo_log_on_every_flavour() {
    for (flavour, name) in Flavour::ALL {
        let base = hot(32);
        let slow = volume(MS, Some(800), None);
        let settings = Settings { redo_capacity_bytes: 32 * MIB, ..settings(flavour) };
        let outcome = run(ModelSetup { settings, volumes: slow.into(), ..base });
        assert!(outcome.redo_waits > 0, "{name} never waited");
        assert!(outcome.transactions > 1_000, "{name} stood still: {}", outcome.transactions);
    }
}

#[test]
fn doublewrite_costs_little_of_the_iops_and_a_third_of_the_throughput() {
    let with = |doublewrite, iops, mib_s| {
        let base = setup(shape(1.0, 1.0, 200.0), volume(MS, iops, mib_s), 64, 100.0, 8);
        let settings = Settings { doublewrite, doublewrite_pages: 128, ..settings(Flavour::MySql84) };
        run(ModelSetup { settings, ..base }).tps()
    };
    let on_iops = with(false, Some(2_000), None) / with(true, Some(2_000), None);
    assert!((1.01..1.12).contains(&on_iops), "{on_iops}");
    let on_throughput = with(false, None, Some(60)) / with(true, None, Some(60));
    assert!((1.4..1.7).contains(&on_throughput), "{on_throughput}");
}

/// A server that writes as many pages as it can on a volume without limits, so that only latency and batches count.
fn writing(flavour: Flavour, latency: Nanos, doublewrite: bool) -> f64 {
    let base = setup(shape(1.0, 4.0, 200.0), volume(latency, None, None), 2_000, 20.0, 32);
    let settings = Settings { doublewrite, ..settings(flavour) };
    let outcome = run(ModelSetup { settings, ..base });
    outcome.file(FileKind::DataWrite).ios as f64 / outcome.measured.as_secs_f64()
}

#[test]
fn mariadb_writes_one_doublewrite_batch_after_the_other() {
    for (flavour, latency_ms) in [(Flavour::MariaDb105, 20), (Flavour::MariaDb11, 50)] {
        let latency = Nanos::from_ms(latency_ms);
        // A batch of 128 pages is written to the doublewrite buffer, then to the data files.
        close(writing(flavour, latency, true), 128.0 / (2.0 * latency.as_secs_f64()), 0.1);
    }
    // 120 pages of MySQL 5.7, the same way, and those that clients write who find no clean page; 8.4 writes several batches at a time.
    let slow = Nanos::from_ms(50);
    let written = writing(Flavour::MySql57, slow, true);
    assert!((1_150.0..1_500.0).contains(&written), "{written}");
    assert!(writing(Flavour::MySql84, slow, true) > 2_400.0);
}

#[test]
fn without_doublewrite_batches_no_longer_limit_page_writes() {
    let slow = Nanos::from_ms(50);
    let written = writing(Flavour::MariaDb11, slow, false);
    assert!(written > 3.0 * 1_280.0, "{written}");
}

#[test]
fn clients_that_think_send_as_many_transactions_as_littles_law_says() {
    println!("seed 1");
    let base = setup(shape(0.0, 0.0, 0.0), volume(Nanos::from_us(100), None, None), 32, 0.0, 8);
    let costs = Costs { cpu_us: 1_000.0, think_us: 100_000.0, ..Costs::default() };
    let outcome = run(ModelSetup { costs, ..base });
    // 32 clients, each with 1 ms of work after 100 ms.
    let tps = outcome.tps();
    assert!((tps / (32.0 / 0.101) - 1.0).abs() < 0.02, "{tps}");
}
