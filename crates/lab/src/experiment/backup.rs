//! The backup that is made while an arm's load runs: the section `[backup]`.

use serde::{Deserialize, Serialize};

use super::named::named;

/// A backup under load. It is restored and checked after the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPlan {
    /// How it is made.
    pub method: BackupMethod,
    /// Of which server.
    #[serde(default)]
    pub of: BackedUp,
    /// When it begins, in seconds of the measurement.
    pub start_s: u32,
    /// Whether it is damaged before it is restored, to see that the check finds it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damage: bool,
}

/// How a backup is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackupMethod {
    /// A logical dump: mariadb-dump or mysqldump, in one transaction, into a file on the backup volume.
    Dump,
    /// A physical copy: mariadb-backup, into a directory on the backup volume.
    Physical,
    /// A snapshot of the data volume, taken while the server runs.
    Snapshot,
}

/// Which server is backed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackedUp {
    /// The server of the load.
    #[default]
    Source,
    /// Its first replica.
    Replica,
}

impl BackupMethod {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Dump, "dump"), (Self::Physical, "physical"), (Self::Snapshot, "snapshot")];

    /// Whether it is written to a volume of its own.
    #[must_use]
    pub const fn has_target(self) -> bool {
        !matches!(self, Self::Snapshot)
    }
}

impl BackedUp {
    const ALL: [(Self, &'static str); 2] = [(Self::Source, "source"), (Self::Replica, "replica")];
}

named!(BackupMethod, BackedUp);
