//! Policies: what they allow, where they are wrong, and the whitepaper's access control by tags.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::service::{Access, ApiError, Authorizer as _, Caller, OwnPolicy};

fn context(pairs: &[(&str, &[&str])]) -> Context {
    let mut context = Context::default();
    for (key, values) in pairs {
        context.set(key, values.iter().map(|value| (*value).to_owned()));
    }
    context
}

fn policy(statements: &Value) -> Policy {
    Policy::parse(&json!({ "Version": "2012-10-17", "Statement": statements }).to_string()).unwrap()
}

const VOLUME: &str = "arn:aws:ec2:us-east-1:000000000000:volume/vol-1";

fn allows(policy: &Policy, action: &str, resource: &str, context: &Context) -> bool {
    policy.decide(action, resource, context).is_allowed
}

#[test]
fn nothing_is_allowed_that_no_statement_allows_and_a_deny_wins() {
    let policy = policy(&json!([
        { "Sid": "All", "Effect": "Allow", "Action": "ec2:*", "Resource": "*" },
        { "Sid": "NoDelete", "Effect": "Deny", "Action": ["ec2:Delete*", "ec2:Detach?olume"], "Resource": VOLUME },
    ]));
    let none = Context::default();
    assert!(allows(&policy, "ec2:CreateVolume", VOLUME, &none));
    assert!(allows(&policy, "EC2:createvolume", VOLUME, &none), "actions have no case");
    assert!(!allows(&policy, "kms:Encrypt", "*", &none));
    let denied = policy.decide("ec2:DeleteVolume", VOLUME, &none);
    assert_eq!((denied.is_explicit_deny, denied.statements), (true, vec!["NoDelete".to_owned()]));
    assert!(!allows(&policy, "ec2:DetachVolume", VOLUME, &none));
    assert!(allows(&policy, "ec2:DeleteVolume", "arn:aws:ec2:us-east-1:000000000000:volume/vol-2", &none));
}

#[test]
fn not_action_and_not_resource_are_everything_else() {
    let policy = policy(&json!([
        { "Effect": "Allow", "NotAction": ["iam:*", "kms:*"], "NotResource": "arn:aws:ec2:*:*:instance/*" },
    ]));
    let none = Context::default();
    assert!(allows(&policy, "ec2:CreateVolume", VOLUME, &none));
    assert!(!allows(&policy, "kms:Encrypt", VOLUME, &none));
    assert!(!allows(&policy, "ec2:StopInstances", "arn:aws:ec2:us-east-1:0:instance/i-1", &none));
}

/// Whether a condition holds.
fn holds(operator: &str, key: &str, values: &Value, sent: &[(&str, &[&str])]) -> bool {
    let policy = policy(&json!([
        { "Effect": "Allow", "Action": "*", "Resource": "*", "Condition": { operator: { key: values } } },
    ]));
    allows(&policy, "ec2:X", "*", &context(sent))
}

#[test]
fn conditions_compare_as_their_operators_say() {
    let one = |operator: &str, wanted: Value, sent: &str| holds(operator, "k", &wanted, &[("k", &[sent])]);
    for (operator, wanted, yes, no) in [
        ("StringEquals", json!(["a", "b"]), "b", "B"),
        ("StringNotEquals", json!(["a", "b"]), "c", "a"),
        ("StringEqualsIgnoreCase", json!("Ab"), "aB", "a"),
        ("StringNotEqualsIgnoreCase", json!("Ab"), "a", "aB"),
        ("StringLike", json!("a*c?"), "abbcd", "abbc"),
        ("StringNotLike", json!("a*"), "b", "ab"),
        ("NumericEquals", json!(10), "10.0", "11"),
        ("NumericNotEquals", json!(10), "11", "10"),
        ("NumericLessThan", json!("10"), "9", "10"),
        ("NumericLessThanEquals", json!(10), "10", "11"),
        ("NumericGreaterThan", json!(10), "11", "10"),
        ("NumericGreaterThanEquals", json!(10), "10", "9.99"),
        ("DateLessThan", json!("2026-01-01T00:00:00Z"), "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z"),
        ("DateGreaterThan", json!("2026-01-01"), "2026-01-01T00:00:01Z", "2025-01-01T00:00:00Z"),
        ("DateEquals", json!(0), "1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z"),
        ("Bool", json!(true), "TRUE", "false"),
        ("IpAddress", json!("192.0.2.0/24"), "192.0.2.255", "192.0.3.0"),
        ("NotIpAddress", json!(["192.0.2.0/24", "2001:db8::/32"]), "2001:db9::1", "2001:db8::1"),
        ("IpAddress", json!("0.0.0.0/0"), "127.0.0.1", "::1"),
        ("ArnLike", json!("arn:aws:ec2:*:*:volume/*"), VOLUME, "arn:aws:ec2:us-east-1:1:instance/i-1"),
        ("ArnEquals", json!("arn:aws:*:volume/vol-1"), "arn:aws:x:volume/vol-1", VOLUME),
        ("ArnNotLike", json!("arn:aws:ec2:*:*:volume/*"), "arn:aws:ec2:us-east-1:1:instance/i-1", VOLUME),
    ] {
        assert!(one(operator, wanted.clone(), yes), "{operator} {wanted}: {yes}");
        assert!(!one(operator, wanted.clone(), no), "{operator} {wanted}: {no}");
    }
}

#[test]
fn a_key_that_is_missing_fails_but_for_negated_operators_and_if_exists() {
    let missing = |operator: &str| holds(operator, "k", &json!("a"), &[]);
    assert!(!missing("StringEquals"));
    assert!(missing("StringNotEquals"));
    assert!(missing("StringEqualsIfExists"));
    assert!(missing("ForAllValues:StringEquals"));
    assert!(!missing("ForAnyValue:StringEquals"));
    assert!(!missing("ForAnyValue:StringNotEquals"));
    assert!(holds("Null", "k", &json!("true"), &[]));
    assert!(!holds("Null", "k", &json!("false"), &[]));
    assert!(holds("Null", "k", &json!(false), &[("K", &["x"])]), "keys have no case");
    assert!(!holds("StringEqualsIfExists", "k", &json!("a"), &[("k", &["b"])]));
}

#[test]
fn keys_with_several_values_are_compared_as_sets() {
    let sent: &[(&str, &[&str])] = &[("aws:TagKeys", &["team", "cost"])];
    let tags = |operator: &str, wanted: Value| holds(operator, "aws:TagKeys", &wanted, sent);
    assert!(tags("ForAllValues:StringEquals", json!(["team", "cost", "name"])));
    assert!(!tags("ForAllValues:StringEquals", json!(["team"])));
    assert!(tags("ForAnyValue:StringEquals", json!(["team"])));
    assert!(!tags("ForAnyValue:StringEquals", json!(["name"])));
    assert!(tags("ForAllValues:StringNotEquals", json!(["aws"])));
    assert!(!tags("ForAllValues:StringNotEquals", json!(["team"])));
    assert!(tags("ForAnyValue:StringNotEquals", json!(["team"])));
}

#[test]
fn variables_have_the_values_of_the_request_and_their_wildcards_are_letters() {
    let policy = policy(&json!([
        { "Effect": "Allow", "Action": "*", "Resource": "arn:aws:ec2:*:*:volume/${aws:username}-*" },
        { "Effect": "Allow", "Action": "*", "Resource": "arn:aws:ec2:*:*:snapshot/*",
          "Condition": { "StringEquals": { "aws:ResourceTag/owner": "${aws:username, 'nobody'}" } } },
    ]));
    let volume = |name: &str| format!("arn:aws:ec2:us-east-1:0:volume/{name}");
    let anna = context(&[("aws:username", &["anna"])]);
    assert!(allows(&policy, "ec2:X", &volume("anna-1"), &anna));
    assert!(!allows(&policy, "ec2:X", &volume("bert-1"), &anna));
    assert!(!allows(&policy, "ec2:X", &volume("-1"), &Context::default()));
    let star = context(&[("aws:username", &["*"])]);
    assert!(!allows(&policy, "ec2:X", &volume("anna-1"), &star), "a user called * is not everyone");
    let snapshot = "arn:aws:ec2:us-east-1::snapshot/snap-1";
    let owned = |owner| context(&[("aws:username", &["anna"]), ("aws:ResourceTag/owner", &[owner])]);
    assert!(allows(&policy, "ec2:X", snapshot, &owned("anna")));
    assert!(!allows(&policy, "ec2:X", snapshot, &owned("bert")));
    assert!(allows(&policy, "ec2:X", snapshot, &context(&[("aws:ResourceTag/owner", &["nobody"])])));
    let old = r#"{"Statement":{"Effect":"Allow","Action":"*","Resource":"arn:aws:ec2:a:b:volume/${aws:username}"}}"#;
    assert!(!allows(&Policy::parse(old).unwrap(), "ec2:X", &volume("anna"), &anna));
}

#[test]
fn a_policy_that_is_wrong_is_refused_with_the_place() {
    let refused = |text: &str| Policy::parse(text).unwrap_err().to_string();
    let statement = |fields: Value| {
        let mut whole = json!({ "Effect": "Allow", "Action": "*", "Resource": "*" });
        for (name, value) in fields.as_object().unwrap() {
            match value {
                Value::Null => drop(whole.as_object_mut().unwrap().remove(name)),
                _ => whole[name] = value.clone(),
            }
        }
        refused(&json!({ "Version": "2012-10-17", "Statement": [whole] }).to_string())
    };
    assert!(refused("{").starts_with("policy: it is no JSON: "));
    assert_eq!(refused("[]"), "policy: it is no JSON object");
    assert_eq!(refused(r#"{"Version":"2012-10-18"}"#), "Version: give \"2012-10-17\" or \"2008-10-17\"");
    assert_eq!(refused(r#"{"Statement":[]}"#), "Statement: there is none");
    assert!(refused(r#"{"statement":[]}"#).starts_with("policy: 'statement' is none of its elements"));
    assert_eq!(statement(json!({ "Effect": "allow" })), "Statement[0].Effect: give \"Allow\" or \"Deny\"");
    assert_eq!(statement(json!({ "Action": null })), "Statement[0].Action: give Action or NotAction");
    assert_eq!(
        statement(json!({ "NotAction": "*" })),
        "Statement[0].Action: give Action or NotAction, not both"
    );
    assert_eq!(
        statement(json!({ "Action": ["ec2:*", "CreateVolume"] })),
        "Statement[0].Action[1]: 'CreateVolume' is neither \"*\" nor SERVICE:ACTION"
    );
    assert_eq!(
        statement(json!({ "Resource": "vol-1" })),
        "Statement[0].Resource: 'vol-1' is neither \"*\" nor an ARN with six parts"
    );
    assert_eq!(
        statement(json!({ "Principal": "*" })),
        "Statement[0].Principal: a policy of a user has none: the user is the principal"
    );
    let condition = |condition: Value| statement(json!({ "Condition": condition }));
    assert_eq!(
        condition(json!({ "StringEqual": { "k": "v" } })),
        "Statement[0].Condition.StringEqual: is no operator of conditions"
    );
    assert_eq!(
        condition(json!({ "NumericLessThan": { "ec2:VolumeSize": ["1", "ten"] } })),
        "Statement[0].Condition.NumericLessThan.ec2:VolumeSize[1]: 'ten' is no number"
    );
    assert_eq!(
        condition(json!({ "IpAddress": { "aws:SourceIp": "10.0.0.0/33" } })),
        "Statement[0].Condition.IpAddress.aws:SourceIp: '10.0.0.0/33' is no IP address or CIDR block"
    );
    assert!(condition(json!({ "NullIfExists": { "k": "true" } })).ends_with("is no operator of conditions"));
    assert!(
        condition(json!({ "StringLike": { "k": "${aws:username" } })).ends_with("the variable has no '}'")
    );
}

fn authorize(policy: &Policy, service: &str, access: &Access, sealer: &Sealer) -> Result<(), ApiError> {
    let environment = Environment {
        source: Some([127, 0, 0, 1].into()),
        is_secure: false,
        user_agent: None,
        region: "us-east-1".to_owned(),
        now_ms: 1_795_309_323_000,
    };
    let caller = Caller {
        account: "000000000000".to_owned(),
        arn: "arn:aws:iam::000000000000:user/anna".to_owned(),
        user_id: "AIDAANNA".to_owned(),
        access_key: Some("AKIAANNA".to_owned()),
    };
    PolicyAuthorizer { policy: Some(policy), session: None, service, environment: &environment, sealer }
        .authorize(&caller, access)
}

fn access(action: &'static str, resource: &str, pairs: &[(&str, &str)]) -> Access {
    let context = pairs.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()]));
    Access { action: action.into(), resource: resource.to_owned(), context: context.collect() }
}

/// The worked example of docs/aws.md.
const BY_TAGS: &str = include_str!("../../tests/policies/by-tags.json");

#[test]
fn access_by_tags_as_in_the_whitepaper() {
    let policy = Policy::parse(BY_TAGS).unwrap();
    let sealer = Arc::new(Sealer::new().unwrap());
    let may = |access: Access| authorize(&policy, "ec2", &access, &sealer).is_ok();
    let production = ("aws:ResourceTag/Environment", "production");
    let test = ("aws:ResourceTag/Environment", "test");
    assert!(may(access("ec2:DescribeVolumes", "*", &[])));
    assert!(may(access("ec2:DeleteVolume", VOLUME, &[test])));
    assert!(!may(access("ec2:DeleteVolume", VOLUME, &[production])));
    assert!(!may(access("ec2:DeleteVolume", VOLUME, &[])), "a volume without the tag is not the user's");
    assert!(may(access(
        "ec2:CreateVolume",
        "arn:aws:ec2:us-east-1:000000000000:volume/*",
        &[("aws:RequestTag/Environment", "test"), ("ec2:VolumeSize", "100"),]
    )));
    assert!(!may(access(
        "ec2:CreateVolume",
        "arn:aws:ec2:us-east-1:000000000000:volume/*",
        &[("aws:RequestTag/Environment", "test"), ("ec2:VolumeSize", "2000"),]
    )));
    assert!(!may(access("ec2:CreateVolume", "arn:aws:ec2:us-east-1:000000000000:volume/*", &[])));
    // CreateSnapshot asks about the volume and about the snapshot that comes.
    assert!(may(access("ec2:CreateSnapshot", "arn:aws:ec2:us-east-1::snapshot/*", &[])));
    assert!(may(access("ec2:CreateSnapshot", VOLUME, &[test])));
    assert!(!may(access("ec2:CreateSnapshot", VOLUME, &[production])));
    // A tag may be set on creation, and not changed later.
    assert!(may(access("ec2:CreateTags", VOLUME, &[("ec2:CreateAction", "CreateVolume")])));
    assert!(!may(access("ec2:CreateTags", VOLUME, &[production])));
}

#[test]
fn what_is_denied_is_worded_as_each_service_does_and_decodes_to_what_decided() {
    let policy =
        policy(&json!([{ "Sid": "No", "Effect": "Deny", "Action": "ec2:DeleteVolume", "Resource": "*" }]));
    let sealer = Sealer::new().unwrap();
    let refused = |service, access: &Access| authorize(&policy, service, access, &sealer).unwrap_err();
    let error = refused("ec2", &access("ec2:CreateVolume", VOLUME, &[("ec2:VolumeType", "gp3")]));
    assert_eq!((error.code.as_ref(), error.status), ("UnauthorizedOperation", 403));
    let begin = format!(
        "You are not authorized to perform this operation. User: arn:aws:iam::000000000000:user/anna is not authorized \
         to perform: ec2:CreateVolume on resource: {VOLUME} because no identity-based policy allows the \
         ec2:CreateVolume action. Encoded authorization failure message: "
    );
    let sealed = error.message.strip_prefix(&begin).unwrap_or_else(|| panic!("{error}"));
    let details: Value = serde_json::from_str(&sealer.open(sealed).unwrap()).unwrap();
    assert_eq!((&details["allowed"], &details["explicitDeny"]), (&json!(false), &json!(false)));
    assert_eq!(details["context"]["principal"]["name"], "anna");
    let conditions = details["context"]["conditions"]["items"].as_array().unwrap();
    assert!(
        conditions.contains(&json!({ "key": "ec2:volumetype", "values": { "items": [{ "value": "gp3" }] } }))
    );
    assert_eq!(Sealer::new().unwrap().open(sealed), None, "another endpoint has another key");
    let other = if sealed.starts_with('_') { "-" } else { "_" };
    assert_eq!(sealer.open(&format!("{other}{}", &sealed[1..])), None);

    let error = refused("ec2", &access("ec2:DeleteVolume", VOLUME, &[]));
    assert!(error.message.contains("with an explicit deny in an identity-based policy"), "{error}");
    let error = refused("ec2", &access("ec2:DescribeVolumes", "*", &[]));
    assert!(!error.message.contains("on resource") && !error.message.contains("Encoded"), "{error}");
    let error = refused("ebs", &access("ebs:StartSnapshot", "arn:aws:ec2:us-east-1::snapshot/*", &[]));
    assert_eq!(
        (error.code.as_ref(), &error.members["Reason"]),
        ("AccessDeniedException", &json!("UNAUTHORIZED_ACCOUNT"))
    );
    assert_eq!(refused("kms", &access("kms:Encrypt", "*", &[])).status, 400);
    assert_eq!(refused("monitoring", &access("cloudwatch:ListMetrics", "*", &[])).code, "AccessDenied");
}

#[test]
fn a_session_may_do_what_its_own_policy_and_that_of_its_role_allow() {
    let own = policy(&json!([{ "Effect": "Allow", "Action": "ec2:*", "Resource": "*" },
        { "Effect": "Deny", "Action": "ec2:DeleteVolume", "Resource": "*" }]));
    let of_session = policy(
        &json!([{ "Effect": "Allow", "Action": ["ec2:Describe*", "ec2:DeleteVolume", "kms:*"], "Resource": "*",
            "Condition": { "DateGreaterThan": { "aws:TokenIssueTime": "2026-11-22T00:00:00Z" },
                "ArnEquals": { "aws:PrincipalArn": "arn:aws:iam::000000000000:role/backup" },
                "StringEquals": { "aws:PrincipalType": "AssumedRole", "aws:userid": "AROABACKUP:nightly" },
                "Null": { "aws:username": "true" } } },
        { "Effect": "Deny", "Action": "ec2:DescribeTags", "Resource": "*" }]),
    );
    let sealer = Sealer::new().unwrap();
    let environment = Environment {
        source: None,
        is_secure: true,
        user_agent: None,
        region: "us-east-1".to_owned(),
        now_ms: 1_795_309_323_000,
    };
    let session = SessionTerms {
        policy: Some(&of_session),
        issued_ms: 1_795_309_000_000,
        tags: &[],
        source_identity: None,
    };
    let caller = Caller {
        account: "000000000000".to_owned(),
        arn: "arn:aws:sts::000000000000:assumed-role/backup/nightly".to_owned(),
        user_id: "AROABACKUP:nightly".to_owned(),
        access_key: Some("ASIABACKUP".to_owned()),
    };
    let says = |action: &'static str| {
        let (policy, session) = (Some(&own), Some(session));
        let judge =
            PolicyAuthorizer { policy, session, service: "ec2", environment: &environment, sealer: &sealer };
        judge.judge(&caller, &access(action, "*", &[])).says
    };
    assert_eq!(says("ec2:DescribeVolumes"), OwnPolicy::Allows);
    for (action, part, is_silent) in [
        ("ec2:CreateVolume", "because no session policy allows the ec2:CreateVolume action", false),
        ("ec2:DescribeTags", "with an explicit deny in a session policy", false),
        ("ec2:DeleteVolume", "with an explicit deny in an identity-based policy", false),
        ("kms:Encrypt", "because no identity-based policy allows the kms:Encrypt action", true),
        ("sts:AssumeRole", "because no session policy allows the sts:AssumeRole action", false),
    ] {
        match says(action) {
            OwnPolicy::Silent(error) if is_silent => assert!(error.message.contains(part), "{error}"),
            OwnPolicy::Denies(error) if !is_silent => assert!(error.message.contains(part), "{error}"),
            other => panic!("{action}: {other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_of_policies_panic(text in "[ -~]{0,80}") {
        let _ = Policy::parse(&text);
        let statement = json!({ "Statement": { "Effect": "Allow", "Action": text, "Resource": text,
            "Condition": { "StringLike": { "k": text } } }, "Version": "2012-10-17" });
        let _ = Policy::parse(&statement.to_string());
    }

    /// Against the definition, by recursion.
    #[test]
    fn wildcards_match_as_they_are_defined(pattern in "[ab*?]{0,8}", text in "[ab]{0,8}") {
        fn matches(pattern: &[u8], text: &[u8]) -> bool {
            match (pattern.first(), text.first()) {
                (None, None) => true,
                (Some(b'*'), _) => matches(&pattern[1..], text) || (!text.is_empty() && matches(pattern, &text[1..])),
                (Some(b'?'), Some(_)) => matches(&pattern[1..], &text[1..]),
                (Some(p), Some(t)) if p == t => matches(&pattern[1..], &text[1..]),
                _ => false,
            }
        }
        let found = Pattern::parse(&pattern, true).unwrap().matches(&text, &Context::default());
        prop_assert_eq!(found, matches(pattern.as_bytes(), text.as_bytes()));
    }
}

#[test]
fn a_pattern_of_many_stars_ends() {
    // By recursion it would take longer than the universe has lasted.
    let pattern = Pattern::parse(&format!("{}c", "a*".repeat(100)), true).unwrap();
    assert!(!pattern.matches(&"a".repeat(2_000), &Context::default()));
}
