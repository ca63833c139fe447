//! What lies on a volume of a server.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::Files;

/// What a volume holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The data directory, and everything that has no volume of its own.
    Data,
    /// The redo log.
    Redo,
    /// The binary log.
    Binlog,
    /// The redo log and the binary log, on one file system.
    #[serde(rename = "redo+binlog")]
    Logs,
    /// The undo tablespaces.
    Undo,
    /// Temporary tables and files.
    Tmp,
    /// The relay logs of a replica.
    Relay,
    /// What backups are written to.
    Backup,
}

impl Role {
    /// All of them, the data first.
    pub const ALL: [Self; 8] =
        [Self::Data, Self::Redo, Self::Binlog, Self::Logs, Self::Undo, Self::Tmp, Self::Relay, Self::Backup];

    /// Those that `--volume` names: the volumes of a server that are judged and modelled apart.
    pub const NAMED: [Self; 4] = [Self::Data, Self::Redo, Self::Binlog, Self::Logs];

    /// Its name in experiment files, options and results.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Redo => "redo",
            Self::Binlog => "binlog",
            Self::Logs => "redo+binlog",
            Self::Undo => "undo",
            Self::Tmp => "tmp",
            Self::Relay => "relay",
            Self::Backup => "backup",
        }
    }

    /// The one of [`Role::NAMED`] with this key.
    ///
    /// # Errors
    /// There is none.
    pub fn named(key: &str) -> Result<Self, UnknownRole> {
        let known = Self::NAMED.into_iter().find(|role| role.key() == key);
        known.ok_or_else(|| UnknownRole(key.to_owned()))
    }

    /// Its name as a part of the names of volumes, which have no `+`.
    #[must_use]
    pub const fn volume_name(self) -> &'static str {
        match self {
            Self::Logs => "redo-binlog",
            _ => self.key(),
        }
    }

    /// What its volume holds, for people.
    #[must_use]
    pub const fn holds(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Redo => "redo log",
            Self::Binlog => "binary log",
            Self::Logs => "redo log and binary log",
            Self::Undo => "undo",
            Self::Tmp => "temporary files",
            Self::Relay => "relay log",
            Self::Backup => "backups",
        }
    }

    /// The files of a server that lie on its volume, those first by which its device is found; empty for files whose directory
    /// is not observed.
    #[must_use]
    pub const fn files(self) -> &'static [Files] {
        match self {
            Self::Data => &[Files::Data, Files::Temporary],
            Self::Redo => &[Files::Redo],
            Self::Binlog => &[Files::Binlog],
            Self::Logs => &[Files::Redo, Files::Binlog],
            Self::Tmp => &[Files::Temporary],
            Self::Undo | Self::Relay | Self::Backup => &[],
        }
    }
}

/// A text that is none of [`Role::NAMED`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRole(pub String);

impl fmt::Display for UnknownRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is no role: use data, redo, binlog or redo+binlog, as in data=gp3:size=500GiB", self.0)
    }
}

impl std::error::Error for UnknownRole {}
