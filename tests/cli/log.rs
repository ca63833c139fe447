//! The server's log: what the host failed is in it, at a limited rate, and each line of a JSON log is JSON.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Home, Need, can, kill_9};

/// A server whose log is a file next to its home, so that it can be written while the home's disk is full.
struct Logged {
    home: Home,
    server: Child,
}

impl Logged {
    fn new(home: Home, arguments: &[&str], filter: &str) -> Self {
        home.calibrate();
        let server = home
            .command(&[&["serve"], arguments].concat())
            .env("EBBTIDE_LOG", filter)
            .stderr(File::options().append(true).create(true).open(home.sibling("log")).unwrap())
            .spawn()
            .unwrap();
        let logged = Self { home, server };
        let give_up = Instant::now() + Duration::from_secs(60);
        while logged.home.run_line("volume list").code != 0 {
            assert!(Instant::now() < give_up, "no answer: {}", logged.text());
        }
        logged
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.home.sibling("log")).unwrap()
    }

    /// Every line so far, each of which is a JSON object.
    fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(value["timestamp"].is_string() && value["level"].is_string(), "{line}");
            value
        };
        self.text().lines().map(parse).collect()
    }

    fn stop(mut self) {
        self.home.run_line("serve --stop --force");
        assert!(self.server.wait().unwrap().success());
    }
}

fn with<'a>(lines: &'a [Value], message: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["message"].as_str().is_some_and(|text| text.contains(message)))
}

#[test]
fn requests_that_a_full_disk_fails_are_logged_with_their_errno_at_a_limited_rate_and_counted() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let logged = Logged::new(Home::on_a_small_disk(24), &["--log-format", "json"], "info");
    logged.home.run_line("volume create db gp3:size=1GiB").ok();
    let device = logged.home.run_line("volume attach db").ok();
    // Small requests, each of which fails by itself: far more than may be logged.
    let began = Instant::now();
    let of = format!("of={}", device.line());
    for seek in 0..64 {
        let seek = format!("seek={seek}");
        let arguments = ["if=/dev/urandom", &of, "bs=1M", "count=1", &seek, "oflag=direct", "status=none"];
        Command::new("dd").args(arguments).stderr(Stdio::null()).status().unwrap();
    }
    let live = logged.home.show("db")["live"].clone();
    let failed = live["host_errors"].as_u64().unwrap();
    assert!(failed > 20, "{live}");
    let kinds = live["host_failures"].as_array().unwrap();
    let counts = kinds.iter().map(|kind| kind["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), failed, "{live}");
    let full = kinds.iter().find(|kind| kind["operation"] == "write" && kind["errno"] == 28);
    assert!(full.unwrap()["count"].as_u64().unwrap() > 20, "{live}");

    let lines = logged.lines();
    let named: Vec<_> = with(&lines, "a request failed").collect();
    let first = named[0];
    assert_eq!(
        (&first["level"], &first["volume"], &first["operation"]),
        (&"ERROR".into(), &"db".into(), &"write".into())
    );
    assert_eq!(first["errno"], 28, "{first}");
    assert!(first["error"].as_str().unwrap().contains("No space left"), "{first}");
    assert!(first["offset"].is_u64() && first["length"].as_u64().unwrap() >= 512, "{first}");
    // Five at once, and one in ten seconds.
    let span = began.elapsed();
    assert!(
        (5..=6 + span.as_secs() / 10).contains(&(named.len() as u64)),
        "{} lines: {named:?}",
        named.len()
    );
    assert!(failed > 2 * named.len() as u64, "{failed} failures, {} lines", named.len());
    logged.stop();
}

#[test]
fn each_line_of_a_json_log_is_json_and_each_request_is_traced() {
    // What a killed server left is named in the log, too.
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let format: &[&str] = &["--log-format", "json"];
    let mut killed = Logged::new(Home::new(), format, "info");
    killed.home.run_line("volume create db gp3:size=1GiB").ok();
    killed.home.run_line("volume attach db").ok();
    kill_9(killed.server.id());
    killed.server.wait().unwrap();
    let Logged { home, .. } = killed;
    std::fs::remove_file(home.sibling("log")).unwrap();
    let logged = Logged::new(home, format, "info,ebbtide_control=debug,ebbtide_device=trace");
    let device = logged.home.run_line("volume attach db").ok();
    let of = format!("of={}", device.line());
    let write = ["if=/dev/zero", &of, "bs=4096", "count=1", "seek=3", "oflag=direct", "status=none"];
    assert!(Command::new("dd").args(write).status().unwrap().success());
    logged.home.run_line("volume attach db").refused(2, &["is attached"]);
    logged.home.run_line("volume detach db").ok();

    let lines = logged.lines();
    let answers: Vec<_> = with(&lines, "answered").filter(|line| line["operation"] == "write").collect();
    let ours = answers.iter().find(|line| line["offset"] == 3 * 4096).unwrap();
    assert_eq!((&ours["volume"], &ours["length"], &ours["errno"]), (&"db".into(), &4096.into(), &0.into()));
    assert!(ours["took_us"].is_u64() && ours["late_us"].is_u64(), "{ours}");
    for target in ["ebbtide_device::fuse", "ebbtide_device::store::volume"] {
        let found = lines.iter().find(|line| {
            line["target"] == target && line["operation"] == "write" && line["offset"] == 3 * 4096
        });
        assert!(found.is_some(), "{target} says nothing");
    }
    let refused = with(&lines, "refused").find(|line| line["kind"] == "Conflict").unwrap();
    let span = &refused["spans"][0];
    assert_eq!(
        (&span["name"], &span["operation"], &span["volume"]),
        (&"request".into(), &"attach".into(), &"db".into())
    );
    logged.stop();
}

#[test]
fn a_filter_that_is_none_is_refused_before_a_server_starts() {
    let home = Home::new();
    for arguments in [&["serve"][..], &["serve", "--detach"]] {
        for filter in ["loud=yes=no", "inof"] {
            let output = home.command(arguments).env("EBBTIDE_LOG", filter).output().unwrap();
            let shown = format!("EBBTIDE_LOG='{filter}'");
            crate::harness::Ran::of(output).refused(2, &[&shown, "hint: write a level"]);
        }
    }
    assert!(!home.root().join("control.sock").exists());
}
