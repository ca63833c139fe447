//! A scrape of a real server with a volume under I/O: its counters, and what Prometheus's own tool says of the text.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test panics where something is missing")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

#[allow(dead_code, reason = "the tests of the command line use the rest")]
#[path = "../cli/harness.rs"]
mod harness;

use harness::{Home, Need, Ran, can, tool};

/// The text that a scrape of this URL gets.
fn scrape(url: &str) -> String {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}

/// The value of a line, by its name with all labels.
#[track_caller]
fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not in\n{text}")).parse().unwrap()
}

/// The value of a family for the volume `db`.
#[track_caller]
fn of_db(text: &str, family: &str) -> f64 {
    value(text, &format!("{family}{{volume=\"db\"}}"))
}

/// Serves a volume `db` over NBD; answers the URL of the metrics, and that of the volume.
fn served(home: &Home, spec: &str) -> (String, String) {
    let started = home.run_line("serve --detach --json --metrics 0").ok().json();
    home.run(&["volume", "create", "db", spec]).ok();
    (started["metrics"].as_str().unwrap().to_owned(), attach(home))
}

fn attach(home: &Home) -> String {
    let socket = format!("unix:{}", home.sibling("db.sock").display());
    home.run(&["volume", "attach", "db", "--nbd", &socket]).ok().line().to_owned()
}

/// Writes 4 MiB to a volume, and reads it.
fn write_and_read(home: &Home, uri: &str) {
    let (content, back) = (home.sibling("content"), home.sibling("back"));
    std::fs::write(&content, vec![7; 4 << 20]).unwrap();
    tool("nbdcopy", &["--flush", content.to_str().unwrap(), uri]);
    tool("nbdcopy", &[uri, back.to_str().unwrap()]);
}

/// Families, and where `volume show --json` has the same, below `live.stats`.
const SAME: [(&str, &str, f64); 9] = [
    ("ebbtide_volume_reads_completed_total", "/read/ops", 1.0),
    ("ebbtide_volume_writes_completed_total", "/write/ops", 1.0),
    ("ebbtide_volume_flushes_completed_total", "/flush_ops", 1.0),
    ("ebbtide_volume_consumed_operations_total", "/consumed_ops", 1.0),
    ("ebbtide_volume_read_bytes_total", "/read/bytes", 1.0),
    ("ebbtide_volume_written_bytes_total", "/write/bytes", 1.0),
    ("ebbtide_volume_read_time_seconds_total", "/read/time", 1e-9),
    ("ebbtide_volume_write_time_seconds_total", "/write/time", 1e-9),
    ("ebbtide_volume_read_latency_seconds_count", "/read/ops", 1.0),
];

#[test]
fn a_scrape_has_the_counters_of_the_volume_and_promtool_takes_it() {
    if !can(&[Need::Tool("nbdcopy")]) {
        return;
    }
    let home = Home::calibrated();
    let (url, uri) = served(&home, "gp2:size=1GiB,credits=50%");
    write_and_read(&home, &uri);
    // Nothing is asked of the volume any more.
    let (text, shown) = (scrape(&url), home.show("db"));
    let stats = &shown["live"]["stats"];
    for (family, place, unit) in SAME {
        let expected = stats.pointer(place).and_then(Value::as_f64).unwrap() * unit;
        let found = of_db(&text, family);
        assert!((found - expected).abs() <= expected * 1e-9, "{family}: {found}, shown as {expected}");
    }
    assert!(of_db(&text, "ebbtide_volume_written_bytes_total") >= f64::from(4 << 20), "{text}");
    assert_eq!(value(&text, "ebbtide_volume_state{volume=\"db\",state=\"in-use\"}"), 1.0);
    assert_eq!(of_db(&text, "ebbtide_volume_size_bytes"), shown["size_bytes"].as_f64().unwrap());
    let ratio = of_db(&text, "ebbtide_volume_credit_ratio");
    assert!((ratio - shown["credits"]["left_pct"].as_f64().unwrap() / 100.0).abs() < 0.01, "{ratio}");
    let limit = "ebbtide_volume_limit_iops{volume=\"db\",scope=\"volume\",level=";
    assert_eq!(value(&text, &format!("{limit}\"sustained\"}}")), shown["figures"]["iops"].as_f64().unwrap());
    assert_eq!(
        value(&text, &format!("{limit}\"burst\"}}")),
        shown["figures"]["burst_iops"].as_f64().unwrap()
    );
    let late = of_db(&text, "ebbtide_volume_answer_lateness_seconds_count");
    assert_eq!(late, shown["live"]["pacing"]["count"].as_f64().unwrap());
    assert!(value(&text, "process_resident_memory_bytes") > f64::from(1 << 20), "{text}");
    check_with_promtool(&text);
}

/// `promtool check metrics`, which also judges names and units.
fn check_with_promtool(text: &str) {
    if !can(&[Need::Tool("promtool")]) {
        return;
    }
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check = command.spawn().unwrap();
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let checked = Ran::of(check.wait_with_output().unwrap());
    assert_eq!((checked.code, checked.stderr.as_str()), (0, ""), "{}\n{text}", checked.stdout);
}

#[test]
fn counters_stay_after_a_detach_and_go_on_after_an_attach() {
    if !can(&[Need::Tool("nbdcopy")]) {
        return;
    }
    let home = Home::calibrated();
    let (url, uri) = served(&home, "gp3:size=1GiB");
    write_and_read(&home, &uri);
    let first = scrape(&url);
    home.run_line("volume detach db").ok();
    let detached = scrape(&url);
    write_and_read(&home, &attach(&home));
    let again = scrape(&url);
    for (family, _, _) in SAME {
        let values = [&first, &detached, &again].map(|text| of_db(text, family));
        // A client may ask for something when it leaves.
        assert!(values[0] <= values[1] && values[1] < values[2], "{family}: {values:?}");
    }
    assert_eq!(value(&detached, "ebbtide_volume_state{volume=\"db\",state=\"available\"}"), 1.0);
    assert!(!detached.contains("ebbtide_volume_queue_length{volume=\"db\"}"), "{detached}");
    home.run_line("volume delete db").refused(2, &["attached"]);
    home.run_line("volume detach db").ok();
    home.run_line("volume delete db").ok();
    assert!(!scrape(&url).contains("volume=\"db\""), "it is gone");
}
