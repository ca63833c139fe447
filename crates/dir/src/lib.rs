//! A directory held by its descriptor, so that it stays the same one whatever happens to its path: the only crate that
//! opens, creates and changes owners of files in directories that somebody else may write.
//!
//! A process that keeps a directory for long must not reach its files by their paths: the directory may have been
//! deleted, and another one made in its place by another process. What is opened, renamed or removed here is relative
//! to the descriptor. A directory with a [lock](Dir::guarded) also refuses every change once that lock is no longer the
//! file which this process has locked.
//!
//! Root works in directories of a server's user, who may put a link, a pipe or a file of several names in the place of
//! any file there, at any time. Nothing here follows a link. [`Dir::plain_file`] opens ordinary files of one name and no
//! others, [`Dir::replace`] makes a new file instead of opening one that is there, and owners are changed by
//! descriptor.
#![forbid(unsafe_code)]

mod tree;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{DirBuilderExt as _, fchown};
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
pub struct Dir {
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
pub enum Access {
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
    /// To read, and to append; it must not be there yet.
    NewLog,
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
            Self::NewLog => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND,
        }
    }

    const fn makes(self) -> bool {
        !matches!(self, Self::Read | Self::Write)
    }
}

/// Who is to own a file: user and group, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl Dir {
    /// Opens a directory, and makes it with its parents where it is missing, for the owner alone.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn make(path: &Path) -> io::Result<Self> {
        Self::make_with_mode(path, DIR_MODE.bits())
    }

    /// As [`Self::make`]; what is made has this mode, less the process's mask.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn make_with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(mode).create(path)?;
        Self::open(path)
    }

    /// Opens a directory in one whose path nobody else can change. A symbolic link as the last part of the path is
    /// refused.
    ///
    /// # Errors
    /// What the file system refuses, and a path without a name at its end.
    pub fn open_entry(path: &Path) -> io::Result<Self> {
        let (parent, name) = parent_and_name(path)?;
        Self::open(parent)?.open_sub(name)
    }

    /// As [`Self::open_entry`], and makes it where it is missing.
    ///
    /// # Errors
    /// As [`Self::open_entry`].
    pub fn make_entry(path: &Path) -> io::Result<Self> {
        let (parent, name) = parent_and_name(path)?;
        Self::open(parent)?.make_sub(name)
    }

    /// Opens a directory that is there. Links in its path are followed.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path: path.into(), fd: Arc::new(fd), guard: None })
    }

    /// A directory whose sync fails: names in it can be opened, renamed and removed, as in any other.
    ///
    /// # Errors
    /// What the file system refuses.
    #[cfg(any(test, feature = "fixtures"))]
    pub fn open_without_sync(path: &Path) -> io::Result<Self> {
        let fd = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path: path.into(), fd: Arc::new(fd), guard: None })
    }

    /// Opens a directory in this one, which has the same lock. A symbolic link is refused.
    ///
    /// # Errors
    /// What the file system refuses, and a symbolic link.
    pub fn open_sub(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(|error| self.explain(name, error))?;
        Ok(Self { path: self.path.join(name).into(), fd: Arc::new(fd), guard: self.guard.clone() })
    }

    /// As [`Self::open_sub`], and makes it where it is missing.
    ///
    /// # Errors
    /// As [`Self::open_sub`], and a lock that was replaced.
    pub fn make_sub(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        self.require_held()?;
        match mkdirat(&self.fd, name, DIR_MODE) {
            Err(error) if error != rustix::io::Errno::EXIST => return Err(error.into()),
            _ => {}
        }
        self.open_sub(name)
    }

    /// This directory, changed from now on only while `name` in it is `lock`, which the caller has locked.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn guarded(&self, name: &'static str, lock: &File) -> io::Result<Self> {
        let (path, fd) = (Arc::clone(&self.path), Arc::clone(&self.fd));
        let guard =
            Guard { dir: Arc::clone(&fd), path: Arc::clone(&path), name, file: identity(&fstat(lock)?) };
        Ok(Self { path, fd, guard: Some(Arc::new(guard)) })
    }

    /// The path by which it was opened. It may name another directory by now: for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses where the lock is not the one that this process has locked any more.
    ///
    /// # Errors
    /// A lock that was deleted or replaced, and what the file system refuses.
    pub fn require_held(&self) -> io::Result<()> {
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
    ///
    /// # Errors
    /// What the file system refuses, a symbolic link, and a lock that was replaced.
    pub fn file(&self, name: impl AsRef<OsStr>, access: Access) -> io::Result<File> {
        if access.makes() {
            self.require_held()?;
        }
        let name = name.as_ref();
        let flags = access.flags() | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.fd, name, flags, FILE_MODE).map_err(|error| self.explain(name, error))?;
        Ok(opened.into())
    }

    /// Opens an ordinary file that has no second name, to read or to write what is there. Anything else is refused: a
    /// link, a pipe, which would be waited for, or a second name of a file that belongs to somebody else.
    ///
    /// # Errors
    /// As [`Self::file`], and a file of another kind or of several names.
    pub fn plain_file(&self, name: impl AsRef<OsStr>, access: Access) -> io::Result<File> {
        let name = name.as_ref();
        let flags = access.flags() | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = openat(&self.fd, name, flags, FILE_MODE).map_err(|error| self.explain(name, error))?;
        let found = fstat(&opened)?;
        let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()));
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return refused("it is no ordinary file");
        }
        match found.st_nlink {
            0 | 1 => Ok(opened.into()),
            names => refused(&format!("it has {names} names, and may be somebody else's file")),
        }
    }

    /// Puts a new file in the place of a name. What has the name is replaced, and neither opened nor followed.
    ///
    /// `mode` has the permissions, as `0o640`. Without an owner it belongs to this process's user.
    ///
    /// # Errors
    /// What the file system refuses, such as a directory of that name, and a lock that was replaced.
    pub fn replace(&self, name: &str, contents: &[u8], mode: u32, owner: Option<Owner>) -> io::Result<()> {
        let new = format!(".{name}.new");
        self.remove_all(&new)?;
        let mut file = self.file(&new, Access::New)?;
        file.write_all(contents)?;
        give_file(&file, mode, owner)?;
        self.rename(&new, name)
    }

    /// Makes somebody the owner of this directory, which nobody else may enter then.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn give(&self, owner: Owner) -> io::Result<()> {
        fchown(&self.fd, Some(owner.uid), Some(owner.gid))?;
        self.make_private()
    }

    /// Sets its owner, where one is given, and its permissions, as `0o750`.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn set_owner_and_mode(&self, owner: Option<Owner>, mode: u32) -> io::Result<()> {
        if let Some(owner) = owner {
            fchown(&self.fd, Some(owner.uid), Some(owner.gid))?;
        }
        Ok(fchmod(&self.fd, Mode::from_bits_truncate(mode))?)
    }

    /// Everything that a file in it holds.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub fn read(&self, name: impl AsRef<OsStr>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut self.file(name, Access::Read)?, &mut bytes)?;
        Ok(bytes)
    }

    /// Renames a file in it, over another one where there is one.
    ///
    /// # Errors
    /// What the file system refuses, and a lock that was replaced.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        self.require_held()?;
        Ok(renameat(&self.fd, from.as_ref(), &self.fd, to.as_ref())?)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// As [`Self::rename`].
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.require_held()?;
        Ok(unlinkat(&self.fd, name.as_ref(), AtFlags::empty())?)
    }

    /// Removes a directory in it that holds nothing.
    ///
    /// # Errors
    /// As [`Self::rename`].
    pub fn remove_dir(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.require_held()?;
        Ok(unlinkat(&self.fd, name.as_ref(), AtFlags::REMOVEDIR)?)
    }

    /// What the host reports of a name in it, links not followed.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn stat(&self, name: impl AsRef<OsStr>) -> io::Result<Stat> {
        Ok(statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The names in it, in no order.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        Ok(self.entries()?.into_iter().map(|(name, _)| name).collect())
    }

    /// The names of the ordinary files in it. No other is looked at: what is mounted on a directory in here may
    /// have nobody that answers.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn files(&self) -> io::Result<Vec<OsString>> {
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
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    /// Who owns it, and its permissions.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn owner_and_mode(&self) -> io::Result<(u32, u32)> {
        let found = fstat(&self.fd)?;
        Ok((found.st_uid, found.st_mode & PERMISSIONS))
    }

    /// Takes everyone's permissions away but the owner's.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn make_private(&self) -> io::Result<()> {
        if !self.is_private()? {
            fchmod(&self.fd, DIR_MODE)?;
        }
        Ok(())
    }

    /// Whether it is its owner's alone.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn is_private(&self) -> io::Result<bool> {
        Ok(self.owner_and_mode()?.1 == DIR_MODE.bits())
    }

    /// The same for the files in it, and not for what else is there.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn make_files_private(&self) -> io::Result<()> {
        for name in self.files()? {
            let found = statat(&self.fd, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            if found.st_mode & PERMISSIONS != FILE_MODE.bits() {
                chmodat(&self.fd, &name, FILE_MODE, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// The same for one file, if there is an ordinary file of this name.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn make_private_if_file(&self, name: &str) -> io::Result<()> {
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
    fn explain(&self, name: &OsStr, error: rustix::io::Errno) -> io::Error {
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
///
/// # Errors
/// What the file system refuses.
pub fn make_file_private(file: &File) -> io::Result<()> {
    if fstat(file)?.st_mode & PERMISSIONS != FILE_MODE.bits() {
        fchmod(file, FILE_MODE)?;
    }
    Ok(())
}

/// Sets the permissions of a file, and its owner, where one is given.
fn give_file(file: &File, mode: u32, owner: Option<Owner>) -> io::Result<()> {
    if let Some(owner) = owner {
        fchown(file, Some(owner.uid), Some(owner.gid))?;
    }
    Ok(fchmod(file, Mode::from_bits_truncate(mode))?)
}

/// A path's directory and its last part.
fn parent_and_name(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let parts = path.parent().zip(path.file_name());
    let (parent, name) = parts.ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "a path that ends in the name of a directory is needed")
    })?;
    Ok((if parent.as_os_str().is_empty() { Path::new(".") } else { parent }, name))
}

/// Device and inode, by which a file is known.
#[must_use]
pub fn identity(found: &Stat) -> (u64, u64) {
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

    #[test]
    fn only_an_ordinary_file_of_one_name_is_opened_in_a_directory_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        std::fs::write(dir.path().join("file"), "mine").unwrap();
        held.plain_file("file", Access::Write).unwrap();
        std::os::unix::fs::symlink("file", dir.path().join("link")).unwrap();
        rustix::fs::mkfifoat(&held, "pipe", FILE_MODE).unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        for name in ["link", "pipe", "sub"] {
            held.plain_file(name, Access::Read).unwrap_err();
        }
        std::fs::hard_link(dir.path().join("file"), dir.path().join("second")).unwrap();
        for name in ["file", "second"] {
            let refused = held.plain_file(name, Access::Read).unwrap_err();
            assert!(refused.to_string().contains("2 names"), "{refused}");
        }
    }

    #[test]
    fn a_file_takes_the_place_of_a_name_whatever_that_was() {
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        std::fs::write(dir.path().join("victim"), "mine").unwrap();
        for name in ["a", ".a.new"] {
            std::os::unix::fs::symlink("victim", dir.path().join(name)).unwrap();
        }
        held.replace("a", b"ours", 0o640, None).unwrap();
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"ours");
        assert_eq!(held.stat("a").unwrap().st_mode & PERMISSIONS, 0o640);
        assert_eq!(std::fs::read(dir.path().join("victim")).unwrap(), b"mine");
        let mut names = held.names().unwrap();
        names.sort();
        assert_eq!(names, ["a", "victim"]);
    }

    #[test]
    fn a_path_that_ends_in_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(".", dir.path().join("link")).unwrap();
        let refused = Dir::make_entry(&dir.path().join("link")).unwrap_err();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
        Dir::make_entry(&dir.path().join("new")).unwrap();
        Dir::open_entry(&dir.path().join("new")).unwrap();
        assert!(Dir::open_entry(Path::new("/")).is_err());
    }
}
