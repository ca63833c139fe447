//! Either tool runs on the other's tables, and a server cannot distinguish them.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use ebbtide_load::{ClientOptions, Endpoint, LoadError, RunOptions, Tls, Workload};

use crate::support::{Server, find, schema};

fn sysbench(server: &Server, arguments: &[&str]) -> Option<Output> {
    let Some(program) = find("sysbench") else {
        println!("SKIPPED: sysbench (apt install sysbench)");
        return None;
    };
    let output = Command::new(program)
        .arg(format!("--mysql-socket={}", server.socket().display()))
        .args(["--mysql-user=root", "--mysql-db=sbtest", "--tables=2", "--table-size=1000", "--threads=2"])
        .args(arguments)
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {text}");
    Some(output)
}

fn options(workload: Workload) -> RunOptions {
    RunOptions {
        schema: schema(2, 1_000),
        clients: ClientOptions {
            connections: 2,
            duration: Some(Duration::from_millis(500)),
            ..ClientOptions::default()
        },
        ..RunOptions::new(workload)
    }
}

/// What the two tools' tables can differ in.
fn description(server: &Server) -> Vec<String> {
    let mut session = server.session();
    let mut lines = Vec::new();
    for table in ["sbtest1", "sbtest2"] {
        let created = session.rows(&format!("SHOW CREATE TABLE {table}")).unwrap()[0][1].clone().unwrap();
        // How far the counter runs ahead depends on how the rows came in.
        let counter = created.find(" AUTO_INCREMENT=").unwrap();
        let rest = &created[counter + 1..];
        lines.push(format!("{}{}", &created[..counter], &rest[rest.find(' ').unwrap()..]));
        let range = session
            .rows(&format!(
                "SELECT COUNT(*), MIN(id), MAX(id), MIN(k) >= 1, MAX(k) <= 1000, MIN(LENGTH(c)), MAX(LENGTH(c)), \
                 MIN(LENGTH(pad)), MAX(LENGTH(pad)), \
                 MIN(c REGEXP '^([0-9]{{11}}-){{9}}[0-9]{{11}}$'), MIN(pad REGEXP '^([0-9]{{11}}-){{4}}[0-9]{{11}}$') \
                 FROM {table}"
            ))
            .unwrap();
        lines.push(format!("{range:?}"));
    }
    lines
}

#[test]
fn both_tools_make_the_same_tables_with_the_same_ranges() {
    let Some(server) = Server::start() else { return };
    if sysbench(&server, &["oltp_read_write", "prepare"]).is_none() {
        return;
    }
    let theirs = description(&server);
    sysbench(&server, &["oltp_read_write", "cleanup"]);
    server.prepare(&options(Workload::ReadWrite));
    assert_eq!(description(&server), theirs);
}

#[test]
fn either_tool_runs_on_the_tables_of_the_other() {
    let Some(server) = Server::start() else { return };
    if sysbench(&server, &["oltp_read_write", "prepare"]).is_none() {
        return;
    }
    let all = [
        Workload::PointSelect,
        Workload::ReadOnly,
        Workload::ReadWrite,
        Workload::WriteOnly,
        Workload::UpdateIndex,
        Workload::UpdateNonIndex,
        Workload::Insert,
        Workload::Delete,
    ];
    for workload in all {
        let report = server.run(&options(workload));
        assert!(report.totals.events > 10, "{workload}: {:?}", report.ended);
    }
    sysbench(&server, &["oltp_read_write", "cleanup"]);
    server.prepare(&options(Workload::ReadWrite));
    for workload in all {
        sysbench(&server, &[workload.name(), "--time=1", "run"]);
    }
}

/// The statements of a general log, without what differs from run to run: numbers and digits.
fn shapes(log: &str) -> BTreeSet<String> {
    let statements = log.lines().filter_map(|line| {
        ["Prepare\t", "Execute\t", "Query\t"].iter().find_map(|kind| Some((*kind, line.split_once(kind)?.1)))
    });
    let shape = |(kind, text): (&str, &str)| {
        let mut shape = String::from(kind.trim());
        shape.push(' ');
        for c in text.chars() {
            let c = if c.is_ascii_digit() { '#' } else { c };
            if c != '#' || !shape.ends_with('#') {
                shape.push(c);
            }
        }
        shape
    };
    statements
        .filter(|(_, text)| text.contains(" sbtest") || matches!(*text, "BEGIN" | "COMMIT"))
        .map(shape)
        .collect()
}

#[test]
fn a_server_sees_the_same_statements_from_both_tools() {
    let Some(server) = Server::start() else { return };
    if sysbench(&server, &["oltp_read_write", "prepare"]).is_none() {
        return;
    }
    let log_of = |name: &str, run: &dyn Fn()| {
        let path = server.path("data").join(name);
        let mut session = server.session();
        session.execute("SET GLOBAL general_log = OFF").unwrap();
        session.execute(&format!("SET GLOBAL general_log_file = '{}'", path.display())).unwrap();
        session.execute("SET GLOBAL general_log = ON").unwrap();
        run();
        session.execute("SET GLOBAL general_log = OFF").unwrap();
        shapes(&fs::read_to_string(path).unwrap())
    };
    for workload in [Workload::PointSelect, Workload::ReadWrite, Workload::Insert, Workload::Delete] {
        for prepared in [true, false] {
            let mode = if prepared { "--db-ps-mode=auto" } else { "--db-ps-mode=disable" };
            let theirs = log_of(&format!("theirs-{workload}-{prepared}"), &|| {
                sysbench(&server, &[workload.name(), mode, "--events=200", "--time=20", "run"]);
            });
            let ours = log_of(&format!("ours-{workload}-{prepared}"), &|| {
                server.run(&RunOptions {
                    clients: ClientOptions {
                        prepared,
                        events: Some(200),
                        duration: None,
                        ..options(workload).clients
                    },
                    ..options(workload)
                });
            });
            assert!(!ours.is_empty());
            assert_eq!(ours, theirs, "{workload} prepared: {prepared}");
        }
    }
}

#[test]
fn passwords_of_every_kind_open_the_door_over_tcp() {
    let Some(server) = Server::start() else { return };
    let mut session = server.session();
    let mut accounts = vec![("native", "IDENTIFIED BY 'pa''ss'")];
    if session.execute("INSTALL SONAME 'auth_ed25519'").is_ok() {
        accounts.push(("ed", "IDENTIFIED VIA ed25519 USING PASSWORD('pa''ss')"));
    } else {
        println!("SKIPPED: ed25519 (the server has no auth_ed25519 plugin)");
    }
    for (user, how) in accounts {
        session.execute(&format!("CREATE USER {user}@'127.0.0.1' {how}")).unwrap();
        session.execute(&format!("GRANT ALL ON sbtest.* TO {user}@'127.0.0.1'")).unwrap();
        let mut target = server.target();
        target.endpoints = vec![Endpoint::Tcp { host: "127.0.0.1".into(), port: server.port }];
        user.clone_into(&mut target.user);
        "pa'ss".clone_into(&mut target.password);
        ebbtide_load::Session::open(&target, &target.endpoints[0]).unwrap();
        target.password.push('x');
        let error = ebbtide_load::Session::open(&target, &target.endpoints[0]).unwrap_err();
        assert_eq!(error.code(), Some(1045), "{error}");
    }
}

#[test]
fn a_mysql_server_lets_every_kind_of_account_in_and_runs_what_it_cannot_prepare_as_text() {
    // MySQL 9 has no native passwords.
    let servers: [(&str, &[&str]); 2] = [
        ("mysql-8.0", &["caching_sha2_password", "sha256_password", "mysql_native_password"]),
        ("mysql-9.7", &["caching_sha2_password", "sha256_password"]),
    ];
    for (name, plugins) in servers {
        let Some(server) = Server::start_fetched(name, &[]) else { continue };
        server.prepare(&options(Workload::ReadWrite));
        for plugin in plugins {
            assert_let_in(&server, plugin);
        }
    }
}

fn assert_let_in(server: &Server, plugin: &str) {
    let mut session = server.session();
    let mut target = server.target();
    target.endpoints = vec![Endpoint::Tcp { host: "127.0.0.1".into(), port: server.port }];
    "pa ss".clone_into(&mut target.password);
    plugin.clone_into(&mut target.user);
    session
        .execute(&format!("CREATE USER {plugin}@'127.0.0.1' IDENTIFIED WITH {plugin} BY 'pa ss'"))
        .unwrap();
    session.execute(&format!("GRANT ALL ON sbtest.* TO {plugin}@'127.0.0.1'")).unwrap();
    // The second login finds the password in the server's cache, which is another exchange.
    for _ in 0..2 {
        let cancel = ebbtide_load::Cancel::default();
        let report = ebbtide_load::run(&target, &options(Workload::ReadWrite), &cancel, &mut |_| {}).unwrap();
        assert!(report.totals.events > 5, "{plugin}: {:?}", report.ended);
    }
}

/// A key and a certificate of its own for localhost, and the options of a server that has them; None without openssl.
fn certificate() -> Option<(tempfile::TempDir, std::path::PathBuf, [String; 2])> {
    let Some(openssl) = find("openssl") else {
        println!("SKIPPED: openssl (apt install openssl)");
        return None;
    };
    let keys = tempfile::tempdir().unwrap();
    let (key, cert) = (keys.path().join("key.pem"), keys.path().join("cert.pem"));
    let made = Command::new(openssl)
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()
        .unwrap();
    assert!(made.status.success());
    let open = std::os::unix::fs::PermissionsExt::from_mode;
    fs::set_permissions(keys.path(), open(0o755)).unwrap();
    fs::set_permissions(&key, open(0o644)).unwrap();
    let settings = [format!("--ssl-key={}", key.display()), format!("--ssl-cert={}", cert.display())];
    Some((keys, cert, settings))
}

#[test]
fn tls_without_an_authority_does_not_get_the_password() {
    let Some((_keys, cert, settings)) = certificate() else { return };
    let Some(server) = Server::start_fetched("mysql-9.7", &[&settings[0], &settings[1]]) else { return };
    let mut session = server.session();
    for plugin in ["caching_sha2_password", "sha256_password"] {
        session
            .execute(&format!("CREATE USER {plugin}@'127.0.0.1' IDENTIFIED WITH {plugin} BY 's3cret'"))
            .unwrap();
        let mut target = server.target();
        target.endpoints = vec![Endpoint::Tcp { host: "127.0.0.1".into(), port: server.port }];
        "s3cret".clone_into(&mut target.password);
        plugin.clone_into(&mut target.user);
        let mut open = |ca: Option<&std::path::Path>| {
            target.tls = Some(Tls { ca: ca.map(Into::into) });
            ebbtide_load::Session::open_without_database(&target, &target.endpoints[0])
        };
        let error = open(None).unwrap_err();
        let is_refused = |error: &LoadError| matches!(error, LoadError::ClearPassword { .. });
        assert!(is_refused(&error) && error.to_string().contains(plugin), "{error}");
        open(Some(&cert)).unwrap();
        // Once the server has it in its cache, it asks for no more than a proof.
        let again = open(None);
        assert_eq!(again.is_ok(), plugin == "caching_sha2_password", "{again:?}");
        assert!(again.err().is_none_or(|error| is_refused(&error)));
    }
}

#[test]
fn an_encrypted_run_does_the_same_work() {
    let Some((_keys, cert, settings)) = certificate() else { return };
    let Some(server) = Server::start_with(&[&settings[0], &settings[1]]) else { return };
    server.prepare(&options(Workload::ReadWrite));
    let mut target = server.target();
    target.endpoints = vec![Endpoint::Tcp { host: "localhost".into(), port: server.port }];
    for ca in [None, Some(cert)] {
        target.tls = Some(Tls { ca });
        for workload in [Workload::ReadWrite, Workload::BulkInsert] {
            if workload == Workload::BulkInsert {
                ebbtide_load::cleanup(&server.target(), 2).unwrap();
                server.prepare(&options(workload));
            }
            let report =
                ebbtide_load::run(&target, &options(workload), &ebbtide_load::Cancel::default(), &mut |_| {})
                    .unwrap();
            assert!(report.server.tls && report.totals.events > 10, "{:?}", report.ended);
        }
        ebbtide_load::cleanup(&server.target(), 2).unwrap();
        server.prepare(&options(Workload::ReadWrite));
    }
    let mut session = ebbtide_load::Session::open(&target, &target.endpoints[0]).unwrap();
    let cipher = session.rows("SHOW STATUS LIKE 'Ssl_cipher'").unwrap();
    assert!(!cipher[0][1].as_ref().unwrap().is_empty(), "{cipher:?}");
}
