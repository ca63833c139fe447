//! Attaching and detaching, through sockets of the NBD protocol, which need no root.

use std::os::unix::net::UnixStream;

use serde_json::json;

use crate::support::{Rig, text};

#[test]
fn an_attached_volume_is_really_served_until_it_is_detached() {
    let rig = Rig::slow();
    let (volume, instance) = (rig.volume(), rig.instance());
    rig.pass(5_000);
    let answer = rig.attach(&volume, &instance, "/dev/sdf");
    assert_eq!((&answer["State"], &answer["Device"]), (&json!("attaching"), &json!("/dev/sdf")));
    assert_eq!(answer["DeleteOnTermination"], false);
    UnixStream::connect(rig.socket(&volume)).unwrap();
    let shown = || rig.show(&volume);
    assert_eq!(
        (&shown()["State"], &shown()["Attachments"][0]["State"]),
        (&json!("in-use"), &json!("attaching"))
    );
    rig.pass(1_500);
    assert_eq!(shown()["Attachments"][0]["State"], "attached");
    let mapping = |instance: &str| {
        let answer = rig.call("DescribeInstances", json!({"InstanceIds": [instance]}));
        answer["Reservations"][0]["Instances"][0]["BlockDeviceMappings"].clone()
    };
    assert_eq!(mapping(&instance)[0]["DeviceName"], "/dev/sdf");
    assert_eq!(mapping(&instance)[0]["Ebs"]["VolumeId"], volume.as_str());
    let answer = rig.call("DetachVolume", json!({"VolumeId": volume}));
    assert_eq!(answer["State"], "detaching");
    assert!(UnixStream::connect(rig.socket(&volume)).is_err());
    assert_eq!(shown()["Attachments"][0]["State"], "detaching");
    assert_eq!(rig.call("DetachVolume", json!({"VolumeId": volume}))["State"], "detaching", "repeated");
    rig.pass(2_000);
    assert_eq!((&shown()["State"], &shown()["Attachments"]), (&json!("available"), &json!([])));
    assert_eq!(mapping(&instance), json!([]));
    let refused = rig.refused("DetachVolume", json!({"VolumeId": volume}));
    assert_eq!(refused.message, format!("Volume '{volume}' is in the 'available' state."));
}

#[test]
fn an_attached_volume_is_attached_again_after_a_start() {
    let rig = Rig::new();
    let (volume, instance) = (rig.volume(), rig.instance());
    rig.attach(&volume, &instance, "/dev/sdf");
    let before = rig.show(&volume);
    let rig = rig.reopened();
    assert_eq!(rig.show(&volume), before);
    UnixStream::connect(rig.socket(&volume)).unwrap();
    assert_eq!(rig.code("DeleteVolume", json!({"VolumeId": volume})), "VolumeInUse");
}

#[test]
fn terminating_an_instance_frees_its_volumes_or_deletes_them() {
    let rig = Rig::slow();
    let (kept, deleted, instance) = (rig.volume(), rig.volume(), rig.instance());
    rig.pass(5_000);
    rig.attach(&kept, &instance, "/dev/sdf");
    rig.attach(&deleted, &instance, "/dev/sdg");
    rig.call(
        "ModifyInstanceAttribute",
        json!({"InstanceId": instance, "BlockDeviceMappings": [
            {"DeviceName": "/dev/sdg", "Ebs": {"DeleteOnTermination": true}}]}),
    );
    assert_eq!(rig.show(&deleted)["Attachments"][0]["DeleteOnTermination"], true);
    let answer = rig.call("TerminateInstances", json!({"InstanceIds": [instance]}));
    let change = &answer["TerminatingInstances"][0];
    assert_eq!(change["PreviousState"], json!({"Code": 16, "Name": "running"}));
    assert_eq!(change["CurrentState"], json!({"Code": 32, "Name": "shutting-down"}));
    assert_eq!(rig.state(&deleted), "deleting");
    assert!(UnixStream::connect(rig.socket(&kept)).is_err());
    rig.pass(10_000);
    assert_eq!(rig.state(&kept), "available");
    assert_eq!(rig.names().0, [kept]);
    let shown = rig.call("DescribeInstances", json!({"InstanceIds": [instance]}));
    assert_eq!(shown["Reservations"][0]["Instances"][0]["State"]["Name"], "terminated");
    rig.pass(3_600_000);
    assert_eq!(
        rig.code("DescribeInstances", json!({"InstanceIds": [instance]})),
        "InvalidInstanceID.NotFound"
    );
}

#[test]
fn the_root_volume_of_a_running_instance_stays() {
    let rig = Rig::new();
    let (volume, instance) = (rig.volume(), rig.instance());
    rig.attach(&volume, &instance, "xvda");
    assert_eq!(rig.code("DetachVolume", json!({"VolumeId": volume})), "OperationNotPermitted");
    rig.call("StopInstances", json!({"InstanceIds": [instance]}));
    rig.call("DetachVolume", json!({"VolumeId": volume}));
    assert_eq!(rig.state(&volume), "available");
}

#[test]
fn an_instance_takes_as_many_volumes_as_its_type() {
    let rig = Rig::new();
    let slots = rig.options.catalog.instance("m5.large").unwrap().ebs_slots;
    let instance = rig.instance();
    for number in 0..slots {
        let volume = rig.volume_of(json!({"Size": 1}));
        let letters = ["", "b", "c"][usize::try_from(number / 26).unwrap()];
        let letter = char::from(b'a' + u8::try_from(number % 26).unwrap());
        rig.attach(&volume, &instance, &format!("/dev/xvd{letters}{letter}"));
    }
    let more = rig.volume_of(json!({"Size": 1}));
    let input = json!({"VolumeId": more, "InstanceId": instance, "Device": "/dev/xvdcz"});
    assert_eq!(rig.code("AttachVolume", input), "AttachmentLimitExceeded");
    assert_eq!(rig.state(&more), "available");
}

#[test]
fn a_refused_attachment_leaves_the_volume_as_it_was() {
    let rig = Rig::new();
    let (volume, instance) = (rig.volume(), rig.instance());
    // Somebody else has the socket's place.
    std::fs::create_dir(rig.socket(&volume)).unwrap();
    let input = json!({"VolumeId": volume, "InstanceId": instance, "Device": "/dev/sdf"});
    rig.refused("AttachVolume", input);
    assert_eq!(rig.state(&volume), "available");
    std::fs::remove_dir(rig.socket(&volume)).unwrap();
    rig.attach(&volume, &instance, "/dev/sdf");
    assert_eq!(text(&rig.show(&volume)["Attachments"][0]["InstanceId"]), instance);
}

#[test]
fn an_attached_volume_is_modified_and_snapshot_in_use() {
    use ebbtide_control::ControlPlane as _;
    let rig = Rig::new();
    let (volume, instance) = (rig.volume(), rig.instance());
    rig.attach(&volume, &instance, "/dev/sdf");
    rig.call("ModifyVolume", json!({"VolumeId": volume, "Size": 10, "Iops": 4000}));
    let detail = rig.control.volume(&volume, None).unwrap().volume;
    assert_eq!(detail.size_bytes, 10 << 30);
    assert!(detail.spec.contains("iops=4000"), "{}", detail.spec);
    let snapshot = rig.snapshot(&volume);
    assert_eq!(rig.show_snapshot(&snapshot)["VolumeSize"], 10);
}
