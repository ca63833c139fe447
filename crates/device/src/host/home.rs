//! A home: the directory that holds volumes and state, and the lock that says who serves it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// A home that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Another process serves it.
    #[error("{} is already served by process {pid}", home.display())]
    Served {
        /// The home.
        home: PathBuf,
        /// What that process wrote into the lock file.
        pid: String,
    },
    /// The directory or a file in it cannot be used.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> HomeError {
    let path = path.to_owned();
    move |source| HomeError::Io { action, path, source }
}

/// Bytes that are free in the file system of a directory, for those without privileges. Only the
/// file system's own count is read: nothing waits for its device.
///
/// # Errors
/// Where there is no such directory or the host does not say.
pub fn free_bytes(dir: &Path) -> std::io::Result<u64> {
    let disk = rustix::fs::statvfs(dir)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// A directory that holds volumes and state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Opens a home and makes its directories, for its owner alone, where they are missing.
    ///
    /// # Errors
    /// Where the directory cannot be made or read.
    pub fn open(root: &Path) -> Result<Self, HomeError> {
        let make = |path: &Path| {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io("create", path))
        };
        make(root)?;
        // Mounts and loop devices are found by path, so there must be only one way to write it.
        let root = root.canonicalize().map_err(io("resolve", root))?;
        let home = Self { root };
        make(&home.run_dir())?;
        Ok(home)
    }

    /// The directory itself, absolute and without symbolic links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the block store lives.
    #[must_use]
    pub fn store_dir(&self) -> PathBuf {
        self.root.join("store")
    }

    /// Where attachments are recorded and FUSE file systems are mounted.
    #[must_use]
    pub fn run_dir(&self) -> PathBuf {
        self.root.join("run")
    }

    /// Where a calibration keeps its own block store while it runs.
    pub(super) fn scratch_dir(&self) -> PathBuf {
        self.root.join("calibration.store")
    }

    /// The control socket of the process that serves this home.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.root.join("control.sock")
    }

    /// The result of the last host calibration.
    #[must_use]
    pub fn calibration_file(&self) -> PathBuf {
        self.root.join("calibration.json")
    }

    /// Catalogue entries that replace the built-in ones.
    #[must_use]
    pub fn overrides_file(&self) -> PathBuf {
        self.root.join("catalog.toml")
    }

    /// Where a detached `serve` writes its log.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.root.join("serve.log")
    }

    /// Bytes that are free on the disk that holds the home, for those without privileges.
    ///
    /// # Errors
    /// Where the host does not say.
    pub fn free_bytes(&self) -> Result<u64, HomeError> {
        free_bytes(&self.root).map_err(io("ask for the free space of", &self.root))
    }

    /// The process that has, or last had, the lock, as it wrote it down.
    pub(super) fn lock_holder(&self) -> Option<u32> {
        std::fs::read_to_string(self.lock_file()).ok()?.trim().parse().ok()
    }

    fn lock_file(&self) -> PathBuf {
        self.root.join("serve.lock")
    }

    /// Takes the right to serve this home, or to clear what a dead server left in it.
    ///
    /// The kernel releases the lock when its holder ends in whatever way, so a free lock proves
    /// that no server lives; a process number would not, since numbers are reused.
    ///
    /// # Errors
    /// [`HomeError::Served`] where another process holds it.
    pub fn lock(&self) -> Result<HomeLock, HomeError> {
        let path = self.lock_file();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                return Err(HomeError::Served { home: self.root.clone(), pid: pid.trim().to_owned() });
            }
            Err(errno) => return Err(io("lock", &path)(errno.into())),
        }
        let pid = std::process::id();
        file.set_len(0).map_err(io("write", &path))?;
        file.rewind().map_err(io("write", &path))?;
        writeln!(file, "{pid}").map_err(io("write", &path))?;
        Ok(HomeLock { home: self.clone(), file })
    }
}

/// The right to serve a home; dropping it gives it up.
#[derive(Debug)]
pub struct HomeLock {
    home: Home,
    file: File,
}

impl Drop for HomeLock {
    /// Closing the file is not enough where this process is just starting another one, on any thread:
    /// until that one begins its own program it has the file too.
    fn drop(&mut self) {
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            tracing::warn!(%error, "the lock of a home stays until its file is closed everywhere");
        }
    }
}

impl HomeLock {
    /// The home that is locked.
    #[must_use]
    pub const fn home(&self) -> &Home {
        &self.home
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_has_one_server_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("a/b")).unwrap();
        let lock = home.lock().unwrap();
        let refused = home.lock().unwrap_err();
        assert!(
            matches!(&refused, HomeError::Served { pid, .. } if *pid == std::process::id().to_string()),
            "{refused}"
        );
        let inherited = lock.file.try_clone().unwrap();
        drop(lock);
        home.lock().expect("a process that is starting does not keep it");
        drop(inherited);
    }
}
