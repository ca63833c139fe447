//! Root volumes of instances, and changes of an instance's type.

use ebbtide_control::ControlPlane as _;
use serde_json::{Value, json};

use crate::support::{Rig, WITHOUT_ROOT, column, text};

fn run(rig: &Rig, more: Value) -> Value {
    let mut input =
        json!({"MinCount": 1, "MaxCount": 1, "InstanceType": "m5.large", "ImageId": "ami-00000000"});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    rig.call("RunInstances", input)["Instances"][0].clone()
}

fn volumes_of(rig: &Rig, instance: &str) -> Value {
    let filter = json!([{"Name": "attachment.instance-id", "Values": [instance]}]);
    rig.call("DescribeVolumes", json!({"Filters": filter}))["Volumes"].clone()
}

#[test]
fn an_instance_has_the_root_volume_of_its_image_and_takes_it_along() {
    let rig = Rig::new();
    let ran = run(&rig, json!({}));
    let id = text(&ran["InstanceId"]);
    let mapping = &ran["BlockDeviceMappings"][0];
    assert_eq!((&mapping["DeviceName"], &ran["RootDeviceName"]), (&json!("/dev/xvda"), &json!("/dev/xvda")));
    assert_eq!(mapping["Ebs"]["DeleteOnTermination"], true);
    let root = volumes_of(&rig, &id)[0].clone();
    let shape = ["Size", "VolumeType", "State", "Iops"].map(|name| root[name].clone());
    assert_eq!(shape, [json!(8), json!("gp3"), json!("in-use"), json!(3_000)]);
    let volume = text(&root["VolumeId"]);
    assert!(!rig.socket(&volume).exists(), "nobody asked for its device");
    assert!(rig.names().0.contains(&volume), "it is a volume of the home");
    rig.attach(&rig.volume(), &id, "/dev/sdf");
    let of_instance = |more: Value| {
        let mut specification = json!({"InstanceId": id});
        specification.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rig.call("CreateSnapshots", json!({"InstanceSpecification": specification}))["Snapshots"].clone()
    };
    assert_eq!(of_instance(json!({})).as_array().unwrap().len(), 2);
    assert!(!column(&of_instance(json!({"ExcludeBootVolume": true})), "VolumeId").contains(&volume));
    rig.call("ModifyVolume", json!({"VolumeId": volume, "Size": 12, "Throughput": 250}));
    assert_eq!(volumes_of(&rig, &id).as_array().unwrap().iter().filter(|row| row["Size"] == 12).count(), 1);

    // A start finds it as it was: attached, and without a device.
    let rig = rig.reopened();
    assert_eq!(column(&volumes_of(&rig, &id), "State"), ["in-use", "in-use"]);
    assert!(!rig.socket(&volume).exists());
    assert_eq!(rig.code("DetachVolume", json!({"VolumeId": volume})), "OperationNotPermitted");
    rig.call("TerminateInstances", json!({"InstanceIds": [id]}));
    assert_eq!(rig.code("DescribeVolumes", json!({"VolumeIds": [volume]})), "InvalidVolume.NotFound");
    assert!(!rig.names().0.contains(&volume));
}

#[test]
fn a_root_volume_is_what_the_call_asks_for_and_has_a_device_then() {
    let rig = Rig::new();
    for (ebs, size, kind) in [
        (json!({"VolumeSize": 11, "VolumeType": "gp2"}), 11, "gp2"),
        (json!({"VolumeType": "io1", "Iops": 100}), 8, "io1"),
        (json!({"DeleteOnTermination": false}), 8, "gp3"),
    ] {
        let ran = run(&rig, json!({"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": ebs}]}));
        let rows = volumes_of(&rig, ran["InstanceId"].as_str().unwrap());
        assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
        assert_eq!((&rows[0]["Size"], &rows[0]["VolumeType"]), (&json!(size), &json!(kind)));
        assert!(rig.socket(rows[0]["VolumeId"].as_str().unwrap()).exists());
    }
}

#[test]
fn an_image_or_a_mapping_leaves_the_root_volume_out() {
    let rig = Rig::new();
    let no_device = json!([{"DeviceName": "/dev/xvda", "NoDevice": ""}]);
    for more in [json!({"ImageId": WITHOUT_ROOT}), json!({"BlockDeviceMappings": no_device})] {
        let ran = run(&rig, more.clone());
        assert_eq!(volumes_of(&rig, ran["InstanceId"].as_str().unwrap()), json!([]), "{more}");
    }
    let image = rig.call("DescribeImages", json!({"ImageIds": [WITHOUT_ROOT]}))["Images"][0].clone();
    assert_eq!(
        (&image["BlockDeviceMappings"], &image["RootDeviceType"]),
        (&json!([]), &json!("instance-store"))
    );
    assert_eq!(rig.names().0.len(), 0);
}

#[test]
fn a_root_volume_that_was_detached_is_like_every_other_one() {
    let rig = Rig::new();
    let id = text(&run(&rig, json!({}))["InstanceId"]);
    let volume = text(&volumes_of(&rig, &id)[0]["VolumeId"]);
    rig.call("StopInstances", json!({"InstanceIds": [id]}));
    rig.call("DetachVolume", json!({"VolumeId": volume}));
    let other = rig.instance();
    rig.attach(&volume, &other, "/dev/sdf");
    assert!(rig.socket(&volume).exists(), "somebody asked for it");
    rig.call("DetachVolume", json!({"VolumeId": volume}));
    rig.attach(&volume, &id, "/dev/xvda");
    rig.call("TerminateInstances", json!({"InstanceIds": [id]}));
    rig.call("DescribeVolumes", json!({"VolumeIds": [volume]}));
}

#[test]
fn the_type_of_a_stopped_instance_is_changed_and_its_devices_get_the_new_limits() {
    let rig = Rig::new();
    let id = text(&run(&rig, json!({}))["InstanceId"]);
    let volume = rig.volume();
    rig.attach(&volume, &id, "/dev/sdf");
    let change = |kind: &str| json!({"InstanceId": id, "InstanceType": {"Value": kind}});
    assert_eq!(rig.code("ModifyInstanceAttribute", change("m5.4xlarge")), "IncorrectInstanceState");
    rig.call("StopInstances", json!({"InstanceIds": [id]}));
    assert_eq!(rig.code("ModifyInstanceAttribute", change("m9.huge")), "InvalidInstanceAttributeValue");
    rig.call("ModifyInstanceAttribute", change("m5.4xlarge"));
    let limits = |rig: &Rig| {
        let detail = rig.control.volume(&volume, None).unwrap();
        detail.volume.attachment.unwrap().instance.unwrap()
    };
    assert_eq!(limits(&rig), format!("m5.4xlarge/{id}"));
    let by_name = json!({"InstanceId": id, "Attribute": "instanceType", "Value": "t2.micro"});
    rig.call("ModifyInstanceAttribute", by_name);
    assert_eq!(limits(&rig), format!("t2.micro/{id}"));
    let rig = rig.reopened();
    assert_eq!(limits(&rig), format!("t2.micro/{id}"));
    let started = rig.call("StartInstances", json!({"InstanceIds": [id]}));
    assert_eq!(started["StartingInstances"][0]["InstanceId"], id.as_str());
    let shown = rig.call("DescribeInstances", json!({"InstanceIds": [id]}));
    assert_eq!(shown["Reservations"][0]["Instances"][0]["InstanceType"], "t2.micro");
}

#[test]
fn attributes_that_a_stand_in_has_are_accepted_and_others_refused() {
    let rig = Rig::new();
    let id = rig.instance();
    let modify = |more: Value| {
        let mut input = json!({"InstanceId": id});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    for fine in [
        json!({"DisableApiTermination": {"Value": false}}),
        json!({"SourceDestCheck": {"Value": true}, "EbsOptimized": {"Value": true}}),
        json!({"InstanceInitiatedShutdownBehavior": {"Value": "stop"}}),
        json!({"Attribute": "disableApiStop", "Value": "false"}),
        json!({"Groups": ["sg-00000000000000001"]}),
    ] {
        rig.call("ModifyInstanceAttribute", modify(fine));
    }
    for other in [
        json!({"DisableApiTermination": {"Value": true}}),
        json!({"InstanceInitiatedShutdownBehavior": {"Value": "terminate"}}),
        json!({"Groups": ["sg-12345678"]}),
        json!({}),
    ] {
        assert_eq!(
            rig.code("ModifyInstanceAttribute", modify(other.clone())),
            "UnsupportedOperation",
            "{other}"
        );
    }
}

#[test]
fn snapshots_are_shared_and_unshared_in_both_forms_at_once() {
    let rig = Rig::new();
    let snapshot = rig.snapshot(&rig.volume());
    let change = |more: Value| {
        let mut input = json!({"SnapshotId": snapshot});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let users = || {
        let asked = json!({"SnapshotId": snapshot, "Attribute": "createVolumePermission"});
        column(&rig.call("DescribeSnapshotAttribute", asked)["CreateVolumePermissions"], "UserId")
    };
    let (a, b) = ("111122223333", "444455556666");
    let structure = |verb: &str| json!({verb: [{"UserId": a}]});
    rig.call(
        "ModifySnapshotAttribute",
        change(json!({"OperationType": "add", "CreateVolumePermission": structure("Add")})),
    );
    assert_eq!(users(), [a]);
    let both = json!({"OperationType": "add", "UserIds": [b], "CreateVolumePermission": structure("Add")});
    rig.call("ModifySnapshotAttribute", change(both));
    assert_eq!(users(), [a, b]);
    for opposite in [
        json!({"OperationType": "add", "CreateVolumePermission": structure("Remove")}),
        json!({"OperationType": "remove", "CreateVolumePermission": structure("Add")}),
        json!({"CreateVolumePermission": {"Add": [{"UserId": a}], "Remove": [{"UserId": b}]}}),
    ] {
        assert_eq!(rig.code("ModifySnapshotAttribute", change(opposite)), "InvalidParameterCombination");
    }
    let remove = json!({"OperationType": "remove", "CreateVolumePermission": structure("Remove")});
    rig.call("ModifySnapshotAttribute", change(remove));
    assert_eq!(users(), [b]);
}
