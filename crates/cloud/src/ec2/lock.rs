//! Locks of snapshots: LockSnapshot, UnlockSnapshot, DescribeLockedSnapshots (EBS user guide, `ebs-snapshot-lock`).

use std::ops::Bound;

use serde_json::{Map, Value};

use super::ask::{Ask, Members, iso};
use super::db::Change;
use super::filter::{Filters, Tagged, Tags, Values, one, some};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::records::Snapshot;
use super::retention::{DAY_MS, Lock, Mode};
use super::state::is_of;
use super::{Ec2, access, describe_volumes, refuse};
use crate::ApiError;

/// Hours of a cooling-off period.
const HOURS: std::ops::RangeInclusive<i64> = 1..=72;

/// Days of a lock.
const DAYS: std::ops::RangeInclusive<i64> = 1..=36_500;

const FILTERS: [&str; 1] = ["lock-state"];

impl Lock {
    fn members(&self, snapshot: &Snapshot, now: u64) -> Members {
        let mut members = Members::default();
        members
            .put("SnapshotId", snapshot.id.as_str())
            .put("LockState", self.state(now))
            .put("LockDuration", self.days)
            .put_some("CoolOffPeriod", self.cool_off_hours)
            .put_time("LockCreatedOn", self.created_ms)
            .put_time("LockDurationStartTime", self.starts_ms)
            .put_time("LockExpiresOn", self.expires_ms);
        if let Some(until_ms) = self.cools_until_ms() {
            members.put_time("CoolOffPeriodExpiresOn", until_ms);
        }
        members
    }
}

/// Refuses to delete a snapshot that is locked.
pub(super) fn demand_unlocked(snapshot: &Snapshot, now: u64) -> Result<(), ApiError> {
    let locked = snapshot.extras.lock.as_ref().filter(|lock| lock.expires_ms > now);
    let Some(lock) = locked else { return Ok(()) };
    let message = format!(
        "The snapshot '{}' is locked until {} and cannot be deleted.",
        snapshot.id,
        iso(lock.expires_ms)
    );
    Err(not_permitted(message))
}

fn not_permitted(message: String) -> ApiError {
    ApiError::client("OperationNotPermitted", message)
}

/// A lock that a call asks for.
struct Wanted {
    mode: Mode,
    cool_off_hours: Option<u64>,
    length: Length,
}

/// How long a lock lasts.
enum Length {
    Days(u64),
    UntilMs(u64),
}

impl Wanted {
    fn read(ask: &Ask<'_>) -> Result<Self, ApiError> {
        let input = ask.input;
        let mode = match input.required("LockMode", "lockMode")? {
            "governance" => Mode::Governance,
            "compliance" => Mode::Compliance,
            other => return Err(refuse::unknown_value(other, "lockMode")),
        };
        let within = |value: i64, bounds: std::ops::RangeInclusive<i64>, parameter: &str| {
            let message = format!(
                "Value ({value}) for parameter {parameter} is invalid. It must be between {} and {}.",
                bounds.start(),
                bounds.end()
            );
            let good = u64::try_from(value).ok().filter(|_| bounds.contains(&value));
            good.ok_or_else(|| refuse::invalid_value(message))
        };
        let cool_off_hours = match (mode, input.number("CoolOffPeriod")) {
            (_, None) => None,
            (Mode::Compliance, Some(hours)) => Some(within(hours, HOURS, "coolOffPeriod")?),
            (Mode::Governance, Some(_)) => {
                let message = "The parameter CoolOffPeriod cannot be used with the lock mode governance.";
                return Err(refuse::invalid_combination(message));
            }
        };
        // A time in seconds since 1970, as the wire formats give it.
        let until =
            input.0.get("ExpirationDate").and_then(Value::as_f64).map(std::time::Duration::try_from_secs_f64);
        let length = match (input.number("LockDuration"), until) {
            (Some(days), None) => Length::Days(within(days, DAYS, "lockDuration")?),
            (None, Some(until)) => {
                let until_ms =
                    until.ok().and_then(|until| u64::try_from(until.as_millis()).ok()).unwrap_or(0);
                if until_ms <= ask.now() {
                    let message = format!(
                        "Value ({}) for parameter expirationDate is invalid. It must be in the future.",
                        iso(until_ms)
                    );
                    return Err(refuse::invalid_value(message));
                }
                Length::UntilMs(until_ms)
            }
            _ => {
                let message = "Specify either LockDuration or ExpirationDate, not both and not neither.";
                return Err(refuse::invalid_combination(message));
            }
        };
        Ok(Self { mode, cool_off_hours, length })
    }

    /// The lock of a snapshot from now on, or from its completion on.
    fn lock(&self, completes_ms: u64, now: u64) -> Lock {
        let starts_ms = now.max(completes_ms);
        let (days, expires_ms) = match self.length {
            Length::Days(days) => (days, starts_ms.saturating_add(days.saturating_mul(DAY_MS))),
            Length::UntilMs(until_ms) => (until_ms.saturating_sub(starts_ms).div_ceil(DAY_MS), until_ms),
        };
        let Self { mode, cool_off_hours, .. } = *self;
        Lock { mode, created_ms: now, cool_off_hours, days, starts_ms, expires_ms }
    }
}

/// The id of the snapshot that a call names.
fn named<'a>(ask: &Ask<'a>) -> Result<&'a str, ApiError> {
    let id = ask.input.required("SnapshotId", "snapshotId")?;
    Kind::Snapshot.check(id, "snapshotId").map(|()| id)
}

impl Ec2 {
    pub(super) fn lock_snapshot(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let now = ask.now();
        let wanted = Wanted::read(ask)?;
        let mut state = self.state.lock();
        let id = named(ask)?;
        let found = state.snapshot(ask, id).ok();
        let mut lock = wanted.lock(found.map_or(now, |found| found.completes_ms), now);
        let mut right = access::maybe_snapshot(ask, "LockSnapshot", found, id);
        right = right.with("ec2:SnapshotLockDuration", lock.days.to_string());
        if let Some(hours) = wanted.cool_off_hours {
            right = right.with("ec2:SnapshotCoolOffPeriod", hours.to_string());
        }
        right.demand(ask)?;
        let mut snapshot = state.snapshot(ask, id)?.clone();
        ask.end_dry_run()?;
        if let Some(other) = snapshot.state(now).filter(|state| !matches!(*state, "pending" | "completed")) {
            return Err(refuse::incorrect_state(format!("Snapshot is in invalid state - {other}")));
        }
        if let Some(before) = &snapshot.extras.lock {
            match before.state(now) {
                // What is locked for good can only be locked longer.
                "compliance" if lock.mode == Mode::Governance || lock.expires_ms < before.expires_ms => {
                    return Err(not_permitted(format!(
                        "The snapshot '{}' is locked in compliance mode until {}. Its lock can only be extended.",
                        snapshot.id,
                        iso(before.expires_ms)
                    )));
                }
                "compliance" => {
                    (lock.created_ms, lock.cool_off_hours) = (before.created_ms, before.cool_off_hours);
                }
                _ => {}
            }
        }
        let answer = lock.members(&snapshot, now).end();
        snapshot.extras.lock = Some(lock);
        state.commit(vec![Change::Snapshot(snapshot)])?;
        Ok(answer)
    }

    pub(super) fn unlock_snapshot(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let mut snapshot = access::permitted_snapshot(ask, &state, named(ask)?)?.clone();
        ask.end_dry_run()?;
        match snapshot.extras.lock.as_ref().map(|lock| lock.state(ask.now())) {
            Some("governance" | "compliance-cooloff") => {}
            Some("compliance") => {
                let message = format!("The snapshot '{}' is locked in compliance mode.", snapshot.id);
                return Err(not_permitted(message));
            }
            _ => {
                return Err(refuse::incorrect_state(format!(
                    "The snapshot '{}' is not locked.",
                    snapshot.id
                )));
            }
        }
        snapshot.extras.lock = None;
        let answer = Members::default().put("SnapshotId", snapshot.id.as_str()).end();
        state.commit(vec![Change::Snapshot(snapshot)])?;
        Ok(answer)
    }

    pub(super) fn describe_locked_snapshots(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let now = ask.now();
        let ids = ask.input.texts("SnapshotIds");
        let filters = Filters::read(ask.input, &FILTERS, Tagged::No)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &Paging::usual("snapshotIdsSet"))?;
        let state = self.state.lock();
        describe_volumes::check_ids(Kind::Snapshot, &ids, "snapshotId", |id| {
            state.snapshot(ask, id).is_ok()
        })?;
        let none = Tags::new();
        let from = page.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.snapshots().range::<str, _>((from, Bound::Unbounded));
        let rows = all.filter_map(|(id, snapshot)| {
            let lock = snapshot.extras.lock.as_ref()?;
            let shown = is_of(ask, &snapshot.owner, &snapshot.region)
                && snapshot.state(now).is_some()
                && (ids.is_empty() || ids.contains(&id.as_str()))
                && filters.pass(&none, |name| values(lock, now, name));
            let row = || lock.members(snapshot, now).put("OwnerId", snapshot.owner.as_str()).end();
            shown.then(|| (id.as_str(), row()))
        });
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("Snapshots", rows).put_some("NextToken", next).end())
    }
}

fn values<'a>(lock: &Lock, now: u64, name: &str) -> Values<'a> {
    if name == "lock-state" { one(lock.state(now)) } else { some(None::<&str>) }
}
