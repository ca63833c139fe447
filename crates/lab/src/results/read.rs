//! Out of the database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, Row};
use serde::de::DeserializeOwned;

use super::columns::Columns;
use super::{ResultsError, database};
use crate::experiment::Role;
use crate::record::{
    HostSecond, LimitShares, LoadSecond, Outcome, ReplicaSecond, Second, ServerSecond, Trial, VolumeSecond,
};

pub(super) fn schema_version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("SELECT schema_version FROM run", [], |row| row.get(0))
}

/// Columns as a table has them, NULL for those that came to the schema later.
pub(super) fn as_far_as_there(
    connection: &Connection,
    table: &str,
    columns: &[&str],
) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare("SELECT name FROM pragma_table_info(?)")?;
    let there: BTreeSet<String> =
        query.query_map([table], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let name = |column: &&str| if there.contains(*column) { *column } else { "NULL" }.to_owned();
    Ok(columns.iter().map(name).collect())
}

/// Reads a value that a column holds as JSON; `what` names it in the error.
///
/// # Errors
/// [`ResultsError::Damaged`].
pub fn parse<T: DeserializeOwned>(dir: &Path, what: &str, text: &str) -> Result<T, ResultsError> {
    serde_json::from_str(text).map_err(|error| ResultsError::Damaged {
        dir: dir.to_path_buf(),
        what: format!("{what} cannot be read: {error}"),
    })
}

/// A trial's row, before its texts are parsed.
struct Stored {
    id: i64,
    trial: Trial,
    outcome: String,
    why: Option<String>,
    log: Option<String>,
    load: Option<String>,
    batch: Option<String>,
    notes: String,
    promotion: Option<String>,
    backup: Option<String>,
}

impl Stored {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            trial: Trial {
                arm: row.get(1)?,
                repeat: row.get(2)?,
                started_ns: row.get(3)?,
                took_s: row.get(4)?,
                outcome: Outcome::Measured,
                load: None,
                seconds: Vec::new(),
                batch: None,
                promotion: None,
                backup: None,
                notes: Vec::new(),
            },
            outcome: row.get(5)?,
            why: row.get(6)?,
            log: row.get(7)?,
            load: row.get(8)?,
            batch: row.get(9)?,
            notes: row.get(10)?,
            promotion: row.get(11)?,
            backup: row.get(12)?,
        })
    }

    fn parse(self, connection: &Connection, dir: &Path) -> Result<Trial, ResultsError> {
        let what = format!("trial {} of {}", self.trial.repeat, self.trial.arm);
        let why = self.why.unwrap_or_default();
        let outcome = match self.outcome.as_str() {
            "measured" => Outcome::Measured,
            "disqualified" => Outcome::Disqualified { why },
            _ => Outcome::Failed { why, log: parse(dir, &what, self.log.as_deref().unwrap_or("[]"))? },
        };
        let load = self.load.map(|text| parse(dir, &what, &text)).transpose()?;
        let batch = self.batch.map(|text| parse(dir, &what, &text)).transpose()?;
        let promotion = self.promotion.map(|text| parse(dir, &what, &text)).transpose()?;
        let backup = self.backup.map(|text| parse(dir, &what, &text)).transpose()?;
        let notes = parse(dir, &what, &self.notes)?;
        let seconds = seconds(connection, self.id).map_err(database(dir))?;
        Ok(Trial { outcome, load, batch, promotion, backup, notes, seconds, ..self.trial })
    }
}

pub(super) fn trials(connection: &Connection, dir: &Path) -> Result<Vec<Trial>, ResultsError> {
    let columns = [
        "id",
        "arm",
        "repeat",
        "started_ns",
        "took_s",
        "outcome",
        "why",
        "log_json",
        "load_json",
        "batch_json",
        "notes_json",
        "promotion_json",
        "backup_json",
    ];
    let columns = as_far_as_there(connection, "trial", &columns).map_err(database(dir))?;
    let sql = format!("SELECT {} FROM trial ORDER BY id", columns.join(", "));
    let stored: Vec<Stored> = connection
        .prepare(&sql)
        .and_then(|mut query| query.query_map([], Stored::read)?.collect())
        .map_err(database(dir))?;
    stored.into_iter().map(|stored| stored.parse(connection, dir)).collect()
}

fn seconds(connection: &Connection, trial: i64) -> rusqlite::Result<Vec<Second>> {
    let columns =
        [&["t_s", "server_asked"], LoadSecond::NAMES, HostSecond::NAMES, ServerSecond::NAMES].concat();
    let columns = as_far_as_there(connection, "second", &columns)?.join(", ");
    let sql = format!("SELECT {columns} FROM second WHERE trial = ? ORDER BY n");
    let host = 2 + LoadSecond::NAMES.len();
    let server = host + HostSecond::NAMES.len();
    let mut seconds: Vec<Second> = connection
        .prepare(&sql)?
        .query_map([trial], |row| {
            let asked: bool = row.get(1)?;
            Ok(Second {
                t_s: row.get(0)?,
                load: LoadSecond::read(row, 2)?,
                volumes: BTreeMap::new(),
                server: asked.then(|| ServerSecond::read(row, server)).transpose()?,
                host: HostSecond::read(row, host)?,
                replica: None,
                replica_volumes: Vec::new(),
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let columns = [&["n", "role"], VolumeSecond::NAMES, LimitShares::NAMES].concat();
    let sql = format!("SELECT {} FROM volume_second WHERE trial = ?", columns.join(", "));
    let mut query = connection.prepare(&sql)?;
    let mut rows = query.query([trial])?;
    while let Some(row) = rows.next()? {
        let (n, role): (usize, Role) = (row.get(0)?, role(row, 1)?);
        if let Some(second) = seconds.get_mut(n) {
            second.volumes.insert(role, VolumeSecond::read(row, 2)?);
        }
    }
    replicas(connection, trial, &mut seconds)?;
    replica_volumes(connection, trial, &mut seconds)?;
    Ok(seconds)
}

/// The role in a column.
fn role(row: &Row<'_>, place: usize) -> rusqlite::Result<Role> {
    let text: String = row.get(place)?;
    serde_json::from_value(text.into()).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(place, rusqlite::types::Type::Text, error.into())
    })
}

/// Whether the database has none of these columns. Results of earlier versions lack tables.
fn is_missing(connection: &Connection, table: &str, columns: &[&str]) -> rusqlite::Result<bool> {
    Ok(as_far_as_there(connection, table, columns)?.iter().all(|column| column == "NULL"))
}

/// Adds the volumes of replicas.
fn replica_volumes(connection: &Connection, trial: i64, seconds: &mut [Second]) -> rusqlite::Result<()> {
    const TABLE: &str = "replica_volume_second";
    let columns = [&["n", "replica", "role"], VolumeSecond::NAMES, LimitShares::NAMES].concat();
    if is_missing(connection, TABLE, &columns)? {
        return Ok(());
    }
    let sql = format!("SELECT {} FROM {TABLE} WHERE trial = ? ORDER BY n, replica", columns.join(", "));
    let mut query = connection.prepare(&sql)?;
    let mut rows = query.query([trial])?;
    while let Some(row) = rows.next()? {
        let (n, number): (usize, usize) = (row.get(0)?, row.get(1)?);
        if let Some(second) = seconds.get_mut(n) {
            let count = second.replica_volumes.len().max(number);
            second.replica_volumes.resize_with(count, BTreeMap::new);
            second.replica_volumes[number - 1].insert(role(row, 2)?, VolumeSecond::read(row, 3)?);
        }
    }
    Ok(())
}

/// Adds what replicas showed. Results of earlier versions have no such table.
fn replicas(connection: &Connection, trial: i64, seconds: &mut [Second]) -> rusqlite::Result<()> {
    let columns = [&["n"], ReplicaSecond::NAMES].concat();
    if is_missing(connection, "replica_second", &columns)? {
        return Ok(());
    }
    let sql = format!("SELECT {} FROM replica_second WHERE trial = ?", columns.join(", "));
    let mut query = connection.prepare(&sql)?;
    let mut rows = query.query([trial])?;
    while let Some(row) = rows.next()? {
        let n: usize = row.get(0)?;
        if let Some(second) = seconds.get_mut(n) {
            second.replica = Some(ReplicaSecond::read(row, 1)?);
        }
    }
    Ok(())
}
