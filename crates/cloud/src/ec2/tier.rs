//! The archive tier: ModifySnapshotTier, RestoreSnapshotTier, DescribeSnapshotTierStatus (EBS user guide,
//! `archive-snapshot`).
//!
//! The data stay where they are: blocks of the block store are shared by snapshots, and a snapshot that is archived has all
//! of its own already. What changes is what may be done with it, and when.

use std::ops::Bound;

use serde_json::{Map, Value};

use super::ask::{Ask, Members};
use super::db::Change;
use super::filter::{Filters, Tagged, Values, one, some};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::records::{COPIED_VOLUME, Snapshot};
use super::retention::{Operation, Tiering};
use super::state::{State, is_of};
use super::{Ec2, access, refuse, tags};
use crate::ApiError;

/// Days of a temporary restore. AWS's upper bound is not documented; 180 is the best known.
const DAYS: std::ops::RangeInclusive<i64> = 1..=180;

const FILTERS: [&str; 3] = ["last-tiering-operation", "snapshot-id", "volume-id"];

const PAGING: Paging = Paging { bounds: 5..=1_000, name: "maxResults", ids: None };

impl Snapshot {
    /// `standard` or `archive`.
    pub(super) fn tier(&self, now: u64) -> &'static str {
        let archived = self.extras.tiering.as_ref().is_some_and(|tiering| tiering.is_archived(now));
        if archived { "archive" } else { "standard" }
    }

    /// Whether its data are in the standard tier, for ever or for a while.
    pub(super) fn is_usable(&self, now: u64) -> bool {
        self.extras.tiering.as_ref().is_none_or(|tiering| tiering.is_usable(now))
    }

    /// When a temporary restore of it ends.
    pub(super) fn restored_until_ms(&self, now: u64) -> Option<u64> {
        let tiering = self.extras.tiering.as_ref()?;
        tiering.expires_ms().filter(|expires_ms| now >= tiering.completes_ms && now < *expires_ms)
    }

    fn is_tiering(&self, now: u64, operations: &[Operation]) -> bool {
        let tiering = self.extras.tiering.as_ref();
        tiering.is_some_and(|it| it.is_running(now) && operations.contains(&it.operation))
    }
}

/// Refuses a snapshot whose data are in the archive tier.
pub(super) fn demand_usable(snapshot: &Snapshot, now: u64) -> Result<(), ApiError> {
    if snapshot.is_usable(now) {
        return Ok(());
    }
    let message = format!(
        "Snapshot '{}' is in the archive tier. Restore it with RestoreSnapshotTier before it is used.",
        snapshot.id
    );
    Err(refuse::incorrect_state(message))
}

/// Refuses what needs the standard tier of a snapshot that is archived, or about to be: it cannot be `what`.
pub(super) fn demand_standard(snapshot: &Snapshot, what: &str, now: u64) -> Result<(), ApiError> {
    if snapshot.tier(now) == "standard" && !snapshot.is_tiering(now, &[Operation::Archival]) {
        return Ok(());
    }
    let message = format!("Snapshot '{}' is archived. An archived snapshot cannot be {what}.", snapshot.id);
    Err(refuse::incorrect_state(message))
}

/// The caller's snapshot that a call names, with the right to do it.
fn checked(ask: &Ask<'_>, state: &State) -> Result<Snapshot, ApiError> {
    let id = ask.input.required("SnapshotId", "snapshotId")?;
    Kind::Snapshot.check(id, "snapshotId")?;
    let snapshot = access::permitted_snapshot(ask, state, id)?;
    ask.end_dry_run()?;
    match snapshot.state(ask.now()) {
        Some("completed") => Ok(snapshot.clone()),
        other => {
            let other = other.unwrap_or("error");
            Err(refuse::incorrect_state(format!("Snapshot is in invalid state - {other}")))
        }
    }
}

/// How many snapshots of the caller something holds for.
fn count(state: &State, ask: &Ask<'_>, holds: impl Fn(&Snapshot) -> bool) -> usize {
    let own = |snapshot: &&Snapshot| {
        is_of(ask, &snapshot.owner, &snapshot.region) && snapshot.state(ask.now()).is_some()
    };
    state.snapshots().values().filter(own).filter(|snapshot| holds(snapshot)).count()
}

fn too_many(message: String) -> ApiError {
    ApiError::client("ResourceLimitExceeded", message)
}

impl Ec2 {
    pub(super) fn modify_snapshot_tier(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        match ask.input.required("StorageTier", "storageTier")? {
            "archive" => {}
            other => return Err(refuse::unknown_value(other, "storageTier")),
        }
        let now = ask.now();
        let mut state = self.state.lock();
        let mut snapshot = checked(ask, &state)?;
        let id = &snapshot.id;
        if snapshot.permissions.is_shared() {
            let message = format!("Snapshot '{id}' is shared. A shared snapshot cannot be archived.");
            return Err(ApiError::client("OperationNotPermitted", message));
        }
        if let Some(tiering) = snapshot.extras.tiering.as_ref().filter(|it| it.is_running(now)) {
            let status = tiering.status(now);
            return Err(refuse::incorrect_state(format!("Snapshot '{id}' is in the '{status}' state.")));
        }
        if snapshot.tier(now) == "archive" {
            return Err(refuse::incorrect_state(format!("Snapshot '{id}' is already archived.")));
        }
        self.room_for_archive(&state, ask, &snapshot)?;
        let completes_ms = now + self.options.timing.archiving_ms;
        let tiering = Tiering {
            operation: Operation::Archival,
            started_ms: now,
            completes_ms,
            archived_ms: completes_ms,
            days: None,
        };
        let id = id.clone();
        self.end_fast_restores(now, &mut snapshot, |_| true);
        commit(&mut state, snapshot, tiering)?;
        Ok(Members::default().put("SnapshotId", id).put_time("TieringStartTime", now).end())
    }

    /// Refuses an archive for which there is no room.
    fn room_for_archive(&self, state: &State, ask: &Ask<'_>, snapshot: &Snapshot) -> Result<(), ApiError> {
        let (now, quotas) = (ask.now(), &self.options.quotas);
        let archived =
            |it: &&Snapshot| it.tier(now) == "archive" || it.is_tiering(now, &[Operation::Archival]);
        // The volume that copies show is no volume.
        if snapshot.volume != COPIED_VOLUME
            && state.snapshots_of(&snapshot.volume).filter(archived).count() >= quotas.archived_of_volume
        {
            return Err(too_many(format!(
                "You have reached the limit of {} archived snapshots of volume '{}'.",
                quotas.archived_of_volume, snapshot.volume
            )));
        }
        if count(state, ask, |it| it.is_tiering(now, &[Operation::Archival])) >= quotas.archiving {
            return Err(too_many(format!(
                "You have reached the limit of {} snapshots that are being archived.",
                quotas.archiving
            )));
        }
        Ok(())
    }

    pub(super) fn restore_snapshot_tier(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let now = ask.now();
        let permanent = ask.input.flag("PermanentRestore") == Some(true);
        let days = match (permanent, ask.input.number("TemporaryRestoreDays")) {
            (true, None) => None,
            (false, Some(days)) if DAYS.contains(&days) => u64::try_from(days).ok(),
            (false, Some(days)) => {
                return Err(refuse::invalid_value(format!(
                    "Value ({days}) for parameter temporaryRestoreDays is invalid. It must be between {} and {}.",
                    DAYS.start(),
                    DAYS.end()
                )));
            }
            _ => {
                return Err(refuse::invalid_combination(
                    "Specify either PermanentRestore or TemporaryRestoreDays, not both and not neither.",
                ));
            }
        };
        let mut state = self.state.lock();
        let snapshot = checked(ask, &state)?;
        let archived = snapshot.extras.tiering.clone().filter(|it| it.is_archived(now));
        let Some(before) = archived else {
            let message = format!("Snapshot '{}' is not in the archive tier.", snapshot.id);
            return Err(refuse::incorrect_state(message));
        };
        if before.is_running(now) {
            let status = before.status(now);
            let message = format!("Snapshot '{}' is in the '{status}' state.", snapshot.id);
            return Err(refuse::incorrect_state(message));
        }
        let restores = [Operation::TemporaryRestore, Operation::PermanentRestore];
        let most = self.options.quotas.restoring;
        if count(&state, ask, |it| it.is_tiering(now, &restores)) >= most {
            return Err(too_many(format!(
                "You have reached the limit of {most} snapshots that are being restored."
            )));
        }
        // What is restored for a while is in the standard tier already.
        let takes_ms = if before.is_usable(now) { 0 } else { self.options.timing.restoring_ms };
        let operation = if permanent { Operation::PermanentRestore } else { Operation::TemporaryRestore };
        let completes_ms = now + takes_ms;
        let tiering =
            Tiering { operation, started_ms: now, completes_ms, archived_ms: before.archived_ms, days };
        let mut answer = Members::default();
        answer
            .put("SnapshotId", snapshot.id.as_str())
            .put_time("RestoreStartTime", now)
            .put_some("RestoreDuration", days)
            .put("IsPermanentRestore", permanent);
        commit(&mut state, snapshot, tiering)?;
        Ok(answer.end())
    }

    pub(super) fn describe_snapshot_tier_status(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let now = ask.now();
        let filters = Filters::read(ask.input, &FILTERS, Tagged::Yes)?;
        let page = Page::read(ask.input, ask.call.action, false, &PAGING)?;
        let state = self.state.lock();
        let from = page.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.snapshots().range::<str, _>((from, Bound::Unbounded)).map(|(_, snapshot)| snapshot);
        let shown = all.filter(|snapshot| {
            is_of(ask, &snapshot.owner, &snapshot.region)
                && snapshot.state(now).is_some()
                && filters.pass(&snapshot.tags, |name| values(snapshot, now, name))
        });
        let rows = shown.map(|snapshot| (snapshot.id.as_str(), row(snapshot, now)));
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("SnapshotTierStatuses", rows).put_some("NextToken", next).end())
    }
}

fn commit(state: &mut State, mut snapshot: Snapshot, tiering: Tiering) -> Result<(), ApiError> {
    snapshot.extras.tiering = Some(tiering);
    state.commit(vec![Change::Snapshot(snapshot)])
}

fn row(snapshot: &Snapshot, now: u64) -> Value {
    let mut members = Members::default();
    members
        .put("SnapshotId", snapshot.id.as_str())
        .put("VolumeId", snapshot.volume.as_str())
        .put("OwnerId", snapshot.owner.as_str())
        .put("Status", snapshot.state(now).unwrap_or("error"))
        .put("StorageTier", snapshot.tier(now))
        .put("Tags", tags::members(&snapshot.tags));
    if let Some(tiering) = &snapshot.extras.tiering {
        members
            .put_time("LastTieringStartTime", tiering.started_ms)
            .put("LastTieringProgress", tiering.progress(now))
            .put("LastTieringOperationStatus", tiering.status(now));
        if tiering.archived_ms <= now {
            members.put_time("ArchivalCompleteTime", tiering.archived_ms);
        }
        if let Some(until_ms) = snapshot.restored_until_ms(now) {
            members.put_time("RestoreExpiryTime", until_ms);
        }
    }
    Value::Object(members.end())
}

fn values<'a>(snapshot: &'a Snapshot, now: u64, name: &str) -> Values<'a> {
    match name {
        "last-tiering-operation" => some(snapshot.extras.tiering.as_ref().map(|it| it.status(now))),
        "snapshot-id" => one(snapshot.id.as_str()),
        _ => one(snapshot.volume.as_str()),
    }
}
