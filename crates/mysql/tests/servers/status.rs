//! The status of real servers under load.

use std::ops::Range;
use std::time::Duration;

use ebbtide_load::Session;
use ebbtide_mysql::status::{Counters, Observer, Rates, StatusSampler};
use ebbtide_mysql::{Binary, Flavour, Server, Settings, Version};

use crate::support::{Bench, count, fill, on_each_server, start};

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

/// Deletes rows all over a table that is larger than the pool, each in a transaction. Those of a range
/// are there once.
fn work(server: &Server, rows: Range<u32>) {
    let mut session = server.session().unwrap();
    for id in rows {
        let row = id.wrapping_mul(7919) % 60_000;
        session
            .execute(&format!("UPDATE test.t SET pad = REVERSE(CONCAT(pad, '')) WHERE id = {row}"))
            .unwrap();
        session.execute(&format!("DELETE FROM test.t WHERE id = {}", 59_999 - row)).unwrap();
    }
}

fn rates_of(server: &Server, binary: &Binary, rows: Range<u32>) -> Rates {
    let mut sampler = StatusSampler::open(server.session().unwrap(), binary).unwrap();
    let before = sampler.sample().unwrap();
    work(server, rows);
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
        ("doublewrite_batches", rates.doublewrite_batches),
        ("data_bytes", rates.data_bytes),
        ("write_statements", rates.write_statements),
        ("redo_bytes", rates.redo_bytes),
        ("redo_writes", rates.redo_writes),
        ("syncs", rates.syncs),
        ("binlog_bytes", rates.binlog_bytes),
    ]
}

on_each_server! {
    fn what_a_load_does_to_a_server_shows_in_its_rates_for_under_a_hundredth_of_a_core(bench) {
        let server = small(&bench, &[("performance_schema", "on")]);
        fill(&server, 60_000);
        let rates = rates_of(&server, &bench.binary, 0..600);
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
            ("commits", rates.commits),
            ("read_statements", rates.read_statements),
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
        let rates = rates_of(&server, &bench.binary, 0..300);
        for (name, rate) in all(&rates) {
            assert!(rate.is_some_and(|rate| rate > 0.0), "{name}: {rates:?}");
        }
        assert_eq!([rates.redo_wait, rates.data_wait, rates.binlog_wait, rates.redo_sync_us], [None; 4]);
        assert_eq!([rates.doublewrite_wait, rates.doublewrite_mutex_wait], [None; 2]);
        server.kill().unwrap();
    }

    fn waits_for_the_doublewrite_buffer_are_reported_where_the_server_times_them_and_are_else_none(bench) {
        let server = small(&bench, &[("performance_schema", "on")]);
        fill(&server, 60_000);
        let rates = rates_of(&server, &bench.binary, 0..300);
        assert_eq!(rates.doublewrite_mutex_wait, None, "{rates:?}");
        let version = bench.binary.version;
        let has_files = bench.binary.flavour != Flavour::MariaDb && version >= Version::new(8, 0, 20);
        assert_eq!(rates.doublewrite_wait.is_some_and(|threads| threads > 0.0), has_files, "{rates:?}");
        let mut session = server.session().unwrap();
        let all = "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES'";
        session.execute(&format!("{all} WHERE NAME LIKE 'wait/synch/mutex/innodb/%dblwr_mutex'")).unwrap();
        let rates = rates_of(&server, &bench.binary, 300..600);
        assert!(rates.doublewrite_mutex_wait.is_some_and(|threads| threads > 0.0), "{rates:?}");
        let off = "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO'";
        session.execute(&format!("{off} WHERE NAME = 'global_instrumentation'")).unwrap();
        let rates = rates_of(&server, &bench.binary, 600..900);
        let waits = [rates.data_wait, rates.doublewrite_wait, rates.doublewrite_mutex_wait];
        assert_eq!(waits, [None; 3], "they do not change, which is not zero: {rates:?}");
        server.kill().unwrap();
    }

    fn without_the_doublewrite_buffer_its_counters_stand_still(bench) {
        let server = small(&bench, &[("doublewrite", "off")]);
        fill(&server, 60_000);
        let rates = rates_of(&server, &bench.binary, 0..300);
        assert_eq!([rates.doublewrite_pages, rates.doublewrite_batches], [Some(0.0); 2], "{rates:?}");
        assert!(rates.page_writes.is_some_and(|pages| pages > 0.0), "{rates:?}");
        server.kill().unwrap();
    }

    fn a_server_that_is_looked_at_as_it_is_answers_any_account_and_is_not_changed(bench) {
        let server = small(&bench, &[("performance_schema", "on")]);
        fill(&server, 60_000);
        let mut session = server.session().unwrap();
        session.execute("CREATE USER looker IDENTIFIED BY 'of-the-test'").unwrap();
        let column = if bench.binary.flavour == Flavour::MariaDb { "ENABLED" } else { "STATUS" };
        let metrics = format!("SELECT NAME, {column} FROM INFORMATION_SCHEMA.INNODB_METRICS");
        let before = session.rows(&metrics).unwrap();
        let mut target = server.target();
        (target.user, target.password) = ("looker".into(), "of-the-test".into());
        let looker = Session::open_without_database(&target, &target.endpoints[0]).unwrap();
        let mut sampler = StatusSampler::open_as_it_is(looker, bench.binary.flavour).unwrap();
        let first = sampler.sample().unwrap();
        work(&server, 0..300);
        let rates = Counters::between(&first, &sampler.sample().unwrap());
        for rate in [rates.page_writes, rates.doublewrite_pages, rates.doublewrite_batches] {
            assert!(rate.is_some_and(|rate| rate > 0.0), "{rates:?}");
        }
        assert_eq!([rates.adaptive_flushed, rates.data_wait], [None; 2], "not for this account: {rates:?}");
        assert_eq!(session.rows(&metrics).unwrap(), before);
        server.kill().unwrap();
    }

    fn the_mean_length_of_a_row_is_that_of_innodbs_statistics(bench) {
        let server = small(&bench, &[]);
        let rows = || {
            let mut observer = Observer::open(server.session().unwrap(), "a test".into()).unwrap();
            observer.survey(Duration::from_secs(10)).unwrap();
            observer.first().tables.as_ref().unwrap().rows
        };
        assert_eq!(rows(), None, "there is no table of a user");
        fill(&server, 20_000);
        server.session().unwrap().rows("ANALYZE TABLE test.t").unwrap();
        // MySQL forgets the statistics of a table that no one has open.
        assert_eq!(count(&server), 20_000);
        let found = rows().unwrap();
        assert!((15_000..25_000).contains(&found.rows), "{found:?}");
        assert!((220.0..330.0).contains(&found.row_bytes()), "200 characters and 24 bytes: {found:?}");
        server.kill().unwrap();
    }

    fn a_longer_look_counts_more_tables(bench) {
        let server = small(&bench, &[]);
        let mut session = server.session().unwrap();
        session.execute("CREATE DATABASE many").unwrap();
        for number in 0..210 {
            session.execute(&format!("CREATE TABLE many.t{number} (a INT PRIMARY KEY) ENGINE = InnoDB")).unwrap();
        }
        let seen = |seconds| {
            let mut observer = Observer::open(server.session().unwrap(), "a test".into()).unwrap();
            observer.survey(Duration::from_secs(seconds)).unwrap();
            let why = observer.first().not_seen.iter().find(|one| one.what == "sizes of tables");
            let tables = observer.first().tables.as_ref().map(|tables| tables.engines[0].tables);
            (tables, why.map(|one| one.why.clone()))
        };
        let (none, why) = seen(1);
        assert_eq!((none, why.unwrap().as_str()), (None, "the server has over 200 tables, which are not counted in this \
            interval, to spare the server; --interval=50s counts up to 10000"));
        assert_eq!(seen(2), (Some(210), None));
        server.kill().unwrap();
    }
}

/// A sample costs the server and us little more than the shortest way to read its status.
fn assert_cheap(server: &Server, binary: &Binary) {
    let mut sampler = StatusSampler::open(server.session().unwrap(), binary).unwrap();
    let mut session = server.session().unwrap();
    let samples = 200;
    // What the server does besides is in both.
    let cost = |work: &mut dyn FnMut()| {
        let (ours, theirs) = (own_cpu(), server.cpu_time());
        (0..samples).for_each(|_| work());
        ((own_cpu() - ours) / samples, (server.cpu_time() - theirs) / samples)
    };
    let sample = cost(&mut || drop(sampler.sample().unwrap()));
    let least = cost(&mut || drop(session.rows("SHOW GLOBAL STATUS").unwrap()));
    println!(
        "{}: CPU of server and client: a sample {sample:?}, SHOW GLOBAL STATUS {least:?}",
        binary.name()
    );
    assert!(sample.0 + sample.1 < 8 * (least.0 + least.1), "{sample:?} {least:?}");
}

/// CPU time of this thread.
fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap())
}
