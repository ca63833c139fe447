//! Which volume has which id, whose it is, and which volumes have changed since the AWS endpoint looked.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ebbtide_device::host::Status;
use parking_lot::Mutex;

use super::LiveControl;
use crate::identity::new_volume_id;
use crate::record::VolumeRecord;
use crate::state::Operation;
use crate::{ControlError, Owner, OwnerRequest, UnixTime, VolumeIdentity, is_volume_id};

/// The ids of a home's volumes. No other lock is taken while its lock is held.
#[derive(Debug, Default)]
pub(super) struct VolumeIndex(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    names: BTreeMap<String, String>,
    ids: BTreeMap<String, String>,
    /// Ids of volumes that changed since the reader asked. None as long as nobody has: they would only become more.
    changed: Option<BTreeSet<String>>,
    default_owner: Owner,
}

impl Index {
    fn note(&mut self, id: String) {
        if let Some(changed) = &mut self.changed {
            changed.insert(id);
        }
    }
}

impl VolumeIndex {
    fn name(&self, id: &str) -> Option<String> {
        self.0.lock().names.get(id).cloned()
    }

    /// The id of a volume by its name.
    pub(super) fn id(&self, name: &str) -> Option<String> {
        self.0.lock().ids.get(name).cloned()
    }

    /// A volume is there from now on.
    pub(super) fn add(&self, name: &str, id: &str) {
        let mut index = self.0.lock();
        index.names.insert(id.to_owned(), name.to_owned());
        index.ids.insert(name.to_owned(), id.to_owned());
        index.note(id.to_owned());
    }

    /// A volume is there no more.
    pub(super) fn remove(&self, name: &str) {
        let mut index = self.0.lock();
        if let Some(id) = index.ids.remove(name) {
            index.names.remove(&id);
            index.note(id);
        }
    }

    /// A volume is not what it was. To be called when the change can be seen.
    pub(super) fn changed(&self, name: &str) {
        let mut index = self.0.lock();
        if let Some(id) = index.ids.get(name).cloned() {
            index.note(id);
        }
    }

    /// The ids that were noted, or all.
    pub(super) fn take_changed(&self, anew: bool) -> Vec<String> {
        let mut index = self.0.lock();
        let noted = index.changed.get_or_insert_default();
        if !anew && noted.is_empty() {
            return Vec::new();
        }
        let noted = std::mem::take(noted);
        if anew { index.names.keys().cloned().collect() } else { noted.into_iter().collect() }
    }

    /// Whose a volume is that nobody gave an owner.
    pub(super) fn default_owner(&self) -> Owner {
        self.0.lock().default_owner.clone()
    }
}

impl LiveControl {
    /// Names the owner of new volumes, and of those of before there were owners, in place of [`Owner::default`].
    pub fn set_default_owner(&self, owner: Owner) {
        self.index.0.lock().default_owner = owner;
    }

    /// The id of a volume by its name or its id: nobody has asked for it, so that it is not counted.
    #[must_use]
    pub fn volume_id(&self, volume: &str) -> Option<String> {
        self.index.id(&self.name_of(volume))
    }

    /// The name of a volume by its name or its id; the same text for one that is missing.
    #[must_use]
    pub fn name_of<'a>(&self, volume: &'a str) -> Cow<'a, str> {
        if !is_volume_id(volume) {
            return Cow::Borrowed(volume);
        }
        self.index.name(volume).map_or(Cow::Borrowed(volume), Cow::Owned)
    }

    /// Gives an id to each volume that has none, and notes all. A store of an earlier version has volumes without.
    pub(super) fn identify(&self) {
        for name in self.host.store().names().volumes {
            let Ok(meta) = self.host.store().meta(&name) else { continue };
            let Ok(record) = VolumeRecord::read(&meta) else { continue };
            let id = match record.id {
                Some(id) => id,
                None => match self.give_id(&name) {
                    Ok(id) => id,
                    Err(error) => {
                        // It goes on without: a full disk must not keep its volumes from being served.
                        tracing::warn!(volume = name, %error, "the volume gets no id before the next start");
                        continue;
                    }
                },
            };
            self.index.add(&name, &id);
        }
    }

    fn give_id(&self, name: &str) -> Result<String, ControlError> {
        let id = new_volume_id(name);
        self.host.update_meta(name, |whole| {
            if let Ok(record) = VolumeRecord::read(whole) {
                VolumeRecord { id: Some(id.clone()), ..record }.write(whole);
            }
        })?;
        Ok(id)
    }

    /// Whose a volume is; None where an earlier version's AWS endpoint knows it and nobody else.
    pub(super) fn owner_of(&self, name: &str, record: &VolumeRecord) -> Option<Owner> {
        let default = || (!is_volume_id(name)).then(|| self.index.default_owner());
        record.owner.clone().or_else(default)
    }

    /// The owner of a new volume.
    pub(super) fn owner_of_new(&self, asked: Option<&OwnerRequest>) -> Owner {
        let default = self.index.default_owner();
        match asked {
            Some(owner) => owner.or_zone(&default.zone),
            None => default,
        }
    }

    /// Gives a volume to another owner.
    pub(super) fn give(&self, name: &str, asked: &OwnerRequest) -> Result<(), ControlError> {
        let (_, state) = self.find(name)?;
        state.permits(Operation::Modify)?;
        let default = self.index.default_owner();
        // A modification at the same time would write the record as it was before.
        self.host.while_alone(name, "being given to another owner", |_| {
            self.host.update_meta(name, |whole| {
                if let Ok(record) = VolumeRecord::read(whole) {
                    let present = record.owner.as_ref().unwrap_or(&default);
                    let owner = Some(asked.or_zone(&present.zone));
                    VolumeRecord { owner, ..record }.write(whole);
                }
            })
        })??;
        self.index.changed(name);
        tracing::info!(volume = name, owner = %asked, "given to another owner");
        Ok(())
    }

    /// What is known quickly of a volume.
    pub(super) fn identity_of(&self, id: &str) -> Option<VolumeIdentity> {
        let name = self.index.name(id)?;
        let summary = self.host.store().summary(&name).ok()?;
        let record = VolumeRecord::read(&summary.meta).ok()?;
        let is_attached = match self.host.status(&name) {
            Status::Free => Some(false),
            Status::Attached(_) => Some(true),
            Status::Busy(_) => None,
        };
        let has_own_owner = record.owner.is_some();
        Some(VolumeIdentity {
            id: id.to_owned(),
            owner: record.owner.unwrap_or_else(|| self.index.default_owner()),
            has_own_owner,
            spec: record.spec,
            modification: record.modifications.last().copied(),
            size_bytes: summary.size_bytes,
            initialization: record.initialization,
            from_snapshot: summary.from_snapshot,
            key_id: summary.key_id,
            created: UnixTime::of_seconds(summary.created_unix_s),
            is_attached,
            name,
        })
    }
}
