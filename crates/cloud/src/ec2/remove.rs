//! The removal of a volume, from the records and from the home, whether a call or a command asks for it.

use ebbtide_control::{ControlError, ControlPlane};

use super::db::Change;
use super::records::{Stage, Volume};
use super::state::State;
use crate::RecordsError;

/// A volume that cannot be removed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoveError {
    /// The home keeps it.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The records cannot be written.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// Deletes a volume that is not attached: first the record, so that a start after a kill goes on with it. It is shown until a
/// time, in milliseconds since 1970.
pub(super) fn for_good(
    control: &dyn ControlPlane,
    state: &mut State,
    volume: Volume,
    until_ms: u64,
) -> Result<(), RemoveError> {
    let gone = Volume { stage: Stage::Gone { until_ms }, attachments: Vec::new(), ..volume.clone() };
    let id = gone.id.clone();
    state.try_commit(vec![Change::Volume(gone)])?;
    match control.delete_volume(&id) {
        Ok(()) | Err(ControlError::NotFound { .. }) => Ok(()),
        Err(error) => {
            state.try_commit(vec![Change::Volume(volume)])?;
            Err(error.into())
        }
    }
}
