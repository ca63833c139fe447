//! Events of volumes and snapshots, as EventBridge has them (EBS user guide, `ebs-cloud-watch-events`).
//!
//! A call that succeeds says which events will follow, and when. They wait in memory: as in AWS, one can be lost.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::Ec2;
use super::ask::{Ask, iso};
use super::records::{AttachStage, Snapshot, Stage, Volume};
use super::state::State;
use crate::monitoring::{Envelope, EventSink};

/// Events that wait for their time.
#[derive(Debug, Default)]
pub(super) struct Events {
    sink: Option<Arc<dyn EventSink>>,
    /// With their times, in milliseconds since 1970.
    due: Mutex<Vec<(u64, Value)>>,
}

impl Events {
    /// Adds events that will be published at their times.
    pub(super) fn expect(&self, events: impl IntoIterator<Item = (u64, Value)>) {
        if self.sink.is_some() {
            self.due.lock().extend(events);
        }
    }

    /// Drops events that wait, where they do not come any more.
    pub(super) fn forget(&self, is_over: impl Fn(&Value) -> bool) {
        self.due.lock().retain(|(_, event)| !is_over(event));
    }
}

impl Ec2 {
    /// The same service, which publishes what happens to volumes and snapshots.
    #[must_use]
    pub fn with_events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.events.sink = Some(sink);
        self
    }

    /// Publishes the events whose time has come.
    pub(super) fn publish_due(&self, now: u64) {
        let Some(sink) = &self.events.sink else { return };
        let mut due = self.events.due.lock();
        due.sort_by_key(|(at, _)| *at);
        let ready = due.partition_point(|(at, _)| *at <= now);
        let later = due.split_off(ready);
        let ready = std::mem::replace(&mut *due, later);
        drop(due);
        ready.iter().for_each(|(_, event)| sink.publish(event));
    }

    /// Notes the events that follow from a volume that a call makes: it is available, and a copy is later initialized.
    pub(super) fn expect_events_of_new(&self, ask: &Ask<'_>, volume: &Volume) {
        let available = match &volume.failure {
            None => of_volume(ask, volume, "createVolume", "available", volume.available_ms),
            Some(cause) => of_key(ask, volume, "createVolume", cause, volume.available_ms),
        };
        let initialized = volume.copied.as_ref().map(|copied| {
            let at_ms = copied.completes_ms.max(volume.available_ms);
            let (at_ms, mut event) = of_volume(ask, volume, "initializeVolume", "succeeded", at_ms);
            event["detail"]["completionTime"] = json!(iso(at_ms));
            (at_ms, event)
        });
        self.events.expect(std::iter::once(available).chain(initialized));
    }

    /// Notes the events that follow from a call that has succeeded. Those of new volumes are noted where they are made,
    /// since a call that is repeated with its token succeeds and makes nothing.
    pub(super) fn expect_events(&self, ask: &Ask<'_>, output: &Map<String, Value>) {
        if self.events.sink.is_none() {
            return;
        }
        let text = |members: &Map<String, Value>, name: &str| {
            members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let given = |name: &str| ask.input.text(name).unwrap_or_default().to_owned();
        let state = self.state.lock();
        let events = match ask.call.action {
            "AttachVolume" => state.volumes().get(&given("VolumeId")).and_then(|volume| {
                let AttachStage::Failed { until_ms } = volume.attachment_to(&given("InstanceId"))?.stage
                else {
                    return None;
                };
                let cause = self.obstacle(volume.kms_key.as_deref()).unwrap_or_default();
                Some(vec![of_key(ask, volume, "attachVolume", &cause, until_ms)])
            }),
            "DeleteVolume" => state.volumes().get(&given("VolumeId")).and_then(|volume| match volume.stage {
                Stage::Gone { until_ms } => {
                    Some(vec![of_volume(ask, volume, "deleteVolume", "deleted", until_ms)])
                }
                _ => None,
            }),
            "ModifyVolume" => state.volumes().get(&given("VolumeId")).and_then(|volume| {
                let latest = volume.modifications.last()?;
                let event = |result, at| of_volume(ask, volume, "modifyVolume", result, at);
                Some(vec![event("optimizing", latest.optimizing_ms), event("completed", latest.completes_ms)])
            }),
            "CreateSnapshot" | "CopySnapshot" => {
                let snapshot = state.snapshots().get(&text(output, "SnapshotId"));
                snapshot.map(|snapshot| vec![of_snapshot(ask, snapshot)])
            }
            "CreateSnapshots" => of_snapshots(ask, &state, output).map(|event| vec![event]),
            _ => None,
        };
        drop(state);
        self.events.due.lock().extend(events.into_iter().flatten());
    }
}

fn of_volume(ask: &Ask<'_>, volume: &Volume, event: &str, result: &str, at_ms: u64) -> (u64, Value) {
    let Volume { region, owner, id, .. } = volume;
    let envelope = Envelope {
        source: "aws.ec2",
        detail_type: "EBS Volume Notification",
        owner,
        region,
        at_ms,
        resources: vec![format!("arn:aws:ec2:{region}:{owner}:volume/{id}")],
        detail: json!({"event": event, "result": result, "cause": "", "request-id": ask.call.request_id}),
    };
    (at_ms, envelope.event())
}

/// The event of what failed because of a volume's key, which is among its resources.
fn of_key(ask: &Ask<'_>, volume: &Volume, event: &str, cause: &str, at_ms: u64) -> (u64, Value) {
    let (at_ms, mut whole) = of_volume(ask, volume, event, "failed", at_ms);
    whole["detail"]["cause"] = cause.into();
    if let (Some(resources), Some(key)) = (whole["resources"].as_array_mut(), &volume.kms_key) {
        resources.push(key.as_str().into());
    }
    (at_ms, whole)
}

/// The ARN of a snapshot or of its volume in these events: account and Region are in each other's places.
fn odd_arn(region: &str, kind: &str, id: &str) -> String {
    format!("arn:aws:ec2::{region}:{kind}/{id}")
}

fn of_snapshot(ask: &Ask<'_>, snapshot: &Snapshot) -> (u64, Value) {
    let Snapshot { region, owner, id, .. } = snapshot;
    let arn = odd_arn(region, "snapshot", id);
    let mut detail = json!({
        "event": "createSnapshot",
        "result": if snapshot.error.is_none() { "succeeded" } else { "failed" },
        "cause": snapshot.error.as_deref().unwrap_or_default(),
        "request-id": "",
        "snapshot_id": arn,
        "source": odd_arn(region, "volume", &snapshot.volume),
        "startTime": iso(snapshot.started_ms),
        "endTime": iso(snapshot.completes_ms),
    });
    if snapshot.copy {
        let source = (ask.input.text("SourceRegion"), ask.input.text("SourceSnapshotId"));
        detail["event"] = json!("copySnapshot");
        detail["source"] =
            json!(odd_arn(source.0.unwrap_or(region), "snapshot", source.1.unwrap_or_default()));
        let incremental = snapshot.transfer.as_ref().is_some_and(|transfer| transfer.incremental);
        detail["incremental"] = json!(if incremental { "true" } else { "false" });
        let time_based = snapshot.completion_minutes.is_some();
        detail["transferType"] = json!(if time_based { "time-based" } else { "standard" });
    }
    let at_ms = snapshot.completes_ms;
    let envelope = Envelope {
        source: "aws.ec2",
        detail_type: "EBS Snapshot Notification",
        owner,
        region,
        at_ms,
        resources: vec![arn],
        detail,
    };
    (at_ms, envelope.event())
}

/// The one event of snapshots that were made together, once all are completed.
fn of_snapshots(ask: &Ask<'_>, state: &State, output: &Map<String, Value>) -> Option<(u64, Value)> {
    let ids = output.get("Snapshots")?.as_array()?.iter().filter_map(|row| row["SnapshotId"].as_str());
    let snapshots: Vec<&Snapshot> = ids.filter_map(|id| state.snapshots().get(id)).collect();
    let at_ms = snapshots.iter().map(|snapshot| snapshot.completes_ms).max()?;
    let region = ask.region();
    let row = |snapshot: &&Snapshot| {
        json!({
            "snapshot_id": odd_arn(region, "snapshot", &snapshot.id),
            "source": odd_arn(region, "volume", &snapshot.volume),
            "status": "completed",
        })
    };
    let envelope = Envelope {
        source: "aws.ec2",
        detail_type: "EBS Multi-Volume Snapshots Completion Status",
        owner: ask.account(),
        region,
        at_ms,
        resources: snapshots.iter().map(|snapshot| odd_arn(region, "snapshot", &snapshot.id)).collect(),
        detail: json!({
            "event": "createSnapshots",
            "result": "succeeded",
            "cause": "",
            "request-id": "",
            "startTime": iso(ask.now()),
            "endTime": iso(at_ms),
            "snapshots": snapshots.iter().map(row).collect::<Vec<_>>(),
        }),
    };
    Some((at_ms, envelope.event()))
}
