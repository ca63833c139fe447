//! Every workload against a real server.

use std::time::{Duration, Instant};

use ebbtide_load::{Arrival, Cancel, ClientOptions, Distribution, Ended, RunOptions, Session, Workload};

use crate::support::{Server, schema};

fn options(workload: Workload) -> RunOptions {
    RunOptions {
        schema: schema(3, 1_000),
        clients: ClientOptions {
            connections: 4,
            duration: Some(Duration::from_millis(600)),
            ..ClientOptions::default()
        },
        ..RunOptions::new(workload)
    }
}

#[test]
fn every_workload_runs_prepared_and_as_text_with_sysbenchs_number_of_statements() {
    let Some(server) = Server::start() else { return };
    server.prepare(&options(Workload::ReadWrite));
    for prepared in [true, false] {
        for (workload, statements) in [
            (Workload::PointSelect, 1),
            (Workload::ReadOnly, 16),
            (Workload::ReadWrite, 20),
            (Workload::WriteOnly, 6),
            (Workload::Insert, 1),
            (Workload::UpdateIndex, 1),
            (Workload::UpdateNonIndex, 1),
            (Workload::KeyValue, 1),
            (Workload::Delete, 1),
        ] {
            let report = server.run(&RunOptions {
                clients: ClientOptions { prepared, ..options(workload).clients },
                ..options(workload)
            });
            let (totals, errors) = (report.totals, &report.errors);
            assert_eq!(report.ended, Ended::Time, "{workload}: {errors:?}");
            assert!(totals.events > 20, "{workload}: {totals:?}");
            // A transaction that met a deadlock has sent some of its statements twice.
            let least = totals.events * statements;
            assert!(
                (least..=least + 20 * totals.errors).contains(&totals.queries()),
                "{workload}: {totals:?}"
            );
            assert_eq!(report.response.count, totals.events);
        }
    }
}

#[test]
fn a_range_returns_its_rows_and_an_update_changes_one() {
    let Some(server) = Server::start() else { return };
    let options = RunOptions {
        distribution: Distribution::Uniform,
        clients: ClientOptions {
            connections: 1,
            events: Some(50),
            duration: None,
            ..options(Workload::ReadWrite).clients
        },
        ..options(Workload::ReadWrite)
    };
    server.prepare(&options);
    let report = server.run(&options);
    assert_eq!(report.ended, Ended::Events);
    // Ten point selects and four ranges; two updates, a delete and an insert; BEGIN and COMMIT.
    let totals = report.totals;
    assert_eq!((totals.events, totals.reads, totals.writes, totals.other), (50, 700, 200, 100));
    let mut session = server.session();
    for table in 1..=3 {
        let rows = session.value(&format!("SELECT COUNT(*) FROM sbtest{table}")).unwrap();
        assert_eq!(rows.as_deref(), Some("1000"), "deletes and inserts come in pairs");
    }
}

#[test]
fn bulk_insert_counts_rows_and_goes_on_after_the_ones_that_are_there() {
    let Some(server) = Server::start() else { return };
    let options = RunOptions {
        clients: ClientOptions {
            connections: 2,
            duration: None,
            events: Some(100_000),
            ..options(Workload::BulkInsert).clients
        },
        ..options(Workload::BulkInsert)
    };
    server.prepare(&options);
    for round in 1..=2 {
        let report = server.run(&options);
        assert_eq!(report.totals.events, 100_000, "{:?}", report.ended);
        let mut session = server.session();
        let rows = session.value("SELECT (SELECT COUNT(*) FROM sbtest1) + (SELECT COUNT(*) FROM sbtest2)");
        assert_eq!(rows.unwrap().unwrap(), (round * 100_000).to_string());
    }
}

#[test]
fn inserts_without_auto_increment_bring_their_own_ids() {
    let Some(server) = Server::start() else { return };
    let mut options = options(Workload::Insert);
    options.schema.auto_inc = false;
    server.prepare(&options);
    let report = server.run(&options);
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let mut session = server.session();
    let low = session.value("SELECT MIN(id) < 0 AND MAX(id) > 0 AND COUNT(*) > 5 FROM sbtest1").unwrap();
    assert_eq!(low.as_deref(), Some("1"));
}

#[test]
fn deadlocks_are_retried_and_shown_by_their_code() {
    let Some(server) = Server::start() else { return };
    let mut options = options(Workload::WriteOnly);
    options.schema = schema(1, 10);
    options.clients.connections = 16;
    options.clients.duration = Some(Duration::from_secs(2));
    server.prepare(&options);
    let report = server.run(&options);
    assert_eq!(report.ended, Ended::Time);
    let deadlocks = report.errors.iter().find(|error| error.code == 1213).expect("ten rows, sixteen clients");
    assert!(deadlocks.count > 0 && deadlocks.retried == deadlocks.count, "{deadlocks:?}");
    assert!(deadlocks.message.contains("Deadlock"), "{deadlocks:?}");
    assert_eq!(report.totals.errors, report.errors.iter().map(|error| error.count).sum::<u64>());
}

#[test]
fn an_error_that_is_not_ignored_ends_the_run_with_its_report() {
    let Some(server) = Server::start() else { return };
    let mut options = options(Workload::PointSelect);
    options.schema = schema(1, 100);
    options.clients.prepared = false;
    options.clients.duration = Some(Duration::from_secs(30));
    server.prepare(&options);
    let mut session = server.session();
    let mut samples = 0;
    let report = ebbtide_load::run(&server.target(), &options, &Cancel::default(), &mut |_| {
        samples += 1;
        session.execute("DROP TABLE IF EXISTS sbtest1").unwrap();
    })
    .unwrap();
    let Ended::Failed { code, statement, .. } = &report.ended else { panic!("{:?}", report.ended) };
    assert_eq!((*code, statement.as_str()), (1146, "point_selects"));
    assert!(report.totals.events > 0 && samples >= 1);
}

#[test]
fn a_missing_table_is_an_error_with_a_hint_before_the_run() {
    let Some(server) = Server::start() else { return };
    let options = options(Workload::PointSelect);
    let error = ebbtide_load::run(&server.target(), &options, &Cancel::default(), &mut |_| {}).unwrap_err();
    assert_eq!(error.code(), Some(1146));
    assert!(error.hint().unwrap().contains("prepare"), "{error}");
}

#[test]
fn a_round_trip_is_in_each_statement_and_outlives_a_killed_connection() {
    let Some(server) = Server::start() else { return };
    let round_trip = Duration::from_millis(5);
    let mut options = options(Workload::WriteOnly);
    options.clients.round_trip = round_trip;
    server.prepare(&options);
    let report = server.run(&options);
    let transaction = 6.0 * 5_000.0;
    // Percentiles are 0.1% off at most.
    assert!(report.response.p50_us > 0.998 * transaction, "{:?}", report.response);
    assert!(report.totals.events > 0 && report.totals.events <= 4 * 600 / 30, "{:?}", report.totals);
    assert_eq!(report.ended, Ended::Time, "{:?}", report.errors);
    let open = Arrival::Fixed { per_second: 50.0 };
    let report = server.run(&RunOptions {
        clients: ClientOptions { arrival: open, ..options.clients.clone() },
        ..options.clone()
    });
    assert!(report.response.p50_us > 0.998 * transaction, "{:?}", report.response);

    // Connections are killed once, while statements are on their way.
    options.clients.round_trip = Duration::from_millis(200);
    options.clients.duration = Some(Duration::from_millis(2_500));
    options.clients.ignore_errors = ebbtide_load::IgnoreErrors::All;
    let (mut session, mut killed) = (server.session(), 0);
    let report = ebbtide_load::run(&server.target(), &options, &Cancel::default(), &mut |_| {
        if killed == 0 {
            killed = kill_others(&mut session);
        }
    })
    .unwrap();
    assert!(killed >= 4 && report.totals.reconnects >= 4, "{killed}: {:?}", report.totals);
    assert!(report.totals.events > 0 && report.ended == Ended::Time, "{:?}", report.totals);
}

/// Ends all other connections of a server.
fn kill_others(session: &mut Session) -> u64 {
    let own = session.value("SELECT CONNECTION_ID()").unwrap().unwrap();
    let others =
        format!("SELECT id FROM information_schema.processlist WHERE command != 'Daemon' AND id != {own}");
    let mut killed = 0;
    for row in session.rows(&others).unwrap() {
        killed += u64::from(session.execute(&format!("KILL {}", row[0].as_ref().unwrap())).is_ok());
    }
    killed
}

#[test]
fn a_run_reconnects_after_every_n_transactions_and_after_a_killed_connection() {
    let Some(server) = Server::start() else { return };
    let mut options = RunOptions {
        clients: ClientOptions { reconnect_every: 10, ..options(Workload::PointSelect).clients },
        ..options(Workload::PointSelect)
    };
    server.prepare(&options);
    let report = server.run(&options);
    assert!(report.totals.reconnects >= report.totals.events / 10 - 4, "{:?}", report.totals);

    options.clients.reconnect_every = 0;
    options.clients.duration = Some(Duration::from_millis(2_500));
    options.clients.ignore_errors = ebbtide_load::IgnoreErrors::All;
    let mut session = server.session();
    let mut killed = 0;
    let report = ebbtide_load::run(&server.target(), &options, &Cancel::default(), &mut |_| {
        killed += kill_others(&mut session);
    })
    .unwrap();
    assert_eq!(report.ended, Ended::Time);
    assert!(killed >= 4 && report.totals.reconnects >= 4, "{killed}: {:?}", report.totals);
}

#[test]
fn a_cancelled_run_ends_at_once_and_reports() {
    let Some(server) = Server::start() else { return };
    let mut options = options(Workload::ReadOnly);
    options.clients.duration = Some(Duration::from_secs(600));
    server.prepare(&options);
    let cancel = Cancel::default();
    let report = ebbtide_load::run(&server.target(), &options, &cancel, &mut |_| cancel.cancel()).unwrap();
    assert_eq!(report.ended, Ended::Cancelled);
    assert!(report.elapsed_s < 60.0 && report.totals.events > 0, "{} s of 600", report.elapsed_s);
}

#[test]
fn the_warm_up_is_in_no_total() {
    let Some(server) = Server::start() else { return };
    let mut options = options(Workload::PointSelect);
    options.clients.warmup_s = 1;
    options.clients.duration = Some(Duration::from_secs(2));
    server.prepare(&options);
    let began = Instant::now();
    let report = server.run(&options);
    // The second of the warm-up is in the whole time, and not in the run's.
    let whole_s = began.elapsed().as_secs_f64();
    assert!(
        report.elapsed_s >= 1.9 && report.elapsed_s + 0.9 <= whole_s,
        "{} of {whole_s}",
        report.elapsed_s
    );
    let events = |warmup| -> u64 {
        report.samples.iter().filter(|s| s.warmup == warmup).map(|s| s.totals.events).sum()
    };
    assert!(report.samples[0].warmup && report.samples[0].t_s <= 0.0);
    // A last part of an interval is in the totals and has no sample. It is shorter than the warm-up.
    let unsampled = report.totals.events - events(false);
    assert!(unsampled < events(true), "{unsampled} of {}", report.totals.events);
    assert!(report.fairness.events_mean * 4.0 <= report.totals.events as f64 + 4.0);
}

#[test]
fn many_connections_share_few_threads_and_little_memory() {
    let Some(server) = Server::start() else { return };
    let mut options = options(Workload::ReadWrite);
    options.clients.connections = 256;
    server.prepare(&options);
    let report = server.run(&options);
    assert_eq!(report.fairness.events_mean * 256.0, report.totals.events as f64);
    assert!(report.fairness.events_mean > 0.0);
}
