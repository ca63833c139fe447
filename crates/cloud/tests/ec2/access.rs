//! What policies are asked: actions, resources and condition keys.

use std::collections::BTreeMap;

use ebbtide_cloud::Access;
use serde_json::{Value, json};

use crate::support::{ACCOUNT, Rig};

/// What the rights are asked for a call that succeeds.
#[track_caller]
fn asked(rig: &Rig, action: &str, input: Value) -> Vec<Access> {
    rig.rights.asked.lock().unwrap().clear();
    rig.call(action, input);
    std::mem::take(&mut *rig.rights.asked.lock().unwrap())
}

fn pairs(asked: &[Access]) -> Vec<(&str, &str)> {
    asked.iter().map(|access| (access.action.as_ref(), access.resource.as_str())).collect()
}

fn value<'a>(access: &'a Access, key: &str) -> Vec<&'a str> {
    let none = Vec::new();
    let values: &Vec<String> = access.context.get(key).unwrap_or_else(|| Box::leak(Box::new(none)));
    values.iter().map(String::as_str).collect()
}

#[test]
fn creating_a_tagged_volume_of_a_snapshot_asks_for_all_three() {
    let rig = Rig::new();
    let snapshot = rig.snapshot(&rig.volume());
    let input = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": snapshot, "Size": 10, "VolumeType": "io2", "Iops": 500,
        "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "team", "Value": "db"}, {"Key": "x", "Value": ""}]}]});
    let asked = asked(&rig, "CreateVolume", input);
    let new = format!("arn:aws:ec2:us-east-1:{ACCOUNT}:volume/*");
    let of = format!("arn:aws:ec2:us-east-1::snapshot/{snapshot}");
    assert_eq!(
        pairs(&asked),
        [
            ("ec2:CreateVolume", of.as_str()),
            ("ec2:CreateVolume", new.as_str()),
            ("ec2:CreateTags", new.as_str())
        ]
    );
    for (key, values) in [
        ("ec2:Region", vec!["us-east-1"]),
        ("ec2:AvailabilityZone", vec!["us-east-1a"]),
        ("ec2:VolumeType", vec!["io2"]),
        ("ec2:VolumeSize", vec!["10"]),
        ("ec2:VolumeIops", vec!["500"]),
        ("ec2:Encrypted", vec!["false"]),
        ("ec2:ParentSnapshot", vec![of.as_str()]),
        ("aws:RequestTag/team", vec!["db"]),
        ("aws:TagKeys", vec!["team", "x"]),
        ("ec2:CreateAction", vec![]),
    ] {
        assert_eq!(value(&asked[1], key), values, "{key}");
    }
    assert_eq!(value(&asked[0], "ec2:Owner"), [ACCOUNT]);
    assert_eq!(value(&asked[2], "ec2:CreateAction"), ["CreateVolume"]);
    assert_eq!(value(&asked[2], "aws:RequestTag/team"), ["db"]);
}

#[test]
fn what_exists_is_asked_for_with_its_tags() {
    let rig = Rig::new();
    let tags = json!([{"Key": "env", "Value": "prod"}]);
    let (volume, instance) = (rig.volume(), rig.instance());
    rig.call("CreateTags", json!({"Resources": [volume, instance], "Tags": tags}));
    let input = json!({"VolumeId": volume, "InstanceId": instance, "Device": "/dev/sdf"});
    let attach = asked(&rig, "AttachVolume", input);
    let arn = |kind: &str, id: &str| format!("arn:aws:ec2:us-east-1:{ACCOUNT}:{kind}/{id}");
    let (of_volume, of_instance) = (arn("volume", &volume), arn("instance", &instance));
    assert_eq!(
        pairs(&attach),
        [("ec2:AttachVolume", of_volume.as_str()), ("ec2:AttachVolume", of_instance.as_str())]
    );
    for access in &attach {
        assert_eq!(value(access, "aws:ResourceTag/env"), ["prod"]);
        assert_eq!(value(access, "ec2:ResourceTag/env"), ["prod"]);
    }
    let snapshot = asked(&rig, "CreateSnapshot", json!({"VolumeId": volume}));
    let new = "arn:aws:ec2:us-east-1::snapshot/*";
    assert_eq!(pairs(&snapshot), [("ec2:CreateSnapshot", of_volume.as_str()), ("ec2:CreateSnapshot", new)]);
    assert_eq!(value(&snapshot[1], "ec2:ParentVolume"), [of_volume.as_str()]);
    let delete = asked(&rig, "DeleteTags", json!({"Resources": [volume], "Tags": [{"Key": "env"}]}));
    assert_eq!(pairs(&delete), [("ec2:DeleteTags", of_volume.as_str())]);
    assert_eq!(value(&delete[0], "aws:TagKeys"), ["env"]);
    let modify = asked(&rig, "ModifyVolume", json!({"VolumeId": volume, "Size": 2}));
    assert_eq!(value(&modify[0], "ec2:Attribute"), ["Size"]);
    assert_eq!(value(&modify[0], "ec2:Attribute/Size"), ["2"]);
    assert_eq!(pairs(&asked(&rig, "DescribeVolumes", json!({}))), [("ec2:DescribeVolumes", "*")]);
}

#[test]
fn sharing_names_whom() {
    let rig = Rig::new();
    let id = rig.snapshot(&rig.volume());
    let input = json!({"SnapshotId": id, "CreateVolumePermission": {"Add": [{"Group": "all"}, {"UserId": "210987654321"}]}});
    let share = asked(&rig, "ModifySnapshotAttribute", input);
    assert_eq!(value(&share[0], "ec2:Add/group"), ["all"]);
    assert_eq!(value(&share[0], "ec2:Add/userId"), ["210987654321"]);
}

/// What each action needs to get as far as its right, in a home with resources for it.
fn inputs_of_actions(rig: &Rig) -> BTreeMap<&'static str, Value> {
    let (volume, other, instance) = (rig.volume(), rig.volume(), rig.instance());
    rig.attach(&other, &instance, "/dev/sdf");
    let snapshot = rig.snapshot(&volume);
    let binned = rig.volume();
    let binned_snapshot = rig.snapshot(&binned);
    rig.bin(&binned, &binned_snapshot);
    let restores = json!({"SourceSnapshotIds": [snapshot], "AvailabilityZones": ["us-east-1a"]});
    [
        ("AttachVolume", json!({"VolumeId": volume, "InstanceId": instance, "Device": "/dev/sdg"})),
        ("CopySnapshot", json!({"SourceRegion": "us-east-1", "SourceSnapshotId": snapshot})),
        ("CopyVolumes", json!({"SourceVolumeId": volume})),
        ("CreateSnapshot", json!({"VolumeId": volume})),
        ("CreateSnapshots", json!({"InstanceSpecification": {"InstanceId": instance}})),
        ("CreateTags", json!({"Resources": [volume], "Tags": [{"Key": "a", "Value": "b"}]})),
        ("CreateVolume", json!({"AvailabilityZone": "us-east-1a", "Size": 1})),
        ("DeleteSnapshot", json!({"SnapshotId": snapshot})),
        ("DeleteTags", json!({"Resources": [volume]})),
        ("DeleteVolume", json!({"VolumeId": volume})),
        ("DescribeInstanceAttribute", json!({"InstanceId": instance, "Attribute": "userData"})),
        ("DescribeSnapshotAttribute", json!({"SnapshotId": snapshot, "Attribute": "createVolumePermission"})),
        ("DescribeVolumeAttribute", json!({"VolumeId": volume, "Attribute": "autoEnableIO"})),
        ("DetachVolume", json!({"VolumeId": other})),
        ("EnableSnapshotBlockPublicAccess", json!({"State": "block-all-sharing"})),
        ("DisableFastSnapshotRestores", restores.clone()),
        ("EnableFastSnapshotRestores", restores),
        ("EnableVolumeIO", json!({"VolumeId": volume})),
        ("LockSnapshot", json!({"SnapshotId": snapshot, "LockMode": "governance", "LockDuration": 1})),
        ("ModifyInstanceAttribute", json!({"InstanceId": instance, "BlockDeviceMappings": []})),
        (
            "ModifySnapshotAttribute",
            json!({"SnapshotId": snapshot, "CreateVolumePermission": {"Add": [{"Group": "all"}]}}),
        ),
        ("ModifySnapshotTier", json!({"SnapshotId": snapshot, "StorageTier": "archive"})),
        ("ModifyVolume", json!({"VolumeId": volume, "Size": 2})),
        ("ModifyVolumeAttribute", json!({"VolumeId": volume, "AutoEnableIO": {"Value": true}})),
        ("RebootInstances", json!({"InstanceIds": [instance]})),
        ("ResetSnapshotAttribute", json!({"SnapshotId": snapshot, "Attribute": "createVolumePermission"})),
        ("RestoreSnapshotFromRecycleBin", json!({"SnapshotId": binned_snapshot})),
        ("RestoreSnapshotTier", json!({"SnapshotId": snapshot, "PermanentRestore": true})),
        ("RestoreVolumeFromRecycleBin", json!({"VolumeId": binned})),
        ("RunInstances", json!({"MinCount": 1, "MaxCount": 1})),
        ("StartInstances", json!({"InstanceIds": [instance]})),
        ("StopInstances", json!({"InstanceIds": [instance]})),
        ("TerminateInstances", json!({"InstanceIds": [instance]})),
        ("UnlockSnapshot", json!({"SnapshotId": snapshot})),
    ]
    .into()
}

#[test]
fn every_action_asks_and_a_denied_one_changes_nothing() {
    use ebbtide_cloud::Service as _;
    let rig = Rig::new();
    let inputs = inputs_of_actions(&rig);
    let all = || {
        [
            "DescribeVolumes",
            "DescribeSnapshots",
            "DescribeInstances",
            "DescribeTags",
            "DescribeVolumesModifications",
        ]
        .map(|action| rig.call(action, json!({})))
    };
    let before = all();
    for action in rig.ec2.actions() {
        let mut input = inputs.get(action).cloned().unwrap_or_else(|| json!({}));
        *rig.rights.denied.lock().unwrap() = vec![format!("ec2:{action}")];
        let refused = rig.refused(action, input.clone());
        assert_eq!((&*refused.code, refused.status), ("UnauthorizedOperation", 403), "{action}");
        rig.rights.denied.lock().unwrap().clear();
        // With the right, a dry run gets as far as to be told so.
        input["DryRun"] = json!(true);
        let refused = rig.refused(action, input);
        assert_eq!((&*refused.code, refused.status), ("DryRunOperation", 412), "{action}");
    }
    assert_eq!(all(), before);
}
