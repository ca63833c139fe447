//! What the tests of this crate share: requests of botocore, its own serializers and parsers, random numbers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use http::{Request, Response};
use serde_json::{Value, json};

use crate::model::Model;
use crate::wire::{Protocol, Route};

/// Requests that botocore wrote and signed: `tests/clients/wire.py vectors`.
pub(crate) fn vectors() -> Vec<Value> {
    serde_json::from_str(include_str!("../tests/vectors/botocore.json")).unwrap()
}

/// The time at which they were signed.
pub(crate) const SIGNED_MS: u64 = 1_795_309_323_000;
/// The key that signed them.
pub(crate) const KEY: &str = "AKIDEXAMPLE";
/// Its secret.
pub(crate) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// A request of botocore's.
pub(crate) fn request(from: &Value) -> (Parts, Vec<u8>) {
    let mut request =
        Request::builder().method(from["method"].as_str().unwrap()).uri(from["url"].as_str().unwrap());
    for (name, value) in from["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    let body = STANDARD.decode(from["body"].as_str().unwrap()).unwrap();
    (request.body(()).unwrap().into_parts().0, body)
}

/// A route without parameters.
pub(crate) fn route_to(model: &'static Model, protocol: Protocol, action: &str) -> Route {
    Route::bare(model, protocol, action)
}

/// What botocore is asked about an answer.
pub(crate) fn task(what: &str, route: &Route, protocol: &str, response: &Response<Vec<u8>>) -> Value {
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())));
    json!({
        "do": what,
        "service": route.model.name,
        "protocol": protocol,
        "operation": route.action,
        "status": response.status().as_u16(),
        "headers": headers.collect::<serde_json::Map<_, _>>(),
        "body": STANDARD.encode(response.body()),
    })
}

/// A Python program with botocore, which answers line by line.
#[derive(Debug)]
pub(crate) struct Clients {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Clients {
    /// Starts a program of `tests/clients`; none, with the words that the test runner counts, where `./dev clients` has
    /// not installed botocore.
    pub(crate) fn start(program: &str) -> Option<Self> {
        // target/debug/deps/TEST
        let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
        let python = target.join("clients/bin/python");
        if !python.exists() {
            println!("SKIPPED: botocore is not installed; './dev clients' does it");
            return None;
        }
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(program);
        let mut child = Command::new(python)
            .arg("-B")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Some(Self { child, input, output })
    }

    /// Asks it one thing.
    pub(crate) fn ask(&mut self, task: &Value) -> Value {
        writeln!(self.input.as_mut().unwrap(), "{task}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: '{line}' to {task}"))
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // It ends with its input.
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Random numbers of a seed: SplitMix64.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The seed of this run, which is printed: `EBBTIDE_TEST_SEED`, or another one each time.
    pub(crate) fn seed() -> u64 {
        let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let set = std::env::var("EBBTIDE_TEST_SEED").ok();
        let seed = set.map_or_else(now, |text| text.parse().unwrap());
        println!("seed {seed}: repeat with EBBTIDE_TEST_SEED={seed}");
        seed
    }

    /// Numbers of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below another.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(end).unwrap()).unwrap()
    }
}
