//! The open loop: stalls of either side show, overload is reported, and so is the generator's own lag.

use std::process::Command;
use std::thread;
use std::time::Duration;

use ebbtide_load::{Arrival, Cancel, ClientOptions, Ended, RunOptions, RunReport, Workload, run};

use crate::support::{Server, schema, signal_process};

fn options(arrival: Arrival) -> RunOptions {
    RunOptions {
        schema: schema(1, 1_000),
        clients: ClientOptions {
            connections: 16,
            arrival,
            duration: Some(Duration::from_secs(6)),
            ..ClientOptions::default()
        },
        ..RunOptions::new(Workload::PointSelect)
    }
}

const RATE: Arrival = Arrival::Poisson { per_second: 2_000.0 };

/// Runs while the server stalls for a second.
fn with_frozen_server(server: &Server, options: &RunOptions) -> RunReport {
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(2));
            server.signal("STOP");
            thread::sleep(Duration::from_secs(1));
            server.signal("CONT");
        });
        server.run(options)
    })
}

#[test]
fn a_server_that_stalls_shows_at_the_99th_percentile() {
    let Some(server) = Server::start() else { return };
    server.prepare(&options(RATE));
    let report = with_frozen_server(&server, &options(RATE));
    // A sixth of the arrivals met the second of standing still.
    assert!(report.response.p99_us > 700_000.0, "{:?}", report.response);
    assert!(report.response.p50_us < report.response.p99_us / 3.0, "{:?}", report.response);
    // Sixteen connections met it while they were served: the service time hides it.
    let service = report.service.as_ref().unwrap();
    assert!(service.p99_us < report.response.p99_us / 2.0, "{service:?} {:?}", report.response);
    assert!(report.open_loop.unwrap().late_percent > 5.0, "{:?}", report.open_loop);
}

#[test]
fn the_closed_loop_shows_next_to_its_figure_what_it_hides() {
    let Some(server) = Server::start() else { return };
    server.prepare(&options(Arrival::Closed));
    let report = with_frozen_server(&server, &options(Arrival::Closed));
    let omission = report.omission.unwrap();
    assert!(omission.corrected.p99_us > 600_000.0, "{omission:?}");
    assert!(report.response.p99_us < omission.corrected.p99_us / 3.0, "{:?} {omission:?}", report.response);
    assert!(omission.misleading);
}

#[test]
fn a_frozen_generator_shows_at_the_99th_percentile_and_is_disqualified() {
    let Some(server) = Server::start() else { return };
    let options = options(RATE);
    server.prepare(&options);
    // The generator must be a process of its own to be frozen: this test's, started again.
    let itself = std::env::current_exe().unwrap();
    let child = Command::new(itself)
        .args(["open_loop::generator_in_a_process_of_its_own", "--exact", "--nocapture", "--ignored"])
        .env(SOCKET, server.socket())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(3));
    signal_process(child.id(), "STOP");
    thread::sleep(Duration::from_millis(2_300));
    signal_process(child.id(), "CONT");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let json = text.lines().find_map(|line| Some(&line[line.find(MARK)? + MARK.len()..]));
    let report: RunReport = serde_json::from_str(json.expect(&text)).unwrap();
    assert!(report.response.p99_us > 700_000.0, "{:?}", report.response);
    assert!(report.generator.lag.p99_us > 700_000.0, "{:?}", report.generator);
    assert!(report.generator.disqualified.unwrap().contains("stalled"));
}

const SOCKET: &str = "EBBTIDE_LOAD_TEST_SOCKET";
const MARK: &str = "REPORT:";

#[test]
#[ignore = "another test starts it in a process of its own"]
fn generator_in_a_process_of_its_own() {
    let socket = std::env::var_os(SOCKET).unwrap();
    let target = ebbtide_load::Target {
        endpoints: vec![ebbtide_load::Endpoint::Unix(socket.into())],
        user: "root".into(),
        password: String::new(),
        database: "sbtest".into(),
        tls: None,
    };
    let report = run(&target, &options(RATE), &Cancel::default(), &mut |_| {}).unwrap();
    println!("{MARK}{}", serde_json::to_string(&report).unwrap());
}

#[test]
fn overload_ends_in_time_and_reports_how_late_and_how_many_were_shed() {
    let Some(server) = Server::start() else { return };
    let options = RunOptions {
        clients: ClientOptions {
            backlog: 2_000,
            duration: Some(Duration::from_secs(3)),
            ..options(Arrival::Fixed { per_second: 1_000_000.0 }).clients
        },
        ..options(Arrival::Fixed { per_second: 1_000_000.0 })
    };
    server.prepare(&options);
    let report = server.run(&options);
    assert_eq!(report.ended, Ended::Time);
    let open = report.open_loop.unwrap();
    // All that is due would take the server minutes.
    assert!((2.9..30.0).contains(&report.elapsed_s), "{}", report.elapsed_s);
    assert!(open.due.abs_diff(3_000_000) < 10_000, "{open:?}");
    assert_eq!(open.due, open.shed + open.unfinished + report.totals.events);
    assert!(open.shed > 1_000_000 && open.longest_backlog == 2_000 && open.late_percent > 50.0, "{open:?}");
    assert!(report.response.p50_us > 1_000.0, "{:?}", report.response);
}

#[test]
fn a_rate_that_the_server_can_carry_is_met() {
    let Some(server) = Server::start() else { return };
    for arrival in [Arrival::Fixed { per_second: 500.0 }, Arrival::Poisson { per_second: 500.0 }] {
        let options = RunOptions {
            clients: ClientOptions { duration: Some(Duration::from_secs(4)), ..options(arrival).clients },
            ..options(arrival)
        };
        if server.session().value("SHOW TABLES").unwrap().is_none() {
            server.prepare(&options);
        }
        let report = server.run(&options);
        let open = report.open_loop.as_ref().unwrap();
        assert!((open.due as f64 / 2_000.0 - 1.0).abs() < 0.1, "{arrival:?}: {open:?}");
        assert_eq!((open.shed, open.unfinished + report.totals.events), (0, open.due));
        assert!(open.unfinished < open.due / 4, "{arrival:?}: {open:?}");
    }
}
