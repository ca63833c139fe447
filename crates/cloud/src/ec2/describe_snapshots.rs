//! DescribeSnapshots, and what answers show of a snapshot.

use std::ops::Bound;

use serde_json::{Map, Value};

use super::ask::{Ask, Members, iso};
use super::filter::{Filters, Tagged, Values, flag, one, some};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::records::Snapshot;
use super::{Ec2, access, describe_volumes, refuse, tags};
use crate::ApiError;

const FILTERS: [&str; 12] = [
    "description",
    "encrypted",
    "owner-alias",
    "owner-id",
    "progress",
    "snapshot-id",
    "start-time",
    "status",
    "storage-tier",
    "transfer-type",
    "volume-id",
    "volume-size",
];

/// What most answers have of a snapshot.
pub(super) fn members(ask: &Ask<'_>, snapshot: &Snapshot, state: &str) -> Members {
    let mut members = Members::default();
    members
        .put("SnapshotId", snapshot.id.as_str())
        .put("VolumeId", snapshot.volume.as_str())
        .put("State", state)
        .put_time("StartTime", snapshot.started_ms)
        .put("Progress", snapshot.progress(ask.now()))
        .put("OwnerId", snapshot.owner.as_str())
        .put("Description", snapshot.description.as_str())
        .put("VolumeSize", snapshot.size_gib)
        .put("Encrypted", snapshot.kms_key.is_some())
        .put_some("KmsKeyId", snapshot.kms_key.as_deref())
        .put("StorageTier", "standard")
        .put("SseType", sse_type(snapshot))
        .put_some("CompletionDurationMinutes", snapshot.completion_minutes);
    if snapshot.copy {
        members.put("TransferType", transfer_type(snapshot));
    }
    if state == "completed" {
        members.put("FullSnapshotSizeInBytes", snapshot.data_bytes);
        members.put_time("CompletionTime", snapshot.completes_ms);
    }
    if state == "error" {
        members.put_some("StateMessage", snapshot.failure());
    }
    members
}

/// How a snapshot is encrypted.
pub(super) const fn sse_type(snapshot: &Snapshot) -> &'static str {
    if snapshot.kms_key.is_some() { "sse-kms" } else { "none" }
}

const fn transfer_type(snapshot: &Snapshot) -> &'static str {
    if snapshot.completion_minutes.is_some() { "time-based" } else { "standard" }
}

/// Whose snapshots a call asks for.
struct Whose<'a> {
    owners: Vec<&'a str>,
    restorable: Vec<&'a str>,
}

impl<'a> Whose<'a> {
    fn read(ask: &Ask<'a>) -> Result<Self, ApiError> {
        let account = |name: &&str| name.len() == 12 && name.bytes().all(|b| b.is_ascii_digit());
        let owners = ask.input.texts("OwnerIds");
        let bad = |name: &&&str| !matches!(**name, "self" | "amazon" | "aws-marketplace") && !account(name);
        if let Some(bad) = owners.iter().find(bad) {
            return Err(ApiError::client("InvalidUserID.Malformed", format!("Invalid user id: \"{bad}\"")));
        }
        let restorable = ask.input.texts("RestorableByUserIds");
        let bad = |name: &&&str| !matches!(**name, "self" | "all") && !account(name);
        if let Some(bad) = restorable.iter().find(bad) {
            return Err(ApiError::client("InvalidUserID.Malformed", format!("Invalid user id: \"{bad}\"")));
        }
        Ok(Self { owners, restorable })
    }

    fn has(&self, ask: &Ask<'_>, snapshot: &Snapshot) -> bool {
        let account = ask.account();
        let owned =
            |owner: &&str| *owner == snapshot.owner || (*owner == "self" && snapshot.owner == account);
        let open = |user: &&str| match *user {
            "all" => snapshot.permissions.all,
            "self" => snapshot.owner == account || snapshot.permissions.users.contains(account),
            user => snapshot.owner == user || snapshot.permissions.users.contains(user),
        };
        snapshot.is_open_to(account)
            && (self.owners.is_empty() || self.owners.iter().any(owned))
            && (self.restorable.is_empty() || self.restorable.iter().any(open))
    }
}

impl Ec2 {
    pub(super) fn describe_snapshots(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let now = ask.now();
        let ids = ask.input.texts("SnapshotIds");
        let filters = Filters::read(ask.input, &FILTERS, Tagged::Yes)?;
        let whose = Whose::read(ask)?;
        let paging = Paging::usual("snapshotIdsSet");
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &paging)?;
        let state = self.state.lock();
        describe_volumes::check_ids(Kind::Snapshot, &ids, "snapshotId", |id| {
            state.any_snapshot(ask, ask.region(), id).is_some()
        })?;
        let shown = |snapshot: &&Snapshot| {
            snapshot.region == ask.region()
                && snapshot.state(now).is_some()
                && whose.has(ask, snapshot)
                && filters.pass(&snapshot.tags, |name| values(snapshot, now, name))
        };
        let row = |snapshot: &Snapshot| {
            let mut members = members(ask, snapshot, snapshot.state(now).unwrap_or("error"));
            // The tags of others' snapshots are theirs.
            if !snapshot.tags.is_empty() && snapshot.owner == ask.account() {
                members.put("Tags", tags::members(&snapshot.tags));
            }
            members.end()
        };
        let (snapshots, next): (Vec<_>, _) = if ids.is_empty() {
            let from = page.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let all = state.snapshots().range::<str, _>((from, Bound::Unbounded)).map(|(_, it)| it);
            page.fill(ask.call.action, all.filter(shown).map(|it| (it.id.as_str(), row(it))))
        } else {
            let named: std::collections::BTreeSet<_> = ids.into_iter().collect();
            let named = named.into_iter().filter_map(|id| state.snapshots().get(id));
            (named.filter(shown).map(row).collect(), None)
        };
        Ok(Members::default().put("Snapshots", snapshots).put_some("NextToken", next).end())
    }
}

/// What a snapshot has for a filter.
fn values<'a>(snapshot: &'a Snapshot, now: u64, name: &str) -> Values<'a> {
    match name {
        "description" => one(snapshot.description.as_str()),
        "encrypted" => one(flag(snapshot.kms_key.is_some())),
        "owner-id" => one(snapshot.owner.as_str()),
        "progress" => one(snapshot.progress(now)),
        "snapshot-id" => one(snapshot.id.as_str()),
        "start-time" => one(iso(snapshot.started_ms)),
        "status" => some(snapshot.state(now)),
        "storage-tier" => one("standard"),
        "transfer-type" => one(transfer_type(snapshot)),
        "volume-id" => one(snapshot.volume.as_str()),
        "volume-size" => one(snapshot.size_gib.to_string()),
        // `owner-alias`: none of these accounts has one.
        _ => Vec::new(),
    }
}

/// Refuses an attribute that snapshots do not have, or that a call cannot change.
pub(super) fn unknown_attribute(attribute: &str) -> ApiError {
    if attribute.is_empty() {
        return refuse::missing("attribute");
    }
    ApiError::client(
        "InvalidRequest",
        format!("The attribute '{attribute}' is not valid for this operation."),
    )
}
