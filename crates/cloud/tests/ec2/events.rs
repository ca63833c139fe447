//! Events of volumes and snapshots, at the times at which their states are reached.

use std::sync::{Arc, Mutex};

use ebbtide_cloud::ec2::{AttachAs, Ec2, Options};
use ebbtide_cloud::monitoring::{EventSink, Inventory as _};
use ebbtide_control::{ControlPlane, DetachVolume};
use serde_json::{Value, json};

use crate::support::{self, ACCOUNT, REGION, Recorder, Rig, START_MS, WITHOUT_ROOT, sockets, text};

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

/// A service whose events are kept, over volumes that stay when it ends.
struct Watched {
    ec2: Ec2,
    kept: Arc<Kept>,
    rights: Recorder,
}

impl Watched {
    fn open(dir: &std::path::Path, control: &Arc<ebbtide_control::LiveControl>, options: Options) -> Self {
        let plane: Arc<dyn ControlPlane> = control.clone();
        let kept = Arc::new(Kept::default());
        let sink: Arc<dyn EventSink> = Arc::<Kept>::clone(&kept);
        let ec2 = Ec2::open(&support::home(dir), plane, options).unwrap().with_events(sink);
        Self { ec2, kept, rights: Recorder::default() }
    }

    fn call(&self, now: u64, action: &str, input: Value) -> Value {
        Value::Object(support::call(&self.ec2, &self.rights, now, (ACCOUNT, REGION), action, &input).unwrap())
    }

    /// Event and result of what was published since the last look.
    fn news(&self, now: u64) -> Vec<String> {
        self.ec2.tick(now);
        let events = std::mem::take(&mut *self.kept.0.lock().unwrap());
        let text = |event: &Value, name: &str| event["detail"][name].as_str().unwrap().to_owned();
        events.iter().map(|event| format!("{} {}", text(event, "event"), text(event, "result"))).collect()
    }
}

fn volume_of(watched: &Watched, now: u64) -> String {
    let input = json!({"AvailabilityZone": "us-east-1a", "Size": 10, "VolumeType": "gp3"});
    text(&watched.call(now, "CreateVolume", input)["VolumeId"])
}

#[test]
fn events_to_come_survive_an_orderly_end_and_a_kill_and_come_once() {
    for kills in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let control = Arc::new(support::control(dir.path()));
        let watched = Watched::open(dir.path(), &control, sockets(dir.path()));
        let mut now = START_MS;
        let volume = volume_of(&watched, now);
        now += 5_000;
        assert_eq!(watched.news(now), ["createVolume available"]);
        watched.call(now, "ModifyVolume", json!({"VolumeId": volume, "Iops": 4_000}));
        let doomed = volume_of(&watched, now);
        now += 2_000;
        watched.news(now);
        now += 2_000;
        watched.news(now);
        watched.call(now, "DeleteVolume", json!({"VolumeId": doomed}));
        watched.call(now, "CreateSnapshot", json!({"VolumeId": volume}));
        // What is leaked does nothing at its end, as what is killed.
        let end = |watched: Watched| {
            if kills {
                let _: &mut Watched = Box::leak(Box::new(watched));
            }
        };
        end(watched);
        let watched = Watched::open(dir.path(), &control, sockets(dir.path()));
        now += 30 * 24 * 3_600_000;
        let mut news = watched.news(now);
        news.sort();
        assert_eq!(
            news,
            [
                "createSnapshot succeeded",
                "deleteVolume deleted",
                "modifyVolume completed",
                "modifyVolume optimizing"
            ],
            "{kills}"
        );
        now += 2_000;
        watched.news(now);
        end(watched);
        let watched = Watched::open(dir.path(), &control, sockets(dir.path()));
        assert_eq!(watched.news(now + 10_000), [""; 0], "once: {kills}");
        drop(watched);
        control.end();
    }
}

#[test]
fn what_fails_and_what_ends_with_its_instance_is_an_event_too() {
    let dir = tempfile::tempdir().unwrap();
    let control = Arc::new(support::control(dir.path()));
    let watched = Watched::open(dir.path(), &control, sockets(dir.path()).instant());
    let now = START_MS;
    let mapping = json!([{"DeviceName": "/dev/sdh", "Ebs": {"VolumeSize": 1}}]);
    let run = json!({"MinCount": 1, "MaxCount": 1, "ImageId": WITHOUT_ROOT, "BlockDeviceMappings": mapping});
    let instance = text(&watched.call(now, "RunInstances", run)["Instances"][0]["InstanceId"]);
    assert_eq!(watched.news(now), ["createVolume available"]);
    let (kept, ended) = (volume_of(&watched, now), volume_of(&watched, now));
    for (volume, device) in [(&kept, "/dev/sdf"), (&ended, "/dev/sdg")] {
        let attach = json!({"VolumeId": volume, "InstanceId": instance, "Device": device});
        watched.call(now, "AttachVolume", attach);
    }
    let mapping = json!([{"DeviceName": "/dev/sdg", "Ebs": {"DeleteOnTermination": true}}]);
    let change = json!({"InstanceId": instance, "BlockDeviceMappings": mapping});
    watched.call(now, "ModifyInstanceAttribute", change);
    watched.news(now);
    watched.call(now, "TerminateInstances", json!({"InstanceIds": [instance]}));
    assert_eq!(watched.news(now), ["deleteVolume deleted"; 2]);

    let snapshot = text(&watched.call(now, "CreateSnapshot", json!({"VolumeId": kept}))["SnapshotId"]);
    watched.news(now);
    let share = json!({"SnapshotId": snapshot, "OperationType": "add", "UserIds": [support::OTHER]});
    watched.call(now, "ModifySnapshotAttribute", share.clone());
    watched.call(now, "ModifySnapshotAttribute", share);
    let events = watched.kept.0.lock().unwrap().clone();
    assert_eq!(events.len(), 1, "the second time nothing is shared: {events:?}");
    assert_eq!(
        (&events[0]["account"], &events[0]["detail"]["source"]),
        (&json!(support::OTHER), &json!(ACCOUNT))
    );
    watched.news(now);

    // An empty snapshot has nothing to load.
    let restored = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": snapshot});
    watched.call(now, "CreateVolume", restored);
    watched.news(now);
    assert_eq!(watched.news(now + 61_000), ["initializeVolume succeeded"]);
    assert_eq!(watched.news(now + 200_000), [""; 0], "once");
    drop(watched);
    control.end();
}

#[test]
fn an_attachment_that_this_host_does_not_allow_is_an_event_once_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let control = Arc::new(support::control(dir.path()));
    let options = sockets(dir.path()).instant();
    let now = START_MS;
    let nowhere =
        Options { attach_as: AttachAs::NbdSocket("/nonexistent/directory".into()), ..options.clone() };
    let watched = Watched::open(dir.path(), &control, options.clone());
    let kept = volume_of(&watched, now);
    let run = json!({"MinCount": 1, "MaxCount": 1, "ImageId": WITHOUT_ROOT});
    let instance = text(&watched.call(now, "RunInstances", run.clone())["Instances"][0]["InstanceId"]);
    let attach = json!({"VolumeId": kept, "InstanceId": instance, "Device": "/dev/sdf"});
    watched.call(now + 300_000, "AttachVolume", attach.clone());
    watched.news(now + 300_000);
    drop(watched);
    control.detach_volume(&DetachVolume { name: kept.clone(), force: true }, &|_| ()).unwrap();
    let watched = Watched::open(dir.path(), &control, nowhere.clone());
    assert_eq!(watched.news(now + 301_000), ["reattachVolume failed"]);
    let refused = support::call(
        &watched.ec2,
        &watched.rights,
        now + 302_000,
        (ACCOUNT, REGION),
        "AttachVolume",
        &attach,
    );
    assert!(refused.is_err(), "{refused:?}");
    drop(watched);
    // Before it was published.
    let watched = Watched::open(dir.path(), &control, nowhere.clone());
    assert_eq!(watched.news(now + 302_000), ["attachVolume failed"]);
    let shown = watched.call(now + 302_000, "DescribeVolumes", json!({"VolumeIds": [kept]}));
    assert_eq!(
        (&shown["Volumes"][0]["State"], &shown["Volumes"][0]["Attachments"]),
        (&json!("available"), &json!([]))
    );
    drop(watched);
    let watched = Watched::open(dir.path(), &control, nowhere);
    assert_eq!(watched.news(now + 310_000), [""; 0], "once");
    drop(watched);
    // The record that is kept of it is no attachment: metrics are those of the instance that has the volume.
    let watched = Watched::open(dir.path(), &control, options);
    let other = text(&watched.call(now + 400_000, "RunInstances", run)["Instances"][0]["InstanceId"]);
    let attach = json!({"VolumeId": kept, "InstanceId": other, "Device": "/dev/sdf"});
    watched.call(now + 400_000, "AttachVolume", attach);
    let attached: Vec<String> =
        watched.ec2.attached(now + 400_000).into_iter().map(|one| one.instance).collect();
    assert_eq!(attached, [other]);
    drop(watched);
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
