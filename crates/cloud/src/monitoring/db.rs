//! The file of the alarms: `cloudwatch.db` of the home.

use std::path::Path;

use ebbtide_history::HistoryError;
use rusqlite::Connection;

use crate::RecordsError;
use crate::records::Schema;

/// Up to version 3, minutes were in the file too. The history takes such a file over, with all that is in it.
const SCHEMA: Schema =
    Schema { file: "cloudwatch.db", versions: &["", "", "", include_str!("db-4.sql")], always: "" };

/// How long the history of alarms is kept, in milliseconds: 30 days.
const KEPT_HISTORY_MS: u64 = 30 * 24 * 3_600_000;

/// What the files may have. Beyond it, the oldest go first.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Minutes of all volumes and instances: with the default, 10,000 volumes have all 15 days.
    pub minutes: u64,
    /// Items of the history of alarms.
    pub history: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { minutes: ebbtide_history::Options::default().most_minutes, history: 100_000 }
    }
}

/// Records that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// The minutes cannot be read or written.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The file of the alarms cannot be opened.
    #[error(transparent)]
    Open(#[from] RecordsError),
    /// SQLite does not do it.
    #[error("{} cannot be used", SCHEMA.file)]
    Sqlite(#[from] rusqlite::Error),
    /// A row that is no record.
    #[error("{} is damaged: alarm '{name}'", SCHEMA.file)]
    Damaged {
        /// The alarm.
        name: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// The open file.
#[derive(Debug)]
pub(super) struct Db {
    pub(super) connection: Connection,
    /// Items of the history of alarms that it may have.
    most: u64,
}

/// A number as SQLite has it.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Db {
    /// Opens the file of a home, or makes it, with the alarms of a home of before. The history has been opened.
    pub(super) fn open(home: &Path, most: u64) -> Result<Self, DbError> {
        let mut connection = SCHEMA.open(home)?;
        fetch_earlier(&mut connection, &home.join(ebbtide_history::FILE))?;
        Ok(Self { connection, most })
    }

    /// Forgets items of the history of alarms that are too old, or too many.
    pub(super) fn prune(&mut self, now_ms: u64) -> Result<(), DbError> {
        let transaction = self.connection.transaction()?;
        let oldest = now_ms.saturating_sub(KEPT_HISTORY_MS);
        transaction.execute("DELETE FROM history WHERE at_ms < ?1", [stored(oldest)])?;
        let sql =
            "DELETE FROM history WHERE id <= (SELECT id FROM history ORDER BY id DESC LIMIT 1 OFFSET ?1)";
        transaction.execute(sql, [stored(self.most)])?;
        Ok(transaction.commit()?)
    }
}

/// Fetches alarms out of the file that the history took over: they were in one file with the minutes. A kill within it repeats it.
fn fetch_earlier(connection: &mut Connection, taken_over: &Path) -> Result<(), rusqlite::Error> {
    let earlier = Connection::open(taken_over)?;
    let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('alarms', 'history')";
    if earlier.query_row(sql, (), |row| row.get::<_, i64>(0))? != 2 {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    for (table, columns) in [("alarms", 4), ("history", 8)] {
        let mut statement = earlier.prepare(&format!("SELECT * FROM {table}"))?;
        let mut rows = statement.query(())?;
        let places = (1..=columns).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT OR IGNORE INTO {table} VALUES ({places})");
        let mut insert = transaction.prepare(&sql)?;
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|place| row.get::<_, rusqlite::types::Value>(place));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            insert.execute(rusqlite::params_from_iter(values))?;
        }
    }
    transaction.commit()?;
    earlier.execute_batch("BEGIN; DROP TABLE alarms; DROP TABLE history; COMMIT;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_of_a_home_of_before_are_fetched_once_also_after_a_kill_between() {
        let dir = tempfile::tempdir().unwrap();
        let earlier = Connection::open(dir.path().join(ebbtide_history::FILE)).unwrap();
        let tables = include_str!("db-4.sql").replace("user_version = 4", "user_version = 3");
        earlier.execute_batch(&tables).unwrap();
        let rows = "INSERT INTO alarms VALUES ('1', 'us-east-1', 'low', '{}'), ('1', 'us-east-1', 'high', '{}'); \
                    INSERT INTO history VALUES (5, '1', 'us-east-1', 'low', 7, 'StateUpdate', 'OK to ALARM', '{}');";
        earlier.execute_batch(rows).unwrap();
        let count = |db: &Db, table: &str| -> i64 {
            db.connection.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap()
        };
        let db = Db::open(dir.path(), 10).unwrap();
        assert_eq!((count(&db, "alarms"), count(&db, "history")), (2, 1));
        db.connection.execute("UPDATE alarms SET record = '{\"newer\":1}' WHERE name = 'low'", ()).unwrap();
        drop(db);
        // As if the process had died before it dropped the tables.
        earlier.execute_batch(&tables).unwrap();
        earlier.execute_batch(rows).unwrap();
        let db = Db::open(dir.path(), 10).unwrap();
        assert_eq!((count(&db, "alarms"), count(&db, "history")), (2, 1));
        let sql = "SELECT record FROM alarms WHERE name = 'low'";
        let record: String = db.connection.query_row(sql, (), |row| row.get(0)).unwrap();
        assert_eq!(record, "{\"newer\":1}");
        let left: i64 = earlier
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name IN ('alarms', 'history')", (), |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(left, 0);
    }
}
