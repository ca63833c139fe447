//! Rights by the whole table of actions: for each of them, users who may do everything but the action on one of its
//! resources, by policies that are generated. Each is refused, whether the resource exists or not, and nothing changes.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_cloud::iam::Policy;
use ebbtide_cloud::rbin::Rbin;
use ebbtide_cloud::{ApiError, Service};
use serde_json::{Value, json};

use crate::direct::{filled, of_put};
use crate::key_policies::User;
use crate::support::{ACCOUNT, REGION, Rig, answer, fill, fill_all, text};

/// An action: its parameters and the rights that it needs, as `[ACTION ]RESOURCE`, with the call's own action where none is
/// named. Words in braces are those of the world.
struct Case {
    service: &'static str,
    action: &'static str,
    input: Value,
    rights: &'static [&'static str],
}

fn case(action: &'static str, input: Value, rights: &'static [&'static str]) -> Case {
    Case { service: "ec2", action, input, rights }
}

/// AWS's table of EC2's actions with resources (Service Authorization Reference): those with several. All actions that are
/// in no table have none.
fn with_several() -> Vec<Case> {
    let tags = |kinds: &[&str]| -> Value {
        kinds.iter().map(|kind| json!({"ResourceType": kind, "Tags": [{"Key": "a", "Value": "b"}]})).collect()
    };
    let (of_volume, of_snapshot) = (tags(&["volume"]), tags(&["snapshot"]));
    let resources = json!(["{volume}", "{snapshot}", "{instance}"]);
    let mapping = json!([{"DeviceName": "/dev/sdf", "Ebs": {"SnapshotId": "{snapshot}"}}]);
    let three: &[_] = &["volume/{volume}", "snapshot/{snapshot}", "instance/{instance}"];
    vec![
        // Before others attach more volumes.
        case(
            "CreateSnapshots",
            json!({"InstanceSpecification": {"InstanceId": "{instance}"}, "TagSpecifications": of_snapshot}),
            &["instance/{instance}", "volume/{attached}", "snapshot/*", "ec2:CreateTags snapshot/*"],
        ),
        case(
            "AttachVolume",
            json!({"VolumeId": "{volume}", "InstanceId": "{instance}", "Device": "/dev/sdg"}),
            &["volume/{volume}", "instance/{instance}"],
        ),
        case(
            "CopySnapshot",
            json!({"SourceRegion": REGION, "SourceSnapshotId": "{snapshot}", "TagSpecifications": of_snapshot}),
            &["snapshot/*", "snapshot/{snapshot}", "ec2:CreateTags snapshot/*"],
        ),
        case(
            "CopyVolumes",
            json!({"SourceVolumeId": "{volume}", "TagSpecifications": of_volume}),
            &["volume/{volume}", "volume/*", "ec2:CreateTags volume/*"],
        ),
        case(
            "CreateSnapshot",
            json!({"VolumeId": "{volume}", "TagSpecifications": of_snapshot}),
            &["volume/{volume}", "snapshot/*", "ec2:CreateTags snapshot/*"],
        ),
        case("CreateTags", json!({"Resources": resources, "Tags": [{"Key": "a", "Value": "b"}]}), three),
        case(
            "CreateVolume",
            json!({"AvailabilityZone": "us-east-1a", "SnapshotId": "{snapshot}", "TagSpecifications": of_volume}),
            &["volume/*", "snapshot/{snapshot}", "ec2:CreateTags volume/*"],
        ),
        case("DeleteTags", json!({"Resources": resources, "Tags": [{"Key": "a"}]}), three),
        case(
            "DetachVolume",
            json!({"VolumeId": "{attached}", "InstanceId": "{instance}"}),
            &["volume/{attached}", "instance/{instance}"],
        ),
        case(
            "RunInstances",
            json!({"MinCount": 1, "MaxCount": 1, "BlockDeviceMappings": mapping,
                "TagSpecifications": tags(&["instance", "volume"])}),
            &[
                "instance/*",
                "volume/*",
                "snapshot/{snapshot}",
                "ec2:CreateTags instance/*",
                "ec2:CreateTags volume/*",
            ],
        ),
    ]
}

/// Those of one snapshot.
fn of_snapshot() -> Vec<Case> {
    let snapshot = |more: Value| {
        let mut input = json!({"SnapshotId": "{snapshot}"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let restores = json!({"SourceSnapshotIds": ["{snapshot}"], "AvailabilityZones": ["us-east-1a"]});
    let one_snapshot: &[_] = &["snapshot/{snapshot}"];
    vec![
        case("DeleteSnapshot", snapshot(json!({})), one_snapshot),
        case(
            "DescribeSnapshotAttribute",
            snapshot(json!({"Attribute": "createVolumePermission"})),
            one_snapshot,
        ),
        case("DisableFastSnapshotRestores", restores.clone(), one_snapshot),
        case("EnableFastSnapshotRestores", restores, one_snapshot),
        case("LockSnapshot", snapshot(json!({"LockMode": "governance", "LockDuration": 1})), one_snapshot),
        case(
            "ModifySnapshotAttribute",
            snapshot(json!({"CreateVolumePermission": {"Add": [{"UserId": "210987654321"}]}})),
            one_snapshot,
        ),
        case("ModifySnapshotTier", snapshot(json!({"StorageTier": "archive"})), one_snapshot),
        case(
            "ResetSnapshotAttribute",
            snapshot(json!({"Attribute": "createVolumePermission"})),
            one_snapshot,
        ),
        case(
            "RestoreSnapshotFromRecycleBin",
            json!({"SnapshotId": "{binned snapshot}"}),
            &["snapshot/{binned snapshot}"],
        ),
        case("RestoreSnapshotTier", snapshot(json!({"PermanentRestore": true})), one_snapshot),
        case("UnlockSnapshot", snapshot(json!({})), one_snapshot),
    ]
}

/// Those of one volume or one instance.
fn of_volume_or_instance() -> Vec<Case> {
    let instances = || json!({"InstanceIds": ["{instance}"]});
    let (one_volume, one_instance): (&[_], &[_]) = (&["volume/{volume}"], &["instance/{instance}"]);
    vec![
        case("DeleteVolume", json!({"VolumeId": "{volume}"}), one_volume),
        case(
            "DescribeInstanceAttribute",
            json!({"InstanceId": "{instance}", "Attribute": "userData"}),
            one_instance,
        ),
        case(
            "DescribeVolumeAttribute",
            json!({"VolumeId": "{volume}", "Attribute": "autoEnableIO"}),
            one_volume,
        ),
        case("EnableVolumeIO", json!({"VolumeId": "{volume}"}), one_volume),
        case(
            "ModifyInstanceAttribute",
            json!({"InstanceId": "{instance}", "InstanceType": {"Value": "m5.large"}}),
            one_instance,
        ),
        case("ModifyVolume", json!({"VolumeId": "{volume}", "Size": 2}), one_volume),
        case(
            "ModifyVolumeAttribute",
            json!({"VolumeId": "{volume}", "AutoEnableIO": {"Value": true}}),
            one_volume,
        ),
        case("RebootInstances", instances(), one_instance),
        case("RestoreVolumeFromRecycleBin", json!({"VolumeId": "{binned}"}), &["volume/{binned}"]),
        case("StartInstances", instances(), one_instance),
        case("StopInstances", instances(), one_instance),
        case("TerminateInstances", instances(), one_instance),
    ]
}

/// The EBS direct APIs. Those that touch data need the key of an encrypted snapshot, too.
fn of_ebs() -> Vec<Case> {
    let case = |action, input, rights| Case { service: "ebs", ..case(action, input, rights) };
    vec![
        case(
            "CompleteSnapshot",
            json!({"SnapshotId": "{pending}", "ChangedBlocksCount": 9}),
            &["snapshot/{pending}"],
        ),
        case(
            "GetSnapshotBlock",
            json!({"SnapshotId": "{secret}", "BlockIndex": 0, "BlockToken": "x"}),
            &["snapshot/{secret}", "kms:Decrypt key/{key}"],
        ),
        case(
            "ListChangedBlocks",
            json!({"FirstSnapshotId": "{snapshot}", "SecondSnapshotId": "{secret}"}),
            &["snapshot/{snapshot}", "snapshot/{secret}"],
        ),
        case("ListSnapshotBlocks", json!({"SnapshotId": "{secret}"}), &["snapshot/{secret}"]),
        case(
            "PutSnapshotBlock",
            of_put("{pending}", 0, &filled(1)),
            &["snapshot/{pending}", "kms:Decrypt key/{key}"],
        ),
        case(
            "StartSnapshot",
            json!({"VolumeSize": 1, "ParentSnapshotId": "{secret}", "Tags": [{"Key": "a", "Value": "b"}]}),
            &[
                "snapshot/*",
                "ec2:CreateTags snapshot/*",
                "snapshot/{secret}",
                "kms:Decrypt key/{key}",
                "kms:DescribeKey key/{key}",
                "kms:GenerateDataKeyWithoutPlaintext key/{key}",
                "kms:CreateGrant key/{key}",
            ],
        ),
        case(
            "StartSnapshot",
            json!({"VolumeSize": 1, "KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/{key}"}),
            &[
                "snapshot/*",
                "kms:DescribeKey key/{key}",
                "kms:GenerateDataKeyWithoutPlaintext key/{key}",
                "kms:CreateGrant key/{key}",
            ],
        ),
    ]
}

fn of_kms() -> Vec<Case> {
    let case = |action, input, rights| Case { service: "kms", ..case(action, input, rights) };
    let key = |more: Value| {
        let mut input = json!({"KeyId": "{key}"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let policy = json!({"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "kms:*", "Resource": "*",
        "Principal": {"AWS": format!("arn:aws:iam::{ACCOUNT}:root")}}});
    let on_key: &[_] = &["key/{key}"];
    let user = format!("arn:aws:iam::{ACCOUNT}:user/bob");
    vec![
        case("CancelKeyDeletion", key(json!({})), on_key),
        case(
            "CreateAlias",
            json!({"AliasName": "alias/new", "TargetKeyId": "{key}"}),
            &["alias/new", "key/{key}"],
        ),
        case("CreateGrant", key(json!({"GranteePrincipal": user, "Operations": ["Decrypt"]})), on_key),
        case("Decrypt", json!({"CiphertextBlob": "{blob}"}), on_key),
        case("DeleteAlias", json!({"AliasName": "alias/gone"}), &["alias/gone", "key/{key}"]),
        case("DescribeKey", key(json!({})), on_key),
        case("DisableKey", key(json!({})), on_key),
        case("DisableKeyRotation", key(json!({})), on_key),
        case("EnableKey", key(json!({})), on_key),
        case("EnableKeyRotation", key(json!({})), on_key),
        case("Encrypt", key(json!({"Plaintext": "YQ=="})), on_key),
        case("GenerateDataKey", key(json!({"KeySpec": "AES_256"})), on_key),
        case("GenerateDataKeyWithoutPlaintext", key(json!({"KeySpec": "AES_256"})), on_key),
        case("GetKeyPolicy", key(json!({})), on_key),
        case("GetKeyRotationStatus", key(json!({})), on_key),
        case("ListGrants", key(json!({})), on_key),
        case("ListKeyPolicies", key(json!({})), on_key),
        case("ListKeyRotations", key(json!({})), on_key),
        case("ListResourceTags", key(json!({})), on_key),
        case("ListRetirableGrants", json!({"RetiringPrincipal": user}), &["*"]),
        case("PutKeyPolicy", key(json!({"Policy": policy.to_string()})), on_key),
        case(
            "ReEncrypt",
            json!({"CiphertextBlob": "{blob}", "DestinationKeyId": "{other}"}),
            &["kms:ReEncryptFrom key/{key}", "kms:ReEncryptTo key/{other}"],
        ),
        case("RetireGrant", key(json!({"GrantId": "{grant}"})), on_key),
        case("RevokeGrant", key(json!({"GrantId": "{grant}"})), on_key),
        case("RotateKeyOnDemand", key(json!({})), on_key),
        case("ScheduleKeyDeletion", key(json!({})), on_key),
        case("TagResource", key(json!({"Tags": [{"TagKey": "a", "TagValue": "b"}]})), on_key),
        case("UntagResource", key(json!({"TagKeys": ["a"]})), on_key),
        case(
            "UpdateAlias",
            json!({"AliasName": "alias/mine", "TargetKeyId": "{other}"}),
            &["alias/mine", "key/{key}", "key/{other}"],
        ),
        case("UpdateKeyDescription", key(json!({"Description": "x"})), on_key),
    ]
}

fn of_rbin() -> Vec<Case> {
    let case = |action, input, rights| Case { service: "rbin", ..case(action, input, rights) };
    let rule = || json!({"Identifier": "{rule}"});
    let arn = format!("arn:aws:rbin:{REGION}:{ACCOUNT}:rule/{{rule}}");
    let days = json!({"RetentionPeriodValue": 1, "RetentionPeriodUnit": "DAYS"});
    let delay = json!({"UnlockDelay": {"UnlockDelayValue": 7, "UnlockDelayUnit": "DAYS"}});
    let on_rule: &[_] = &["rule/{rule}"];
    vec![
        case(
            "CreateRule",
            json!({"ResourceType": "EBS_VOLUME", "RetentionPeriod": days, "ResourceTags": [{"ResourceTagKey": "k"}]}),
            &["rule/*"],
        ),
        case("GetRule", rule(), on_rule),
        case("ListRules", json!({"ResourceType": "EBS_VOLUME"}), &["rule/*"]),
        case("ListTagsForResource", json!({"ResourceArn": arn}), on_rule),
        case("LockRule", json!({"Identifier": "{rule}", "LockConfiguration": delay}), on_rule),
        case("TagResource", json!({"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]}), on_rule),
        case("UnlockRule", rule(), on_rule),
        case("UntagResource", json!({"ResourceArn": arn, "TagKeys": ["a"]}), on_rule),
        case("UpdateRule", json!({"Identifier": "{rule}", "Description": "x"}), on_rule),
        case("DeleteRule", rule(), on_rule),
    ]
}

/// A resource of each kind, by the words of the table, and names of the same form that nothing has.
struct World {
    rig: Rig,
    rbin: Rbin,
    words: BTreeMap<&'static str, String>,
    missing: BTreeMap<&'static str, &'static str>,
}

impl World {
    fn new() -> Self {
        let rig = Rig::new();
        let (volume, attached, instance) = (rig.volume(), rig.volume(), rig.instance());
        rig.attach(&attached, &instance, "/dev/sdf");
        let snapshot = rig.snapshot(&volume);
        let binned = rig.volume();
        let binned_snapshot = rig.snapshot(&binned);
        rig.bin(&binned, &binned_snapshot);
        let id = |arn: String| arn.rsplit('/').next().unwrap().to_owned();
        let (key, other) = (id(rig.key()), id(rig.key()));
        for alias in ["alias/mine", "alias/gone"] {
            rig.kms("CreateAlias", json!({"AliasName": alias, "TargetKeyId": key}));
        }
        let blob = text(&rig.kms("Encrypt", json!({"KeyId": key, "Plaintext": "YQ=="}))["CiphertextBlob"]);
        let grantee = format!("arn:aws:iam::{ACCOUNT}:user/bob");
        let grant = json!({"KeyId": key, "GranteePrincipal": grantee, "Operations": ["Decrypt"]});
        let grant = text(&rig.kms("CreateGrant", grant)["GrantId"]);
        let arn = format!("arn:aws:kms:{REGION}:{ACCOUNT}:key/{key}");
        let hidden = rig.volume_of(json!({"Size": 1, "Encrypted": true, "KmsKeyId": arn}));
        let secret = rig.snapshot(&hidden);
        let pending = rig.direct("StartSnapshot", json!({"VolumeSize": 1, "KmsKeyArn": arn}));
        let pending = text(&pending["SnapshotId"]);
        let rbin = Rbin::new(rig.ec2.clone());
        let rule = json!({"ResourceType": "EBS_VOLUME", "ResourceTags": [{"ResourceTagKey": "kept"}],
            "RetentionPeriod": {"RetentionPeriodValue": 1, "RetentionPeriodUnit": "DAYS"}});
        let rule =
            answer(&rbin, &rig.rights, rig.now(), (ACCOUNT, REGION), "CreateRule", (&rule, &[])).unwrap();
        let words = [
            ("volume", volume),
            ("attached", attached),
            ("instance", instance),
            ("snapshot", snapshot),
            ("binned", binned),
            ("binned snapshot", binned_snapshot),
            ("secret", secret),
            ("pending", pending),
            ("key", key),
            ("other", other),
            ("blob", blob),
            ("grant", grant),
            ("rule", text(&rule.output["Identifier"])),
        ];
        let (volume, snapshot) = ("vol-0123456789abcdef0", "snap-0123456789abcdef0");
        let key = "01234567-89ab-4cde-8f01-23456789abcd";
        let missing = [
            ("volume", volume),
            ("attached", volume),
            ("binned", volume),
            ("instance", "i-0123456789abcdef0"),
            ("snapshot", snapshot),
            ("binned snapshot", snapshot),
            ("secret", snapshot),
            ("pending", snapshot),
            ("key", key),
            ("other", key),
            ("rule", "0123456789a"),
        ];
        Self { rig, rbin, words: words.into(), missing: missing.into() }
    }

    fn service(&self, name: &str) -> &dyn Service {
        match name {
            "ec2" => &*self.rig.ec2,
            "ebs" => &*self.rig.ebs,
            "kms" => &*self.rig.kms,
            _ => &self.rbin,
        }
    }

    /// The action and the ARN of a right.
    fn right(&self, case: &Case, right: &str, words: &BTreeMap<&str, String>) -> (String, String) {
        let own = format!("{}:{}", case.service, case.action);
        let (action, resource) = match right.split_once(' ') {
            Some((action, resource)) if action.contains(':') => (action.to_owned(), resource),
            _ => (own, right),
        };
        let resource = fill(words, resource);
        let arn = match resource.split('/').next().unwrap() {
            "*" => "*".to_owned(),
            "snapshot" => format!("arn:aws:ec2:{REGION}::{resource}"),
            "key" | "alias" => format!("arn:aws:kms:{REGION}:{ACCOUNT}:{resource}"),
            "rule" => format!("arn:aws:rbin:{REGION}:{ACCOUNT}:{resource}"),
            _ => format!("arn:aws:ec2:{REGION}:{ACCOUNT}:{resource}"),
        };
        (action, arn)
    }

    fn payload(case: &Case) -> Vec<u8> {
        if case.action == "PutSnapshotBlock" { filled(1) } else { Vec::new() }
    }

    /// What a user is answered who may do everything but an action on a resource.
    fn attempt(
        &self,
        case: &Case,
        (action, arn): (&str, &str),
        words: &BTreeMap<&str, String>,
    ) -> Result<Value, ApiError> {
        let statement = |effect: &str, action: &str, resource: &str| json!({"Effect": effect, "Action": action, "Resource": resource});
        let policy = json!({"Version": "2012-10-17", "Statement": [statement("Allow", "*", "*"), statement("Deny", action, arn)]});
        let policy = Policy::parse(&policy.to_string()).unwrap();
        let user = User::of(ACCOUNT, "anna", Some(policy));
        let input = fill_all(words, &case.input);
        user.call_with(&self.rig, self.service(case.service), case.action, (&input, &Self::payload(case)))
    }

    /// The words by which a user is refused who may do everything but one right; else what the call was answered.
    fn refusal(&self, case: &Case, right: &str, words: &BTreeMap<&str, String>) -> Result<String, String> {
        let (action, arn) = self.right(case, right, words);
        match self.attempt(case, (&action, &arn), words) {
            // The end is encoded, and other each time.
            Err(error) if is_denied(&error) => {
                Ok(error.message.split("Encoded").next().unwrap_or_default().to_owned())
            }
            Err(error) => Err(error.to_string()),
            Ok(_) => Err("carried out".to_owned()),
        }
    }

    /// What describing calls show, and the keys.
    fn shown(&self) -> Vec<Value> {
        let rig = &self.rig;
        let of_ec2 = ["DescribeVolumes", "DescribeSnapshots", "DescribeInstances", "DescribeTags"];
        let mut shown: Vec<Value> = of_ec2.iter().map(|action| rig.call(action, json!({}))).collect();
        let of_kms = ["ListKeys", "ListAliases"];
        shown.extend(of_kms.iter().map(|action| rig.kms(action, json!({}))));
        let key = &self.words["key"];
        for action in ["DescribeKey", "ListGrants", "GetKeyRotationStatus", "ListResourceTags"] {
            shown.push(rig.kms(action, json!({"KeyId": key})));
        }
        shown
    }

    /// The rights that a call asks for, of a caller who may do everything.
    fn asked(&self, case: &Case, dry: bool) -> (BTreeSet<(String, String)>, Result<(), ApiError>) {
        let mut input = fill_all(&self.words, &case.input);
        if dry {
            input["DryRun"] = json!(true);
        }
        self.rig.rights.asked.lock().unwrap().clear();
        let (service, payload) = (self.service(case.service), Self::payload(case));
        let caller = (ACCOUNT, REGION);
        let answered =
            answer(service, &self.rig.rights, self.rig.now(), caller, case.action, (&input, &payload));
        let asked = std::mem::take(&mut *self.rig.rights.asked.lock().unwrap());
        let pairs = asked.into_iter().map(|access| (access.action.into_owned(), access.resource)).collect();
        (pairs, answered.map(drop))
    }
}

fn is_denied(error: &ApiError) -> bool {
    matches!(&*error.code, "UnauthorizedOperation" | "AccessDeniedException")
        && matches!(error.status, 400 | 403)
}

/// All actions of the four services. Those that are in no table have no resource.
fn cases(world: &World) -> Vec<Case> {
    let of_ec2 = with_several().into_iter().chain(of_snapshot()).chain(of_volume_or_instance());
    let mut cases: Vec<Case> = of_ec2.chain(of_ebs()).chain(of_kms()).chain(of_rbin()).collect();
    for service in ["ec2", "ebs", "kms", "rbin"] {
        for action in world.service(service).actions() {
            if cases.iter().any(|case| (case.service, case.action) == (service, action)) {
                continue;
            }
            let input = match *action {
                // AWS has Windows in its model, and answers windows.
                "DescribeImages" => json!({"Owners": ["self"]}),
                "EnableSnapshotBlockPublicAccess" => json!({"State": "block-all-sharing"}),
                "DescribeVpcAttribute" => {
                    json!({"VpcId": "vpc-00000000000000001", "Attribute": "enableDnsSupport"})
                }
                _ => json!({}),
            };
            cases.push(Case { service, action, input, rights: &["*"] });
        }
    }
    cases
}

#[test]
fn who_may_do_all_but_an_action_on_one_resource_is_refused_for_each_action_and_resource() {
    let world = World::new();
    let before = world.shown();
    let (mut refusals, mut wrong) = (0, Vec::new());
    for case in &cases(&world) {
        for right in case.rights {
            let place = format!("{} {} without {right}", case.service, case.action);
            let refused = world.refusal(case, right, &world.words);
            refusals += 1;
            // A resource that does not exist is refused alike.
            let word = right.split_once('{').map(|(_, word)| word.trim_end_matches('}'));
            let named = word.filter(|word| case.input.to_string().contains(&format!("{{{word}}}")));
            let missing = named.map(|word| {
                let mut words = world.words.clone();
                world.missing[word].clone_into(words.get_mut(word).unwrap());
                let expected = |message: String| message.replace(&world.words[word], world.missing[word]);
                (world.refusal(case, right, &words), refused.clone().map(expected))
            });
            if let Err(why) = &refused {
                wrong.push(format!("{place}: {why}"));
            }
            if let Some((found, expected)) = missing.filter(|(found, expected)| found != expected) {
                wrong.push(format!("{place}, which does not exist: {found:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {refusals}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refusals > 150, "{refusals} refusals");
    assert_eq!(world.shown(), before, "nothing changes");
}

#[test]
fn each_action_asks_for_the_rights_of_its_table_and_a_dry_run_for_the_same() {
    let world = World::new();
    let mut compared = 0;
    for case in &cases(&world) {
        let place = format!("{} {}", case.service, case.action);
        let expected: BTreeSet<_> =
            case.rights.iter().map(|right| world.right(case, right, &world.words)).collect();
        if case.service == "ec2" {
            let (asked, answered) = world.asked(case, true);
            assert_eq!(answered.unwrap_err().code, "DryRunOperation", "{place}");
            assert_eq!(asked, expected, "a dry run of {place}");
        }
    }
    // What an earlier call has taken away is not there for a later one.
    for case in &cases(&world) {
        let expected: BTreeSet<_> =
            case.rights.iter().map(|right| world.right(case, right, &world.words)).collect();
        let (asked, answered) = world.asked(case, false);
        if answered.is_ok() {
            compared += 1;
            assert_eq!(asked, expected, "{} {}", case.service, case.action);
        }
    }
    assert!(compared > 90, "{compared} calls were carried out");
}
