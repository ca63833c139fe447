//! Copies of volumes: their content, their states, and what limits them.

use ebbtide_control::{ControlPlane as _, Names};
use serde_json::{Value, json};

use crate::direct::filled;
use crate::support::{ACCOUNT, OTHER, REGION, Rig, column, text};

/// A volume with one block of data.
fn written(rig: &Rig, shape: Value) -> String {
    let snapshot = rig.start(None);
    rig.put(&snapshot, 5, &filled(7));
    rig.complete(&snapshot, 1);
    rig.pass(20_000);
    let mut input = shape;
    input["SnapshotId"] = json!(snapshot);
    let volume = rig.volume_of(input);
    rig.pass(20_000);
    volume
}

fn gp3() -> Value {
    json!({"VolumeType": "gp3"})
}

fn copy(rig: &Rig, source: &str) -> Value {
    let input = json!({"SourceVolumeId": source, "VolumeType": "gp3", "Iops": 5_000, "Size": 10});
    rig.call("CopyVolumes", input)["Volumes"][0].clone()
}

/// The state of initialization of a volume, and what else is known of it.
fn initialization(rig: &Rig, volume: &str) -> (String, Value) {
    let status =
        rig.call("DescribeVolumeStatus", json!({"VolumeIds": [volume]}))["VolumeStatuses"][0].clone();
    let details = status["VolumeStatus"]["Details"].as_array().unwrap().clone();
    let state = details.into_iter().find(|row| row["Name"] == "initialization-state").unwrap();
    (text(&state["Status"]), status["InitializationStatusDetails"].clone())
}

#[test]
fn a_copy_has_the_content_of_its_source_and_stays_when_it_goes() {
    let rig = Rig::new();
    let source = written(&rig, gp3());
    let before = rig.control.names().unwrap();
    let made = copy(&rig, &source);
    let id = text(&made["VolumeId"]);
    assert_eq!((&made["State"], &made["SourceVolumeId"]), (&json!("creating"), &json!(source)));
    assert_eq!((&made["Size"], &made["Iops"], &made["SnapshotId"]), (&json!(10), &json!(5_000), &json!("")));
    assert_eq!(made["AvailabilityZone"], "us-east-1a", "the zone of the source");
    let Names { volumes, snapshots, .. } = rig.control.names().unwrap();
    assert_eq!((volumes.len(), snapshots), (before.volumes.len() + 1, before.snapshots), "no snapshot stays");
    rig.call("DeleteVolume", json!({"VolumeId": source}));
    let shown = rig.show(&id);
    assert_eq!((&shown["State"], &shown["SourceVolumeId"]), (&json!("available"), &json!(source)));
    assert!(rig.control.initializations(&[&id]).unwrap()[0].is_none(), "all blocks are there");
    let snapshot = rig.snapshot(&id);
    let blocks = rig.listed(&snapshot);
    assert_eq!(blocks.len(), 1);
    assert_eq!(rig.block(&snapshot, 5, &blocks[0].1), filled(7));
    let filter = json!({"Filters": [{"Name": "source-volume-id", "Values": [source]}]});
    assert_eq!(column(&rig.call("DescribeVolumes", filter)["Volumes"], "VolumeId"), [id.as_str()]);
    let plain = json!({"SourceVolumeId": id});
    let plain = rig.call("CopyVolumes", plain)["Volumes"][0].clone();
    assert_eq!((&plain["VolumeType"], &plain["Size"]), (&json!("gp2"), &json!(10)), "the defaults");
}

#[test]
fn a_copy_is_initialized_by_its_data_and_meanwhile_slower_and_not_copied() {
    let rig = Rig::slow();
    let source = written(&rig, json!({"VolumeType": "gp3", "Iops": 5_000, "Size": 10}));
    let id = text(&copy(&rig, &source)["VolumeId"]);
    // 6 hours a TiB: 10 ms for the block of 512 KiB.
    let (state, details) = initialization(&rig, &id);
    assert_eq!(state, "initializing");
    assert_eq!(details, json!({"InitializationType": "volume-copy", "Progress": 0}));
    let volume = rig.control.volume(&id, None).unwrap().volume;
    assert!(volume.spec.contains("iops=5000"), "{}", volume.spec);
    let from = volume.modification.unwrap().source;
    assert!(!from.contains("iops=5000"), "until then it has the baseline: {from}");
    let limit = rig.refused("CopyVolumes", json!({"SourceVolumeId": source}));
    assert_eq!(limit.code, "CopyVolumesLimitExceeded");
    assert_eq!(rig.state(&id), "creating");
    assert_eq!(rig.code("CopyVolumes", json!({"SourceVolumeId": id})), "IncorrectState");
    rig.pass(9);
    assert_eq!(initialization(&rig, &id).1["Progress"], 90);
    rig.pass(1);
    assert_eq!(initialization(&rig, &id).0, "completed");
    rig.pass(2_000);
    let rig = rig.reopened();
    assert_eq!(initialization(&rig, &id).1["Progress"], 100);
    assert_eq!(rig.state(&id), "available");
    let again = text(&copy(&rig, &source)["VolumeId"]);
    let third = written(&rig, gp3());
    rig.call("DeleteVolume", json!({"VolumeId": again}));
    copy(&rig, &third);
}

#[test]
fn few_copies_of_a_region_are_in_progress_at_a_time() {
    let rig = Rig::with(|mut options| {
        options.quotas.volume_copies = 1;
        options
    });
    let (first, second) = (written(&rig, gp3()), written(&rig, gp3()));
    copy(&rig, &first);
    assert_eq!(rig.code("CopyVolumes", json!({"SourceVolumeId": second})), "CopyVolumesLimitExceeded");
    rig.pass(1_000);
    copy(&rig, &second);
}

#[test]
fn a_repeated_token_makes_one_copy_and_rights_are_asked_for_both_volumes() {
    let rig = Rig::new();
    let source = rig.volume();
    let tags = json!([{"ResourceType": "volume", "Tags": [{"Key": "a", "Value": "b"}]}]);
    let input =
        json!({"SourceVolumeId": source, "VolumeType": "gp3", "ClientToken": "t", "TagSpecifications": tags});
    rig.rights.asked.lock().unwrap().clear();
    let first = rig.call("CopyVolumes", input.clone());
    let asked = std::mem::take(&mut *rig.rights.asked.lock().unwrap());
    let asked: Vec<_> = asked.iter().map(|one| format!("{} {}", one.action, one.resource)).collect();
    let arn = |id: &str| format!("arn:aws:ec2:{REGION}:{ACCOUNT}:volume/{id}");
    assert_eq!(
        asked,
        [
            format!("ec2:CopyVolumes {}", arn(&source)),
            format!("ec2:CopyVolumes {}", arn("*")),
            format!("ec2:CreateTags {}", arn("*")),
        ]
    );
    assert_eq!(
        rig.call("CopyVolumes", input.clone())["Volumes"][0]["VolumeId"],
        first["Volumes"][0]["VolumeId"]
    );
    let mut other = input.clone();
    other["Size"] = json!(2);
    assert_eq!(rig.code("CopyVolumes", other), "IdempotentParameterMismatch");
    assert_eq!(rig.names().0.len(), 2);
    assert_eq!(first["Volumes"][0]["Tags"][0]["Key"], "a");
    let denied = rig.try_as(OTHER, REGION, "CopyVolumes", &input).unwrap_err();
    assert_eq!(denied.code, "InvalidVolume.NotFound");
}

#[test]
fn a_copy_is_encrypted_as_its_source_or_with_the_key_that_is_asked_for() {
    let rig = Rig::new();
    let (first, second) = (rig.key(), rig.key());
    let plain = written(&rig, gp3());
    let secret = written(&rig, json!({"VolumeType": "gp3", "Encrypted": true, "KmsKeyId": first}));
    for (source, asked, expected) in [
        (&plain, json!({}), None),
        (&secret, json!({}), Some(&first)),
        (&plain, json!({"Encrypted": true, "KmsKeyId": second}), Some(&second)),
        (&secret, json!({"KmsKeyId": second}), Some(&second)),
    ] {
        let mut input = asked.clone();
        input["SourceVolumeId"] = json!(source);
        let id = text(&rig.call("CopyVolumes", input)["Volumes"][0]["VolumeId"]);
        rig.pass(40_000_000);
        assert_eq!(rig.show(&id)["KmsKeyId"].as_str(), expected.map(String::as_str), "{asked}");
        let snapshot = rig.snapshot(&id);
        let blocks = rig.listed(&snapshot);
        assert_eq!(rig.block(&snapshot, 5, &blocks[0].1), filled(7), "{asked}");
    }
    let refused = rig.refused("CopyVolumes", json!({"SourceVolumeId": secret, "Encrypted": false}));
    assert_eq!(refused.code, "InvalidParameterCombination");
}
