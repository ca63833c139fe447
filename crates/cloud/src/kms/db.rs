//! The records in SQLite: `kms.db` of the home. All rows are in memory too, so that nothing is read again.

use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::records::{Alias, Grant, Key};

/// Version of the tables.
const VERSION: i64 = 1;

/// Name of the file in a home.
pub(super) const FILE: &str = "kms.db";

/// Records that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// SQLite does not do it.
    #[error("{FILE} cannot be used")]
    Sqlite(#[from] rusqlite::Error),
    /// The file cannot be kept from other users.
    #[error("{FILE} cannot be made private")]
    Private(#[source] std::io::Error),
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

/// The open file.
#[derive(Debug)]
pub(super) struct Db {
    connection: Connection,
}

impl Db {
    /// Opens the file of a home, or makes it.
    pub(super) fn open(home: &Path) -> Result<Self, DbError> {
        let path = home.join(FILE);
        make_private(&path).map_err(DbError::Private)?;
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A commit is on the disk before the call that needs it is answered.
        connection.pragma_update(None, "synchronous", "FULL")?;
        let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match found {
            0 => connection.execute_batch(include_str!("db.sql"))?,
            VERSION => {}
            _ => return Err(DbError::Version { found }),
        }
        Ok(Self { connection })
    }

    /// Reads all records.
    pub(super) fn load(&self) -> Result<Records, DbError> {
        Ok(Records { keys: self.rows("keys")?, aliases: self.rows("aliases")?, grants: self.rows("grants")? })
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
                Change::Key(key) => put(&transaction, "keys", &key.id, key)?,
                Change::Alias(alias) => put(&transaction, "aliases", &alias.arn(), alias)?,
                Change::Grant(grant) => put(&transaction, "grants", &grant.id, grant)?,
                Change::DropKey(id) => drop_row(&transaction, "keys", id)?,
                Change::DropAlias(arn) => drop_row(&transaction, "aliases", arn)?,
                Change::DropGrant(id) => drop_row(&transaction, "grants", id)?,
            }
        }
        Ok(transaction.commit()?)
    }
}

/// SQLite gives its other files the mode of this one.
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path).map(drop)
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
