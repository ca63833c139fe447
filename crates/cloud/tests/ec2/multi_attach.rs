//! Multi-Attach: several instances share a volume and its device.

use std::os::unix::net::UnixStream;

use ebbtide_cloud::monitoring::Inventory as _;
use serde_json::{Value, json};

use crate::support::{Rig, column};

fn shared(rig: &Rig) -> String {
    rig.volume_of(json!({"Size": 10, "VolumeType": "io2", "Iops": 500, "MultiAttachEnabled": true}))
}

/// Instances and states of the attachments of a volume.
fn attachments(rig: &Rig, volume: &str) -> Vec<String> {
    let rows = rig.show(volume)["Attachments"].clone();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| format!("{} {}", row["InstanceId"].as_str().unwrap(), row["State"].as_str().unwrap()))
        .collect()
}

fn detach(rig: &Rig, volume: &str, instance: &str) -> Value {
    rig.call("DetachVolume", json!({"VolumeId": volume, "InstanceId": instance}))
}

fn is_served(rig: &Rig, volume: &str) -> bool {
    UnixStream::connect(rig.socket(volume)).is_ok()
}

#[test]
fn instances_share_a_volume_until_the_last_one_is_detached() {
    let rig = Rig::slow();
    let volume = shared(&rig);
    let (first, second) = (rig.instance(), rig.instance());
    rig.pass(5_000);
    assert_eq!(rig.show(&volume)["MultiAttachEnabled"], true);
    rig.attach(&volume, &first, "/dev/sdf");
    rig.pass(1_500);
    assert_eq!(rig.attach(&volume, &second, "/dev/sdg")["State"], "attaching");
    assert_eq!(attachments(&rig, &volume), [format!("{first} attached"), format!("{second} attaching")]);
    rig.pass(1_500);
    for (name, value) in [
        ("attachment.instance-id", &second),
        ("attachment.instance-id", &first),
        ("attachment.device", &"/dev/sdg".to_owned()),
    ] {
        let input = json!({"Filters": [{"Name": name, "Values": [value]}, {"Name": "multi-attach-enabled", "Values": ["true"]}]});
        assert_eq!(
            column(&rig.call("DescribeVolumes", input)["Volumes"], "VolumeId"),
            [volume.as_str()],
            "{name}"
        );
    }
    for instance in [&first, &second] {
        let answer = rig.call("DescribeInstances", json!({"InstanceIds": [instance]}));
        let mapping = &answer["Reservations"][0]["Instances"][0]["BlockDeviceMappings"];
        assert_eq!(mapping[0]["Ebs"]["VolumeId"], volume.as_str());
    }
    let status =
        rig.call("DescribeVolumeStatus", json!({"VolumeIds": [volume]}))["VolumeStatuses"][0].clone();
    assert_eq!(column(&status["AttachmentStatuses"], "InstanceId"), [first.as_str(), second.as_str()]);
    let instances = json!({"InstanceSpecification": {"InstanceId": second}});
    let taken = rig.call("CreateSnapshots", instances);
    assert_eq!(column(&taken["Snapshots"], "VolumeId"), [volume.as_str()]);
    assert_eq!(detach(&rig, &volume, &first)["State"], "detaching");
    assert!(is_served(&rig, &volume), "the second instance goes on");
    rig.pass(2_000);
    assert_eq!(attachments(&rig, &volume), [format!("{second} attached")]);
    assert_eq!(rig.state(&volume), "in-use");
    let rig = rig.reopened();
    assert!(is_served(&rig, &volume), "attached again for the instance that is left");
    rig.attach(&volume, &first, "/dev/sdf");
    detach(&rig, &volume, &second);
    assert!(is_served(&rig, &volume));
    detach(&rig, &volume, &first);
    assert!(!is_served(&rig, &volume), "nobody is left");
    rig.pass(2_000);
    assert_eq!((rig.state(&volume), attachments(&rig, &volume)), ("available".to_owned(), Vec::new()));
}

#[test]
fn sixteen_instances_share_a_volume_and_one_more_does_not() {
    let rig = Rig::new();
    let volume = shared(&rig);
    let instances: Vec<String> = (0..17).map(|_| rig.instance()).collect();
    for instance in &instances[..16] {
        rig.attach(&volume, instance, "/dev/sdf");
    }
    let input = |instance: &str| json!({"VolumeId": volume, "InstanceId": instance, "Device": "/dev/sdg"});
    assert_eq!(rig.code("AttachVolume", input(&instances[16])), "AttachmentLimitExceeded");
    detach(&rig, &volume, &instances[3]);
    rig.call("AttachVolume", input(&instances[16]));
    assert_eq!(attachments(&rig, &volume).len(), 16);
}

#[test]
fn the_last_instance_that_is_terminated_decides_whether_the_volume_is_deleted() {
    let rig = Rig::new();
    let (kept, deleted) = (shared(&rig), shared(&rig));
    let (first, second) = (rig.instance(), rig.instance());
    for instance in [&first, &second] {
        rig.attach(&kept, instance, "/dev/sdf");
        rig.attach(&deleted, instance, "/dev/sdg");
    }
    let delete = |instance: &str, device: &str| {
        let mapping = json!([{"DeviceName": device, "Ebs": {"DeleteOnTermination": true}}]);
        rig.call("ModifyInstanceAttribute", json!({"InstanceId": instance, "BlockDeviceMappings": mapping}));
    };
    delete(&first, "/dev/sdf");
    delete(&second, "/dev/sdg");
    rig.call("TerminateInstances", json!({"InstanceIds": [first]}));
    assert_eq!((rig.state(&kept).as_str(), rig.state(&deleted).as_str()), ("in-use", "in-use"));
    assert!(is_served(&rig, &kept) && is_served(&rig, &deleted));
    rig.call("TerminateInstances", json!({"InstanceIds": [second]}));
    assert_eq!(rig.state(&kept), "available");
    assert_eq!(rig.code("DescribeVolumes", json!({"VolumeIds": [deleted]})), "InvalidVolume.NotFound");
    assert!(!is_served(&rig, &kept));
}

#[test]
fn multi_attach_is_modified_by_the_rules_of_io1_and_io2() {
    let rig = Rig::slow();
    let of = |kind: &str, multi: bool| json!({"Size": 10, "VolumeType": kind, "Iops": 100, "MultiAttachEnabled": multi});
    let (io1, io2) = (rig.volume_of(of("io1", true)), rig.volume_of(of("io2", false)));
    rig.pass(2_000);
    let modify = |volume: &str, mut change: Value| {
        change["VolumeId"] = json!(volume);
        rig.call("ModifyVolume", change)["VolumeModification"].clone()
    };
    let changed = modify(&io2, json!({"MultiAttachEnabled": true}));
    assert_eq!(
        (&changed["OriginalMultiAttachEnabled"], &changed["TargetMultiAttachEnabled"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(rig.show(&io2)["MultiAttachEnabled"], true);
    let found = json!({"Filters": [{"Name": "target-multi-attach-enabled", "Values": ["true"]}]});
    let found = rig.call("DescribeVolumesModifications", found);
    assert_eq!(column(&found["VolumesModifications"], "VolumeId"), [io2.as_str()]);
    modify(&io2, json!({"Size": 20}));
    let (first, second) = (rig.instance(), rig.instance());
    rig.pass(5_000);
    for instance in [&first, &second] {
        rig.attach(&io1, instance, "/dev/sdf");
    }
    let changed = modify(&io1, json!({"VolumeType": "io2"}));
    assert_eq!(changed["TargetMultiAttachEnabled"], true, "also while it is attached");
    let west = json!({"AvailabilityZone": "eu-west-1a", "Size": 10, "VolumeType": "io1", "Iops": 100, "MultiAttachEnabled": true});
    let refused = rig.try_as(crate::support::ACCOUNT, "eu-west-1", "CreateVolume", &west).unwrap_err();
    assert_eq!(
        refused.message,
        "The parameter multi-attach-enabled is not supported for io1 volumes in eu-west-1."
    );
}

#[test]
fn a_shared_volume_is_sampled_once_and_without_an_instance() {
    let rig = Rig::new();
    let (volume, alone) = (shared(&rig), rig.volume());
    let (first, second) = (rig.instance(), rig.instance());
    rig.attach(&volume, &first, "/dev/sdf");
    rig.attach(&volume, &second, "/dev/sdf");
    rig.attach(&alone, &first, "/dev/sdg");
    let mut sampled: Vec<_> =
        rig.ec2.attached(rig.now()).into_iter().map(|at| (at.volume, at.instance, at.kind)).collect();
    sampled.sort();
    let mut expected =
        vec![(volume, String::new(), "io2/multi-attach".to_owned()), (alone, first, "gp3".to_owned())];
    expected.sort();
    assert_eq!(sampled, expected);
}
