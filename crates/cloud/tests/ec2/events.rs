//! Events of volumes and snapshots, at the times at which their states are reached.

use std::sync::{Arc, Mutex};

use ebbtide_cloud::ec2::Ec2;
use ebbtide_cloud::monitoring::{EventSink, Inventory as _};
use ebbtide_control::ControlPlane;
use serde_json::{Value, json};

use crate::support::{self, ACCOUNT, REGION, Recorder, Rig, START_MS, sockets, text};

#[derive(Debug, Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<Value>>);

impl EventSink for Kept {
    fn publish(&self, event: &Value) {
        self.0.lock().unwrap().push(event.clone());
    }
}

#[test]
fn events_follow_a_volume_and_its_snapshots_through_their_states() {
    let dir = tempfile::tempdir().unwrap();
    let control = Arc::new(support::control(dir.path()));
    let plane: Arc<dyn ControlPlane> = control.clone();
    let ec2 = Ec2::open(&support::home(dir.path()), plane, sockets(dir.path())).unwrap();
    let kept = Arc::new(Kept::default());
    let sink: Arc<dyn EventSink> = Arc::<Kept>::clone(&kept);
    let ec2 = ec2.with_events(sink);
    let (rights, mut now) = (Recorder::default(), START_MS);
    let call = |now: u64, action: &str, input: Value| {
        Value::Object(support::call(&ec2, &rights, now, (ACCOUNT, REGION), action, &input).unwrap())
    };
    // The details of the events since the last look, with the time of each.
    let news = || {
        let events = std::mem::take(&mut *kept.0.lock().unwrap());
        let short = |event: &Value| {
            assert_eq!((&event["source"], &event["account"]), (&json!("aws.ec2"), &json!(ACCOUNT)));
            format!(
                "{} {}",
                event["detail"]["event"].as_str().unwrap(),
                event["detail"]["result"].as_str().unwrap()
            )
        };
        (events.iter().map(short).collect::<Vec<_>>(), events)
    };
    let create =
        json!({"AvailabilityZone": "us-east-1a", "Size": 10, "VolumeType": "gp3", "ClientToken": "t"});
    let volume = text(&call(now, "CreateVolume", create.clone())["VolumeId"]);
    assert!(news().0.is_empty(), "it is still creating");
    now += 1_499;
    ec2.tick(now);
    assert!(news().0.is_empty());
    now += 1;
    ec2.tick(now);
    let (names, events) = news();
    assert_eq!(names, ["createVolume available"]);
    assert_eq!(events[0]["resources"], json!([format!("arn:aws:ec2:{REGION}:{ACCOUNT}:volume/{volume}")]));
    assert_eq!(events[0]["detail-type"], "EBS Volume Notification");
    assert_eq!(events[0]["detail"]["request-id"], "test");
    call(now, "CreateVolume", create);
    call(now, "ModifyVolume", json!({"VolumeId": volume, "Iops": 4_000}));
    let snapshot = text(&call(now, "CreateSnapshot", json!({"VolumeId": volume}))["SnapshotId"]);
    now += 30 * 24 * 3_600_000;
    ec2.tick(now);
    let (mut names, events) = news();
    names.sort();
    assert_eq!(
        names,
        ["createSnapshot succeeded", "modifyVolume completed", "modifyVolume optimizing"],
        "once each"
    );
    let of_snapshot =
        events.iter().find(|event| event["detail-type"] == "EBS Snapshot Notification").unwrap();
    let arn = format!("arn:aws:ec2::{REGION}:snapshot/{snapshot}");
    assert_eq!(
        (&of_snapshot["resources"], &of_snapshot["detail"]["snapshot_id"]),
        (&json!([arn]), &json!(arn))
    );
    call(now, "DeleteVolume", json!({"VolumeId": volume}));
    assert!(news().0.is_empty());
    ec2.tick(now + 1_500);
    assert_eq!(news().0, ["deleteVolume deleted"]);
    control.end();
}

#[test]
fn a_call_that_is_repeated_has_its_events_once_also_in_the_same_millisecond() {
    let rig = Rig::slow();
    let kept = Arc::new(Kept::default());
    let sink: Arc<dyn EventSink> = Arc::<Kept>::clone(&kept);
    let ec2 = Ec2::open(&support::home(rig.dir.path()), rig.control.clone(), rig.options.clone()).unwrap();
    let ec2 = ec2.with_events(sink);
    let mut now = rig.now();
    let mut events_of = |action: &str, input: &Value| {
        let answers = [0, 0, 1].map(|later| {
            support::call(&ec2, &rig.rights, now + later, (ACCOUNT, REGION), action, input).unwrap()
        });
        now += 10_000;
        ec2.tick(now);
        let events = std::mem::take(&mut *kept.0.lock().unwrap());
        let details = events.iter().map(|event| event["detail"].clone()).collect::<Vec<_>>();
        (Value::Object(answers[0].clone()), details)
    };
    let names = |details: &[Value]| -> Vec<String> { details.iter().map(|it| text(&it["event"])).collect() };
    let create =
        json!({"AvailabilityZone": "us-east-1a", "Size": 10, "VolumeType": "gp3", "ClientToken": "t"});
    let (created, details) = events_of("CreateVolume", &create);
    assert_eq!(names(&details), ["createVolume"]);
    let copy = json!({"SourceVolumeId": created["VolumeId"], "ClientToken": "c"});
    let (_, details) = events_of("CopyVolumes", &copy);
    assert_eq!(names(&details), ["createVolume", "initializeVolume"]);
    let completed = |detail: &Value| detail.get("completionTime").is_some();
    assert_eq!(details.iter().map(completed).collect::<Vec<_>>(), [false, true]);
}
