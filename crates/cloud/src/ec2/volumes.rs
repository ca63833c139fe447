//! CreateVolume and DeleteVolume.

use ebbtide_catalog::{Initialization, Spec};
use ebbtide_control::{ControlError, CreateVolume, WrappedKey};
use parking_lot::MutexGuard;
use serde_json::{Map, Value, json};

use super::access;
use super::ask::Ask;
use super::db::Change;
use super::encryption::{self, Found, Wish};
use super::events::of_failure;
use super::filter::Tags;
use super::ids::Kind;
use super::places::{self, Zone};
use super::records::{Copied, Snapshot, Stage, Volume};
use super::remove::{self, RemoveError};
use super::shape::{self, Asked, Provision};
use super::state::{State, client_token, use_token};
use super::{Ec2, bin, describe_volumes, multi_attach, quota, refuse, tags, tier};
use crate::ApiError;
use crate::service::with_causes;

/// Logical block size of volumes, as the device of most instance types reports it.
pub(super) const BLOCK_BYTES: u32 = 512;

/// A volume that a call asks for.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) zone: Zone,
    pub(super) provision: Provision,
    pub(super) snapshot: Option<Snapshot>,
    /// The volume that it is a copy of.
    pub(super) source: Option<Volume>,
    pub(super) rate: Option<u64>,
    /// The snapshot after fast snapshot restore has taken a credit for the volume.
    pub(super) charged: Option<Snapshot>,
    pub(super) tags: Tags,
    pub(super) encryption: Wish,
}

impl Wanted {
    /// Reads what a call asks for, with the right to the snapshot that it names.
    pub(super) fn read(ec2: &Ec2, ask: &Ask<'_>, state: &State) -> Result<Self, ApiError> {
        let input = ask.input;
        let zone = places::zone_of(ask)?.ok_or_else(|| refuse::missing_of_request("zone"))?;
        let tags = tags::of_new(input, Kind::Volume)?;
        let snapshot = input.text("SnapshotId").filter(|id| !id.is_empty());
        let snapshot = snapshot.map(|id| {
            Kind::Snapshot.check(id, "snapshotId")?;
            access::permitted_source(ask, state, id).cloned()
        });
        let snapshot = snapshot.transpose()?;
        let asked = Asked::read(input)?;
        let snapshot_gib = snapshot.as_ref().map(|snapshot| snapshot.size_gib);
        let provision = shape::provision(&ec2.options.catalog, &asked, snapshot_gib)?;
        let size_gib = provision.shape.size_gib;
        if let Some(snapshot) = snapshot.as_ref().filter(|snapshot| size_gib < snapshot.size_gib) {
            let message = format!(
                "Volume of {size_gib}GiB is smaller than snapshot '{}', expect size >= {}GiB",
                snapshot.id, snapshot.size_gib
            );
            return Err(refuse::invalid_value(message));
        }
        let rate = initialization_rate(ec2, ask, snapshot.is_some())?;
        let encryption = ec2.wish_of_volume(ask, state, snapshot.as_ref().map(Into::into))?;
        Ok(Self { zone, provision, snapshot, source: None, rate, charged: None, tags, encryption })
    }

    /// What a repeated call must ask for too.
    pub(super) fn parameters(&self) -> String {
        let shape = &self.provision.shape;
        let source = self.source.as_ref().map(|source| &source.id);
        let snapshot = self.snapshot.as_ref().map(|snapshot| &snapshot.id).or(source);
        let size = shape.size_gib;
        let mut all = json!([shape.kind, size, shape.iops, shape.throughput, snapshot, self.rate, self.tags]);
        // Tokens of earlier versions stay known.
        if let Some(all) = all.as_array_mut() {
            all.extend(shape.multi_attach.then(|| true.into()));
            if let Wish::Own(key) | Wish::Same(key) = &self.encryption {
                all.push(key.as_str().into());
            }
        }
        all.to_string()
    }
}

/// The provisioned rate of initialization that is asked for, MiB/s.
fn initialization_rate(ec2: &Ec2, ask: &Ask<'_>, from_snapshot: bool) -> Result<Option<u64>, ApiError> {
    let Some(rate) = ask.input.number("VolumeInitializationRate") else { return Ok(None) };
    if !from_snapshot {
        return Err(refuse::invalid_combination(
            "You can't specify VolumeInitializationRate for volumes that are not created from a snapshot.",
        ));
    }
    let offered = u64::try_from(rate).ok().filter(|mib_s| {
        let wanted = Initialization::Rate { mib_s: *mib_s };
        ec2.options.catalog.loader(wanted).is_ok()
    });
    let out_of_range = "The value specified for VolumeInitializationRate is not in the allowed range.";
    offered.map(Some).ok_or_else(|| refuse::invalid_value(out_of_range))
}

/// Refuses what this service does not have.
pub(super) fn refuse_unbuilt(ask: &Ask<'_>, kind: &str) -> Result<(), ApiError> {
    let input = ask.input;
    if input.flag("MultiAttachEnabled") == Some(true) {
        multi_attach::check_new(ask, kind)?;
    }
    if input.text("OutpostArn").is_some_and(|arn| !arn.is_empty()) {
        return Err(refuse::unsupported("AWS Outposts"));
    }
    Ok(())
}

/// Records a volume that a call has made, with the call's client token.
fn record_made(
    ask: &Ask<'_>,
    state: &mut State,
    volume: Volume,
    parameters: Option<String>,
    charged: Option<Snapshot>,
) -> Result<Volume, ApiError> {
    let mut changes = vec![Change::Volume(volume.clone())];
    changes.extend(charged.map(Change::Snapshot));
    let token = parameters.and_then(|parameters| use_token(ask, parameters, vec![volume.id.clone()]));
    changes.extend(token);
    state.commit(changes)?;
    Ok(volume)
}

impl Ec2 {
    pub(super) fn create_volume(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let is_long = ["SnapshotId", "ClientToken"].iter().all(|name| ask.input.text(name).is_some());
        let _alone = is_long.then(|| self.creating.lock());
        let mut state = self.state.lock();
        let mut wanted = Wanted::read(self, ask, &state)?;
        self.demand_volume(ask, &wanted)?;
        ask.end_dry_run()?;
        refuse_unbuilt(ask, &wanted.provision.shape.kind)?;
        let parameters = wanted.parameters();
        if let Some(known) = state.made_by(ask, &parameters)? {
            let id = known.made.first().map_or("", String::as_str);
            let volume = state.volume(ask, id)?;
            return Ok(describe_volumes::of_create(ask, volume, volume.state(ask.now())));
        }
        if let Some(snapshot) = &wanted.snapshot {
            let status = snapshot.state(ask.now()).unwrap_or("error");
            if status != "completed" {
                return Err(refuse::incorrect_state(format!("Snapshot is in invalid state - {status}")));
            }
            tier::demand_usable(snapshot, ask.now())?;
        }
        quota::room_for_volume(&self.options.quotas, &state, ask, &wanted.provision.shape, None)?;
        let key = self.find_key(ask, wanted.encryption.clone(), wanted.snapshot.as_ref().map(Into::into))?;
        // A provisioned rate wins over fast snapshot restore.
        let is_made = !matches!(key, Found::Unusable(..));
        if let Some(snapshot) = wanted.snapshot.as_ref().filter(|_| wanted.rate.is_none() && is_made) {
            wanted.charged = snapshot.without_credit(ask.account(), &wanted.zone.name, ask.now());
        }
        let volume = self.make_volume(ask, &mut state, (wanted, &key), Some(parameters))?;
        self.expect_events_of_new(ask, &volume);
        Ok(describe_volumes::of_create(ask, &volume, Some("creating")))
    }

    /// Demands the rights to make a volume, besides that to its snapshot: they are those of CreateVolume and of RunInstances.
    pub(super) fn demand_volume(&self, ask: &Ask<'_>, wanted: &Wanted) -> Result<(), ApiError> {
        let mut right = access::new_volume(ask, &wanted.provision, &wanted.zone.name, &wanted.zone.id);
        if let Wish::Own(key) | Wish::Same(key) = &wanted.encryption {
            right = right.encrypted(self.kms.as_ref().and_then(|kms| kms.arn_of(ask.call, key)).as_ref());
        }
        right = right.requests(&wanted.tags);
        if let Some(rate) = wanted.rate {
            right = right.with("ec2:VolumeInitializationRate", rate.to_string());
        }
        if let Some(snapshot) = &wanted.snapshot {
            right = right.with("ec2:ParentSnapshot", access::arn(ask, Kind::Snapshot, &snapshot.id));
        }
        right.demand(ask)?;
        access::demand_tagging(ask, Kind::Volume, &wanted.tags)
    }

    /// Makes the volume: first a record that a start after a kill takes back, then the volume, then the answerable record.
    /// `parameters` are those of a call whose client token stands for the volume.
    pub(super) fn make_volume(
        &self,
        ask: &Ask<'_>,
        state: &mut MutexGuard<'_, State>,
        (wanted, key): (Wanted, &Found),
        parameters: Option<String>,
    ) -> Result<Volume, ApiError> {
        let now = ask.now();
        let id = state.new_id(Kind::Volume);
        let data_key = self.data_key(key, &id)?;
        let volume = Volume {
            id: id.clone(),
            name: None,
            owner: ask.account().to_owned(),
            region: ask.region().to_owned(),
            zone: wanted.zone.name,
            shape: wanted.provision.shape,
            snapshot: wanted.snapshot.as_ref().map(|snapshot| snapshot.id.clone()),
            initialization_rate: wanted.rate,
            fast_restored: wanted.charged.is_some(),
            copied: None,
            kms_key: key.arn(),
            failure: None,
            // AWS shows whole seconds.
            created_ms: now / 1_000 * 1_000,
            available_ms: now + self.options.timing.creating_ms,
            stage: Stage::Making,
            lost: false,
            auto_enable_io: false,
            initialized: false,
            tags: wanted.tags,
            attachments: Vec::new(),
            modifications: Vec::new(),
            pending: None,
            token: client_token(ask)?.map(str::to_owned),
            occupied: false,
        };
        if let Found::Unusable(named, problem) = key {
            // AWS looks at the key after its answer.
            let failure = Some(encryption::cause(named, problem));
            let failed = Volume { failure, stage: Stage::Ready, ..volume };
            return record_made(ask, state, failed, parameters, None);
        }
        state.commit(vec![Change::Volume(volume.clone())])?;
        let made = (&volume, wanted.provision.spec, data_key);
        let copied = match self.make_here(state, wanted.source.as_ref(), made, now) {
            Ok(copied) => copied,
            Err(error) => {
                self.expect(of_failure(&volume, "createVolume", &error, now));
                state.commit(vec![Change::DropVolume(id)])?;
                return Err(refuse::of_control(&error));
            }
        };
        let volume = Volume { stage: Stage::Ready, copied, ..volume };
        // It may have changed while the volume was encrypted.
        let charged = wanted.charged.and_then(|charged| {
            state.snapshots().get(&charged.id)?.without_credit(ask.account(), &volume.zone, now)
        });
        record_made(ask, state, volume, parameters, charged)
    }

    /// Makes a volume on this host, empty, of its snapshot, or as a copy of `source`.
    fn make_here(
        &self,
        state: &mut MutexGuard<'_, State>,
        source: Option<&Volume>,
        (volume, spec, data_key): (&Volume, Spec, Option<WrappedKey>),
        now: u64,
    ) -> Result<Option<Copied>, ControlError> {
        let Some(source) = source else {
            return self.create_here(state, volume, spec, data_key).map(|()| None);
        };
        let ms = self.copy_here(state, source, (volume, spec, data_key))?;
        Ok(Some(Copied { source: source.id.clone(), began_ms: now, completes_ms: now + ms }))
    }

    /// Makes a volume on this host, empty or of its snapshot.
    fn create_here(
        &self,
        state: &mut MutexGuard<'_, State>,
        volume: &Volume,
        spec: Spec,
        data_key: Option<WrappedKey>,
    ) -> Result<(), ControlError> {
        let rate = volume.initialization_rate.map(|mib_s| Initialization::Rate { mib_s });
        let is_slow = data_key.is_some() && volume.snapshot.is_some();
        let request = CreateVolume {
            name: volume.id.clone(),
            spec,
            snapshot: volume.snapshot.clone(),
            initialization: if volume.fast_restored { Some(Initialization::None) } else { rate },
            block_size: BLOCK_BYTES,
            seed: None,
            region: None,
            token: None,
            key: data_key,
            owner: Some(volume.owner_request()),
        };
        // To encrypt a snapshot anew takes the time of its data: the records are free meanwhile.
        let created = if is_slow {
            MutexGuard::unlocked(state, || self.control.create_volume(&request))
        } else {
            self.control.create_volume(&request)
        };
        created.map(drop)
    }

    pub(super) fn delete_volume(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let id = ask.input.required("VolumeId", "volumeId")?;
        if !Kind::Volume.is_id(id) {
            return Err(refuse::invalid_value(format!("The volume ID '{id}' is malformed")));
        }
        let mut state = self.state.lock();
        let volume = access::permitted_volume(ask, &state, id)?.clone();
        ask.end_dry_run()?;
        if let Some(attachment) = volume.attachments_at(ask.now()).next() {
            return Err(ApiError::client(
                "VolumeInUse",
                format!("Volume {id} is currently attached to {}", attachment.instance),
            ));
        }
        if volume.occupied {
            let message = format!("Volume {id} is currently attached on this host by a command");
            return Err(ApiError::client("VolumeInUse", message));
        }
        self.remove_volume(ask.now(), &mut state, volume)?;
        Ok(Map::new())
    }

    /// Deletes a volume that is not attached, or puts it into the recycle bin.
    pub(super) fn remove_volume(&self, now: u64, state: &mut State, volume: Volume) -> Result<(), ApiError> {
        match bin::for_volume(state, &volume, now) {
            Some(stage) => {
                state.commit(vec![Change::Volume(Volume { stage, attachments: Vec::new(), ..volume })])
            }
            None => self.remove_volume_for_good(now, state, volume),
        }
    }

    /// Deletes a volume that is not attached: first the record, so that a start after a kill goes on with it.
    pub(super) fn remove_volume_for_good(
        &self,
        now: u64,
        state: &mut State,
        volume: Volume,
    ) -> Result<(), ApiError> {
        let until_ms = now + self.options.timing.deleting_ms;
        remove::for_good(&*self.control, state, volume, until_ms).map_err(|error| match error {
            RemoveError::Control(error) => refuse::of_control(&error),
            RemoveError::Records(error) => refuse::internal(with_causes(&error)),
        })
    }
}
