//! Accounts with few grants: what can be judged is, and what they lack is named.

use std::os::unix::fs::PermissionsExt as _;

use ebbtide_load::Session;

use super::codes;
use crate::candidate::{Started, started};
use crate::harness::{Home, Ran};

/// A server with an account that has no grant.
fn with_few(name: &str) -> Option<(Started, Session)> {
    let started = started(name, &[("log_bin", "on")])?;
    let mut session = started.server.session().unwrap();
    session.execute("CREATE USER few@localhost IDENTIFIED BY 'few-secret'").unwrap();
    Some((started, session))
}

/// Runs the doctor with the password of that account.
fn as_few(home: &Home, words: &[&str]) -> Ran {
    let mut command = home.command(words);
    Ran::of(command.env("EBBTIDE_MYSQL_PASSWORD", "few-secret").output().unwrap()).with(words)
}

#[test]
fn an_account_with_few_grants_of_mysql_is_told_what_others_need() {
    let Some((started, mut session)) = with_few("mysql-9.7") else { return };
    let home = Home::new();
    let words = ["doctor", &started.socket(), "--mysql-user=few", "--interval=1s", "--json"];
    let not_seen = || as_few(&home, &words).json()["not_seen"].to_string();
    let why = not_seen();
    for privilege in ["REPLICATION CLIENT", "PROCESS", "SELECT on performance_schema.*"] {
        assert!(why.contains(&format!("grant {privilege}")), "{privilege}: {why}");
    }
    for sql in [
        "GRANT PROCESS, REPLICATION CLIENT ON *.* TO few@localhost",
        "GRANT SELECT ON performance_schema.* TO few@localhost",
    ] {
        session.execute(sql).unwrap();
    }
    assert!(!not_seen().contains("grant "), "{}", not_seen());
    started.server.kill().unwrap();
}

#[test]
fn an_account_with_few_grants_gets_answers_and_the_grants_that_others_need() {
    let Some((started, mut session)) = with_few("system") else { return };
    let home = Home::new();
    let socket = started.socket();
    let words = ["doctor", &socket, "--mysql-user=few", "--interval=1s", "--json"];
    let answer = as_few(&home, &words).json();
    assert!(codes(&answer["fine"]).contains("D01"), "{answer}");
    let why = answer["not_seen"].to_string();
    assert!(why.contains("grant REPLICATION CLIENT") && why.contains("grant PROCESS"), "{why}");
    assert!(codes(&answer["unknown"]).contains("B04"), "{answer}");
    // Tables that the account does not see.
    session.execute("CREATE DATABASE d").unwrap();
    session.execute("CREATE TABLE d.m (a INT) ENGINE = MyISAM").unwrap();
    session.execute("CREATE TABLE d.i (a INT) ENGINE = InnoDB").unwrap();
    session.execute("GRANT PROCESS ON *.* TO few@localhost").unwrap();
    let d11 = |list: &str| codes(&as_few(&home, &words).json()[list]).contains("D11");
    assert!(d11("unknown"), "what is not seen is not fine");
    let ran = as_few(&home, &["doctor", "capture", &socket, "--mysql-user=few", "--interval=1s"]);
    let captured: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let tables = &captured["observation"]["tables"]["engines"];
    assert!(tables[0]["bytes"].as_u64() > Some(0), "sizes of files that the account may read: {tables}");
    session.execute("GRANT SELECT ON *.* TO few@localhost").unwrap();
    assert!(d11("findings"));
    home.run(&["doctor", &socket, "--mysql-user=few", "--mysql-password=wrong"])
        .refused(3, &["1045", "--mysql-user"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.cnf");
    std::fs::write(
        &file,
        format!("[client]\nuser=few\npassword=few-secret\nsocket={}\n", &socket["--mysql-socket=".len()..]),
    )
    .unwrap();
    let option = format!("--defaults-file={}", file.display());
    for (mode, warned) in [(0o600, false), (0o644, true)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let ran = home.run(&["doctor", &option, "--interval=1s", "--json"]);
        assert!(codes(&ran.json()["fine"]).contains("D01"), "{ran:?}");
        assert_eq!(ran.stderr.contains("every user may read it"), warned, "{}", ran.stderr);
        assert!(!ran.stderr.contains("few-secret"), "{}", ran.stderr);
    }
    started.server.kill().unwrap();
}
