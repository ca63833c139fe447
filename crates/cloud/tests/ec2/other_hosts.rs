//! Instances that are other hosts: their volumes are exported by NBD, and the answers say where.

use std::process::Command;

use ebbtide_cloud::ec2::AttachAs;
use ebbtide_control::ControlPlane as _;
use serde_json::{Value, json};

use crate::support::{Rig, WITHOUT_ROOT, text};

/// A host that attaches block devices, and has a directory for sockets.
fn rig() -> Rig {
    Rig::with(|mut options| {
        let AttachAs::NbdSocket(dir) = options.attach_as.clone() else { unreachable!("as the rig has it") };
        (options.attach_as, options.nbd_sockets) = (AttachAs::BlockDevice, Some(dir));
        options.tcp_exports = true;
        options.instant()
    })
}

/// An instance with the tag that makes it another host.
fn launch(rig: &Rig, attach: &str, more: &Value) -> Value {
    let mut input = json!({"MinCount": 1, "MaxCount": 1, "InstanceType": "m5.large", "ImageId": WITHOUT_ROOT, "TagSpecifications": [
        {"ResourceType": "instance", "Tags": [{"Key": "ebbtide:attach", "Value": attach}]}]});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    rig.call("RunInstances", input)["Instances"][0].clone()
}

/// The URI of a volume's only attachment, which the command line shows too.
fn uri(rig: &Rig, volume: &str) -> String {
    let shown = rig.show(volume);
    let uri = text(&shown["Attachments"][0]["AssociatedResource"]);
    let attachment = rig.control.volume(volume, None).unwrap().volume.attachment.unwrap();
    assert_eq!((attachment.uri.as_deref(), attachment.device), (Some(uri.as_str()), None));
    uri
}

/// What a client of NBD finds there, bytes; none, with the words that the test runner counts, without a client.
fn size_at(uri: &str) -> Option<u64> {
    match Command::new("nbdinfo").args(["--size", uri]).output() {
        Err(_) => {
            println!("SKIPPED: nbdinfo (libnbd-bin) is missing");
            None
        }
        Ok(ran) => {
            assert!(ran.status.success(), "{uri}: {}", String::from_utf8_lossy(&ran.stderr));
            Some(String::from_utf8(ran.stdout).unwrap().trim().parse().unwrap())
        }
    }
}

#[test]
fn volumes_of_another_host_are_exported_where_the_answers_say() {
    let rig = rig();
    for (attach, begins) in [("nbd", "nbd+unix:///"), ("tcp:127.0.0.1:0", "nbd://127.0.0.1:")] {
        let instance = text(&launch(&rig, attach, &json!({}))["InstanceId"]);
        let volume = rig.volume();
        let answer = rig.attach(&volume, &instance, "/dev/sdf");
        let found = uri(&rig, &volume);
        assert!(found.starts_with(begins) && found.contains(&volume), "{found}");
        assert_eq!(answer["AssociatedResource"], found);
        assert!(size_at(&found).is_none_or(|bytes| bytes == 1 << 30));
        rig.call("DetachVolume", json!({"VolumeId": volume}));
        assert_eq!(rig.state(&volume), "available");
        let gone = Command::new("nbdinfo").args(["--size", &found]).output();
        assert!(gone.is_ok_and(|ran| !ran.status.success()) || size_at(&found).is_none());
    }
}

#[test]
fn a_launch_exports_its_volumes_and_a_start_exports_them_again() {
    let rig = rig();
    let mapped = json!({"BlockDeviceMappings": [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 2}}]});
    let instance = launch(&rig, "tcp:127.0.0.1:0", &mapped);
    let filter = json!({"Filters": [{"Name": "attachment.instance-id", "Values": [instance["InstanceId"]]}]});
    let volume = text(&rig.call("DescribeVolumes", filter)["Volumes"][0]["VolumeId"]);
    assert!(size_at(&uri(&rig, &volume)).is_none_or(|bytes| bytes == 2 << 30));
    let rig = rig.reopened();
    assert!(size_at(&uri(&rig, &volume)).is_none_or(|bytes| bytes == 2 << 30), "at the port of this start");
}

#[test]
fn the_tag_of_an_instance_with_volumes_stays_as_it_is() {
    let rig = rig();
    let instance = text(&launch(&rig, "nbd", &json!({}))["InstanceId"]);
    let tag =
        |value: &str| json!({"Resources": [instance], "Tags": [{"Key": "ebbtide:attach", "Value": value}]});
    rig.call("CreateTags", tag("tcp:127.0.0.1:0"));
    rig.call("CreateTags", tag("nbd"));
    let volume = rig.volume();
    rig.attach(&volume, &instance, "/dev/sdf");
    for (action, input) in [
        ("CreateTags", tag("tcp:127.0.0.1:0")),
        ("DeleteTags", json!({"Resources": [instance], "Tags": [{"Key": "ebbtide:attach"}]})),
        ("DeleteTags", json!({"Resources": [instance]})),
    ] {
        let refused = rig.refused(action, input);
        assert_eq!(refused.code, "IncorrectState", "{action}: {refused}");
    }
    rig.call("CreateTags", tag("nbd"));
    rig.call("CreateTags", json!({"Resources": [instance], "Tags": [{"Key": "team", "Value": "db"}]}));
    rig.call("DetachVolume", json!({"VolumeId": volume}));
    rig.call("DeleteTags", json!({"Resources": [instance], "Tags": [{"Key": "ebbtide:attach"}]}));
}

#[test]
fn an_export_that_fails_on_this_host_is_an_error_of_the_service_and_leaves_the_volume_available() {
    let rig = Rig::with(|mut options| {
        let AttachAs::NbdSocket(dir) = options.attach_as else { unreachable!("as the rig has it") };
        std::fs::create_dir_all(&dir).unwrap();
        // A file where the directory of the sockets should be.
        let blocked = dir.join("blocked");
        std::fs::write(&blocked, "").unwrap();
        (options.attach_as, options.nbd_sockets) = (AttachAs::BlockDevice, Some(blocked));
        options.instant()
    });
    let instance = text(&launch(&rig, "nbd", &json!({}))["InstanceId"]);
    let volume = rig.volume();
    let input = json!({"VolumeId": volume, "InstanceId": instance, "Device": "/dev/sdf"});
    let refused = rig.refused("AttachVolume", input);
    assert_eq!((refused.code.as_ref(), refused.status), ("InternalError", 500), "{refused}");
    assert!(refused.message.contains("blocked/vol-"), "{refused}");
    assert_eq!(rig.state(&volume), "available");
}

#[test]
fn a_tag_that_says_nothing_or_opens_a_port_to_others_is_refused() {
    let rig = rig();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("tcp:{}", other.local_addr().unwrap());
    for (attach, code, part) in [
        (taken.as_str(), "UnsupportedOperation", "cannot be exported for instance"),
        ("iscsi", "InvalidParameterValue", "Value (iscsi) of the tag ebbtide:attach"),
        ("unix:/tmp/elsewhere.sock", "InvalidParameterValue", "Give nbd, or tcp:127.0.0.1:PORT"),
        ("tcp:0.0.0.0:0", "InvalidParameterValue", "0.0.0.0"),
        ("tcp:internal.example:0", "InvalidParameterValue", "internal.example"),
        ("tcp:127.0.0.1:25", "InvalidParameterValue", "from 1024 on"),
    ] {
        let instance = text(&launch(&rig, attach, &json!({}))["InstanceId"]);
        let volume = rig.volume();
        let input = json!({"VolumeId": volume, "InstanceId": instance, "Device": "/dev/sdf"});
        let refused = rig.refused("AttachVolume", input);
        assert_eq!(refused.code, code, "{attach}: {refused}");
        assert!(refused.message.contains(part), "{attach}: {refused}");
        assert_eq!(rig.state(&volume), "available");
    }
}

#[test]
fn an_export_over_tcp_has_to_be_allowed_and_is_none_of_an_encrypted_volume() {
    let refused = |rig: &Rig, volume: &str, attach: &str| {
        let instance = text(&launch(rig, attach, &json!({}))["InstanceId"]);
        let refused = rig.refused(
            "AttachVolume",
            json!({"VolumeId": volume, "InstanceId": instance, "Device": "/dev/sdf"}),
        );
        assert_eq!(refused.code, "UnsupportedOperation", "{refused}");
        assert_eq!(rig.state(volume), "available");
        refused.message
    };
    let plain = Rig::new();
    let message = refused(&plain, &plain.volume(), "tcp:127.0.0.1:0");
    assert!(message.contains("--tcp-exports"), "{message}");
    let allowed = rig();
    let secret = allowed.volume_of(json!({"Size": 1, "Encrypted": true, "KmsKeyId": allowed.key()}));
    let message = refused(&allowed, &secret, "tcp:127.0.0.1:0");
    assert!(message.contains("is not exported over TCP"), "{message}");
    // A socket of the home is its owner's alone.
    let instance = text(&launch(&allowed, "nbd", &json!({}))["InstanceId"]);
    allowed.attach(&secret, &instance, "/dev/sdf");
    assert!(uri(&allowed, &secret).starts_with("nbd+unix:///"));
}
