//! Events of volumes and snapshots, as EventBridge has them (EBS user guide, `ebs-cloud-watch-events`).
//!
//! What a call causes is noted with the time at which it will have happened. These notes are in memory; a start makes them
//! again from the records. The time until which everything is published is stored about once a second, and a second late, so
//! that a kill repeats the events of two seconds at most. It loses those alone whose records a later call replaced before they
//! were published, and failures of a call that was still going on at the last publication.

use std::fmt::Display;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::Ec2;
use super::ask::{Ask, iso};
use super::db::Change;
use super::records::{AttachFailure, AttachStage, Attachment, Setting, Snapshot, Stage, Volume};
use super::state::State;
use crate::monitoring::{Envelope, EventSink};
use crate::partition;

/// Where the time until which events are published is stored.
const PUBLISHED: &str = "events/published-ms";

/// How often it is stored, and how late: calls that run at the same time may note events that are a little older.
/// In milliseconds.
const STORE_MS: u64 = 1_000;

/// How often it is looked for volumes that have loaded all of their snapshots, in milliseconds. AWS is up to 5 minutes late.
const LOOK_MS: u64 = 60_000;

/// Events that wait for their time.
#[derive(Debug, Default)]
pub(super) struct Events {
    sink: Option<Arc<dyn EventSink>>,
    due: Mutex<Vec<Due>>,
    published: Mutex<Published>,
}

#[derive(Debug, Default)]
struct Published {
    /// Every event until then is published.
    until_ms: u64,
    stored_ms: u64,
    /// When volumes were last looked at.
    looked_ms: u64,
}

/// An event to come.
#[derive(Debug, Clone)]
pub(super) struct Due {
    /// In milliseconds since 1970; 0 is now, where that is not known yet.
    pub(super) at_ms: u64,
    pub(super) detail_type: &'static str,
    pub(super) owner: String,
    pub(super) region: String,
    pub(super) resources: Vec<String>,
    pub(super) detail: Value,
}

impl Due {
    fn event(self, now: u64) -> Value {
        let at_ms = if self.at_ms == 0 { now } else { self.at_ms };
        let envelope = Envelope {
            source: "aws.ec2",
            detail_type: self.detail_type,
            owner: &self.owner,
            region: &self.region,
            at_ms,
            resources: self.resources,
            detail: self.detail,
        };
        envelope.event()
    }

    /// The same, as the consequence of a request.
    fn of_request(mut self, ask: &Ask<'_>) -> Self {
        self.detail["request-id"] = json!(ask.call.request_id);
        self
    }
}

impl Events {
    /// Adds events that will be published at their times.
    pub(super) fn expect(&self, events: impl IntoIterator<Item = Due>) {
        self.due.lock().extend(events);
    }

    /// Drops events that wait, where they do not come any more.
    pub(super) fn forget(&self, is_over: impl Fn(&Due) -> bool) {
        self.due.lock().retain(|due| !is_over(due));
    }
}

impl Ec2 {
    /// The same service, which publishes what happens to volumes and snapshots.
    #[must_use]
    pub fn with_events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.events.sink = Some(sink);
        self
    }

    /// Notes an event to come.
    pub(super) fn expect(&self, due: Due) {
        self.events.due.lock().push(due);
    }

    /// Publishes the events whose time has come.
    pub(super) fn publish_due(&self, now: u64) {
        let mut due = self.events.due.lock();
        due.sort_by_key(|due| due.at_ms);
        let ready = due.partition_point(|due| due.at_ms <= now);
        let later = due.split_off(ready);
        let ready = std::mem::replace(&mut *due, later);
        drop(due);
        let is_some = !ready.is_empty();
        for due in ready {
            let event = due.event(now);
            self.events.sink.iter().for_each(|sink| sink.publish(&event));
        }
        let mut published = self.events.published.lock();
        if is_some {
            published.until_ms = published.until_ms.max(now);
        }
        let safe_ms = published.until_ms.min(now.saturating_sub(STORE_MS));
        let is_due = safe_ms == published.until_ms || safe_ms >= published.stored_ms.saturating_add(STORE_MS);
        if safe_ms > published.stored_ms && is_due {
            self.store(&mut published, safe_ms);
        }
    }

    /// Stores until when everything is published.
    fn store(&self, published: &mut Published, until_ms: u64) {
        let setting = Setting { key: PUBLISHED.to_owned(), value: json!(until_ms) };
        match self.state.lock().commit(vec![Change::Setting(setting)]) {
            Ok(()) => published.stored_ms = until_ms,
            Err(error) => tracing::warn!(%error, "a start after this one repeats events"),
        }
    }

    /// Stores what is not stored yet, before the process ends.
    pub(super) fn close_events(&self) {
        let mut published = self.events.published.lock();
        if published.until_ms > published.stored_ms {
            let until_ms = published.until_ms;
            self.store(&mut published, until_ms);
        }
    }

    /// Notes the events that an earlier process has noted and not published, by the records.
    pub(super) fn expect_again(&self) {
        let mut state = self.state.lock();
        let Some(until_ms) = state.setting::<u64>(PUBLISHED) else {
            // Events of a home that never had any begin here; those of an older one are not known.
            if state.volumes().is_empty() && state.snapshots().is_empty() {
                let setting = Setting { key: PUBLISHED.to_owned(), value: json!(0) };
                if let Err(error) = state.commit(vec![Change::Setting(setting)]) {
                    tracing::warn!(%error, "a start after this one may lose events");
                }
            }
            return;
        };
        let mut due: Vec<Due> = state.volumes().values().flat_map(of_record).collect();
        let mut together: Vec<(&str, Vec<&Snapshot>)> = Vec::new();
        for snapshot in
            state.snapshots().values().filter(|it| it.stage == Stage::Ready && it.direct.is_none())
        {
            match snapshot.extras.made_with.as_deref() {
                None => due.push(of_snapshot(snapshot)),
                Some(request) if snapshot.completes_ms > until_ms => {
                    match together.iter_mut().find(|(with, _)| *with == request) {
                        Some((_, snapshots)) => snapshots.push(snapshot),
                        None => together.push((request, vec![snapshot])),
                    }
                }
                Some(_) => {}
            }
        }
        due.extend(together.into_iter().filter_map(|(_, snapshots)| of_snapshots(&snapshots)));
        due.retain(|due| due.at_ms > until_ms);
        drop(state);
        self.events.due.lock().extend(due);
        let mut published = self.events.published.lock();
        (published.until_ms, published.stored_ms) = (until_ms, until_ms);
    }

    /// Notes the events that follow from a volume that a call makes: it is available, and a copy is later initialized.
    pub(super) fn expect_events_of_new(&self, ask: &Ask<'_>, volume: &Volume) {
        let events = std::iter::once(of_creation(volume)).chain(of_initialization(volume));
        self.events.expect(events.map(|due| due.of_request(ask)));
    }

    /// Notes the events that follow from a call that has succeeded. Those of new volumes are noted where they are made,
    /// since a call that is repeated with its token succeeds and makes nothing.
    pub(super) fn expect_events(&self, ask: &Ask<'_>, output: &Map<String, Value>) {
        let text = |members: &Map<String, Value>, name: &str| {
            members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let given = |name: &str| ask.input.text(name).unwrap_or_default().to_owned();
        let state = self.state.lock();
        let events = match ask.call.action {
            "AttachVolume" => state.volumes().get(&given("VolumeId")).and_then(|volume| {
                Some(vec![of_attachment(volume, volume.attachment_to(&given("InstanceId"))?)?])
            }),
            "DeleteVolume" => {
                state.volumes().get(&given("VolumeId")).and_then(of_deletion).map(|due| vec![due])
            }
            "ModifyVolume" => state.volumes().get(&given("VolumeId")).map(of_modification),
            "CreateSnapshot" | "CopySnapshot" => {
                // The event of a snapshot has no request.
                let snapshot = state.snapshots().get(&text(output, "SnapshotId"));
                self.events.due.lock().extend(snapshot.map(of_snapshot));
                None
            }
            "CreateSnapshots" => {
                let rows = output.get("Snapshots").and_then(Value::as_array).into_iter().flatten();
                let ids = rows.filter_map(|row| row["SnapshotId"].as_str());
                let snapshots: Vec<_> = ids.filter_map(|id| state.snapshots().get(id)).collect();
                self.events.due.lock().extend(of_snapshots(&snapshots));
                None
            }
            _ => None,
        };
        drop(state);
        let events = events.into_iter().flatten().map(|due| due.of_request(ask));
        self.events.due.lock().extend(events);
    }

    /// Notes the deletion of a volume whose record says that it is gone.
    pub(super) fn expect_deletion(&self, state: &State, id: &str) {
        if let Some(due) = state.volumes().get(id).and_then(of_deletion) {
            self.expect(due);
        }
    }

    /// Looks, from time to time, for volumes that have loaded all of their snapshots.
    pub(super) fn look_for_initialized(&self, now: u64) {
        {
            let mut published = self.events.published.lock();
            if now < published.looked_ms.saturating_add(LOOK_MS) {
                return;
            }
            published.looked_ms = now;
        }
        let mut state = self.state.lock();
        let waits = |volume: &&Volume| {
            let can_load = volume.snapshot.is_some() && volume.failure.is_none() && !volume.lost;
            volume.stage == Stage::Ready && can_load && !volume.initialized
        };
        let volumes: Vec<&Volume> = state.volumes().values().filter(waits).collect();
        let found = self.loading(&volumes);
        let mut changes = Vec::new();
        let mut due = Vec::new();
        for (volume, loading) in volumes.into_iter().zip(found) {
            if loading.as_ref().is_some_and(|it| it.state != ebbtide_control::InitializationState::Completed)
            {
                continue;
            }
            // One that had all blocks from the beginning was not initialized.
            if loading.is_some() {
                let mut event = of_volume(volume, "initializeVolume", "succeeded", now);
                event.detail["completionTime"] = json!(iso(now));
                due.push(event);
            }
            changes.push(Change::Volume(Volume { initialized: true, ..volume.clone() }));
        }
        if changes.is_empty() {
            return;
        }
        match state.commit(changes) {
            Ok(()) => self.events.due.lock().extend(due),
            Err(error) => tracing::warn!(%error, "volumes that are initialized are looked for again"),
        }
    }
}

/// What follows from a volume's record.
fn of_record(volume: &Volume) -> Vec<Due> {
    match volume.stage {
        Stage::Ready => {
            // Of a volume that a command made, no call was ever answered.
            let creation = volume.name.is_none().then(|| of_creation(volume));
            let of_new = creation.into_iter().chain(of_initialization(volume));
            let of_attachments = volume.attachments.iter().filter_map(|it| of_attachment(volume, it));
            of_new.chain(of_modification(volume)).chain(of_attachments).collect()
        }
        Stage::Gone { .. } => of_deletion(volume).into_iter().collect(),
        Stage::Making | Stage::Binned { .. } => Vec::new(),
    }
}

/// That a new volume can be used, or never will because of its key.
pub(super) fn of_creation(volume: &Volume) -> Due {
    match &volume.failure {
        None => of_volume(volume, "createVolume", "available", volume.available_ms),
        Some(cause) => of_key(volume, "createVolume", cause, volume.available_ms),
    }
}

/// That a copy of a volume is initialized; None of any other volume.
fn of_initialization(volume: &Volume) -> Option<Due> {
    let copied = volume.copied.as_ref()?;
    let at_ms = copied.completes_ms.max(volume.available_ms);
    let mut due = of_volume(volume, "initializeVolume", "succeeded", at_ms);
    due.detail["completionTime"] = json!(iso(at_ms));
    Some(due)
}

/// That an attachment failed; None of one that did not.
pub(super) fn of_attachment(volume: &Volume, attachment: &Attachment) -> Option<Due> {
    let AttachStage::Failed { until_ms } = attachment.stage else { return None };
    Some(match attachment.failure.as_ref()? {
        AttachFailure::Key(cause) => of_key(volume, "attachVolume", cause, until_ms),
        AttachFailure::Host(cause) => of_failure(volume, "attachVolume", cause, until_ms),
    })
}

pub(super) fn of_deletion(volume: &Volume) -> Option<Due> {
    match volume.stage {
        Stage::Gone { until_ms } => Some(of_volume(volume, "deleteVolume", "deleted", until_ms)),
        Stage::Making | Stage::Ready | Stage::Binned { .. } => None,
    }
}

/// Of the latest modification.
pub(super) fn of_modification(volume: &Volume) -> Vec<Due> {
    let Some(latest) = volume.modifications.last() else { return Vec::new() };
    let event = |result, at| of_volume(volume, "modifyVolume", result, at);
    vec![event("optimizing", latest.optimizing_ms), event("completed", latest.completes_ms)]
}

/// An event of a volume at a time in milliseconds since 1970; 0 is as soon as possible.
pub(super) fn of_volume(volume: &Volume, event: &str, result: &str, at_ms: u64) -> Due {
    let Volume { region, owner, id, .. } = volume;
    Due {
        at_ms,
        detail_type: "EBS Volume Notification",
        owner: owner.clone(),
        region: region.clone(),
        resources: vec![format!("arn:{}:ec2:{region}:{owner}:volume/{id}", partition::of_region(region))],
        detail: json!({"event": event, "result": result, "cause": "", "request-id": ""}),
    }
}

/// What this host did not allow.
pub(super) fn of_failure(volume: &Volume, event: &str, cause: &dyn Display, at_ms: u64) -> Due {
    let mut due = of_volume(volume, event, "failed", at_ms);
    due.detail["cause"] = json!(cause.to_string());
    due
}

/// The event of what failed because of a volume's key, which is among its resources.
fn of_key(volume: &Volume, event: &str, cause: &str, at_ms: u64) -> Due {
    let mut due = of_failure(volume, event, &cause, at_ms);
    due.resources.extend(volume.kms_key.clone());
    due
}

/// The ARN of a snapshot or of its volume in these events: account and Region are in each other's places.
fn odd_arn(region: &str, kind: &str, id: &str) -> String {
    format!("arn:{}:ec2::{region}:{kind}/{id}", partition::of_region(region))
}

fn of_snapshot(snapshot: &Snapshot) -> Due {
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
        let source = snapshot.extras.copied_from.as_ref();
        let source = source.map(|(region, id)| odd_arn(region, "snapshot", id));
        detail["event"] = json!("copySnapshot");
        detail["source"] = json!(source.unwrap_or_default());
        let incremental = snapshot.transfer.as_ref().is_some_and(|transfer| transfer.incremental);
        detail["incremental"] = json!(if incremental { "true" } else { "false" });
        let time_based = snapshot.completion_minutes.is_some();
        detail["transferType"] = json!(if time_based { "time-based" } else { "standard" });
    }
    of_snapshot_at(owner, region, arn, snapshot.completes_ms, detail)
}

fn of_snapshot_at(owner: &str, region: &str, arn: String, at_ms: u64, detail: Value) -> Due {
    let (owner, region) = (owner.to_owned(), region.to_owned());
    Due { at_ms, detail_type: "EBS Snapshot Notification", owner, region, resources: vec![arn], detail }
}

/// A snapshot that is shared with an account: the event is that account's.
pub(super) fn of_share(snapshot: &Snapshot, with: &str, at_ms: u64) -> Due {
    let arn = odd_arn(&snapshot.region, "snapshot", &snapshot.id);
    let detail = json!({
        "event": "shareSnapshot",
        "result": "succeeded",
        "cause": "",
        "request-id": "",
        "snapshot_id": arn,
        "source": snapshot.owner,
        "startTime": iso(at_ms),
        "endTime": iso(at_ms),
    });
    of_snapshot_at(with, &snapshot.region, arn, at_ms, detail)
}

/// The one event of snapshots that were made together, once all are completed.
fn of_snapshots(snapshots: &[&Snapshot]) -> Option<Due> {
    let first = snapshots.first()?;
    let at_ms = snapshots.iter().map(|snapshot| snapshot.completes_ms).max()?;
    let region = &first.region;
    let row = |snapshot: &&Snapshot| {
        json!({
            "snapshot_id": odd_arn(region, "snapshot", &snapshot.id),
            "source": odd_arn(region, "volume", &snapshot.volume),
            "status": "completed",
        })
    };
    Some(Due {
        at_ms,
        detail_type: "EBS Multi-Volume Snapshots Completion Status",
        owner: first.owner.clone(),
        region: region.clone(),
        resources: snapshots.iter().map(|snapshot| odd_arn(region, "snapshot", &snapshot.id)).collect(),
        detail: json!({
            "event": "createSnapshots",
            "result": "succeeded",
            "cause": "",
            "request-id": "",
            "startTime": iso(first.started_ms),
            "endTime": iso(at_ms),
            "snapshots": snapshots.iter().map(row).collect::<Vec<_>>(),
        }),
    })
}
