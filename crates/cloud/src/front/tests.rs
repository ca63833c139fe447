//! The endpoint: who reaches a service, what an answer is, limits, TLS, and how it stops.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use http::request::Parts;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::iam::Sealer;
use crate::service::{Access, Answer, ApiError, Call, Service};
use crate::sessions::Sessions;
use crate::sts::Sts;
use crate::testing::{self, KEY, SECRET, SIGNED_MS};
use crate::users::{KeyRing, UserStore};
use crate::wire::REQUEST_ID;

#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn now_ms(&self) -> u64 {
        SIGNED_MS
    }
}

/// A service that writes down who called, and where; what it does is the test's.
#[derive(Debug)]
struct Recorder {
    name: &'static str,
    actions: &'static [&'static str],
    calls: Mutex<Vec<String>>,
    /// Waits for a word before it answers; a DescribeTags does not.
    waits: Option<(Sender<()>, Mutex<Receiver<()>>)>,
    answer: Answer,
}

impl Recorder {
    fn new(name: &'static str, actions: &'static [&'static str]) -> Arc<Self> {
        Arc::new(Self { name, actions, calls: Mutex::default(), waits: None, answer: Answer::default() })
    }

    /// One of EC2 that says when a call has reached it, and goes on with the call at a word.
    fn waiting() -> (Arc<Self>, Receiver<()>, Sender<()>) {
        let (reached, is_reached) = channel();
        let (go_on, waits) = channel();
        let ec2 = Arc::new(Self {
            name: "ec2",
            actions: &["CreateVolume", "DescribeTags", "DescribeVolumes"],
            calls: Mutex::default(),
            waits: Some((reached, Mutex::new(waits))),
            answer: Answer::default(),
        });
        (ec2, is_reached, go_on)
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

impl Service for Recorder {
    fn name(&self) -> &'static str {
        self.name
    }

    fn actions(&self) -> &'static [&'static str] {
        self.actions
    }

    fn call(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        call.authorize(&Access {
            action: format!("{}:{}", self.name, call.action).into(),
            resource: "*".to_owned(),
            context: std::collections::BTreeMap::new(),
        })?;
        assert_ne!(call.action, "DeleteVolume", "this one panics");
        if let Some((reached, go_on)) = self.waits.as_ref().filter(|_| call.action != "DescribeTags") {
            reached.send(()).unwrap();
            go_on.lock().unwrap().recv().unwrap();
        }
        let words = format!(
            "{} {} {} {}",
            call.action,
            call.caller.arn,
            call.region,
            Value::Object(call.input.clone())
        );
        self.calls.lock().unwrap().push(words);
        Ok(self.answer.clone())
    }
}

fn keys_of(dir: &TempDir) -> Arc<KeyRing> {
    Arc::new(KeyRing::new(UserStore::new(dir.path()), Sessions::open(dir.path()).unwrap()))
}

/// A pipeline with one user, whose key is that of the vectors.
fn pipeline(
    is_open: bool,
    policy: Option<&str>,
    services: Vec<Arc<dyn Service>>,
) -> (TempDir, Arc<Pipeline>) {
    let dir = tempfile::tempdir().unwrap();
    let mut user = json!({
        "name": "anna", "user_id": "AIDAANNA", "access_key": KEY, "secret": SECRET, "created": "2026-11-22T01:02:03Z",
    });
    if let Some(policy) = policy {
        user["policy"] = policy.into();
    }
    let file = dir.path().join("users.json");
    std::fs::write(&file, json!({ "version": 1, "users": [user] }).to_string()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let settings = Settings {
        is_open,
        region: None,
        regions: Regions::default(),
        room: None,
        keys: keys_of(&dir),
        sealer: Arc::new(Sealer::new().unwrap()),
        clock: Arc::new(Fixed),
    };
    (dir, Arc::new(Pipeline::new(settings, services)))
}

fn vector(operation: &str) -> (Parts, Vec<u8>) {
    let vectors = testing::vectors();
    testing::request(&vectors.iter().find(|vector| vector["operation"] == operation).unwrap()["request"])
}

fn text(response: &http::Response<Vec<u8>>) -> String {
    String::from_utf8_lossy(response.body()).into_owned()
}

fn sts() -> Arc<dyn Service> {
    Arc::new(Sts::new(Arc::new(Sealer::new().unwrap()), keys_of(&tempfile::tempdir().unwrap())))
}

#[test]
fn sts_tells_who_calls() {
    let (_dir, pipeline) = pipeline(false, None, vec![sts()]);
    let (parts, body) = vector("GetCallerIdentity");
    let response = pipeline.answer(&parts, &body, None);
    assert_eq!(response.status(), 200, "{}", text(&response));
    let id = response.headers()[REQUEST_ID].to_str().unwrap();
    assert_eq!((id.len(), &id[14..15]), (36, "4"));
    assert_eq!(
        text(&response),
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetCallerIdentityResult>\
             <Account>000000000000</Account><Arn>arn:aws:iam::000000000000:user/anna</Arn><UserId>AIDAANNA</UserId>\
             </GetCallerIdentityResult><ResponseMetadata><RequestId>{id}</RequestId></ResponseMetadata>\
             </GetCallerIdentityResponse>"
        )
    );
}

#[test]
fn a_signed_call_reaches_its_service_with_its_parameters_and_region() {
    let ec2 = Recorder::new("ec2", &["CreateVolume"]);
    let (_dir, pipeline) = pipeline(false, None, vec![Arc::clone(&ec2) as _]);
    let (parts, body) = vector("CreateVolume");
    assert_eq!(pipeline.answer(&parts, &body, None).status(), 200);
    let calls = ec2.calls();
    let [call] = &calls[..] else { panic!("{calls:?}") };
    assert!(
        call.starts_with("CreateVolume arn:aws:iam::000000000000:user/anna us-east-1 {\"AvailabilityZone\":"),
        "{call}"
    );
}

#[test]
fn a_call_with_a_bad_signature_or_without_permission_has_no_effect() {
    let ec2 = Recorder::new("ec2", &["CreateVolume"]);
    let (_dir, open) = pipeline(false, None, vec![Arc::clone(&ec2) as _]);
    let (mut parts, body) = vector("CreateVolume");
    let mut longer = body.clone();
    longer.extend(b"&DryRun=true");
    let refused = open.answer(&parts, &longer, None);
    assert_eq!(refused.status(), 401);
    assert!(text(&refused).contains("<Code>AuthFailure</Code>"), "{}", text(&refused));
    let policy = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:*","Resource":"*"}}"#;
    let (_dir, restricted) = pipeline(false, Some(policy), vec![Arc::clone(&ec2) as _]);
    let refused = restricted.answer(&parts, &body, None);
    assert_eq!(refused.status(), 403);
    assert!(text(&refused).contains("<Code>UnauthorizedOperation</Code>"), "{}", text(&refused));
    parts.headers.remove("authorization");
    let refused = open.answer(&parts, &body, None);
    assert!(text(&refused).contains("<Code>MissingAuthenticationToken</Code>"), "{}", text(&refused));
    assert_eq!(ec2.calls(), Vec::<String>::new());
}

#[test]
fn an_action_that_is_not_built_is_refused_by_name_to_those_who_may_call() {
    let (_dir, pipeline) = pipeline(false, None, vec![Recorder::new("ec2", &["DescribeTags"]) as _]);
    let (parts, body) = vector("CreateVolume");
    let refused = text(&pipeline.answer(&parts, &body, None));
    assert!(refused.contains("<Code>InvalidAction</Code>") && refused.contains("DescribeTags"), "{refused}");
    let (parts, body) = vector("Encrypt");
    let refused = text(&pipeline.answer(&parts, &body, None));
    assert!(refused.contains("UnknownOperationException") && refused.contains("none"), "{refused}");
}

#[test]
fn where_authorization_is_off_everyone_may_call_and_twelve_digits_are_the_account() {
    let ec2 = Recorder::new("ec2", &["DescribeVolumes"]);
    let (_dir, pipeline) = pipeline(true, None, vec![Arc::clone(&ec2) as _]);
    let call = |authorization: Option<&str>| {
        let mut request = Request::builder().method("POST").uri("/").header("host", "localhost:4599");
        if let Some(value) = authorization {
            request = request.header("authorization", value).header("x-amz-date", "20261122T010203Z");
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let answered = pipeline.answer(&parts, b"Action=DescribeVolumes&Version=2016-11-15", None);
        assert_eq!(answered.status(), 200, "{}", text(&answered));
    };
    call(None);
    let signature = "0".repeat(64);
    call(Some(&format!(
        "AWS4-HMAC-SHA256 Credential=123456789012/20261122/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature={signature}"
    )));
    assert_eq!(
        ec2.calls(),
        [
            "DescribeVolumes arn:aws:iam::000000000000:root us-east-1 {}",
            "DescribeVolumes arn:aws:iam::123456789012:root eu-west-1 {}",
        ]
    );
}

#[test]
fn where_authorization_is_off_web_pages_may_not_call() {
    let ec2 = Recorder::new("ec2", &["DescribeVolumes"]);
    let (_dir, pipeline) = pipeline(true, None, vec![Arc::clone(&ec2) as _]);
    let send = |headers: &[(&str, &str)]| {
        let mut request = Request::builder().uri("/?Action=DescribeVolumes&Version=2016-11-15");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        pipeline.answer(&request.body(()).unwrap().into_parts().0, b"", None).status().as_u16()
    };
    let here = ("host", "127.0.0.1:4599");
    for of_page in [
        ("origin", "http://example.com"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("referer", "http://example.com/page"),
        ("referer", "http://127.0.0.1:8080/"),
        ("referer", "about:blank"),
    ] {
        assert_eq!(send(&[here, of_page]), 403, "{of_page:?}");
    }
    // A name that a page has and that leads to this machine; and none at all.
    for host in ["example.com", "127.0.0.1.example.com", "localhost.example.com:4599", "10.0.0.1", ""] {
        assert_eq!(send(&[("host", host)]), 403, "{host}");
    }
    assert_eq!(send(&[]), 403);
    assert_eq!(ec2.calls().len(), 0);
    assert_eq!(send(&[here, ("sec-fetch-site", "none")]), 200, "typed by a person");
    for host in ["127.0.0.1:4599", "localhost", "LOCALHOST:1", "[::1]:4599", "127.1.2.3"] {
        assert_eq!(send(&[("host", host)]), 200, "{host}");
    }
    assert_eq!(send(&[here, ("referer", "http://127.0.0.1:4599/x")]), 200);
}

#[test]
fn a_packed_body_is_unpacked_up_to_a_bound() {
    let monitoring = Recorder::new("monitoring", &["PutMetricData"]);
    let (_dir, pipeline) = pipeline(true, None, vec![Arc::clone(&monitoring) as _]);
    let send = |body: &[u8]| {
        let request = Request::builder()
            .method("POST")
            .uri("/")
            .header("x-amz-target", "GraniteServiceVersion20100801.PutMetricData")
            .header("host", "127.0.0.1")
            .header("content-encoding", "gzip");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        pipeline.answer(&parts, body, None).status().as_u16()
    };
    let pack = |text: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(text).unwrap();
        packed.finish().unwrap()
    };
    assert_eq!(send(&pack(br#"{"Namespace":"N"}"#)), 200);
    assert_eq!(send(&pack(&vec![b' '; 5 << 20])), 413);
    assert_eq!(send(b"{}"), 400);
    assert_eq!(monitoring.calls().len(), 1);
}

/// After this, an answer does not come any more: a test fails rather than to wait for ever.
const HANGS: Duration = Duration::from_secs(120);

/// Sends bytes, and reads what comes until the end.
fn raw(address: SocketAddr, request: &[u8]) -> String {
    exchange(address, request, false)
}

/// A client that ends its side is gone: what it asked for is not answered.
fn exchange(address: SocketAddr, request: &[u8], ends: bool) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    let _ = stream.write_all(request);
    if ends {
        stream.shutdown(Shutdown::Write).unwrap();
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn start(pipeline: &Arc<Pipeline>) -> Endpoint {
    Endpoint::start(([127, 0, 0, 1], 0).into(), None, Arc::clone(pipeline)).unwrap()
}

const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);
const CLOSE: &str = "host: 127.0.0.1\r\nconnection: close\r\n";

#[test]
fn the_endpoint_reports_that_it_works_without_a_key() {
    let (_dir, pipeline) = pipeline(false, None, vec![sts()]);
    let endpoint = start(&pipeline);
    let answer = raw(endpoint.address(), format!("GET {HEALTH} HTTP/1.1\r\n{CLOSE}\r\n").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let health: Value = serde_json::from_str(answer.rsplit("\r\n").next().unwrap()).unwrap();
    assert_eq!(health["status"], "ok");
    assert_eq!(
        health["services"]["sts"],
        json!(["AssumeRole", "DecodeAuthorizationMessage", "GetCallerIdentity", "GetSessionToken"])
    );
}

#[test]
fn bodies_and_heads_have_bounds() {
    let (_dir, pipeline) = pipeline(true, None, vec![Recorder::new("ec2", &["DescribeVolumes"]) as _]);
    let endpoint = start(&pipeline);
    let long = MAX_BODY_BYTES + 1;
    let head = format!("POST / HTTP/1.1\r\n{CLOSE}content-length: {long}\r\n\r\n");
    let answer = raw(endpoint.address(), &[head.as_bytes(), &vec![b'a'; long]].concat());
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    let many: String = (0..=MAX_HEADERS).map(|number| format!("x-{number}: 1\r\n")).collect();
    let answer = raw(endpoint.address(), format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    let answer = raw(endpoint.address(), b"\x16\x03\x01 no HTTP\r\n\r\n");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    let short = format!("POST / HTTP/1.1\r\n{CLOSE}content-length: 10\r\n\r\nabc");
    let answer = exchange(endpoint.address(), short.as_bytes(), true);
    assert!(answer.is_empty() || answer.contains("IncompleteBody"), "{answer}");
}

#[test]
fn a_call_that_panics_is_an_internal_error_and_the_endpoint_goes_on() {
    let ec2 = Recorder::new("ec2", &["DeleteVolume", "DescribeVolumes"]);
    let (_dir, pipeline) = pipeline(true, None, vec![Arc::clone(&ec2) as _]);
    let endpoint = start(&pipeline);
    let get = |query: &str| {
        raw(
            endpoint.address(),
            format!("GET /?Version=2016-11-15&{query} HTTP/1.1\r\n{CLOSE}\r\n").as_bytes(),
        )
    };
    let answer = get("Action=DeleteVolume&VolumeId=vol-1");
    assert!(
        answer.starts_with("HTTP/1.1 500") && answer.contains("<Code>InternalFailure</Code>"),
        "{answer}"
    );
    assert!(get("Action=DescribeVolumes").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_stop_waits_for_the_calls_that_run() {
    let (ec2, is_reached, go_on) = Recorder::waiting();
    let (_dir, pipeline) = pipeline(true, None, vec![Arc::clone(&ec2) as _]);
    let mut endpoint = start(&pipeline);
    let address = endpoint.address();
    // A connection without a request does not delay the end.
    let idle = TcpStream::connect(address).unwrap();
    let client = std::thread::spawn(move || {
        raw(
            address,
            format!("GET /?Action=DescribeVolumes&Version=2016-11-15 HTTP/1.1\r\n{CLOSE}\r\n").as_bytes(),
        )
    });
    is_reached.recv().unwrap();
    let stopping = std::thread::spawn(move || endpoint.stop());
    // The call goes on once nobody is let in any more.
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    assert!(!stopping.is_finished());
    go_on.send(()).unwrap();
    assert!(client.join().unwrap().starts_with("HTTP/1.1 200"));
    stopping.join().unwrap();
    drop(idle);
    assert_eq!(ec2.calls().len(), 1);
}

/// Sends a request that keeps its connection, and returns the first line of the answer.
fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(format!("GET {HEALTH} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).unwrap();
    let mut answer = [0; 15];
    stream.read_exact(&mut answer).map(|()| String::from_utf8_lossy(&answer).into_owned()).unwrap_or_default()
}

#[test]
fn clients_that_never_finish_a_request_keep_nobody_else_out() {
    const PLACES: usize = 6;
    let (_dir, pipeline) = pipeline(true, None, vec![Recorder::new("ec2", &["DescribeVolumes"]) as _]);
    let endpoint =
        Endpoint::start_with(LOCAL.into(), None, Arc::clone(&pipeline), PLACES, ANSWER_TIMEOUT).unwrap();
    let connect = |bytes: &str| {
        let mut stream = TcpStream::connect(endpoint.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    };
    let body = "POST / HTTP/1.1\r\nhost: x\r\nauthorization: AWS4-HMAC-SHA256 x\r\ncontent-length: 90\r\n\r\nAction=";
    for (kind, bytes) in [
        ("nothing at all", ""),
        ("half a head", "POST / HTTP/1.1\r\nHost: x\r\n"),
        ("half a body", body),
        ("half a chunk", "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n40\r\nAct"),
    ] {
        let held: Vec<TcpStream> = (0..PLACES * 2).map(|_| connect(bytes)).collect();
        assert_eq!(ask(&mut connect("")), "HTTP/1.1 200 OK", "beside {kind}");
        drop(held);
    }
    // Clients that were answered, and keep their connections, do not either; an answer is whole before that.
    let mut idle: Vec<TcpStream> = (0..PLACES).map(|_| connect("")).collect();
    for stream in &mut idle {
        assert_eq!(ask(stream), "HTTP/1.1 200 OK");
    }
    assert_eq!(ask(&mut connect("")), "HTTP/1.1 200 OK");
}

#[test]
fn a_call_that_runs_keeps_its_place_and_unfinished_heads_go_first() {
    let (ec2, is_reached, go_on) = Recorder::waiting();
    let (_dir, pipeline) = pipeline(true, None, vec![Arc::clone(&ec2) as _]);
    let endpoint =
        Endpoint::start_with(LOCAL.into(), None, Arc::clone(&pipeline), 3, ANSWER_TIMEOUT).unwrap();
    let address = endpoint.address();
    let client = std::thread::spawn(move || {
        let query = "Action=DescribeVolumes&Version=2016-11-15";
        raw(address, format!("GET /?{query} HTTP/1.1\r\n{CLOSE}\r\n").as_bytes())
    });
    is_reached.recv().unwrap();
    // A body that is on its way for longer than any of the heads.
    let mut slow = TcpStream::connect(address).unwrap();
    let form = "Action=DescribeRegions&Version=2016-11-15";
    let head = format!("POST / HTTP/1.1\r\n{CLOSE}content-length: {}\r\n\r\n", form.len());
    slow.write_all(head.as_bytes()).unwrap();
    let held: Vec<TcpStream> = (0..4)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"POST / HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    assert_eq!(ask(&mut TcpStream::connect(address).unwrap()), "HTTP/1.1 200 OK");
    slow.write_all(form.as_bytes()).unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("<Code>InvalidAction</Code>"), "{answer}");
    go_on.send(()).unwrap();
    assert!(client.join().unwrap().starts_with("HTTP/1.1 200"));
    drop(held);
}

/// Starts clients that each send a call of EC2, and waits until as many as can have reached it.
fn begin(address: SocketAddr, action: &'static str, clients: usize) -> Vec<std::thread::JoinHandle<String>> {
    let query = format!("Action={action}&Version=2016-11-15");
    let request = format!("GET /?{query} HTTP/1.1\r\n{CLOSE}\r\n");
    let client = |_| {
        let request = request.clone();
        std::thread::spawn(move || raw(address, request.as_bytes()))
    };
    (0..clients).map(client).collect()
}

#[test]
fn short_calls_do_not_wait_behind_long_ones() {
    let (ec2, is_reached, go_on) = Recorder::waiting();
    let (_dir, pipeline) = pipeline(true, None, vec![Arc::clone(&ec2) as _]);
    let endpoint = start(&pipeline);
    let long = begin(endpoint.address(), "CreateVolume", MAX_CALLS * 2);
    (0..MAX_LONG_CALLS).for_each(|_| is_reached.recv().unwrap());
    // All of the others wait for their turn, and hold no thread.
    let short = begin(endpoint.address(), "DescribeTags", 4);
    for client in short {
        assert!(client.join().unwrap().starts_with("HTTP/1.1 200"));
    }
    (0..MAX_CALLS * 2).for_each(|_| go_on.send(()).unwrap());
    for client in long {
        assert!(client.join().unwrap().starts_with("HTTP/1.1 200"));
    }
}

/// A connection from an address of this machine.
fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        socket.connect(to).await.unwrap()
    });
    let stream = stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    stream
}

#[test]
fn one_peer_does_not_have_all_places_even_by_calls_that_run() {
    const PLACES: usize = 16;
    let (ec2, is_reached, go_on) = Recorder::waiting();
    let (_dir, pipeline) = pipeline(true, None, vec![Arc::clone(&ec2) as _]);
    let endpoint =
        Endpoint::start_with(LOCAL.into(), None, Arc::clone(&pipeline), PLACES, ANSWER_TIMEOUT).unwrap();
    let address = endpoint.address();
    let clients = begin(address, "CreateVolume", PLACES * 2);
    let kept = PLACES / KEPT_PLACES;
    (0..PLACES - kept).for_each(|_| is_reached.recv().unwrap());
    let mut other = connect_from([127, 0, 0, 2], address);
    assert_eq!(ask(&mut other), "HTTP/1.1 200 OK");
    (0..PLACES * 2).for_each(|_| go_on.send(()).unwrap());
    let answers = clients.into_iter().map(|client| client.join().unwrap());
    let answered = answers.filter(|answer| answer.starts_with("HTTP/1.1 200")).count();
    assert!(answered >= PLACES - kept, "{answered} are answered, the others closed");
}

#[test]
fn a_client_that_takes_nothing_of_its_answer_loses_the_connection() {
    let id = "x".repeat(32 << 20);
    let answer = json!({"Volumes": [{"VolumeId": id}]});
    let ec2 = Arc::new(Recorder {
        name: "ec2",
        actions: &["DescribeVolumes"],
        calls: Mutex::default(),
        waits: None,
        answer: Answer { output: answer.as_object().unwrap().clone(), payload: Vec::new() },
    });
    let (_dir, pipeline) = pipeline(true, None, vec![ec2 as _]);
    let soon = Duration::from_secs(3);
    let endpoint =
        Endpoint::start_with(LOCAL.into(), None, Arc::clone(&pipeline), MAX_CONNECTIONS, soon).unwrap();
    let query = format!("GET /?Action=DescribeVolumes&Version=2016-11-15 HTTP/1.1\r\n{CLOSE}\r\n");
    // One that takes its time has all of it.
    let whole = raw(endpoint.address(), query.as_bytes());
    assert!(whole.ends_with("</DescribeVolumesResponse>"), "{} bytes", whole.len());
    let mut stream = TcpStream::connect(endpoint.address()).unwrap();
    stream.write_all(query.as_bytes()).unwrap();
    // The peer is gone once it refuses bytes; without a deadline that is never.
    let is_over = (0..6_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        stream.write_all(b"x").is_err()
    });
    assert!(is_over, "the connection is still there");
}

/// What the endpoint reports to a client that trusts a certificate.
fn over_tls(address: SocketAddr, certificate: &std::path::Path) -> String {
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let client =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let connection =
        rustls::ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    write!(stream, "GET {HEALTH} HTTP/1.1\r\n{CLOSE}\r\n").unwrap();
    let mut answer = String::new();
    // The server closes without a farewell of TLS's.
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn handshakes_of_tls_that_never_end_keep_nobody_else_out() {
    let dir = tempfile::tempdir().unwrap();
    let (config, file) = tls::generated(&dir.path().join("aws"), &[]).unwrap();
    let (_dir, pipeline) = pipeline(false, None, vec![sts()]);
    let endpoint = Endpoint::start_with(LOCAL.into(), Some(config), pipeline, 2, ANSWER_TIMEOUT).unwrap();
    let held: Vec<TcpStream> = (0..4)
        .map(|_| {
            let mut stream = TcpStream::connect(endpoint.address()).unwrap();
            stream.write_all(b"\x16\x03\x01").unwrap();
            stream
        })
        .collect();
    let begun = std::time::Instant::now();
    assert!(over_tls(endpoint.address(), &file).starts_with("HTTP/1.1 200"));
    assert!(begun.elapsed() < HEAD_TIMEOUT / 2, "{:?}", begun.elapsed());
    drop(held);
}

#[test]
fn tls_has_a_certificate_that_is_made_once_and_that_only_the_owner_reads() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("aws");
    let (config, file) = tls::generated(&folder, &[]).unwrap();
    let made = std::fs::read(&file).unwrap();
    tls::generated(&folder, &[]).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), made);
    let mode = std::fs::metadata(folder.join("key.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (_dir, pipeline) = pipeline(false, None, vec![sts()]);
    let endpoint = Endpoint::start(([127, 0, 0, 1], 0).into(), Some(config), pipeline).unwrap();

    let answer = over_tls(endpoint.address(), &file);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let plain = raw(endpoint.address(), format!("GET {HEALTH} HTTP/1.1\r\n{CLOSE}\r\n").as_bytes());
    assert!(!plain.contains("200 OK"), "{plain}");
}

#[test]
fn a_certificate_that_is_none_is_refused_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cert.pem");
    std::fs::write(&file, "no certificate").unwrap();
    let error = tls::from_files(&file, &file).unwrap_err();
    assert!(error.to_string().contains("cert.pem"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_unsigned_request_reaches_a_service(
        action in "(CreateVolume|DeleteVolume|Encrypt|[A-Z][a-z]{0,6})",
        form in "(&[A-Za-z.0-9]{1,12}=[a-z0-9]{0,6}){0,4}",
        target in proptest::option::of("(TrentService.Encrypt|[!-~]{0,20})"),
        authorization in proptest::option::of("(AWS4-HMAC-SHA256 )?(Credential=AKIDEXAMPLE/20261122/us-east-1/ec2/aws4_request, SignedHeaders=host;x-amz-date, Signature=[0-9a-f]{64}|[ -~]{0,60})"),
    ) {
        let ec2 = Recorder::new("ec2", &["CreateVolume", "DeleteVolume"]);
        let kms = Recorder::new("kms", &["Encrypt"]);
        let (_dir, pipeline) = pipeline(false, None, vec![Arc::clone(&ec2) as _, Arc::clone(&kms) as _]);
        let mut request = Request::builder().method("POST").uri("/").header("x-amz-date", "20261122T010203Z").header("host", "x");
        for (name, value) in [("x-amz-target", target), ("authorization", authorization)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if let Ok(request) = request.body(()) {
            let (parts, ()) = request.into_parts();
            let body = format!("Action={action}&Version=2016-11-15{form}");
            prop_assert!(pipeline.answer(&parts, body.as_bytes(), None).status().as_u16() >= 400);
            prop_assert_eq!(ec2.calls().len() + kms.calls().len(), 0);
        }
    }
}
