//! Volume status and attributes: DescribeVolumeStatus, Describe- and ModifyVolumeAttribute, EnableVolumeIO.

use std::ops::Bound;

use ebbtide_control::{InitializationState, InitializationView};
use serde_json::{Map, Value, json};

use super::ask::{Ask, Members};
use super::db::Change;
use super::filter::{Filters, Tagged, Tags, Values, one};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::records::{Stage, Volume};
use super::state::is_of;
use super::{Ec2, access, places, refuse};
use crate::ApiError;

const FILTERS: [&str; 15] = [
    "action.code",
    "action.description",
    "action.event-id",
    "attachment-status.instance-id",
    "attachment-status.io-performance",
    "availability-zone",
    "availability-zone-id",
    "event.description",
    "event.event-id",
    "event.event-type",
    "event.not-after",
    "event.not-before",
    "volume-status.details-name",
    "volume-status.details-status",
    "volume-status.status",
];

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// A volume as DescribeVolumeStatus shows it.
struct Shown<'a> {
    volume: &'a Volume,
    zone_id: &'a str,
    /// The loading of its snapshot's blocks; none where all of them were there from the beginning.
    loading: Option<InitializationView>,
}

/// The details of a volume's status, by name.
fn details(shown: &Shown<'_>, now: u64) -> Vec<(&'static str, &'static str)> {
    let Shown { volume, loading, .. } = shown;
    // AWS judges the performance of these types only.
    let judged = matches!(volume.shape_at(now).kind.as_str(), "gp3" | "io1" | "io2");
    let attached = volume.attachments_at(now).next().is_some();
    let performance = if judged && attached { "normal" } else { "not-applicable" };
    let enabled = if volume.lost { "failed" } else { "passed" };
    let mut details = vec![("io-enabled", enabled), ("io-performance", performance)];
    if let Some(copied) = &volume.copied {
        let is_over = now >= copied.completes_ms;
        let state = if is_over { InitializationState::Completed } else { InitializationState::Initializing };
        details.push(("initialization-state", state.name()));
    } else if volume.snapshot.is_some() {
        let state = loading.as_ref().map_or(InitializationState::Completed, |loading| loading.state);
        details.push(("initialization-state", state.name()));
    }
    details
}

fn status(volume: &Volume, now: u64) -> &'static str {
    match volume.state(now) {
        Some("error") => "impaired",
        Some("creating") | None => "insufficient-data",
        Some(_) => "ok",
    }
}

/// What InitializationStatusDetails has. Only a provisioned rate has a time.
fn initialization(volume: &Volume, loading: Option<&InitializationView>, now: u64) -> Value {
    if let Some(copied) = &volume.copied {
        return json!({"InitializationType": "volume-copy", "Progress": copied.progress(now)});
    }
    let kind = if volume.initialization_rate.is_some() { "provisioned-rate" } else { "default" };
    let mut details = json!({
        "InitializationType": kind,
        "Progress": loading.map_or(100, |loading| loading.progress_pct),
    });
    if let Some(rate) = volume.initialization_rate {
        let left = loading.map_or(0, |loading| loading.total_bytes - loading.loaded_bytes);
        details["EstimatedTimeToCompleteInSeconds"] = left.div_ceil(rate * MIB).into();
    }
    details
}

fn item(shown: &Shown<'_>, now: u64) -> Value {
    let Shown { volume, zone_id, loading } = shown;
    let pairs = details(shown, now);
    let details: Value = pairs.iter().map(|(name, status)| json!({"Name": name, "Status": status})).collect();
    let attachments: Value = volume
        .attachments_at(now)
        .map(|at| json!({"InstanceId": at.instance, "IoPerformance": pairs[1].1}))
        .collect();
    let mut members = Members::default();
    members
        .put("VolumeId", volume.id.as_str())
        .put("AvailabilityZone", volume.zone.as_str())
        .put("AvailabilityZoneId", *zone_id)
        .put("VolumeStatus", json!({"Status": status(volume, now), "Details": details}))
        .put("Actions", json!([]))
        .put("Events", json!([]))
        .put("AttachmentStatuses", attachments);
    if volume.snapshot.is_some() || volume.copied.is_some() {
        members.put("InitializationStatusDetails", initialization(volume, loading.as_ref(), now));
    }
    Value::Object(members.end())
}

fn values<'a>(shown: &Shown<'a>, now: u64, name: &str) -> Values<'a> {
    let Shown { volume, zone_id, .. } = *shown;
    let details = details(shown, now);
    let attachments = || volume.attachments_at(now);
    match name {
        "attachment-status.instance-id" => attachments().map(|at| at.instance.as_str().into()).collect(),
        "attachment-status.io-performance" => attachments().map(|_| details[1].1.into()).collect(),
        "availability-zone" => one(volume.zone.as_str()),
        "availability-zone-id" => one(zone_id),
        "volume-status.details-name" => details.iter().map(|(name, _)| (*name).into()).collect(),
        "volume-status.details-status" => details.iter().map(|(_, status)| (*status).into()).collect(),
        "volume-status.status" => one(status(volume, now)),
        // There are no events, and so no actions.
        _ => Vec::new(),
    }
}

/// The volume of a call, by the order of its checks: rights, DryRun, the id, existence.
fn checked(ask: &Ask<'_>, state: &super::state::State) -> Result<Volume, ApiError> {
    let id = ask.input.text("VolumeId").unwrap_or_default();
    access::maybe_volume(ask, ask.call.action, state.seen_volume(ask, id), id).demand(ask)?;
    ask.end_dry_run()?;
    ask.input.required("VolumeId", "volumeId")?;
    Kind::Volume.check(id, "volumeId")?;
    Ok(state.volume(ask, id)?.clone())
}

impl Ec2 {
    pub(super) fn describe_volume_status(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let now = ask.now();
        let ids = ask.input.texts("VolumeIds");
        let filters = Filters::read(ask.input, &FILTERS, Tagged::No)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &Paging::usual("volumeIdsSet"))?;
        if let Some(bad) = ids.iter().find(|id| !Kind::Volume.is_id(id)) {
            return Err(ApiError::client("InvalidVolumeID.Malformed", format!("Invalid id: \"{bad}\"")));
        }
        let state = self.state.lock();
        if let Some(missing) = ids.iter().find(|id| state.volume(ask, id).is_err()) {
            return Err(refuse::not_found(Kind::Volume, missing));
        }
        let zones = places::zones(ask.region());
        let zone_id = |volume: &Volume| {
            zones.iter().find(|zone| zone.name == volume.zone).map_or("", |zone| zone.id.as_str())
        };
        let none = Tags::new();
        let from = page.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.volumes().range::<str, _>((from, Bound::Unbounded)).map(|(_, volume)| volume);
        let asked = all.filter(|volume| {
            is_of(ask, &volume.owner, &volume.region)
                && volume.stage == Stage::Ready
                && (ids.is_empty() || ids.contains(&volume.id.as_str()))
        });
        let asked: Vec<&Volume> = asked.collect();
        // Some at a time: what is beyond the page is not looked at.
        let known = asked.chunks(1_000).flat_map(|volumes| {
            let loading = self.loading(volumes);
            let shown = |(volume, loading)| Shown { volume, zone_id: zone_id(volume), loading };
            volumes.iter().copied().zip(loading).map(shown).collect::<Vec<_>>()
        });
        let shown = known.filter(|shown| filters.pass(&none, |name| values(shown, now, name)));
        let rows = shown.map(|shown| (shown.volume.id.as_str(), item(&shown, now)));
        let (items, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("VolumeStatuses", items).put_some("NextToken", next).end())
    }

    /// The loading of volumes' blocks as the home has it; none of an empty volume, and of one that the home has lost.
    pub(super) fn loading(&self, volumes: &[&Volume]) -> Vec<Option<InitializationView>> {
        let restored = volumes.iter().filter(|volume| volume.snapshot.is_some());
        let names: Vec<&str> = restored.map(|volume| volume.id.as_str()).collect();
        // A catalogue that cannot be read must not hide the volumes.
        let found = if names.is_empty() { Ok(Vec::new()) } else { self.control.initializations(&names) };
        let mut found = found.unwrap_or_default().into_iter();
        let of = |volume: &&Volume| volume.snapshot.as_ref().and_then(|_| found.next().flatten());
        volumes.iter().map(of).collect()
    }

    pub(super) fn describe_volume_attribute(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let volume = checked(ask, &self.state.lock())?;
        let mut members = Members::default();
        members.put("VolumeId", volume.id.as_str());
        match ask.input.text("Attribute").filter(|attribute| !attribute.is_empty()) {
            None => return Err(refuse::invalid_combination("No attributes specified.")),
            Some("autoEnableIO") => members.put("AutoEnableIO", json!({"Value": volume.auto_enable_io})),
            Some("productCodes") => members.put("ProductCodes", json!([])),
            Some(other) => {
                let message =
                    format!("Value ({other}) for parameter attribute is invalid. Unknown attribute.");
                return Err(refuse::invalid_value(message));
            }
        };
        Ok(members.end())
    }

    pub(super) fn modify_volume_attribute(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let volume = checked(ask, &state)?;
        let given = ask.input.structure("AutoEnableIO").and_then(|given| given.flag("Value"));
        let Some(auto_enable_io) = given else {
            return Err(refuse::invalid_combination("No attributes specified."));
        };
        state.commit(vec![Change::Volume(Volume { auto_enable_io, ..volume })])?;
        Ok(Map::new())
    }

    pub(super) fn enable_volume_io(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let volume = checked(ask, &self.state.lock())?;
        // I/O is never disabled here: EnableVolumeIO has nothing to do.
        Err(refuse::incorrect_state(format!("Volume {} already has IO enabled.", volume.id)))
    }
}
