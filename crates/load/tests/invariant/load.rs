//! The load at work: what it leaves behind, what its journal holds, and how it ends.

use std::time::{Duration, Instant};

use ebbtide_load::invariant::{Options, Schema, check, prepare, start};
use ebbtide_load::{Cancel, LoadError, Session};

use super::{assert_clean, checked, on_each_server, options, prepared, small, worked};
use crate::support::Server;

#[test]
fn a_load_that_was_left_in_peace_breaks_no_rule() {
    on_each_server(&[], |server| {
        prepared(server, &small(), 8);
        let (report, expected) = worked(&options(server, &small(), 8), 1_000);
        let findings = checked(server, &small(), &expected);
        assert_clean(&findings);
        let recovered: u64 = findings.recovered.iter().map(|mark| mark.seq).sum();
        assert_eq!(recovered, report.commits, "every client had its answers");
        assert!(report.rolled_back > 0, "{report:?}");
        assert_eq!(report.latency.count, report.commits);
        let versions = server.session().value("SELECT SUM(version) FROM ebbtide_account").unwrap();
        assert_eq!(versions, Some((2 * report.commits).to_string()), "the rules look at what the load did");
    });
}

#[test]
fn the_load_goes_on_after_the_marks_that_it_finds() {
    let Some(server) = Server::start() else { return };
    prepared(&server, &small(), 4);
    let (_, first) = worked(&options(&server, &small(), 4), 200);
    let (_, second) = worked(&options(&server, &small(), 4), 200);
    for (before, after) in first.iter().zip(&second) {
        assert!(after.acknowledged > before.acknowledged, "{before:?} {after:?}");
    }
    assert_clean(&checked(&server, &small(), &second));
}

#[test]
fn the_journal_is_never_behind_nor_ahead_of_what_the_server_shows() {
    let Some(server) = Server::start() else { return };
    prepared(&server, &small(), 8);
    let running = start(&options(&server, &small(), 8)).unwrap();
    let mut session = server.session();
    let mut compared = 0;
    for _ in 0..300 {
        let before = Instant::now();
        let marks = session.rows("SELECT seq FROM ebbtide_ledger ORDER BY client").unwrap();
        let after = Instant::now();
        let least = running.journal().at(before).unwrap();
        let most = running.journal().at(after).unwrap();
        for ((mark, least), most) in marks.iter().zip(&least).zip(&most) {
            let mark: u64 = mark[0].as_deref().unwrap().parse().unwrap();
            assert!(least.acknowledged <= mark, "acknowledged and not there: {mark} {least:?}");
            assert!(mark <= most.sent, "there before it was sent: {mark} {most:?}");
            assert!(most.sent - most.acknowledged <= 1);
            compared += u32::from(mark > 0);
        }
    }
    assert!(compared > 300, "{compared}");
    assert_eq!(running.stop().ended, []);
}

#[test]
fn deadlocks_and_lock_timeouts_are_retried_under_the_same_number() {
    on_each_server(&["--innodb-lock-wait-timeout=1"], |server| {
        let schema = Schema { accounts: 4, rows: 4, ..small() };
        prepared(server, &schema, 8);
        let running = start(&options(server, &schema, 8)).unwrap();
        let mut session = server.session();
        let mut met = |code: u16, statements: [&str; 2], hold: Duration| {
            let began = Instant::now();
            while !running.report().errors.iter().any(|error| error.code == code && error.retried > 0) {
                assert!(began.elapsed() < Duration::from_secs(60), "{:?}", running.report());
                // Against the order of the clients; a deadlock may choose either.
                session.execute("BEGIN").unwrap();
                let taken = statements.iter().all(|statement| session.execute(statement).is_ok());
                if taken {
                    std::thread::sleep(hold);
                }
                session.execute("ROLLBACK").unwrap();
            }
        };
        let ballast = "UPDATE ebbtide_ballast SET hits=hits+1";
        let accounts = "UPDATE ebbtide_account SET version=version+1 ORDER BY id DESC";
        met(1213, [ballast, accounts], Duration::ZERO);
        met(1205, [accounts, ballast], Duration::from_millis(1_500));
        let journal = running.journal().clone();
        assert_eq!(running.stop().ended, []);
        assert_clean(&checked(server, &schema, &journal.at(Instant::now()).unwrap()));
    });
}

#[test]
fn a_rate_is_kept() {
    let Some(server) = Server::start() else { return };
    prepared(&server, &small(), 4);
    let running = start(&Options { rate: Some(100.0), ..options(&server, &small(), 4) }).unwrap();
    std::thread::sleep(Duration::from_millis(2_100));
    let seconds = running.seconds();
    let report = running.stop();
    // Clients that are late catch up; none is ever early.
    let due = (report.elapsed_s * 100.0).ceil() + 4.0;
    assert!(report.commits as f64 <= due && report.commits > 150, "{report:?}");
    assert_eq!(seconds.len(), 2);
    assert_eq!(report.seconds[..2], seconds);
}

#[test]
fn a_server_that_stalls_does_not_keep_the_load_from_ending() {
    let Some(server) = Server::start() else { return };
    prepared(&server, &small(), 4);
    let options = Options { grace: Duration::from_millis(300), ..options(&server, &small(), 4) };
    let running = start(&options).unwrap();
    while running.commits() < 50 {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.signal("STOP");
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    let report = running.stop();
    server.signal("CONT");
    // The server would be waited for until it goes on, which it does not.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(report.ended.len(), 4, "{:?}", report.ended);
    assert!(report.ended.iter().all(|end| end.code == Some(2013)), "{:?}", report.ended);
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let Some(server) = Server::start() else { return };
    let missing = start(&options(&server, &small(), 2)).unwrap_err();
    assert_eq!(missing.code(), Some(1146), "{missing}");
    prepared(&server, &small(), 2);
    let again = prepare(&server.target(), &small(), 7, 2, &Cancel::default()).unwrap_err();
    assert_eq!(again.code(), Some(1050), "{again}");
    let many = start(&options(&server, &small(), 3)).unwrap_err();
    assert!(many.to_string().contains("--clients=3 is out of range"), "{many}");
    // A load on more rows than there are ends with the statement that found none.
    let larger = Schema { accounts: 5_000_000, ..small() };
    let running = start(&options(&server, &larger, 1)).unwrap();
    let began = Instant::now();
    while running.alive() > 0 {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    let report = running.stop();
    assert!(report.ended[0].error.contains("0 rows were changed by: UPDATE ebbtide_account"), "{report:?}");
    assert_eq!(report.ended[0].in_doubt, None);
}

#[test]
fn tables_that_cannot_be_read_are_an_error_and_no_finding() {
    let Some(server) = Server::start() else { return };
    prepared(&server, &small(), 2);
    server.session().execute("DROP TABLE ebbtide_history").unwrap();
    let error = check(&mut server.session(), &small(), &[]).unwrap_err();
    assert!(matches!(error, LoadError::Server { code: 1146, .. }), "{error}");
}

#[test]
fn a_check_of_ten_thousand_rows_asks_for_whole_tables_and_not_for_rows() {
    on_each_server(&[], |server| {
        let schema = Schema::default();
        prepared(server, &schema, 16);
        let (report, expected) = worked(&options(server, &schema, 16), 3_000);
        let mut session = server.session();
        let questions = |session: &mut Session| -> u64 {
            let row = session.rows("SHOW SESSION STATUS LIKE 'Questions'").unwrap().remove(0);
            row[1].as_deref().unwrap().parse().unwrap()
        };
        let before = questions(&mut session);
        let own = questions(&mut session) - before;
        let findings = check(&mut session, &schema, &expected).unwrap();
        assert_clean(&findings);
        let asked = questions(&mut session) - before - 2 * own;
        println!(
            "{}: check {:.1} ms, {asked} statements; load {:.0} a second",
            session.version(),
            findings.took_ms,
            report.tps()
        );
        assert!((1..100).contains(&asked), "{asked} statements");
    });
}
