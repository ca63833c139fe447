//! Stand-ins for instances: run, stopped, started, described, and their types.

use ebbtide_cloud::ec2::{AttachAs, Options};
use ebbtide_cloud::monitoring::Inventory as _;
use serde_json::{Value, json};

use crate::support::{Rig, column, text};

fn state(rig: &Rig, id: &str) -> String {
    let shown = rig.call("DescribeInstances", json!({"InstanceIds": [id]}));
    text(&shown["Reservations"][0]["Instances"][0]["State"]["Name"])
}

#[test]
fn an_instance_goes_through_its_states() {
    let rig = Rig::slow();
    let id = rig.instance();
    assert_eq!(state(&rig, &id), "pending");
    assert_eq!(rig.code("StopInstances", json!({"InstanceIds": [id]})), "IncorrectInstanceState");
    rig.pass(4_000);
    assert_eq!(state(&rig, &id), "running");
    let stopping = rig.call("StopInstances", json!({"InstanceIds": [id]}));
    assert_eq!(stopping["StoppingInstances"][0]["CurrentState"]["Name"], "stopping");
    assert_eq!(rig.code("StartInstances", json!({"InstanceIds": [id]})), "IncorrectInstanceState");
    rig.pass(8_000);
    assert_eq!(state(&rig, &id), "stopped");
    let rig = rig.reopened();
    let starting = rig.call("StartInstances", json!({"InstanceIds": [id]}));
    assert_eq!(starting["StartingInstances"][0]["PreviousState"], json!({"Code": 80, "Name": "stopped"}));
    rig.pass(4_000);
    assert_eq!(state(&rig, &id), "running");
    rig.call("TerminateInstances", json!({"InstanceIds": [id]}));
    rig.pass(8_000);
    assert_eq!(state(&rig, &id), "terminated");
    assert_eq!(rig.code("StartInstances", json!({"InstanceIds": [id]})), "IncorrectInstanceState");
}

#[test]
fn instances_of_one_call_are_a_reservation_and_repeat_with_their_token() {
    let rig = Rig::new();
    let input = json!({"MinCount": 1, "MaxCount": 3, "InstanceType": "r5.large", "ClientToken": "run-1",
        "Placement": {"AvailabilityZone": "us-east-1c"},
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "db"}]}]});
    let ran = rig.call("RunInstances", input.clone());
    assert_eq!(ran["Instances"].as_array().unwrap().len(), 3);
    assert_eq!(rig.call("RunInstances", input)["ReservationId"], ran["ReservationId"]);
    let shown = rig.call("DescribeInstances", json!({"Filters": [{"Name": "tag:Name", "Values": ["db"]}]}));
    let reservations = shown["Reservations"].as_array().unwrap();
    assert_eq!(reservations.len(), 1);
    let instances = &reservations[0]["Instances"];
    assert_eq!(column(instances, "InstanceType"), ["r5.large"; 3]);
    assert_eq!(instances[1]["AmiLaunchIndex"], 1);
    assert_eq!(instances[0]["Placement"]["AvailabilityZone"], "us-east-1c");
    assert_eq!(instances[0]["RootDeviceType"], "ebs");
}

#[test]
fn types_have_the_figures_of_the_catalogue() {
    let rig = Rig::new();
    let answer = rig.call("DescribeInstanceTypes", json!({"InstanceTypes": ["r5.2xlarge"]}));
    let shown = &answer["InstanceTypes"][0];
    let figures = rig.options.catalog.instance("r5.2xlarge").unwrap();
    assert_eq!(shown["VCpuInfo"]["DefaultVCpus"], figures.vcpus);
    assert_eq!(shown["MemoryInfo"]["SizeInMiB"], 65_536);
    let ebs = &shown["EbsInfo"];
    assert_eq!(ebs["EbsOptimizedInfo"]["BaselineIops"], figures.baseline_iops);
    assert_eq!(ebs["EbsOptimizedInfo"]["BaselineThroughputInMBps"], 287.5);
    assert_eq!(ebs["MaximumEbsAttachments"], figures.ebs_slots);
    let mut seen = 0;
    let mut token = Value::Null;
    loop {
        let page = rig.call("DescribeInstanceTypes", json!({"MaxResults": 20, "NextToken": token}));
        seen += page["InstanceTypes"].as_array().unwrap().len();
        token = page.get("NextToken").cloned().unwrap_or(Value::Null);
        if token.is_null() {
            break;
        }
    }
    assert_eq!(seen, rig.options.catalog.instances().len());
    let arm = json!({"Filters": [
        {"Name": "processor-info.supported-architecture", "Values": ["arm64"]},
        {"Name": "instance-type", "Values": ["r6g.*"]}]});
    let found = rig.call("DescribeInstanceTypes", arm);
    assert!(column(&found["InstanceTypes"], "InstanceType").iter().all(|name| name.starts_with("r6g.")));
    assert!(!found["InstanceTypes"].as_array().unwrap().is_empty());
}

#[test]
fn the_checks_of_an_instance_pass_some_time_after_it_runs() {
    let rig = Rig::slow();
    let id = rig.instance();
    let statuses = |input: Value| rig.call("DescribeInstanceStatus", input)["InstanceStatuses"].clone();
    assert_eq!(statuses(json!({"InstanceIds": [id]})), json!([]), "running ones only");
    let all = statuses(json!({"IncludeAllInstances": true}));
    assert_eq!(all[0]["InstanceStatus"], json!({"Status": "not-applicable", "Details": []}));
    assert_eq!(rig.ec2.running(rig.now()), [], "it is pending");
    rig.pass(4_000);
    let running = rig.ec2.running(rig.now());
    assert_eq!(running.iter().map(|it| it.instance.as_str()).collect::<Vec<_>>(), [id.as_str()]);
    let status = || statuses(json!({"InstanceIds": [id]}))[0].clone();
    assert_eq!(status()["InstanceStatus"]["Status"], "initializing");
    rig.pass(30_000);
    for checks in ["InstanceStatus", "SystemStatus", "AttachedEbsStatus"] {
        assert_eq!(
            status()[checks],
            json!({"Status": "ok", "Details": [{"Name": "reachability", "Status": "passed"}]})
        );
    }
    let filter = |name: &str, value: &str| json!({"Filters": [{"Name": name, "Values": [value]}]});
    assert_eq!(column(&statuses(filter("instance-status.status", "ok")), "InstanceId"), [id.as_str()]);
    assert_eq!(statuses(filter("instance-status.reachability", "failed")), json!([]));
    rig.call("RebootInstances", json!({"InstanceIds": [id]}));
    rig.call("StopInstances", json!({"InstanceIds": [id]}));
    assert_eq!(rig.code("RebootInstances", json!({"InstanceIds": [id]})), "IncorrectInstanceState");
}

#[test]
fn what_terraform_reads_of_an_instance_is_answered() {
    let rig = Rig::new();
    let run = json!({"MinCount": 1, "MaxCount": 1, "InstanceType": "m5.large", "ImageId": "ami-12345678"});
    let id = text(&rig.call("RunInstances", run)["Instances"][0]["InstanceId"]);
    let volume = rig.volume();
    rig.attach(&volume, &id, "/dev/sdf");
    let attribute =
        |name: &str| rig.call("DescribeInstanceAttribute", json!({"InstanceId": id, "Attribute": name}));
    assert_eq!(attribute("disableApiTermination")["DisableApiTermination"], json!({"Value": false}));
    assert_eq!(
        attribute("instanceInitiatedShutdownBehavior")["InstanceInitiatedShutdownBehavior"]["Value"],
        "stop"
    );
    assert_eq!(attribute("userData")["UserData"], json!({}));
    assert_eq!(attribute("instanceType")["InstanceType"]["Value"], "m5.large");
    assert_eq!(attribute("blockDeviceMapping")["BlockDeviceMappings"][0]["Ebs"]["VolumeId"], volume.as_str());
    let image = rig.call("DescribeImages", json!({"ImageIds": ["ami-12345678"]}))["Images"][0].clone();
    assert_eq!((&image["ImageId"], &image["RootDeviceName"]), (&json!("ami-12345678"), &json!("/dev/xvda")));
    let owned = rig.call("DescribeImages", json!({"Owners": ["self"]}));
    assert_eq!(owned["Images"], json!([]));
    let credits = json!({"InstanceIds": [id]});
    assert_eq!(
        rig.code("DescribeInstanceCreditSpecifications", credits),
        "InstanceCreditSpecification.NotSupported"
    );
    let all = rig.call("DescribeInstanceCreditSpecifications", json!({}));
    assert_eq!(all["InstanceCreditSpecifications"], json!([]));
}

#[test]
fn a_launch_makes_its_volumes_and_ends_them_as_they_say() {
    let rig = Rig::new();
    let source = rig.snapshot(&rig.volume());
    let run = json!({"MinCount": 1, "MaxCount": 2, "InstanceType": "m5.large", "ClientToken": "launch",
    "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "of", "Value": "launch"}]}],
    "BlockDeviceMappings": [
        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8, "VolumeType": "gp3"}},
        {"DeviceName": "/dev/sdf", "Ebs": {"SnapshotId": source, "DeleteOnTermination": false}},
        {"DeviceName": "/dev/sdg", "NoDevice": ""},
    ]});
    let ran = rig.call("RunInstances", run.clone());
    let mapped = ran["Instances"][1]["BlockDeviceMappings"].clone();
    assert_eq!(mapped.as_array().unwrap().len(), 2, "{mapped}");
    assert_eq!(rig.call("RunInstances", run)["ReservationId"], ran["ReservationId"]);
    let launched = json!({"Filters": [{"Name": "tag:of", "Values": ["launch"]}]});
    let volumes = rig.call("DescribeVolumes", launched)["Volumes"].clone();
    assert_eq!(column(&volumes, "State"), ["in-use"; 4]);
    let of = |device: &str| {
        let has = |row: &&Value| row["Attachments"][0]["Device"] == device;
        volumes.as_array().unwrap().iter().find(has).unwrap().clone()
    };
    assert_eq!((&of("/dev/xvda")["Size"], &of("/dev/sdf")["Size"]), (&json!(8), &json!(1)));
    assert_eq!(of("/dev/sdf")["SnapshotId"], source.as_str());
    assert!(rig.socket(of("/dev/sdf")["VolumeId"].as_str().unwrap()).exists());
    let ids = column(&ran["Instances"], "InstanceId");
    rig.call("TerminateInstances", json!({"InstanceIds": ids}));
    let left = rig.call("DescribeVolumes", json!({"Filters": [{"Name": "tag:of", "Values": ["launch"]}]}));
    assert_eq!(column(&left["Volumes"], "State"), ["available"; 2]);
    assert_eq!(column(&left["Volumes"], "SnapshotId"), [source.as_str(); 2]);
}

#[test]
fn a_launch_that_fails_leaves_nothing() {
    let rig = Rig::with(|options| Options {
        attach_as: AttachAs::NbdSocket("/nonexistent/directory".into()),
        ..options.instant()
    });
    let before = rig.names();
    let run = json!({"MinCount": 1, "MaxCount": 1, "BlockDeviceMappings": [
        {"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 1}},
        {"DeviceName": "/dev/sdg", "Ebs": {"VolumeSize": 1}}]});
    let refused = rig.attempt("RunInstances", &run);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(rig.names(), before);
    assert_eq!(rig.call("DescribeInstances", json!({}))["Reservations"], json!([]));
    assert_eq!(rig.call("DescribeVolumes", json!({}))["Volumes"], json!([]));
}
