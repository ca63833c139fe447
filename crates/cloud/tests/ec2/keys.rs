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

const DAY_MS: u64 = 86_400_000;

/// The status of a key's rotation: the period, and the days until the next.
fn rotation(rig: &Rig, key: &str) -> Option<(u64, f64)> {
    let status = rig.kms("GetKeyRotationStatus", json!({"KeyId": key}));
    let enabled = status["KeyRotationEnabled"].as_bool().unwrap();
    assert_eq!(
        enabled,
        status.get("RotationPeriodInDays").is_some() && status.get("NextRotationDate").is_some()
    );
    enabled.then(|| {
        let next = status["NextRotationDate"].as_f64().unwrap() - rig.now() as f64 / 1e3;
        (status["RotationPeriodInDays"].as_u64().unwrap(), (next / 86_400.0 * 10.0).round() / 10.0)
    })
}

#[test]
fn rotation_is_kept_with_its_period_also_after_a_restart() {
    let (rig, ids) = world();
    let key = &ids["key"];
    assert_eq!(rotation(&rig, key), None);
    let enable = |rig: &Rig, days: Option<u64>| {
        let mut input = json!({"KeyId": key});
        if let Some(days) = days {
            input["RotationPeriodInDays"] = json!(days);
        }
        rig.kms("EnableKeyRotation", input);
    };
    enable(&rig, None);
    assert_eq!(rotation(&rig, key), Some((365, 365.0)));
    rig.pass(10 * DAY_MS);
    enable(&rig, Some(365));
    assert_eq!(rotation(&rig, key), Some((365, 355.0)), "the same setting moves nothing");
    for days in [90, 2_560] {
        enable(&rig, Some(days));
        assert_eq!(rotation(&rig, key), Some((days, days as f64)));
    }
    let rig = rig.reopened();
    assert_eq!(rotation(&rig, key), Some((2_560, 2_560.0)));
    // A disabled key keeps the setting; one that is pending deletion shows none until that is cancelled.
    rig.kms("DisableKey", json!({"KeyId": key}));
    assert_eq!(rotation(&rig, key), Some((2_560, 2_560.0)));
    rig.kms("ScheduleKeyDeletion", json!({"KeyId": key}));
    assert_eq!(rotation(&rig, key), None);
    rig.kms("CancelKeyDeletion", json!({"KeyId": key}));
    assert_eq!(rotation(&rig, key), Some((2_560, 2_560.0)));
    rig.kms("EnableKey", json!({"KeyId": key}));
    rig.kms("DisableKeyRotation", json!({"KeyId": key}));
    assert_eq!(rotation(&rig, key), None);
    assert_eq!(rotation(&rig, &ids["managed"]), Some((365, 355.0)), "AWS rotates its keys each year");
}

#[test]
fn a_rotated_key_has_new_material_and_reads_what_it_encrypted_before() {
    let (rig, ids) = world();
    let key = &ids["key"];
    let decrypts = |rig: &Rig, blob: &str| {
        let input = json!({"CiphertextBlob": blob, "EncryptionContext": {"a": "b"}});
        text(&rig.kms("Decrypt", input)["Plaintext"]) == "c2VjcmV0"
    };
    let encrypt = |rig: &Rig| {
        let input = json!({"KeyId": key, "Plaintext": "c2VjcmV0", "EncryptionContext": {"a": "b"}});
        text(&rig.kms("Encrypt", input)["CiphertextBlob"])
    };
    let rotations = |rig: &Rig, limit: u64| {
        let listed = rig.kms("ListKeyRotations", json!({"KeyId": key, "Limit": limit}));
        let rows = listed["Rotations"].as_array().unwrap().clone();
        assert!(rows.iter().all(|row| row["KeyId"] == json!(key)));
        let kinds = rows.iter().map(|row| text(&row["RotationType"])).collect::<Vec<_>>();
        (kinds, listed["Truncated"].as_bool().unwrap())
    };
    assert_eq!(rotations(&rig, 5), (Vec::new(), false));
    rig.kms("EnableKeyRotation", json!({"KeyId": key, "RotationPeriodInDays": 90}));
    rig.pass(DAY_MS);
    assert_eq!(rig.kms("RotateKeyOnDemand", json!({"KeyId": key}))["KeyId"], json!(key));
    let second = encrypt(&rig);
    assert_eq!(rotation(&rig, key), Some((90, 89.0)), "on demand changes no schedule");
    rig.pass(89 * DAY_MS);
    let third = encrypt(&rig);
    assert_eq!(rotations(&rig, 5).0, ["ON_DEMAND", "AUTOMATIC"]);
    assert_eq!(rotations(&rig, 1), (vec!["ON_DEMAND".to_owned()], true));
    assert_eq!(rotation(&rig, key), Some((90, 90.0)));
    // A disabled key is rotated once it is enabled again.
    rig.kms("DisableKey", json!({"KeyId": key}));
    rig.pass(1_000 * DAY_MS);
    assert_eq!(rotations(&rig, 5).0.len(), 2);
    rig.kms("EnableKey", json!({"KeyId": key}));
    assert_eq!(rotations(&rig, 5).0, ["ON_DEMAND", "AUTOMATIC", "AUTOMATIC"]);
    let rig = rig.reopened();
    for blob in [&ids["blob"], &second, &third, &encrypt(&rig)] {
        assert!(decrypts(&rig, blob));
    }
    for _ in 1..25 {
        rig.kms("RotateKeyOnDemand", json!({"KeyId": key}));
    }
    let error = rig.attempt_kms("RotateKeyOnDemand", &json!({"KeyId": key})).unwrap_err();
    assert_eq!(error.code, "LimitExceededException");
    assert!(decrypts(&rig, &ids["blob"]));
}

#[test]
fn the_alias_of_ebs_is_listed_in_every_region_and_account_before_its_key() {
    let rig = Rig::new();
    let key = rig.key();
    for alias in ["alias/a", "alias/z"] {
        rig.kms("CreateAlias", json!({"AliasName": alias, "TargetKeyId": key}));
    }
    let list = |caller: (&str, &str), input: &Value| {
        let listed = support::answer(&*rig.kms, &rig.rights, rig.now(), caller, "ListAliases", (input, &[]));
        Value::Object(listed.unwrap().output)
    };
    for (account, region) in [(ACCOUNT, "eu-west-3"), (OTHER, REGION)] {
        let arn = format!("arn:aws:kms:{region}:{account}:alias/aws/ebs");
        let row = json!([{"AliasName": "alias/aws/ebs", "AliasArn": arn}]);
        assert_eq!(list((account, region), &json!({}))["Aliases"], row, "without a key and dates");
    }
    let own = |input: &Value| column(&list((ACCOUNT, REGION), input)["Aliases"], "AliasName");
    let names = ["alias/a", "alias/aws/ebs", "alias/z"];
    assert_eq!(own(&json!({})), names);
    assert_eq!(own(&json!({"KeyId": key})), ["alias/a", "alias/z"]);
    // By pages of one, each once and in order.
    let (mut seen, mut input) = (Vec::new(), json!({"Limit": 1}));
    loop {
        let page = list((ACCOUNT, REGION), &input);
        seen.extend(column(&page["Aliases"], "AliasName"));
        if page["Truncated"] == false {
            break;
        }
        input["Marker"] = page["NextMarker"].clone();
    }
    assert_eq!(seen, names);
    // Its ARN makes the key, too, as Terraform's data source asks for it.
    let arn = format!("arn:aws:kms:{REGION}:{ACCOUNT}:alias/aws/ebs");
    let made = rig.kms("DescribeKey", json!({"KeyId": arn}))["KeyMetadata"]["KeyId"].clone();
    let listed = list((ACCOUNT, REGION), &json!({}));
    assert_eq!(
        (own(&json!({})), &listed["Aliases"][1]["TargetKeyId"]),
        (names.map(str::to_owned).to_vec(), &made)
    );
}
