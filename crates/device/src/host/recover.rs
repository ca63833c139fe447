//! Clearing what a killed server left: mounts, loop devices, FUSE sessions, sockets.
//!
//! Nothing is touched without the home's lock, which a living server holds, and only what a record
//! of this home names: a loop device counts as ours by the file that backs it, a mount by the loop
//! device or the directory it is on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

use super::holders;
use super::home::{Home, HomeLock};
use super::mounts;
use super::record::Record;
use crate::loopdev::{self, LoopError};

/// Something that was left behind and has been cleared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// A mounted file system.
    Mount {
        /// The volume.
        volume: String,
        /// Where it was mounted.
        dir: PathBuf,
    },
    /// A loop device.
    Loop {
        /// The volume.
        volume: String,
        /// The device.
        device: PathBuf,
    },
    /// A FUSE file system.
    Fuse {
        /// The volume.
        volume: String,
        /// Where it was mounted.
        dir: PathBuf,
    },
    /// An NBD socket.
    Socket {
        /// The volume.
        volume: String,
        /// The socket.
        path: PathBuf,
    },
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, path, volume) = match self {
            Self::Mount { volume, dir } => ("mount", dir, volume),
            Self::Loop { volume, device } => ("loop device", device, volume),
            Self::Fuse { volume, dir } => ("FUSE session", dir, volume),
            Self::Socket { volume, path } => ("NBD socket", path, volume),
        };
        write!(f, "{what} {} of volume {volume}, left by a server that was killed", path.display())
    }
}

/// Clears what the last server of this home left behind, and says what that was. Holding the lock
/// proves that this server no longer lives.
///
/// # Errors
/// Where the records cannot be read or the kernel does not let go of something. What is left then
/// stays recorded, for the next attempt.
pub fn clear_leftovers(lock: &HomeLock) -> io::Result<Vec<Leftover>> {
    let home = lock.home();
    let mut cleared = Vec::new();
    for record in Record::load_all(home)? {
        clear(&record, &mut cleared)?;
        Record::remove(home, &record.volume)?;
    }
    // Worth nothing after their server's end, and not worth telling.
    missing_is_fine(std::fs::remove_file(home.socket()))?;
    missing_is_fine(std::fs::remove_dir_all(home.scratch_dir()))?;
    Ok(cleared)
}

/// Frees the lock of a home whose server was killed while one of its own threads waited inside the
/// kernel for I/O of a volume that the same process served: nobody answers that any more, so the process
/// cannot end and keeps the lock. Its FUSE connections are aborted, which fails the I/O. Says whether
/// there was such a process; the lock is free as soon as it is gone, and [`clear_leftovers`] does the rest.
///
/// # Errors
/// Where the records cannot be read.
pub fn release_dying(home: &Home) -> io::Result<bool> {
    if !home.lock_holder().is_some_and(is_dying) {
        return Ok(false);
    }
    for dir in Record::load_all(home)?.into_iter().filter_map(|record| record.fuse_dir) {
        // FORCE aborts the connection even where it then says that the mount is busy. It stays mounted, and
        // the loop device goes on naming its file by the path that the record has.
        let _ = unmount(&dir, UnmountFlags::FORCE | UnmountFlags::NOFOLLOW);
    }
    Ok(true)
}

/// Whether a process has been killed and is not gone yet.
fn is_dying(process: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{process}/status")) else { return false };
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let kill_pends = |name| {
        let pending = field(name).and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
        // Signal n is bit n - 1, and SIGKILL is 9.
        pending & 1 << 8 != 0
    };
    field("State:").is_some_and(|state| state.starts_with(['Z', 'X']))
        || kill_pends("SigPnd:")
        || kill_pends("ShdPnd:")
}

fn missing_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn clear(record: &Record, cleared: &mut Vec<Leftover>) -> io::Result<()> {
    let volume = || record.volume.clone();
    if let Some(backing) = &record.backing_file {
        for ours in loopdev::list().into_iter().filter(|device| device.backing == *backing) {
            // Whoever mounted it, and wherever: without its server it answers nothing but errors.
            for dir in mounts_of_loop(&ours.device)? {
                detach_mount(&dir)?;
                cleared.push(Leftover::Mount { volume: volume(), dir });
            }
            match loopdev::detach_leftover(&ours) {
                // It goes with the last process that has it open.
                Ok(()) | Err(LoopError::Busy(_)) => {}
                Err(error) => return Err(io::Error::other(error)),
            }
            cleared.push(Leftover::Loop { volume: volume(), device: ours.device });
        }
    }
    if let Some(dir) = &record.fuse_dir {
        let mounted = mounts::list()?;
        for _ in mounted.iter().filter(|mount| mount.dir == *dir && mount.fs.starts_with("fuse")) {
            // FORCE ends whatever still waits for an answer.
            unmount(dir, UnmountFlags::FORCE | UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
            cleared.push(Leftover::Fuse { volume: volume(), dir: dir.clone() });
        }
        let _ = std::fs::remove_dir(dir);
    }
    if let (Some(dir), true) = (&record.mount_dir, record.made_mount_dir) {
        // It is removed only where it is empty, so nothing of the user's can be lost.
        let _ = std::fs::remove_dir(dir);
    }
    if let Some(path) = &record.nbd_socket
        && holders::is_socket(path)
        && std::os::unix::net::UnixStream::connect(path).is_err()
    {
        std::fs::remove_file(path)?;
        cleared.push(Leftover::Socket { volume: volume(), path: path.clone() });
    }
    Ok(())
}

/// Where a loop device is mounted, the latest mount first.
pub(super) fn mounts_of_loop(device: &Path) -> io::Result<Vec<PathBuf>> {
    let number = device.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("loop"));
    let Some(number) = number else { return Ok(Vec::new()) };
    // 7 is the major number of loop devices (Linux, Documentation/admin-guide/devices.txt).
    let wanted = format!("7:{number}");
    let mounts = mounts::list()?.into_iter().rev().filter(|mount| mount.device == wanted);
    Ok(mounts.map(|mount| mount.dir).collect())
}

/// Detaches a mount even while it is in use: its users get errors, and the kernel frees it with
/// their last open file.
fn detach_mount(dir: &Path) -> io::Result<()> {
    Ok(unmount(dir, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_socket_is_removed_and_a_living_or_foreign_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let lock = home.lock().unwrap();
        let record =
            |volume: &str, path: &Path| Record { nbd_socket: Some(path.into()), ..Record::nothing(volume) };
        let [dead, living, file] = ["dead", "living", "file"].map(|name| dir.path().join(name));
        drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
        let _listener = std::os::unix::net::UnixListener::bind(&living).unwrap();
        std::fs::write(&file, "mine").unwrap();
        for (name, path) in [("a", &dead), ("b", &living), ("c", &file)] {
            record(name, path).save(&home).unwrap();
        }
        let cleared = clear_leftovers(&lock).unwrap();
        assert_eq!(cleared, [Leftover::Socket { volume: "a".into(), path: dead.clone() }]);
        assert!(!dead.exists() && living.exists() && file.exists());
        assert_eq!(clear_leftovers(&lock).unwrap(), []);
    }
}
