//! CreateSnapshot, CreateSnapshots and DeleteSnapshot.

use std::collections::BTreeSet;

use ebbtide_control::{CreateSnapshot, SNAPSHOT_BLOCK_BYTES, SnapshotView};
use serde_json::{Map, Value};

use super::access::{self, Right};
use super::ask::{Ask, Members};
use super::db::Change;
use super::devices::{ROOT_DEVICE, device_key};
use super::filter::Tags;
use super::ids::Kind;
use super::records::{AttachStage, Permissions, Snapshot, SnapshotExtras, Stage, Volume};
use super::state::State;
use super::{Ec2, bin, describe_snapshots, lock, quota, refuse, tags};
use crate::ApiError;

/// Most volumes of a CreateSnapshots call: the boot volume and 127 others.
const VOLUMES: usize = 128;

/// Refuses what this service does not have.
fn refuse_unbuilt(ask: &Ask<'_>) -> Result<(), ApiError> {
    if ask.input.text("OutpostArn").is_some_and(|arn| !arn.is_empty()) {
        return Err(refuse::unsupported("AWS Outposts"));
    }
    match ask.input.text("Location") {
        None | Some("" | "regional") => Ok(()),
        Some("local") => Err(refuse::unsupported("The location local")),
        Some(other) => Err(refuse::unknown_value(other, "location")),
    }
}

pub(super) fn description<'a>(ask: &Ask<'a>) -> Result<&'a str, ApiError> {
    let text = ask.input.text("Description").unwrap_or_default();
    if !text.is_ascii() || text.len() > 255 {
        let message = format!(
            "Value ({text}) for parameter description is invalid. It has at most 255 ASCII characters."
        );
        return Err(refuse::invalid_value(message));
    }
    Ok(text)
}

/// The right to take a snapshot of a volume.
fn right_to_new(ask: &Ask<'_>, volume: Option<&Volume>, id: &str, tags: &Tags) -> Right {
    let right = Right::on(ask, ask.call.action, Kind::Snapshot, "*").requests(tags);
    let right = right.with("ec2:ParentVolume", access::arn(ask, Kind::Volume, id));
    match volume {
        Some(volume) => right
            .with("ec2:Location", "regional")
            .with("ec2:SourceAvailabilityZone", &volume.zone)
            .with("ec2:VolumeSize", volume.shape_at(ask.now()).size_gib.to_string()),
        None => right,
    }
}

impl Ec2 {
    pub(super) fn create_snapshot(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let id = ask.input.text("VolumeId").unwrap_or_default();
        let tags = tags::of_new(ask.input, Kind::Snapshot)?;
        let found = state.seen_volume(ask, id);
        access::maybe_volume(ask, "CreateSnapshot", found, id).demand(ask)?;
        right_to_new(ask, found, id, &tags).demand(ask)?;
        access::demand_tagging(ask, Kind::Snapshot, &tags)?;
        ask.end_dry_run()?;
        ask.input.required("VolumeId", "volumeId")?;
        Kind::Volume.check(id, "volumeId")?;
        let volume = state.volume(ask, id)?.clone();
        refuse_unbuilt(ask)?;
        let description = description(ask)?.to_owned();
        self.may_take(ask, &state, &volume)?;
        quota::room_for_snapshots(&self.options.quotas, &state, ask, 1)?;
        let taken = self.take(ask, &mut state, vec![(volume, tags)], &description)?;
        let snapshot = &taken[0];
        let mut answer = describe_snapshots::members(ask, snapshot, "pending");
        Ok(answer.put("Progress", "").put("Tags", tags::members(&snapshot.tags)).end())
    }

    /// Whether a volume's state and its earlier snapshots allow another one.
    fn may_take(&self, ask: &Ask<'_>, state: &State, volume: &Volume) -> Result<(), ApiError> {
        let (now, id) = (ask.now(), &volume.id);
        let usable = matches!(volume.state(now), Some("available" | "in-use"));
        // Only what a request to this host is still carried out on is not.
        let settled = volume.attachments.iter().all(|at| at.stage != AttachStage::Making)
            || volume.attachments.iter().any(|at| at.stage == AttachStage::Ready);
        if !usable || !settled {
            let message = format!("Volume '{id}' is not in the 'available' or 'in-use' state.");
            return Err(refuse::incorrect_state(message));
        }
        let own = || state.snapshots_of(id).filter(|snapshot| !snapshot.copy);
        let spacing = self.options.timing.snapshot_spacing_ms;
        if own().any(|snapshot| now < snapshot.started_ms.saturating_add(spacing)) {
            return Err(ApiError::client(
                "SnapshotCreationPerVolumeRateExceeded",
                "The maximum per volume CreateSnapshot request rate has been exceeded. Use an increasing or variable \
                 sleep interval between requests.",
            ));
        }
        let hdd = matches!(volume.shape.kind.as_str(), "st1" | "sc1");
        let quotas = &self.options.quotas;
        let most = if hdd { quotas.pending_of_hdd } else { quotas.pending_of_volume };
        if own().filter(|snapshot| snapshot.state(now) == Some("pending")).count() >= most {
            let message =
                format!("Maximum allowed in-progress snapshots for a single volume exceeded: {most}.");
            return Err(ApiError::client("ConcurrentSnapshotLimitExceeded", message));
        }
        Ok(())
    }

    /// Takes snapshots at one instant: first records that a start after a kill takes back, then the snapshots, then the
    /// answerable records.
    fn take(
        &self,
        ask: &Ask<'_>,
        state: &mut State,
        wanted: Vec<(Volume, Tags)>,
        description: &str,
    ) -> Result<Vec<Snapshot>, ApiError> {
        let now = ask.now();
        let made_with = (ask.call.action == "CreateSnapshots").then(|| ask.call.request_id.to_owned());
        let mut taken: Vec<Snapshot> = Vec::new();
        for (volume, tags) in wanted {
            let mut id = state.new_id(Kind::Snapshot);
            while taken.iter().any(|other| other.id == id) {
                id = state.new_id(Kind::Snapshot);
            }
            taken.push(Snapshot {
                id,
                owner: volume.owner.clone(),
                region: volume.region.clone(),
                volume: volume.id.clone(),
                size_gib: volume.shape_at(now).size_gib,
                data_bytes: 0,
                kms_key: volume.kms_key.clone(),
                description: description.to_owned(),
                started_ms: now,
                completes_ms: now,
                stage: Stage::Making,
                error: None,
                copy: false,
                completion_minutes: None,
                permissions: Permissions::default(),
                tags,
                transfer: None,
                fast_restores: Vec::new(),
                direct: None,
                extras: SnapshotExtras { made_with: made_with.clone(), ..SnapshotExtras::default() },
            });
        }
        state.commit(taken.iter().cloned().map(Change::Snapshot).collect())?;
        let request = |snapshot: &Snapshot| CreateSnapshot {
            name: snapshot.id.clone(),
            volume: snapshot.volume.clone(),
        };
        let requests: Vec<_> = taken.iter().map(request).collect();
        let views = match self.control.create_snapshots(&requests) {
            Ok(views) => views,
            Err(error) => {
                state.commit(
                    taken.iter().map(|snapshot| Change::DropSnapshot(snapshot.id.clone())).collect(),
                )?;
                return Err(refuse::of_control(&error));
            }
        };
        for (snapshot, view) in taken.iter_mut().zip(&views) {
            let changed = self.changed_bytes(base_of(state, snapshot), &snapshot.id, view.data_bytes);
            self.note_taken(snapshot, view, changed);
        }
        state.commit(taken.iter().cloned().map(Change::Snapshot).collect())?;
        Ok(taken)
    }

    /// The bytes of the blocks in which a new snapshot differs from an earlier one; all of its data without one.
    pub(super) fn changed_bytes(&self, base: Option<&str>, id: &str, data_bytes: u64) -> u64 {
        let Some(base) = base else { return data_bytes };
        match self.control.changed_blocks(base, id, 0, usize::MAX) {
            Ok(changed) => {
                let blocks = changed.iter().filter(|block| block.in_second).count();
                u64::try_from(blocks).unwrap_or(u64::MAX).saturating_mul(SNAPSHOT_BLOCK_BYTES)
            }
            // Nothing in common, or the earlier one cannot be read.
            Err(_) => data_bytes,
        }
    }

    /// Puts what the control plane made into a record, with the time at which it is shown as completed: so much of it had to
    /// be moved.
    pub(super) fn note_taken(&self, snapshot: &mut Snapshot, view: &SnapshotView, moved_bytes: u64) {
        snapshot.data_bytes = view.data_bytes;
        // A volume that is shown before its modification is may be larger already.
        snapshot.size_gib = snapshot.size_gib.max(view.size_bytes.div_ceil(1 << 30));
        snapshot.completes_ms = snapshot.started_ms + self.pending_ms(moved_bytes);
        snapshot.stage = Stage::Ready;
    }

    /// How long a snapshot with so much data is pending, in milliseconds.
    pub(super) fn pending_ms(&self, data_bytes: u64) -> u64 {
        let timing = &self.options.timing;
        let copying =
            timing.snapshot_bytes_per_s.map_or(0, |rate| data_bytes.saturating_mul(1_000) / rate.max(1));
        timing.snapshot_ms + copying
    }

    pub(super) fn create_snapshots(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let Some(specification) = ask.input.structure("InstanceSpecification") else {
            return Err(refuse::missing("instanceSpecification"));
        };
        let tags = tags::of_new(ask.input, Kind::Snapshot)?;
        let id = specification.required("InstanceId", "instanceId")?;
        Kind::Instance.check(id, "instanceId")?;
        let excluded: BTreeSet<&str> = specification.texts("ExcludeDataVolumeIds").into_iter().collect();
        excluded.iter().try_for_each(|id| Kind::Volume.check(id, "excludeDataVolumeId"))?;
        access::permitted_instance(ask, &state, id)?;
        let is_boot = |volume: &Volume| {
            let device = volume.attachment_to(id).and_then(|at| device_key(&at.device));
            device == device_key(ROOT_DEVICE)
        };
        let without_boot = specification.flag("ExcludeBootVolume") == Some(true);
        let attached = state.volumes_of(id).filter(|(_, at)| at.stage == AttachStage::Ready);
        let all: Vec<Volume> = attached.map(|(volume, _)| volume.clone()).collect();
        let data = |volume: &Volume| !is_boot(volume);
        if let Some(other) = excluded.iter().find(|id| !all.iter().any(|it| it.id == **id && data(it))) {
            let message = format!("The data volume '{other}' is not attached to instance '{id}'.");
            return Err(refuse::invalid_value(message));
        }
        let chosen = all.into_iter().filter(|volume| {
            if is_boot(volume) { !without_boot } else { !excluded.contains(volume.id.as_str()) }
        });
        let chosen: Vec<Volume> = chosen.collect();
        for volume in &chosen {
            access::volume(ask, "CreateSnapshots", volume).demand(ask)?;
            right_to_new(ask, Some(volume), &volume.id, &tags).demand(ask)?;
        }
        access::demand_tagging(ask, Kind::Snapshot, &tags)?;
        ask.end_dry_run()?;
        refuse_unbuilt(ask)?;
        let description = description(ask)?.to_owned();
        let copies = match ask.input.text("CopyTagsFromSource") {
            None | Some("") => false,
            Some("volume") => true,
            Some(other) => return Err(refuse::unknown_value(other, "copyTagsFromSource")),
        };
        if chosen.is_empty() || chosen.len() > VOLUMES {
            let message =
                format!("{} volumes of instance '{id}' are chosen; 1 to {VOLUMES} can be.", chosen.len());
            return Err(refuse::invalid_value(message));
        }
        chosen.iter().try_for_each(|volume| self.may_take(ask, &state, volume))?;
        quota::room_for_snapshots(&self.options.quotas, &state, ask, chosen.len())?;
        let wanted = chosen.into_iter().map(|volume| {
            let mut all = if copies { volume.tags.clone() } else { Tags::new() };
            all.extend(tags.clone());
            (volume, all)
        });
        let taken = self.take(ask, &mut state, wanted.collect(), &description)?;
        let infos: Value = taken.iter().map(info).collect();
        Ok(Members::default().put("Snapshots", infos).end())
    }

    pub(super) fn delete_snapshot(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let id = ask.input.required("SnapshotId", "snapshotId")?;
        Kind::Snapshot.check(id, "snapshotId")?;
        let snapshot = access::permitted_snapshot(ask, &state, id)?.clone();
        ask.end_dry_run()?;
        lock::demand_unlocked(&snapshot, ask.now())?;
        if let Some(stage) = bin::for_snapshot(&state, &snapshot, ask.now()) {
            state.commit(vec![Change::Snapshot(Snapshot { stage, ..snapshot })])?;
            return Ok(Map::new());
        }
        self.remove_snapshot(ask.now(), &mut state, &snapshot)?;
        Ok(Map::new())
    }

    /// Deletes a snapshot: first the record, so that a start after a kill goes on with it.
    pub(super) fn remove_snapshot(
        &self,
        now: u64,
        state: &mut State,
        snapshot: &Snapshot,
    ) -> Result<(), ApiError> {
        let gone = Snapshot { stage: Stage::Gone { until_ms: now }, ..snapshot.clone() };
        state.commit(vec![Change::Snapshot(gone)])?;
        match self.forget_snapshot(snapshot) {
            Ok(()) => {
                state.commit(vec![Change::DropSnapshot(snapshot.id.clone())])?;
                self.end_fast_restores(now, &mut snapshot.clone(), |_| true);
                Ok(())
            }
            Err(error) => {
                state.commit(vec![Change::Snapshot(snapshot.clone())])?;
                Err(refuse::of_control(&error))
            }
        }
    }
}

/// The snapshot that a new one of a volume is incremental to: the latest one of the volume, or that from which the volume
/// was made.
fn base_of<'a>(state: &'a State, new: &Snapshot) -> Option<&'a str> {
    let is_base =
        |other: &&Snapshot| other.id != new.id && other.owner == new.owner && !other.copy && other.has_data();
    let latest = state.snapshots_of(&new.volume).filter(is_base).max_by_key(|other| other.started_ms);
    let origin = || state.snapshots().get(state.volumes().get(&new.volume)?.snapshot.as_ref()?);
    let origin = || origin().filter(|origin| origin.owner == new.owner && origin.has_data());
    latest.or_else(origin).map(|base| base.id.as_str())
}

/// What CreateSnapshots answers of a snapshot.
fn info(snapshot: &Snapshot) -> Value {
    Value::Object(
        Members::default()
            .put("Description", snapshot.description.as_str())
            .put("Tags", tags::members(&snapshot.tags))
            .put("Encrypted", snapshot.kms_key.is_some())
            .put("VolumeId", snapshot.volume.as_str())
            .put("State", "pending")
            .put("VolumeSize", snapshot.size_gib)
            .put_time("StartTime", snapshot.started_ms)
            .put("Progress", "")
            .put("OwnerId", snapshot.owner.as_str())
            .put("SnapshotId", snapshot.id.as_str())
            .put("SseType", describe_snapshots::sse_type(snapshot))
            .end(),
    )
}
