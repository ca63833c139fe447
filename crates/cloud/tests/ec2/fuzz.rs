//! Random requests to EC2 and to the EBS direct APIs.

use std::sync::Arc;

use ebbtide_cloud::Service;
use serde_json::json;

use crate::requests::{Target, calls, run};
use crate::support::{REGION, Rig, answer, text};
use crate::wire::{Protocol, Shapes, Wire};

/// The account of all users.
const ACCOUNT: &str = "000000000000";

#[test]
fn random_requests_to_ec2_and_the_direct_apis_cause_no_panic_no_hang_and_no_internal_error() {
    let (of_ec2, of_ebs) = (Shapes::of("ec2"), Shapes::of("ebs"));
    run(12, |bytes| {
        let rig = Rig::new();
        let words = world(&rig);
        let services =
            || -> Vec<Arc<dyn Service>> { vec![Arc::clone(&rig.ec2) as _, Arc::clone(&rig.ebs) as _] };
        let (closed, open) =
            (Wire::closed(services(), rig.now()), Wire::open(services(), rig.now(), ACCOUNT));
        let targets = [
            Target {
                service: "ec2",
                shapes: &of_ec2,
                protocols: &[Protocol::Ec2Query],
                actions: rig.ec2.actions(),
            },
            Target {
                service: "ebs",
                shapes: &of_ebs,
                protocols: &[Protocol::RestJson],
                actions: rig.ebs.actions(),
            },
        ];
        calls(bytes, &targets, &words, (&closed, &open))
    });
}

/// Makes a resource of each kind; answers texts that mean something.
fn world(rig: &Rig) -> Vec<String> {
    let call =
        |action: &str, input| serde_json::Value::Object(rig.try_as(ACCOUNT, REGION, action, &input).unwrap());
    let create = || json!({"AvailabilityZone": "us-east-1a", "Size": 1, "VolumeType": "gp3"});
    let volume = text(&call("CreateVolume", create())["VolumeId"]);
    let attached = text(&call("CreateVolume", create())["VolumeId"]);
    let ran = call("RunInstances", json!({"MinCount": 1, "MaxCount": 1, "InstanceType": "m5.large"}));
    let instance = text(&ran["Instances"][0]["InstanceId"]);
    call("AttachVolume", json!({"VolumeId": attached, "InstanceId": instance, "Device": "/dev/sdf"}));
    let snapshot = text(&call("CreateSnapshot", json!({"VolumeId": volume}))["SnapshotId"]);
    let start = json!({"VolumeSize": 1});
    let started =
        answer(&*rig.ebs, &rig.rights, rig.now(), (ACCOUNT, REGION), "StartSnapshot", (&start, &[])).unwrap();
    let pending = text(&started.output["SnapshotId"]);
    let fixed = [
        "us-east-1a",
        "us-east-1",
        "/dev/sdg",
        "gp3",
        "volume",
        "snapshot",
        "tag:Name",
        "state",
        "createVolumePermission",
        "SHA256",
        "LINEAR",
        "self",
        "all",
    ];
    [volume, attached, instance, snapshot, pending].into_iter().chain(fixed.map(str::to_owned)).collect()
}
