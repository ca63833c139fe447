//! The records in SQLite: `aws.db` of the home.

use std::path::Path;

use super::records::{Instance, Setting, Snapshot, TokenUse, Volume};
use crate::RecordsError;
use crate::records::{RecordFile, RowChange, Schema};

/// Its name.
pub(super) const FILE: &str = "aws.db";

pub(super) const SCHEMA: Schema = Schema {
    file: FILE,
    versions: &[include_str!("db.sql")],
    // Younger than the others.
    always: include_str!("settings.sql"),
};

/// A change of one record.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Volume(Volume),
    Snapshot(Snapshot),
    Instance(Instance),
    Token(TokenUse),
    Setting(Setting),
    DropSetting(String),
    DropVolume(String),
    DropSnapshot(String),
    DropInstance(String),
    DropToken(String),
}

/// All records.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) volumes: Vec<Volume>,
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) instances: Vec<Instance>,
    pub(super) tokens: Vec<TokenUse>,
    pub(super) settings: Vec<Setting>,
}

impl Change {
    fn row(&self) -> RowChange<'_> {
        match self {
            Self::Volume(record) => RowChange::put("volumes", &record.id, record),
            Self::Snapshot(record) => RowChange::put("snapshots", &record.id, record),
            Self::Instance(record) => RowChange::put("instances", &record.id, record),
            Self::Token(record) => RowChange::put("tokens", &record.key, record),
            Self::Setting(record) => RowChange::put("settings", &record.key, record),
            Self::DropSetting(id) => RowChange::Drop { table: "settings", id },
            Self::DropVolume(id) => RowChange::Drop { table: "volumes", id },
            Self::DropSnapshot(id) => RowChange::Drop { table: "snapshots", id },
            Self::DropInstance(id) => RowChange::Drop { table: "instances", id },
            Self::DropToken(id) => RowChange::Drop { table: "tokens", id },
        }
    }
}

/// The open file.
#[derive(Debug)]
pub(super) struct Db(RecordFile);

impl Db {
    /// Opens the file of a home, or makes it.
    pub(super) fn open(home: &Path) -> Result<Self, RecordsError> {
        Ok(Self(RecordFile::open(home, &SCHEMA)?))
    }

    /// Reads all records.
    pub(super) fn load(&self) -> Result<Records, RecordsError> {
        Ok(Records {
            volumes: self.0.rows("volumes")?,
            snapshots: self.0.rows("snapshots")?,
            instances: self.0.rows("instances")?,
            tokens: self.0.rows("tokens")?,
            settings: self.0.rows("settings")?,
        })
    }

    /// The ids of all volumes and snapshots.
    pub(super) fn storage_ids(&self) -> Result<Vec<String>, RecordsError> {
        Ok([self.0.ids("volumes")?, self.0.ids("snapshots")?].concat())
    }

    /// Makes changes durable, all of them or none.
    pub(super) fn commit(&mut self, changes: &[Change]) -> Result<(), RecordsError> {
        self.0.commit(changes.iter().map(Change::row))
    }
}
