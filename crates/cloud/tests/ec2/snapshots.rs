//! Snapshots: taken, several at one instant, copied, shared, deleted; volumes made of them.

use ebbtide_cloud::monitoring::Inventory as _;
use ebbtide_control::ControlPlane as _;
use serde_json::json;

use crate::direct::filled;
use crate::support::{ACCOUNT, OTHER, REGION, Rig, column, text};

#[test]
fn a_snapshot_is_pending_and_then_completed() {
    let rig = Rig::slow();
    let volume = rig.volume();
    rig.pass(2_000);
    let made = rig.call("CreateSnapshot", json!({"VolumeId": volume, "Description": "before"}));
    let id = text(&made["SnapshotId"]);
    assert_eq!((&made["State"], &made["Progress"]), (&json!("pending"), &json!("")));
    assert_eq!((&made["VolumeSize"], &made["OwnerId"]), (&json!(1), &json!(ACCOUNT)));
    assert_eq!(rig.names().1, [id.as_str()]);
    rig.pass(2_000);
    let shown = rig.show_snapshot(&id);
    assert_eq!((&shown["State"], &shown["Progress"]), (&json!("pending"), &json!("50%")));
    assert_eq!(shown.get("CompletionTime"), None);
    rig.pass(2_000);
    let shown = rig.show_snapshot(&id);
    assert_eq!((&shown["State"], &shown["Progress"]), (&json!("completed"), &json!("100%")));
    assert_eq!(shown["FullSnapshotSizeInBytes"], 0);
    assert_eq!(shown["Description"], "before");
    rig.call("DeleteSnapshot", json!({"SnapshotId": id}));
    assert_eq!(rig.code("DescribeSnapshots", json!({"SnapshotIds": [id]})), "InvalidSnapshot.NotFound");
    assert_eq!(rig.names().1, [""; 0]);
}

#[test]
fn a_volume_of_a_snapshot_has_its_size_and_needs_it_completed() {
    let rig = Rig::slow();
    let volume = rig.volume_of(json!({"Size": 3, "VolumeType": "gp3"}));
    rig.pass(2_000);
    let snapshot = rig.snapshot(&volume);
    let input = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": snapshot, "VolumeType": "gp3"});
    let refused = rig.refused("CreateVolume", input.clone());
    assert_eq!(refused.message, "Snapshot is in invalid state - pending");
    rig.pass(4_000);
    let made = rig.call("CreateVolume", input);
    assert_eq!((&made["Size"], &made["SnapshotId"]), (&json!(3), &json!(snapshot)));
    let detail = rig.control.volume(made["VolumeId"].as_str().unwrap(), None).unwrap();
    assert_eq!(detail.volume.from_snapshot.as_deref(), Some(snapshot.as_str()));
    let small = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": snapshot, "Size": 2});
    assert_eq!(rig.code("CreateVolume", small), "InvalidParameterValue");
    rig.call(
        "CreateVolume",
        json!({"AvailabilityZone": "us-east-1a", "SnapshotId": snapshot, "Size": 5, "VolumeInitializationRate": 100}),
    );
    // The snapshot goes, its volumes stay.
    rig.call("DeleteSnapshot", json!({"SnapshotId": snapshot}));
    assert_eq!(rig.call("DescribeVolumes", json!({}))["Volumes"].as_array().unwrap().len(), 3);
}

#[test]
fn snapshots_of_a_volume_are_spaced_and_few_at_a_time() {
    let rig = Rig::with(|mut options| {
        options.timing.snapshot_ms = 3_600_000;
        options
    });
    let volume = rig.volume_of(json!({"Size": 125, "VolumeType": "st1"}));
    let other = rig.volume();
    rig.pass(2_000);
    rig.snapshot(&volume);
    let refused = rig.refused("CreateSnapshot", json!({"VolumeId": volume}));
    assert_eq!(refused.code, "SnapshotCreationPerVolumeRateExceeded");
    rig.pass(15_000);
    assert_eq!(rig.code("CreateSnapshot", json!({"VolumeId": volume})), "ConcurrentSnapshotLimitExceeded");
    for _ in 0..5 {
        rig.snapshot(&other);
        rig.pass(15_000);
    }
    assert_eq!(rig.code("CreateSnapshot", json!({"VolumeId": other})), "ConcurrentSnapshotLimitExceeded");
}

#[test]
fn all_volumes_of_an_instance_are_snapshot_together_or_none() {
    let rig = Rig::new();
    let instance = rig.instance();
    rig.call("StopInstances", json!({"InstanceIds": [instance]}));
    let boot = rig.volume_of(json!({"Size": 8, "TagSpecifications": [
        {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "boot"}, {"Key": "own", "Value": "1"}]}]}));
    let (data, log) = (rig.volume(), rig.volume());
    rig.attach(&boot, &instance, "/dev/xvda");
    rig.attach(&data, &instance, "/dev/sdf");
    rig.attach(&log, &instance, "/dev/sdg");
    let take = |specification: serde_json::Value| {
        rig.attempt(
            "CreateSnapshots",
            &json!({
                "InstanceSpecification": specification,
                "CopyTagsFromSource": "volume",
                "TagSpecifications": [{"ResourceType": "snapshot", "Tags": [{"Key": "Name", "Value": "set"}]}],
            }),
        )
    };
    let taken = take(json!({"InstanceId": instance})).unwrap();
    let snapshots = &taken["Snapshots"];
    let mut of: Vec<String> = column(snapshots, "VolumeId");
    of.sort();
    let mut all = vec![boot.clone(), data.clone(), log.clone()];
    all.sort();
    assert_eq!(of, all);
    assert_eq!(column(snapshots, "State"), ["pending"; 3]);
    let of_boot = snapshots.as_array().unwrap().iter().find(|one| one["VolumeId"] == boot.as_str()).unwrap();
    assert_eq!(of_boot["Tags"], json!([{"Key": "Name", "Value": "set"}, {"Key": "own", "Value": "1"}]));
    let some =
        take(json!({"InstanceId": instance, "ExcludeBootVolume": true, "ExcludeDataVolumeIds": [log]}))
            .unwrap();
    assert_eq!(column(&some["Snapshots"], "VolumeId"), [data.as_str()]);
    let wrong = take(json!({"InstanceId": instance, "ExcludeDataVolumeIds": [boot]})).unwrap_err();
    assert_eq!(wrong.code, "InvalidParameterValue");
    // One volume is gone from under the service: none is snapshot.
    let before = rig.names().1;
    rig.control
        .detach_volume(&ebbtide_control::DetachVolume { name: log.clone(), force: true }, &|_| ())
        .unwrap();
    rig.control.delete_volume(&log).unwrap();
    assert_eq!(take(json!({"InstanceId": instance})).unwrap_err().status, 500);
    assert_eq!(rig.names().1, before);
    let listed = rig.call("DescribeSnapshots", json!({"OwnerIds": ["self"]}));
    assert_eq!(listed["Snapshots"].as_array().unwrap().len(), 4);
}

#[test]
fn a_copy_has_its_own_life() {
    let rig = Rig::new();
    let volume = rig.volume();
    let source = rig.snapshot(&volume);
    let west =
        |action: &str, input: serde_json::Value| rig.try_as(ACCOUNT, "us-west-2", action, &input).unwrap();
    let input = json!({"SourceRegion": REGION, "SourceSnapshotId": source, "Description": "copy"});
    let copy = text(&west("CopySnapshot", input)["SnapshotId"]);
    rig.call("DeleteSnapshot", json!({"SnapshotId": source}));
    let shown = west("DescribeSnapshots", json!({"SnapshotIds": [copy]}))["Snapshots"][0].clone();
    assert_eq!((&shown["State"], &shown["VolumeSize"]), (&json!("completed"), &json!(1)));
    assert_eq!((&shown["VolumeId"], &shown["TransferType"]), (&json!("vol-ffffffff"), &json!("standard")));
    let made = west("CreateVolume", json!({"AvailabilityZone": "us-west-2a", "SnapshotId": copy}));
    assert_eq!(made["Size"], 1);
}

#[test]
fn a_copy_of_nothing_is_answered_and_fails_later() {
    let rig = Rig::slow();
    let input = json!({"SourceRegion": REGION, "SourceSnapshotId": "snap-0123456789abcdef0"});
    let copy = text(&rig.call("CopySnapshot", input)["SnapshotId"]);
    assert_eq!(rig.show_snapshot(&copy)["State"], "pending");
    rig.pass(5_000);
    let shown = rig.show_snapshot(&copy);
    assert_eq!(
        (&shown["State"], &shown["StateMessage"]),
        (&json!("error"), &json!("Source snapshot is not found"))
    );
    assert_eq!(rig.names().1, [""; 0]);
    let rig = rig.reopened();
    assert_eq!(rig.show_snapshot(&copy)["State"], "error");
    rig.call("DeleteSnapshot", json!({"SnapshotId": copy}));
}

#[test]
fn a_shared_snapshot_is_seen_and_used_by_those_it_is_shared_with() {
    let rig = Rig::new();
    let id = rig.snapshot(&rig.volume());
    let theirs = |input: serde_json::Value| {
        let answer = rig.try_as(OTHER, REGION, "DescribeSnapshots", &input).unwrap();
        column(&answer["Snapshots"], "SnapshotId")
    };
    let attribute = || {
        let input = json!({"SnapshotId": id, "Attribute": "createVolumePermission"});
        rig.call("DescribeSnapshotAttribute", input)["CreateVolumePermissions"].clone()
    };
    let modify = |permission: serde_json::Value| {
        rig.call("ModifySnapshotAttribute", json!({"SnapshotId": id, "CreateVolumePermission": permission}));
    };
    let create = || {
        let input = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": id});
        rig.try_as(OTHER, REGION, "CreateVolume", &input)
    };
    assert_eq!(theirs(json!({})), [""; 0]);
    // It exists, and is left out.
    assert_eq!(theirs(json!({"SnapshotIds": [id]})), [""; 0]);
    assert_eq!(create().unwrap_err().code, "InvalidSnapshot.NotFound");
    modify(json!({"Add": [{"UserId": OTHER}]}));
    assert_eq!(attribute(), json!([{"UserId": OTHER}]));
    assert_eq!(theirs(json!({})), [id.as_str()]);
    assert_eq!(theirs(json!({"OwnerIds": ["self"]})), [""; 0]);
    assert_eq!(theirs(json!({"RestorableByUserIds": ["self"]})), [id.as_str()]);
    assert_eq!(theirs(json!({"RestorableByUserIds": ["all"]})), [""; 0]);
    create().unwrap();
    // Whoever uses it does not own it.
    let delete = rig.try_as(OTHER, REGION, "DeleteSnapshot", &json!({"SnapshotId": id})).unwrap_err();
    assert_eq!(delete.code, "InvalidSnapshot.NotFound");
    modify(json!({"Remove": [{"UserId": OTHER}]}));
    assert_eq!(theirs(json!({})), [""; 0]);
    rig.call(
        "ModifySnapshotAttribute",
        json!({"SnapshotId": id, "OperationType": "add", "GroupNames": ["all"], "Attribute": "createVolumePermission"}),
    );
    assert_eq!(theirs(json!({"RestorableByUserIds": ["all"]})), [id.as_str()]);
    rig.call("ResetSnapshotAttribute", json!({"SnapshotId": id, "Attribute": "createVolumePermission"}));
    assert_eq!(attribute(), json!([]));
}

#[test]
fn volumes_of_a_snapshot_are_loaded_and_their_status_says_how_far() {
    use ebbtide_device::host::Home;
    use ebbtide_device::store::{StoreOptions, VolumeStore};
    let rig = Rig::new();
    let source = rig.volume();
    let rig = rig.reopened_after(|home| {
        let store =
            VolumeStore::open(&Home::open(home).unwrap().store_dir(), StoreOptions::default()).unwrap();
        // 100 of the blocks of 512 KiB that are loaded.
        let volume = store.open_volume(&source).unwrap();
        (0..100).for_each(|block| volume.write_at(&[7; 4096], block * (512 << 10)).unwrap());
    });
    let snapshot = rig.snapshot(&source);
    let status_of =
        |id: &str| rig.call("DescribeVolumeStatus", json!({"VolumeIds": [id]}))["VolumeStatuses"][0].clone();
    let state = |status: &serde_json::Value| status["VolumeStatus"]["Details"][2].clone();
    assert_eq!(status_of(&source).get("InitializationStatusDetails"), None);

    let lazy = rig.volume_of(json!({"SnapshotId": snapshot, "VolumeType": "gp3"}));
    let status = status_of(&lazy);
    assert_eq!(
        status["InitializationStatusDetails"],
        json!({"InitializationType": "default", "Progress": 0})
    );
    assert_eq!(state(&status), json!({"Name": "initialization-state", "Status": "initializing"}));
    let waiting = json!({"Filters": [{"Name": "volume-status.details-status", "Values": ["initializing"]}]});
    let found = rig.call("DescribeVolumeStatus", waiting);
    assert_eq!(column(&found["VolumeStatuses"], "VolumeId"), [lazy.as_str()]);

    let rated = rig.volume_of(json!({"SnapshotId": snapshot, "VolumeInitializationRate": 100}));
    let view = rig.control.volume(&rated, None).unwrap().volume.initialization.unwrap();
    assert_eq!((view.mode.to_string().as_str(), view.total_bytes), ("rate=100MiB/s", 100 * (512 << 10)));
    // 50 MiB at 100 MiB/s, by the clock of the volumes.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let done = loop {
        let status = status_of(&rated);
        let details = &status["InitializationStatusDetails"];
        let (progress, left) = (&details["Progress"], &details["EstimatedTimeToCompleteInSeconds"]);
        assert_eq!(details["InitializationType"], "provisioned-rate");
        assert_eq!(*left, if *progress == 100 { 0 } else { 1 }, "{details}");
        if *progress == 100 {
            break status;
        }
        assert_eq!(state(&status)["Status"], "initializing");
        assert!(std::time::Instant::now() < deadline, "{details}");
        std::thread::yield_now();
    };
    assert_eq!(state(&done)["Status"], "completed");
    assert_eq!(status_of(&lazy)["InitializationStatusDetails"]["Progress"], 0);
    let all = rig.call("DescribeVolumeStatus", json!({}))["VolumeStatuses"].clone();
    let shown = |id: &str| all.as_array().unwrap().iter().find(|one| one["VolumeId"] == id).unwrap().clone();
    let progress = |id: &str| shown(id)["InitializationStatusDetails"]["Progress"].clone();
    assert_eq!([&source, &lazy, &rated].map(|id| progress(id)), [json!(null), json!(0), json!(100)]);
    for rate in [99, 301, -1] {
        let input = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": snapshot, "VolumeInitializationRate": rate});
        assert_eq!(rig.code("CreateVolume", input), "InvalidParameterValue", "{rate}");
    }
}

/// A completed snapshot of so many blocks, put together from a parent.
fn of_blocks(rig: &Rig, parent: Option<&str>, blocks: std::ops::Range<u64>) -> String {
    let snapshot = rig.start(parent);
    let count = usize::try_from(blocks.end - blocks.start).unwrap();
    blocks.for_each(|block| rig.put(&snapshot, block, &filled(9)));
    rig.complete(&snapshot, count);
    rig.pass(60_000);
    snapshot
}

/// How long a snapshot is pending, in milliseconds.
fn pending_ms(rig: &Rig, snapshot: &str) -> u64 {
    let began = rig.now();
    while rig.show_snapshot(snapshot)["State"] == "pending" {
        rig.pass(250);
    }
    rig.now() - began
}

#[test]
fn a_snapshot_is_pending_by_what_has_changed_since_the_one_before() {
    // 1 MiB a second, so that a block takes half a second.
    let rig = Rig::with(|mut options| {
        options.timing.snapshot_bytes_per_s = Some(1 << 20);
        options
    });
    let first = of_blocks(&rig, None, 0..4);
    let volume = rig.volume_of(json!({"SnapshotId": first, "VolumeType": "gp3"}));
    rig.pass(20_000);
    let second = rig.snapshot(&volume);
    assert_eq!(pending_ms(&rig, &second), 4_000, "it has all of its volume's snapshot");
    assert_eq!(rig.show_snapshot(&second)["FullSnapshotSizeInBytes"], 4 << 19);
    rig.call("DeleteSnapshot", json!({"SnapshotId": first}));
    rig.call("DeleteSnapshot", json!({"SnapshotId": second}));
    rig.pass(15_000);
    let third = rig.snapshot(&volume);
    assert_eq!(pending_ms(&rig, &third), 6_000, "nothing before it is left: 4 blocks");
}

#[test]
fn a_copy_is_incremental_to_the_one_before_and_its_bytes_are_a_metric() {
    let rig = Rig::with(|mut options| {
        options.timing.snapshot_bytes_per_s = Some(1 << 20);
        options
    });
    let first = of_blocks(&rig, None, 0..4);
    let volume = rig.volume_of(json!({"SnapshotId": first, "VolumeType": "gp3"}));
    rig.pass(20_000);
    let taken = rig.snapshot(&volume);
    rig.pass(20_000);
    let copy_to = |region: &str| {
        let input = json!({"SourceRegion": REGION, "SourceSnapshotId": taken});
        text(&rig.try_as(ACCOUNT, region, "CopySnapshot", &input).unwrap()["SnapshotId"])
    };
    // The bytes that the minutes after now have, until the copy is completed.
    let moved = |region: &str| {
        let (mut bytes, mut minutes) = (0.0, Vec::new());
        for _ in 0..4 {
            let gauges = rig.ec2.gauges(rig.now()..rig.now() + 3_000);
            rig.pass(3_000);
            let gauges = gauges.iter().filter(|gauge| gauge.region == region);
            let of_minute: f64 = gauges.map(|gauge| gauge.value).sum();
            minutes.push(of_minute > 0.0);
            bytes += of_minute;
        }
        (bytes, minutes)
    };
    let west = copy_to("us-west-2");
    assert_eq!(moved("us-west-2"), (2_097_152.0, vec![true, true, false, false]), "4 blocks in 6 seconds");
    copy_to("us-west-2");
    assert_eq!(moved("us-west-2").0, 0.0, "the copy before has all of it");
    copy_to(REGION);
    assert_eq!(moved(REGION).0, 0.0, "within a Region nothing is moved");
    let answer =
        rig.try_as(ACCOUNT, "us-west-2", "DescribeSnapshots", &json!({"SnapshotIds": [west]})).unwrap();
    assert_eq!(answer["Snapshots"][0]["State"], "completed");
}
