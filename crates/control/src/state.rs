//! A volume's state machine: what may be done to a volume, decided over its state, a request and the time.
//!
//! It is pure: [`LiveControl`](crate::LiveControl) asks it, and then does what it answers.
//! [`VolumeState::permits`] is this table:
//!
//! | State | attach | detach | modify | delete | snapshot | crash image, faults |
//! |---|---|---|---|---|---|---|
//! | available | yes | not attached | yes | yes | yes | not attached |
//! | busy | not free | not free | not free | not free | not free | not free |
//! | in-use | not free | yes | yes | not free | yes | yes |
//! | damaged, detached | damaged | not attached | yes | yes | damaged | not attached |
//!
//! A modification has states of its own ([`VolumeRecord::phase`]), which depend on the time alone:
//! `modifying`, `optimizing`, `completed`. Which modification is allowed when is AWS's rule, which
//! [`VolumeState::modify`] asks the catalogue for.

use ebbtide_catalog::{Catalog, Spec};
use ebbtide_device::host::{LoadingDamage, SavedCredits, SavedLoading};
use ebbtide_device::store::{Damage, VolumeInfo};
use ebbtide_volume::{Array, Nanos};

use crate::error::ForeignRecord;
use crate::record::{AllowedModification, VolumeRecord, unix_s};
use crate::{ControlError, Optimizing, VolumeStatus};

/// Who has a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Occupancy {
    /// Nobody.
    Free,
    /// A request that is being carried out, in words: `being attached`.
    Busy(&'static str),
    /// An attachment, in words: `as /dev/loop0 on /mnt/db`.
    Attached(String),
}

/// A volume, as far as the rules look at it.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeState {
    /// Its name.
    pub name: String,
    /// What is kept with it.
    pub record: Result<VolumeRecord, ForeignRecord>,
    /// Its burst credits when they were last saved.
    pub credits: Option<SavedCredits>,
    /// How far it was loaded when that was last saved; none where it loads nothing.
    pub loading: Result<Option<SavedLoading>, LoadingDamage>,
    /// Who has it.
    pub occupancy: Occupancy,
    /// Why it cannot be opened.
    pub damage: Option<Damage>,
}

/// What can be asked of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// To attach it.
    Attach,
    /// To detach it.
    Detach,
    /// To make another volume of it.
    Modify,
    /// To delete it.
    Delete,
    /// To copy it.
    Snapshot,
    /// To copy it as a power cut would leave it.
    CrashImage,
    /// To break or mend it.
    SetFaults,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Attach,
        Self::Detach,
        Self::Modify,
        Self::Delete,
        Self::Snapshot,
        Self::CrashImage,
        Self::SetFaults,
    ];
}

impl VolumeState {
    /// A volume as the store knows it, and who has it.
    #[must_use]
    pub fn of(info: &VolumeInfo, occupancy: Occupancy) -> Self {
        Self {
            name: info.name.clone(),
            record: VolumeRecord::read(&info.meta),
            credits: SavedCredits::read(&info.meta),
            loading: SavedLoading::read(&info.meta),
            occupancy,
            damage: info.damage.clone(),
        }
    }

    /// The state in a word.
    #[must_use]
    pub const fn state(&self) -> VolumeStatus {
        match (&self.damage, &self.occupancy) {
            (Some(_), _) => VolumeStatus::Damaged,
            (None, Occupancy::Free) => VolumeStatus::Available,
            (None, Occupancy::Busy(_)) => VolumeStatus::Busy,
            (None, Occupancy::Attached(_)) => VolumeStatus::InUse,
        }
    }

    /// Whether an operation is possible in the present state.
    ///
    /// # Errors
    /// Why not: [`ControlError::NotFree`], [`ControlError::NotAttached`], [`ControlError::Damaged`],
    /// [`ControlError::Foreign`].
    pub fn permits(&self, operation: Operation) -> Result<(), ControlError> {
        use Operation as O;
        let attached = match &self.occupancy {
            Occupancy::Busy(doing) => return Err(self.not_free((*doing).to_owned())),
            Occupancy::Attached(place) => Some(place),
            Occupancy::Free => None,
        };
        match (operation, attached) {
            (O::Attach | O::Delete, Some(place)) => Err(self.not_free(format!("attached {place}"))),
            (O::Detach | O::CrashImage | O::SetFaults, None) => {
                Err(ControlError::NotAttached { volume: self.name.clone() })
            }
            (O::Attach, None) => self.own_record().and_then(|_| self.require_sound()),
            (O::Snapshot, None) => self.require_sound(),
            (O::Modify, _) => self.own_record().map(|_| ()),
            (O::Delete, None) | (O::Detach | O::Snapshot | O::CrashImage | O::SetFaults, Some(_)) => Ok(()),
        }
    }

    /// What is kept of the volume, and its model, with which it is attached now.
    ///
    /// # Errors
    /// As [`Self::permits`]; a stored spec that the catalogue no longer knows.
    pub fn attach(&self, catalog: &Catalog, now: Nanos) -> Result<(&VolumeRecord, Array), ControlError> {
        self.permits(Operation::Attach)?;
        let record = self.own_record()?;
        Ok((record, self.model(record, catalog, now)?))
    }

    /// The model of the volume at a time at which it is not attached.
    ///
    /// # Errors
    /// A stored spec or rate that the catalogue no longer knows; a state of loading that cannot be read.
    pub fn model(&self, record: &VolumeRecord, catalog: &Catalog, now: Nanos) -> Result<Array, ControlError> {
        let damaged = ControlError::contradiction("the volume's state of loading cannot be read");
        let loading = self.loading.clone().map_err(damaged)?;
        record.model(self.credits, loading, catalog, now)
    }

    /// What the volume becomes by a modification that is asked for now.
    ///
    /// # Errors
    /// As [`Self::permits`]; what AWS would refuse, in its words and its order.
    pub fn modify(
        &self,
        catalog: &Catalog,
        to: &Spec,
        optimizing: Optimizing,
        now: Nanos,
    ) -> Result<AllowedModification, ControlError> {
        self.permits(Operation::Modify)?;
        self.own_record()?.modified(catalog, to, optimizing, unix_s(now))
    }

    fn not_free(&self, state: String) -> ControlError {
        ControlError::NotFree { volume: self.name.clone(), state }
    }

    fn require_sound(&self) -> Result<(), ControlError> {
        self.damage.as_ref().map_or(Ok(()), |damage| Err(ControlError::Damaged(damage.clone())))
    }

    fn own_record(&self) -> Result<&VolumeRecord, ControlError> {
        self.record
            .as_ref()
            .map_err(|source| ControlError::Foreign { volume: self.name.clone(), source: source.clone() })
    }
}

#[cfg(test)]
mod tests;
