//! Whole directories: removed, and moved to another file system, without following a link.

use std::ffi::OsStr;
use std::io;

use rustix::fs::{FileType, Mode, Stat, mkdirat, renameat};

use crate::{Access, Dir, Owner, PERMISSIONS, give_file};

/// How deep directories are followed: each level holds a descriptor, and whoever may write there decides how many
/// there are. No server nests its own deeper than three.
const DEPTH: u32 = 32;

impl Dir {
    /// Removes a name, and everything in it where it is a directory. A name that is not there is no error.
    ///
    /// # Errors
    /// What the file system refuses, more than 32 directories in each other, and a lock that was replaced.
    pub fn remove_all(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.require_held()?;
        self.remove_tree(name.as_ref(), DEPTH)
    }

    fn remove_tree(&self, name: &OsStr, depth: u32) -> io::Result<()> {
        match self.stat(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Ok(found) if is_dir(&found) => {}
            // Not looked at: removing a name never follows it.
            _ => return self.remove(name),
        }
        let depth = deeper(depth)?;
        let inner = self.open_sub(name)?;
        for name in inner.names()? {
            inner.remove_tree(&name, depth)?;
        }
        self.remove_dir(name)
    }

    /// Moves a file, or a directory with its files, into another directory under the same name. On another file system
    /// it is copied and on disk before the original goes, so that a kill in between loses nothing; the copy has this
    /// owner, where one is given. What is there under that name already is replaced.
    ///
    /// # Errors
    /// What the file systems refuse. A link, a pipe, or a file of several names is not copied.
    pub fn move_into(&self, name: &str, to: &Self, owner: Option<Owner>) -> io::Result<()> {
        match renameat(self, name, to, name) {
            Err(error) if error == rustix::io::Errno::XDEV => {}
            renamed => return Ok(renamed?),
        }
        let new = format!("{name}.moving");
        to.remove_all(&new)?;
        self.copy_tree(name.as_ref(), to, new.as_ref(), owner, DEPTH)?;
        to.rename(&new, name)?;
        to.sync()?;
        self.remove_all(name)
    }

    fn copy_tree(
        &self,
        name: &OsStr,
        to: &Self,
        new: &OsStr,
        owner: Option<Owner>,
        depth: u32,
    ) -> io::Result<()> {
        let found = self.stat(name)?;
        let mode = found.st_mode & PERMISSIONS;
        if !is_dir(&found) {
            let mut source = self.plain_file(name, Access::Read)?;
            let mut copy = to.file(new, Access::New)?;
            io::copy(&mut source, &mut copy)?;
            give_file(&copy, mode, owner)?;
            return copy.sync_all();
        }
        let depth = deeper(depth)?;
        mkdirat(to, new, Mode::RWXU)?;
        let (source, copy) = (self.open_sub(name)?, to.open_sub(new)?);
        for name in source.names()? {
            source.copy_tree(&name, &copy, &name, owner, depth)?;
        }
        copy.set_owner_and_mode(owner, mode)?;
        copy.sync()
    }
}

fn is_dir(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

fn deeper(depth: u32) -> io::Result<u32> {
    let too_deep = || io::Error::new(io::ErrorKind::InvalidInput, "directories are nested too deep");
    depth.checked_sub(1).ok_or_else(too_deep)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn outside(root: &Path) -> std::path::PathBuf {
        let outside = root.join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("file"), "mine").unwrap();
        outside
    }

    #[test]
    fn what_is_removed_is_never_followed() {
        let root = tempfile::tempdir().unwrap();
        let outside = outside(root.path());
        let inside = root.path().join("inside");
        std::fs::create_dir_all(inside.join("a/b")).unwrap();
        symlink(&outside, inside.join("a/link")).unwrap();
        symlink(outside.join("file"), inside.join("a/b/file")).unwrap();
        let dir = Dir::open(root.path()).unwrap();
        symlink(&outside, root.path().join("link")).unwrap();
        for name in ["inside", "link", "nothing"] {
            dir.remove_all(name).unwrap();
        }
        assert!(!inside.exists() && std::fs::symlink_metadata(root.path().join("link")).is_err());
        assert_eq!(std::fs::read(outside.join("file")).unwrap(), b"mine");
    }

    #[test]
    fn directories_that_are_nested_without_end_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let mut deep = root.path().join("a");
        (0..DEPTH + 1).for_each(|_| deep.push("a"));
        std::fs::create_dir_all(&deep).unwrap();
        let error = Dir::open(root.path()).unwrap().remove_all("a").unwrap_err();
        assert!(error.to_string().contains("nested"), "{error}");
    }

    /// A directory on another file system; prints what is missing where there is none.
    fn elsewhere(root: &Path) -> Option<tempfile::TempDir> {
        use std::os::unix::fs::MetadataExt as _;
        let other = tempfile::tempdir_in("/dev/shm").ok()?;
        let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
        if device(other.path()) == device(root) {
            println!("SKIPPED: a second file system at /dev/shm");
            return None;
        }
        Some(other)
    }

    #[test]
    fn a_directory_moves_to_another_file_system_whole_and_a_link_in_it_does_not() {
        let root = tempfile::tempdir().unwrap();
        let Some(other) = elsewhere(root.path()) else { return };
        let outside = outside(root.path());
        std::fs::create_dir_all(root.path().join("redo/inner")).unwrap();
        std::fs::write(root.path().join("redo/inner/log"), "redo").unwrap();
        let (from, to) = (Dir::open(root.path()).unwrap(), Dir::open(other.path()).unwrap());
        from.move_into("redo", &to, None).unwrap();
        assert_eq!(std::fs::read(other.path().join("redo/inner/log")).unwrap(), b"redo");
        assert!(!root.path().join("redo").exists());

        symlink(outside.join("file"), root.path().join("log")).unwrap();
        from.move_into("log", &to, None).unwrap_err();
        std::fs::hard_link(outside.join("file"), root.path().join("named")).unwrap();
        from.move_into("named", &to, None).unwrap_err();
        assert_eq!(to.names().unwrap(), ["redo"], "nothing of it was copied");
    }
}
