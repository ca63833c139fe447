//! Why a stint, or the judgement of a cut, ended early.

use ebbtide_device::host::HostError;
use ebbtide_device::store::StoreError;
use ebbtide_load::LoadError;
use ebbtide_load::invariant::JournalError;
use ebbtide_mysql::ServerError;

use crate::run::error::{StageError, chain};

/// Why a stint ended early, or why a cut could not be judged. One variant for each cause: what follows from it is
/// decided by the variant, never by its words.
#[derive(Debug, thiserror::Error)]
pub(super) enum StintError {
    /// The volumes, the server, or a statement.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The replica no longer follows its source.
    #[error(transparent)]
    Replica(#[from] ReplicaLost),
    /// No client of the load is left.
    #[error("every client of the load has ended: {why}")]
    ClientsEnded {
        /// What the first of them said.
        why: String,
    },
    /// The journal of the clients does not say what was acknowledged at the cut.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A cut has damaged the server's data, and the server has no others.
    #[error("the server's data are damaged: its further kills would only show that again")]
    Damaged,
    /// A cut that was judged could not be kept.
    #[error("the results cannot be written")]
    Results,
}

/// Why a replica no longer follows its source.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplicaLost {
    /// It has stopped with an error.
    #[error("the replica has stopped: {said}; {place}")]
    Stopped {
        /// Its error.
        said: String,
        /// Where it is.
        place: String,
    },
    /// It does not apply what it fetches.
    #[error("the replica applies nothing, and does not say why; {place}")]
    Idle {
        /// Where it is.
        place: String,
    },
    /// It knows of no source.
    #[error("the replica follows nobody")]
    Alone,
    /// It, or its source, could not be asked.
    #[error("{0}")]
    Unasked(LoadError),
}

impl StintError {
    /// The server's own lines, where it left any.
    pub(super) fn log(&self) -> &[String] {
        if let Self::Stage(error) = self { error.log() } else { &[] }
    }

    /// Its words and those of its causes.
    pub(super) fn chain(&self) -> String {
        chain(self)
    }
}

impl From<HostError> for StintError {
    fn from(error: HostError) -> Self {
        Self::Stage(error.into())
    }
}

impl From<StoreError> for StintError {
    fn from(error: StoreError) -> Self {
        Self::Stage(error.into())
    }
}

impl From<ServerError> for StintError {
    fn from(error: ServerError) -> Self {
        Self::Stage(error.into())
    }
}

impl From<LoadError> for StintError {
    fn from(error: LoadError) -> Self {
        Self::Stage(error.into())
    }
}
