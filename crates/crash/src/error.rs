//! Why a stint, or the judgement of a cut, ended early, and why a kept cut cannot be judged again.

use ebbtide_device::host::HostError;
use ebbtide_device::store::StoreError;
use ebbtide_lab::experiment::ExperimentError;
use ebbtide_lab::run::error::{RunError, StepError, chain};
use ebbtide_load::LoadError;
use ebbtide_load::invariant::JournalError;
use ebbtide_mysql::ServerError;
use ebbtide_mysql::replication::ReplicaLost;

/// A kept cut that cannot be listed, deleted, or judged again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeptError {
    /// Whatever forbids a run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// No image is kept of such a cut.
    #[error("no image is kept of a cut with the seed {}", ebbtide_text::seed::hex(*seed))]
    NotKept {
        /// The seed.
        seed: u64,
    },
    /// The server that had written an image is not there any more.
    #[error("the server of this image, {}, is gone: {why}", server.trim())]
    ServerGone {
        /// The server, in its own words.
        server: String,
        /// What is found in its place.
        why: String,
        /// How the user had named it, where it was named.
        named: Option<String>,
    },
    /// An image that another server has written.
    #[error("this image was written by {}, and {given} cannot recover it", server.trim())]
    OtherServer {
        /// The server that had written it, in its own words.
        server: String,
        /// The server that was given.
        given: String,
    },
    /// A server that was to be left up does not come up on the image.
    #[error("the server does not come up on the image: {}{}", .0.chain(), last_lines(.0.log()))]
    NotUp(Box<StepError>),
    /// A server that was left up died, or could not be ended.
    #[error("the server that was left up did not end well: {}{}", .0.chain(), last_lines(.0.log()))]
    NotEnded(Box<StepError>),
}

/// The end of a server's log, to follow a message.
fn last_lines(log: &[String]) -> String {
    log.iter().rev().take(5).rev().map(|line| format!("\n  {line}")).collect()
}

impl KeptError {
    /// What to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Run(error) => error.hint(),
            Self::NotUp(_) | Self::NotEnded(_) => None,
            Self::NotKept { .. } => Some("'ebbtide crash --kept' lists those that are".to_owned()),
            Self::ServerGone { named, .. } => {
                let named = named.as_ref().map(|named| format!("; it was --server {named} then"));
                Some(format!(
                    "name a server of the same version with --server PATH{}",
                    named.unwrap_or_default()
                ))
            }
            Self::OtherServer { .. } => {
                Some("name a server of the same version, or leave --server out".to_owned())
            }
        }
    }

    /// Whether the machine is the reason, rather than the request.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        match self {
            Self::Run(error) => error.is_environment(),
            Self::ServerGone { .. } | Self::NotUp(_) | Self::NotEnded(_) => true,
            Self::NotKept { .. } | Self::OtherServer { .. } => false,
        }
    }
}

impl From<HostError> for KeptError {
    fn from(error: HostError) -> Self {
        Self::Run(error.into())
    }
}

impl From<ExperimentError> for KeptError {
    fn from(error: ExperimentError) -> Self {
        Self::Run(error.into())
    }
}

/// Why a stint ended early, or why a cut could not be judged. One variant for each cause: what follows from it is
/// decided by the variant, never by its words.
#[derive(Debug, thiserror::Error)]
pub(super) enum StintError {
    /// The volumes, the server, or a statement.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The replica no longer follows its source.
    #[error(transparent)]
    Replica(#[from] ReplicaLost),
    /// No client of the load is left.
    #[error("every client of the load has ended: {why}")]
    ClientsEnded {
        /// The message of the first of them.
        why: String,
    },
    /// The journal of the clients does not have what was acknowledged at the cut.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A cut has damaged the server's data, and the server has no others.
    #[error("the server's data are damaged: its further kills would only show that again")]
    Damaged,
    /// A cut that was judged could not be kept.
    #[error("the results cannot be written")]
    Results,
}

impl StintError {
    /// The server's own lines, where it left any.
    pub(super) fn log(&self) -> &[String] {
        if let Self::Step(error) = self { error.log() } else { &[] }
    }

    /// Its words and those of its causes.
    pub(super) fn chain(&self) -> String {
        chain(self)
    }
}

impl From<HostError> for StintError {
    fn from(error: HostError) -> Self {
        Self::Step(error.into())
    }
}

impl From<StoreError> for StintError {
    fn from(error: StoreError) -> Self {
        Self::Step(error.into())
    }
}

impl From<ServerError> for StintError {
    fn from(error: ServerError) -> Self {
        Self::Step(error.into())
    }
}

impl From<LoadError> for StintError {
    fn from(error: LoadError) -> Self {
        Self::Step(error.into())
    }
}
