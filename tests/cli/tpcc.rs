//! `ebbtide load ... tpcc` on a real server: what each command prints, and its exit codes.

use std::os::unix::fs::PermissionsExt as _;

use ebbtide_load::Session;
use ebbtide_mysql::{Binary, Layout, Server, ServerPlan, initialize};

use crate::candidate::{login, work};
use crate::harness::{Home, Need, Ran, can};

#[test]
fn tpcc_is_loaded_run_checked_and_dropped_and_a_broken_row_ends_the_check_with_1() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let dir = tempfile::Builder::new().prefix("ebbtide-cli-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let layout = Layout::single(dir.path().join("data"));
    let plan = ServerPlan::new(Binary::detect(None).unwrap(), layout, work(dir.path()));
    initialize(&plan, &|_| {}).unwrap();
    let server = Server::start(&plan, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    let target = server.target();
    let socket = format!("--mysql-socket={}", target.endpoints[0]);
    let (home, login) = (Home::new(), login(dir.path()));
    let load = |command: &str, more: &str| {
        let words: Vec<&str> = more.split_whitespace().collect();
        home.run(&[&["load", command, "tpcc", &socket, &login], &words[..]].concat())
    };

    load("run", "").refused(3, &["1049", "hint: "]);
    let loaded = load("prepare", "--rand-seed=5 --threads=2").ok();
    for part in ["seed 5", "Loaded 9 tables"] {
        assert!(loaded.stdout.contains(part), "{part}:\n{}", loaded.stdout);
    }
    load("prepare", "").refused(3, &["1050", "ebbtide load cleanup tpcc --execute"]);
    load("run", "--warehouses=2").refused(3, &["they have 1 warehouses", "--warehouses=2", "hint: "]);
    load("run", "--table-size=5").refused(2, &["--table-size", "leave them out"]);
    load("run", "--point-selects=5").refused(2, &["--point-selects"]);
    load("run", "--wait-mode=spec --rate=5").refused(2, &["--wait-mode=spec and --rate"]);

    assert_answered(&load);
    let json = load("run", "--threads=2 --time=1 --json").ok().json();
    assert_eq!(
        (json["kit"]["name"].as_str(), json["tables"]["warehouses"].as_u64()),
        (Some("ebbtide"), Some(1))
    );

    let holds = load("check", "").ok();
    assert!(holds.stdout.contains("All twelve hold."), "{}", holds.stdout);
    let mut session = Session::open(&target, &target.endpoints[0]).unwrap();
    session.execute("UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 3").unwrap();
    let broken = load("check", "");
    assert_eq!(broken.code, 1, "{}", broken.stdout);
    for part in ["1  DOES NOT HOLD", "w_id 1: w_ytd is ", "d_w_id 1, d_id 3: d_ytd is ", "not consistent"] {
        assert!(broken.stdout.contains(part), "{part}:\n{}", broken.stdout);
    }
    let json = load("check", "--json").json();
    assert_eq!(json["consistent"], false, "{json}");

    let would = load("cleanup", "").ok();
    assert!(would.stdout.contains("would drop from sbtest: warehouse, district"), "{}", would.stdout);
    load("cleanup", "--execute").ok();
    assert!(load("cleanup", "").ok().stdout.contains("no tables of ours"));
}

/// The answer of a run, with its details.
fn assert_answered(load: &impl Fn(&str, &str) -> Ran) {
    let ran = load("run", "--threads=2 --time=2 --trx-level=RC --details").ok();
    let flat = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "READ COMMITTED",
        " tpmC at 2 connections over 2 s; p50 ",
        "all limits of the response kept.",
        "(12.86 for each of 1 warehouses)",
        "with the statements of tpcc-mysql",
        " per transaction",
        "Wait mode no keying and think times",
        "stock_level",
        "20 s: kept",
        "Percentiles (ms)",
        "SQL statistics:",
        "seed ",
    ] {
        assert!(flat.contains(part), "{part}:\n{}", ran.stdout);
    }
    let batched = load("run", "--threads=2 --time=1 --statements=batched --show tpcc").ok().stdout;
    let batched = batched.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(batched.contains("with the statements of tpcc-mysql, batched as by go-tpc"), "{batched}");
}
