//! What a command may do to a volume or snapshot that EC2 of the home may have, whether its endpoint is served or not.

use std::sync::Arc;

use ebbtide_cloud::ec2::{DeleteError, Ec2, Hold, StoredRecords};
use ebbtide_cloud::front::Clock as _;
use ebbtide_control::ControlPlane;

use crate::clock::SystemClock;
use crate::error::ServeError;

/// What EC2 knows of the volumes and snapshots.
#[derive(Debug)]
pub(crate) enum Ec2Resources {
    /// The endpoint is served.
    Served(Arc<Ec2>),
    /// It is not, so that no call changes the records.
    Stored(StoredRecords),
}

impl Ec2Resources {
    /// Why a command has to leave the volume with an id alone; None where it may do everything.
    ///
    /// # Errors
    /// Records that cannot be read: [`ServeError::Records`].
    pub(crate) fn hold(&self, id: &str) -> Result<Option<Hold>, ServeError> {
        match self {
            Self::Served(ec2) => Ok(ec2.hold(id)),
            Self::Stored(records) => records.hold(id).map_err(ServeError::Records),
        }
    }

    /// Whether a snapshot of this name has a record.
    ///
    /// # Errors
    /// Records that cannot be read: [`ServeError::Records`].
    pub(crate) fn has_snapshot(&self, name: &str) -> Result<bool, ServeError> {
        match self {
            Self::Served(ec2) => Ok(ec2.has_snapshot(name)),
            Self::Stored(records) => records.has_snapshot(name).map_err(ServeError::Records),
        }
    }

    /// Deletes a volume that has a record, by EC2's rules. False where it has none: then nothing is done.
    ///
    /// # Errors
    /// As of [`Ec2::delete_for_command`].
    pub(crate) fn delete(&self, control: &dyn ControlPlane, id: &str) -> Result<bool, DeleteError> {
        let now_ms = SystemClock.now_ms();
        match self {
            Self::Served(ec2) => ec2.delete_for_command(id, now_ms),
            Self::Stored(records) => records.delete_for_command(control, id, now_ms),
        }
    }

    /// Does something with a volume that no instance has, while no call attaches or deletes it.
    ///
    /// # Errors
    /// What holds it; records that cannot be read.
    pub(crate) fn while_free<T>(
        &self,
        id: &str,
        work: impl FnOnce() -> T,
    ) -> Result<Result<T, Hold>, ServeError> {
        match self {
            Self::Served(ec2) => Ok(ec2.while_free(id, work)),
            // Nothing else changes the records.
            Self::Stored(_) => Ok(match self.hold(id)? {
                Some(hold) => Err(hold),
                None => Ok(work()),
            }),
        }
    }

    /// Whether the endpoint is served.
    pub(crate) const fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }
}
