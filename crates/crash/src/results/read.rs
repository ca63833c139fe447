//! Out of the database.

use std::path::Path;

use ebbtide_lab::results::read::parse;
use ebbtide_lab::results::{ResultsError, database};
use ebbtide_text::seed;
use rusqlite::{Connection, OptionalExtension as _};
use serde::de::DeserializeOwned;

use crate::record::{Cut, Gained};

/// None where there is no crash run.
pub(super) fn schema_version(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'crash_run'";
    if connection.query_row(sql, [], |row| row.get::<_, u32>(0))? == 0 {
        return Ok(None);
    }
    connection.query_row("SELECT schema_version FROM crash_run", [], |row| row.get(0)).optional()
}

/// What the risk buys; none where that was not measured.
pub(super) fn gain(connection: &Connection, dir: &Path) -> Result<Option<Gained>, ResultsError> {
    let texts = texts(connection, dir, "SELECT gain_json FROM gain", &[])?;
    texts.first().map(|text| parse(dir, "the gain", text)).transpose()
}

/// Every record of a table that keeps each as `TABLE_json`, in the order in which they came.
pub(super) fn all<T: DeserializeOwned>(
    connection: &Connection,
    dir: &Path,
    table: &str,
) -> Result<Vec<T>, ResultsError> {
    texts(connection, dir, &format!("SELECT {table}_json FROM {table} ORDER BY id"), &[])?
        .iter()
        .map(|text| parse(dir, &format!("a {table}"), text))
        .collect()
}

pub(super) fn cuts_of(connection: &Connection, dir: &Path, seed: u64) -> Result<Vec<Cut>, ResultsError> {
    let sql = "SELECT cut_json FROM cut WHERE seed = ? ORDER BY id";
    let texts = texts(connection, dir, sql, &[seed::hex(seed)])?;
    texts.iter().map(|text| parse(dir, "a cut", text)).collect()
}

fn texts(
    connection: &Connection,
    dir: &Path,
    sql: &str,
    values: &[String],
) -> Result<Vec<String>, ResultsError> {
    connection
        .prepare(sql)
        .and_then(|mut query| {
            query.query_map(rusqlite::params_from_iter(values), |row| row.get(0))?.collect()
        })
        .map_err(database(dir))
}
