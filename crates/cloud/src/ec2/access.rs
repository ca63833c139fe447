//! What policies decide on: ARNs of resources, and condition keys with their values.

use std::collections::BTreeMap;

use super::ask::{Ask, iso};
use super::filter::Tags;
use super::ids::Kind;
use super::records::{Instance, Snapshot, Volume};
use super::refuse;
use super::shape::Provision;
use super::state::State;
use crate::{Access, ApiError, partition};

/// What is done to a resource.
#[derive(Debug)]
pub(super) struct Right {
    access: Access,
}

impl Right {
    /// An action on a resource; `id` is `*` for one that is to be created.
    pub(super) fn on(ask: &Ask<'_>, action: &str, kind: Kind, id: &str) -> Self {
        Self::new(ask, action, arn(ask, kind, id))
    }

    fn new(ask: &Ask<'_>, action: &str, resource: String) -> Self {
        let action = format!("ec2:{action}").into();
        let right = Self { access: Access { action, resource, context: BTreeMap::new() } };
        right.with("ec2:Region", ask.region())
    }

    pub(super) fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.access.context.entry(key.into()).or_default().push(value.into());
        self
    }

    fn with_some(self, key: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(key, value.to_string()),
            None => self,
        }
    }

    /// The tags that the call brings.
    pub(super) fn requests(mut self, tags: &Tags) -> Self {
        for (key, value) in tags {
            self = self.with(format!("aws:RequestTag/{key}"), value).with("aws:TagKeys", key);
        }
        self
    }

    /// The tags that the resource has.
    fn has(mut self, tags: &Tags) -> Self {
        for (key, value) in tags {
            self = self.with(format!("aws:ResourceTag/{key}"), value);
            self = self.with(format!("ec2:ResourceTag/{key}"), value);
        }
        self
    }

    /// That what is acted on is encrypted, and with which key.
    pub(super) fn encrypted(mut self, key: Option<&String>) -> Self {
        self.access.context.insert("ec2:Encrypted".to_owned(), vec!["true".to_owned()]);
        self.with_some("ec2:KmsKeyId", key)
    }

    /// The same, where a record has a key.
    fn encrypted_if(self, key: Option<&String>) -> Self {
        if key.is_some() { self.encrypted(key) } else { self.with("ec2:Encrypted", "false") }
    }

    /// An attribute that the call changes, and to what.
    pub(super) fn changes(self, attribute: &str, value: impl ToString) -> Self {
        self.with("ec2:Attribute", attribute).with(format!("ec2:Attribute/{attribute}"), value.to_string())
    }

    pub(super) fn demand(self, ask: &Ask<'_>) -> Result<(), ApiError> {
        ask.call.authorize(&self.access)
    }
}

/// The ARN of a resource of the caller's.
pub(super) fn arn(ask: &Ask<'_>, kind: Kind, id: &str) -> String {
    let account = if kind == Kind::Snapshot { "" } else { ask.account() };
    format!("arn:{}:ec2:{}:{account}:{}/{id}", partition::of_region(ask.region()), ask.region(), kind.name())
}

/// Demands an action that has no resource, as those that describe.
pub(super) fn demand_any(ask: &Ask<'_>) -> Result<(), ApiError> {
    Right::new(ask, ask.call.action, "*".to_owned()).demand(ask)
}

/// The right to create a volume, by whatever call.
pub(super) fn new_volume(ask: &Ask<'_>, provision: &Provision, zone: &str, zone_id: &str) -> Right {
    let shape = &provision.shape;
    Right::on(ask, ask.call.action, Kind::Volume, "*")
        .with("ec2:AvailabilityZone", zone)
        .with("ec2:AvailabilityZoneId", zone_id)
        .with("ec2:Encrypted", "false")
        .with("ec2:VolumeType", &shape.kind)
        .with("ec2:VolumeSize", shape.size_gib.to_string())
        .with_some("ec2:VolumeIops", shape.iops)
        .with_some("ec2:VolumeThroughput", shape.throughput)
}

/// An action on a volume that exists.
pub(super) fn volume(ask: &Ask<'_>, action: &str, volume: &Volume) -> Right {
    let shape = volume.shape_at(ask.now());
    Right::on(ask, action, Kind::Volume, &volume.id)
        .has(&volume.tags)
        .with("ec2:AvailabilityZone", &volume.zone)
        .encrypted_if(volume.kms_key.as_ref())
        .with("ec2:VolumeID", &volume.id)
        .with("ec2:VolumeType", &shape.kind)
        .with("ec2:VolumeSize", shape.size_gib.to_string())
        .with_some("ec2:VolumeIops", shape.iops)
        .with_some("ec2:VolumeThroughput", shape.throughput)
        .with_some("ec2:ParentSnapshot", volume.snapshot.as_ref().map(|id| arn(ask, Kind::Snapshot, id)))
}

/// An action on a volume of which it is not yet known whether it exists.
pub(super) fn maybe_volume(ask: &Ask<'_>, action: &str, found: Option<&Volume>, id: &str) -> Right {
    found.map_or_else(|| Right::on(ask, action, Kind::Volume, id), |found| volume(ask, action, found))
}

/// An action on a snapshot that exists.
pub(super) fn snapshot(ask: &Ask<'_>, action: &str, snapshot: &Snapshot) -> Right {
    let start = format!("arn:{}:ec2:{}", partition::of_region(&snapshot.region), snapshot.region);
    let parent = format!("{start}:{}:volume/{}", snapshot.owner, snapshot.volume);
    let right = Right::new(ask, action, format!("{start}::snapshot/{}", snapshot.id));
    right
        .has(&snapshot.tags)
        .encrypted_if(snapshot.kms_key.as_ref())
        .with("ec2:Owner", &snapshot.owner)
        .with("ec2:ParentVolume", parent)
        .with("ec2:SnapshotID", &snapshot.id)
        .with("ec2:SnapshotTime", iso(snapshot.started_ms))
        .with("ec2:VolumeSize", snapshot.size_gib.to_string())
}

/// An action on a snapshot of which it is not yet known whether it exists.
pub(super) fn maybe_snapshot(ask: &Ask<'_>, action: &str, found: Option<&Snapshot>, id: &str) -> Right {
    found.map_or_else(|| Right::on(ask, action, Kind::Snapshot, id), |found| snapshot(ask, action, found))
}

/// An action on an instance that exists.
pub(super) fn instance(ask: &Ask<'_>, action: &str, instance: &Instance) -> Right {
    Right::on(ask, action, Kind::Instance, &instance.id)
        .has(&instance.tags)
        .with("ec2:AvailabilityZone", &instance.zone)
        .with("ec2:InstanceID", &instance.id)
        .with("ec2:InstanceType", &instance.kind)
        .with("ec2:RootDeviceType", "ebs")
        .with("ec2:Tenancy", "default")
}

/// An action on an instance of which it is not yet known whether it exists.
pub(super) fn maybe_instance(ask: &Ask<'_>, action: &str, found: Option<&Instance>, id: &str) -> Right {
    found.map_or_else(|| Right::on(ask, action, Kind::Instance, id), |found| instance(ask, action, found))
}

// What a call names is looked for once the caller may do the call's action to it: whoever may not is not told whether it
// exists.

/// A volume of the caller that is not deleted.
pub(super) fn permitted_volume<'s>(
    ask: &Ask<'_>,
    state: &'s State,
    id: &str,
) -> Result<&'s Volume, ApiError> {
    maybe_volume(ask, ask.call.action, state.seen_volume(ask, id), id).demand(ask)?;
    state.volume(ask, id)
}

/// A snapshot of the caller.
pub(super) fn permitted_snapshot<'s>(
    ask: &Ask<'_>,
    state: &'s State,
    id: &str,
) -> Result<&'s Snapshot, ApiError> {
    permitted_found(ask, state.snapshot(ask, id), id)
}

/// A snapshot of the call's Region that the caller may make volumes of.
pub(super) fn permitted_source<'s>(
    ask: &Ask<'_>,
    state: &'s State,
    id: &str,
) -> Result<&'s Snapshot, ApiError> {
    permitted_found(ask, state.open_snapshot(ask, ask.region(), id), id)
}

fn permitted_found<'s>(
    ask: &Ask<'_>,
    found: Result<&'s Snapshot, ApiError>,
    id: &str,
) -> Result<&'s Snapshot, ApiError> {
    maybe_snapshot(ask, ask.call.action, found.as_ref().ok().copied(), id).demand(ask)?;
    found
}

/// Instances of the caller: the rights to all of them come first, and then whether all exist.
pub(super) fn permitted_instances<'s>(
    ask: &Ask<'_>,
    state: &'s State,
    ids: &[&str],
) -> Result<Vec<&'s Instance>, ApiError> {
    for id in ids {
        maybe_instance(ask, ask.call.action, state.seen_instance(ask, id), id).demand(ask)?;
    }
    let missing: Vec<&str> =
        ids.iter().copied().filter(|id| state.seen_instance(ask, id).is_none()).collect();
    if !missing.is_empty() {
        return Err(refuse::instances_not_found(&missing));
    }
    ids.iter().map(|id| state.instance(ask, id)).collect()
}

/// One instance of the caller.
pub(super) fn permitted_instance<'s>(
    ask: &Ask<'_>,
    state: &'s State,
    id: &str,
) -> Result<&'s Instance, ApiError> {
    maybe_instance(ask, ask.call.action, state.seen_instance(ask, id), id).demand(ask)?;
    state.instance(ask, id)
}

/// The right to copy a snapshot of a Region, whether it exists or not.
pub(super) fn copied_snapshot(ask: &Ask<'_>, region: &str, found: Option<&Snapshot>, id: &str) -> Right {
    let arn = || format!("arn:{}:ec2:{region}::snapshot/{id}", partition::of_region(region));
    let action = ask.call.action;
    found.map_or_else(|| Right::new(ask, action, arn()), |found| snapshot(ask, action, found))
}

/// The right to tag what an action creates; nothing is demanded without tags.
pub(super) fn demand_tagging(ask: &Ask<'_>, kind: Kind, tags: &Tags) -> Result<(), ApiError> {
    if tags.is_empty() {
        return Ok(());
    }
    let right = Right::on(ask, "CreateTags", kind, "*").requests(tags);
    right.with("ec2:CreateAction", ask.call.action).demand(ask)
}
