//! EnableFastSnapshotRestores, DisableFastSnapshotRestores, DescribeFastSnapshotRestores.

use std::collections::BTreeSet;
use std::ops::Bound;

use serde_json::{Map, Value, json};

use super::ask::{Ask, Members};
use super::db::Change;
use super::events::Due;
use super::filter::{Filters, Tagged, Tags, Values, one};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::places::{self, Zone};
use super::records::Snapshot;
use super::restore_credits::FastRestore;
use super::state::State;
use super::{Ec2, access, refuse, tier};
use crate::{ApiError, partition};

const FILTERS: [&str; 5] = ["availability-zone", "availability-zone-id", "owner-id", "snapshot-id", "state"];

const PAGING: Paging = Paging { bounds: 1..=200, name: "maxResults", ids: None };

/// The largest snapshot that can have it, GiB.
const LARGEST_GIB: u64 = 16 << 10;

/// The type of its events.
const EVENT: &str = "EBS Fast Snapshot Restore State-change Notification";

/// A zone that a call names: as it names it, and as it is, where it exists.
struct NamedZone<'a> {
    given: &'a str,
    zone: Option<Zone>,
}

/// The snapshots and zones of a call that enables or disables.
struct Wanted<'a> {
    snapshots: Vec<&'a str>,
    zones: Vec<NamedZone<'a>>,
    /// Whether zones are given by their ids.
    by_id: bool,
}

impl<'a> Wanted<'a> {
    fn read(ask: &Ask<'a>) -> Result<Self, ApiError> {
        let snapshots = ask.input.texts("SourceSnapshotIds");
        let (names, ids) = (ask.input.texts("AvailabilityZones"), ask.input.texts("AvailabilityZoneIds"));
        if snapshots.is_empty() {
            return Err(refuse::missing_of_request("SourceSnapshotId"));
        }
        if !names.is_empty() && !ids.is_empty() {
            return Err(refuse::invalid_combination(
                "AvailabilityZone and AvailabilityZoneId can't be used together. Specify only one of these parameters.",
            ));
        }
        let by_id = !ids.is_empty();
        let given = if by_id { ids } else { names };
        if given.is_empty() {
            return Err(refuse::missing_of_request("AvailabilityZone"));
        }
        snapshots.iter().try_for_each(|id| Kind::Snapshot.check(id, "sourceSnapshotId"))?;
        let all = places::zones(ask.region());
        let named = |given| {
            let zone = all.iter().find(|zone| *(if by_id { &zone.id } else { &zone.name }) == given);
            NamedZone { given, zone: zone.cloned() }
        };
        Ok(Self { snapshots, zones: given.into_iter().map(named).collect(), by_id })
    }
}

/// What a call does to one snapshot in one zone; the error is that of the item.
type Step = fn(&Ec2, &Ask<'_>, &State, &mut Snapshot, &Zone) -> Result<FastRestore, ApiError>;

impl Ec2 {
    pub(super) fn enable_fast_restores(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        self.change_fast_restores(ask, Self::enable_restore)
    }

    pub(super) fn disable_fast_restores(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        self.change_fast_restores(ask, Self::disable_restore)
    }

    /// Enables or disables each snapshot in each zone. As on AWS the call succeeds, and has the items that did not.
    fn change_fast_restores(&self, ask: &Ask<'_>, step: Step) -> Result<Map<String, Value>, ApiError> {
        let wanted = Wanted::read(ask)?;
        let mut state = self.state.lock();
        for id in &wanted.snapshots {
            let found = state.open_snapshot(ask, ask.region(), id).ok();
            access::maybe_snapshot(ask, ask.call.action, found, id).demand(ask)?;
        }
        ask.end_dry_run()?;
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for id in &wanted.snapshots {
            let mut errors = Vec::new();
            for named in &wanted.zones {
                match self.change_fast_restore(ask, &mut state, id, named, step) {
                    Ok(row) => done.push(row),
                    Err(error) => {
                        let member = if wanted.by_id { "AvailabilityZoneId" } else { "AvailabilityZone" };
                        let error = json!({"Code": error.code, "Message": error.message});
                        errors.push(json!({member: named.given, "Error": error}));
                    }
                }
            }
            if !errors.is_empty() {
                failed.push(json!({"SnapshotId": id, "FastSnapshotRestoreStateErrors": errors}));
            }
        }
        Ok(Members::default().put("Successful", done).put("Unsuccessful", failed).end())
    }

    fn change_fast_restore(
        &self,
        ask: &Ask<'_>,
        state: &mut State,
        id: &str,
        named: &NamedZone<'_>,
        step: Step,
    ) -> Result<Value, ApiError> {
        let zone = named.zone.as_ref().ok_or_else(|| refuse::zone_not_found(named.given))?;
        let mut snapshot = state.open_snapshot(ask, ask.region(), id)?.clone();
        let restore = step(self, ask, state, &mut snapshot, zone)?;
        state.commit(vec![Change::Snapshot(snapshot.clone())])?;
        self.expect_restore(ask.now(), &snapshot, &restore);
        Ok(row(&snapshot, &restore, &zone.id, ask.now()))
    }

    fn enable_restore(
        &self,
        ask: &Ask<'_>,
        state: &State,
        snapshot: &mut Snapshot,
        zone: &Zone,
    ) -> Result<FastRestore, ApiError> {
        let (now, id) = (ask.now(), snapshot.id.clone());
        match snapshot.state(now) {
            Some("completed") => {}
            other => {
                let other = other.unwrap_or("error");
                return Err(refuse::incorrect_state(format!("Snapshot is in invalid state - {other}")));
            }
        }
        tier::demand_standard(snapshot, "enabled for fast snapshot restore", now)?;
        if snapshot.size_gib > LARGEST_GIB {
            let message = format!(
                "Snapshot '{id}' of {} GiB is too large for fast snapshot restore; maximum is {LARGEST_GIB} GiB.",
                snapshot.size_gib
            );
            return Err(refuse::invalid_value(message));
        }
        match snapshot.fast_restore(ask.account(), &zone.name) {
            // Repeated: the answer has the present state.
            Some(known) if known.is_on() => return Ok(known.clone()),
            Some(known) if known.state(now) == "disabling" => {
                return Err(refuse::incorrect_state(format!(
                    "Fast snapshot restore of snapshot '{id}' in '{}' is in the 'disabling' state.",
                    zone.name
                )));
            }
            _ => {}
        }
        self.room_for_restore(ask, state, &id)?;
        let timing = &self.options.timing;
        let restore = FastRestore::enable(ask.account(), &zone.name, snapshot.size_gib, now, timing);
        snapshot.put_fast_restore(restore.clone());
        Ok(restore)
    }

    /// The quota counts snapshots, in however many zones, and those of other accounts too.
    fn room_for_restore(&self, ask: &Ask<'_>, state: &State, id: &str) -> Result<(), ApiError> {
        let is_on = |restore: &FastRestore| restore.account == ask.account() && restore.is_on();
        let enabled = state
            .snapshots()
            .values()
            .filter(|snapshot| snapshot.region == ask.region() && snapshot.fast_restores.iter().any(is_on));
        let enabled: BTreeSet<&str> = enabled.map(|snapshot| snapshot.id.as_str()).collect();
        let most = self.options.quotas.fast_restores;
        if enabled.contains(id) || enabled.len() < most {
            return Ok(());
        }
        let message = format!(
            "You have exceeded the maximum of {most} snapshots that can be enabled for fast snapshot restore in this \
             region."
        );
        Err(ApiError::client("ResourceLimitExceeded", message))
    }

    fn disable_restore(
        &self,
        ask: &Ask<'_>,
        _: &State,
        snapshot: &mut Snapshot,
        zone: &Zone,
    ) -> Result<FastRestore, ApiError> {
        let known = snapshot.fast_restore(ask.account(), &zone.name);
        let Some(mut restore) = known.filter(|known| known.state(ask.now()) != "disabled").cloned() else {
            return Err(refuse::incorrect_state(format!(
                "Fast snapshot restore of snapshot '{}' in '{}' is not enabled.",
                snapshot.id, zone.name
            )));
        };
        restore.disable(ask.now(), &self.options.timing);
        snapshot.put_fast_restore(restore.clone());
        Ok(restore)
    }

    pub(super) fn describe_fast_restores(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let now = ask.now();
        let filters = Filters::read(ask.input, &FILTERS, Tagged::No)?;
        let page = Page::read(ask.input, ask.call.action, false, &PAGING)?;
        let zones = places::zones(ask.region());
        let zone_id =
            |name: &str| zones.iter().find(|zone| zone.name == name).map_or("", |zone| zone.id.as_str());
        let state = self.state.lock();
        let after = page.after.as_deref();
        // A key is a snapshot and a zone: the snapshot of the last one may have more.
        let first = after.map(|key| key.split('/').next().unwrap_or(key));
        let from = first.map_or(Bound::Unbounded, Bound::Included);
        let all = state.snapshots().range::<str, _>((from, Bound::Unbounded)).map(|(_, it)| it);
        let seen = all.filter(|snapshot| {
            snapshot.region == ask.region()
                && snapshot.state(now).is_some()
                && snapshot.is_open_to(ask.account())
        });
        let own = seen.flat_map(|snapshot| {
            let own = snapshot.fast_restores.iter().filter(|restore| restore.account == ask.account());
            own.map(move |restore| (format!("{}/{}", snapshot.id, restore.zone), snapshot, restore))
        });
        let none = Tags::new();
        let shown = own.filter(|(key, snapshot, restore)| {
            after.is_none_or(|after| key.as_str() > after)
                && filters.pass(&none, |name| values(snapshot, restore, zone_id(&restore.zone), now, name))
        });
        let rows =
            shown.map(|(key, snapshot, restore)| (key, row(snapshot, restore, zone_id(&restore.zone), now)));
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("FastSnapshotRestores", rows).put_some("NextToken", next).end())
    }

    /// Notes the events of the states that are still to come; those that were expected before do not come any more.
    fn expect_restore(&self, now: u64, snapshot: &Snapshot, restore: &FastRestore) {
        self.events.forget(|event| is_about(event, snapshot, restore));
        let coming = restore.times(u64::MAX).filter(|(_, at)| *at >= now);
        self.events.expect(coming.map(|(state, at)| event(snapshot, restore, state, at)));
    }

    /// Disables what accounts have enabled to which a snapshot is not shared any more.
    pub(super) fn end_fast_restores_of_strangers(&self, now: u64, snapshot: &mut Snapshot) {
        let (owner, permissions) = (snapshot.owner.clone(), snapshot.permissions.clone());
        let is_stranger =
            |account: &str| account != owner && !permissions.all && !permissions.users.contains(account);
        self.end_fast_restores(now, snapshot, is_stranger);
    }

    /// Disables what accounts have enabled of a snapshot, where `of` says so of the account. With all accounts: it is
    /// deleted or archived.
    pub(super) fn end_fast_restores(&self, now: u64, snapshot: &mut Snapshot, of: impl Fn(&str) -> bool) {
        let mut all = std::mem::take(&mut snapshot.fast_restores);
        for restore in all.iter_mut().filter(|restore| restore.is_on() && of(&restore.account)) {
            restore.disable(now, &self.options.timing);
            self.expect_restore(now, snapshot, restore);
        }
        snapshot.fast_restores = all;
    }
}

impl Snapshot {
    /// What an account has enabled in a zone, or had.
    pub(super) fn fast_restore(&self, account: &str, zone: &str) -> Option<&FastRestore> {
        self.fast_restores.iter().find(|restore| restore.account == account && restore.zone == zone)
    }

    fn put_fast_restore(&mut self, restore: FastRestore) {
        self.fast_restores.retain(|other| (&other.account, &other.zone) != (&restore.account, &restore.zone));
        self.fast_restores.push(restore);
        self.fast_restores.sort_by(|a, b| (&a.zone, &a.account).cmp(&(&b.zone, &b.account)));
    }

    /// The same after a volume was created of it in a zone with a credit of an account; none where there is no credit.
    pub(super) fn without_credit(&self, account: &str, zone: &str, now: u64) -> Option<Self> {
        let left = self.fast_restore(account, zone)?.without_credit(self.size_gib, now)?;
        let mut snapshot = self.clone();
        snapshot.put_fast_restore(left);
        Some(snapshot)
    }
}

fn row(snapshot: &Snapshot, restore: &FastRestore, zone_id: &str, now: u64) -> Value {
    let state = restore.state(now);
    let mut members = Members::default();
    members
        .put("SnapshotId", snapshot.id.as_str())
        .put("AvailabilityZone", restore.zone.as_str())
        .put("AvailabilityZoneId", zone_id)
        .put("State", state)
        .put("StateTransitionReason", FastRestore::reason(state))
        .put("OwnerId", restore.account.as_str());
    for (state, at) in restore.times(now) {
        let member = match state {
            "enabling" => "EnablingTime",
            "optimizing" => "OptimizingTime",
            "enabled" => "EnabledTime",
            "disabling" => "DisablingTime",
            _ => "DisabledTime",
        };
        members.put_time(member, at);
    }
    Value::Object(members.end())
}

fn values<'a>(
    snapshot: &'a Snapshot,
    restore: &'a FastRestore,
    zone_id: &'a str,
    now: u64,
    name: &str,
) -> Values<'a> {
    match name {
        "availability-zone" => one(restore.zone.as_str()),
        "availability-zone-id" => one(zone_id),
        "owner-id" => one(restore.account.as_str()),
        "snapshot-id" => one(snapshot.id.as_str()),
        _ => one(restore.state(now)),
    }
}

fn event(snapshot: &Snapshot, restore: &FastRestore, state: &str, at_ms: u64) -> Due {
    Due {
        at_ms,
        detail_type: EVENT,
        owner: restore.account.clone(),
        region: snapshot.region.clone(),
        resources: vec![format!(
            "arn:{}:ec2:{}::snapshot/{}",
            partition::of_region(&snapshot.region),
            snapshot.region,
            snapshot.id
        )],
        detail: json!({
            "snapshot-id": snapshot.id,
            "state": state,
            "zone": restore.zone,
            "message": FastRestore::reason(state),
        }),
    }
}

/// Whether an event is about a snapshot in a zone, for an account.
fn is_about(due: &Due, snapshot: &Snapshot, restore: &FastRestore) -> bool {
    due.detail_type == EVENT
        && due.detail["snapshot-id"] == snapshot.id.as_str()
        && due.detail["zone"] == restore.zone.as_str()
        && due.owner == restore.account
}
