//! Why the block store refused, in terms of what to do next.

use std::io;
use std::path::PathBuf;

use super::KeyUnavailable;

/// An operation on the store that did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No volume or snapshot of that name.
    #[error("there is no {kind} '{name}'; list what there is first")]
    NotFound {
        /// `volume` or `snapshot`.
        kind: &'static str,
        /// The name that was asked for.
        name: String,
    },
    /// The name is taken.
    #[error("{kind} '{name}' exists already; choose another name or delete it first")]
    Exists {
        /// `volume` or `snapshot`.
        kind: &'static str,
        /// The name that was asked for.
        name: String,
    },
    /// The volume is open, which the operation cannot have.
    #[error("volume '{name}' is in use; detach it first")]
    Busy {
        /// The volume.
        name: String,
    },
    /// Another process holds the store.
    #[error("the store {} is open in {}; ask that process, or stop it first", dir.display(), holder(*pid))]
    Locked {
        /// The store's directory.
        dir: PathBuf,
        /// Process that holds it, where it could be read.
        pid: Option<u32>,
    },
    /// A name outside the allowed form.
    #[error(
        "'{name}' is not a valid name: 1 to 63 characters out of a-z, 0-9, '.', '_' and '-', \
         beginning with a letter or a digit"
    )]
    Name {
        /// The name that was given.
        name: String,
    },
    /// A size out of range or not a multiple of the block.
    #[error("a size of {size_bytes} bytes is not possible: {rule}")]
    Size {
        /// The size that was given, bytes.
        size_bytes: u64,
        /// What a size has to obey.
        rule: String,
    },
    /// The snapshot is no ancestor of the volume, so that "changed since" has no answer.
    #[error("volume '{volume}' does not descend from snapshot '{snapshot}'; name one taken from it")]
    NotAncestor {
        /// The volume.
        volume: String,
        /// The snapshot.
        snapshot: String,
    },
    /// The snapshots have no content in common by descent, so that "what differs" has no answer.
    #[error(
        "snapshots '{first}' and '{second}' are not related; name two of one volume, or of volumes made from it"
    )]
    Unrelated {
        /// The first snapshot.
        first: String,
        /// The second snapshot.
        second: String,
    },
    /// The data key of something encrypted cannot be had.
    #[error("'{name}' is encrypted, and its data key cannot be unwrapped")]
    Key {
        /// The volume or snapshot.
        name: String,
        /// Why.
        source: KeyUnavailable,
    },
    /// A part of the store is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The directory holds something else, or a store of a later version.
    #[error("{} is not a store this program can open: {what}", dir.display())]
    Foreign {
        /// The directory.
        dir: PathBuf,
        /// What was found.
        what: String,
    },
    /// The host refused a file operation.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, as a verb (`read`, `create`, ...).
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The host's answer.
        source: io::Error,
    },
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// Whether the host's disk is full, so that freeing space there makes the operation possible.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}

/// One damaged part of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is damaged at byte {offset}: {what}; restore that file from a copy, or delete the volumes and snapshots that need it",
    file.display()
)]
pub struct Damage {
    /// The damaged file.
    pub file: PathBuf,
    /// Where in it, bytes from its beginning.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
