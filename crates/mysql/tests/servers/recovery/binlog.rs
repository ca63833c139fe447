//! How far a binary log has come, from its files and through the server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ebbtide_mysql::recovery::{Unverified, binlog_commits, binlog_tail};
use ebbtide_mysql::{Server, ServerPlan};

use super::execute;
use crate::support::{Bench, PATIENCE, on_each_server, start};

const CLIENTS: u32 = 3;

fn plan(bench: &Bench, format: &str) -> ServerPlan {
    let mut plan = bench.plan();
    let mut set = |name: &str, value: &str| plan.settings.set(name, value).unwrap();
    set("log_bin", "ON");
    set("sync_binlog", "1");
    set("binlog_format", format);
    if !bench.binary.is_mariadb() {
        set("raw.binlog_rows_query_log_events", "ON");
    }
    plan
}

/// Makes the tables, and so many transactions of each client with its number as a text of its own length.
fn load(server: &Server, each: u64) {
    let mut session = server.session().unwrap();
    let mut run = |sql: &str| session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    run("CREATE DATABASE test");
    run("USE test");
    run("CREATE TABLE ebbtide_ledger (client INT PRIMARY KEY, seq BIGINT NOT NULL) ENGINE=InnoDB");
    run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, pad TEXT) ENGINE=InnoDB");
    run("INSERT INTO ebbtide_ledger VALUES (0, 0), (1, 0), (2, 0)");
    run("PREPARE mark FROM 'UPDATE ebbtide_ledger SET seq=? WHERE client=?'");
    for seq in 1..=each {
        for client in 0..CLIENTS {
            run("BEGIN");
            run("INSERT INTO t (pad) VALUES (REPEAT('x', 500))");
            run(&format!("SET @seq = {seq}, @client = {client}"));
            run("EXECUTE mark USING @seq, @client");
            run("COMMIT");
        }
    }
    run("BEGIN");
    run("UPDATE ebbtide_ledger SET seq=100000 WHERE client=1");
    run("ROLLBACK");
}

fn last(pairs: &[(u32, u64)]) -> BTreeMap<u32, u64> {
    pairs.iter().copied().collect()
}

/// The newest file of the binary log.
fn newest(plan: &ServerPlan) -> PathBuf {
    let mut files = super::files_below(&plan.layout.data);
    let is_log =
        |name: &str| name.strip_prefix("binlog.").is_some_and(|number| number.parse::<u32>().is_ok());
    files.retain(|path| is_log(path.file_name().unwrap().to_str().unwrap()));
    files.sort();
    files.pop().unwrap()
}

/// MariaDB writes an event of its own into a new file, some time later: what is to be the last event must
/// follow it.
fn wait_for_checkpoint(server: &Server) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut session = server.session().unwrap();
        let file = session.value("SHOW MASTER STATUS").unwrap().unwrap();
        let events = session.rows(&format!("SHOW BINLOG EVENTS IN '{file}'")).unwrap();
        if events
            .iter()
            .any(|row| row[2].as_deref() == Some("Binlog_checkpoint") && row[5].as_ref() == Some(&file))
        {
            return;
        }
        assert!(Instant::now() < deadline, "no checkpoint of the new file");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn shown(server: &Server) -> BTreeMap<u32, u64> {
    binlog_commits(&mut server.session().unwrap(), CLIENTS).unwrap().last
}

fn follows_a_load(bench: &Bench, format: &str) {
    let plan = plan(bench, format);
    let server = start(&plan);
    load(&server, 20);
    let expected = last(&[(0, 20), (1, 20), (2, 20)]);
    let found = binlog_tail(&plan.layout, CLIENTS).unwrap();
    assert_eq!((&found.last, &found.torn), (&expected, &None), "{found:?}");
    assert_eq!(shown(&server), expected);

    // One client goes on in a new file: the others are found in the one before.
    execute(&server, &["FLUSH BINARY LOGS"]);
    if bench.binary.is_mariadb() {
        wait_for_checkpoint(&server);
    }
    execute(&server, &["UPDATE test.ebbtide_ledger SET seq=21 WHERE client=2"]);
    // What is not in the binary log takes the commit before it to disk.
    execute(&server, &["SET sql_log_bin = 0", "INSERT INTO test.t (pad) VALUES ('unlogged')"]);
    let mut open = server.session().unwrap();
    open.execute("BEGIN").unwrap();
    open.execute("UPDATE test.ebbtide_ledger SET seq=21 WHERE client=0").unwrap();
    server.kill().unwrap();
    let expected = last(&[(0, 20), (1, 20), (2, 21)]);
    let found = binlog_tail(&plan.layout, CLIENTS).unwrap();
    assert_eq!(found.last, expected, "{found:?}");
    assert_eq!(found.files.len(), 2);

    // The last transaction loses its end: it is in the file no longer, and InnoDB still has it.
    let newest = newest(&plan);
    let file = std::fs::File::options().write(true).open(&newest).unwrap();
    file.set_len(file.metadata().unwrap().len() - 5).unwrap();
    let expected = last(&[(0, 20), (1, 20), (2, 20)]);
    let found = binlog_tail(&plan.layout, CLIENTS).unwrap();
    assert_eq!(found.last, expected, "{found:?}");
    let torn = found.torn.unwrap();
    assert_eq!(torn.file, newest);
    assert!((1..40).contains(&torn.bytes.unwrap()), "{torn:?}");
    let server = start(&plan);
    assert_eq!(shown(&server), expected);
    assert_eq!(binlog_tail(&plan.layout, CLIENTS).unwrap().last, expected);
    // This is what a replica would lack.
    assert_eq!(super::value(&server, "SELECT seq FROM test.ebbtide_ledger WHERE client = 2"), "21");
    server.stop(PATIENCE).unwrap();
}

on_each_server! {
    fn the_binary_log_of_rows_is_followed_to_its_end_and_to_a_torn_one(bench) {
        follows_a_load(&bench, "ROW");
    }

    fn the_binary_log_of_statements_is_followed_to_its_end_and_to_a_torn_one(bench) {
        follows_a_load(&bench, "STATEMENT");
    }

    fn a_client_that_is_seen_only_early_in_a_long_file_is_found(bench) {
        let plan = plan(&bench, "ROW");
        let server = start(&plan);
        load(&server, 5);
        let mut session = server.session().unwrap();
        session.execute("USE test").unwrap();
        // Some megabytes, in events of which some are longer than what is read first.
        session.execute("CREATE TABLE long_ones (id INT AUTO_INCREMENT PRIMARY KEY, pad LONGTEXT)").unwrap();
        for seq in 6..100 {
            session.execute("BEGIN").unwrap();
            let bytes = if seq % 10 == 0 { 400_000 } else { 5_000 };
            session.execute(&format!("INSERT INTO long_ones (pad) VALUES (REPEAT('y', {bytes}))")).unwrap();
            session.execute(&format!("UPDATE ebbtide_ledger SET seq={seq} WHERE client=1")).unwrap();
            session.execute("COMMIT").unwrap();
        }
        let expected = last(&[(0, 5), (1, 99), (2, 5)]);
        assert!(newest(&plan).metadata().unwrap().len() > 4_000_000);
        assert_eq!(binlog_tail(&plan.layout, CLIENTS).unwrap().last, expected);
        assert_eq!(shown(&server), expected);
        server.kill().unwrap();
    }

    fn a_server_without_a_binary_log_is_unverified(bench) {
        let mut plan = bench.plan();
        plan.settings.set("log_bin", "OFF").unwrap();
        let server = start(&plan);
        let error = binlog_tail(&plan.layout, 1).unwrap_err();
        assert!(matches!(error, Unverified::Form { .. }), "{error}");
        let error = binlog_commits(&mut server.session().unwrap(), 1).unwrap_err();
        assert!(matches!(error, Unverified::Session(_)), "{error}");
    }
}
