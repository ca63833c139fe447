//! Tags: given, replaced, deleted, found, and their limits.

use serde_json::{Value, json};

use crate::support::Rig;

fn tags(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect()
}

fn shown(rig: &Rig, volume: &str) -> Value {
    rig.show(volume).get("Tags").cloned().unwrap_or_else(|| json!([]))
}

#[test]
fn tags_are_given_replaced_and_deleted() {
    let rig = Rig::new();
    let id = rig.volume_of(json!({"Size": 1, "TagSpecifications": [
        {"ResourceType": "volume", "Tags": tags(&[("a", "1"), ("b", "2")])}]}));
    assert_eq!(shown(&rig, &id), tags(&[("a", "1"), ("b", "2")]));
    rig.call("CreateTags", json!({"Resources": [id], "Tags": tags(&[("b", "3"), ("c", "")])}));
    assert_eq!(shown(&rig, &id), tags(&[("a", "1"), ("b", "3"), ("c", "")]));
    // With a value, a tag goes only where it has that value; an empty one is a value.
    rig.call(
        "DeleteTags",
        json!({"Resources": [id], "Tags": [{"Key": "a", "Value": "9"}, {"Key": "b", "Value": ""}]}),
    );
    assert_eq!(shown(&rig, &id), tags(&[("a", "1"), ("b", "3"), ("c", "")]));
    rig.call(
        "DeleteTags",
        json!({"Resources": [id], "Tags": [{"Key": "a"}, {"Key": "c", "Value": ""}, {"Key": "z"}]}),
    );
    assert_eq!(shown(&rig, &id), tags(&[("b", "3")]));
    let rig = rig.reopened();
    assert_eq!(shown(&rig, &id), tags(&[("b", "3")]));
    rig.call("DeleteTags", json!({"Resources": [id]}));
    assert_eq!(shown(&rig, &id), json!([]));
}

#[test]
fn a_call_that_cannot_tag_all_tags_none() {
    let rig = Rig::new();
    let (one, other) = (rig.volume(), rig.volume());
    let many: Vec<(String, String)> =
        (0..49).map(|number| (format!("k{number:02}"), String::new())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    rig.call("CreateTags", json!({"Resources": [one], "Tags": tags(&many)}));
    let input = json!({"Resources": [other, one], "Tags": tags(&[("x", ""), ("y", "")])});
    assert_eq!(rig.code("CreateTags", input), "TagLimitExceeded");
    assert_eq!(shown(&rig, &other), json!([]));
    let input = json!({"Resources": [other, "vol-0123456789abcdef0"], "Tags": tags(&[("x", "")])});
    assert_eq!(rig.code("CreateTags", input), "InvalidVolume.NotFound");
    assert_eq!(shown(&rig, &other), json!([]));
    rig.call("CreateTags", json!({"Resources": [other, one], "Tags": tags(&[("x", "")])}));
    assert_eq!(shown(&rig, &one).as_array().unwrap().len(), 50);
}

#[test]
fn tags_of_all_kinds_are_described_in_pages() {
    let rig = Rig::new();
    let (volume, instance) = (rig.volume(), rig.instance());
    let snapshot = rig.snapshot(&volume);
    for id in [&volume, &instance, &snapshot] {
        rig.call("CreateTags", json!({"Resources": [id], "Tags": tags(&[("a", "1"), ("b", id), ("c", "")])}));
    }
    let all = rig.call("DescribeTags", json!({}))["Tags"].clone();
    assert_eq!(all.as_array().unwrap().len(), 9);
    let mut paged = Vec::new();
    let mut token = Value::Null;
    loop {
        let page = rig.call("DescribeTags", json!({"MaxResults": 5, "NextToken": token}));
        paged.extend(page["Tags"].as_array().unwrap().clone());
        token = page.get("NextToken").cloned().unwrap_or(Value::Null);
        if token.is_null() {
            break;
        }
    }
    assert_eq!(Value::from(paged), all);
    let found = |name: &str, value: &str| {
        let answer = rig.call("DescribeTags", json!({"Filters": [{"Name": name, "Values": [value]}]}));
        answer["Tags"].as_array().unwrap().len()
    };
    assert_eq!(found("key", "a"), 3);
    assert_eq!(found("value", "?"), 3);
    assert_eq!(found("resource-type", "snapshot"), 3);
    assert_eq!(found("resource-id", &volume), 3);
    assert_eq!(found("tag:b", "vol-*"), 1);
    assert_eq!(found("tag-key", "[ab]"), 0);
}
