//! A real replica that follows a real source.

use std::time::{Duration, Instant};

use ebbtide_load::{Cancel, Session, Target};
use ebbtide_mysql::replication::{
    self, Heartbeat, LagReader, Position, ReplicaLost, ReplicationPart, Status,
};
use ebbtide_mysql::{Layout, Server, ServerPlan};

use crate::support::{Bench, PATIENCE, copy, count, fill, on_each_server, start};

/// A source and a replica of the same data.
fn pair(bench: &Bench, position: Position) -> (Server, Server) {
    let mut source = ServerPlan {
        part: Some(ReplicationPart { server_id: 1, replica: false, position }),
        tcp: true,
        ..bench.plan()
    };
    source.settings.set("log_bin", "on").unwrap();
    let data = bench.path("replica");
    copy(&source.layout.data, &data);
    let replica = ServerPlan {
        part: Some(ReplicationPart { server_id: 2, replica: true, position }),
        ..ServerPlan::new(bench.binary.clone(), Layout::single(data), bench.work("r"))
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
    let (source, replica) = pair(bench, position);
    let mut session = replica.session().unwrap();
    assert!(replication::status(&mut source.session().unwrap()).unwrap().is_none(), "it follows nobody");
    let accounts = "SELECT GROUP_CONCAT(host) FROM mysql.user WHERE user = 'ebbtide_replica'";
    let from = source.session().unwrap().value(accounts).unwrap();
    assert_eq!(from.as_deref(), Some("127.0.0.1"), "replicas on this machine alone");
    for password in ["", "ebbtide"] {
        let user = "ebbtide_replica".to_owned();
        let stranger = Target { user, password: password.into(), ..source.target() };
        assert!(Session::open_without_database(&stranger, &stranger.endpoints[1]).is_err(), "'{password}'");
    }
    fill(&source, 500);
    let deadline = Instant::now() + PATIENCE;
    while replica.session().unwrap().value("SELECT COUNT(*) FROM test.t").ok().flatten().as_deref()
        != Some("500")
    {
        assert!(Instant::now() < deadline, "{:?}", replication::status(&mut session));
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = replication::wait_until_following(&mut session, PATIENCE, &Cancel::default()).unwrap();
    assert_eq!(
        (status.stopped_by(), status.gtid.is_some()),
        (None, position == Position::Gtid),
        "{status:?}"
    );
    let mut heartbeat = Heartbeat::open(&source).unwrap();
    heartbeat.beat(1_000).unwrap();
    let mut lag = LagReader::open(&source, std::slice::from_ref(&replica)).unwrap();
    let reached = |lag: &mut LagReader| {
        let lag = lag.read(&|| 5_000).unwrap();
        lag.filter(|lag| lag.age == Duration::from_millis(1) && lag.transactions.unwrap_or(0) == 0)
    };
    heartbeat.beat(4_000).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while reached(&mut lag).is_none() {
        assert!(Instant::now() < deadline, "{:?}", lag.read(&|| 5_000));
    }
    replication::pause(&mut session).unwrap();
    until(&mut session, |status| !status.applying);
    // MySQL logs no REPLACE that changes nothing.
    for at_us in 9_000..9_003 {
        heartbeat.beat(at_us).unwrap();
    }
    let behind = lag.read(&|| 10_000).unwrap().unwrap();
    assert_eq!((behind.age, behind.behind_s), (Duration::from_millis(6), None), "it shows the one of 4 ms");
    // MySQL 9.7 has GTIDs by default.
    let numbered = bench.binary.is_mariadb() || position == Position::Gtid || behind.transactions.is_some();
    assert_eq!(
        behind.transactions,
        numbered.then_some(3),
        "what is not applied is counted where it is numbered"
    );
    // A row that the source will bring too.
    session.execute("INSERT INTO test.t VALUES (9999, 'x')").unwrap();
    source.session().unwrap().execute("INSERT INTO test.t VALUES (9999, 'y')").unwrap();
    replication::resume(&mut session).unwrap();
    let stopped = until(&mut session, |status| status.stopped_by().is_some());
    assert!(stopped.stopped_by().unwrap().contains("1062"), "{stopped:?}");
    assert!(stopped.stopped_by().unwrap().contains("Duplicate entry '9999'"), "{stopped:?}");
    assert!(stopped.place().starts_with("applied up to "), "{stopped:?}");
    let lost = replication::check_follows(&mut session).unwrap_err();
    assert!(matches!(lost, ReplicaLost::Stopped { .. }), "{lost}");
    assert_eq!((count(&source), count(&replica)), (501, 501));
    is_promoted(source, &replica, &mut session);
}

/// Ends the source, and has the replica, which has stopped with an error of ours, take its place.
fn is_promoted(source: Server, replica: &Server, session: &mut Session) {
    session.execute("DELETE FROM test.t WHERE id = 9999").unwrap();
    replication::resume(session).unwrap();
    source.session().unwrap().execute("INSERT INTO test.t VALUES (10000, 'z')").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while count(replica) < 502 {
        assert!(Instant::now() < deadline, "{:?}", replication::status(session));
        std::thread::sleep(Duration::from_millis(20));
    }
    source.kill().unwrap();
    replication::promote(session, PATIENCE, &Cancel::default()).unwrap();
    assert!(replication::status(session).unwrap().is_none(), "it follows nobody");
    assert_eq!(session.value("SELECT @@GLOBAL.read_only").unwrap().as_deref(), Some("0"));
    let replaced = session.value("SELECT COUNT(*) FROM test.t WHERE id >= 9999").unwrap();
    assert_eq!(replaced.as_deref(), Some("2"));
    session.execute("INSERT INTO test.t VALUES (10001, 'own')").unwrap();
    assert_eq!(count(replica), 503);
}

on_each_server! {
    fn a_replica_by_position_follows_and_gives_the_reason_it_stops(bench) {
        follows_and_stops(&bench, Position::Files);
    }

    fn a_replica_by_gtid_follows_and_gives_the_reason_it_stops(bench) {
        follows_and_stops(&bench, Position::Gtid);
    }
}
