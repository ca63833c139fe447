//! Why the host refused, in terms of what to do next.

use std::io;
use std::path::PathBuf;

use super::filesystem::ToolError;
use super::home::HomeError;
use crate::engine::{EngineError, HostFailure};
use crate::fuse::FuseError;
use crate::loopdev::LoopError;
use crate::nbd::NbdError;
use crate::store::StoreError;

/// Something that the host did not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The home.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The block store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The FUSE file system.
    #[error(transparent)]
    Fuse(#[from] FuseError),
    /// The loop device.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// The NBD server.
    #[error(transparent)]
    Nbd(#[from] NbdError),
    /// A file system tool.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The volume is attached, or on its way.
    #[error("volume '{volume}' is {state}")]
    NotFree {
        /// The volume.
        volume: String,
        /// `attached at ...`, `being attached`, ...
        state: String,
    },
    /// The volume is not attached.
    #[error("volume '{volume}' is not attached")]
    NotAttached {
        /// The volume.
        volume: String,
    },
    /// Nothing is mounted from the volume.
    #[error("nothing is mounted from volume '{volume}'")]
    NotMounted {
        /// The volume.
        volume: String,
    },
    /// The instance has all the volumes it can have.
    #[error("instance '{instance}' has no room for another volume: it takes {slots}")]
    NoSlot {
        /// The instance.
        instance: String,
        /// How many it takes.
        slots: u32,
    },
    /// An instance of that name exists with another type.
    #[error("instance '{instance}' exists as a different type: volumes are attached to it as {kind}")]
    OtherInstance {
        /// Its identifier.
        instance: String,
        /// The type that it has.
        kind: String,
    },
    /// Block devices need something that this machine or user does not have.
    #[error("a block device cannot be made here: {missing}")]
    NoBlockDevice {
        /// What is missing.
        missing: String,
    },
    /// The mount directory cannot be used.
    #[error("cannot mount on {}: {why}", dir.display())]
    MountDir {
        /// The directory.
        dir: PathBuf,
        /// Why not.
        why: String,
    },
    /// A tool failed on a volume of which the host had failed requests: what it reports of the content is no evidence.
    #[error("the host failed requests of volume '{volume}' ({})", listed(failures))]
    HostFailed {
        /// The volume.
        volume: String,
        /// The requests that failed.
        failures: Vec<HostFailure>,
        /// The message of the tool.
        source: Box<HostError>,
    },
    /// There is something on the volume that mkfs would destroy.
    #[error("volume '{volume}' holds {content}; making {fs} would destroy it")]
    NotBlank {
        /// The volume.
        volume: String,
        /// What is on it.
        content: String,
        /// The file system that was asked for.
        fs: String,
    },
    /// Someone uses the device or the mounted file system.
    #[error("volume '{volume}' is in use at {}: {holders}", at.display())]
    InUse {
        /// The volume.
        volume: String,
        /// The device or directory.
        at: PathBuf,
        /// By whom.
        holders: String,
    },
    /// I/O is stalled by a fault, so that unmounting would wait for ever.
    #[error("I/O of volume '{volume}' is stalled")]
    Stalled {
        /// The volume.
        volume: String,
    },
    /// The host's disk has too little room for a calibration.
    #[error(
        "calibrating needs {} MiB on the disk that holds {}, and {} MiB are free",
        needed >> 20,
        dir.display(),
        free >> 20
    )]
    NoSpace {
        /// The home.
        dir: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that it takes.
        needed: u64,
    },
    /// The kernel or the host's file system refused.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why not.
        source: io::Error,
    },
}

impl HostError {
    pub(super) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }
}

/// Failures of the host as a list.
fn listed(failures: &[HostFailure]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
