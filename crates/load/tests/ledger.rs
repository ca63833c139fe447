//! The ledger of acknowledged commits against what the server has.

use std::time::Duration;

use ebbtide_load::ledger::Ledger;
use ebbtide_load::{ClientOptions, Ended, LedgerOptions, RunOptions, Workload};

use crate::support::{Server, schema};

fn options(server: &Server, workload: Workload, name: &str) -> RunOptions {
    RunOptions {
        schema: schema(2, 1_000),
        ledger: Some(LedgerOptions { path: server.path(name), marks: true }),
        clients: ClientOptions {
            connections: 5,
            duration: Some(Duration::from_secs(1)),
            ..ClientOptions::default()
        },
        ..RunOptions::new(workload)
    }
}

#[test]
fn every_acknowledged_commit_is_in_the_ledger_and_in_the_server() {
    let Some(server) = Server::start() else { return };
    server.prepare(&options(&server, Workload::ReadWrite, "x"));
    for workload in [Workload::WriteOnly, Workload::UpdateIndex] {
        let options = options(&server, workload, workload.name());
        let report = server.run(&options);
        let ledger = Ledger::read(&server.path(workload.name())).unwrap();
        assert_eq!(report.ledger_records, report.totals.events);
        assert_eq!(ledger.commits.len() as u64, report.totals.events);
        assert_eq!(ledger.last_by_client().len(), 5);
        assert_eq!(ledger.lost(&mut server.session()).unwrap(), []);
        for client in 0..5 {
            let of_client = ledger.commits.iter().filter(|commit| commit.client == client);
            let numbers: Vec<u64> = of_client.map(|commit| commit.sequence).collect();
            assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "no gap, in order");
        }
    }
}

#[test]
fn a_commit_that_the_server_lost_is_found() {
    let Some(server) = Server::start() else { return };
    let options = options(&server, Workload::WriteOnly, "lost");
    server.prepare(&options);
    server.run(&options);
    let ledger = Ledger::read(&server.path("lost")).unwrap();
    let mut session = server.session();
    session.execute("UPDATE ebbtide_ledger SET seq = seq - 1 WHERE client = 3").unwrap();
    let lost = ledger.lost(&mut session).unwrap();
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].client, lost[0].acknowledged), (3, lost[0].recovered + 1));
}

#[test]
fn a_server_that_is_killed_ends_the_run_with_a_whole_ledger() {
    let Some(server) = Server::start() else { return };
    let options = RunOptions {
        clients: ClientOptions {
            duration: Some(Duration::from_secs(60)),
            ..options(&server, Workload::WriteOnly, "killed").clients
        },
        ..options(&server, Workload::WriteOnly, "killed")
    };
    server.prepare(&options);
    let cancel = ebbtide_load::Cancel::default();
    let report =
        ebbtide_load::run(&server.target(), &options, &cancel, &mut |_| server.signal("KILL")).unwrap();
    let Ended::Failed { code, .. } = report.ended else { panic!("{:?}", report.ended) };
    assert_eq!(code, 2013);
    let ledger = Ledger::read(&server.path("killed")).unwrap();
    assert_eq!(ledger.torn_bytes, 0);
    assert_eq!(ledger.commits.len() as u64, report.ledger_records);
    assert!(report.ledger_records > 0);
}
