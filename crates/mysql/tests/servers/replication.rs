//! A real replica that follows a real source.

use std::time::{Duration, Instant};

use ebbtide_load::Session;
use ebbtide_mysql::replication::{self, Part, Position, Status};
use ebbtide_mysql::{Layout, Server, ServerPlan};

use crate::support::{Bench, PATIENCE, copy, count, fill, on_each_server, start};

/// A source and a replica of the same data.
fn pair(bench: &Bench, position: Position) -> (Server, Server) {
    let mut source =
        ServerPlan { part: Some(Part { server_id: 1, replica: false }), tcp: true, ..bench.plan() };
    source.settings.set("log_bin", "on").unwrap();
    let data = bench.path("replica");
    copy(&source.layout.data, &data);
    let replica = ServerPlan {
        part: Some(Part { server_id: 2, replica: true }),
        ..ServerPlan::new(bench.binary.clone(), Layout::single(data), bench.path("r"))
    };
    let (source, replica) = (start(&source), start(&replica));
    let address = replication::open(&source).unwrap();
    replication::follow(&mut replica.session().unwrap(), &address, position).unwrap();
    (source, replica)
}

/// Waits until a replica is as it should be.
fn until(session: &mut Session, wanted: impl Fn(&Status) -> bool) -> Status {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = replication::status(session).unwrap().expect("it follows");
        if wanted(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "{status:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn follows_and_stops(bench: &Bench, position: Position) {
    if replication::check(&bench.binary).is_err() {
        return;
    }
    let (source, replica) = pair(bench, position);
    let mut session = replica.session().unwrap();
    assert!(replication::status(&mut source.session().unwrap()).unwrap().is_none(), "it follows nobody");
    fill(&source, 500);
    let deadline = Instant::now() + PATIENCE;
    while replica.session().unwrap().value("SELECT COUNT(*) FROM test.t").ok().flatten().as_deref()
        != Some("500")
    {
        assert!(Instant::now() < deadline, "{:?}", replication::status(&mut session));
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = until(&mut session, |status| status.fetching && status.applying);
    assert_eq!(
        (status.stopped_by(), status.gtid.is_some()),
        (None, position == Position::Gtid),
        "{status:?}"
    );
    replication::pause(&mut session).unwrap();
    until(&mut session, |status| !status.applying);
    // A row that the source will bring too.
    session.execute("INSERT INTO test.t VALUES (9999, 'x')").unwrap();
    source.session().unwrap().execute("INSERT INTO test.t VALUES (9999, 'y')").unwrap();
    replication::resume(&mut session).unwrap();
    let stopped = until(&mut session, |status| status.stopped_by().is_some());
    assert!(stopped.stopped_by().unwrap().contains("1062"), "{stopped:?}");
    assert!(stopped.place().starts_with("applied up to "), "{stopped:?}");
    assert_eq!((count(&source), count(&replica)), (501, 501));
}

on_each_server! {
    fn a_replica_by_position_follows_and_says_why_it_stops(bench) {
        follows_and_stops(&bench, Position::Files);
    }

    fn a_replica_by_gtid_follows_and_says_why_it_stops(bench) {
        follows_and_stops(&bench, Position::Gtid);
    }

    fn a_server_that_keeps_no_position_in_files_is_refused_with_what_to_do(bench) {
        match replication::check(&bench.binary) {
            Ok(()) => assert!(bench.binary.is_mariadb()),
            Err(why) => assert!(!bench.binary.is_mariadb() && why.to_string().contains("--server"), "{why}"),
        }
    }
}
