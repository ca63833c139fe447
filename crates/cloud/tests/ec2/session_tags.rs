//! Session tags and source identities: who may set them, what they allow, and how they pass on in a chain of roles.

use std::collections::BTreeMap;

use ebbtide_cloud::users::{ACCOUNT, NewRole};
use ring::rand::SystemRandom;
use serde_json::{Value, json};

use crate::sessions::{Endpoint, Key, code, new_volume, policy, role_arn, trust_for};
use crate::support::START_MS;
use crate::wire::element;

/// The worked example of docs/aws.md.
const BY_SESSION_TAGS: &str = include_str!("../policies/by-session-tags.json");

const TAGGED: [&str; 2] = ["sts:AssumeRole", "sts:TagSession"];

fn tags(pairs: &[(&str, &str)], transitive: &[&str]) -> Value {
    let tags: Vec<Value> = pairs.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    json!({"Tags": tags, "TransitiveTagKeys": transitive})
}

fn make_role(endpoint: &Endpoint, name: &str, trust: &str, policy: Option<&str>) {
    let new = NewRole { name, trust, policy, max_session_s: 3_600 };
    endpoint.users.create_role(new, START_MS, &SystemRandom::new()).unwrap();
}

fn make_user(endpoint: &Endpoint, name: &str, policy: &str) -> Key {
    let made = endpoint.users.create(name, Some(policy), START_MS, &SystemRandom::new()).unwrap();
    Key { id: made.access_key, secret: made.secret, token: None }
}

fn assume_role(endpoint: &Endpoint, key: &Key, role: &str, more: &Value) -> Result<String, String> {
    let mut input = json!({"RoleArn": role_arn(role), "RoleSessionName": "nightly"});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    endpoint.sts(key, "AssumeRole", &input).map_err(|refusal| refusal.message)
}

fn volume_of(project: &str) -> Value {
    let mut input = new_volume();
    let tags = json!([{"Key": "project", "Value": project}]);
    input["TagSpecifications"] = json!([{"ResourceType": "volume", "Tags": tags}]);
    input
}

/// The condition keys of a session's request, as a denied call tells them.
fn keys_of(endpoint: &Endpoint, session: &Key) -> BTreeMap<String, String> {
    let denied = endpoint.ec2(session, "CreateVolume", &new_volume()).unwrap_err();
    let encoded = denied.message.split_once("Encoded authorization failure message: ").unwrap().1;
    let decoded =
        endpoint.sts(&endpoint.anna, "DecodeAuthorizationMessage", &json!({"EncodedMessage": encoded}));
    let message: Value = serde_json::from_str(&element(&decoded.unwrap(), "DecodedMessage")).unwrap();
    let items = message["context"]["conditions"]["items"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let pair = |item: &Value| (text(&item["key"]), text(&item["values"]["items"][0]["value"]));
    let is_of_session = |key: &str| key.starts_with("aws:principaltag/") || key == "aws:sourceidentity";
    items.iter().map(pair).filter(|(key, _)| is_of_session(key)).collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn a_session_works_with_the_volumes_that_have_its_tag_and_with_no_others() {
    let endpoint = Endpoint::new();
    let root = format!("arn:aws:iam::{ACCOUNT}:root");
    make_role(&endpoint, "developer", &trust_for(&TAGGED, &root, &Value::Null), Some(BY_SESSION_TAGS));
    let session =
        |project: &str| endpoint.assume(&endpoint.anna, "developer", &tags(&[("project", project)], &[]));
    let (a, b) = (session("a"), session("b"));
    let untagged = endpoint.assume(&endpoint.anna, "developer", &json!({}));
    let own = element(&endpoint.ec2(&a, "CreateVolume", &volume_of("a")).unwrap(), "volumeId");
    for (key, input) in [(&a, volume_of("b")), (&a, new_volume()), (&untagged, volume_of("a"))] {
        assert_eq!(code(endpoint.ec2(key, "CreateVolume", &input)), "UnauthorizedOperation", "{input}");
    }
    endpoint.ec2(&b, "DescribeVolumes", &json!({"VolumeIds": [own]})).unwrap();
    let grow = json!({"VolumeId": own, "Size": 2});
    let delete = json!({"VolumeId": own});
    for other in [&b, &untagged] {
        assert_eq!(code(endpoint.ec2(other, "ModifyVolume", &grow)), "UnauthorizedOperation");
        assert_eq!(code(endpoint.ec2(other, "DeleteVolume", &delete)), "UnauthorizedOperation");
    }
    // The session could open what is another project's with another tag.
    let retag = json!({"Resources": [own], "Tags": [{"Key": "project", "Value": "b"}]});
    assert_eq!(code(endpoint.ec2(&a, "CreateTags", &retag)), "UnauthorizedOperation");
    assert_ne!(endpoint.ec2(&a, "ModifyVolume", &grow).err().map(|e| e.status), Some(403));
    let deleted = endpoint.ec2(&a, "DeleteVolume", &delete);
    assert_ne!(deleted.err().map(|e| e.status), Some(403));
}

#[test]
fn conditions_of_policies_choose_the_tags_of_a_session() {
    let endpoint = Endpoint::new();
    let root = format!("arn:aws:iam::{ACCOUNT}:root");
    let condition = json!({
        "StringEquals": {"aws:RequestTag/Project": ["a", "b"]},
        "ForAllValues:StringEquals": {"aws:TagKeys": ["project", "team"], "sts:TransitiveTagKeys": ["project"]},
    });
    make_role(&endpoint, "chosen", &trust_for(&TAGGED, &root, &condition), None);
    let may = |more: &Value| assume_role(&endpoint, &endpoint.anna, "chosen", more).is_ok();
    assert!(may(&tags(&[("project", "a")], &[])));
    assert!(may(&tags(&[("project", "b"), ("team", "x")], &["project"])));
    for refused in [
        tags(&[("project", "c")], &[]),
        tags(&[("team", "x")], &[]),
        tags(&[("project", "a"), ("other", "x")], &[]),
        tags(&[("project", "a"), ("team", "x")], &["team"]),
    ] {
        assert!(!may(&refused), "{refused}");
    }
    assert!(!may(&json!({})), "the condition asks for a tag");
}

#[test]
fn tags_need_the_right_of_the_caller_where_the_role_trusts_the_account() {
    let endpoint = Endpoint::new();
    let plain = make_user(&endpoint, "carl", &policy("Allow", &["sts:AssumeRole"]));
    let both = make_user(&endpoint, "dora", &policy("Allow", &TAGGED));
    let tagged = tags(&[("project", "a")], &[]);
    assume_role(&endpoint, &plain, "team", &json!({})).unwrap();
    assume_role(&endpoint, &both, "team", &tagged).unwrap();
    let refused = |key: &Key, more: &Value| assume_role(&endpoint, key, "team", more).unwrap_err();
    let words = |user: &str, action: &str| {
        let arn = format!("arn:aws:iam::{ACCOUNT}:user/{user}");
        format!("User: {arn} is not authorized to perform: sts:{action} on resource: {}", role_arn("team"))
    };
    assert_eq!(refused(&plain, &tagged), words("carl", "TagSession"));
    assert_eq!(refused(&both, &json!({"SourceIdentity": "dora"})), words("dora", "SetSourceIdentity"));
    // A role that trusts the user by name with tags needs no more, as it needs none for AssumeRole.
    let carl = format!("arn:aws:iam::{ACCOUNT}:user/carl");
    make_role(&endpoint, "of-carl", &trust_for(&TAGGED, &carl, &Value::Null), None);
    assume_role(&endpoint, &plain, "of-carl", &tagged).unwrap();
}

#[test]
fn transitive_tags_pass_on_in_a_chain_of_roles_and_others_end_with_their_session() {
    let endpoint = Endpoint::new();
    let trusts_next = trust_for(&TAGGED, &role_arn("next"), &Value::Null);
    let policy = policy("Allow", &["sts:*"]);
    make_role(&endpoint, "third", &trusts_next, Some(&policy));
    let given = tags(&[("Project", "a"), ("team", "x")], &["project"]);
    let first = endpoint.assume(&endpoint.anna, "team", &given);
    let second = endpoint.assume(&first, "next", &tags(&[("team", "y")], &[]));
    let third = endpoint.assume(&second, "third", &json!({}));
    assert_eq!(keys_of(&endpoint, &third), pairs([("aws:principaltag/project", "a")]));
    assert_eq!(endpoint.arn(&third), format!("arn:aws:sts::{ACCOUNT}:assumed-role/third/nightly"));
    // A role that knows no tags refuses a session that brings some along, and takes one without.
    let plain = trust_for(&["sts:AssumeRole"], &role_arn("team"), &Value::Null);
    make_role(&endpoint, "plain", &plain, None);
    let refused = assume_role(&endpoint, &first, "plain", &json!({})).unwrap_err();
    assert!(refused.contains("is not authorized to perform: sts:TagSession on"), "{refused}");
    let untransitive = endpoint.assume(&endpoint.anna, "team", &tags(&[("team", "x")], &[]));
    assume_role(&endpoint, &untransitive, "plain", &json!({})).unwrap();
}

#[test]
fn a_source_identity_stays_the_same_in_a_chain_of_roles() {
    let endpoint = Endpoint::new();
    let anna = json!({"SourceIdentity": "anna"});
    let answer = assume_role(&endpoint, &endpoint.anna, "team", &anna).unwrap();
    assert_eq!(element(&answer, "SourceIdentity"), "anna");
    let first = endpoint.assume(&endpoint.anna, "team", &anna);
    for more in [json!({}), anna] {
        let answer = assume_role(&endpoint, &first, "next", &more).unwrap();
        assert_eq!(element(&answer, "SourceIdentity"), "anna", "{more}");
    }
    // The role may ask for one of its own choice.
    let wants =
        json!({"StringEquals": {"sts:SourceIdentity": "anna"}, "Null": {"sts:TransitiveTagKeys": "true"}});
    let trust = trust_for(&["sts:AssumeRole", "sts:SetSourceIdentity"], &role_arn("team"), &wants);
    make_role(&endpoint, "asks", &trust, Some(&policy("Allow", &["sts:*"])));
    let second = endpoint.assume(&first, "asks", &json!({}));
    assert_eq!(keys_of(&endpoint, &second), pairs([("aws:sourceidentity", "anna")]));
    let without = endpoint.assume(&endpoint.anna, "team", &json!({}));
    assert!(assume_role(&endpoint, &without, "asks", &json!({})).is_err());
}

#[test]
fn tags_and_the_source_identity_are_there_after_the_process() {
    let endpoint = Endpoint::new();
    let trust = trust_for(&["sts:*"], &role_arn("team"), &Value::Null);
    make_role(&endpoint, "watched", &trust, Some(&policy("Allow", &["sts:*"])));
    let mut given = tags(&[("project", "a"), ("cost center", "42 ü"), ("empty", "")], &["project"]);
    given["SourceIdentity"] = "anna".into();
    let first = endpoint.assume(&endpoint.anna, "team", &given);
    let watched = endpoint.assume(&first, "watched", &tags(&[("cost center", "7")], &[]));
    let endpoint = endpoint.served_again();
    let second = endpoint.assume(&first, "watched", &json!({}));
    let kept = [("aws:principaltag/project", "a"), ("aws:sourceidentity", "anna")];
    assert_eq!(keys_of(&endpoint, &second), pairs(kept));
    let with_own = [kept[0], kept[1], ("aws:principaltag/cost center", "7")];
    assert_eq!(keys_of(&endpoint, &watched), pairs(with_own));
}

#[test]
fn the_packed_size_counts_the_policy_and_the_tags_also_those_that_are_passed_on() {
    let endpoint = Endpoint::new();
    let size = |key: &Key, role: &str, more: &Value| {
        let answer = assume_role(&endpoint, key, role, more).unwrap();
        answer.contains("PackedPolicySize").then(|| element(&answer, "PackedPolicySize"))
    };
    assert_eq!(size(&endpoint.anna, "team", &json!({})), None);
    // 7 and 198 characters are 205 of 2,048.
    let long = "v".repeat(198);
    let mut given = tags(&[("project", long.as_str())], &["project"]);
    assert_eq!(size(&endpoint.anna, "team", &given).as_deref(), Some("11"));
    let first = endpoint.assume(&endpoint.anna, "team", &given);
    assert_eq!(size(&first, "next", &json!({})).as_deref(), Some("11"));
    let session_policy = policy("Allow", &["ec2:*"]);
    let expected = ((session_policy.len() + 205) * 100).div_ceil(2_048);
    given["Policy"] = session_policy.into();
    assert_eq!(size(&endpoint.anna, "team", &given), Some(expected.to_string()));
    let many: Vec<(String, String)> = (0..50).map(|number| (format!("k{number}"), String::new())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert!(size(&endpoint.anna, "team", &tags(&many, &[])).is_some(), "fifty tags");
    let more = [&many[..], &[("one", "more")][..]].concat();
    let refused = assume_role(&endpoint, &endpoint.anna, "team", &tags(&more, &[])).unwrap_err();
    assert!(
        refused.ends_with(
            "at 'tags' failed to satisfy constraint: Member must have length less than or equal to 50"
        ),
        "{refused}"
    );
}
