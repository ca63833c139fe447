//! The recycle bin: what retention rules keep of deleted snapshots and volumes, for how long, and its way back (EBS user
//! guide, `recycle-bin`).
//!
//! What is in the bin keeps its data: the control plane deletes it at the end of its time. The rules are the service
//! `rbin`'s, and settings of this service's records.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ask::{Ask, Members};
use super::db::Change;
use super::filter::Tags;
use super::ids::Kind;
use super::page::{Page, Paging};
use super::records::{Setting, Snapshot, Stage, Volume};
use super::retention::DAY_MS;
use super::state::{State, is_of};
use super::{Ec2, access, describe_snapshots, describe_volumes, places, refuse};
use crate::{ApiError, RecordsError};

/// How often it is looked for what has been in the bin long enough, in milliseconds.
const EMPTY_MS: u64 = 60_000;

/// What a rule keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kept {
    /// Snapshots.
    #[serde(rename = "EBS_SNAPSHOT")]
    Snapshots,
    /// Volumes.
    #[serde(rename = "EBS_VOLUME")]
    Volumes,
}

/// A tag that a rule names; without a value, any value matches.
pub(crate) type RuleTag = (String, Option<String>);

/// A retention rule of an account in a Region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// Eleven letters and digits.
    pub(crate) id: String,
    pub(crate) keeps: Kept,
    pub(crate) days: u64,
    pub(crate) description: String,
    /// Tags of the rule itself.
    pub(crate) tags: BTreeMap<String, String>,
    /// Resources with one of these are kept; all, where there are none.
    pub(crate) of: Vec<RuleTag>,
    /// Resources with one of these are not kept.
    pub(crate) but: Vec<RuleTag>,
    /// Its lock; none of a rule that was never locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock: Option<RuleLock>,
}

/// The lock of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuleLock {
    /// How long it holds after the rule is unlocked, days, 7 to 30.
    pub(crate) delay_days: u64,
    /// When the rule was unlocked, in milliseconds since 1970; none while it is locked.
    pub(crate) unlocked_ms: Option<u64>,
}

/// How far a lock holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleLockState {
    Locked,
    /// Unlocked, within the delay, which ends then: milliseconds since 1970.
    Pending {
        ends_ms: u64,
    },
    Unlocked,
}

impl RuleLock {
    /// Its state at a time, in milliseconds since 1970.
    pub(crate) fn state(self, now_ms: u64) -> RuleLockState {
        let Some(unlocked_ms) = self.unlocked_ms else { return RuleLockState::Locked };
        let ends_ms = unlocked_ms.saturating_add(self.delay_days.saturating_mul(DAY_MS));
        if now_ms < ends_ms { RuleLockState::Pending { ends_ms } } else { RuleLockState::Unlocked }
    }
}

impl Rule {
    fn matches(&self, keeps: Kept, tags: &Tags) -> bool {
        let has = |tag: &RuleTag| {
            tags.get(&tag.0).is_some_and(|found| tag.1.as_ref().is_none_or(|value| value == found))
        };
        self.keeps == keeps && (self.of.is_empty() || self.of.iter().any(has)) && !self.but.iter().any(has)
    }
}

fn prefix(owner: &str, region: &str) -> String {
    format!("rule/{owner}/{region}/")
}

/// How long something is kept after its deletion, in milliseconds; none: not at all. Of several rules the longest decides.
fn kept_ms(state: &State, (owner, region): (&str, &str), keeps: Kept, tags: &Tags) -> Option<u64> {
    let rules: Vec<Rule> = state.settings(&prefix(owner, region));
    let days = rules.iter().filter(|rule| rule.matches(keeps, tags)).map(|rule| rule.days).max()?;
    Some(days.saturating_mul(DAY_MS))
}

/// The bin that a deleted snapshot goes to; none: it is deleted. Only completed ones are kept.
pub(super) fn for_snapshot(state: &State, snapshot: &Snapshot, now: u64) -> Option<Stage> {
    if snapshot.state(now) != Some("completed") {
        return None;
    }
    let ms = kept_ms(state, (&snapshot.owner, &snapshot.region), Kept::Snapshots, &snapshot.tags)?;
    Some(Stage::Binned { entered_ms: now, exits_ms: now.saturating_add(ms) })
}

/// The bin that a deleted volume goes to; none: it is deleted.
pub(super) fn for_volume(state: &State, volume: &Volume, now: u64) -> Option<Stage> {
    if volume.lost || volume.failure.is_some() {
        return None;
    }
    let ms = kept_ms(state, (&volume.owner, &volume.region), Kept::Volumes, &volume.tags)?;
    Some(Stage::Binned { entered_ms: now, exits_ms: now.saturating_add(ms) })
}

impl Ec2 {
    /// The rules of an account in a Region, by their ids.
    pub(crate) fn rules(&self, owner: &str, region: &str) -> Vec<Rule> {
        self.state.lock().settings(&prefix(owner, region))
    }

    /// An id of eleven letters and digits for a new rule.
    pub(crate) fn new_rule_id(&self, is_taken: impl Fn(&str) -> bool) -> String {
        let mut state = self.state.lock();
        loop {
            // The last digits of an id: the first one is always 0.
            let id: String = state.new_reservation().chars().rev().take(11).collect();
            if !is_taken(&id) {
                return id;
            }
        }
    }

    /// Stores a rule, new or changed.
    pub(crate) fn put_rule(&self, owner: &str, region: &str, rule: &Rule) -> Result<(), RecordsError> {
        let value = serde_json::to_value(rule).expect("a rule is plain data with text keys");
        let setting = Setting { key: format!("{}{}", prefix(owner, region), rule.id), value };
        self.state.lock().try_commit(vec![Change::Setting(setting)])
    }

    /// Deletes a rule. What is in the bin stays there for its time.
    pub(crate) fn drop_rule(&self, owner: &str, region: &str, id: &str) -> Result<(), RecordsError> {
        let key = format!("{}{id}", prefix(owner, region));
        self.state.lock().try_commit(vec![Change::DropSetting(key)])
    }

    /// Deletes, from time to time, what has been in the bin long enough.
    pub(super) fn empty_bin(&self, now: u64) {
        let mut state = self.state.lock();
        if now < state.emptied_ms.saturating_add(EMPTY_MS) {
            return;
        }
        state.emptied_ms = now;
        let over = |stage: Stage| matches!(stage, Stage::Binned { exits_ms, .. } if exits_ms <= now);
        let snapshots: Vec<_> =
            state.snapshots().values().filter(|it| over(it.stage)).map(|it| it.id.clone()).collect();
        for id in snapshots {
            let Some(snapshot) = state.snapshots().get(&id).cloned() else { continue };
            if let Err(error) = self.remove_snapshot(now, &mut state, &snapshot) {
                tracing::warn!(snapshot = id, %error, "it stays in the recycle bin for another while");
            }
        }
        let volumes: Vec<_> =
            state.volumes().values().filter(|it| over(it.stage)).map(|it| it.id.clone()).collect();
        for id in volumes {
            let Some(volume) = state.volumes().get(&id).cloned() else { continue };
            match self.remove_volume_for_good(now, &mut state, volume) {
                Ok(()) => self.expect_deletion(&state, &id),
                Err(error) => {
                    tracing::warn!(volume = id, %error, "it stays in the recycle bin for another while");
                }
            }
        }
    }

    pub(super) fn list_snapshots_in_recycle_bin(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let ids = ask.input.texts("SnapshotIds");
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &Paging::usual("snapshotIdsSet"))?;
        let state = self.state.lock();
        describe_volumes::check_ids(Kind::Snapshot, &ids, "snapshotId", |id| {
            state.snapshots().get(id).is_some_and(|it| binned_snapshot(ask, it).is_some())
        })?;
        let from = page.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.snapshots().range::<str, _>((from, Bound::Unbounded));
        let rows = all.filter_map(|(id, snapshot)| {
            let (entered_ms, exits_ms) = binned_snapshot(ask, snapshot)?;
            let row = || {
                Members::default()
                    .put("SnapshotId", id.as_str())
                    .put("VolumeId", snapshot.volume.as_str())
                    .put("Description", snapshot.description.as_str())
                    .put_time("RecycleBinEnterTime", entered_ms)
                    .put_time("RecycleBinExitTime", exits_ms)
                    .end()
            };
            (ids.is_empty() || ids.contains(&id.as_str())).then(|| (id.as_str(), row()))
        });
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("Snapshots", rows).put_some("NextToken", next).end())
    }

    pub(super) fn restore_snapshot_from_recycle_bin(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        let id = ask.input.required("SnapshotId", "snapshotId")?;
        Kind::Snapshot.check(id, "snapshotId")?;
        let mut state = self.state.lock();
        let found = state.snapshots().get(id).filter(|it| binned_snapshot(ask, it).is_some());
        access::maybe_snapshot(ask, ask.call.action, found, id).demand(ask)?;
        let found = found.ok_or_else(|| refuse::not_found(Kind::Snapshot, id))?.clone();
        ask.end_dry_run()?;
        let restored = Snapshot { stage: Stage::Ready, ..found };
        state.commit(vec![Change::Snapshot(restored.clone())])?;
        let status = restored.state(ask.now()).unwrap_or("error");
        let mut shown = describe_snapshots::members(ask, &restored, status).end();
        let known = [
            "Description",
            "Encrypted",
            "OwnerId",
            "Progress",
            "SnapshotId",
            "SseType",
            "StartTime",
            "State",
            "VolumeId",
            "VolumeSize",
        ];
        shown.retain(|name, _| known.contains(&name.as_str()));
        Ok(shown)
    }

    pub(super) fn list_volumes_in_recycle_bin(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        const PAGING: Paging = Paging { bounds: 5..=500, name: "maxResults", ids: Some("volumeIdsSet") };
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let ids = ask.input.texts("VolumeIds");
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &PAGING)?;
        let state = self.state.lock();
        describe_volumes::check_ids(Kind::Volume, &ids, "volumeId", |id| {
            state.volumes().get(id).is_some_and(|it| binned_volume(ask, it).is_some())
        })?;
        let from = page.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.volumes().range::<str, _>((from, Bound::Unbounded));
        let rows = all.filter_map(|(id, volume)| {
            let (entered_ms, exits_ms) = binned_volume(ask, volume)?;
            let row = || {
                let shape = volume.shape_at(ask.now());
                Members::default()
                    .put("VolumeId", id.as_str())
                    .put("VolumeType", shape.kind.as_str())
                    .put("Size", shape.size_gib)
                    .put_some("Iops", shape.iops)
                    .put_some("Throughput", shape.throughput)
                    .put("SnapshotId", volume.snapshot.as_deref().unwrap_or_default())
                    .put("AvailabilityZone", volume.zone.as_str())
                    .put("AvailabilityZoneId", places::zone_id(&volume.region, &volume.zone))
                    .put("State", "available")
                    .put_time("CreateTime", volume.created_ms)
                    .put_time("RecycleBinEnterTime", entered_ms)
                    .put_time("RecycleBinExitTime", exits_ms)
                    .end()
            };
            (ids.is_empty() || ids.contains(&id.as_str())).then(|| (id.as_str(), row()))
        });
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("Volumes", rows).put_some("NextToken", next).end())
    }

    pub(super) fn restore_volume_from_recycle_bin(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        let id = ask.input.required("VolumeId", "volumeId")?;
        Kind::Volume.check(id, "volumeId")?;
        let mut state = self.state.lock();
        let found = state.volumes().get(id).filter(|it| binned_volume(ask, it).is_some());
        access::maybe_volume(ask, ask.call.action, found, id).demand(ask)?;
        let found = found.ok_or_else(|| refuse::not_found(Kind::Volume, id))?.clone();
        ask.end_dry_run()?;
        state.commit(vec![Change::Volume(Volume { stage: Stage::Ready, ..found })])?;
        Ok(Members::default().put("Return", true).end())
    }
}

/// Since when a snapshot of the caller is in the bin, and until when.
fn binned_snapshot(ask: &Ask<'_>, snapshot: &Snapshot) -> Option<(u64, u64)> {
    binned(ask, (&snapshot.owner, &snapshot.region), snapshot.stage)
}

/// Since when a volume of the caller is in the bin, and until when.
fn binned_volume(ask: &Ask<'_>, volume: &Volume) -> Option<(u64, u64)> {
    binned(ask, (&volume.owner, &volume.region), volume.stage)
}

fn binned(ask: &Ask<'_>, (owner, region): (&str, &str), stage: Stage) -> Option<(u64, u64)> {
    match stage {
        Stage::Binned { entered_ms, exits_ms } if is_of(ask, owner, region) && ask.now() < exits_ms => {
            Some((entered_ms, exits_ms))
        }
        _ => None,
    }
}
