//! What is answered to requests, by plain sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use ebbtide_http::{Server, Site};
use ebbtide_watch::page::pages;
use serde_json::Value;

use crate::source::{HOSTILE, MadeUp, START_S, volume};

fn serve(servers: usize) -> Server {
    let site = pages(Site::default(), &MadeUp::with_servers(servers));
    Server::start("0".parse().unwrap(), site).unwrap()
}

/// The head and the body of an answer.
fn ask(server: &Server, line: &str) -> (String, String) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn get(server: &Server, path: &str) -> String {
    let (head, body) = ask(server, &format!("GET {path}"));
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    body
}

/// All bytes but letters and digits as percent codes.
fn encoded(name: &str) -> String {
    let code = |byte: u8| {
        if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    name.bytes().map(code).collect()
}

#[test]
fn every_page_has_its_policy_and_no_inline_script_style_or_cookie() {
    let server = serve(3);
    let pages = [
        "/".to_owned(),
        "/alarms".to_owned(),
        "/server/db1".to_owned(),
        format!("/volume/{}", volume("db1")),
    ];
    for path in &pages {
        let (head, body) = ask(&server, &format!("GET {path}"));
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-type: text/html"), "{head}");
        assert!(head.contains("default-src 'none'; script-src 'self'; style-src 'self';"), "{head}");
        assert!(!head.to_lowercase().contains("cookie") && !head.contains("unsafe-inline"), "{head}");
        for inline in ["<style", " style=", " onload=", "javascript:", "http://", "https://"] {
            assert!(!body.contains(inline), "{path} has {inline}");
        }
        assert_eq!(body.matches("<script").count(), body.matches("<script src=\"/static/").count(), "{path}");
        assert!(body.contains("aria-label=\"Pages\"") && body.contains("href=\"#main\""), "{path}");
        let (head_alone, nothing) = ask(&server, &format!("HEAD {path}"));
        assert!(head_alone.starts_with("HTTP/1.1 200") && nothing.is_empty(), "{head_alone}");
    }
    for (path, content_type) in [
        ("/static/uplot.js", "text/javascript"),
        ("/static/watch.js", "text/javascript"),
        ("/static/uplot.css", "text/css"),
        ("/static/watch.css", "text/css"),
        ("/static/icon.svg", "image/svg+xml"),
    ] {
        let (head, body) = ask(&server, &format!("GET {path}"));
        assert!(head.starts_with("HTTP/1.1 200") && head.contains(content_type), "{path}: {head}");
        assert!(!body.contains("@import") && !body.contains("url("), "{path} loads something");
    }
    assert!(get(&server, "/static/uplot.js").contains("Copyright (c) 2022 Leon Sorokin"));
}

#[test]
fn without_a_script_the_pages_have_all_figures_and_links() {
    let server = serve(3);
    let overview = get(&server, "/");
    for text in [
        "MariaDB 11.8.9",
        "1,234",
        "12 of 151",
        "60%",
        "20% by volume IOPS",
        "50 min",
        "1 silenced.",
        "1 without enough data.",
        "1 server cannot be read.",
        "UTC+01:00",
        "GRANT PROCESS ON *.*",
        "href=\"/server/db1\"",
        "href=\"/server/?name=..\"",
    ] {
        assert!(overview.contains(text), "'{text}' is missing: {overview}");
    }
    assert!(
        overview.contains("1 alarm. The most severe is credits-end of"),
        "the silenced one is not counted"
    );
    let page = get(&server, "/server/db1");
    for text in ["&lt;b&gt;Duplicate entry&lt;/b&gt;", "stopped", "href=\"/volume/vol-db1\"", "3 min"] {
        assert!(page.contains(text), "'{text}' is missing: {page}");
    }
    let down = get(&server, "/server/?name=..");
    assert!(down.contains("It is not read: the login is refused"), "{down}");
    let page = get(&server, "/volume/vol-db1");
    assert!(page.contains("gp2:size=100GiB") && page.contains("href=\"/server/db1\""), "{page}");
}

#[test]
fn a_hostile_name_is_text_in_pages_in_links_and_in_queries() {
    let server = serve(2);
    let path = format!("/server/{}", encoded(HOSTILE));
    let volume_path = format!("/volume/{}", encoded(&volume(HOSTILE)));
    for page in ["/", "/alarms", path.as_str(), volume_path.as_str()] {
        let body = get(&server, page);
        assert!(!body.contains("<img") && !body.contains("<script>"), "{page}: {body}");
        assert!(body.contains("&quot;&gt;&lt;img src=x onerror=alert(1)&gt;"), "{page}: {body}");
    }
    assert!(get(&server, "/").contains("href=\"/server/%22%3E%3Cimg%20src%3Dx"), "its link");
    let view: Value = serde_json::from_str(&get(&server, "/api/view")).unwrap();
    assert_eq!(view["servers"][0]["name"], HOSTILE);
    let key = encoded(&format!("server:{HOSTILE}"));
    let graphs = get(&server, &format!("/api/graphs?subject={key}&from=100&to=200"));
    let graphs: Value = serde_json::from_str(&graphs).unwrap();
    assert_eq!(graphs["graphs"][0]["lines"][2]["label"], HOSTILE);
}

#[test]
fn what_is_not_there_is_said_and_a_server_that_has_gone_keeps_its_history() {
    let server = serve(3);
    for path in ["/server/", "/server/none", "/volume/db1", "/server/%3Cscript%3E"] {
        let (head, body) = ask(&server, &format!("GET {path}"));
        assert!(head.starts_with("HTTP/1.1 404"), "{path}: {head}");
        assert!(body.contains("Nothing of this name is watched") && !body.contains("<script>"), "{body}");
    }
    let gone = get(&server, "/server/gone");
    assert!(gone.contains("It is not watched any more.") && gone.contains("data-subject=\"server%3Agone\""));
    let (head, body) = ask(&server, "GET /api/graphs?subject=server:none&from=1&to=2");
    assert!(head.starts_with("HTTP/1.1 404") && body.contains("/api/view has all names"), "{head} {body}");
    let (head, _) = ask(&server, "GET /static/other.js");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[test]
fn graphs_have_as_many_points_as_are_asked_for_and_a_wrong_span_is_refused() {
    let server = serve(3);
    let week =
        format!("/api/graphs?subject=server:db1&from={}&to={START_S}&points=300", START_S - 7 * 86_400);
    let set: Value = serde_json::from_str(&get(&server, &week)).unwrap();
    assert_eq!(set["utc_offset_s"], 3_600);
    let graphs = set["graphs"].as_array().unwrap();
    let keys: Vec<&str> = graphs.iter().map(|graph| graph["key"].as_str().unwrap()).collect();
    assert_eq!(keys[..4], ["operations", "latency", "log-time", "main-thread"], "the first row");
    let values = graphs[0]["lines"][0]["values"].as_array().unwrap();
    assert!((200..=300).contains(&values.len()), "{}", values.len());
    assert!(values.iter().any(Value::is_null), "a gap is null");
    for (query, reason) in [
        ("from=1&to=2", "the parameter 'subject' is missing"),
        ("subject=x&from=1&to=2", "subject=x is no subject: give server:NAME or volume:NAME"),
        ("subject=server:db1&from=2&to=1", "from=2 is not before to=1"),
        ("subject=server:db1&from=1&to=x", "to=x is no whole number from 0 to 253402300799"),
        ("subject=server:db1&from=1&to=2&points=5000", "points=5000 is no whole number from 2 to 4000"),
    ] {
        let (head, body) = ask(&server, &format!("GET /api/graphs?{query}"));
        assert!(head.starts_with("HTTP/1.1 400") && body.starts_with(reason), "{query}: {head} {body}");
    }
}

#[test]
fn each_view_is_pushed_as_json() {
    let server = serve(3);
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut reader = BufReader::new(stream);
    reader.get_mut().write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut times = Vec::new();
    while times.len() < 2 {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it ended");
        if let Some(json) = line.strip_prefix("data: ") {
            let view: Value = serde_json::from_str(json).unwrap();
            times.push(view["unix_s"].as_i64().unwrap());
        }
    }
    assert!(times[0] < times[1], "{times:?}");
}
