//! DescribeVolumes, and what answers show of a volume.

use std::ops::Bound;

use serde_json::{Map, Value, json};

use super::access;
use super::ask::{Ask, Members, iso, seconds};
use super::filter::{Filters, Tagged, Values, flag, one, some};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::places;
use super::records::{Attachment, Volume};
use super::state::is_of;
use super::{Ec2, refuse, tags};
use crate::ApiError;

const FILTERS: [&str; 19] = [
    "attachment.attach-time",
    "attachment.delete-on-termination",
    "attachment.device",
    "attachment.instance-id",
    "attachment.status",
    "availability-zone",
    "availability-zone-id",
    "create-time",
    "encrypted",
    "fast-restored",
    "multi-attach-enabled",
    "operator.managed",
    "operator.principal",
    "size",
    "snapshot-id",
    "source-volume-id",
    "status",
    "volume-id",
    "volume-type",
];

/// What most answers have of a volume.
fn members(ask: &Ask<'_>, volume: &Volume, state: Option<&str>, zone_id: String) -> Members {
    let now = ask.now();
    let shape = volume.shape_at(now);
    let attachments: Value = volume
        .attachments_at(now)
        .map(|at| Value::Object(attachment(&volume.id, at, at.state(now))))
        .collect();
    let mut members = Members::default();
    members
        .put("VolumeId", volume.id.as_str())
        .put("Size", shape.size_gib)
        .put("SnapshotId", volume.snapshot.as_deref().unwrap_or_default())
        .put("AvailabilityZone", volume.zone.as_str())
        .put("AvailabilityZoneId", zone_id)
        .put("State", state.unwrap_or("deleting"))
        .put_time("CreateTime", volume.created_ms)
        .put("Attachments", attachments)
        .put("Encrypted", volume.kms_key.is_some())
        .put_some("KmsKeyId", volume.kms_key.as_deref())
        .put("VolumeType", shape.kind.as_str())
        .put("MultiAttachEnabled", shape.multi_attach)
        .put("Operator", json!({"Managed": false}))
        .put_some("SourceVolumeId", volume.copied.as_ref().map(|copied| copied.source.as_str()))
        .put_some("Iops", shape.iops)
        .put_some("Throughput", shape.throughput)
        .put_some("VolumeInitializationRate", volume.initialization_rate);
    members
}

/// The answer of CreateVolume.
pub(super) fn of_create(ask: &Ask<'_>, volume: &Volume, state: Option<&str>) -> Map<String, Value> {
    let zone_id = places::zone_id(&volume.region, &volume.zone);
    members(ask, volume, state, zone_id).put("Tags", tags::members(&volume.tags)).end()
}

/// The members of an attachment.
pub(super) fn attachment(volume: &str, attachment: &Attachment, state: &str) -> Map<String, Value> {
    Members::default()
        .put("VolumeId", volume)
        .put("InstanceId", attachment.instance.as_str())
        .put("Device", attachment.device.as_str())
        .put("State", state)
        .put("AttachTime", seconds(attachment.since_ms))
        .put("DeleteOnTermination", attachment.delete_on_termination)
        .put_some("EbsCardIndex", attachment.ebs_card)
        .end()
}

/// Checks ids that a describe action names: first the form of all, then that all exist.
pub(super) fn check_ids(
    kind: Kind,
    ids: &[&str],
    parameter: &str,
    exists: impl Fn(&str) -> bool,
) -> Result<(), ApiError> {
    ids.iter().try_for_each(|id| kind.check(id, parameter))?;
    ids.iter().find(|id| !exists(id)).map_or(Ok(()), |id| Err(refuse::not_found(kind, id)))
}

impl Ec2 {
    pub(super) fn describe_volumes(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let ids = ask.input.texts("VolumeIds");
        let filters = Filters::read(ask.input, &FILTERS, Tagged::Yes)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &Paging::usual("volumeIdsSet"))?;
        let state = self.state.lock();
        check_ids(Kind::Volume, &ids, "volumes", |id| state.seen_volume(ask, id).is_some())?;
        let zones = places::zones(ask.region());
        let zone_id = |volume: &Volume| {
            let zone = zones.iter().find(|zone| zone.name == volume.zone);
            zone.map(|zone| zone.id.clone()).unwrap_or_default()
        };
        let shown = |volume: &&Volume| {
            is_of(ask, &volume.owner, &volume.region)
                && volume.state(ask.now()).is_some()
                && filters.pass(&volume.tags, |name| values(ask, volume, name, zone_id))
        };
        let row = |volume: &Volume| {
            let mut members = members(ask, volume, volume.state(ask.now()), zone_id(volume));
            if !volume.tags.is_empty() {
                members.put("Tags", tags::members(&volume.tags));
            }
            if volume.fast_restored {
                members.put("FastRestored", true);
            }
            let mut members = members.end();
            self.exports.describe_all(&volume.id, &mut members);
            members
        };
        let (volumes, next): (Vec<_>, _) = if ids.is_empty() {
            let from = page.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let all = state.volumes().range::<str, _>((from, Bound::Unbounded)).map(|(_, volume)| volume);
            page.fill(ask.call.action, all.filter(shown).map(|volume| (volume.id.as_str(), row(volume))))
        } else {
            let named: std::collections::BTreeSet<_> = ids.into_iter().collect();
            let named = named.into_iter().filter_map(|id| state.seen_volume(ask, id));
            (named.filter(shown).map(row).collect(), None)
        };
        Ok(Members::default().put("Volumes", volumes).put_some("NextToken", next).end())
    }
}

/// What a volume has for a filter.
fn values<'a>(
    ask: &Ask<'_>,
    volume: &'a Volume,
    name: &str,
    zone_id: impl Fn(&Volume) -> String,
) -> Values<'a> {
    let now = ask.now();
    let attachments = || volume.attachments_at(now);
    let shape = volume.shape_at(now);
    match name {
        "attachment.attach-time" => attachments().map(|at| iso(at.since_ms).into()).collect(),
        "attachment.delete-on-termination" => {
            attachments().map(|at| flag(at.delete_on_termination).into()).collect()
        }
        "attachment.device" => attachments().map(|at| at.device.as_str().into()).collect(),
        "attachment.instance-id" => attachments().map(|at| at.instance.as_str().into()).collect(),
        "attachment.status" => attachments().map(|at| at.state(now).into()).collect(),
        "availability-zone" => one(volume.zone.as_str()),
        "availability-zone-id" => one(zone_id(volume)),
        "create-time" => one(iso(volume.created_ms)),
        "encrypted" => one(flag(volume.kms_key.is_some())),
        "fast-restored" => one(flag(volume.fast_restored)),
        "multi-attach-enabled" => one(flag(shape.multi_attach)),
        "operator.managed" => one(flag(false)),
        "size" => one(shape.size_gib.to_string()),
        "snapshot-id" => some(volume.snapshot.as_deref()),
        "source-volume-id" => some(volume.copied.as_ref().map(|copied| copied.source.as_str())),
        "status" => some(volume.state(now)),
        "volume-id" => one(volume.id.as_str()),
        "volume-type" => one(shape.kind.as_str()),
        _ => Vec::new(),
    }
}
