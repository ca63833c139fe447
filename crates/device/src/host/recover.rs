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
use super::record::{self, Found, Record};
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
    /// A record without content. What can be found by the volume's name was cleared.
    Record {
        /// The volume.
        volume: String,
        /// Where the record is now.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, path, volume) = match self {
            Self::Mount { volume, dir } => ("mount", dir, volume),
            Self::Loop { volume, device } => ("loop device", device, volume),
            Self::Fuse { volume, dir } => ("FUSE session", dir, volume),
            Self::Socket { volume, path } => ("NBD socket", path, volume),
            Self::Record { volume, path, why } => {
                let path = path.display();
                return write!(
                    f,
                    "the record of volume {volume}'s attachment, which is damaged ({why}) and is kept as {path}; \
                     an NBD socket of the volume may be left"
                );
            }
        };
        write!(f, "{what} {} of volume {volume}, left by a server that was killed", path.display())
    }
}

/// Clears what the last server of this home left behind, and returns what that was. Holding the lock
/// proves that this server no longer lives.
///
/// A damaged record is set aside, and what cannot be cleared does not keep the rest from being cleared.
///
/// # Errors
/// Where the records cannot be read or the kernel does not let go of something. What is left then
/// stays recorded, for the next attempt.
pub fn clear_leftovers(lock: &HomeLock) -> Result<Vec<Leftover>, ClearError> {
    let home = lock.home();
    let mut cleared = Vec::new();
    let mut failed = None;
    match Found::all(home) {
        Err(source) => failed = Some((format!("read the records in {}", home.root().display()), source)),
        Ok(all) => {
            for found in &all {
                if let Err(source) = clear_one(found, &mut cleared) {
                    let volume = &found.record.volume;
                    tracing::warn!(volume, error = %source, "not cleared");
                    failed.get_or_insert((format!("clear what is left of volume '{volume}'"), source));
                }
            }
        }
    }
    // Worth nothing after their server's end, and not worth telling.
    let worthless = record::remove_unfinished(home)
        .and_then(|()| home.remove_socket().map_err(io::Error::other))
        .and_then(|()| missing_is_fine(std::fs::remove_dir_all(home.scratch_dir())));
    if let Err(source) = worthless {
        failed.get_or_insert((format!("clear {}", home.root().display()), source));
    }
    match failed {
        None => Ok(cleared),
        Some((action, source)) => Err(ClearError { cleared, action, source }),
    }
}

/// Not everything that the last server of a home left could be cleared.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct ClearError {
    /// What was cleared all the same.
    pub cleared: Vec<Leftover>,
    action: String,
    source: io::Error,
}

impl ClearError {
    /// Whether it takes another user, such as root.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }
}

fn clear_one(found: &Found, cleared: &mut Vec<Leftover>) -> io::Result<()> {
    clear(&found.record, cleared)?;
    if let (Some(path), Some(why)) = (found.forget()?, &found.damage) {
        cleared.push(Leftover::Record { volume: found.record.volume.clone(), path, why: why.clone() });
    }
    Ok(())
}

/// Frees the lock of a home whose server was killed while one of its own threads waited inside the
/// kernel for I/O of a volume that the same process served: nobody answers that any more, so the process
/// cannot end and keeps the lock. Its FUSE connections are aborted, which fails the I/O. Reports whether
/// there was such a process; the lock is free as soon as it is gone, and [`clear_leftovers`] does the rest.
///
/// # Errors
/// Where the records cannot be read.
pub fn release_dying(home: &Home) -> io::Result<bool> {
    if !home.lock_holder().is_some_and(ebbtide_proc::process::is_dying) {
        return Ok(false);
    }
    for dir in Found::all(home)?.into_iter().filter_map(|found| found.record.fuse_dir) {
        // FORCE aborts the connection even where it then reports that the mount is busy. It stays mounted, and
        // the loop device goes on naming its file by the path that the record has.
        let _ = unmount(&dir, UnmountFlags::FORCE | UnmountFlags::NOFOLLOW);
    }
    Ok(true)
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
        let mounted = ebbtide_proc::mounts()?;
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
    let mounts = ebbtide_proc::mounts()?.into_iter().rev().filter(|mount| mount.device == wanted);
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
        let lock = Home::open(&dir.path().join("home")).unwrap().lock().unwrap();
        let home = lock.home();
        let record =
            |volume: &str, path: &Path| Record { nbd_socket: Some(path.into()), ..Record::nothing(volume) };
        let [dead, living, file] = ["dead", "living", "file"].map(|name| dir.path().join(name));
        drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
        let _listener = std::os::unix::net::UnixListener::bind(&living).unwrap();
        std::fs::write(&file, "mine").unwrap();
        for (name, path) in [("a", &dead), ("b", &living), ("c", &file)] {
            record(name, path).save(home).unwrap();
        }
        let cleared = clear_leftovers(&lock).unwrap();
        assert_eq!(cleared, [Leftover::Socket { volume: "a".into(), path: dead.clone() }]);
        assert!(!dead.exists() && living.exists() && file.exists());
        assert_eq!(clear_leftovers(&lock).unwrap(), []);
    }

    #[test]
    fn a_damaged_record_is_set_aside_and_does_not_keep_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Home::open(&dir.path().join("home")).unwrap().lock().unwrap();
        let home = lock.home();
        let socket = dir.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let record = Record { nbd_socket: Some(socket.clone()), ..Record::nothing("m") };
        record.save(home).unwrap();
        let records = home.root().join("records");
        for (name, bytes) in [("a.json", ""), ("z.json", "{\"volume\":")] {
            std::fs::write(records.join(name), bytes).unwrap();
        }
        let fuse_dir = home.run_dir().join("a");
        std::fs::create_dir(&fuse_dir).unwrap();
        let mut cleared = clear_leftovers(&lock).unwrap();
        cleared.sort_by_key(ToString::to_string);
        let [
            Leftover::Socket { path, .. },
            Leftover::Record { path: a, .. },
            Leftover::Record { volume, .. },
        ] = &cleared[..]
        else {
            panic!("{cleared:?}")
        };
        assert_eq!((path, a, volume.as_str()), (&socket, &records.join("a.json.damaged"), "z"));
        assert!(!socket.exists() && a.exists() && !fuse_dir.exists());
        assert_eq!(clear_leftovers(&lock).unwrap(), []);
    }
}
