//! Signatures of AWS's own test suite and of botocore, and all the ways in which one can be wrong.

use http::{HeaderValue, Request};
use proptest::prelude::*;

use super::*;
use crate::testing::{self, KEY, SECRET, SIGNED_MS};

#[derive(Debug, Default)]
struct OneKey {
    token: Option<String>,
    expires_ms: Option<u64>,
}

impl Keys for OneKey {
    fn find(&self, access_key: &str) -> Result<Option<Credential>, ApiError> {
        Ok((access_key == KEY).then(|| Credential {
            secret: SECRET.to_owned(),
            session_token: self.token.clone(),
            expires_ms: self.expires_ms,
            caller: caller(),
        }))
    }
}

fn caller() -> Caller {
    Caller {
        account: "000000000000".to_owned(),
        arn: "arn:aws:iam::000000000000:user/anna".to_owned(),
        user_id: "AIDA".to_owned(),
        access_key: Some(KEY.to_owned()),
    }
}

const fn rules(service: &str) -> Rules<'_> {
    Rules { now_ms: SIGNED_MS, service, region: None, allows_unsigned_payload: false }
}

/// 2015-08-30T12:36:00Z, the time of AWS's test suite.
const SUITE_MS: u64 = 1_440_938_160_000;

/// A request of AWS's test suite: `get-vanilla`, `post-vanilla`, `get-vanilla-query-order-key-case`.
fn of_suite(method: &str, path: &str, signature: &str) -> Result<Verified, SignatureError> {
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={KEY}/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature={signature}"
    );
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "example.amazonaws.com")
        .header("x-amz-date", "20150830T123600Z")
        .header("authorization", authorization);
    let (parts, ()) = request.body(()).unwrap().into_parts();
    verify(&parts, b"", &OneKey::default(), &Rules { now_ms: SUITE_MS, ..rules("service") })
}

#[test]
fn signatures_of_the_test_suite_of_aws_are_right() {
    for (method, path, signature) in [
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
    ] {
        let verified = of_suite(method, path, signature).unwrap();
        assert_eq!((verified.caller, &*verified.region), (caller(), "us-east-1"));
        let mut wrong = signature.to_owned();
        wrong.replace_range(63.., if signature.ends_with('0') { "1" } else { "0" });
        assert_eq!(of_suite(method, path, &wrong), Err(SignatureError::Mismatch));
    }
}

/// Verifies a request of botocore's, changed before.
fn of_botocore(
    operation: &str,
    keys: &OneKey,
    now_ms: u64,
    change: impl FnOnce(&mut Parts, &mut Vec<u8>),
) -> Result<Verified, SignatureError> {
    let vectors = testing::vectors();
    let vector = vectors.iter().find(|vector| vector["operation"] == operation).unwrap();
    let (mut parts, mut body) = testing::request(&vector["request"]);
    change(&mut parts, &mut body);
    let service = vector["service"].as_str().unwrap();
    let allows_unsigned_payload = operation == "PutSnapshotBlock";
    verify(&parts, &body, keys, &Rules { now_ms, allows_unsigned_payload, ..rules(service) })
}

fn keys_of(vector: &serde_json::Value) -> OneKey {
    OneKey { token: vector["token"].as_str().map(str::to_owned), expires_ms: None }
}

#[test]
fn signatures_of_botocore_are_right_in_every_protocol() {
    for vector in testing::vectors() {
        let operation = vector["operation"].as_str().unwrap();
        let verified = of_botocore(operation, &keys_of(&vector), SIGNED_MS, |_, _| ());
        assert_eq!(verified.map(|verified| verified.region).as_deref(), Ok("us-east-1"), "{operation}");
    }
}

#[test]
fn a_request_that_was_changed_in_any_signed_part_is_refused() {
    for vector in testing::vectors() {
        let operation = vector["operation"].as_str().unwrap();
        let refused = |change: &dyn Fn(&mut Parts, &mut Vec<u8>)| {
            of_botocore(operation, &keys_of(&vector), SIGNED_MS, change).unwrap_err()
        };
        if operation != "PutSnapshotBlock" {
            assert_eq!(refused(&|_, body| body.push(b' ')), SignatureError::Mismatch, "{operation}");
        }
        assert_eq!(refused(&|parts, _| parts.method = http::Method::PATCH), SignatureError::Mismatch);
        let elsewhere = |parts: &mut Parts, _: &mut Vec<u8>| {
            parts.headers.insert("host", HeaderValue::from_static("ec2.amazonaws.com"));
        };
        assert_eq!(refused(&elsewhere), SignatureError::Mismatch, "{operation}");
        let path = |parts: &mut Parts, _: &mut Vec<u8>| {
            parts.uri = format!("{}x", parts.uri).parse().unwrap();
        };
        assert!(
            matches!(refused(&path), SignatureError::Mismatch | SignatureError::Incomplete(_)),
            "{operation}"
        );
        let more = |parts: &mut Parts, _: &mut Vec<u8>| {
            parts.headers.insert("x-amz-target", HeaderValue::from_static("TrentService.DisableKey"));
        };
        assert!(
            matches!(refused(&more), SignatureError::Mismatch | SignatureError::Incomplete(_)),
            "{operation}"
        );
    }
}

#[test]
fn the_body_may_be_unsigned_for_blocks_of_snapshots_alone() {
    let keys = OneKey::default();
    of_botocore("PutSnapshotBlock", &keys, SIGNED_MS, |_, body| body.push(1)).unwrap();
    let other = of_botocore("StartSnapshot", &keys, SIGNED_MS, |parts, _| {
        parts.headers.insert("x-amz-content-sha256", HeaderValue::from_static("UNSIGNED-PAYLOAD"));
    });
    assert_eq!(other, Err(SignatureError::Mismatch));
    let checksum = of_botocore("PutSnapshotBlock", &keys, SIGNED_MS, |parts, _| {
        parts.headers.insert("x-amz-checksum", HeaderValue::from_static("other"));
    });
    assert_eq!(checksum, Err(SignatureError::Mismatch));
}

#[test]
fn clocks_may_differ_by_five_minutes_and_by_fifteen_for_sts() {
    let keys = OneKey::default();
    let at = |operation, seconds: i64| {
        let now_ms = SIGNED_MS.checked_add_signed(seconds * 1000).unwrap();
        of_botocore(operation, &keys, now_ms, |_, _| ())
    };
    for (operation, minutes) in [("CreateVolume", 5), ("GetCallerIdentity", 15)] {
        at(operation, minutes * 60).unwrap();
        at(operation, -minutes * 60).unwrap();
        assert!(matches!(at(operation, minutes * 60 + 1), Err(SignatureError::Time(_))));
        assert!(matches!(at(operation, -minutes * 60 - 1), Err(SignatureError::Time(_))));
    }
    assert_eq!(
        at("Encrypt", 301).unwrap_err().answer("kms").message,
        "Signature expired: 20261122T010203Z is now earlier than 20261122T010204Z (20261122T010704Z - 5 min.)"
    );
    assert_eq!(
        at("Encrypt", -301).unwrap_err().answer("kms").message,
        "Signature not yet current: 20261122T010203Z is still later than 20261122T010202Z (20261122T005702Z + 5 min.)"
    );
}

#[test]
fn a_presigned_request_holds_as_long_as_it_says() {
    let keys = OneKey::default();
    let after = |seconds: u64| of_botocore("CopySnapshot", &keys, SIGNED_MS + seconds * 1000, |_, _| ());
    after(3_600).unwrap();
    assert!(matches!(after(3_601), Err(SignatureError::Time(_))));
    let longer = of_botocore("CopySnapshot", &keys, SIGNED_MS, |parts, _| {
        let longer = parts.uri.to_string().replace("Expires=3600", "Expires=36000");
        parts.uri = longer.parse().unwrap();
    });
    assert_eq!(longer, Err(SignatureError::Mismatch));
    let week = of_botocore("CopySnapshot", &keys, SIGNED_MS, |parts, _| {
        parts.uri = parts.uri.to_string().replace("Expires=3600", "Expires=604801").parse().unwrap();
    });
    assert!(matches!(week, Err(SignatureError::Incomplete(_))));
}

#[test]
fn session_tokens_must_be_those_of_the_key() {
    let token = |token: Option<&str>, expires_ms| OneKey { token: token.map(str::to_owned), expires_ms };
    let of_token = |keys: &OneKey| of_botocore("DescribeVolumes", keys, SIGNED_MS, |_, _| ());
    of_token(&token(Some("FwoG+token/="), Some(SIGNED_MS + 1))).unwrap();
    assert_eq!(of_token(&token(Some("other"), None)), Err(SignatureError::Token));
    assert_eq!(of_token(&token(None, None)), Err(SignatureError::Token));
    assert_eq!(of_token(&token(Some("FwoG+token/="), Some(SIGNED_MS))), Err(SignatureError::TokenExpired));
    // The same of a presigned request, whose token is in its query.
    let presigned = |keys: &OneKey| of_botocore("DescribeSnapshots", keys, SIGNED_MS, |_, _| ());
    presigned(&token(Some("FwoG+token/="), Some(SIGNED_MS + 1))).unwrap();
    assert_eq!(presigned(&token(Some("other"), None)), Err(SignatureError::Token));
    assert_eq!(presigned(&token(Some("FwoG+token/="), Some(SIGNED_MS))), Err(SignatureError::TokenExpired));
    let without = of_botocore("CreateVolume", &token(Some("FwoG+token/="), None), SIGNED_MS, |_, _| ());
    assert_eq!(without, Err(SignatureError::Token));
}

#[test]
fn keys_scopes_and_regions_that_are_not_known_are_refused() {
    let vectors = testing::vectors();
    let (parts, body) = testing::request(&vectors[0]["request"]);
    let keys = OneKey::default();
    let with = |rules: Rules<'_>| verify(&parts, &body, &keys, &rules);
    assert!(matches!(with(rules("ebs")), Err(SignatureError::Service { .. })));
    assert_eq!(with(Rules { region: Some("eu-west-1"), ..rules("ec2") }), Err(SignatureError::Region));
    with(Rules { region: Some("us-east-1"), ..rules("ec2") }).unwrap();
    let unknown = of_botocore("CreateVolume", &keys, SIGNED_MS, |parts, _| {
        let other = parts.headers["authorization"].to_str().unwrap().replace(KEY, "AKIDOTHER");
        parts.headers.insert("authorization", other.parse().unwrap());
    });
    assert_eq!(unknown, Err(SignatureError::UnknownKey));
    for (text, is) in [
        ("us-east-1", true),
        ("us-gov-west-1", true),
        ("us", false),
        ("us-east-", false),
        ("US-east-1", false),
    ] {
        assert_eq!(is_region(text), is, "{text}");
    }
}

#[test]
fn each_service_names_errors_in_its_own_way() {
    let error = |error: SignatureError, service| {
        let answer = error.answer(service);
        (answer.code.into_owned(), answer.status)
    };
    let expected = |code: &str, status| (code.to_owned(), status);
    for (service, code, status) in [
        ("ec2", "AuthFailure", 401),
        ("sts", "SignatureDoesNotMatch", 403),
        ("monitoring", "SignatureDoesNotMatch", 403),
        ("kms", "InvalidSignatureException", 403),
        ("ebs", "InvalidSignatureException", 403),
    ] {
        assert_eq!(error(SignatureError::Mismatch, service), expected(code, status));
    }
    assert_eq!(error(SignatureError::UnknownKey, "sts"), expected("InvalidClientTokenId", 403));
    assert_eq!(error(SignatureError::UnknownKey, "ebs"), expected("UnrecognizedClientException", 403));
    assert_eq!(error(SignatureError::TokenExpired, "ec2"), expected("RequestExpired", 400));
    assert_eq!(error(SignatureError::Missing, "ec2"), expected("MissingAuthenticationToken", 403));
    assert_eq!(error(SignatureError::Missing, "kms"), expected("MissingAuthenticationTokenException", 403));
}

#[test]
fn signatures_of_version_2_are_refused_by_name() {
    let (parts, ()) =
        Request::get("/?Action=X&Signature=abc&SignatureVersion=2").body(()).unwrap().into_parts();
    let error = verify(&parts, b"", &OneKey::default(), &rules("ec2")).unwrap_err();
    assert!(error.to_string().contains("Version 2"), "{error}");
    let (parts, ()) = Request::get("/").body(()).unwrap().into_parts();
    assert_eq!(verify(&parts, b"", &OneKey::default(), &rules("ec2")), Err(SignatureError::Missing));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_header_and_no_query_passes_without_the_secret(
        header in "(AWS4-HMAC-SHA256 )?[ -~]{0,200}",
        credential in "Credential=AKIDEXAMPLE/20261122/us-east-1/ec2/aws4_request",
        signed in "[a-z;-]{0,20}(host)?(;x-amz-date)?",
        signature in "[0-9a-fA-F]{60,66}",
        query in "[ -~&&[^ #<>\"`{}\\\\^|]]{0,100}",
    ) {
        let complete = format!("AWS4-HMAC-SHA256 {credential}, SignedHeaders={signed}, Signature={signature}");
        for authorization in [header, complete] {
            let request = Request::get(format!("/?{query}"))
                .header("host", "x")
                .header("x-amz-date", "20261122T010203Z")
                .header("authorization", authorization)
                .body(());
            let Ok(request) = request else { continue };
            let (parts, ()) = request.into_parts();
            prop_assert!(verify(&parts, b"", &OneKey::default(), &rules("ec2")).is_err());
        }
        if let Ok(request) = Request::get(format!("/?X-Amz-Algorithm=AWS4-HMAC-SHA256&{query}")).header("host", "x").body(()) {
            let (parts, ()) = request.into_parts();
            prop_assert!(verify(&parts, b"", &OneKey::default(), &rules("ec2")).is_err());
        }
    }
}
