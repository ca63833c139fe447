//! How the file comes to its present version, from an empty one or from the `cloudwatch.db` of a home of before.
//!
//! Up to version 3 that file had the minutes of CloudWatch and its alarms. It becomes `history.db` by its name; what CloudWatch stored
//! besides stays in its tables, until CloudWatch fetches it. Packed chunks stay as they are.

use std::fs::{self, File};
use std::path::Path;

use ebbtide_volume::{Nanos, OpStats, Stats, VolumeInterval};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use crate::FILE;
use crate::error::HistoryError;
use crate::key::{GAUGE, INSTANCE, SeriesKey, VOLUME};
use crate::layout::{GAUGE_LAYOUT, Layout, Value};
use crate::packed;
use crate::volume::{Balances, LAYOUT, VolumeMinute};

/// The file of a home of before.
const EARLIER_FILE: &str = "cloudwatch.db";

/// The version of the file.
const VERSION: i64 = 5;

/// The first version that is `history.db`. From it on `cloudwatch.db` is CloudWatch's alone, and is not taken over.
const FIRST_OWN: i64 = 4;

/// Gives the file of a home of before its present name, if there is one and no history yet. A kill leaves one of the two names.
pub(crate) fn adopt(home: &Path) -> Result<(), HistoryError> {
    let (file, earlier) = (home.join(FILE), home.join(EARLIER_FILE));
    // Empty files are made before SQLite opens them. Nothing is taken over through a link.
    let has_content =
        |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    if has_content(&file) || !has_content(&earlier) {
        return Ok(());
    }
    let connection = Connection::open(&earlier)?;
    if !(1..FIRST_OWN).contains(&version(&connection)?) {
        return Ok(());
    }
    // Without a log beside the file, the file has everything.
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)?;
    fs::rename(&earlier, &file).map_err(HistoryError::Private)?;
    File::open(home).and_then(|home| home.sync_all()).map_err(HistoryError::Private)
}

fn version(connection: &Connection) -> Result<i64, HistoryError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Refuses a file of another version than the present one.
pub(crate) fn expect_present(connection: &Connection) -> Result<(), HistoryError> {
    match version(connection)? {
        VERSION => Ok(()),
        found if found > VERSION => Err(HistoryError::Version { found, known: VERSION }),
        found => Err(HistoryError::Earlier { found, known: VERSION }),
    }
}

/// Brings an open file to the present version.
pub(crate) fn bring_up(connection: &mut Connection) -> Result<(), HistoryError> {
    let found = version(connection)?;
    if found > VERSION {
        return Err(HistoryError::Version { found, known: VERSION });
    }
    // Each of these sets its version, in one transaction with what it changes.
    if found == 1 {
        connection.execute_batch(include_str!("sql/earlier-2.sql"))?;
    }
    if matches!(found, 1 | 2) {
        connection.execute_batch(include_str!("sql/earlier-3.sql"))?;
    }
    if found == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    // Another program may have brought the file up while this one waited for it.
    if version(&transaction)? == VERSION {
        return Ok(());
    }
    if found < FIRST_OWN {
        begin_own(&transaction, found > 0)?;
    }
    transaction.execute_batch(include_str!("sql/tiers.sql"))?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}

/// Makes the tables of the first own version, with what a file of before has.
fn begin_own(transaction: &Transaction<'_>, has_earlier: bool) -> Result<(), HistoryError> {
    if has_earlier {
        transaction.execute_batch(include_str!("sql/move.sql"))?;
    }
    transaction.execute_batch(include_str!("sql/create.sql"))?;
    let first = layout_id(transaction, &LAYOUT)?;
    debug_assert_eq!(first, 1, "chunks of before have this layout");
    if has_earlier {
        move_series(transaction)?;
        move_minutes(transaction, first)?;
        move_gauges(transaction)?;
    }
    Ok(())
}

/// The id of a layout, which is stored if it is new.
pub(crate) fn layout_id(connection: &Connection, layout: &Layout) -> Result<i64, HistoryError> {
    let text = serde_json::to_string(layout).expect("plain data");
    let known = connection
        .prepare_cached("SELECT id FROM layouts WHERE columns = ?1")?
        .query_row([&text], |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    connection.execute("INSERT INTO layouts (columns) VALUES (?1)", [&text])?;
    Ok(connection.last_insert_rowid())
}

/// Stores a series, under an id or the next one, with the minute of its latest point and its marks. Returns its id.
pub(crate) fn insert_series(
    transaction: &Transaction<'_>,
    id: Option<i64>,
    key: &SeriesKey,
    (latest, marks): (i64, &str),
) -> Result<i64, HistoryError> {
    let sql = "INSERT INTO series (id, subject, labels, latest, marks) VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction.prepare_cached(sql)?.execute(params![id, key.subject(), key.labels_text(), latest, marks])?;
    let id = transaction.last_insert_rowid();
    for (name, value) in key.labels() {
        let sql = "INSERT INTO labels (name, value, series) VALUES (?1, ?2, ?3)";
        transaction.prepare_cached(sql)?.execute(params![name, value, id])?;
    }
    Ok(id)
}

/// The series of volumes and instances, under their ids.
fn move_series(transaction: &Transaction<'_>) -> Result<(), HistoryError> {
    let mut statement = transaction.prepare("SELECT * FROM earlier_series")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let (volume, instance): (String, String) = (row.get("volume")?, row.get("instance")?);
        let own = [("owner", row.get("owner")?), ("region", row.get("region")?), ("instance", instance)];
        let key = if volume.is_empty() {
            SeriesKey::new(INSTANCE, own)
        } else {
            SeriesKey::new(VOLUME, own.into_iter().chain([("volume", volume)]))
        };
        let mut marks = serde_json::Map::new();
        for mark in ["burst", "provisioned", "checked"] {
            let latest: i64 = row.get(format!("latest_{mark}").as_str())?;
            if latest >= 0 {
                marks.insert(mark.to_owned(), latest.into());
            }
        }
        let marks = serde_json::Value::Object(marks).to_string();
        insert_series(transaction, Some(row.get("id")?), &key, (row.get("latest")?, &marks))?;
    }
    drop(rows);
    drop(statement);
    Ok(transaction.execute_batch("DROP TABLE earlier_series")?)
}

/// The minutes of volumes and instances that are not packed yet.
fn move_minutes(transaction: &Transaction<'_>, layout: i64) -> Result<(), HistoryError> {
    let mut statement = transaction.prepare("SELECT * FROM earlier_minutes")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let (series, minute): (i64, i64) = (row.get("series")?, row.get("minute")?);
        let kind: String = row.get("kind")?;
        insert_point(transaction, (series, minute), layout, &kind, &counters(row)?.values())?;
    }
    drop(rows);
    drop(statement);
    Ok(transaction.execute_batch("DROP TABLE earlier_minutes")?)
}

/// The metrics that are neither of volumes nor of instances.
fn move_gauges(transaction: &Transaction<'_>) -> Result<(), HistoryError> {
    let layout = layout_id(transaction, &GAUGE_LAYOUT)?;
    let mut statement = transaction.prepare("SELECT * FROM gauge_series")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let own = ["owner", "region", "metric", "dimensions"];
        let labels = own.map(|name| row.get(name).map(|value| (name, value)));
        let labels = labels.into_iter().collect::<Result<Vec<_>, _>>()?;
        let key = SeriesKey::new(GAUGE, labels);
        let (id, latest): (i64, i64) = (row.get("id")?, row.get("latest")?);
        let series = insert_series(transaction, None, &key, (latest, "{}"))?;
        let mut statement =
            transaction.prepare_cached("SELECT minute, value FROM gauges WHERE series = ?1")?;
        let mut values = statement.query([id])?;
        while let Some(row) = values.next()? {
            let value = [Some(Value::Real(row.get(1)?))];
            insert_point(transaction, (series, row.get(0)?), layout, "", &value)?;
        }
    }
    drop(rows);
    drop(statement);
    Ok(transaction.execute_batch("DROP TABLE gauges; DROP TABLE gauge_series")?)
}

fn insert_point(
    transaction: &Transaction<'_>,
    (series, number): (i64, i64),
    layout: i64,
    kind: &str,
    values: &[Option<Value>],
) -> Result<(), HistoryError> {
    let sql = "INSERT INTO minutes (series, number, layout, packed) VALUES (?1, ?2, ?3, ?4)";
    let packed = packed::pack([(0, kind, values)]);
    transaction.prepare_cached(sql)?.execute(params![series, number, layout, packed])?;
    Ok(())
}

/// The minute of a row of before.
fn counters(row: &Row<'_>) -> Result<VolumeMinute, rusqlite::Error> {
    let number =
        |column: &str| row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or_default());
    let time = |column: &str| number(column).map(Nanos);
    let ops = |ops: &str, bytes: &str, spent: &str| -> Result<OpStats, rusqlite::Error> {
        Ok(OpStats { ops: number(ops)?, bytes: number(bytes)?, time: time(spent)? })
    };
    let rate: Option<i64> = row.get("iops_rate")?;
    let balances = Balances { io: row.get("balance_io")?, bytes: row.get("balance_bytes")? };
    let counters = Stats {
        at: time("span")?,
        read: ops("read_ops", "read_bytes", "read_time")?,
        write: ops("write_ops", "write_bytes", "write_time")?,
        consumed_ops: number("consumed_ops")?,
        queue: number("queue")?,
        queue_time: time("queue_time")?,
        idle_time: time("idle_time")?,
        volume_iops_exceeded: time("volume_iops_exceeded")?,
        volume_throughput_exceeded: time("volume_throughput_exceeded")?,
        instance_iops_exceeded: time("instance_iops_exceeded")?,
        instance_throughput_exceeded: time("instance_throughput_exceeded")?,
        credit_share: row.get("credit_share")?,
        iops_rate: rate.and_then(|rate| u64::try_from(rate).ok()),
        ..Stats::default()
    };
    Ok(VolumeMinute { counters: VolumeInterval::of_growth(counters), balances })
}

#[cfg(test)]
mod tests;
