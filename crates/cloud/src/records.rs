//! Records in SQLite: a file of a home whose rows are an id and a record as JSON.
//!
//! It is the only module that opens a database of the crate. Whoever uses one keeps all rows in memory too, so that nothing
//! is read again; `monitoring` alone asks its tables itself.

use std::borrow::Cow;
use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Records that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// SQLite does not do it.
    #[error("{file} cannot be used")]
    Sqlite {
        /// The file.
        file: &'static str,
        /// Why.
        source: rusqlite::Error,
    },
    /// The file cannot be opened, made, or kept from other users.
    #[error("{file} cannot be opened or made")]
    Private {
        /// The file.
        file: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A later version of this program wrote the file.
    #[error("{file} has version {found}, {known} is known; use the program that wrote it")]
    Version {
        /// The file.
        file: &'static str,
        /// The version found.
        found: i64,
        /// The latest version that this program knows.
        known: usize,
    },
    /// A row that is no record.
    #[error("{file} is damaged: row '{id}' of {table}")]
    Damaged {
        /// The file.
        file: &'static str,
        /// The table.
        table: &'static str,
        /// The row.
        id: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// A file of a home, and how its tables are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema {
    /// Name of the file.
    pub(crate) file: &'static str,
    /// Statements that bring a file to each version from the one before, the first from an empty file. Each sets
    /// `user_version`, in one transaction with what it makes.
    pub(crate) versions: &'static [&'static str],
    /// Statements that every file takes, whatever its version.
    pub(crate) always: &'static str,
}

impl Schema {
    /// Opens the file of a home, or makes it, readable by its owner alone. A commit is on the disk once it has returned.
    pub(crate) fn open(&self, home: &Path) -> Result<Connection, RecordsError> {
        let path = home.join(self.file);
        make_private(&path).map_err(|source| RecordsError::Private { file: self.file, source })?;
        let found = |source| RecordsError::Sqlite { file: self.file, source };
        let connection = Connection::open(path).map_err(found)?;
        let version: i64 = (|| {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            // What is deleted or replaced, such as the material of a key, leaves the file.
            connection.pragma_update(None, "secure_delete", true)?;
            connection.pragma_query_value(None, "user_version", |row| row.get(0))
        })()
        .map_err(found)?;
        let missing = usize::try_from(version).ok().and_then(|version| self.versions.get(version..));
        let Some(missing) = missing else {
            return Err(RecordsError::Version {
                file: self.file,
                found: version,
                known: self.versions.len(),
            });
        };
        for sql in missing.iter().chain([&self.always]) {
            connection.execute_batch(sql).map_err(found)?;
        }
        Ok(connection)
    }
}

/// SQLite gives its other files the mode of this one.
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path).map(drop)
}

/// A change of one row.
#[derive(Debug)]
pub(crate) enum RowChange<'a> {
    /// The row is this record from now on, with the text of it.
    Put { table: &'static str, id: Cow<'a, str>, record: String },
    /// The row is gone.
    Drop { table: &'static str, id: &'a str },
}

impl<'a> RowChange<'a> {
    /// Puts a record under an id.
    pub(crate) fn put<T: Serialize>(table: &'static str, id: impl Into<Cow<'a, str>>, record: &T) -> Self {
        let record = serde_json::to_string(record).expect("a record is plain data with text keys");
        Self::Put { table, id: id.into(), record }
    }

    fn carry_out(&self, connection: &Connection) -> Result<usize, rusqlite::Error> {
        match self {
            Self::Put { table, id, record } => {
                let sql = format!(
                    "INSERT INTO {table} (id, record) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET record = excluded.record"
                );
                connection.prepare_cached(&sql)?.execute((id, record))
            }
            Self::Drop { table, id } => {
                connection.prepare_cached(&format!("DELETE FROM {table} WHERE id = ?1"))?.execute([id])
            }
        }
    }
}

/// An open file of records.
#[derive(Debug)]
pub(crate) struct RecordFile {
    name: &'static str,
    connection: Connection,
}

impl RecordFile {
    /// Opens the file of a home, or makes it.
    pub(crate) fn open(home: &Path, schema: &Schema) -> Result<Self, RecordsError> {
        Ok(Self { name: schema.file, connection: schema.open(home)? })
    }

    /// All records of a table, in the order of their ids.
    pub(crate) fn rows<T: DeserializeOwned>(&self, table: &'static str) -> Result<Vec<T>, RecordsError> {
        let file = self.name;
        let failed = |source| RecordsError::Sqlite { file, source };
        let sql = format!("SELECT id, record FROM {table} ORDER BY id");
        let mut statement = self.connection.prepare(&sql).map_err(failed)?;
        let mut rows = statement.query(()).map_err(failed)?;
        let mut records = Vec::new();
        // Each is read where SQLite has its text: the texts of all would stay in this process's memory.
        while let Some(row) = rows.next().map_err(failed)? {
            let text = row.get_ref(1).map_err(failed)?.as_bytes().unwrap_or_default();
            let damaged = |source| {
                let id = row.get(0).unwrap_or_default();
                RecordsError::Damaged { file, table, id, source }
            };
            records.push(serde_json::from_slice(text).map_err(damaged)?);
        }
        Ok(records)
    }

    /// The ids of a table, in order.
    pub(crate) fn ids(&self, table: &'static str) -> Result<Vec<String>, RecordsError> {
        let ids = || -> Result<Vec<String>, rusqlite::Error> {
            let mut statement = self.connection.prepare(&format!("SELECT id FROM {table} ORDER BY id"))?;
            statement.query_map((), |row| row.get(0))?.collect()
        };
        ids().map_err(|source| RecordsError::Sqlite { file: self.name, source })
    }

    /// Moves the log into the file, and empties it: what was deleted is in neither after that.
    pub(crate) fn empty_log(&self) -> Result<(), RecordsError> {
        let checkpoint = || self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
        checkpoint().map_err(|source| RecordsError::Sqlite { file: self.name, source })
    }

    /// Makes changes durable, all of them or none.
    pub(crate) fn commit<'a>(
        &mut self,
        changes: impl IntoIterator<Item = RowChange<'a>>,
    ) -> Result<(), RecordsError> {
        let all = || {
            let transaction = self.connection.transaction()?;
            changes.into_iter().try_for_each(|change| change.carry_out(&transaction).map(drop))?;
            transaction.commit()
        };
        let file = self.name;
        all().map_err(|source| RecordsError::Sqlite { file, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: Schema = Schema {
        file: "test.db",
        versions: &[
            "BEGIN; CREATE TABLE things (id TEXT PRIMARY KEY, record TEXT NOT NULL); PRAGMA user_version = 1; COMMIT;",
            "BEGIN; CREATE TABLE more (id TEXT PRIMARY KEY, record TEXT NOT NULL); PRAGMA user_version = 2; COMMIT;",
        ],
        always: "CREATE TABLE IF NOT EXISTS extra (id TEXT PRIMARY KEY, record TEXT NOT NULL)",
    };

    fn things(file: &RecordFile) -> Vec<u64> {
        file.rows("things").unwrap()
    }

    #[test]
    fn changes_are_there_again_or_none_of_them() {
        let home = tempfile::tempdir().unwrap();
        let mut file = RecordFile::open(home.path(), &SCHEMA).unwrap();
        file.commit([RowChange::put("things", "a", &1), RowChange::put("things", "b", &2)]).unwrap();
        file.commit([RowChange::put("things", "a", &3), RowChange::Drop { table: "things", id: "b" }])
            .unwrap();
        let failed = file.commit([RowChange::put("things", "c", &4), RowChange::put("nothing", "d", &5)]);
        assert_eq!(failed.unwrap_err().to_string(), "test.db cannot be used");
        drop(file);
        assert_eq!(things(&RecordFile::open(home.path(), &SCHEMA).unwrap()), [3]);
    }

    #[test]
    fn a_file_of_an_earlier_version_is_brought_up_and_one_of_a_later_refused() {
        let home = tempfile::tempdir().unwrap();
        let first = Schema { versions: &SCHEMA.versions[..1], always: "", ..SCHEMA };
        RecordFile::open(home.path(), &first).unwrap().commit([RowChange::put("things", "a", &1)]).unwrap();
        let mut file = RecordFile::open(home.path(), &SCHEMA).unwrap();
        file.commit([RowChange::put("more", "b", &2), RowChange::put("extra", "c", &3)]).unwrap();
        assert_eq!(things(&file), [1]);
        drop(file);
        let refused = RecordFile::open(home.path(), &first).unwrap_err().to_string();
        assert_eq!(refused, "test.db has version 2, 1 is known; use the program that wrote it");
    }

    #[test]
    fn the_file_is_its_owners_alone_and_a_damaged_row_is_named() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let mut file = RecordFile::open(home.path(), &SCHEMA).unwrap();
        file.commit([RowChange::put("things", "a", &"text")]).unwrap();
        let mode = std::fs::metadata(home.path().join("test.db-wal")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let damaged = file.rows::<u64>("things").unwrap_err().to_string();
        assert_eq!(damaged, "test.db is damaged: row 'a' of things");
    }
}
