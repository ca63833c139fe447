//! The block device: a FUSE file system with one file, and a loop device on that file.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ebbtide_volume::Merge;
use rustix::mount::{UnmountFlags, unmount};

use super::HostError;
use super::home::Home;
use crate::engine::LiveVolume;
use crate::fuse::{self, FuseExport};
use crate::loopdev::{LoopDevice, LoopError, LoopOptions};

/// A volume as a block device.
#[derive(Debug)]
pub(super) struct BlockExport {
    device: Option<LoopDevice>,
    fuse: Option<FuseExport>,
}

/// The directory of a volume's FUSE file system, and the file in it.
pub(super) fn paths(home: &Home, volume: &str) -> (PathBuf, PathBuf) {
    let dir = home.run_dir().join(volume);
    let file = dir.join(fuse::FILE_NAME);
    (dir, file)
}

/// Checks that block devices can be made here at all.
///
/// # Errors
/// [`HostError::NoBlockDevice`], naming everything that is missing.
pub(super) fn require() -> Result<(), HostError> {
    let mut missing = missing_devices();
    if !rustix::process::geteuid().is_root() {
        missing.insert(0, "the server does not run as root".to_owned());
    }
    if missing.is_empty() { Ok(()) } else { Err(HostError::NoBlockDevice { missing: missing.join("; ") }) }
}

/// What block devices need and this process lacks, in a few words each; empty where nothing is missing.
#[must_use]
pub fn missing_for_block_devices() -> Vec<String> {
    let user = rustix::process::geteuid();
    let root = (!user.is_root()).then(|| format!("root (this is user {})", user.as_raw()));
    root.into_iter().chain(missing_devices()).collect()
}

/// The kernel's devices that cannot be opened.
fn missing_devices() -> Vec<String> {
    let mut missing = Vec::new();
    for (device, module) in [("/dev/fuse", "fuse"), ("/dev/loop-control", "loop")] {
        if let Err(error) = OpenOptions::new().read(true).write(true).open(device) {
            missing.push(format!("{device} ({error}; 'modprobe {module}' loads it)"));
        }
    }
    missing
}

impl BlockExport {
    /// Makes the block device of a volume; `dir` is made for its FUSE file system.
    pub(super) fn make(live: &Arc<LiveVolume>, dir: &Path) -> Result<Self, HostError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(HostError::io(format!("create {}", dir.display())))?;
        let options = LoopOptions {
            block_bytes: live.block_bytes(),
            rotational: is_rotational(live),
            ..LoopOptions::default()
        };
        let fuse = FuseExport::mount(live.clone(), dir)?;
        let device = LoopDevice::attach(&fuse.file(), &options)?;
        Ok(Self { device: Some(device), fuse: Some(fuse) })
    }

    /// The device, like `/dev/loop0`; None once it is detached, even if only the kernel detached it: its number may
    /// be that of another file's device by then.
    pub(super) fn device(&self) -> Option<&Path> {
        self.device.as_ref().filter(|device| device.is_ours()).map(LoopDevice::path)
    }

    /// Gives the device the volume's present size.
    pub(super) fn grow(&self) -> Result<(), HostError> {
        self.device.as_ref().map_or(Ok(()), |device| Ok(device.refresh_size()?))
    }

    /// Has the device report that it has a spinning disk, or none.
    pub(super) fn set_rotational(&self, rotational: bool) -> Result<(), HostError> {
        self.device.as_ref().map_or(Ok(()), |device| Ok(device.set_rotational(rotational)?))
    }

    /// Takes the device away, then its file system. With `force` also while someone has it open:
    /// the kernel then frees both with the last user.
    pub(super) fn take_apart(&mut self, force: bool) -> Result<(), HostError> {
        let mut in_use = false;
        if let Some(device) = &mut self.device {
            match device.detach() {
                Err(LoopError::Busy(device)) if force => {
                    in_use = true;
                    tracing::warn!(device = %device.display(), "still open; it goes with its last user");
                }
                // What is still in use stays ours, for the next attempt.
                detached => detached?,
            }
            self.device = None;
        }
        let Some(fuse) = &mut self.fuse else { return Ok(()) };
        if in_use {
            // FORCE ends whatever still waits for an answer, so that the end of the session's
            // threads does not depend on those who have the device open.
            let _ = unmount(fuse.dir(), UnmountFlags::FORCE | UnmountFlags::DETACH);
            let _ = fuse.unmount();
        } else {
            fuse.unmount()?;
        }
        self.fuse = None;
        Ok(())
    }
}

/// Whether the volume seeks: its model merges I/O that continues at the head's position.
pub(super) fn is_rotational(live: &LiveVolume) -> bool {
    live.inspect(|array, _| {
        array.members().iter().any(|member| member.limits().accounting.merge == Merge::Contiguous)
    })
}
