//! A client of AWS's protocols: it writes requests by AWS's models, signs them, and reads errors. It shares no code with
//! the wire formats of the crate.

#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ciborium::Value as Cbor;
use ebbtide_cloud::Service;
use ebbtide_cloud::front::{Clock, Pipeline, Regions, Settings};
use ebbtide_cloud::iam::Sealer;
use ebbtide_cloud::sessions::Sessions;
use ebbtide_cloud::users::{KeyRing, UserStore};
use http::{Request, Response};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::{digest, hmac};
use serde_json::{Map, Value, json};

pub(crate) const KEY: &str = "AKIDEXAMPLE";
pub(crate) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Ec2Query,
    Query,
    Json,
    Cbor,
    RestJson,
}

/// A request before it is signed.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) method: String,
    /// Percent-encoded.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What a client sees of a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) status: u16,
}

impl Refusal {
    /// Whether this is the refusal of a row. An action that is not built has a code of each protocol, and its message goes
    /// on with the actions that are.
    pub(crate) fn is(&self, protocol: Protocol, (code, message, status): (&str, &str, u16)) -> bool {
        if code != "InvalidAction" {
            return (self.code.as_str(), self.message.as_str(), self.status) == (code, message, status);
        }
        let is_named = self.message.starts_with(message) || self.code == "UnknownOperationException";
        let is_coded = match protocol {
            Protocol::Ec2Query | Protocol::Query => self.code == code,
            _ => self.code == "UnknownOperationException",
        };
        is_named && is_coded && self.status == status
    }
}

// ---- Requests ---------------------------------------------------------------------------------------------------------

/// AWS's model of a service, as it is embedded in the crate.
pub(crate) struct Shapes {
    pub(crate) service: &'static str,
    model: Value,
}

impl Shapes {
    pub(crate) fn of(service: &'static str) -> Self {
        let packed: &[u8] = match service {
            "ec2" => include_bytes!("../../data/models/ec2.json.gz"),
            "ebs" => include_bytes!("../../data/models/ebs.json.gz"),
            "kms" => include_bytes!("../../data/models/kms.json.gz"),
            "monitoring" => include_bytes!("../../data/models/monitoring.json.gz"),
            "sts" => include_bytes!("../../data/models/sts.json.gz"),
            other => panic!("no model of {other}"),
        };
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        Self { service, model: serde_json::from_str(&text).unwrap() }
    }

    fn shape(&self, reference: &Value) -> &Value {
        &self.model["shapes"][reference["shape"].as_str().unwrap()]
    }

    /// The shape of the parameters of an operation.
    pub(crate) fn input(&self, action: &str) -> &Value {
        match self.model["operations"][action]["input"].as_str() {
            Some(name) => &self.model["shapes"][name],
            None => &Value::Null,
        }
    }

    /// The members of a structure, each with its shape.
    pub(crate) fn members<'a>(&'a self, shape: &'a Value) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let members = shape["members"].as_object().into_iter().flatten();
        members.map(|(name, reference)| (name.as_str(), self.shape(reference)))
    }

    /// The shape of the items of a list.
    pub(crate) fn item<'a>(&'a self, shape: &'a Value) -> &'a Value {
        self.shape(&shape["member"])
    }

    /// Whether a request can carry these parameters. A form has no empty structures, and one of EC2 no empty lists; a path
    /// has all its parts, and belongs to an operation of the model.
    pub(crate) fn carries(&self, protocol: Protocol, action: &str, input: &Value) -> bool {
        let is_lost = |value: &Value| match value {
            Value::Object(members) => {
                members.is_empty() && matches!(protocol, Protocol::Ec2Query | Protocol::Query)
            }
            Value::Array(items) => items.is_empty() && protocol == Protocol::Ec2Query,
            _ => false,
        };
        let is_of_path = |reference: &Value| reference["location"] == "uri";
        let members = self.input(action)["members"].as_object();
        let mut of_path = members.into_iter().flatten().filter(|(_, reference)| is_of_path(reference));
        let has_path = protocol != Protocol::RestJson
            || (members.is_some()
                && of_path.all(|(name, _)| !matches!(&input[name], Value::Null) && input[name] != ""));
        has_path && !input.as_object().unwrap().values().any(is_lost)
    }

    /// The request of an operation. Values that do not fit the model are written as they are.
    pub(crate) fn request(
        &self,
        protocol: Protocol,
        action: &str,
        (input, payload): (&Value, &[u8]),
    ) -> Message {
        let metadata = &self.model["metadata"];
        let mut message = Message {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            query: Vec::new(),
            headers: BTreeMap::new(),
            body: Vec::new(),
        };
        let mut header = |name: &str, value: &str| drop(message.headers.insert(name.into(), value.into()));
        let target = metadata["targetPrefix"].as_str();
        match protocol {
            Protocol::Ec2Query | Protocol::Query => {
                header("content-type", "application/x-www-form-urlencoded; charset=utf-8");
                let version = metadata["apiVersion"].as_str().unwrap().to_owned();
                let mut form =
                    vec![("Action".to_owned(), action.to_owned()), ("Version".to_owned(), version)];
                self.form(protocol, self.input(action), input, "", &mut form);
                message.body =
                    form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish().into();
            }
            Protocol::Json => {
                header("content-type", "application/x-amz-json-1.0");
                header("x-amz-target", &format!("{}.{action}", target.unwrap()));
                message.body = input.to_string().into();
            }
            Protocol::Cbor => {
                header("content-type", "application/cbor");
                header("smithy-protocol", "rpc-v2-cbor");
                message.path = format!("/service/{}/operation/{action}", target.unwrap());
                ciborium::into_writer(&self.cbor(self.input(action), input), &mut message.body).unwrap();
            }
            Protocol::RestJson => self.rest(action, (input, payload), &mut message),
        }
        message
    }

    fn form(
        &self,
        protocol: Protocol,
        shape: &Value,
        value: &Value,
        place: &str,
        form: &mut Vec<(String, String)>,
    ) {
        let is_ec2 = protocol == Protocol::Ec2Query;
        match value {
            Value::Object(members) => {
                for (member, value) in members {
                    let reference = &shape["members"][member];
                    let given = reference["locationName"].as_str();
                    let name = match (is_ec2, reference["queryName"].as_str()) {
                        (true, Some(name)) => name.to_owned(),
                        (true, None) => given.map_or_else(|| member.clone(), capitalized),
                        (false, _) => given.unwrap_or(member).to_owned(),
                    };
                    let place = if place.is_empty() { name } else { format!("{place}.{name}") };
                    let inner = if reference.is_null() { &Value::Null } else { self.shape(reference) };
                    self.form(protocol, inner, value, &place, form);
                }
            }
            Value::Array(items) if items.is_empty() && !is_ec2 => {
                form.push((place.to_owned(), String::new()))
            }
            Value::Array(items) => {
                let item = &shape["member"];
                let inner = if item.is_null() { &Value::Null } else { self.shape(item) };
                let level = item["locationName"].as_str().unwrap_or("member");
                for (number, value) in (1..).zip(items) {
                    let place = if is_ec2 {
                        format!("{place}.{number}")
                    } else {
                        format!("{place}.{level}.{number}")
                    };
                    self.form(protocol, inner, value, &place, form);
                }
            }
            Value::Number(seconds) if shape["type"] == "timestamp" => {
                let time = seconds.as_i64().and_then(|seconds| Timestamp::from_second(seconds).ok());
                form.push((
                    place.to_owned(),
                    time.map_or_else(|| seconds.to_string(), |time| time.to_string()),
                ));
            }
            Value::String(text) => form.push((place.to_owned(), text.clone())),
            other => form.push((place.to_owned(), other.to_string())),
        }
    }

    fn cbor(&self, shape: &Value, value: &Value) -> Cbor {
        let inner = |reference: &Value, value: &Value| {
            if reference.is_null() {
                self.cbor(&Value::Null, value)
            } else {
                self.cbor(self.shape(reference), value)
            }
        };
        match value {
            Value::Null => Cbor::Null,
            Value::Bool(is) => Cbor::Bool(*is),
            Value::Number(number) if shape["type"] == "timestamp" => {
                Cbor::Tag(1, Box::new(Cbor::Float(number.as_f64().unwrap())))
            }
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Cbor::Integer(whole.into()),
                None => Cbor::Float(number.as_f64().unwrap()),
            },
            Value::String(text) if shape["type"] == "blob" => {
                Cbor::Bytes(STANDARD.decode(text).unwrap_or_else(|_| text.clone().into_bytes()))
            }
            Value::String(text) => Cbor::Text(text.clone()),
            Value::Array(items) => {
                Cbor::Array(items.iter().map(|item| inner(&shape["member"], item)).collect())
            }
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    (Cbor::Text(name.clone()), inner(&shape["members"][name], value))
                };
                Cbor::Map(members.iter().map(member).collect())
            }
        }
    }

    fn rest(&self, action: &str, (input, payload): (&Value, &[u8]), message: &mut Message) {
        let operation = &self.model["operations"][action]["http"];
        operation["method"].as_str().unwrap().clone_into(&mut message.method);
        operation["requestUri"].as_str().unwrap().clone_into(&mut message.path);
        let shape = self.input(action);
        let mut body = Map::new();
        for (member, value) in input.as_object().unwrap() {
            let reference = &shape["members"][member];
            let name = reference["locationName"].as_str().unwrap_or(member);
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match reference["location"].as_str() {
                Some("uri") => {
                    let encoded = utf8_percent_encode(&text, UNRESERVED).to_string();
                    message.path = message.path.replace(&format!("{{{name}}}"), &encoded);
                }
                Some("querystring") => message.query.push((name.to_owned(), text)),
                Some("header") => {
                    // A header cannot carry control characters.
                    let text = text.replace(char::is_control, "?");
                    message.headers.insert(name.to_lowercase(), text);
                }
                _ => drop(body.insert(name.to_owned(), value.clone())),
            }
        }
        // What is left out of the path stays as its name, which no URI may have in braces.
        message.path = message.path.replace('{', "%7B").replace('}', "%7D");
        if shape["payload"].is_string() {
            message.body = payload.to_owned();
        } else if message.method == "POST" {
            message.headers.insert("content-type".to_owned(), "application/json".to_owned());
            message.body = Value::Object(body).to_string().into();
        }
    }
}

fn capitalized(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

impl Message {
    /// The request that goes over the wire.
    pub(crate) fn unsigned(&self) -> Request<Vec<u8>> {
        let pairs: Vec<String> = self.encoded_query();
        let uri =
            if pairs.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, pairs.join("&")) };
        let mut request =
            Request::builder().method(self.method.as_str()).uri(uri).header("host", "127.0.0.1");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(self.body.clone()).unwrap()
    }

    /// The request with a signature of version 4, for us-east-1.
    pub(crate) fn signed(&self, service: &str, (key, secret): (&str, &str), now_ms: u64) -> Request<Vec<u8>> {
        let now = Timestamp::from_millisecond(i64::try_from(now_ms).unwrap()).unwrap();
        let (time, day) = (now.strftime("%Y%m%dT%H%M%SZ").to_string(), now.strftime("%Y%m%d").to_string());
        let mut message = self.clone();
        message.headers.insert("x-amz-date".to_owned(), time.clone());
        let mut headers = message.headers.clone();
        headers.insert("host".to_owned(), "127.0.0.1".to_owned());
        let names = headers.keys().cloned().collect::<Vec<_>>().join(";");
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let path: Vec<String> =
            self.path.split('/').map(|word| utf8_percent_encode(word, UNRESERVED).to_string()).collect();
        let mut query = self.encoded_query();
        query.sort();
        let canonical = format!(
            "{}\n{}\n{}\n{lines}\n{names}\n{}",
            self.method,
            path.join("/"),
            query.join("&"),
            sha256(&self.body)
        );
        let scope = format!("{day}/us-east-1/{service}/aws4_request");
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", sha256(canonical.as_bytes()));
        let secret = [day.as_str(), "us-east-1", service, "aws4_request"]
            .iter()
            .fold(format!("AWS4{secret}").into_bytes(), |key, word| mac(&key, word));
        let signature = hex(&mac(&secret, &text));
        message.headers.insert(
            "authorization".to_owned(),
            format!(
                "AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}"
            ),
        );
        message.unsigned()
    }

    fn encoded_query(&self) -> Vec<String> {
        let encoded = |text: &str| utf8_percent_encode(text, UNRESERVED).to_string();
        self.query.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect()
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// ---- Answers ----------------------------------------------------------------------------------------------------------

/// What a client sees of an answer that is an error; none of one that is not.
pub(crate) fn refusal(protocol: Protocol, response: &Response<Vec<u8>>) -> Option<Refusal> {
    let status = response.status().as_u16();
    if status < 300 {
        return None;
    }
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (code, message) = match protocol {
        Protocol::Ec2Query | Protocol::Query => {
            let text = String::from_utf8(response.body().clone()).unwrap();
            (element(&text, "Code"), element(&text, "Message"))
        }
        _ => {
            let body: Value = if protocol == Protocol::Cbor {
                ciborium::from_reader::<Value, _>(&response.body()[..]).unwrap()
            } else {
                serde_json::from_slice(response.body()).unwrap()
            };
            let of_query =
                header("x-amzn-query-error").map(|named| named.split(';').next().unwrap().to_owned());
            let shape = || body["__type"].as_str().map(|name| name.rsplit('#').next().unwrap().to_owned());
            let code = of_query.or_else(|| header("x-amzn-errortype")).or_else(shape).unwrap();
            let message = body["message"].as_str().or(body["Message"].as_str()).unwrap_or_default();
            (code, message.to_owned())
        }
    };
    Some(Refusal { code, message, status })
}

/// The text of the first element with a name.
pub(crate) fn element(xml: &str, name: &str) -> String {
    let inner =
        xml.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once(&format!("</{name}>")));
    let inner = inner.unwrap_or_else(|| panic!("no {name} in {xml}")).0;
    quick_xml::escape::unescape(inner).unwrap().into_owned()
}

// ---- The endpoint -----------------------------------------------------------------------------------------------------

#[derive(Debug)]
struct Fixed(u64);

impl Clock for Fixed {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

/// An endpoint without a socket: one user, who may do everything, and a time that stands still.
pub(crate) struct Wire {
    pipeline: Pipeline,
    now_ms: u64,
    key: &'static str,
    _dir: tempfile::TempDir,
}

impl Wire {
    /// Without authorization, for calls of an account, which is the access key.
    pub(crate) fn open(services: Vec<Arc<dyn Service>>, now_ms: u64, account: &'static str) -> Self {
        Self::with(services, now_ms, Some(account))
    }

    /// With authorization.
    pub(crate) fn closed(services: Vec<Arc<dyn Service>>, now_ms: u64) -> Self {
        Self::with(services, now_ms, None)
    }

    fn with(services: Vec<Arc<dyn Service>>, now_ms: u64, account: Option<&'static str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let user = json!({
            "name": "anna", "user_id": "AIDAANNA", "access_key": KEY, "secret": SECRET, "created": "2026-11-22T01:02:03Z",
        });
        let file = dir.path().join("users.json");
        std::fs::write(&file, json!({"version": 1, "users": [user]}).to_string()).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let keys = KeyRing::new(UserStore::new(dir.path()), Sessions::open(dir.path()).unwrap());
        let settings = Settings {
            is_open: account.is_some(),
            region: None,
            regions: Regions::default(),
            room: None,
            keys: Arc::new(keys),
            sealer: Arc::new(Sealer::new().unwrap()),
            clock: Arc::new(Fixed(now_ms)),
        };
        Self { pipeline: Pipeline::new(settings, services), now_ms, key: account.unwrap_or(KEY), _dir: dir }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub(crate) fn send(&self, request: Request<Vec<u8>>) -> Response<Vec<u8>> {
        let (parts, body) = request.into_parts();
        self.pipeline.answer(&parts, &body, None)
    }

    /// What a signed call is answered.
    pub(crate) fn call(
        &self,
        shapes: &Shapes,
        protocol: Protocol,
        action: &str,
        (input, payload): (&Value, &[u8]),
    ) -> Response<Vec<u8>> {
        let message = shapes.request(protocol, action, (input, payload));
        self.send(message.signed(shapes.service, (self.key, SECRET), self.now_ms))
    }

    /// Sends a call without a signature, with one by another secret, with one of yesterday and with one for another
    /// service; compares code and status of the refusals.
    #[track_caller]
    pub(crate) fn check_signatures(
        &self,
        shapes: &Shapes,
        protocol: Protocol,
        (action, input): (&str, &Value),
        expected: [(&str, u16); 4],
    ) {
        let message = shapes.request(protocol, action, (input, &[]));
        let service = shapes.service;
        let requests = [
            message.unsigned(),
            message.signed(service, (KEY, "other"), self.now_ms),
            message.signed(service, (KEY, SECRET), self.now_ms - 86_400_000),
            message.signed("s3", (KEY, SECRET), self.now_ms),
        ];
        for (request, (code, status)) in requests.into_iter().zip(expected) {
            let found = refusal(protocol, &self.send(request)).expect("a refusal");
            assert_eq!(
                (found.code.as_str(), found.status),
                (code, status),
                "{protocol:?}: {}",
                found.message
            );
        }
    }
}
