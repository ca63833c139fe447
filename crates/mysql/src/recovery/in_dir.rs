//! Files of a server's directories: its user may put a link or a pipe in the place of any of them, at any time.

use std::fs::File;
use std::path::{Path, PathBuf};

use ebbtide_dir::{Access, Dir};

use super::Unverified;

/// A name in a directory that is held by its descriptor.
#[derive(Debug)]
pub(super) struct InDir {
    pub(super) dir: Dir,
    pub(super) name: String,
}

impl InDir {
    /// For messages.
    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    /// Opens it to read; what is no ordinary file is refused.
    pub(super) fn open(&self) -> Result<File, Unverified> {
        self.dir.plain_file(&self.name, Access::Read).map_err(Unverified::at("open", &self.path()))
    }
}

/// A directory of a layout.
pub(super) fn open_dir(path: &Path) -> Result<Dir, Unverified> {
    Dir::open_entry(path).map_err(Unverified::at("open", path))
}

/// What a directory holds.
pub(super) fn list(dir: &Dir) -> Result<Vec<InDir>, Unverified> {
    let names = dir.names().map_err(Unverified::at("list", dir.path()))?;
    let named =
        |name: std::ffi::OsString| InDir { dir: dir.clone(), name: name.to_string_lossy().into_owned() };
    Ok(names.into_iter().map(named).collect())
}
