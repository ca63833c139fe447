//! A directory held by its descriptor, so that it stays the same one whatever happens to its path.
//!
//! A process that keeps a directory for long must not reach its files by their paths: the directory may have been
//! deleted, and another one made in its place by another process. What is opened, renamed or removed here is relative
//! to the descriptor. A directory with a [lock](Dir::guarded) also refuses every change once that lock is no longer the
//! file which this process has locked.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, chmodat, fchmod, fstat, mkdirat, openat, renameat, statat,
    unlinkat,
};

/// Mode of every directory made here: for the owner alone.
const DIR_MODE: Mode = Mode::RWXU;
/// Mode of every file made here: for the owner alone.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The bits of a mode for who may do what.
const PERMISSIONS: u32 = 0o777;

/// A directory that is open.
#[derive(Debug, Clone)]
pub(crate) struct Dir {
    path: Arc<Path>,
    fd: Arc<OwnedFd>,
    guard: Option<Arc<Guard>>,
}

/// A lock by which a directory is known to be still this process's own.
#[derive(Debug)]
struct Guard {
    dir: Arc<OwnedFd>,
    path: Arc<Path>,
    name: &'static str,
    /// Device and inode of the file that is locked.
    file: (u64, u64),
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// To read what is there.
    Read,
    /// To read and write what is there.
    Write,
    /// To read and write; made where it is missing.
    Make,
    /// To read and write; it must not be there yet.
    New,
    /// To read and write; made where it is missing, emptied where it is not.
    Empty,
    /// To append; made where it is missing.
    Append,
}

impl Access {
    fn flags(self) -> OFlags {
        match self {
            Self::Read => OFlags::RDONLY,
            Self::Write => OFlags::RDWR,
            Self::Make => OFlags::RDWR | OFlags::CREATE,
            Self::New => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            Self::Empty => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
            Self::Append => OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND,
        }
    }

    const fn makes(self) -> bool {
        !matches!(self, Self::Read | Self::Write)
    }
}

impl Dir {
    /// Opens a directory, and makes it with its parents where it is missing.
    pub(crate) fn make(path: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(DIR_MODE.bits()).create(path)?;
        Self::open(path)
    }

    /// Opens a directory that is there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let fd = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path: path.into(), fd: Arc::new(fd), guard: None })
    }

    /// A directory whose sync fails: names in it can be opened, renamed and removed, as in any other.
    #[cfg(test)]
    pub(crate) fn open_without_sync(path: &Path) -> io::Result<Self> {
        let fd = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path: path.into(), fd: Arc::new(fd), guard: None })
    }

    /// Opens a directory in this one, which has the same lock. A symbolic link is refused.
    pub(crate) fn open_sub(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(|error| self.explain(name, error))?;
        Ok(Self { path: self.path.join(name).into(), fd: Arc::new(fd), guard: self.guard.clone() })
    }

    /// As [`Self::open_sub`], and makes it where it is missing.
    pub(crate) fn make_sub(&self, name: &str) -> io::Result<Self> {
        self.require_held()?;
        match mkdirat(&self.fd, name, DIR_MODE) {
            Err(error) if error != rustix::io::Errno::EXIST => return Err(error.into()),
            _ => {}
        }
        self.open_sub(name)
    }

    /// This directory, changed from now on only while `name` in it is `lock`, which the caller has locked.
    pub(crate) fn guarded(&self, name: &'static str, lock: &File) -> io::Result<Self> {
        let (path, fd) = (Arc::clone(&self.path), Arc::clone(&self.fd));
        let guard =
            Guard { dir: Arc::clone(&fd), path: Arc::clone(&path), name, file: identity(&fstat(lock)?) };
        Ok(Self { path, fd, guard: Some(Arc::new(guard)) })
    }

    /// The path by which it was opened. It may name another directory by now: for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses where the lock is not the one that this process has locked any more.
    pub(crate) fn require_held(&self) -> io::Result<()> {
        let Some(guard) = &self.guard else { return Ok(()) };
        match statat(&guard.dir, guard.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if identity(&found) == guard.file => Ok(()),
            Err(error) if error != rustix::io::Errno::NOENT => Err(error.into()),
            _ => Err(io::Error::other(format!(
                "{} was deleted or replaced while this process had it: it changes nothing in there any more",
                guard.path.join(guard.name).display()
            ))),
        }
    }

    /// Opens a file in it. A symbolic link is refused.
    pub(crate) fn file(&self, name: &str, access: Access) -> io::Result<File> {
        if access.makes() {
            self.require_held()?;
        }
        let flags = access.flags() | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.fd, name, flags, FILE_MODE).map_err(|error| self.explain(name, error))?;
        Ok(opened.into())
    }

    /// Everything that a file in it holds.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut self.file(name, Access::Read)?, &mut bytes)?;
        Ok(bytes)
    }

    /// Renames a file in it, over another one where there is one.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.require_held()?;
        Ok(renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.require_held()?;
        Ok(unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// What the host reports of a name in it, links not followed.
    pub(crate) fn stat(&self, name: &str) -> io::Result<Stat> {
        Ok(statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The names in it, in no order.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        Ok(self.entries()?.into_iter().map(|(name, _)| name).collect())
    }

    /// The names of the ordinary files in it. No other is looked at: what is mounted on a directory in here may
    /// have nobody that answers.
    pub(crate) fn files(&self) -> io::Result<Vec<OsString>> {
        let is_file = |name: &OsString| {
            let found = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
        };
        let files = self.entries()?.into_iter().filter(|(name, kind)| match kind {
            // The file system does not keep it.
            FileType::Unknown => is_file(name),
            kind => *kind == FileType::RegularFile,
        });
        Ok(files.map(|(name, _)| name).collect())
    }

    fn entries(&self) -> io::Result<Vec<(OsString, FileType)>> {
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                entries.push((name, entry.file_type()));
            }
        }
        Ok(entries)
    }

    /// Puts the names in it on the host's disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    /// Who owns it, and its permissions.
    pub(crate) fn owner_and_mode(&self) -> io::Result<(u32, u32)> {
        let found = fstat(&self.fd)?;
        Ok((found.st_uid, found.st_mode & PERMISSIONS))
    }

    /// Takes everyone's permissions away but the owner's.
    pub(crate) fn make_private(&self) -> io::Result<()> {
        if !self.is_private()? {
            fchmod(&self.fd, DIR_MODE)?;
        }
        Ok(())
    }

    /// Whether it is its owner's alone.
    pub(crate) fn is_private(&self) -> io::Result<bool> {
        Ok(self.owner_and_mode()?.1 == DIR_MODE.bits())
    }

    /// The same for the files in it, and not for what else is there.
    pub(crate) fn make_files_private(&self) -> io::Result<()> {
        for name in self.files()? {
            let found = statat(&self.fd, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            if found.st_mode & PERMISSIONS != FILE_MODE.bits() {
                chmodat(&self.fd, &name, FILE_MODE, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// The same for one file, if there is an ordinary file of this name.
    pub(crate) fn make_private_if_file(&self, name: &str) -> io::Result<()> {
        match self.stat(name) {
            Ok(found)
                if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
                    && found.st_mode & PERMISSIONS != FILE_MODE.bits() =>
            {
                Ok(chmodat(&self.fd, name, FILE_MODE, AtFlags::empty())?)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The kernel's words for a link that is not followed are of no use.
    fn explain(&self, name: &str, error: rustix::io::Errno) -> io::Error {
        let is_link =
            self.stat(name).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
        match is_link {
            true => {
                io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link, which is not followed")
            }
            false => error.into(),
        }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Takes everyone's permissions to a file away but the owner's.
pub(crate) fn make_file_private(file: &File) -> io::Result<()> {
    if fstat(file)?.st_mode & PERMISSIONS != FILE_MODE.bits() {
        fchmod(file, FILE_MODE)?;
    }
    Ok(())
}

/// Device and inode, by which a file is known.
pub(crate) fn identity(found: &Stat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_replaced_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let held = Dir::make(&path).unwrap();
        let lock = held.file("lock", Access::Make).unwrap();
        let held = held.guarded("lock", &lock).unwrap();
        held.file("old", Access::New).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        for name in ["lock", "old"] {
            std::fs::write(path.join(name), "new").unwrap();
        }
        for refused in [held.rename("old", "new"), held.remove("old"), held.file("b", Access::New).map(drop)]
        {
            assert!(refused.unwrap_err().to_string().contains("deleted or replaced"));
        }
        assert_eq!(std::fs::read(path.join("old")).unwrap(), b"new");
    }

    #[test]
    fn a_lock_that_was_replaced_stops_every_change() {
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        let lock = held.file("lock", Access::Make).unwrap();
        let held = held.guarded("lock", &lock).unwrap();
        let sub = held.make_sub("sub").unwrap();
        sub.file("a", Access::New).unwrap();
        sub.rename("a", "b").unwrap();
        std::fs::remove_file(dir.path().join("lock")).unwrap();
        sub.rename("b", "c").unwrap_err();
        std::fs::write(dir.path().join("lock"), "").unwrap();
        sub.rename("b", "c").unwrap_err();
        sub.remove("b").unwrap_err();
        assert_eq!(sub.names().unwrap(), ["b"]);
    }

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        std::fs::write(dir.path().join("victim"), "mine").unwrap();
        std::os::unix::fs::symlink("victim", dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink(".", dir.path().join("link-dir")).unwrap();
        for access in [Access::Read, Access::Make, Access::Empty, Access::Append] {
            let refused = held.file("link", access).unwrap_err();
            assert!(refused.to_string().contains("symbolic link"), "{refused}");
        }
        assert!(held.make_sub("link-dir").unwrap_err().to_string().contains("symbolic link"));
        assert_eq!(std::fs::read(dir.path().join("victim")).unwrap(), b"mine");
    }
}
