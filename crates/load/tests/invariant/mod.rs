//! The load with invariants, and its check, on real servers.

mod canary;
mod crash;
mod load;

use std::time::{Duration, Instant};

use ebbtide_load::Cancel;
use ebbtide_load::invariant::{Expected, Findings, InvariantReport, Options, Schema, check, prepare, start};

use crate::support::{Server, on_each as on_each_server};

/// Small, with few accounts, so that clients meet.
fn small() -> Schema {
    Schema { accounts: 50, rows: 500, window: 20, ..Schema::default() }
}

fn options(server: &Server, schema: &Schema, clients: u32) -> Options {
    Options::new(server.target(), schema.clone(), clients)
}

fn prepared(server: &Server, schema: &Schema, clients: u32) {
    let done = prepare(&server.target(), schema, 7, clients, &Cancel::default()).unwrap();
    // A mark for each client.
    assert_eq!(done.rows, u64::from(schema.accounts + schema.rows + clients));
}

/// Runs the load for a while, and answers with what its clients know at the end.
fn worked(options: &Options, commits: u64) -> (InvariantReport, Vec<Expected>) {
    let running = start(options).unwrap();
    let began = Instant::now();
    while running.commits() < commits {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", running.report());
        assert!(running.alive() > 0, "{:?}", running.report());
        std::thread::sleep(Duration::from_millis(5));
    }
    let journal = running.journal().clone();
    let report = running.stop();
    assert_eq!(report.ended, []);
    (report, journal.at(Instant::now()).unwrap())
}

fn checked(server: &Server, schema: &Schema, expected: &[Expected]) -> Findings {
    check(&mut server.session(), schema, expected).unwrap()
}

fn assert_clean(findings: &Findings) {
    assert!(findings.is_clean(), "{:#?}", findings.findings);
}
