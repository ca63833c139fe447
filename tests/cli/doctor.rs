//! `ebbtide doctor` on real servers: planted faults are found, what is advised is accepted and ends the finding, nothing is written.

mod accounts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use ebbtide_mysql::Server;
use serde_json::{Value, json};

use crate::candidate::{Started, started};
use crate::harness::{EBBTIDE, Home, Ran};

const VOLUME: &str = "--volume=data=gp3:size=500GiB,twp=off";

fn doctor(started: &Started, home: &Home, more: &[&str]) -> Ran {
    let (socket, login) = (started.socket(), started.login());
    let words = ["doctor", &socket, &login, "--interval=1s", VOLUME, "--json"];
    home.run(&[&words, more].concat())
}

/// Codes of a list of findings, without those of the machine that the test runs on.
fn codes(list: &Value) -> BTreeSet<String> {
    let code = |one: &Value| one["code"].as_str().or(one.as_str()).unwrap().to_owned();
    list.as_array().unwrap().iter().map(code).filter(|code| !is_of_the_machine(code)).collect()
}

fn is_of_the_machine(code: &str) -> bool {
    // Other tests use the same device.
    code.starts_with('O') || ["B01", "B08", "B09", "E02", "E03", "E09", "R06", "R07"].contains(&code)
}

fn statements(findings: &Value) -> Vec<String> {
    let all = findings.as_array().unwrap().iter().filter_map(|one| one["fix"]["statements"].as_array());
    all.flatten().map(|sql| sql.as_str().unwrap().to_owned()).collect()
}

/// All variables, and the counters of statements and of changes, without those of reading. MySQL counts the rows of a SHOW
/// statement's temporary table as written, so that updates and deletions of rows are left.
fn state(server: &Server) -> BTreeMap<String, String> {
    let mut session = server.session().unwrap();
    let mut rows = session.rows("SHOW GLOBAL VARIABLES").unwrap();
    rows.extend(session.rows("SHOW GLOBAL STATUS LIKE 'Com\\_%'").unwrap());
    rows.extend(session.rows("SHOW GLOBAL STATUS LIKE 'Handler\\_%'").unwrap());
    let reads = |name: &str| {
        [
            "com_select",
            "com_show",
            // How long the session waits for a lock.
            "com_set_option",
            "com_do",
            "com_stmt",
            "handler_read",
            "handler_write",
            "handler_discover",
            "handler_tmp",
            "handler_commit",
            "handler_external",
            "handler_icp",
            "handler_mrr",
        ]
        .iter()
        .any(|read| name.starts_with(read))
            || ["timestamp", "gtid_executed", "innodb_buffer_pool_load_incomplete"].contains(&name)
    };
    let pairs = rows.into_iter().filter_map(|row| Some((row[0].as_ref()?.to_lowercase(), row[1].clone()?)));
    pairs.filter(|(name, _)| !reads(name)).collect()
}

/// Files of the data directory by path, without those of MySQL's redo log, which a server makes and removes by itself.
fn files(dir: &Path) -> BTreeSet<String> {
    let which = ["-type", "f", "-not", "-path", "*/#innodb_redo/*", "-printf", "%P\n"];
    let list = Command::new("find").arg(dir).args(which).output().unwrap();
    String::from_utf8(list.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Faults that a server can be started with.
const FAULTS: [(&str, &str); 13] = [
    ("io_capacity", "1000"),
    ("log_bin", "on"),
    ("flush_log_at_trx_commit", "2"),
    ("flush_log_at_timeout", "10"),
    ("sync_binlog", "0"),
    ("doublewrite", "off"),
    ("flush_method", "fsync"),
    ("flush_neighbors", "1"),
    ("adaptive_flushing", "off"),
    ("io_capacity_max", "9000"),
    ("buffer_pool_dump_at_shutdown", "off"),
    ("file_per_table", "off"),
    ("max_dirty_pages_pct", "20"),
];
const THEIR_CODES: [&str; 11] = ["D01", "D02", "D03", "D04", "F01", "F02", "F03", "F04", "F05", "B06", "C07"];

fn planted_faults_are_found_without_a_write_and_their_fixes_end_them(name: &str) {
    let Some(started) = started(name, &FAULTS) else { return };
    let home = Home::new();
    let data = started.server.session().unwrap().value("SELECT @@datadir").unwrap().unwrap();
    let (before, files_before) = (state(&started.server), files(Path::new(&data)));
    let ran = doctor(&started, &home, &[]);
    let (after, files_after) = (state(&started.server), files(Path::new(&data)));
    let changed: Vec<_> = after.iter().filter(|(name, value)| before.get(*name) != Some(*value)).collect();
    assert!(changed.is_empty(), "the doctor only reads: {changed:?}");
    assert_eq!(files_before, files_after);
    assert_eq!(ran.code, 1, "{ran:?}");
    let answer = ran.json();
    let found = codes(&answer["findings"]);
    for code in THEIR_CODES {
        // MariaDB takes no neighbours along where the kernel reports that the device does not rotate.
        let ignored = code == "F02" && answer["fine"].as_array().unwrap().contains(&json!("F02"));
        assert!(found.contains(code) || ignored, "{code} of {name}: {found:?}");
    }
    let mut session = started.server.session().unwrap();
    for sql in statements(&answer["findings"]) {
        session.execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let again = doctor(&started, &home, &[]).json();
    for one in again["findings"].as_array().unwrap() {
        let code = one["code"].as_str().unwrap();
        let later = one["fix"]["restart"] == true || one["fix"]["statements"].as_array().unwrap().is_empty();
        // What the server writes in the background may be found in one look and not in the other.
        assert!(later || !found.contains(code), "{code} goes on after its fix: {one}");
    }
    started.server.kill().unwrap();
}

#[test]
fn faults_of_the_systems_server_are_found() {
    planted_faults_are_found_without_a_write_and_their_fixes_end_them("system");
}

#[test]
fn faults_of_a_newer_mariadb_are_found() {
    planted_faults_are_found_without_a_write_and_their_fixes_end_them("mariadb-11.8");
}

#[test]
fn faults_of_mysql_8_0_are_found() {
    planted_faults_are_found_without_a_write_and_their_fixes_end_them("mysql-8.0");
}

#[test]
fn faults_of_mysql_9_7_are_found() {
    planted_faults_are_found_without_a_write_and_their_fixes_end_them("mysql-9.7");
}

/// Settings that no check finds fault with, as far as a server is started with them.
const GOOD: [(&str, &str); 8] = [
    ("log_bin", "on"),
    ("sync_binlog", "1"),
    ("flush_method", "O_DIRECT"),
    ("flush_neighbors", "0"),
    ("io_capacity", "500"),
    ("io_capacity_max", "1500"),
    ("redo_capacity", "256MiB"),
    ("buffer_pool_size", "64MiB"),
];

fn a_healthy_server_has_no_finding(name: &str) {
    let Some(started) = started(name, &GOOD) else { return };
    let mut session = started.server.session().unwrap();
    let keeps = "SHOW GLOBAL VARIABLES LIKE 'binlog_expire_logs_seconds'";
    if session.rows(keeps).unwrap().first().is_some_and(|row| row[1].as_deref() == Some("0")) {
        session.execute("SET GLOBAL binlog_expire_logs_seconds = 604800").unwrap();
    }
    // MariaDB from 11.4 on deletes no binary log without a replica.
    if session.rows("SHOW GLOBAL VARIABLES LIKE 'slave_connections_needed_for_purge'").unwrap().len() == 1 {
        session.execute("SET GLOBAL slave_connections_needed_for_purge = 0").unwrap();
    }
    session.execute("SET GLOBAL binlog_format = 'ROW'").unwrap();
    if session.rows("SHOW GLOBAL VARIABLES LIKE 'innodb_change_buffering'").unwrap().len() == 1 {
        session.execute("SET GLOBAL innodb_change_buffering = 'none'").unwrap();
    }
    let ran = doctor(&started, &Home::new(), &[]);
    let answer = ran.json();
    assert_eq!(codes(&answer["findings"]), BTreeSet::new(), "{name}: {answer}");
    assert!(answer["fine"].as_array().unwrap().len() > 30, "{answer}");
    started.server.kill().unwrap();
}

#[test]
fn a_healthy_server_of_any_version_has_no_finding() {
    for name in ["system", "mariadb-11.8", "mysql-8.0", "mysql-9.7"] {
        a_healthy_server_has_no_finding(name);
    }
}

/// Values with which checks find something, for each variable that the server has.
const WRONG: [(&str, &str); 30] = [
    ("innodb_flush_log_at_trx_commit", "0"),
    ("innodb_flush_log_at_timeout", "9"),
    ("sync_binlog", "0"),
    ("innodb_checksum_algorithm", "none"),
    ("binlog_checksum", "NONE"),
    ("innodb_log_write_ahead_size", "512"),
    ("innodb_log_file_buffering", "OFF"),
    ("innodb_log_writer_threads", "ON"),
    ("innodb_buffer_pool_dump_at_shutdown", "OFF"),
    ("innodb_data_file_buffering", "ON"),
    ("innodb_flush_neighbors", "1"),
    ("innodb_io_capacity_max", "90000"),
    ("innodb_max_dirty_pages_pct", "10"),
    ("innodb_adaptive_flushing", "OFF"),
    ("innodb_lru_scan_depth", "100"),
    ("innodb_read_io_threads", "1"),
    ("innodb_write_io_threads", "2"),
    ("innodb_use_fdatasync", "OFF"),
    ("innodb_purge_threads", "1"),
    ("binlog_format", "MIXED"),
    ("binlog_expire_logs_seconds", "0"),
    ("expire_logs_days", "0"),
    ("binlog_transaction_compression", "OFF"),
    ("log_bin_compress", "OFF"),
    ("query_cache_type", "ON"),
    ("query_cache_size", "1048576"),
    ("innodb_stats_on_metadata", "ON"),
    ("innodb_file_per_table", "OFF"),
    ("innodb_fill_factor", "50"),
    ("innodb_thread_concurrency", "8"),
];
/// The same for variables that a replica has.
const WRONG_REPLICA: [(&str, &str); 7] = [
    ("sync_relay_log", "1"),
    ("sync_relay_log_info", "1"),
    ("sync_master_info", "1"),
    ("sync_source_info", "1"),
    ("replica_parallel_workers", "1"),
    ("slave_parallel_workers", "1"),
    ("slave_parallel_threads", "0"),
];

/// A capture of a server, in which all goes wrong that its release can have.
fn worst(capture: &mut Value) {
    let seen = &mut capture["observation"];
    let variables = seen["variables"].as_object_mut().unwrap();
    for (name, value) in WRONG.into_iter().chain(WRONG_REPLICA) {
        if variables.contains_key(name) {
            variables.insert(name.into(), value.into());
        }
    }
    let rates = [
        ("redo_bytes", 3e6),
        ("checkpoint_age", 9e9),
        ("checkpoint_age_max", 1e10),
        ("log_waits", 5.0),
        ("wait_free", 5.0),
        ("page_reads", 5e3),
        ("page_requests", 1e5),
        ("history_length", 1e6),
        ("write_statements", 50.0),
        ("threads_running", 20.0),
        ("binlog_bytes", 1e7),
        ("data_bytes", 1e6),
    ];
    for (name, rate) in rates {
        seen["rates"][name] = json!(rate);
    }
    let growth = [
        ("innodb_buffer_pool_read_ahead", 100.0),
        ("innodb_buffer_pool_read_ahead_evicted", 90.0),
        ("binlog_cache_use", 100.0),
        ("binlog_cache_disk_use", 50.0),
        ("binlog_commits", 100.0),
        ("binlog_group_commits", 100.0),
        ("innodb_adaptive_hash_hash_searches", 1.0),
        ("innodb_adaptive_hash_non_hash_searches", 5e3),
    ];
    for (name, rate) in growth {
        seen["status"]["growth_per_s"][name] = json!(rate);
    }
    seen["status"]["last"]["innodb_redo_log_enabled"] = json!("OFF");
    seen["replica"] = json!({ "slave_io_running": "Yes", "slave_sql_running": "Yes", "seconds_behind_master": "99", "auto_position": "0" });
}

fn every_advised_statement_is_accepted(name: &str) {
    let Some(started) = started(name, &[("log_bin", "on")]) else { return };
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("capture");
    let path = file.to_str().unwrap();
    let (socket, login) = (started.socket(), started.login());
    home.run(&["doctor", "capture", &socket, &login, "--interval=1s", "--output", path]).ok();
    let mut capture: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    worst(&mut capture);
    std::fs::write(&file, capture.to_string()).unwrap();
    let answer = home.run(&["doctor", "--from", path, VOLUME, "--json"]).json();
    let all = statements(&answer["findings"]);
    assert!(all.len() >= 20, "{name}: {all:?}");
    let mut session = started.server.session().unwrap();
    for sql in &all {
        session.execute(sql).unwrap_or_else(|error| panic!("{name}: {sql}: {error}"));
    }
    // The server's own parser of options: it ends with an error for a name or a value that it does not know.
    let lines = answer["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["fix"]["my_cnf"].as_array())
        .flatten();
    let options: Vec<String> =
        lines.map(|line| format!("--{}", line.as_str().unwrap().replace(" = ", "="))).collect();
    let mut check = Command::new(started.program());
    let checked = check.arg("--no-defaults").args(&options).args(["--verbose", "--help"]).output().unwrap();
    let errors = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "{name}: {options:?}: {errors}");
    assert!(!errors.contains("unknown") && !errors.contains("adjusted"), "{name}: {errors}");
    started.server.kill().unwrap();
}

#[test]
fn every_statement_that_is_advised_is_accepted_by_that_version() {
    for name in ["system", "mariadb-11.8", "mysql-8.0", "mysql-9.7"] {
        every_advised_statement_is_accepted(name);
    }
}

#[test]
fn an_account_that_needs_tls_is_refused_in_a_sentence_and_a_lost_connection_keeps_what_was_read() {
    let Some(started) = started("system", &FAULTS) else { return };
    let mut session = started.server.session().unwrap();
    session.execute("CREATE USER tls@localhost REQUIRE SSL").unwrap();
    session.execute("CREATE USER few@localhost").unwrap();
    session.execute("GRANT PROCESS ON *.* TO few@localhost").unwrap();
    let home = Home::new();
    let socket = started.socket();
    home.run(&["doctor", &socket, "--mysql-user=tls"]).refused(3, &["1045", "--mysql-ssl"]);

    let words = ["doctor", &socket, "--mysql-user=few", "--interval=60s", "--json"];
    let running = home
        .command(&words)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // After the first look its session sleeps.
    let asleep = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'few' AND COMMAND = 'Sleep' AND TIME_MS > 300";
    let end = std::time::Instant::now() + std::time::Duration::from_secs(90);
    let id = loop {
        if let Some(id) = session.value(asleep).unwrap() {
            break id;
        }
        assert!(std::time::Instant::now() < end, "the doctor does not look at the server");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    session.execute(&format!("KILL {id}")).unwrap();
    let ran = Ran::of(running.wait_with_output().unwrap()).with(&words);
    let answer = ran.json();
    assert!(codes(&answer["findings"]).contains("D01"), "settings are judged: {answer}");
    assert!(codes(&answer["unknown"]).contains("R01"), "rates are not known: {answer}");
    assert!(answer["not_seen"].to_string().contains("the connection was lost"), "{answer}");
    assert!(answer["span"].is_null() && ran.stderr.contains("the connection was lost"), "{ran:?}");
    started.server.kill().unwrap();
}

#[test]
fn a_connection_to_a_source_that_has_a_name_is_a_replica_too() {
    let Some(started) = started("system", &[("log_bin", "on")]) else { return };
    let mut session = started.server.session().unwrap();
    for sql in [
        "CHANGE MASTER 'one' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'none'",
        "START SLAVE 'one'",
    ] {
        session.execute(sql).unwrap();
    }
    let answer = doctor(&started, &Home::new(), &[]).json();
    assert!(codes(&answer["findings"]).contains("L12"), "its source does not answer: {answer}");
    started.server.kill().unwrap();
}

#[test]
fn a_server_of_an_unknown_version_is_judged_as_far_as_its_settings_tell() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let judge = |version: &str| {
        let text = std::fs::read_to_string(sample("variables.tsv")).unwrap();
        let line = |line: &str| match line.split_once('\t') {
            Some(("version", _)) => format!("version\t{version}\n"),
            _ => format!("{line}\n"),
        };
        let file = dir.path().join("variables");
        std::fs::write(&file, text.lines().map(line).collect::<String>()).unwrap();
        home.run(&["doctor", "--json", "--from", file.to_str().unwrap()]).json()
    };
    let known = judge("10.11.19-MariaDB");
    assert!(codes(&known["findings"]).contains("D01"), "{known}");
    // Of a build with a name for a number, and of one that is not out yet.
    let custom = judge("custom-build");
    assert!(codes(&custom["findings"]).contains("D01"), "{custom}");
    assert!(custom["unknown"].to_string().contains("the server's version"), "{custom}");
    let later = judge("99.1.0-MariaDB");
    assert!(codes(&later["findings"]).contains("D01"), "{later}");
}

#[test]
fn a_capture_is_judged_as_the_server_and_so_is_what_a_client_printed() {
    let Some(started) = started("system", &FAULTS) else { return };
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (capture, socket, login) = (file("capture"), started.socket(), started.login());
    let words = ["doctor", "capture", &socket, &login, "--interval=1s", "-o", &capture, "--json"];
    home.run(&words).ok().with(&["doctor", "capture", "--output"]).json();
    let live = codes(&doctor(&started, &home, &[]).json()["findings"]);
    let from = codes(&home.run(&["doctor", "--from", &capture, VOLUME, "--json"]).json()["findings"]);
    assert_eq!(live, from);
    let mut session = started.server.session().unwrap();
    for (name, sql) in [("variables", "SHOW GLOBAL VARIABLES"), ("status", "SHOW GLOBAL STATUS")] {
        let rows = session.rows(sql).unwrap();
        let line = |row: &Vec<Option<String>>| {
            format!("{}\t{}\n", row[0].as_deref().unwrap(), row[1].as_deref().unwrap_or(""))
        };
        std::fs::write(file(name), rows.iter().map(line).collect::<String>()).unwrap();
    }
    let plain =
        home.run(&["doctor", "--from", &file("variables"), "--from", &file("status"), "--json"]).json();
    let found = codes(&plain["findings"]);
    assert!(["D01", "D02", "D03", "D04", "F01", "F05"].iter().all(|code| found.contains(*code)), "{plain}");
    assert!(codes(&plain["unknown"]).contains("R01"), "no rates: {plain}");
    let text = std::fs::read_to_string(&capture).unwrap();
    std::fs::write(file("torn"), &text[..text.len() / 2]).unwrap();
    home.run(&["doctor", "--from", &file("torn")]).refused(2, &["its end is missing", "doctor capture"]);
    started.server.kill().unwrap();
}

/// What people already have of a server: the samples of Percona Toolkit and sysstat.
fn sample(name: &str) -> String {
    format!("{}/crates/captured/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn found_in(home: &Home, words: &[&str]) -> (BTreeSet<String>, Value) {
    let answer = home.run(&[&["doctor", "--json"], words].concat()).json();
    let codes =
        answer["findings"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap().to_owned());
    (codes.collect(), answer)
}

#[test]
fn what_people_already_have_is_judged_and_what_it_lacks_is_listed() {
    let home = Home::new();
    for form in [sample("stalk"), sample("stalk/2026_11_22_23_18_22")] {
        let (found, answer) = found_in(&home, &["--from", &form, "--volume", "data=gp2:size=500GiB"]);
        for code in ["D01", "D03", "L01", "R01", "E01", "O11"] {
            assert!(found.contains(code), "{code}: {found:?}");
        }
        let unknown = answer["unknown"].to_string();
        assert!(unknown.contains("options of the mount"), "df has none: {unknown}");
        assert!(!found.contains("O01"), "{found:?}");
    }
    let (found, answer) = found_in(&home, &["--from", &sample("pt-mysql-summary.txt")]);
    assert!(found.contains("D03") && found.contains("L01"), "{found:?}");
    assert!(answer["unknown"].to_string().contains("its default is not taken for a fact"), "{answer}");
    let iostat = sample("iostat-12.6.txt");
    let words = ["--from", &iostat, "--device", "data=vda", "--volume", "gp3:size=500GiB"];
    let (found, answer) = found_in(&home, &words);
    assert_eq!(found, BTreeSet::new(), "{answer}");
    assert!(codes(&answer["fine"]).is_empty() || !codes(&answer["fine"]).contains("D01"), "{answer}");
    assert!(answer["fine"].as_array().unwrap().contains(&json!("E03")), "{answer}");
    let small = ["--from", &iostat, "--device", "data=vda", "--volume", "gp2:size=20GiB"];
    let (found, answer) = found_in(&home, &small);
    assert!(found.contains("E02"), "vda does more than the baseline of 100 IOPS: {answer}");
}

#[test]
fn an_option_file_is_judged_with_its_includes_and_its_defaults_are_not_guessed() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let main = dir.path().join("my.cnf");
    std::fs::create_dir(dir.path().join("conf.d")).unwrap();
    std::fs::write(&main, "[mysqld]\nlog-bin\nsync_binlog=0\n!includedir conf.d\n").unwrap();
    std::fs::write(
        dir.path().join("conf.d/a.cnf"),
        "[mysqld]\ninnodb_flush_log_at_trx_commit=2\ninnodb_flush_neighbors=1\n",
    )
    .unwrap();
    let path = main.to_str().unwrap();
    let (found, answer) = found_in(&home, &["--from", path]);
    assert_eq!(found, BTreeSet::from(["D01".to_owned(), "D03".to_owned()]), "{answer}");
    let d03 = &answer["findings"].as_array().unwrap().iter().find(|one| one["code"] == "D03").unwrap();
    assert_eq!(
        (d03["confidence"].as_str(), d03["fix"]["statements"].as_array().unwrap().len()),
        (Some("medium"), 0)
    );
    assert_eq!(d03["fix"]["my_cnf"][0], "sync_binlog = 1");
    assert!(answer["unknown"].to_string().contains("--server-version"), "{answer}");
    let words = ["--from", path, "--server-version", "8.0.36", "--volume", "gp3:size=500GiB"];
    let (found, _) = found_in(&home, &words);
    assert!(found.contains("F02"), "{found:?}");
    assert!(!found.contains("F01"), "innodb_flush_method is not set: {found:?}");
    std::fs::write(dir.path().join("2026_01_01_00_00_01-df"), "").unwrap();
    std::fs::write(dir.path().join("2026_01_01_00_09_01-df"), "").unwrap();
    home.run(&["doctor", "--from", dir.path().to_str().unwrap()])
        .refused(2, &["2 runs of pt-stalk", "2026_01_01_00_09_01"]);
}

#[test]
fn the_exit_code_follows_the_severity_and_the_text_begins_with_the_verdict() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("variables");
    std::fs::write(&file, "version\t8.0.36\nlog_bin\tON\nsync_binlog\t0\ninnodb_stats_on_metadata\tON\n")
        .unwrap();
    let path = file.to_str().unwrap();
    let ran = home.run(&["doctor", "--from", path]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.starts_with("2 findings: 1 high, 1 low.\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nFix of D03:\nSET PERSIST sync_binlog = 1;\n"), "{}", ran.stdout);
    assert!(ran.stdout.lines().count() <= 24, "one screen: {}", ran.stdout);
    assert!(!ran.stdout.contains("\nCould not be checked\n"), "{}", ran.stdout);
    let details = home.run(&["doctor", "--from", path, "--details"]).stdout;
    for part in ["\nCould not be checked\n", "Rule  ", "Risk  ", "Cost  "] {
        assert!(details.contains(part), "{part}: {details}");
    }
    assert_eq!(home.run(&["doctor", "--from", path, "--fail-on=critical"]).code, 0);
    assert_eq!(home.run(&["doctor", "--from", path, "--fail-on=high"]).code, 1);
    let cnf = home.run(&["doctor", "--from", path, "--cnf"]);
    assert!(
        cnf.stdout.contains("\nsync_binlog = 1\n") && cnf.stdout.contains("# sync_binlog = 0\n"),
        "{}",
        cnf.stdout
    );
    assert!(!home.root().exists(), "looking makes no home");
}

#[test]
fn a_baseline_shows_what_changed_and_only_new_findings_count() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let head = "version\t8.0.36\nlog_bin\tON\n";
    let before = put("before", &format!("{head}sync_binlog\t0\ninnodb_stats_on_metadata\tON\n"));
    let baseline = put("baseline.json", &home.run(&["doctor", "--from", &before, "--json"]).stdout);
    let same = home.run(&["doctor", "--from", &before, "--baseline", &baseline]);
    assert_eq!(same.code, 0, "nothing is new: {same:?}");
    assert!(
        same.stdout.starts_with("Since the baseline: 0 new, 0 gone, 0 changed, 2 as before."),
        "{same:?}"
    );
    let after = put(
        "after",
        &format!("{head}sync_binlog\t9\ninnodb_stats_on_metadata\tOFF\ninnodb_file_per_table\tOFF\n"),
    );
    let ran = home.run(&["doctor", "--from", &after, "--baseline", &baseline, "--details"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for part in [
        "1 new, 1 gone, 1 changed",
        "C07",
        "Gone: C06  Each look at metadata",
        "Before  sync_binlog: 0, now 9",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let json = home.run(&["doctor", "--from", &after, "--baseline", &baseline, "--json"]).json();
    assert_eq!((&json["baseline"]["new"], json["findings"].as_array().unwrap().len()), (&json!(["C07"]), 2));
    assert_eq!(home.run(&["doctor", "--from", &after, "--baseline", &baseline, "--fail-on=high"]).code, 0);
    for wrong in [put("wrong", "{}"), put("cut", "{\"findings\": ["), before.clone()] {
        home.run(&["doctor", "--from", &after, "--baseline", &wrong])
            .refused(2, &["is no diagnosis", "doctor --json"]);
    }
    let (html, markdown) = (dir.path().join("d.html"), dir.path().join("d.md"));
    let words = ["--html", html.to_str().unwrap(), "--markdown", markdown.to_str().unwrap()];
    home.run(&[&["doctor", "--from", &after], &words[..]].concat());
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("D03") && !page.contains("src=\"http"));
    assert!(std::fs::read_to_string(&markdown).unwrap().contains("\n## D03: "));
    home.run(&["doctor", "--from", &after, "--html", "/nowhere/x.html"])
        .refused(3, &["cannot write /nowhere"]);
}

#[test]
fn a_wrong_file_costs_no_look_and_a_full_disk_no_answer() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    // The server is asked after the files: its socket is in no message.
    let socket = "--mysql-socket=/nowhere.sock";
    for (option, value, code) in [
        ("--html", path("none/page.html"), 3),
        ("--markdown", path("none/page.md"), 3),
        ("--baseline", path("none.json"), 2),
        ("--probe", path("none"), 2),
    ] {
        let ran = home.run(&["doctor", socket, option, &value]);
        assert!(!ran.stderr.contains("/nowhere.sock"), "{ran:?}");
        ran.refused(code, &[&value]);
    }
    let capture = path("none/capture");
    home.run(&["doctor", "capture", socket, "-o", &capture]).refused(3, &[&capture]);
    let before = path("before");
    std::fs::write(&before, "version\t8.0.36\nlog_bin\tON\nsync_binlog\t0\n").unwrap();
    let full = home.run(&["doctor", "--from", &before, "--html", "/dev/full", "--json"]);
    assert_eq!((full.code, full.json()["worst"].as_str()), (3, Some("high")), "{full:?}");
    assert!(full.stderr.contains("cannot write /dev/full"), "{full:?}");
}

#[test]
fn what_cannot_be_judged_is_refused_in_a_sentence() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    home.run(&["doctor", "--mysql-socket=/nowhere.sock"]).refused(3, &["/nowhere.sock"]);
    home.run(&["doctor", "--mysql-password-file", "/nowhere/password"]).refused(2, &["/nowhere/password"]);
    home.run(&["doctor", "--from", "/nowhere"]).refused(2, &["cannot read /nowhere"]);
    let empty = dir.path().join("empty-directory");
    std::fs::create_dir(&empty).unwrap();
    home.run(&["doctor", "--from", empty.to_str().unwrap()]).refused(2, &["no file in it", "pt-stalk"]);
    home.run(&["doctor", "--from", &put("binary", &[0, 159, 146, 150])]).refused(2, &["it is no text"]);
    home.run(&["doctor", "--from", &put("empty", b"")])
        .refused(2, &["of no known kind", "iostat -x", "my.cnf"]);
    home.run(&["doctor", "--from", &put("foreign", b"{\"a\":1}")]).refused(2, &["ebbtide-capture"]);
    home.run(&["doctor", "--explain", "D99"]).refused(2, &["no check has this code"]);
    home.run(&["doctor", "--volume", "gp9:size=5GiB"]).refused(2, &["gp9"]);
    home.run(&["doctor", "--volume", "logs=gp3:size=5GiB"])
        .refused(2, &["data, redo, binlog or redo+binlog"]);
    home.run(&["doctor", "--volume", "redo+binlog=nvme", "--volume", "binlog=nvme"])
        .refused(2, &["volume of the binary log twice"]);
    home.run(&["doctor", "--volume", "nvme", "--volume", "data=nvme"]).refused(2, &["twice"]);
    home.run(&["doctor", "--instance", "m5.tiny"]).refused(2, &["m5.tiny"]);
    home.run(&["doctor", "--interval", "0s"]).refused(2, &["1s to 24h"]);
    home.run(&["doctor", "--server-version", "8.0.36"]).refused(2, &["--from"]);
    home.run(&["doctor", "--from", "/x", "--server-version", "new"]).refused(2, &["8.0.36"]);
    home.run(&["doctor", "--from", "/x", "--device", "log=sda"]).refused(2, &["data, redo or binlog"]);
    home.run(&["doctor", "--fail-on", "bad"]).refused(2, &["low, medium, high or critical"]);
    home.run(&["doctor", "--probe", "/proc/none", "--from", "/x"]).refused(2, &["--from"]);
    home.run(&["doctor", "--check"]).refused(2, &["--prove"]);
    home.run(&["doctor", "--prove", "D99"]).refused(2, &["no check has this code"]);
    home.run(&["doctor", "--from", "/x", "--prove", "--server", "/nowhere/mysqld"])
        .refused(2, &["/nowhere/mysqld"]);
    home.run(&["doctor", "--mysql-host=a,b"]).refused(2, &["one server"]);
    let hostile = put("hostile", b"version\t8.0.36\x1b[2J\nsync_binlog\t0\x1b]0;x\nlog_bin\tON\n");
    assert!(
        !home.run(&["doctor", "--from", &hostile]).stdout.contains('\u{1b}'),
        "escapes reach no terminal"
    );
}

#[test]
fn the_page_of_the_checks_is_what_the_program_prints() {
    let printed = Command::new(EBBTIDE).args(["doctor", "--explain", "all"]).output().unwrap();
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/generated/checks.md")).unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(
        page == printed,
        "docs/generated/checks.md is not current: ebbtide doctor --explain all > docs/generated/checks.md"
    );
    let home = Home::new();
    home.run(&["doctor", "--explain", "all", "--json"]).ok().with(&["doctor", "--explain", "all"]).json();
    let one = home.run(&["doctor", "--explain", "d03", "--json"]).ok().with(&["doctor", "--explain"]).json();
    assert_eq!(one["code"], "D03");
}
