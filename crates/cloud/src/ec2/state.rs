//! All records in memory, with the indexes that actions need, written through to the database.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::de::DeserializeOwned;

use super::ask::Ask;
use super::db::{Change, Db, Records};
use super::filter::Tags;
use super::ids::{Ids, Kind};
use super::records::{
    Attachment, Instance, Power, RegionSettings, Setting, Snapshot, Stage, TokenUse, Volume,
};
use super::refuse;
use crate::service::with_causes;
use crate::{ApiError, RecordsError};

/// How often records are looked through for those that nobody can see any more, in milliseconds of the calls' time.
const SWEEP_MS: u64 = 60_000;

/// How long the token of a resource that is gone is known, in milliseconds. AWS does not document it.
const TOKEN_MS: u64 = 24 * 3_600_000;

/// The records of the service.
#[derive(Debug)]
pub(super) struct State {
    db: Db,
    ids: Ids,
    volumes: BTreeMap<String, Volume>,
    snapshots: BTreeMap<String, Snapshot>,
    instances: BTreeMap<String, Instance>,
    tokens: BTreeMap<String, TokenUse>,
    settings: BTreeMap<String, Setting>,
    /// Volumes with an attachment, by instance.
    by_instance: BTreeMap<String, BTreeSet<String>>,
    /// Snapshots by the volume that they show.
    by_volume: BTreeMap<String, BTreeSet<String>>,
    /// Volumes that are detached from instances as soon as nothing uses them, with the time of the latest attempt.
    pub(super) busy: BTreeMap<(String, String), u64>,
    swept_ms: u64,
    /// When the recycle bin was last looked through.
    pub(super) emptied_ms: u64,
    /// Whether changes of volumes by commands could not be recorded.
    pub(super) is_behind: bool,
}

impl State {
    pub(super) fn load(db: Db, seed: u64) -> Result<Self, RecordsError> {
        let Records { volumes, snapshots, instances, tokens, settings } = db.load()?;
        let mut state = Self {
            db,
            ids: Ids::new(seed),
            by_instance: BTreeMap::new(),
            by_volume: BTreeMap::new(),
            volumes: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            instances: instances.into_iter().map(|one| (one.id.clone(), one)).collect(),
            tokens: tokens.into_iter().map(|one| (one.key.clone(), one)).collect(),
            settings: settings.into_iter().map(|one| (one.key.clone(), one)).collect(),
            busy: BTreeMap::new(),
            swept_ms: 0,
            emptied_ms: 0,
            is_behind: false,
        };
        for volume in &volumes {
            for attachment in &volume.attachments {
                let of_instance = state.by_instance.entry(attachment.instance.clone()).or_default();
                of_instance.insert(volume.id.clone());
            }
        }
        for snapshot in &snapshots {
            state.by_volume.entry(snapshot.volume.clone()).or_default().insert(snapshot.id.clone());
        }
        // Made from a list in order, a map is full; filled one by one, it is half empty.
        state.volumes = volumes.into_iter().map(|volume| (volume.id.clone(), volume)).collect();
        state.snapshots = snapshots.into_iter().map(|snapshot| (snapshot.id.clone(), snapshot)).collect();
        Ok(state)
    }

    /// Makes changes durable, all of them or none, and then visible.
    pub(super) fn commit(&mut self, changes: Vec<Change>) -> Result<(), ApiError> {
        self.try_commit(changes).map_err(|error| refuse::internal(with_causes(&error)))
    }

    pub(super) fn try_commit(&mut self, changes: Vec<Change>) -> Result<(), RecordsError> {
        self.db.commit(&changes)?;
        changes.into_iter().for_each(|change| self.apply(change));
        Ok(())
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Volume(mut volume) => {
                let id = volume.id.clone();
                // A change that began before a command attached or detached it knows nothing of that.
                volume.occupied = self.volumes.get(&id).is_some_and(|before| before.occupied);
                let instances: Vec<_> = volume.attachments.iter().map(|at| at.instance.clone()).collect();
                let before = self.volumes.insert(id.clone(), volume);
                self.forget_instances_of(before);
                for instance in instances {
                    self.by_instance.entry(instance).or_default().insert(id.clone());
                }
            }
            Change::DropVolume(id) => {
                let before = self.volumes.remove(&id);
                self.forget_instances_of(before);
            }
            Change::Snapshot(snapshot) => {
                self.by_volume.entry(snapshot.volume.clone()).or_default().insert(snapshot.id.clone());
                self.snapshots.insert(snapshot.id.clone(), snapshot);
            }
            Change::DropSnapshot(id) => {
                if let Some(snapshot) = self.snapshots.remove(&id) {
                    remove(&mut self.by_volume, &snapshot.volume, &id);
                }
            }
            Change::Instance(instance) => drop(self.instances.insert(instance.id.clone(), instance)),
            Change::DropInstance(id) => drop(self.instances.remove(&id)),
            Change::Token(token) => drop(self.tokens.insert(token.key.clone(), token)),
            Change::DropToken(key) => drop(self.tokens.remove(&key)),
            Change::Setting(setting) => drop(self.settings.insert(setting.key.clone(), setting)),
            Change::DropSetting(key) => drop(self.settings.remove(&key)),
        }
    }

    /// Notes whether a command has a volume attached.
    pub(super) fn occupy(&mut self, id: &str, is_occupied: bool) {
        if let Some(volume) = self.volumes.get_mut(id) {
            volume.occupied = is_occupied;
        }
    }

    fn forget_instances_of(&mut self, before: Option<Volume>) {
        let Some(Volume { id, attachments, .. }) = before else { return };
        for attachment in attachments {
            remove(&mut self.by_instance, &attachment.instance, &id);
        }
    }

    /// Forgets what nobody can see any more, from time to time.
    pub(super) fn sweep(&mut self, now: u64, terminated_ms: u64) -> Result<(), ApiError> {
        if now < self.swept_ms.saturating_add(SWEEP_MS) {
            return Ok(());
        }
        self.swept_ms = now;
        let over = |stage| matches!(stage, Stage::Gone { until_ms } if until_ms <= now);
        let failed = |volume: &Volume| volume.failure.is_some() && volume.available_ms <= now;
        let volumes = self.volumes.values().filter(|volume| over(volume.stage) || failed(volume));
        let mut gone: Vec<_> = volumes.map(|volume| Change::DropVolume(volume.id.clone())).collect();
        let instances = self.instances.values().filter(|instance| {
            instance.power(now) == Power::Terminated && instance.until_ms.saturating_add(terminated_ms) <= now
        });
        gone.extend(instances.map(|instance| Change::DropInstance(instance.id.clone())));
        let tokens = self.tokens.values().filter(|token| {
            token.used_ms.saturating_add(TOKEN_MS) <= now && token.made.iter().all(|id| self.is_gone(id, now))
        });
        gone.extend(tokens.map(|token| Change::DropToken(token.key.clone())));
        if gone.is_empty() { Ok(()) } else { self.commit(gone) }
    }

    /// Whether a volume or instance that a token made is deleted or terminated.
    pub(super) fn is_gone(&self, id: &str, now: u64) -> bool {
        match Kind::of(id) {
            Some(Kind::Volume) => self
                .volumes
                .get(id)
                .is_none_or(|volume| !matches!(volume.stage, Stage::Ready) || volume.state(now).is_none()),
            Some(Kind::Instance) => {
                self.instances.get(id).is_none_or(|instance| instance.power(now) == Power::Terminated)
            }
            _ => !self.snapshots.contains_key(id),
        }
    }

    /// How what is new of an account in a Region is encrypted.
    pub(super) fn region_settings(&self, account: &str, region: &str) -> RegionSettings {
        self.setting(&RegionSettings::key(account, region)).unwrap_or_default()
    }

    /// An id that nothing has.
    pub(super) fn new_id(&mut self, kind: Kind) -> String {
        loop {
            let id = self.ids.next(kind);
            let taken = match kind {
                Kind::Volume => self.volumes.contains_key(&id),
                Kind::Snapshot => self.snapshots.contains_key(&id),
                Kind::Instance => self.instances.contains_key(&id),
            };
            if !taken {
                return id;
            }
        }
    }

    pub(super) fn new_reservation(&mut self) -> String {
        self.ids.reservation()
    }

    // ---- Records whoever asks -----------------------------------------------------------------------------------------

    pub(super) const fn volumes(&self) -> &BTreeMap<String, Volume> {
        &self.volumes
    }

    pub(super) const fn snapshots(&self) -> &BTreeMap<String, Snapshot> {
        &self.snapshots
    }

    pub(super) const fn instances(&self) -> &BTreeMap<String, Instance> {
        &self.instances
    }

    /// A setting by its key.
    pub(super) fn setting<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.settings.get(key).and_then(|setting| serde_json::from_value(setting.value.clone()).ok())
    }

    /// The settings whose keys begin with a text, by their keys.
    pub(super) fn settings<T: DeserializeOwned>(&self, prefix: &str) -> Vec<T> {
        let from = self.settings.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let those = from.take_while(|(key, _)| key.starts_with(prefix));
        those.filter_map(|(_, setting)| serde_json::from_value(setting.value.clone()).ok()).collect()
    }

    /// The volumes that have an attachment to an instance, with it, gone ones too.
    pub(super) fn volumes_of<'a>(
        &'a self,
        instance: &'a str,
    ) -> impl Iterator<Item = (&'a Volume, &'a Attachment)> {
        let ids = self.by_instance.get(instance).into_iter().flatten();
        let volumes = ids.filter_map(|id| self.volumes.get(id));
        volumes.filter_map(move |volume| Some((volume, volume.attachment_to(instance)?)))
    }

    /// The snapshots of a volume.
    pub(super) fn snapshots_of(&self, volume: &str) -> impl Iterator<Item = &Snapshot> {
        let ids = self.by_volume.get(volume).into_iter().flatten();
        ids.filter_map(|id| self.snapshots.get(id))
    }

    // ---- What a caller sees -------------------------------------------------------------------------------------------

    /// A volume that the caller sees, deleting ones too.
    pub(super) fn seen_volume(&self, ask: &Ask<'_>, id: &str) -> Option<&Volume> {
        self.volumes
            .get(id)
            .filter(|volume| is_of(ask, &volume.owner, &volume.region))
            .filter(|volume| volume.state(ask.now()).is_some())
    }

    /// A volume of the caller that is not deleted.
    pub(super) fn volume(&self, ask: &Ask<'_>, id: &str) -> Result<&Volume, ApiError> {
        self.seen_volume(ask, id)
            .filter(|volume| volume.stage == Stage::Ready)
            .ok_or_else(|| refuse::not_found(Kind::Volume, id))
    }

    /// A snapshot of the region, whoever owns it.
    pub(super) fn any_snapshot(&self, ask: &Ask<'_>, region: &str, id: &str) -> Option<&Snapshot> {
        let there = |snapshot: &&Snapshot| snapshot.region == region && snapshot.state(ask.now()).is_some();
        self.snapshots.get(id).filter(there)
    }

    /// A snapshot that the caller may make volumes of.
    pub(super) fn open_snapshot(&self, ask: &Ask<'_>, region: &str, id: &str) -> Result<&Snapshot, ApiError> {
        self.any_snapshot(ask, region, id)
            .filter(|snapshot| snapshot.is_open_to(ask.account()))
            .ok_or_else(|| refuse::not_found(Kind::Snapshot, id))
    }

    /// A snapshot of the caller.
    pub(super) fn snapshot(&self, ask: &Ask<'_>, id: &str) -> Result<&Snapshot, ApiError> {
        self.any_snapshot(ask, ask.region(), id)
            .filter(|snapshot| snapshot.owner == ask.account())
            .ok_or_else(|| refuse::not_found(Kind::Snapshot, id))
    }

    /// An instance that the caller sees, terminated ones too.
    pub(super) fn seen_instance(&self, ask: &Ask<'_>, id: &str) -> Option<&Instance> {
        self.instances.get(id).filter(|instance| is_of(ask, &instance.owner, &instance.region))
    }

    pub(super) fn instance(&self, ask: &Ask<'_>, id: &str) -> Result<&Instance, ApiError> {
        self.seen_instance(ask, id).ok_or_else(|| refuse::not_found(Kind::Instance, id))
    }

    /// The tags of a resource of the caller, whatever its kind.
    pub(super) fn tags(&self, ask: &Ask<'_>, kind: Kind, id: &str) -> Result<&Tags, ApiError> {
        Ok(match kind {
            Kind::Volume => &self.volume(ask, id)?.tags,
            Kind::Snapshot => &self.snapshot(ask, id)?.tags,
            Kind::Instance => &self.instance(ask, id)?.tags,
        })
    }

    /// The change that gives a resource other tags.
    pub(super) fn retag(&self, ask: &Ask<'_>, kind: Kind, id: &str, tags: Tags) -> Result<Change, ApiError> {
        Ok(match kind {
            Kind::Volume => Change::Volume(Volume { tags, ..self.volume(ask, id)?.clone() }),
            Kind::Snapshot => Change::Snapshot(Snapshot { tags, ..self.snapshot(ask, id)?.clone() }),
            Kind::Instance => Change::Instance(Instance { tags, ..self.instance(ask, id)?.clone() }),
        })
    }

    // ---- Client tokens ------------------------------------------------------------------------------------------------

    /// What a token has made, by its whole key.
    pub(super) fn token(&self, key: &str) -> Option<&TokenUse> {
        self.tokens.get(key)
    }

    /// What a call with a client token has made before: none where the token is new.
    pub(super) fn made_by(&self, ask: &Ask<'_>, parameters: &str) -> Result<Option<&TokenUse>, ApiError> {
        let Some(token) = client_token(ask)? else { return Ok(None) };
        let Some(known) = self.tokens.get(&token_key(ask, token)) else { return Ok(None) };
        let mismatch = |message: String| ApiError::client("IdempotentParameterMismatch", message);
        if known.parameters != parameters {
            return Err(mismatch(
                "Parameters on this idempotent request are inconsistent with parameters used in previous request(s)."
                    .to_owned(),
            ));
        }
        if let Some(gone) = known.made.iter().find(|id| self.is_gone(id, ask.now())) {
            return Err(mismatch(format!(
                "The client token '{token}' is associated with resource '{gone}' which has already been deleted. \
                 Please use a different client token."
            )));
        }
        Ok(Some(known))
    }
}

/// The change that keeps a call's client token; none without one.
pub(super) fn use_token(ask: &Ask<'_>, parameters: String, made: Vec<String>) -> Option<Change> {
    let token = client_token(ask).ok().flatten()?;
    let (key, used_ms) = (token_key(ask, token), ask.now());
    Some(Change::Token(TokenUse { key, used_ms, parameters, made }))
}

/// The token of a call.
pub(super) fn client_token<'a>(ask: &Ask<'a>) -> Result<Option<&'a str>, ApiError> {
    let token = ask.input.text("ClientToken").filter(|token| !token.is_empty());
    match token {
        Some(token) if token.len() > 64 || !token.is_ascii() => {
            let message = format!(
                "Value ({token}) for parameter clientToken is invalid. It has at most 64 ASCII characters."
            );
            Err(refuse::invalid_value(message))
        }
        token => Ok(token),
    }
}

fn token_key(ask: &Ask<'_>, token: &str) -> String {
    format!("{}/{}/{}/{token}", ask.account(), ask.region(), ask.call.action)
}

pub(super) fn is_of(ask: &Ask<'_>, owner: &str, region: &str) -> bool {
    owner == ask.account() && region == ask.region()
}

fn remove(index: &mut BTreeMap<String, BTreeSet<String>>, key: &str, id: &str) {
    if let Some(ids) = index.get_mut(key) {
        ids.remove(id);
        if ids.is_empty() {
            index.remove(key);
        }
    }
}
