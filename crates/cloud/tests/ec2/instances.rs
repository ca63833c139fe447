//! Stand-ins for instances: run, stopped, started, described, and their types.

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
