//! `ebbtide doctor --prove` of a capture: what would run, and what is refused.

use serde_json::{Value, json};

use crate::harness::{Home, Need, can};

/// A capture of a MariaDB with a small redo log under load, as `doctor capture` writes it.
fn busy_capture() -> Value {
    let variables = json!({
        "version": "10.11.19-MariaDB", "log_bin": "ON", "sync_binlog": "0", "innodb_buffer_pool_size": "33554432",
        "innodb_log_file_size": "50331648", "innodb_page_size": "16384", "innodb_flush_log_at_trx_commit": "1",
        "innodb_stats_on_metadata": "OFF", "relay_log_recovery": "ON",
    });
    let rates = json!({
        "commits": 100.0, "read_statements": 1000.0, "write_statements": 300.0, "redo_bytes": 1e6,
        "threads_running": 8.0, "page_reads": 0.0, "data_pages": 2000.0,
    });
    let facts = json!({
        "flavour": "mariadb", "version": "10.11.19-MariaDB", "aurora": null, "doublewrite": "ON", "page_bytes": 16384,
        "direct": true, "flush_neighbors": false,
    });
    json!({"format": "ebbtide-capture", "version": 1, "program": "0", "observation": {
        "origin": {"server": {"at": "/s"}}, "span": {"began_unix_s": null, "seconds": 60.0, "restarted": false},
        "variables": variables, "facts": facts, "rates": rates, "not_seen": [],
    }})
}

#[test]
fn a_proof_is_planned_and_what_cannot_be_proved_is_refused_in_a_sentence() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let (home, dir) = (Home::new(), tempfile::tempdir().unwrap());
    let put = |name: &str, capture: &Value| {
        let path = dir.path().join(name);
        std::fs::write(&path, capture.to_string()).unwrap();
        format!("--from={}", path.display())
    };
    let (busy, volume) = (busy_capture(), "--volume=gp3:size=20GiB");
    let capture = put("busy", &busy);
    let prove = |code: &str, more: &[&str]| {
        let prove = format!("--prove={code}");
        home.run(&[&["doctor", &capture, &prove][..], more].concat())
    };
    let planned = prove("R01", &[volume, "--check", "--quick"]).planned().stdout;
    for text in
        ["[arms.R01.settings]", "innodb_log_file_size=4563402752", "point_selects = 10", "3 trials of each, "]
    {
        assert!(planned.contains(text), "'{text}' is not in: {planned}");
    }
    let plan = prove("D03", &[volume, "--check", "--json"]).planned();
    let plan = plan.with(&["doctor", "--prove", "--check"]).json();
    assert_eq!(plan["experiment"]["arms"].as_array().unwrap().len(), 2);
    prove("C06", &[volume]).refused(2, &["there is no finding C06 to prove", "it finds nothing"]);
    prove("E04", &[volume]).refused(2, &["there is no finding E04 to prove", "no answer"]);
    prove("R01", &[]).refused(2, &["--volume data=SPEC"]);
    let planned = prove("E01", &["--volume=gp2:size=100GiB", "--check", "--quick"]).planned().stdout;
    assert!(planned.contains("[arms.E01.volumes]\ndata = \"gp3:size=100GiB,iops=3000"), "{planned}");
    let logs = "--volume=redo+binlog=gp2:size=100GiB";
    let planned = prove("E01", &[volume, logs, "--check", "--quick"]).planned().stdout;
    for text in [
        "[volumes]\ndata = \"gp3:size=20GiB\"\n\"redo+binlog\" = \"gp2:size=100GiB\"\n",
        "[arms.E01.volumes]\n\"redo+binlog\" = \"gp3:",
    ] {
        assert!(planned.contains(text), "'{text}' is not in: {planned}");
    }
    let mut idle = busy.clone();
    idle["observation"]["rates"] = json!({"read_statements": 0.1, "write_statements": 0.0});
    let idle = put("idle", &idle);
    home.run(&["doctor", &idle, "--prove=D03", volume]).refused(2, &["usual load"]);
    let mut other = busy;
    other["observation"]["facts"]["flavour"] = "mysql".into();
    other["observation"]["variables"]["version"] = "8.0.36".into();
    let other = put("other", &other);
    home.run(&["doctor", &other, "--prove=D03", volume]).refused(2, &["MySQL", "MariaDB", "--server"]);
    assert!(!home.root().join("lab").exists(), "nothing was run");
}
