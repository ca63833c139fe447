//! What commands of the home may do to the volumes that have a record, and what becomes of the record.
//!
//! A volume belongs to both: to the command line by its name, and to EC2 by its id. What an instance has is left to EC2. The
//! records are held while a volume is deleted or given away, so that no call attaches it meanwhile.

use std::path::{Path, PathBuf};

use ebbtide_control::{ControlError, ControlPlane};
use parking_lot::Mutex;

use super::db::{Change, Db, FILE};
use super::events::of_deletion;
use super::owned::OwnedIds;
use super::records::{Stage, Volume};
use super::remove::{self, RemoveError};
use super::state::State;
use super::{Ec2, bin};
use crate::RecordsError;

/// Why a command has to leave a volume alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// The instance with this id has it, or is getting or giving it up.
    Instance(String),
    /// It waits in the recycle bin.
    RecycleBin,
    /// A call is making it.
    Making,
}

/// A deletion by a command that was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeleteError {
    /// It is left to EC2.
    #[error("the volume is left to EC2")]
    Held(Hold),
    /// The control plane refuses it.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The records cannot be written.
    #[error("the records of EC2 cannot be written")]
    Records(#[from] RecordsError),
}

impl From<RemoveError> for DeleteError {
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::Control(error) => Self::Control(error),
            RemoveError::Records(error) => Self::Records(error),
        }
    }
}

/// Who has a volume by its record; None if nobody has it, or it has no record.
fn hold(state: &State, id: &str) -> Option<Hold> {
    let volume = state.volumes().get(id)?;
    match volume.stage {
        Stage::Making => Some(Hold::Making),
        Stage::Binned { .. } => Some(Hold::RecycleBin),
        Stage::Gone { .. } => None,
        Stage::Ready => {
            let holder = volume.attachments.iter().find(|attachment| attachment.holds());
            holder.map(|attachment| Hold::Instance(attachment.instance.clone()))
        }
    }
}

/// Deletes a volume by the rules of DeleteVolume: a rule of the recycle bin keeps it. False where it has no record.
fn delete(
    control: &dyn ControlPlane,
    state: &mut State,
    id: &str,
    (now_ms, until_ms): (u64, u64),
) -> Result<bool, DeleteError> {
    if let Some(hold) = hold(state, id) {
        return Err(DeleteError::Held(hold));
    }
    let known = state.volumes().get(id).filter(|volume| volume.stage == Stage::Ready);
    let Some(volume) = known.cloned() else { return Ok(false) };
    // What a command has attached is refused by the control plane.
    let is_free = control.identity(id).is_some_and(|found| found.is_attached == Some(false));
    match bin::for_volume(state, &volume, now_ms).filter(|_| is_free) {
        Some(stage) => {
            state.try_commit(vec![Change::Volume(Volume { stage, attachments: Vec::new(), ..volume })])?;
        }
        None => remove::for_good(control, state, volume, until_ms)?,
    }
    Ok(true)
}

impl Ec2 {
    /// Why a command has to leave the volume with an id alone; None where it may do everything.
    #[must_use]
    pub fn hold(&self, id: &str) -> Option<Hold> {
        hold(&self.state.lock(), id)
    }

    /// Whether a snapshot of this name has a record.
    #[must_use]
    pub fn has_snapshot(&self, name: &str) -> bool {
        self.state.lock().snapshots().contains_key(name)
    }

    /// Does something with a volume while no call can attach or delete it.
    ///
    /// # Errors
    /// What holds it.
    pub fn while_free<T>(&self, id: &str, work: impl FnOnce() -> T) -> Result<T, Hold> {
        let state = self.state.lock();
        match hold(&state, id) {
            Some(hold) => Err(hold),
            None => Ok(work()),
        }
    }

    /// Deletes a volume for a command, by the rules of DeleteVolume, at a time in milliseconds since 1970. False where it has
    /// no record: then nothing is done.
    ///
    /// # Errors
    /// A volume that is held, or attached; records that cannot be written.
    pub fn delete_for_command(&self, id: &str, now_ms: u64) -> Result<bool, DeleteError> {
        // It may have no record only because nobody has looked since it was created.
        self.follow(now_ms);
        let mut state = self.state.lock();
        let until_ms = now_ms.saturating_add(self.options.timing.deleting_ms);
        let deleted = delete(&*self.control, &mut state, id, (now_ms, until_ms))?;
        self.events.expect(state.volumes().get(id).and_then(of_deletion).filter(|_| deleted));
        Ok(deleted)
    }
}

/// The records of a home while no [`Ec2`] is open on it. They are read for each question: few are asked, and there may be many
/// records.
#[derive(Debug)]
pub struct StoredRecords {
    home: PathBuf,
    /// Held while the records are read and changed.
    alone: Mutex<()>,
}

impl StoredRecords {
    /// Those of a home, which may have none.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn open(home: &Path) -> Result<Self, RecordsError> {
        OwnedIds::read(home)?;
        Ok(Self { home: home.to_owned(), alone: Mutex::default() })
    }

    fn read(&self) -> Result<Option<State>, RecordsError> {
        if !self.home.join(FILE).exists() {
            return Ok(None);
        }
        // No id is made, so that any seed does.
        Ok(Some(State::load(Db::open(&self.home)?, 0)?))
    }

    /// As [`Ec2::hold`].
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn hold(&self, id: &str) -> Result<Option<Hold>, RecordsError> {
        let _alone = self.alone.lock();
        Ok(self.read()?.as_ref().and_then(|state| hold(state, id)))
    }

    /// As [`Ec2::has_snapshot`].
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn has_snapshot(&self, name: &str) -> Result<bool, RecordsError> {
        Ok(OwnedIds::read(&self.home)?.has(name))
    }

    /// As [`Ec2::delete_for_command`]. The next endpoint publishes the event of it.
    ///
    /// # Errors
    /// As [`Ec2::delete_for_command`].
    pub fn delete_for_command(
        &self,
        control: &dyn ControlPlane,
        id: &str,
        now_ms: u64,
    ) -> Result<bool, DeleteError> {
        let _alone = self.alone.lock();
        match self.read()? {
            Some(mut state) => delete(control, &mut state, id, (now_ms, now_ms)),
            None => Ok(false),
        }
    }
}
