//! Metrics of a running server: where they can be served, and how that changes without a restart.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::aws::get;
use crate::harness::Home;

/// Where a server listens whose metrics have this URL.
fn base(url: &str) -> &str {
    url.strip_suffix("/metrics").unwrap()
}

#[test]
fn metrics_are_refused_where_they_cannot_be_served() {
    let home = Home::new();
    for wrong in ["70000", "host:1", "127.0.0.1"] {
        home.run(&["serve", "--metrics", wrong]).refused(2, &["is neither PORT (0 to 65535) nor HOST:PORT"]);
    }
    for other in ["0.0.0.0:0", "192.0.2.1:9421"] {
        home.run(&["serve", "--metrics", other]).refused(2, &[other, "is no loopback address", "ssh -L"]);
    }
    home.run_line("serve --status --metrics 0").refused(2, &["cannot be used with"]);
    home.run_line("serve --stop --metrics 0").refused(2, &["cannot be used with"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let cannot = format!("cannot listen at 127.0.0.1:{port} for metrics");
    home.run_line(&format!("serve --metrics {port}")).refused(3, &[&cannot, "port 0 takes one that is free"]);
    home.run_line(&format!("serve --detach --metrics {port}"))
        .refused(3, &["the server ended at once", &cannot]);
}

#[test]
fn a_running_server_begins_moves_and_ends_its_metrics() {
    let home = Home::served();
    let status = || home.run_line("serve --status --json").ok().json()["metrics"].clone();
    assert_eq!(status(), Value::Null);
    let changed = home.run_line("serve --change --metrics 0").ok();
    let first = changed.line().strip_prefix("metrics: ").unwrap().to_owned();
    assert_eq!(status(), first.as_str());
    assert!(home.run_line("serve --status").ok().stdout.contains(&format!("\nmetrics: {first}\n")));
    let text = get(base(&first), "/metrics");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for part in ["content-type: text/plain; version=0.0.4; charset=utf-8", "ebbtide_build_info{version="] {
        assert!(text.contains(part), "{part} is not in {text}");
    }

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    home.run_line(&format!("serve --change --metrics {port}")).refused(3, &["cannot listen at 127.0.0.1"]);
    home.run_line("serve --change --metrics 0.0.0.0:9").refused(2, &["is no loopback address"]);
    assert_eq!(status(), first.as_str(), "what was served is served on");
    let address = base(&first).strip_prefix("http://").unwrap();
    home.run_line(&format!("serve --change --metrics {address}")).ok();
    assert_eq!(status(), first.as_str(), "it is there already");

    let moved = home.run_line("serve --change --metrics localhost:0 --json").ok().json();
    let second = moved["metrics"].as_str().unwrap();
    assert_ne!(second, first);
    assert!(get(base(second), "/metrics").starts_with("HTTP/1.1 200"));
    assert!(TcpStream::connect(address).is_err(), "the first port is free again");

    assert_eq!(home.run_line("serve --change --metrics off").ok().line(), "metrics: off");
    assert_eq!(status(), Value::Null);
    home.run_line("serve --change --metrics off").ok();
    home.run_line("serve --stop").ok();
    home.run_line("serve --change --metrics 0").refused(3, &["is not running"]);
}

#[test]
fn other_paths_have_a_link_and_other_methods_are_refused() {
    let home = Home::new();
    let started = home.run_line("serve --detach --json --metrics 0").ok().json();
    let url = started["metrics"].as_str().unwrap();
    let missing = get(base(url), "/");
    assert!(missing.starts_with("HTTP/1.1 404") && missing.contains("<a href=\"/metrics\">"), "{missing}");
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(base(url).strip_prefix("http://").unwrap()).unwrap();
        stream.write_all(format!("{request}\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask("POST /metrics HTTP/1.1\r\nhost: localhost").starts_with("HTTP/1.1 405"));
    assert!(ask("GET /metrics HTTP/1.1\r\nhost: metrics.example").starts_with("HTTP/1.1 403"));
    let head = ask("HEAD /metrics HTTP/1.1\r\nhost: localhost");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}
