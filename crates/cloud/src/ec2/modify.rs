//! ModifyVolume and DescribeVolumesModifications.

use std::ops::Bound;
use std::time::Duration;

use ebbtide_catalog::modify::{ModificationRecord, check_modify};
use ebbtide_catalog::{CatalogError, ModifyRejection};
use ebbtide_control::{ControlError, ModifyVolume, Optimizing};
use serde_json::{Map, Value};

use super::ask::{Ask, Members, iso};
use super::db::Change;
use super::events::of_failure;
use super::filter::{Filters, Tagged, Tags, Values, flag, one, some};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::records::{Modification, Shape, Stage, Volume};
use super::shape::{self, Asked};
use super::state::is_of;
use super::{Ec2, access, describe_volumes, multi_attach, quota, refuse};
use crate::ApiError;

const FILTERS: [&str; 11] = [
    "modification-state",
    "original-iops",
    "original-multi-attach-enabled",
    "original-size",
    "original-volume-type",
    "start-time",
    "target-iops",
    "target-multi-attach-enabled",
    "target-size",
    "target-volume-type",
    "volume-id",
];

const PAGING: Paging = Paging { bounds: 5..=500, name: "MaxResults", ids: Some("volumeModificationSet") };

fn members(volume: &Volume, modification: &Modification, state: &str, progress: u64) -> Map<String, Value> {
    let Modification { from, to, .. } = modification;
    let mut members = Members::default();
    members
        .put("VolumeId", volume.id.as_str())
        .put("ModificationState", state)
        .put("StatusMessage", "")
        .put("OriginalSize", from.size_gib)
        .put("OriginalVolumeType", from.kind.as_str())
        .put("OriginalMultiAttachEnabled", from.multi_attach)
        .put_some("OriginalIops", from.iops)
        .put_some("OriginalThroughput", from.throughput)
        .put("TargetSize", to.size_gib)
        .put("TargetVolumeType", to.kind.as_str())
        .put("TargetMultiAttachEnabled", to.multi_attach)
        .put_some("TargetIops", to.iops)
        .put_some("TargetThroughput", to.throughput)
        .put("Progress", progress)
        .put_time("StartTime", modification.started_ms);
    if state == "completed" {
        members.put_time("EndTime", modification.completes_ms);
    }
    members.end()
}

/// What the rules of modifications refuse, in the words of EC2.
fn refused(error: &CatalogError, volume: &Volume) -> ApiError {
    let CatalogError::Modify(rejection) = error else { return shape::of_catalog(error) };
    let message = match rejection {
        ModifyRejection::InProgress { state, .. } => {
            format!("Volume {} cannot be modified in modification state {state}", volume.id)
        }
        ModifyRejection::RateExceeded { next, .. } => {
            // AWS has milliseconds; the rule is in whole seconds.
            let next = next.strip_suffix('Z').map_or_else(|| next.clone(), |next| format!("{next}.000Z"));
            format!(
                "You've reached the maximum modification rate per volume limit. Wait until {next} before you can \
                 issue the next modification request for this volume."
            )
        }
        ModifyRejection::Shrinks { .. } => "New size cannot be smaller than existing size".to_owned(),
        other => other.to_string(),
    };
    match error.aws_code() {
        Some(code) => ApiError::client(code, message),
        None => refuse::internal(message),
    }
}

/// The modification that a call asks for now.
fn plan(ec2: &Ec2, ask: &Ask<'_>, volume: &Volume, asked: &Asked) -> Result<Modification, ApiError> {
    let now = ask.now();
    let from = &volume.shape;
    let seconds = |ms: u64| i64::try_from(ms / 1_000).unwrap_or(i64::MAX);
    let past: Vec<_> = volume
        .modifications
        .iter()
        .map(|past| ModificationRecord {
            started_unix_s: seconds(past.started_ms),
            optimizing_unix_s: seconds(past.optimizing_ms),
            completes_unix_s: seconds(past.completes_ms),
        })
        .collect();
    let kind = asked.kind.as_deref().unwrap_or(&from.kind);
    multi_attach::check_modification(ask, volume, asked, kind)?;
    let multi_attach = asked.multi_attach.unwrap_or(from.multi_attach);
    let checked =
        check_modify(&ec2.options.catalog, &shape::spec_of(from), &asked.spec(kind)?, &past, seconds(now));
    let plan = match checked {
        // Nothing but Multi-Attach changes.
        Err(CatalogError::Modify(ModifyRejection::NothingToDo)) if multi_attach != from.multi_attach => None,
        checked => Some(checked.map_err(|error| refused(&error, volume))?),
    };
    // In whole seconds, as the rules count.
    let started_ms = now / 1_000 * 1_000;
    let after = |span: u64| started_ms + if ec2.options.timing.modifications { span * 1_000 } else { 0 };
    Ok(Modification {
        started_ms,
        optimizing_ms: after(plan.as_ref().map_or(0, |plan| plan.optimizing_after_s)),
        completes_ms: after(plan.as_ref().map_or(0, |plan| plan.completes_after_s)),
        from: from.clone(),
        to: Shape { multi_attach, ..plan.map_or_else(|| from.clone(), |plan| shape::shape(&plan.target)) },
    })
}

impl Ec2 {
    pub(super) fn modify_volume(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let id = ask.input.text("VolumeId").unwrap_or_default();
        self.demand_modification(ask, state.seen_volume(ask, id), id)?;
        ask.end_dry_run()?;
        ask.input.required("VolumeId", "volumeId")?;
        Kind::Volume.check(id, "volumeId")?;
        let volume = state.volume(ask, id)?.clone();
        let asked = Asked::read(ask.input)?;
        if asked.is_empty() {
            return Err(refuse::invalid_value(
                "Invalid input: Must specify at least one of size, type, iops, throughput or multi-attach.",
            ));
        }
        match volume.state(ask.now()) {
            Some("available" | "in-use") => {}
            other => {
                let other = other.unwrap_or("deleted");
                return Err(refuse::incorrect_state(format!("Volume '{id}' is in the '{other}' state.")));
            }
        }
        let modification = plan(self, ask, &volume, &asked)?;
        let quotas = &self.options.quotas;
        quota::room_for_modification(quotas, &state, ask, &modification.to)?;
        quota::room_for_volume(quotas, &state, ask, &modification.to, Some(&volume.shape))?;
        let answer = members(&volume, &modification, "modifying", 0);
        // First the record, so that a start after a kill goes on with it.
        let begun = Volume { pending: Some(modification), ..volume.clone() };
        state.commit(vec![Change::Volume(begun.clone())])?;
        match self.finish_modification(begun) {
            Ok(changed) => state.commit(vec![Change::Volume(changed)])?,
            Err(error) => {
                self.expect(of_failure(&volume, "modifyVolume", &error, ask.now()));
                state.commit(vec![Change::Volume(volume)])?;
                return Err(refuse::of_control(&error));
            }
        }
        Ok(Members::default().put("VolumeModification", answer).end())
    }

    fn demand_modification(&self, ask: &Ask<'_>, found: Option<&Volume>, id: &str) -> Result<(), ApiError> {
        let mut right = access::maybe_volume(ask, "ModifyVolume", found, id);
        for (member, attribute) in
            [("Size", "Size"), ("Iops", "Iops"), ("Throughput", "Throughput"), ("VolumeType", "VolumeType")]
        {
            let value = ask.input.number(member).map(|number| number.to_string());
            if let Some(value) = value.or_else(|| ask.input.text(member).map(str::to_owned)) {
                right = right.changes(attribute, value);
            }
        }
        right.demand(ask)
    }

    /// Carries out the modification that a volume's record has begun, whether or not it was done before, and gives the
    /// record that follows.
    pub(super) fn finish_modification(&self, volume: Volume) -> Result<Volume, ControlError> {
        let Some(modification) = volume.pending.clone() else { return Ok(volume) };
        let after = |ms: u64| Duration::from_secs(ms.saturating_sub(modification.started_ms) / 1_000);
        let request = ModifyVolume {
            name: volume.id.clone(),
            spec: shape::spec_of(&modification.to),
            optimizing: Optimizing::Decided {
                modifying: after(modification.optimizing_ms),
                completes: after(modification.completes_ms),
            },
            over_limit: true,
        };
        match self.control.modify_volume(&request, &|_| ()) {
            Ok(_) | Err(ControlError::Catalog(CatalogError::Modify(ModifyRejection::NothingToDo))) => {}
            Err(error) => return Err(error),
        }
        let mut changed = Volume { shape: modification.to.clone(), pending: None, ..volume };
        changed.note_modification(modification);
        Ok(changed)
    }

    pub(super) fn describe_volumes_modifications(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let now = ask.now();
        let ids = ask.input.texts("VolumeIds");
        let filters = Filters::read(ask.input, &FILTERS, Tagged::No)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &PAGING)?;
        let state = self.state.lock();
        describe_volumes::check_ids(Kind::Volume, &ids, "volumeId", |id| state.volume(ask, id).is_ok())?;
        let unmodified =
            |id: &&&str| state.volume(ask, id).is_ok_and(|volume| volume.modifications.is_empty());
        if let Some(id) = ids.iter().find(unmodified) {
            let message = format!("Modification for volume '{id}' does not exist.");
            return Err(ApiError::client("InvalidVolumeModification.NotFound", message));
        }
        let none = Tags::new();
        let from = page.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.volumes().range::<str, _>((from, Bound::Unbounded));
        let rows = all.filter_map(|(id, volume)| {
            let latest = volume.modifications.last()?;
            let shown = is_of(ask, &volume.owner, &volume.region)
                && volume.stage == Stage::Ready
                && (ids.is_empty() || ids.contains(&id.as_str()))
                && filters.pass(&none, |name| values(volume, latest, now, name));
            let row = || members(volume, latest, latest.state(now), latest.progress(now));
            shown.then(|| (id.as_str(), row()))
        });
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("VolumesModifications", rows).put_some("NextToken", next).end())
    }
}

fn values<'a>(volume: &'a Volume, modification: &'a Modification, now: u64, name: &str) -> Values<'a> {
    let Modification { from, to, .. } = modification;
    match name {
        "modification-state" => one(modification.state(now)),
        "original-iops" => some(from.iops.map(|iops| iops.to_string())),
        "original-multi-attach-enabled" => one(flag(from.multi_attach)),
        "target-multi-attach-enabled" => one(flag(to.multi_attach)),
        "original-size" => one(from.size_gib.to_string()),
        "original-volume-type" => one(from.kind.as_str()),
        "start-time" => one(iso(modification.started_ms)),
        "target-iops" => some(to.iops.map(|iops| iops.to_string())),
        "target-size" => one(to.size_gib.to_string()),
        "target-volume-type" => one(to.kind.as_str()),
        "volume-id" => one(volume.id.as_str()),
        _ => Vec::new(),
    }
}
