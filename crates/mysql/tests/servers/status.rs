//! The status of real servers under load.

use std::time::{Duration, Instant};

use ebbtide_mysql::status::{Counters, Rates, Sampler};
use ebbtide_mysql::{Binary, Flavour, Server, Settings};

use crate::support::{Bench, fill, on_each_server, start};

/// A small pool and a small redo log, so that a little work moves everything.
fn small(bench: &Bench, more: &[(&str, &str)]) -> Server {
    let mut plan = bench.plan();
    let mut settings = Settings::new();
    let base = [("buffer_pool_size", "8MiB"), ("redo_capacity", "8MiB"), ("log_bin", "on")];
    for (name, text) in base.iter().chain(more) {
        settings.set(name, text).unwrap();
    }
    plan.settings = settings;
    start(&plan)
}

/// Updates rows all over a table that is larger than the pool, each in a transaction.
fn work(server: &Server, statements: u32) {
    let mut session = server.session().unwrap();
    for id in 0..statements {
        let row = id.wrapping_mul(7919) % 60_000;
        session
            .execute(&format!("UPDATE test.t SET pad = REVERSE(CONCAT(pad, '')) WHERE id = {row}"))
            .unwrap();
        session.execute(&format!("DELETE FROM test.t WHERE id = {}", 59_999 - row)).unwrap();
    }
}

fn rates_of(server: &Server, binary: &Binary, statements: u32) -> Rates {
    let mut sampler = Sampler::open(server.session().unwrap(), binary).unwrap();
    let before = sampler.sample().unwrap();
    work(server, statements);
    let after = sampler.sample().unwrap();
    Counters::between(&before, &after)
}

fn all(rates: &Rates) -> Vec<(&'static str, Option<f64>)> {
    vec![
        ("checkpoint_age", rates.checkpoint_age),
        ("checkpoint_age_max", rates.checkpoint_age_max),
        ("data_pages", rates.data_pages),
        ("page_reads", rates.page_reads),
        ("page_requests", rates.page_requests),
        ("page_writes", rates.page_writes),
        ("doublewrite_pages", rates.doublewrite_pages),
        ("redo_bytes", rates.redo_bytes),
        ("syncs", rates.syncs),
        ("binlog_bytes", rates.binlog_bytes),
    ]
}

on_each_server! {
    fn what_a_load_does_to_a_server_shows_in_its_rates_for_under_a_hundredth_of_a_core(bench) {
        let server = small(&bench, &[("performance_schema", "on")]);
        fill(&server, 60_000);
        let rates = rates_of(&server, &bench.binary, 600);
        for (name, rate) in all(&rates) {
            assert!(rate.is_some_and(|rate| rate > 0.0), "{name}: {rates:?}");
        }
        for (name, rate) in [
            ("dirty_pages", rates.dirty_pages),
            ("history_length", rates.history_length),
            ("log_waits", rates.log_waits),
            ("row_lock_waits", rates.row_lock_waits),
            ("wait_free", rates.wait_free),
            ("threads_running", rates.threads_running),
            ("adaptive_flushed", rates.adaptive_flushed),
            ("sync_flushed", rates.sync_flushed),
            ("neighbour_flushed", rates.neighbour_flushed),
        ] {
            assert!(rate.is_some(), "{name}: {rates:?}");
        }
        let flushed = rates.lru_flushed.unwrap() + rates.list_flushed.unwrap();
        assert!(flushed > 0.0, "{rates:?}");
        // What is between them is pages counted before they are written, which are many in half a second,
        // and single pages that a query flushed for want of a free one.
        let written = rates.page_writes.unwrap();
        assert!((0.75..1.33).contains(&(flushed / written)), "{flushed} of {written}: {rates:?}");
        assert!(rates.checkpoint_age.unwrap() <= 8.0 * 1024.0 * 1024.0, "{rates:?}");
        assert!(rates.checkpoint_age_max.unwrap() <= 8.0 * 1024.0 * 1024.0, "{rates:?}");
        assert!(rates.data_wait.is_some_and(|threads| threads > 0.0), "{rates:?}");
        assert!(rates.binlog_wait.is_some_and(|threads| threads > 0.0), "{rates:?}");
        let redo = [rates.redo_wait, rates.redo_sync_us, rates.redo_syncs, rates.data_syncs];
        if bench.binary.flavour == Flavour::MariaDb {
            // Neither counted nor instrumented since 10.8: none, not a zero.
            assert_eq!(redo, [None; 4], "{rates:?}");
        } else {
            assert!(redo.iter().all(|rate| rate.is_some_and(|rate| rate > 0.0)), "{rates:?}");
        }
        assert_cheap(&server, &bench.binary);
        server.kill().unwrap();
    }

    fn without_the_performance_schema_its_figures_are_none_and_the_others_stay(bench) {
        let server = small(&bench, &[("performance_schema", "off")]);
        fill(&server, 60_000);
        let rates = rates_of(&server, &bench.binary, 300);
        for (name, rate) in all(&rates) {
            assert!(rate.is_some_and(|rate| rate > 0.0), "{name}: {rates:?}");
        }
        assert_eq!([rates.redo_wait, rates.data_wait, rates.binlog_wait, rates.redo_sync_us], [None; 4]);
        server.kill().unwrap();
    }
}

/// A sample costs the server and us under a hundredth of a core a second.
fn assert_cheap(server: &Server, binary: &Binary) {
    let mut sampler = Sampler::open(server.session().unwrap(), binary).unwrap();
    let samples = 200;
    let (ours, theirs, began) = (own_cpu(), server.cpu_time(), Instant::now());
    for _ in 0..samples {
        sampler.sample().unwrap();
    }
    let took = began.elapsed() / samples;
    // What the server does besides is in it, so that the figure is an upper bound.
    let (ours, theirs) = ((own_cpu() - ours) / samples, (server.cpu_time() - theirs) / samples);
    println!("{}: a sample takes {took:?}; CPU: server {theirs:?}, client {ours:?}", binary.name());
    assert!(ours + theirs < Duration::from_millis(10), "{ours:?} {theirs:?}");
}

/// CPU time of this thread.
fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap())
}
