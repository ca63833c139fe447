//! The server against clients of every kind, by plain sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{ANSWER_TIMEOUT, HEAD_TIMEOUT, Patience, Server};
use crate::feed::MAX_STREAMS;
use crate::{
    Answer, AnswerStatus, Feed, FeedEvent, Page, Rendered, Resource, ResourceRequest, Site, Unavailable,
};

/// A page of so many bytes; of none, it is unavailable.
#[derive(Debug)]
struct Text(usize);

impl Page for Text {
    fn render(&self) -> Result<Rendered, Unavailable> {
        match self.0 {
            0 => Err(Unavailable("the server stops".to_owned())),
            length => Ok(Rendered { content_type: "text/plain; version=0.0.4", body: "x".repeat(length) }),
        }
    }
}

fn start(length: usize, patience: Patience) -> Server {
    let site = Site::default().with("/page", Text(length)).with("/other", Text(1));
    Server::start_with("0".parse().unwrap(), site, patience).unwrap()
}

fn patient() -> Patience {
    Patience { head: HEAD_TIMEOUT, answer: ANSWER_TIMEOUT }
}

/// The whole answer to a request line, with this name of the host.
fn ask_as(server: &Server, line: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn ask(server: &Server, line: &str) -> String {
    ask_as(server, line, "localhost")
}

#[test]
fn a_page_is_answered_to_get_and_head_and_to_nothing_else() {
    let server = start(3, patient());
    let whole = ask(&server, "GET /page");
    assert!(whole.starts_with("HTTP/1.1 200") && whole.ends_with("\r\n\r\nxxx"), "{whole}");
    assert!(whole.contains("content-type: text/plain; version=0.0.4\r\n"), "{whole}");
    let head = ask(&server, "HEAD /page");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("content-length: 3\r\n"), "{head}");
    let refused = ask(&server, "POST /page");
    assert!(refused.starts_with("HTTP/1.1 405") && refused.contains("allow: GET,HEAD"), "{refused}");
    for path in ["/", "/page/", "/nothing"] {
        let missing = ask(&server, &format!("GET {path}"));
        assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
        for link in ["<a href=\"/page\">", "<a href=\"/other\">"] {
            assert!(missing.contains(link), "{missing}");
        }
    }
    let unavailable = ask(&start(0, patient()), "GET /page");
    assert!(
        unavailable.starts_with("HTTP/1.1 503") && unavailable.ends_with("the server stops\n"),
        "{unavailable}"
    );
}

#[test]
fn a_request_that_names_another_host_is_refused() {
    let server = start(3, patient());
    let refused = ask_as(&server, "GET /page", "evil.example:80");
    assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains("xxx"), "{refused}");
    let port = server.address().port();
    assert!(ask_as(&server, "GET /page", &format!("127.0.0.1:{port}")).starts_with("HTTP/1.1 200"));
}

/// How long the server keeps a connection, to which nothing more is sent and of which nothing is read meanwhile.
fn kept(stream: &mut TcpStream) -> Duration {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let begun = Instant::now();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    begun.elapsed()
}

#[test]
fn a_head_that_does_not_end_and_an_idle_connection_end_by_themselves() {
    let server = start(3, Patience { head: Duration::from_millis(200), ..patient() });
    for sent in ["", "GET /page HTTP/1.1\r\nhost: local"] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        assert!(kept(&mut stream) < Duration::from_secs(20), "{sent}");
    }
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET /page HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    assert!(kept(&mut stream) < Duration::from_secs(20), "it is idle after an answer");
    let long = format!("GET /page HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(64 << 10));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // The server may answer, and close, before all is sent.
    let _ = stream.write_all(long.as_bytes());
    assert!(kept(&mut stream) < Duration::from_secs(20), "too long a head");
}

#[test]
fn an_answer_that_is_not_read_ends_the_connection() {
    let server = start(64 << 20, Patience { answer: Duration::from_millis(200), ..patient() });
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET /page HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    // Longer than the patience of the server, on a busy machine too.
    std::thread::sleep(Duration::from_secs(2));
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut got = Vec::new();
    let _ = stream.read_to_end(&mut got);
    assert!(got.len() < 64 << 20, "what the sockets held is all that came: {}", got.len());
    assert!(ask(&server, "GET /other").starts_with("HTTP/1.1 200"), "others are served");
}

#[test]
fn a_crowd_of_clients_takes_turns_and_a_stop_frees_the_port() {
    let mut server = start(3, patient());
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| assert!(ask(&server, "GET /page").ends_with("xxx")));
        }
    });
    let address = server.address();
    server.stop();
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
    let site = Site::default().with("/page", Text(1));
    let again = Server::start(address.to_string().parse().unwrap(), site).unwrap();
    let taken = Server::start(address.to_string().parse().unwrap(), Site::default());
    assert!(taken.is_err() && ask(&again, "GET /page").starts_with("HTTP/1.1 200"));
}

/// Answers with its request; nothing has the name `missing`.
#[derive(Debug)]
struct Echo;

impl Resource for Echo {
    fn answer(&self, request: &ResourceRequest) -> Answer {
        match request.below.as_str() {
            "missing" => Answer::refused(AnswerStatus::Missing, "there is no such name"),
            _ => Answer::found("text/html; charset=utf-8", format!("{request:?}")),
        }
    }
}

/// Counts how often it is asked, and has a new event every second time.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Feed for Counter {
    fn latest(&self) -> FeedEvent {
        let number = self.0.fetch_add(1, Ordering::Relaxed) / 2;
        FeedEvent { number, data: format!("event {number}").into() }
    }
}

fn start_resources() -> Server {
    let site = Site::default().with_resource("/", Echo).with_resource("/name/", Echo);
    Server::start("0".parse().unwrap(), site.with_feed("/events", Counter::default())).unwrap()
}

#[test]
fn a_resource_gets_what_is_below_its_path_and_the_query_and_says_what_a_browser_may_do() {
    let server = start_resources();
    let whole = ask(&server, "GET /name/a%2Fb/%3C?from=1");
    assert!(whole.starts_with("HTTP/1.1 200"), "{whole}");
    assert!(whole.contains(r#"below: "a/b/<", query: [("from", "1")]"#), "{whole}");
    for header in [
        "content-type: text/html; charset=utf-8\r\n",
        "content-security-policy: default-src 'none'; script-src 'self';",
        "x-content-type-options: nosniff\r\n",
        "cache-control: no-store\r\n",
    ] {
        assert!(whole.contains(header), "{header}: {whole}");
    }
    let root = ask(&server, "GET /");
    assert!(root.starts_with("HTTP/1.1 200") && root.contains(r#"below: """#), "{root}");
    let head = ask(&server, "HEAD /name/a");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    let missing = ask(&server, "GET /name/missing");
    assert!(missing.starts_with("HTTP/1.1 404") && missing.ends_with("there is no such name\n"), "{missing}");
    assert!(ask(&server, "GET /name/%FF").starts_with("HTTP/1.1 400"));
    assert!(ask(&server, "POST /name/a").starts_with("HTTP/1.1 405"));
    let elsewhere = ask(&server, "GET /other/a");
    assert!(elsewhere.starts_with("HTTP/1.1 404") && !elsewhere.contains("/name/"), "{elsewhere}");
}

/// Opens a stream of events, and reads its head.
fn open_stream(server: &Server) -> (String, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
    (head, stream)
}

#[test]
fn each_event_is_pushed_when_it_is_new_and_a_stop_ends_the_streams() {
    let mut server = start_resources();
    let (head, mut stream) = open_stream(&server);
    assert!(
        head.starts_with("HTTP/1.1 200") && head.contains("content-type: text/event-stream\r\n"),
        "{head}"
    );
    let mut text = String::new();
    while !text.contains("data: event 1") {
        assert!(stream.read_line(&mut text).unwrap() > 0, "it ended: {text}");
    }
    assert!(text.contains("retry: 2000\n\ndata: event 0\n\n"), "{text}");
    assert_eq!(text.matches("event 0").count(), 1, "it is not sent again: {text}");
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < super::STOP_TIMEOUT, "the stream did not hold it up");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the answer has its end");
}

#[test]
fn streams_are_bounded_and_a_client_that_leaves_makes_room() {
    let server = start_resources();
    let streams: Vec<_> = (0..MAX_STREAMS).map(|_| open_stream(&server)).collect();
    assert!(streams.iter().all(|(head, _)| head.starts_with("HTTP/1.1 200")));
    let (refused, _) = open_stream(&server);
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(ask(&server, "GET /name/a").starts_with("HTTP/1.1 200"), "pages are served beside them");
    drop(streams);
    let begun = Instant::now();
    while !open_stream(&server).0.starts_with("HTTP/1.1 200") {
        assert!(begun.elapsed() < Duration::from_secs(30), "nobody noticed that they left");
        std::thread::sleep(Duration::from_millis(100));
    }
}
