//! The records in SQLite: `aws.db` of the home.
//!
//! A record is a row with its id and its fields as JSON. All rows are in memory too, so that nothing is read again.

use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::records::{Instance, RegionSettings, Snapshot, TokenUse, Volume};

/// Version of the tables.
const VERSION: i64 = 1;

/// Name of the file in a home.
pub(super) const FILE: &str = "aws.db";

/// Records that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// SQLite does not do it.
    #[error("{FILE} cannot be used")]
    Sqlite(#[from] rusqlite::Error),
    /// A later version of this program wrote the file.
    #[error("{FILE} has version {found}, {VERSION} is known; use the program that wrote it")]
    Version {
        /// The version found.
        found: i64,
    },
    /// A row that is no record.
    #[error("{FILE} is damaged: row '{id}' of {table}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The row.
        id: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// A change of one record.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Volume(Volume),
    Snapshot(Snapshot),
    Instance(Instance),
    Token(TokenUse),
    Settings(RegionSettings),
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
    pub(super) settings: Vec<RegionSettings>,
}

/// The open file.
#[derive(Debug)]
pub(super) struct Db {
    connection: Connection,
}

impl Db {
    /// Opens the file of a home, or makes it.
    pub(super) fn open(home: &Path) -> Result<Self, DbError> {
        let connection = Connection::open(home.join(FILE))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A commit is on the disk before the call that needs it is answered.
        connection.pragma_update(None, "synchronous", "FULL")?;
        let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match found {
            0 => connection.execute_batch(include_str!("db.sql"))?,
            VERSION => {}
            _ => return Err(DbError::Version { found }),
        }
        // Files of this version from before there were settings have no such table.
        connection.execute_batch(include_str!("settings.sql"))?;
        Ok(Self { connection })
    }

    /// Reads all records.
    pub(super) fn load(&self) -> Result<Records, DbError> {
        Ok(Records {
            volumes: self.rows("volumes")?,
            snapshots: self.rows("snapshots")?,
            instances: self.rows("instances")?,
            tokens: self.rows("tokens")?,
            settings: self.rows("settings")?,
        })
    }

    fn rows<T: DeserializeOwned>(&self, table: &'static str) -> Result<Vec<T>, DbError> {
        let mut statement =
            self.connection.prepare(&format!("SELECT id, record FROM {table} ORDER BY id"))?;
        let mut rows = statement.query(())?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            let text = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
            let record = serde_json::from_str(text).map_err(|source| DbError::Damaged {
                table,
                id: row.get(0).unwrap_or_default(),
                source,
            })?;
            records.push(record);
        }
        Ok(records)
    }

    /// Makes changes durable, all of them or none.
    pub(super) fn commit(&mut self, changes: &[Change]) -> Result<(), DbError> {
        let transaction = self.connection.transaction()?;
        for change in changes {
            match change {
                Change::Volume(record) => put(&transaction, "volumes", &record.id, record)?,
                Change::Snapshot(record) => put(&transaction, "snapshots", &record.id, record)?,
                Change::Instance(record) => put(&transaction, "instances", &record.id, record)?,
                Change::Token(record) => put(&transaction, "tokens", &record.key, record)?,
                Change::Settings(record) => put(&transaction, "settings", &record.key, record)?,
                Change::DropVolume(id) => drop_row(&transaction, "volumes", id)?,
                Change::DropSnapshot(id) => drop_row(&transaction, "snapshots", id)?,
                Change::DropInstance(id) => drop_row(&transaction, "instances", id)?,
                Change::DropToken(key) => drop_row(&transaction, "tokens", key)?,
            }
        }
        Ok(transaction.commit()?)
    }
}

fn put<T: Serialize>(
    connection: &Connection,
    table: &str,
    id: &str,
    record: &T,
) -> Result<(), rusqlite::Error> {
    let text = serde_json::to_string(record).expect("a record is plain data with text keys");
    let sql = format!(
        "INSERT INTO {table} (id, record) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET record = excluded.record"
    );
    connection.prepare_cached(&sql)?.execute((id, text))?;
    Ok(())
}

fn drop_row(connection: &Connection, table: &str, id: &str) -> Result<(), rusqlite::Error> {
    connection.prepare_cached(&format!("DELETE FROM {table} WHERE id = ?1"))?.execute([id])?;
    Ok(())
}
