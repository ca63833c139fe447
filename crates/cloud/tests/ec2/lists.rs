//! Describe actions: every filter, pages, and ids.

use serde_json::{Value, json};

use crate::support::{Rig, column, text};

fn found(rig: &Rig, action: &str, member: &str, filters: &[(&str, &str)]) -> usize {
    let filters: Value =
        filters.iter().map(|(name, value)| json!({"Name": name, "Values": [value]})).collect();
    rig.call(action, json!({"Filters": filters}))[member].as_array().unwrap().len()
}

/// Volumes, snapshots and instances of every kind that filters distinguish.
fn world() -> (Rig, String, String, String) {
    let rig = Rig::new();
    let attached = rig.volume_of(json!({"Size": 7, "VolumeType": "io1", "Iops": 200, "TagSpecifications": [
        {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "db-1"}]}]}));
    let instance = rig.instance();
    rig.attach(&attached, &instance, "/dev/sdf");
    rig.pass(60_000);
    let free = rig.volume_of(json!({"Size": 3, "AvailabilityZone": "us-east-1b"}));
    let taken = rig.call(
        "CreateSnapshot",
        json!({"VolumeId": free, "Description": "nightly 1",
        "TagSpecifications": [{"ResourceType": "snapshot", "Tags": [{"Key": "Name", "Value": "s"}]}]}),
    );
    let snapshot = text(&taken["SnapshotId"]);
    rig.volume_of(json!({"SnapshotId": snapshot, "VolumeType": "gp3"}));
    (rig, attached, snapshot, instance)
}

#[test]
fn every_filter_of_volumes_finds_what_it_names() {
    let (rig, attached, snapshot, instance) = world();
    for (name, value, count) in [
        ("attachment.attach-time", "2026-09-21T14:13:20.000Z", 1),
        ("attachment.attach-time", "2026-*", 1),
        ("attachment.delete-on-termination", "false", 1),
        ("attachment.delete-on-termination", "true", 0),
        ("attachment.device", "/dev/sdf", 1),
        ("attachment.device", "/dev/xvdf", 0),
        ("attachment.instance-id", &instance, 1),
        ("attachment.status", "attached", 1),
        ("availability-zone", "us-east-1b", 1),
        ("availability-zone-id", "use1-az1", 2),
        ("create-time", "2026-09-21T14:14:20.000Z", 2),
        ("encrypted", "false", 3),
        ("encrypted", "true", 0),
        ("fast-restored", "false", 3),
        ("multi-attach-enabled", "false", 3),
        ("operator.managed", "false", 3),
        ("operator.principal", "x", 0),
        ("size", "3", 2),
        ("snapshot-id", &snapshot, 1),
        ("source-volume-id", "x", 0),
        ("status", "in-use", 1),
        ("status", "available", 2),
        ("tag:Name", "db-?", 1),
        ("tag:name", "db-1", 0),
        ("tag-key", "Name", 1),
        ("volume-id", &attached, 1),
        ("volume-type", "gp?", 2),
    ] {
        assert_eq!(found(&rig, "DescribeVolumes", "Volumes", &[(name, value)]), count, "{name} {value}");
    }
    let both = [("volume-type", "gp*"), ("size", "3"), ("availability-zone", "us-east-1a")];
    assert_eq!(found(&rig, "DescribeVolumes", "Volumes", &both), 1);
    let any = json!({"Filters": [{"Name": "size", "Values": ["7", "3"]}]});
    assert_eq!(rig.call("DescribeVolumes", any)["Volumes"].as_array().unwrap().len(), 3);
    // Terraform asks so for an attachment that may be gone, and expects an empty list.
    let asked =
        json!({"VolumeIds": [attached], "Filters": [{"Name": "attachment.device", "Values": ["/dev/sdz"]}]});
    assert_eq!(rig.call("DescribeVolumes", asked)["Volumes"], json!([]));
}

#[test]
fn every_filter_of_snapshots_finds_what_it_names() {
    let (rig, attached, snapshot, _) = world();
    rig.snapshot(&attached);
    for (name, value, count) in [
        ("description", "nightly*", 1),
        ("encrypted", "false", 2),
        ("owner-alias", "amazon", 0),
        ("owner-id", "123456789012", 2),
        ("progress", "100%", 2),
        ("snapshot-id", &snapshot, 1),
        ("start-time", "2026-09-21T14:14:20.000Z", 2),
        ("status", "completed", 2),
        ("status", "pending", 0),
        ("storage-tier", "standard", 2),
        ("tag:Name", "s", 1),
        ("tag-key", "*", 1),
        ("transfer-type", "standard", 2),
        ("volume-id", &attached, 1),
        ("volume-size", "3", 1),
    ] {
        assert_eq!(found(&rig, "DescribeSnapshots", "Snapshots", &[(name, value)]), count, "{name} {value}");
    }
}

#[test]
fn every_filter_of_status_and_modifications_finds_what_it_names() {
    let (rig, attached, _, instance) = world();
    for (name, value, count) in [
        ("action.code", "*", 0),
        ("attachment-status.instance-id", &*instance, 1),
        ("attachment-status.io-performance", "normal", 1),
        ("availability-zone", "us-east-1b", 1),
        ("availability-zone-id", "use1-az2", 1),
        ("event.event-type", "*", 0),
        ("volume-status.details-name", "initialization-state", 1),
        ("volume-status.details-status", "normal", 1),
        ("volume-status.status", "ok", 3),
    ] {
        let count_of = found(&rig, "DescribeVolumeStatus", "VolumeStatuses", &[(name, value)]);
        assert_eq!(count_of, count, "{name} {value}");
    }
    rig.call("ModifyVolume", json!({"VolumeId": attached, "VolumeType": "gp3", "Size": 9}));
    for (name, value, count) in [
        ("modification-state", "completed", 1),
        ("original-iops", "200", 1),
        ("original-multi-attach-enabled", "false", 1),
        ("original-size", "7", 1),
        ("original-volume-type", "io1", 1),
        ("start-time", "2026-09-21T*", 1),
        ("target-iops", "3000", 1),
        ("target-multi-attach-enabled", "true", 0),
        ("target-size", "9", 1),
        ("target-volume-type", "gp2", 0),
        ("volume-id", &*attached, 1),
    ] {
        let count_of = found(&rig, "DescribeVolumesModifications", "VolumesModifications", &[(name, value)]);
        assert_eq!(count_of, count, "{name} {value}");
    }
}

#[test]
fn filters_of_instances_find_what_they_name() {
    let (rig, attached, _, instance) = world();
    for (name, value, count) in [
        ("architecture", "x86_64", 1),
        ("availability-zone", "us-east-1a", 1),
        ("block-device-mapping.attach-time", "2026-*", 1),
        ("block-device-mapping.delete-on-termination", "false", 1),
        ("block-device-mapping.device-name", "/dev/sdf", 1),
        ("block-device-mapping.status", "attached", 1),
        ("block-device-mapping.volume-id", &*attached, 1),
        ("instance-id", &*instance, 1),
        ("instance-state-code", "16", 1),
        ("instance-state-name", "stopped", 0),
        ("instance-type", "m5.*", 1),
        ("launch-index", "0", 1),
        ("launch-time", "2026-*", 1),
        ("owner-id", "123456789012", 1),
        ("root-device-name", "/dev/xvda", 1),
        ("root-device-type", "instance-store", 1),
        ("tenancy", "default", 1),
        ("vpc-id", "vpc-*", 1),
        ("platform", "windows", 0),
    ] {
        let count_of = found(&rig, "DescribeInstances", "Reservations", &[(name, value)]);
        assert_eq!(count_of, count, "{name} {value}");
    }
}

#[test]
fn pages_have_every_volume_once_although_volumes_come_and_go() {
    let rig = Rig::new();
    let mut ids: Vec<String> = (0..23).map(|_| rig.volume()).collect();
    ids.sort();
    let mut seen = Vec::new();
    let mut token = Value::Null;
    let mut pages = 0;
    loop {
        let page = rig.call("DescribeVolumes", json!({"MaxResults": 5, "NextToken": token}));
        seen.extend(column(&page["Volumes"], "VolumeId"));
        pages += 1;
        // The last one of this page goes: the next page begins behind it all the same.
        if pages == 2 {
            rig.call("DeleteVolume", json!({"VolumeId": seen.last()}));
        }
        token = page.get("NextToken").cloned().unwrap_or(Value::Null);
        if token.is_null() {
            break;
        }
    }
    assert_eq!(pages, 5);
    assert_eq!(seen, ids);
    let capped = rig.call("DescribeVolumes", json!({"MaxResults": 5_000}));
    assert_eq!(capped["Volumes"].as_array().unwrap().len(), 22);
}
