//! The wire formats against requests that botocore wrote, against botocore's own serializers and parsers where
//! `./dev clients` has installed them, and against bytes of no format at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http::request::Parts;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::model::{Kind, Location, Reference, Shape};
use crate::testing::{self, Clients, Random};

/// The parameters of a request: those of the input, and the data of the body.
fn decoded(parts: &Parts, body: &[u8], service: &str) -> Result<(String, Value, Vec<u8>), ApiError> {
    let route = route(parts, body, Some(service)).map_err(|no_route| no_route.error)?;
    let decoded = decode(&route, parts, body)?;
    let payload = if decoded.body_is_payload { body.to_vec() } else { Vec::new() };
    Ok((route.action, decoded.input.into(), payload))
}

/// An input without the member that is the body, and that member.
fn split(model: &Model, action: &str, input: &Value) -> (Value, Vec<u8>) {
    let mut input = input.clone();
    let shape = model.input(model.operation(action).unwrap());
    let payload =
        shape.and_then(|shape| shape.payload.as_deref()).and_then(|name| input.as_object_mut()?.remove(name));
    let bytes = payload.map(|text| STANDARD.decode(text.as_str().unwrap()).unwrap());
    (input, bytes.unwrap_or_default())
}

#[test]
fn requests_that_botocore_wrote_have_the_parameters_that_it_was_given() {
    let vectors = testing::vectors();
    assert!(vectors.len() > 10);
    for vector in vectors {
        let (service, operation) =
            (vector["service"].as_str().unwrap(), vector["operation"].as_str().unwrap());
        let (parts, body) = testing::request(&vector["request"]);
        let found = decoded(&parts, &body, service).unwrap_or_else(|error| panic!("{operation}: {error}"));
        let (input, payload) = split(Model::of(service).unwrap(), operation, &vector["input"]);
        assert_eq!(found, (operation.to_owned(), input, payload));
    }
}

/// How botocore calls a protocol.
fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Ec2Query => "ec2",
        Protocol::Query => "query",
        Protocol::Json => "json",
        Protocol::RestJson => "rest-json",
        Protocol::Cbor => "smithy-rpc-v2-cbor",
    }
}

/// Values of a model, drawn at random.
struct Samples<'a> {
    model: &'a Model,
    random: Random,
}

impl Samples<'_> {
    fn structure(&mut self, shape: &Shape, depth: usize) -> Map<String, Value> {
        let mut members = Map::new();
        for (name, reference) in &shape.members {
            let is_required = shape.required.contains(name);
            if (is_required || self.random.below(3) > 0)
                && let Some(value) = self.value(reference, depth, is_required)
            {
                members.insert(name.clone(), value);
            }
        }
        members
    }

    /// A value; none where it would be too deep, or where a query cannot tell it from nothing.
    fn value(&mut self, reference: &Reference, depth: usize, is_required: bool) -> Option<Value> {
        let shape = self.model.target(reference);
        let is_scalar = !matches!(shape.kind, Kind::Structure | Kind::List | Kind::Map);
        if depth > 4 && !is_scalar && !is_required {
            return None;
        }
        let value = match shape.kind {
            Kind::Structure => {
                // A query cannot tell an empty structure from none.
                let members =
                    (0..50).map(|_| self.structure(shape, depth + 1)).find(|members| !members.is_empty());
                return members.map(Value::Object);
            }
            Kind::List => {
                let items: Vec<_> = (0..self.length(shape, 1, 2))
                    .filter_map(|_| self.value(shape.item(), depth + 1, is_required))
                    .collect();
                return (!items.is_empty()).then_some(items.into());
            }
            Kind::Map => {
                let (_, value) = shape.entry();
                let entries: Map<_, _> = (0..self.length(shape, 1, 1))
                    .filter_map(|number| {
                        Some((format!("key {number}"), self.value(value, depth + 1, is_required)?))
                    })
                    .collect();
                return (!entries.is_empty()).then_some(entries.into());
            }
            Kind::String if !shape.variants.is_empty() => {
                let place = self.random.below(shape.variants.len());
                shape.variants[place].clone().into()
            }
            Kind::String if reference.location.is_some() => self.text(shape, "abcXYZ019=").into(),
            Kind::String => self.text(shape, "ab Z0+&<>'\"/%=~é€😀\t\r\n;]").into(),
            Kind::Boolean => (self.random.below(2) == 0).into(),
            Kind::Integer | Kind::Long => {
                let number = self.random.below(5_000);
                let number = i64::try_from(number).unwrap();
                within(shape, number).into()
            }
            Kind::Float | Kind::Double => {
                let halves = f64::from(u16::try_from(self.random.below(2_000)).unwrap()) / 2.0;
                halves.clamp(shape.min.unwrap_or(0.0), shape.max.unwrap_or(1e9)).into()
            }
            Kind::Timestamp => {
                (1_700_000_000 + i64::try_from(self.random.below(100_000_000)).unwrap()).into()
            }
            Kind::Blob => {
                let length = self.length(shape, 1, 9);
                let bytes: Vec<u8> =
                    (0..length).map(|_| u8::try_from(self.random.below(256)).unwrap()).collect();
                STANDARD.encode(bytes).into()
            }
        };
        Some(value)
    }

    fn length(&mut self, shape: &Shape, least: usize, more: usize) -> usize {
        let bound =
            |bound: Option<f64>| bound.map(|bound| format!("{bound}").parse::<usize>().unwrap_or(usize::MAX));
        let least = bound(shape.min).unwrap_or(0).max(least);
        let most = bound(shape.max).unwrap_or(usize::MAX);
        (least + self.random.below(more + 1)).min(most.max(1))
    }

    fn text(&mut self, shape: &Shape, letters: &str) -> String {
        let letters: Vec<char> = letters.chars().collect();
        (0..self.length(shape, 1, 8)).map(|_| letters[self.random.below(letters.len())]).collect()
    }
}

/// A number inside the bounds of a shape.
fn within(shape: &Shape, number: i64) -> i64 {
    let bound = |bound: Option<f64>, default| {
        bound.map_or(default, |bound| format!("{bound}").parse().unwrap_or(default))
    };
    number.clamp(bound(shape.min, 0), bound(shape.max, i64::MAX))
}

/// Every operation with every protocol of its service.
fn operations() -> impl Iterator<Item = (&'static Model, Protocol, &'static str)> {
    let of = |model: &'static Model| {
        protocols(model)
            .into_iter()
            .flat_map(move |protocol| model.actions().map(move |action| (model, protocol, action)))
    };
    Model::all().iter().flat_map(of)
}

#[test]
fn what_botocore_writes_of_any_input_is_read_as_that_input() {
    let Some(mut clients) = Clients::start("wire.py") else { return };
    let seed = Random::seed();
    let mut asked = 0;
    for (model, protocol, action) in operations() {
        let mut samples = Samples { model, random: Random::new(seed) };
        for _ in 0..3 {
            let shape = model.input(model.operation(action).unwrap());
            let input = shape.map(|shape| samples.structure(shape, 0)).unwrap_or_default();
            let request = clients.ask(&json!({
                "do": "request", "service": model.name, "protocol": name(protocol), "operation": action, "input": input,
            }));
            let (parts, body) = testing::request(&request);
            let found = decoded(&parts, &body, &model.name)
                .unwrap_or_else(|error| panic!("{protocol:?} {action}: {error}\n{input:?}\n{request}"));
            let (input, payload) = split(model, action, &input.into());
            assert_eq!(found, (action.to_owned(), input, payload), "{protocol:?} {action}\n{request}");
            asked += 1;
        }
    }
    assert!(asked > 300, "{asked}");
}

#[test]
fn what_is_written_of_any_answer_is_what_botocore_reads() {
    let Some(mut clients) = Clients::start("wire.py") else { return };
    let seed = Random::seed();
    for (model, protocol, action) in operations() {
        let mut samples = Samples { model, random: Random::new(seed) };
        let route = testing::route_to(model, protocol, action);
        let operation = model.operation(action).unwrap();
        let shape = model.output(operation);
        for _ in 0..3 {
            let mut output = shape.map(|shape| samples.structure(shape, 0)).unwrap_or_default();
            let expected = Value::Object(output.clone());
            let payload =
                shape.and_then(|shape| shape.payload.as_deref()).and_then(|name| output.remove(name));
            let payload =
                payload.map(|text| STANDARD.decode(text.as_str().unwrap()).unwrap()).unwrap_or_default();
            let answer = Answer { output, payload };
            let response = encode(&route, &answer, "req-1").unwrap();
            let mut read = clients.ask(&testing::task("answer", &route, name(protocol), &response));
            let metadata = read.as_object_mut().unwrap().remove("ResponseMetadata").unwrap();
            // Of CBOR without a body botocore keeps the header alone.
            let id = metadata.get("RequestId").unwrap_or(&metadata["HTTPHeaders"]["x-amzn-requestid"]);
            assert_eq!(id, "req-1", "{protocol:?} {action}: {metadata}");
            // A payload that is not there is an empty one.
            let expected = match (shape.and_then(|shape| shape.payload.as_ref()), expected) {
                (Some(name), Value::Object(mut members)) => {
                    members.entry(name.clone()).or_insert_with(|| "".into());
                    Value::Object(members)
                }
                (_, expected) => expected,
            };
            assert_eq!(read, expected, "{protocol:?} {action}: {}", String::from_utf8_lossy(response.body()));
        }
    }
}

#[test]
fn clients_see_the_code_and_the_message_of_an_error() {
    let Some(mut clients) = Clients::start("wire.py") else { return };
    for (service, action, sent, seen) in [
        ("ec2", "DeleteVolume", "InvalidVolume.NotFound", "InvalidVolume.NotFound"),
        ("sts", "GetCallerIdentity", "InvalidClientTokenId", "InvalidClientTokenId"),
        ("monitoring", "DescribeAlarms", "InvalidNextToken", "InvalidNextToken"),
        ("monitoring", "PutMetricData", "InvalidParameterValueException", "InvalidParameterValue"),
        ("kms", "DescribeKey", "NotFoundException", "NotFoundException"),
        ("ebs", "GetSnapshotBlock", "ValidationException", "ValidationException"),
    ] {
        let model = Model::of(service).unwrap();
        for protocol in protocols(model) {
            let route = testing::route_to(model, protocol, action);
            let mut error = ApiError::client(sent, "Why & how <1>");
            error.members.insert("Reason".to_owned(), "INVALID_BLOCK".into());
            let response = refuse(protocol, Some(model), &error, "req-1");
            assert_eq!(response.status(), 400);
            let read = clients.ask(&testing::task("answer", &route, name(protocol), &response));
            assert_eq!(read["Error"]["Code"], seen, "{protocol:?} {service}: {read}");
            assert_eq!(read["Error"]["Message"], "Why & how <1>", "{protocol:?} {service}: {read}");
            assert_eq!(read["ResponseMetadata"]["RequestId"], "req-1", "{protocol:?} {service}: {read}");
            if service == "ebs" {
                let body: Value = serde_json::from_slice(response.body()).unwrap();
                assert_eq!(body["Reason"], "INVALID_BLOCK", "{body}");
            }
        }
    }
}

fn form(text: &str) -> Result<(String, Value, Vec<u8>), ApiError> {
    let (parts, ()) = Request::post("/").body(()).unwrap().into_parts();
    decoded(&parts, text.as_bytes(), "ec2")
}

#[test]
fn parameters_of_ec2_that_are_wrong_are_named() {
    const CREATE: &str = "Action=CreateVolume&Version=2016-11-15";
    let refused = |more: &str| {
        let error = form(&format!("{CREATE}&{more}")).unwrap_err();
        format!("{}: {}", error.code, error.message)
    };
    assert_eq!(refused("Sise=10"), "UnknownParameter: The parameter Sise is not recognized");
    assert_eq!(refused("size=10"), "UnknownParameter: The parameter size is not recognized");
    assert_eq!(
        refused("TagSpecification.1.Tag.1.Name=x"),
        "UnknownParameter: The parameter TagSpecification.1.Tag.1.Name is not recognized"
    );
    assert_eq!(
        refused("Size=ten"),
        "InvalidParameterValue: Value (ten) for parameter size is invalid. Value must be an integer."
    );
    assert_eq!(
        refused("Encrypted=maybe"),
        "InvalidParameterValue: Value (maybe) for parameter encrypted is invalid. Value must be true or false."
    );
    assert!(refused("Size=1&Size=2").starts_with("MalformedQueryString: "));
    assert!(refused(&format!("{}x=1", "a.".repeat(20))).starts_with("MalformedQueryString: "));
    let create = "Action=CreateSnapshots&Version=2016-11-15&InstanceSpecification.ExcludeBootVolume=true";
    assert_eq!(
        form(create).unwrap_err().message,
        "Value (null) for parameter instanceId is invalid. Parameter may not be null or empty."
    );
    // The service says it in its own words.
    assert!(form("Action=DeleteVolume&Version=2016-11-15").is_ok());
}

#[test]
fn lists_have_their_order_by_number_and_an_empty_tag_differs_from_none() {
    let (_, input, _) = form(
        "Action=DeleteTags&Version=2016-11-15&ResourceId.10=c&ResourceId.2=b&ResourceId.1=a&Tag.1.Key=k&Tag.1.Value=&Tag.2.Key=l",
    )
    .unwrap();
    assert_eq!(
        input,
        json!({ "Resources": ["a", "b", "c"], "Tags": [{ "Key": "k", "Value": "" }, { "Key": "l" }] })
    );
}

#[test]
fn a_service_that_is_not_built_is_named_by_the_scope_in_its_own_protocol() {
    let refused = |request: http::request::Builder, body: &str, scope: &str| {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let NoRoute { protocol, model, error } = *route(&parts, body.as_bytes(), Some(scope)).unwrap_err();
        assert!(model.is_none());
        let built = " is no operation of EC2, EBS, Recycle Bin, CloudWatch, KMS or STS";
        let operation = error.message.strip_suffix(built).unwrap_or_else(|| panic!("{}", error.message));
        (protocol, error.code.into_owned(), error.status, operation.to_owned())
    };
    let query = |operation: &str| (Protocol::Query, "InvalidAction".to_owned(), 400, operation.to_owned());
    let iam = "Action=ListAccountAliases&Version=2010-05-08";
    assert_eq!(refused(Request::post("/"), iam, "iam"), query("ListAccountAliases of the service iam"));
    let presigned = Request::get("/?Action=DescribeDBInstances&Version=2014-10-31");
    assert_eq!(refused(presigned, "", "rds"), query("DescribeDBInstances of the service rds"));
    let unversioned = refused(Request::post("/"), "Action=Publish", "sns");
    assert_eq!(unversioned, query("Publish of the service sns"));
    let other = |protocol: Protocol, operation: &str| {
        (protocol, "UnknownOperationException".to_owned(), 404, operation.to_owned())
    };
    for path in ["/policies", "/tags/arn%3Aaws%3Adlm%3Aus-east-1%3A1%3Apolicy%2Fp", "/snapshots", "/rules"] {
        let expected = other(Protocol::Json, &format!("GET {path} of the service dlm"));
        assert_eq!(refused(Request::get(path), "", "dlm"), expected);
    }
    let tagging = Request::post("/").header("x-amz-target", "ResourceGroupsTaggingAPI_20170126.GetResources");
    let expected = other(Protocol::Json, "ResourceGroupsTaggingAPI_20170126.GetResources");
    assert_eq!(refused(tagging, "{}", "tagging"), expected);
    let bucket = refused(Request::put("/bucket"), "<x/>", "s3");
    assert_eq!(bucket, other(Protocol::Query, "PUT /bucket of the service s3"));
    assert_eq!(refused(Request::get("/"), "", "s3"), other(Protocol::Query, "GET / of the service s3"));
    // What is a request of a service that is here goes on, and is refused by its signature.
    let (parts, ()) = Request::post("/").body(()).unwrap().into_parts();
    let ec2 = b"Action=DescribeVolumes&Version=2016-11-15";
    assert_eq!(route(&parts, ec2, Some("execute-api")).unwrap().model.name, "ec2");
}

#[test]
fn requests_for_nothing_that_there_is_are_refused_in_their_own_protocol() {
    let refused = |request: http::request::Builder, body: &str| {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let no_route = route(&parts, body.as_bytes(), None).unwrap_err();
        (no_route.protocol, no_route.error.code.into_owned(), no_route.error.status)
    };
    let code = |(protocol, code, status): (Protocol, &str, u16)| (protocol, code.to_owned(), status);
    let unknown = "UnknownOperationException";
    assert_eq!(refused(Request::get("/"), ""), code((Protocol::Ec2Query, "MissingAction", 400)));
    assert_eq!(refused(Request::get("/x"), ""), code((Protocol::Json, unknown, 404)));
    assert_eq!(refused(Request::delete("/snapshots"), ""), code((Protocol::RestJson, unknown, 404)));
    assert_eq!(
        refused(Request::post("/").header("x-amz-target", "Nobody.Op"), "{}"),
        code((Protocol::Json, unknown, 404))
    );
    assert_eq!(
        refused(Request::post("/service/GraniteServiceVersion20100801/operation/ListMetrics"), ""),
        code((Protocol::Cbor, unknown, 404))
    );
    assert_eq!(
        refused(Request::post("/"), "Action=DescribeVolumes&Version=1999-01-01"),
        code((Protocol::Ec2Query, "NoSuchVersion", 400))
    );
}

#[test]
fn an_operation_that_is_not_built_is_refused_with_those_that_are() {
    let model = Model::of("sts").unwrap();
    let route = testing::route_to(model, Protocol::Query, "AssumeRole");
    let error = unknown_action(&route, &["GetCallerIdentity"]);
    assert_eq!(error.code, "InvalidAction");
    assert!(error.message.contains("AssumeRole") && error.message.contains("GetCallerIdentity"), "{error}");
}

#[test]
fn answers_that_do_not_fit_the_model_are_found() {
    let route = testing::route_to(Model::of("ec2").unwrap(), Protocol::Ec2Query, "CreateVolume");
    let mismatch = |output: Value| {
        let Value::Object(output) = output else { panic!("no object") };
        encode(&route, &Answer { output, payload: Vec::new() }, "id").unwrap_err().to_string()
    };
    assert_eq!(mismatch(json!({ "Volume": 1 })), "the answer's volume is not in the model");
    assert_eq!(mismatch(json!({ "Size": "1" })), "the answer's size is no Integer");
    assert_eq!(mismatch(json!({ "Tags": [{ "Key": 1 }] })), "the answer's tags.1.member.key is no String");
    assert_eq!(mismatch(json!({ "CreateTime": "now" })), "the answer's createTime is no Timestamp");
}

#[test]
fn an_answer_of_ec2_is_written_as_ec2_does() {
    let route = testing::route_to(Model::of("ec2").unwrap(), Protocol::Ec2Query, "DescribeVolumes");
    let Value::Object(output) = json!({ "Volumes": [
        { "VolumeId": "vol-1", "Attachments": [], "CreateTime": 1_795_309_323, "Tags": [{ "Key": "a", "Value": "<&>" }] },
    ] }) else {
        panic!("no object")
    };
    let response = encode(&route, &Answer { output, payload: Vec::new() }, "id").unwrap();
    assert_eq!(response.headers()["content-type"], "text/xml;charset=UTF-8");
    assert_eq!(
        String::from_utf8_lossy(response.body()),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <DescribeVolumesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>id</requestId>\
         <volumeSet><item><attachmentSet/><createTime>2026-11-22T01:02:03.000Z</createTime>\
         <tagSet><item><key>a</key><value>&lt;&amp;&gt;</value></item></tagSet>\
         <volumeId>vol-1</volumeId></item></volumeSet></DescribeVolumesResponse>"
    );
    let delete = testing::route_to(Model::of("ec2").unwrap(), Protocol::Ec2Query, "DeleteVolume");
    let response = encode(&delete, &Answer::default(), "id").unwrap();
    assert!(String::from_utf8_lossy(response.body()).contains("<return>true</return>"));
}

#[test]
fn bounds_of_the_model_are_kept_but_those_of_ec2_and_the_direct_apis() {
    let request = Request::post("/").header("x-amz-target", "GraniteServiceVersion20100801.DescribeAlarms");
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let error = decoded(&parts, br#"{"MaxRecords":101}"#, "monitoring").unwrap_err();
    assert_eq!(error.code, "ValidationException");
    assert!(error.message.contains("'maxRecords'") && error.message.contains("100"), "{error}");
    assert!(form("Action=DescribeVolumes&Version=2016-11-15&MaxResults=1").is_ok());
    let (parts, ()) = Request::get("/snapshots/snap-1/blocks?maxResults=1").body(()).unwrap().into_parts();
    assert!(decoded(&parts, b"", "ebs").is_ok());
}

#[test]
fn rules_of_the_recycle_bin_are_paths_as_blocks_of_snapshots_are() {
    let decode = |request: http::request::Builder, body: &str| {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let found = route(&parts, body.as_bytes(), Some("rbin")).unwrap();
        assert_eq!((found.model.name.as_str(), found.protocol), ("rbin", Protocol::RestJson));
        let (action, input, _) = decoded(&parts, body.as_bytes(), "rbin").unwrap();
        (action, input)
    };
    let update = decode(Request::patch("/rules/abcdefghijk"), r#"{"Description":"d"}"#);
    assert_eq!(update, ("UpdateRule".to_owned(), json!({"Identifier": "abcdefghijk", "Description": "d"})));
    let delay = r#"{"LockConfiguration":{"UnlockDelay":{"UnlockDelayValue":7,"UnlockDelayUnit":"DAYS"}}}"#;
    let lock = decode(Request::patch("/rules/abcdefghijk/lock"), delay);
    assert_eq!((lock.0.as_str(), &lock.1["Identifier"]), ("LockRule", &json!("abcdefghijk")));
    let unlock = decode(Request::patch("/rules/abcdefghijk/unlock"), "");
    assert_eq!(unlock, ("UnlockRule".to_owned(), json!({"Identifier": "abcdefghijk"})));
    let list = decode(Request::post("/list-rules"), r#"{"ResourceType":"EBS_VOLUME"}"#);
    assert_eq!(list, ("ListRules".to_owned(), json!({"ResourceType": "EBS_VOLUME"})));
    let arn = "arn%3Aaws%3Arbin%3Aus-east-1%3A1%3Arule%2Fabcdefghijk";
    let untag = decode(Request::delete(format!("/tags/{arn}?tagKeys=a&tagKeys=b")), "");
    assert_eq!(untag.0, "UntagResource");
    assert_eq!(untag.1["ResourceArn"], "arn:aws:rbin:us-east-1:1:rule/abcdefghijk");
    assert_eq!(untag.1["TagKeys"], json!(["a", "b"]));
    let delete = testing::route_to(Model::of("rbin").unwrap(), Protocol::RestJson, "DeleteRule");
    let response = encode(&delete, &Answer::default(), "id").unwrap();
    assert_eq!((response.status().as_u16(), response.body().len()), (204, 0));
}

#[test]
fn members_that_json_does_not_know_are_ignored_and_other_types_are_refused() {
    let request = |body: &str| {
        let request = Request::post("/").header("x-amz-target", "TrentService.DescribeKey");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        decoded(&parts, body.as_bytes(), "kms")
    };
    let (_, input, _) = request(r#"{"KeyId":"k","Later":{"a":[1]},"GrantTokens":null}"#).unwrap();
    assert_eq!(input, json!({ "KeyId": "k" }));
    assert_eq!(request(r#"{"KeyId":1}"#).unwrap_err().code, "SerializationException");
    assert_eq!(request("[]").unwrap_err().code, "SerializationException");
    assert_eq!(request("{").unwrap_err().code, "SerializationException");
    let missing = request("{}").unwrap_err();
    assert_eq!(missing.code, "ValidationException");
    assert!(missing.message.contains("Value null at 'keyId'"), "{missing}");
}

/// A request with any method, path, query, headers and body.
fn any_request() -> impl Strategy<Value = (Parts, Vec<u8>)> {
    let target = prop_oneof![
        Just("/".to_owned()),
        "/[a-zA-Z0-9/._%-]{0,40}(\\?[a-zA-Z0-9.=&%+-]{0,60})?",
        "/snapshots/[a-z0-9%-]{0,20}/blocks/[0-9-]{0,12}(\\?[a-zA-Z=&0-9]{0,30})?",
        "/service/GraniteServiceVersion20100801/operation/(ListMetrics|PutMetricData|[A-Z]{0,4})",
        "/\\?Action=(CreateVolume|RunInstances)&Version=2016-11-15(&[A-Z][a-zA-Z.0-9]{0,20}=[a-z0-9%]{0,6}){0,4}",
    ];
    let header = prop_oneof![
        Just(("x-amz-target", "TrentService.Encrypt".to_owned())),
        Just(("smithy-protocol", "rpc-v2-cbor".to_owned())),
        "[ -~]{0,40}".prop_map(|value| ("x-amz-target", value)),
        "AWS4-HMAC-SHA256 [ -~]{0,80}".prop_map(|value| ("authorization", value)),
        "[0-9TZ]{0,17}".prop_map(|value| ("x-amz-date", value)),
    ];
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        "Action=[A-Z][a-z]{0,8}&Version=2016-11-15(&[a-zA-Z.0-9]{0,20}=[ -~]{0,10}){0,6}"
            .prop_map(String::into_bytes),
        "\\{\"[A-Z][a-z]{0,8}\":[\\[\\]{}\"a-z0-9:,.-]{0,40}\\}".prop_map(String::into_bytes),
    ];
    let method = prop_oneof![Just("GET"), Just("POST"), Just("PUT"), Just("DELETE")];
    (method, target, proptest::collection::vec(header, 0..3), body).prop_filter_map(
        "no URI",
        |(method, target, headers, body)| {
            let mut request = Request::builder().method(method).uri(target);
            for (name, value) in headers {
                request = request.header(name, value);
            }
            Some((request.body(()).ok()?.into_parts().0, body))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_request_makes_the_wire_formats_panic((parts, body) in any_request()) {
        match route(&parts, &body, None) {
            Ok(route) => {
                if let Err(error) = decode(&route, &parts, &body) {
                    drop(refuse(route.protocol, Some(route.model), &error, "id"));
                }
            }
            Err(no_route) => drop(refuse(no_route.protocol, no_route.model, &no_route.error, "id")),
        }
    }

    #[test]
    fn text_of_any_letters_is_xml_that_a_parser_reads_back(text in any::<String>()) {
        let document = format!("<a>{}</a>", xml::escape(&text));
        let mut reader = quick_xml::Reader::from_str(&document);
        let mut read = String::new();
        loop {
            match reader.read_event().unwrap() {
                quick_xml::events::Event::Text(part) => read.push_str(&part.xml10_content()),
                quick_xml::events::Event::GeneralRef(part) => {
                    let c = part.resolve_char_ref().unwrap();
                    read.push(c.unwrap_or_else(|| match &*part {
                        "amp" => '&',
                        "lt" => '<',
                        _ => '>',
                    }));
                }
                quick_xml::events::Event::Eof => break,
                _ => {}
            }
        }
        let allowed: String = text.chars().map(|c| {
            let is_control = c < ' ' && !matches!(c, '\t' | '\n' | '\r');
            if is_control || matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c }
        }).collect();
        prop_assert_eq!(read, allowed);
    }
}

#[test]
fn deep_cbor_and_lengths_that_lie_are_refused() {
    let shape = Model::of("monitoring").unwrap();
    let operation = shape.operation("PutMetricData").unwrap();
    let input = shape.input(operation).unwrap();
    let deep = vec![0x81; 10_000];
    // A map, an array, bytes and a text of 2^60 each.
    let lies = [0xbb, 0x9b, 0x5b, 0x7b].map(|kind| [vec![kind, 0x10], vec![0; 7]].concat());
    for body in lies.into_iter().chain([deep, vec![0xa0, 0x00], vec![0xff]]) {
        assert!(cbor::decode(shape, input, &body).is_err(), "{body:02x?}");
    }
    // Indefinite lengths are fine.
    assert_eq!(cbor::decode(shape, input, &[0xbf, 0xff]), Ok(Map::new()));
}

#[test]
fn members_outside_the_body_are_only_in_services_that_have_rest() {
    for (model, _, action) in operations() {
        let operation = model.operation(action).unwrap();
        for shape in [model.input(operation), model.output(operation)].into_iter().flatten() {
            let has_location = |reference: &Reference| reference.location.is_some();
            let has_rest = matches!(model.name.as_str(), "ebs" | "rbin");
            assert!(has_rest || !shape.members.values().any(has_location), "{action}");
            let is_status = |reference: &Reference| reference.location == Some(Location::StatusCode);
            assert!(!shape.members.values().any(is_status), "{action}");
        }
    }
}

#[test]
fn an_answer_conforms_if_its_members_types_and_texts_are_those_of_the_model() {
    let check = |service: &str, action: &str, output: Value| {
        let answer = Answer { output: output.as_object().unwrap().clone(), payload: Vec::new() };
        conforms(service, action, &answer).map_err(|mismatch| mismatch.to_string())
    };
    assert_eq!(check("ec2", "CreateVolume", json!({"VolumeType": "gp3", "Size": 1})), Ok(()));
    for (service, action, output, why) in [
        ("ec2", "CreateVolume", json!({"VolumeType": "gp9"}), "volumeType is 'gp9', which is none of "),
        ("ec2", "CreateVolume", json!({"Size": "1"}), "size is no Integer"),
        ("ec2", "CreateVolume", json!({"Colour": "red"}), "colour is not in the model"),
        (
            "monitoring",
            "DescribeAlarms",
            json!({"MetricAlarms": [{"Dimensions": [{"Name": "a"}]}]}),
            "metricAlarms.1.member.dimensions.1.member.value is missing",
        ),
        ("ec2", "MakeVolume", json!({}), "MakeVolume is no operation"),
        ("s3", "ListBuckets", json!({}), "s3 is no service"),
    ] {
        let found = check(service, action, output).unwrap_err();
        assert!(found.contains(why), "{found}");
    }
}
