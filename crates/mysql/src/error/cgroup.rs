//! Why a memory cgroup cannot be made.

use std::io;
use std::path::{Path, PathBuf};

use super::ServerError;

/// Why a memory cgroup cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// The kernel has no memory controller, or does not show it here.
    #[error("the kernel shows no memory controller in /proc/self/mountinfo")]
    NoController,
    /// The controller cannot be handed down to a group of ours.
    #[error("cannot switch the memory controller on in {}: {source}", file.display())]
    SwitchOn {
        /// The file that switches it on.
        file: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file of a group refuses.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file or directory.
        file: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The group could not be written down, so that nobody could clear it.
    #[error("{0}")]
    Unrecorded(Box<ServerError>),
}

impl CgroupError {
    /// A file or directory of a group that refuses.
    pub(crate) fn at(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |source| Self::Io { file, source }
    }

    /// A group that could not be written down.
    pub(crate) fn unrecorded(error: ServerError) -> Self {
        Self::Unrecorded(Box::new(error))
    }
}
