//! What an attachment makes outside of the block store, in which order, and how it is taken apart again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::block::{self, BlockExport};
use super::filesystem::{self, Content, FsType, SUPERBLOCK_AT, SUPERBLOCK_BYTES};
use super::fscheck::{FsCheck, check_fs};
use super::home::Home;
use super::info::AttachmentInfo;
use super::record::Record;
use super::recover::mounts_of_loop;
use super::{HostError, Progress, holders};
use crate::engine::LiveVolume;
use crate::nbd::{NbdAddress, NbdOptions, NbdServer};
use crate::store::{ExtentKind, OpenVolume, VolumeStore};

/// How long what is in flight may take to complete after the exports are closed. Nobody waits for
/// the answers any more; only a deeply throttled queue takes longer, and what is left of it then
/// has not happened.
const DRAIN: Duration = Duration::from_secs(10);

/// How the outside sees a volume.
#[derive(Debug, Clone)]
pub enum Export {
    /// As a block device, through FUSE and a loop device.
    Block {
        /// A file system to mount from it.
        mount: Option<MountRequest>,
    },
    /// Through NBD.
    Nbd(NbdAddress),
}

/// A file system to mount; it is made first on a blank volume.
#[derive(Debug, Clone)]
pub struct MountRequest {
    /// Where; made where it is missing.
    pub dir: PathBuf,
    /// Which.
    pub fs: FsType,
    /// Whether other content may be destroyed for it.
    pub destroy: bool,
    /// Whether one that is there already is grown to the size of the volume.
    pub grow: bool,
    /// Whether no program on it can be run.
    pub noexec: bool,
}

/// What an attachment made outside of the block store, newest last; taken apart in reverse.
#[derive(Debug)]
pub(super) struct Parts {
    home: Home,
    record: Record,
    nbd: Option<NbdServer>,
    block: Option<BlockExport>,
    mounted: bool,
}

impl Parts {
    pub(super) fn new(home: Home, volume: &str) -> Self {
        let record = Record::nothing(volume);
        Self { home, record, nbd: None, block: None, mounted: false }
    }

    /// Writes down what is about to be made.
    fn save_record(&self) -> Result<(), HostError> {
        self.record.save(&self.home).map_err(HostError::io("record the attachment"))
    }

    /// Makes what the export needs, and writes to `info` where it is.
    pub(super) fn make(
        &mut self,
        export: &Export,
        live: &Arc<LiveVolume>,
        store: &VolumeStore,
        info: &mut AttachmentInfo,
        progress: Progress<'_>,
    ) -> Result<(), HostError> {
        match export {
            Export::Nbd(address) => {
                if let NbdAddress::Unix(path) = address {
                    self.record.nbd_socket = Some(path.clone());
                }
                self.save_record()?;
                let names = store.clone();
                let options = NbdOptions {
                    description: format!("Ebbtide volume {}", live.name()),
                    rotational: block::is_rotational(live),
                    snapshots: Arc::new(move || {
                        names.snapshots().into_iter().map(|snapshot| snapshot.name).collect()
                    }),
                    ..NbdOptions::new(live.name())
                };
                let server = NbdServer::listen(live.clone(), address, options)?;
                info.uri = Some(server.uri());
                self.nbd = Some(server);
                Ok(())
            }
            Export::Block { mount } => {
                let (dir, file) = block::paths(&self.home, live.name());
                self.record.fuse_dir = Some(dir.clone());
                self.record.backing_file = Some(file);
                self.save_record()?;
                let block = self.block.insert(BlockExport::make(live, &dir)?);
                let device = block.device().ok_or_else(|| no_device(live.name()))?.to_owned();
                info.device = Some(device.clone());
                match mount {
                    Some(mount) => self.mount(mount, &device, live.store(), info, progress),
                    None => Ok(()),
                }
            }
        }
    }

    fn mount(
        &mut self,
        mount: &MountRequest,
        device: &Path,
        store: &OpenVolume,
        info: &mut AttachmentInfo,
        progress: Progress<'_>,
    ) -> Result<(), HostError> {
        if must_make(mount, device, store, &info.volume)? {
            let fs = mount.fs;
            progress(&format!("making {fs}"));
            filesystem::make(fs, device, &|past| progress(&waiting(&format!("making {fs}"), past)))?;
            info.made_fs = true;
        }
        let waiting_growth = |past| progress(&waiting(&format!("growing {}", mount.fs), past));
        let grow = mount.grow && !info.made_fs;
        if grow {
            filesystem::grow_before_mount(mount.fs, device, &waiting_growth)?;
        }
        progress(&format!("mounting {}", mount.dir.display()));
        self.mount_there(mount.fs, device, &mount.dir, mount.noexec)?;
        if grow {
            filesystem::grow_mounted(mount.fs, &mount.dir, &waiting_growth)?;
        }
        info.mount = Some(mount.dir.clone());
        info.fs = Some(mount.fs);
        Ok(())
    }

    /// Mounts a file system that is there.
    fn mount_there(&mut self, fs: FsType, device: &Path, dir: &Path, noexec: bool) -> Result<(), HostError> {
        self.record.made_mount_dir = !dir.exists();
        self.record.mount_dir = Some(dir.to_owned());
        self.save_record()?;
        let action = || format!("create {}", dir.display());
        std::fs::create_dir_all(dir).map_err(HostError::io(action()))?;
        filesystem::mount(fs, device, dir, noexec)?;
        self.mounted = true;
        Ok(())
    }

    /// Mounts a file system that is there on a volume that was attached without one.
    pub(super) fn mount_again(&mut self, volume: &str, fs: FsType, dir: &Path) -> Result<(), HostError> {
        let device = self.device(volume)?;
        if self.mounted {
            return Err(HostError::NotFree {
                volume: volume.to_owned(),
                state: "mounted already".to_owned(),
            });
        }
        check_mount_dir(dir)?;
        self.mount_there(fs, &device, dir, false)
    }

    /// Unmounts what [`Self::mount_again`] mounted; everything written to it is on the volume then.
    pub(super) fn unmount(&mut self, volume: &str) -> Result<(), HostError> {
        let (true, Some(dir)) = (self.mounted, self.record.mount_dir.clone()) else {
            return Err(HostError::NotMounted { volume: volume.to_owned() });
        };
        unmount_unused(volume, &dir, &|_| ())?;
        self.mounted = false;
        self.forget_mount_dir();
        self.record.mount_dir = None;
        self.record.made_mount_dir = false;
        Ok(())
    }

    /// Checks the file system, which is not mounted.
    pub(super) fn check_fs(&self, volume: &str, fs: FsType) -> Result<FsCheck, HostError> {
        Ok(check_fs(fs, &self.device(volume)?)?)
    }

    fn device(&self, volume: &str) -> Result<PathBuf, HostError> {
        let device = self.block.as_ref().and_then(BlockExport::device);
        device.map(Path::to_owned).ok_or_else(|| no_device(volume))
    }

    /// Gives the block device the volume's present size.
    pub(super) fn grow(&self) -> Result<(), HostError> {
        self.block.as_ref().map_or(Ok(()), BlockExport::grow)
    }

    /// Has the block device report that it has a spinning disk, or none.
    pub(super) fn set_rotational(&self, rotational: bool) -> Result<(), HostError> {
        self.block.as_ref().map_or(Ok(()), |block| block.set_rotational(rotational))
    }

    /// Takes everything apart and answers what could not be written back. Where it fails, what is
    /// left can be taken apart later.
    pub(super) fn take_apart(
        &mut self,
        live: &LiveVolume,
        force: bool,
        progress: Progress<'_>,
    ) -> Result<Vec<String>, HostError> {
        let mut lost = Vec::new();
        let refused = live.refused_writes();
        let stop = |lost: &mut Vec<String>| {
            if let Err(error) = live.stop() {
                note_loss(lost, live.name(), "ending the volume", &error);
            }
        };
        if force && live.faults().stalled {
            // Nothing stalled will ever complete: it fails now, so that nobody waits for it below.
            stop(&mut lost);
        }
        let ended = !live.is_live();
        let mut unwritten = Vec::new();
        self.release_device(live.name(), force, &mut unwritten, progress)?;
        // A volume that has ended refuses even a flush with nothing to write.
        if !ended || live.refused_writes() > refused {
            lost.append(&mut unwritten);
        }
        if let Some(block) = &mut self.block {
            block.take_apart(force)?;
            self.block = None;
        }
        if let Some(nbd) = self.nbd.take() {
            nbd.stop();
        }
        progress("completing what is in flight");
        if !live.drain(DRAIN) {
            tracing::warn!(volume = live.name(), "requests in flight are dropped");
        }
        stop(&mut lost);
        self.forget()?;
        Ok(lost)
    }

    /// Takes everything apart and leaves nothing that could be written back. Where it fails, what is left
    /// can be taken apart later.
    pub(super) fn throw_away(&mut self, live: &LiveVolume) -> Result<(), HostError> {
        if self.mounted {
            self.unmount(live.name())?;
        }
        if let Some(block) = &mut self.block {
            block.take_apart(false)?;
            self.block = None;
        }
        if let Some(nbd) = self.nbd.take() {
            nbd.stop();
        }
        live.stop()?;
        self.forget()
    }

    /// Checks that nobody uses what was made, without touching any of it.
    pub(super) fn require_unused(&self, volume: &str) -> Result<(), HostError> {
        let Some(device) = self.block.as_ref().and_then(BlockExport::device) else { return Ok(()) };
        let mounted = self.require_own_mounts(volume, device)?;
        let users = mounted.iter().map(|dir| (dir.as_path(), holders::of_directory(dir)));
        let users = users.chain([(device, holders::of_device(device))]);
        match users.into_iter().find(|(_, holders)| !holders.is_empty()) {
            Some((at, holders)) => Err(in_use(volume, at, &holders)),
            None => Ok(()),
        }
    }

    /// Where the device is mounted.
    fn mounts(&self, device: &Path) -> Result<Vec<PathBuf>, HostError> {
        mounts_of_loop(device).map_err(HostError::io("list the mounts"))
    }

    /// Where the device is mounted, unless another process mounted it.
    fn require_own_mounts(&self, volume: &str, device: &Path) -> Result<Vec<PathBuf>, HostError> {
        let mounted = self.mounts(device)?;
        let ours = |dir: &Path| self.mounted && self.record.mount_dir.as_deref() == Some(dir);
        match mounted.iter().find(|dir| !ours(dir)) {
            Some(foreign) => Err(HostError::InUse {
                volume: volume.to_owned(),
                at: device.to_owned(),
                holders: format!("mounted on {}", foreign.display()),
            }),
            None => Ok(mounted),
        }
    }

    /// Unmounts what is mounted from the block device and makes sure that nobody has it open.
    fn release_device(
        &mut self,
        volume: &str,
        force: bool,
        lost: &mut Vec<String>,
        progress: Progress<'_>,
    ) -> Result<(), HostError> {
        let Some(device) = self.block.as_ref().and_then(BlockExport::device) else { return Ok(()) };
        let mounted = if force { self.mounts(device)? } else { self.require_own_mounts(volume, device)? };
        for dir in &mounted {
            // Unmounting alone does not report what could not be written.
            let action = format!("writing back {}", dir.display());
            progress(&action);
            if let Err(error) = filesystem::sync(dir, &|past| progress(&waiting(&action, past))) {
                note_loss(lost, volume, &action, &error);
            }
            let action = format!("unmounting {}", dir.display());
            progress(&action);
            let waiting = |past| progress(&waiting(&action, past));
            if !force {
                unmount_unused(volume, dir, &waiting)?;
            } else if let Err(error) = filesystem::unmount(dir, false, &waiting) {
                tracing::warn!(volume, %error, "detaching the mount while it is in use");
                filesystem::unmount(dir, true, &|_| ())?;
            }
        }
        self.mounted = false;
        let holders = holders::of_device(device);
        if !holders.is_empty() && !force {
            return Err(in_use(volume, device, &holders));
        }
        // What was written through the device's own page cache goes out now, in a child process:
        // closing the device here would write it too, with a thread that must not wait for itself.
        let action = format!("writing back {}", device.display());
        let synced = filesystem::sync_device(device, &|past| progress(&waiting(&action, past)));
        if let Err(error) = synced {
            note_loss(lost, volume, &action, &error);
        }
        Ok(())
    }

    /// Removes the directory that was made to mount on.
    fn forget_mount_dir(&self) {
        if let (Some(dir), true) = (&self.record.mount_dir, self.record.made_mount_dir) {
            // Only an empty one goes: there may be something of the user's below the mount.
            let _ = std::fs::remove_dir(dir);
        }
    }

    /// Removes the record and the directories made, once nothing of the attachment is left.
    fn forget(&mut self) -> Result<(), HostError> {
        if let Some(dir) = &self.record.fuse_dir {
            let _ = std::fs::remove_dir(dir);
        }
        self.forget_mount_dir();
        match Record::remove(&self.home, &self.record.volume) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(HostError::io("forget the attachment")(error))
            }
            _ => Ok(()),
        }
    }
}

fn no_device(volume: &str) -> HostError {
    HostError::NotFree { volume: volume.to_owned(), state: "attached without a block device".to_owned() }
}

fn in_use(volume: &str, at: &Path, holders: &[holders::Holder]) -> HostError {
    HostError::InUse { volume: volume.to_owned(), at: at.to_owned(), holders: holders::name(holders) }
}

/// Keeps, and logs, that something could not be written back.
fn note_loss(lost: &mut Vec<String>, volume: &str, action: &str, error: &dyn std::error::Error) {
    tracing::warn!(volume, %error, "not everything could be written back");
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    lost.push(causes.fold(format!("{action}: {error}"), |text, cause| format!("{text}: {cause}")));
}

fn waiting(action: &str, past: Duration) -> String {
    format!("{action}, at the volume's own pace, for {} s so far", past.as_secs())
}

/// Whether a file system has to be made: not where the wanted one is there already.
fn must_make(
    mount: &MountRequest,
    device: &Path,
    store: &OpenVolume,
    volume: &str,
) -> Result<bool, HostError> {
    let extents = store.extents(0, store.size_bytes());
    if extents.iter().all(|extent| extent.kind == ExtentKind::Hole) {
        return Ok(true);
    }
    let content = match filesystem::probe(device)? {
        Content::Known(found) => {
            let found = if found == "ext4" { ext4_kind(store)? } else { found };
            if found == mount.fs.name() {
                return Ok(false);
            }
            format!("'{found}'")
        }
        Content::Unknown => "data that are no file system".to_owned(),
    };
    if mount.destroy {
        tracing::warn!(volume, "{content} is destroyed for {}", mount.fs);
        return Ok(true);
    }
    Err(HostError::NotBlank { volume: volume.to_owned(), content, fs: mount.fs.to_string() })
}

/// blkid does not report clusters. Nothing of the volume is in memory yet, so its store has it all.
fn ext4_kind(store: &OpenVolume) -> Result<String, HostError> {
    let mut superblock = [0; SUPERBLOCK_BYTES];
    store.read_at(&mut superblock, SUPERBLOCK_AT).map_err(HostError::io("read the superblock of ext4"))?;
    Ok(filesystem::ext4_kind(&superblock))
}

pub(super) fn check_mount_dir(dir: &Path) -> Result<(), HostError> {
    let refuse = |why: &str| Err(HostError::MountDir { dir: dir.to_owned(), why: why.to_owned() });
    if !dir.is_absolute() {
        return refuse("the path is not absolute");
    }
    if ebbtide_proc::is_mount_point(dir).map_err(HostError::io("list the mounts"))? {
        return refuse("something is mounted there");
    }
    match std::fs::read_dir(dir).map(Iterator::count) {
        Ok(0) => Ok(()),
        Ok(_) => refuse("it is not empty"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => refuse(&error.to_string()),
    }
}

/// How long a mount may be in use although no process is found that uses it. A process that is just starting another one has its
/// files open there too, until that one begins its own program.
const PASSING_USE: Duration = Duration::from_secs(2);

/// Unmounts a directory.
///
/// # Errors
/// [`HostError::InUse`] where somebody uses it.
fn unmount_unused(volume: &str, dir: &Path, waiting: &dyn Fn(Duration)) -> Result<(), HostError> {
    let end = Instant::now() + PASSING_USE;
    loop {
        match filesystem::unmount(dir, false, waiting) {
            Err(error) if error.is_busy() => {
                let holders = holders::of_directory(dir);
                if !holders.is_empty() || Instant::now() >= end {
                    return Err(in_use(volume, dir, &holders));
                }
                sleep(Duration::from_millis(10));
            }
            other => return Ok(other?),
        }
    }
}
