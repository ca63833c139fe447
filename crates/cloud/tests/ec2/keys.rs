//! KMS: keys, aliases, grants, what they encrypt, and every row of `data/kms-errors.toml`.

use std::collections::BTreeMap;

use ebbtide_cloud::Service as _;
use ebbtide_cloud::kms::Kms;
use serde_json::{Value, json};

use crate::rows::Mismatches;
use crate::support::{self, ACCOUNT, ErrorRow, ErrorTable, OTHER, REGION, Rig, column, fill, fill_all, text};

/// Keys in each state, by the names of the table.
fn world() -> (Rig, BTreeMap<&'static str, String>) {
    let rig = Rig::new();
    let mut ids: BTreeMap<_, _> =
        ["key", "other", "disabled", "pending"].map(|name| (name, rig.key())).into();
    rig.kms("CreateAlias", json!({"AliasName": "alias/used", "TargetKeyId": ids["key"]}));
    let encrypt = |key: &str| {
        let input = json!({"KeyId": key, "Plaintext": "c2VjcmV0", "EncryptionContext": {"a": "b"}});
        text(&rig.kms("Encrypt", input)["CiphertextBlob"])
    };
    ids.insert("blob", encrypt(&ids["key"]));
    ids.insert("blob-of-disabled", encrypt(&ids["disabled"]));
    rig.kms("DisableKey", json!({"KeyId": ids["disabled"]}));
    rig.kms("ScheduleKeyDeletion", json!({"KeyId": ids["pending"]}));
    let managed = rig.kms("DescribeKey", json!({"KeyId": "alias/aws/ebs"}));
    ids.insert("managed", text(&managed["KeyMetadata"]["Arn"]));
    (rig, ids)
}

/// Everything that is described.
fn all(rig: &Rig) -> [Value; 3] {
    let keys = rig.kms("ListKeys", json!({}));
    let ids = column(&keys["Keys"], "KeyId");
    let described = ids.iter().map(|id| rig.kms("DescribeKey", json!({"KeyId": id})));
    [described.collect(), rig.kms("ListAliases", json!({})), keys]
}

#[test]
fn every_row_of_the_errors_of_kms_is_answered_as_it_says_and_changes_nothing() {
    let table: ErrorTable = toml::from_str(include_str!("../../data/kms-errors.toml")).unwrap();
    let (rig, ids) = world();
    let mut missing: Vec<&str> = rig.kms.actions().to_vec();
    let before = all(&rig);
    let actions: Vec<String> = missing.iter().map(|action| format!("kms:{action}")).collect();
    let mut wrong = Mismatches::default();
    for ErrorRow { operation, state, parameters, code, message, status } in table.row {
        missing.retain(|action| *action != operation);
        let is_denied = state == "denied";
        *rig.rights.denied.lock().unwrap() = if is_denied { actions.clone() } else { Vec::new() };
        let input = fill_all(&ids, &parameters);
        let expected = if is_denied {
            let message = "You are not authorized to perform this operation.";
            ("UnauthorizedOperation".to_owned(), message.to_owned(), 403)
        } else {
            (code, fill(&ids, &message), status)
        };
        let found = rig.attempt_kms(&operation, &input);
        let found = found.map_err(|error| (error.code.into_owned(), error.message, error.status));
        wrong.check(&format!("{state}: {operation} {input}"), found, &expected);
    }
    wrong.end();
    assert_eq!(missing, [""; 0], "operations without a row");
    rig.rights.denied.lock().unwrap().clear();
    assert_eq!(all(&rig), before);
}

#[test]
fn what_a_key_encrypts_decrypts_again_also_after_a_restart_and_moves_to_another_key() {
    let (rig, ids) = world();
    let context = json!({"a": "b"});
    let decrypt = |rig: &Rig, blob: &str| {
        let decrypted = rig.kms("Decrypt", json!({"CiphertextBlob": blob, "EncryptionContext": context}));
        (text(&decrypted["Plaintext"]), text(&decrypted["KeyId"]))
    };
    assert_eq!(decrypt(&rig, &ids["blob"]), ("c2VjcmV0".to_owned(), ids["key"].clone()));
    let moved = rig.kms(
        "ReEncrypt",
        json!({
            "CiphertextBlob": ids["blob"], "SourceEncryptionContext": context,
            "DestinationKeyId": ids["other"], "DestinationEncryptionContext": context,
        }),
    );
    assert_eq!(
        (text(&moved["SourceKeyId"]), text(&moved["KeyId"])),
        (ids["key"].clone(), ids["other"].clone())
    );
    let data = rig.kms(
        "GenerateDataKey",
        json!({"KeyId": "alias/used", "NumberOfBytes": 64, "EncryptionContext": context}),
    );
    let bare = json!({"KeyId": "alias/used", "KeySpec": "AES_256", "EncryptionContext": context});
    let bare = rig.kms("GenerateDataKeyWithoutPlaintext", bare);
    assert_eq!(bare.get("Plaintext"), None);
    let rig = rig.reopened();
    assert_eq!(decrypt(&rig, &text(&moved["CiphertextBlob"])), ("c2VjcmV0".to_owned(), ids["other"].clone()));
    assert_eq!(decrypt(&rig, &text(&data["CiphertextBlob"])).0, text(&data["Plaintext"]));
    assert_eq!(decrypt(&rig, &text(&bare["CiphertextBlob"])).0.len(), 44);
}

#[test]
fn a_key_is_enabled_disabled_and_deleted_with_its_aliases_and_grants_at_its_time() {
    let (rig, ids) = world();
    let state = |key: &str| text(&rig.kms("DescribeKey", json!({"KeyId": key}))["KeyMetadata"]["KeyState"]);
    assert_eq!(
        [state(&ids["key"]), state(&ids["disabled"]), state(&ids["pending"])],
        ["Enabled", "Disabled", "PendingDeletion"]
    );
    rig.kms("EnableKey", json!({"KeyId": ids["disabled"]}));
    rig.kms("CancelKeyDeletion", json!({"KeyId": ids["pending"]}));
    assert_eq!([state(&ids["disabled"]), state(&ids["pending"])], ["Enabled", "Disabled"]);
    let grant = json!({"KeyId": ids["key"], "GranteePrincipal": "arn:aws:iam::1:role/r", "Operations": ["Decrypt"], "Name": "n"});
    let first = rig.kms("CreateGrant", grant.clone());
    assert_eq!(rig.kms("CreateGrant", grant), first, "a repeated call makes no second one");
    let listed = rig.kms("ListGrants", json!({"KeyId": ids["key"]}));
    assert_eq!(listed["Grants"][0]["Operations"], json!(["Decrypt"]));
    let deleted = rig.kms("ScheduleKeyDeletion", json!({"KeyId": "alias/used", "PendingWindowInDays": 7}));
    assert_eq!((&deleted["KeyState"], &deleted["KeyId"]), (&json!("PendingDeletion"), &json!(ids["key"])));
    rig.pass(7 * 86_400_000 - 1);
    assert_eq!(state(&ids["key"]), "PendingDeletion");
    rig.pass(1);
    let rig = rig.reopened();
    let gone = rig.attempt_kms("DescribeKey", &json!({"KeyId": ids["key"]})).unwrap_err();
    assert_eq!(gone.code, "NotFoundException");
    let names = column(&rig.kms("ListAliases", json!({}))["Aliases"], "AliasName");
    assert_eq!(names, ["alias/aws/ebs"]);
    let retired = rig.attempt_kms("RetireGrant", &json!({"GrantToken": first["GrantToken"]})).unwrap_err();
    assert_eq!(retired.code, "InvalidGrantTokenException");
}

#[test]
fn tags_policies_descriptions_and_pages_are_kept() {
    let (rig, ids) = world();
    let key = &ids["key"];
    rig.kms(
        "TagResource",
        json!({"KeyId": key, "Tags": [{"TagKey": "a", "TagValue": "1"}, {"TagKey": "b", "TagValue": "2"}]}),
    );
    rig.kms("UntagResource", json!({"KeyId": key, "TagKeys": ["a"]}));
    rig.kms("UpdateKeyDescription", json!({"KeyId": key, "Description": "of tests"}));
    rig.kms("UpdateAlias", json!({"AliasName": "alias/used", "TargetKeyId": ids["other"]}));
    let rig = rig.reopened();
    assert_eq!(
        rig.kms("ListResourceTags", json!({"KeyId": key}))["Tags"],
        json!([{"TagKey": "b", "TagValue": "2"}])
    );
    let described = |name: &str| rig.kms("DescribeKey", json!({"KeyId": name}))["KeyMetadata"].clone();
    assert_eq!(described(key)["Description"], "of tests");
    assert_eq!(text(&described("alias/used")["Arn"]), ids["other"]);
    assert_eq!(rig.kms("GetKeyRotationStatus", json!({"KeyId": key}))["KeyRotationEnabled"], false);
    assert_eq!(rig.kms("ListKeyPolicies", json!({"KeyId": key}))["PolicyNames"], json!(["default"]));
    // By pages of one, in order, each once.
    let (mut seen, mut marker) = (Vec::new(), Value::Null);
    loop {
        let mut input = json!({"Limit": 1});
        if marker.is_string() {
            input["Marker"] = marker;
        }
        let page = rig.kms("ListKeys", input);
        seen.extend(column(&page["Keys"], "KeyArn"));
        if page["Truncated"] == false {
            break;
        }
        marker = page["NextMarker"].clone();
    }
    let mut expected: Vec<String> =
        ["key", "other", "disabled", "pending", "managed"].map(|name| ids[name].clone()).into();
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn another_account_uses_a_key_only_where_its_policy_names_it() {
    let (rig, ids) = world();
    let encrypt = |rig: &Rig| {
        let input = json!({"KeyId": ids["key"], "Plaintext": "YQ=="});
        support::answer(&*rig.kms, &rig.rights, rig.now(), (OTHER, REGION), "Encrypt", (&input, &[]))
    };
    assert_eq!(encrypt(&rig).unwrap_err().code, "AccessDeniedException");
    let by_id = json!({"KeyId": ids["key"].rsplit('/').next().unwrap()});
    let unseen =
        support::answer(&*rig.kms, &rig.rights, rig.now(), (OTHER, REGION), "DescribeKey", (&by_id, &[]));
    assert_eq!(unseen.unwrap_err().code, "NotFoundException");
    let policy = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": [format!("arn:aws:iam::{ACCOUNT}:root"), format!("arn:aws:iam::{OTHER}:root")]},
         "Action": "kms:*", "Resource": "*"}]});
    rig.kms("PutKeyPolicy", json!({"KeyId": ids["key"], "Policy": policy.to_string()}));
    encrypt(&rig).unwrap();
    let kept = text(&rig.kms("GetKeyPolicy", json!({"KeyId": ids["key"]}))["Policy"]);
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), policy);
}

#[test]
fn keys_without_their_master_key_are_not_opened() {
    let (rig, _) = world();
    let home = support::home(rig.dir.path());
    let dir = rig.dir.clone();
    drop(rig);
    std::fs::remove_file(home.join("aws/kms-master.key")).unwrap();
    let error = Kms::open(&home).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("kms-master.key is missing"), "{cause}");
    drop(dir);
}
