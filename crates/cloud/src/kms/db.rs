//! The records in SQLite: `kms.db` of the home.

use std::path::Path;

use super::records::{Alias, Grant, Key};
use crate::RecordsError;
use crate::records::{RecordFile, RowChange, Schema};

/// Name of the file in a home.
pub(super) const FILE: &str = "kms.db";

const SCHEMA: Schema = Schema { file: FILE, versions: &[include_str!("db.sql")], always: "" };

/// A change of one record.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Key(Box<Key>),
    Alias(Alias),
    Grant(Grant),
    DropKey(String),
    /// By ARN.
    DropAlias(String),
    DropGrant(String),
}

/// All records.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) keys: Vec<Key>,
    pub(super) aliases: Vec<Alias>,
    pub(super) grants: Vec<Grant>,
}

impl Change {
    fn row(&self) -> RowChange<'_> {
        match self {
            Self::Key(key) => RowChange::put("keys", &key.id, key),
            Self::Alias(alias) => RowChange::put("aliases", alias.arn(), alias),
            Self::Grant(grant) => RowChange::put("grants", &grant.id, grant),
            Self::DropKey(id) => RowChange::Drop { table: "keys", id },
            Self::DropAlias(id) => RowChange::Drop { table: "aliases", id },
            Self::DropGrant(id) => RowChange::Drop { table: "grants", id },
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
        let (keys, aliases, grants) = (self.0.rows("keys")?, self.0.rows("aliases")?, self.0.rows("grants")?);
        Ok(Records { keys, aliases, grants })
    }

    /// Makes changes durable, all of them or none.
    pub(super) fn commit(&mut self, changes: &[Change]) -> Result<(), RecordsError> {
        self.0.commit(changes.iter().map(Change::row))
    }
}
