//! Fast snapshot restore: states, credits, volumes with and without a credit, events, metrics.

use std::sync::Arc;

use ebbtide_cloud::ec2::Ec2;
use ebbtide_cloud::monitoring::{EventSink, Inventory as _};
use ebbtide_control::ControlPlane;
use serde_json::{Value, json};

use crate::events::Kept;
use crate::support::{self, ACCOUNT, OTHER, REGION, Recorder, Rig, START_MS, column, sockets, text};

const ZONE: &str = "us-east-1a";
const MINUTE_MS: u64 = 60_000;

/// A completed snapshot of a volume of a size.
fn snapshot(rig: &Rig, size_gib: u64) -> String {
    let volume = rig.volume_of(json!({"Size": size_gib, "VolumeType": "gp3"}));
    rig.pass(20_000);
    let snapshot = rig.snapshot(&volume);
    rig.pass(20_000);
    snapshot
}

fn of(snapshot: &str, zone: &str) -> Value {
    json!({"SourceSnapshotIds": [snapshot], "AvailabilityZones": [zone]})
}

fn enable(rig: &Rig, snapshot: &str) -> Value {
    rig.call("EnableFastSnapshotRestores", of(snapshot, ZONE))
}

fn shown(rig: &Rig) -> Value {
    rig.call("DescribeFastSnapshotRestores", json!({}))["FastSnapshotRestores"].clone()
}

fn restore(rig: &Rig, snapshot: &str, zone: &str) -> String {
    rig.volume_of(json!({"SnapshotId": snapshot, "VolumeType": "gp3", "AvailabilityZone": zone}))
}

/// Whether a volume was restored fast, and whether it loads blocks when they are touched.
fn is_fast(rig: &Rig, volume: &str) -> bool {
    let is_fast = rig.show(volume).get("FastRestored") == Some(&json!(true));
    let loading = rig.control.initializations(&[volume]).unwrap();
    assert_eq!(loading[0].is_none(), is_fast, "a fast restored volume has all blocks");
    is_fast
}

/// The balance of credits and the size of the bucket of the only snapshot.
fn credits(rig: &Rig) -> Option<(f64, f64)> {
    let gauges = rig.ec2.gauges(rig.now()..rig.now() + 1);
    let value = |metric| gauges.iter().find(|gauge| gauge.metric == metric).map(|gauge| gauge.value);
    Some((value("FastSnapshotRestoreCreditsBalance")?, value("FastSnapshotRestoreCreditsBucketSize")?))
}

#[test]
fn fast_snapshot_restore_passes_through_its_states_by_the_size_of_the_snapshot() {
    let rig = Rig::slow();
    let snapshot = snapshot(&rig, 512);
    let began = rig.now();
    let answer = enable(&rig, &snapshot);
    assert_eq!(answer["Unsuccessful"], json!([]));
    let row = &answer["Successful"][0];
    assert_eq!(
        (&row["State"], &row["StateTransitionReason"], &row["OwnerId"], &row["AvailabilityZoneId"]),
        (&json!("enabling"), &json!("Client.UserInitiated"), &json!(ACCOUNT), &json!("use1-az1"))
    );
    rig.pass(36_000);
    assert_eq!(shown(&rig)[0]["State"], "optimizing");
    rig.pass(30 * MINUTE_MS - 1);
    assert_eq!(shown(&rig)[0]["State"], "optimizing", "60 minutes a TiB");
    rig.pass(1);
    let row = shown(&rig)[0].clone();
    assert_eq!(row["State"], "enabled");
    assert_eq!(row["StateTransitionReason"], "Client.UserInitiated - Lifecycle state transition");
    assert_eq!(row["OptimizingTime"], json!((began + 36_000) / 1_000));
    assert_eq!(row["EnabledTime"], json!((began + 36_000 + 30 * MINUTE_MS) / 1_000));
    assert_eq!(enable(&rig, &snapshot)["Successful"][0]["State"], "enabled", "repeated");
    let answer = rig.call("DisableFastSnapshotRestores", of(&snapshot, ZONE));
    assert_eq!(answer["Successful"][0]["State"], "disabling");
    let again = enable(&rig, &snapshot);
    assert_eq!(
        again["Unsuccessful"][0]["FastSnapshotRestoreStateErrors"][0]["Error"]["Code"],
        "IncorrectState"
    );
    rig.pass(36_000);
    let rig = rig.reopened();
    assert_eq!(shown(&rig)[0]["State"], "disabled");
    let answer = rig.call("DisableFastSnapshotRestores", of(&snapshot, ZONE));
    assert_eq!(
        (&answer["Successful"], answer["Unsuccessful"][0]["SnapshotId"].as_str()),
        (&json!([]), Some(snapshot.as_str()))
    );
    assert_eq!(enable(&rig, &snapshot)["Successful"][0]["State"], "enabling");
}

#[test]
fn a_volume_takes_a_credit_or_loads_lazily() {
    let rig = Rig::slow();
    let snapshot = snapshot(&rig, 128);
    enable(&rig, &snapshot);
    assert!(!is_fast(&rig, &restore(&rig, &snapshot, ZONE)), "it is not enabled yet");
    rig.pass(36_000 + 450_000);
    assert_eq!(credits(&rig), Some((0.0, 8.0)), "it begins without credits");
    rig.pass(449_000);
    assert!(!is_fast(&rig, &restore(&rig, &snapshot, ZONE)), "less than one credit");
    rig.pass(1_000);
    assert_eq!(credits(&rig), Some((1.0, 8.0)), "8 credits an hour");
    assert!(!is_fast(&rig, &restore(&rig, &snapshot, "us-east-1b")), "another zone");
    let rated =
        rig.volume_of(json!({"SnapshotId": snapshot, "VolumeType": "gp3", "VolumeInitializationRate": 100}));
    assert!(!is_fast(&rig, &rated), "a provisioned rate wins");
    assert_eq!(credits(&rig), Some((1.0, 8.0)), "neither takes the credit");
    let fast = restore(&rig, &snapshot, ZONE);
    assert!(is_fast(&rig, &fast));
    assert_eq!(credits(&rig), Some((0.0, 8.0)));
    assert!(!is_fast(&rig, &restore(&rig, &snapshot, ZONE)), "it had one credit");
    let filtered = json!({"Filters": [{"Name": "fast-restored", "Values": ["true"]}]});
    let found = rig.call("DescribeVolumes", filtered);
    assert_eq!(column(&found["Volumes"], "VolumeId"), [fast.as_str()]);
    let status = rig.call("DescribeVolumeStatus", json!({"VolumeIds": [fast]}));
    assert_eq!(status["VolumeStatuses"][0]["InitializationStatusDetails"]["Progress"], 100);
    rig.pass(10 * 60 * MINUTE_MS);
    let rig = rig.reopened();
    assert_eq!(credits(&rig), Some((8.0, 8.0)), "the bucket is full");
}

#[test]
fn every_item_of_a_call_has_its_own_error_and_the_quota_counts_snapshots() {
    let rig = Rig::with(|mut options| {
        options.quotas.fast_restores = 1;
        options.instant()
    });
    let (first, second) = (rig.snapshot(&rig.volume()), rig.snapshot(&rig.volume()));
    let missing = "snap-0123456789abcdef0";
    let answer = rig.call(
        "EnableFastSnapshotRestores",
        json!({"SourceSnapshotIds": [first, missing, second], "AvailabilityZoneIds": ["use1-az1", "use1-az2", "use1-az9"]}),
    );
    assert_eq!(column(&answer["Successful"], "AvailabilityZone"), ["us-east-1a", "us-east-1b"]);
    assert_eq!(column(&answer["Successful"], "SnapshotId"), [first.as_str(), first.as_str()]);
    let failed = |item: usize, zone: usize| {
        let error = &answer["Unsuccessful"][item]["FastSnapshotRestoreStateErrors"][zone];
        (text(&error["AvailabilityZoneId"]), text(&error["Error"]["Code"]))
    };
    let pair = |zone: &str, code: &str| (zone.to_owned(), code.to_owned());
    assert_eq!(column(&answer["Unsuccessful"], "SnapshotId"), [first.as_str(), missing, second.as_str()]);
    assert_eq!(failed(0, 0), pair("use1-az9", "InvalidZone.NotFound"));
    assert_eq!(failed(1, 0), pair("use1-az1", "InvalidSnapshot.NotFound"));
    assert_eq!(failed(2, 1), pair("use1-az2", "ResourceLimitExceeded"));
    assert!(is_fast(&rig, &restore(&rig, &first, "us-east-1b")), "with --instant there are credits at once");
    let page = rig.call("DescribeFastSnapshotRestores", json!({"MaxResults": 1}));
    let rest =
        rig.call("DescribeFastSnapshotRestores", json!({"MaxResults": 1, "NextToken": page["NextToken"]}));
    let zone = |page: &Value| text(&page["FastSnapshotRestores"][0]["AvailabilityZone"]);
    assert_eq!(
        (zone(&page), zone(&rest), rest.get("NextToken")),
        ("us-east-1a".into(), "us-east-1b".into(), None)
    );
    let filters =
        json!([{"Name": "state", "Values": ["enabled"]}, {"Name": "availability-zone", "Values": ["*b"]}]);
    let found = rig.call("DescribeFastSnapshotRestores", json!({"Filters": filters}));
    assert_eq!(column(&found["FastSnapshotRestores"], "State"), ["enabled"]);
    rig.call("DisableFastSnapshotRestores", of(&first, ZONE));
    rig.call("DisableFastSnapshotRestores", of(&first, "us-east-1b"));
    assert_eq!(enable(&rig, &second)["Unsuccessful"], json!([]), "the quota is free again");
    rig.call("DeleteSnapshot", json!({"SnapshotId": second}));
    assert_eq!(column(&shown(&rig), "SnapshotId"), [first.as_str(), first.as_str()]);
}

#[test]
fn an_account_has_credits_of_its_own_until_the_snapshot_is_not_shared_any_more() {
    let rig = Rig::new();
    let snapshot = rig.snapshot(&rig.volume());
    let enable =
        |account| rig.try_as(account, REGION, "EnableFastSnapshotRestores", &of(&snapshot, ZONE)).unwrap();
    let share = |verb: &str| {
        let change = json!({verb: [{"UserId": OTHER}]});
        rig.call(
            "ModifySnapshotAttribute",
            json!({"SnapshotId": snapshot, "CreateVolumePermission": change}),
        );
    };
    assert_eq!(enable(OTHER)["Successful"], json!([]), "it is not shared");
    share("Add");
    assert_eq!(enable(OTHER)["Successful"][0]["OwnerId"], OTHER);
    assert_eq!(shown(&rig), json!([]), "changes apply to the caller's account only");
    let input = json!({"SnapshotId": snapshot, "VolumeType": "gp3", "AvailabilityZone": ZONE});
    let make = |account| text(&rig.try_as(account, REGION, "CreateVolume", &input).unwrap()["VolumeId"]);
    let (own, others) = (make(ACCOUNT), make(OTHER));
    let loading = rig.control.initializations(&[&own, &others]).unwrap();
    assert_eq!((loading[0].is_some(), loading[1].is_some()), (true, false));
    share("Remove");
    share("Add");
    let found = rig.try_as(OTHER, REGION, "DescribeFastSnapshotRestores", &json!({})).unwrap();
    assert_eq!(found["FastSnapshotRestores"][0]["State"], "disabled");
}

#[test]
fn events_follow_the_states_and_none_comes_of_a_state_that_is_not_reached() {
    let dir = tempfile::tempdir().unwrap();
    let control = Arc::new(support::control(dir.path()));
    let plane: Arc<dyn ControlPlane> = control.clone();
    let ec2 = Ec2::open(&support::home(dir.path()), plane, sockets(dir.path())).unwrap();
    let kept = Arc::new(Kept::default());
    let sink: Arc<dyn EventSink> = Arc::<Kept>::clone(&kept);
    let ec2 = ec2.with_events(sink);
    let rights = Recorder::default();
    let call = |now: u64, action: &str, input: Value| {
        Value::Object(support::call(&ec2, &rights, now, (ACCOUNT, REGION), action, &input).unwrap())
    };
    let states = |now: u64| {
        ec2.tick(now);
        let events = std::mem::take(&mut *kept.0.lock().unwrap());
        let events = events.into_iter().filter(|event| event["detail"].get("snapshot-id").is_some());
        events
            .map(|event| format!("{} {}", event["detail"]["zone"], event["detail"]["state"]))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let volume =
        text(&call(START_MS, "CreateVolume", json!({"AvailabilityZone": ZONE, "Size": 1024}))["VolumeId"]);
    let snapshot = text(&call(START_MS + 5_000, "CreateSnapshot", json!({"VolumeId": volume}))["SnapshotId"]);
    let now = START_MS + 60_000;
    let zones = json!(["us-east-1a", "us-east-1b"]);
    call(
        now,
        "EnableFastSnapshotRestores",
        json!({"SourceSnapshotIds": [snapshot], "AvailabilityZones": zones}),
    );
    assert_eq!(states(now), r#""us-east-1a" "enabling", "us-east-1b" "enabling""#);
    assert_eq!(states(now + 36_000), r#""us-east-1a" "optimizing", "us-east-1b" "optimizing""#);
    call(now + 40_000, "DisableFastSnapshotRestores", of(&snapshot, "us-east-1b"));
    assert_eq!(states(now + 80_000), r#""us-east-1b" "disabling", "us-east-1b" "disabled""#);
    assert_eq!(states(now + 2 * 60 * MINUTE_MS), r#""us-east-1a" "enabled""#);
    call(now + 3 * 60 * MINUTE_MS, "DeleteSnapshot", json!({"SnapshotId": snapshot}));
    assert_eq!(states(now + 4 * 60 * MINUTE_MS), r#""us-east-1a" "disabling", "us-east-1a" "disabled""#);
    control.end();
}

#[test]
fn an_archived_snapshot_has_no_fast_restore_and_gets_none() {
    let rig = Rig::new();
    let id = snapshot(&rig, 16);
    enable(&rig, &id);
    assert_eq!(shown(&rig)[0]["State"], "enabled");
    rig.call("ModifySnapshotTier", json!({"SnapshotId": id, "StorageTier": "archive"}));
    assert_eq!(shown(&rig)[0]["State"], "disabled");
    let refused = &enable(&rig, &id)["Unsuccessful"][0]["FastSnapshotRestoreStateErrors"][0]["Error"];
    assert_eq!(refused["Code"], "IncorrectState", "{refused}");
}
