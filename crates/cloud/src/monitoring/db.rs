//! The minutes and the alarms in SQLite: `cloudwatch.db` of the home.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use ebbtide_control::{InstanceBalances, Nanos, OpStats, Stats};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::inventory::{Attached, Gauge, INSTANCE};
use super::metrics::Family;
use super::minute::{InstanceMinute, Minute};
use super::packed;
use crate::RecordsError;
use crate::records::Schema;

const SCHEMA: Schema = Schema {
    file: "cloudwatch.db",
    versions: &[include_str!("db.sql"), include_str!("db-2.sql"), include_str!("db-3.sql")],
    always: "",
};

/// How long minutes are kept, in minutes: 15 days, as AWS keeps its own.
pub(super) const KEPT_MINUTES: u64 = 15 * 24 * 60;

/// Minutes of an hour.
const HOUR: u64 = 60;

/// How long the history of alarms is kept, in milliseconds: 30 days.
const KEPT_HISTORY_MS: u64 = 30 * 24 * 3_600_000;

/// What the file may have. Beyond it, the oldest go first.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Minutes of all volumes and instances: with the default, 10,000 volumes have all 15 days. See `packed` for the bytes.
    pub minutes: u64,
    /// Items of the history of alarms.
    pub history: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { minutes: 216_000_000, history: 100_000 }
    }
}

/// Records that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// The file cannot be opened.
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

/// A minute of a volume on an instance, or of an instance itself, whose volume is empty.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MinuteRow {
    pub(super) attached: Attached,
    pub(super) minute: u64,
    pub(super) counters: Minute,
}

impl MinuteRow {
    /// The minute of the families `latest_burst`, `latest_provisioned` and `latest_checked`; -1 where it has none.
    fn latest(&self) -> [i64; 3] {
        let (kind, Minute { counters, balances }) = (&self.attached.kind, &self.counters);
        let has = if kind == INSTANCE {
            [balances.io.is_some(), balances.bytes.is_some(), false]
        } else {
            let is_burst = counters.credit_share.is_some() && Family::Burst.has(kind);
            [is_burst, Family::Provisioned.has(kind), Family::Checked.has(kind)]
        };
        has.map(|has| if has { stored(self.minute) } else { -1 })
    }
}

/// A volume on an instance, or an instance itself without a volume, with the latest minute of each family of its metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeriesRow {
    pub(super) volume: String,
    pub(super) instance: String,
    latest: [i64; 4],
}

impl SeriesRow {
    /// Whether a family has a value since a minute.
    pub(super) fn is_active(&self, family: Family, since: u64) -> bool {
        let latest = self.latest[match family {
            Family::All => 0,
            Family::Burst | Family::IoCredits => 1,
            Family::Provisioned | Family::ByteCredits => 2,
            Family::Checked => 3,
        }];
        u64::try_from(latest).is_ok_and(|latest| latest >= since)
    }
}

/// The open file.
#[derive(Debug)]
pub(super) struct Db {
    pub(super) connection: Connection,
    bounds: Bounds,
}

/// A number as SQLite has it.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Db {
    /// Opens the file of a home, or makes it.
    pub(super) fn open(home: &Path, bounds: Bounds) -> Result<Self, DbError> {
        let connection = SCHEMA.open(home)?;
        Ok(Self { connection, bounds })
    }

    /// Writes minutes, all of them or none. One that is there already is replaced.
    pub(super) fn write(&mut self, rows: &[MinuteRow]) -> Result<(), DbError> {
        let transaction = self.connection.transaction()?;
        for row in rows {
            let Attached { volume, owner, region, instance, kind } = &row.attached;
            let minute = stored(row.minute);
            let [burst, provisioned, checked] = row.latest();
            let series: i64 = transaction.prepare_cached(include_str!("series.sql"))?.query_row(
                params![owner, region, volume, instance, minute, burst, provisioned, checked],
                |row| row.get(0),
            )?;
            let Minute { counters: stats, balances } = &row.counters;
            transaction.prepare_cached(include_str!("minute.sql"))?.execute(params![
                series,
                minute,
                kind,
                stored(stats.at.0),
                stored(stats.read.ops),
                stored(stats.read.bytes),
                stored(stats.read.time.0),
                stored(stats.write.ops),
                stored(stats.write.bytes),
                stored(stats.write.time.0),
                stored(stats.consumed_ops),
                stored(stats.queue),
                stored(stats.queue_time.0),
                stored(stats.idle_time.0),
                stored(stats.volume_iops_exceeded.0),
                stored(stats.volume_throughput_exceeded.0),
                stored(stats.instance_iops_exceeded.0),
                stored(stats.instance_throughput_exceeded.0),
                stats.credit_share,
                stats.iops_rate.map(stored),
                balances.io,
                balances.bytes,
            ])?;
        }
        Ok(transaction.commit()?)
    }

    /// One minute of a volume on an instance, or of an instance itself, where it is stored.
    pub(super) fn minute(&self, of: &Attached, minute: u64) -> Result<Option<Minute>, DbError> {
        let sql = "SELECT m.* FROM minutes m JOIN series s ON s.id = m.series \
                   WHERE s.owner = ?1 AND s.region = ?2 AND s.volume = ?3 AND s.instance = ?4 AND m.minute = ?5";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement
            .query_row(params![of.owner, of.region, of.volume, of.instance, stored(minute)], counters);
        Ok(found.optional()?)
    }

    /// The minutes of a volume, on one instance or on all, with its type in each.
    pub(super) fn minutes(
        &self,
        account: (&str, &str),
        volume: &str,
        instance: Option<&str>,
        minutes: Range<u64>,
    ) -> Result<BTreeMap<u64, (String, Minute)>, DbError> {
        let mut found: BTreeMap<u64, (String, Minute)> = BTreeMap::new();
        for (minute, (kind, counters)) in self.rows(account, Some(volume), instance, minutes)? {
            // A volume can change instances within a minute.
            let whole = found.get(&minute).map_or(counters, |(_, earlier)| earlier.then(&counters));
            found.insert(minute, (kind, whole));
        }
        Ok(found)
    }

    /// The minutes of an instance, with all its volumes together. Volumes with Multi-Attach are of no instance.
    pub(super) fn instance_minutes(
        &self,
        account: (&str, &str),
        instance: &str,
        minutes: Range<u64>,
    ) -> Result<BTreeMap<u64, InstanceMinute>, DbError> {
        let mut found: BTreeMap<u64, (Stats, bool, Option<InstanceBalances>)> = BTreeMap::new();
        for (minute, (kind, of_one)) in self.rows(account, None, Some(instance), minutes)? {
            let (counters, is_stalled, balances) = found.entry(minute).or_default();
            if kind == INSTANCE {
                *balances = Some(of_one.balances);
            } else {
                *counters = counters.combined(&of_one.counters);
                *is_stalled |= of_one.metrics().volume_stalled_io_check > 0;
            }
        }
        let whole = |(minute, (counters, is_stalled, balances))| {
            let volumes = Minute { counters, ..Minute::default() }.metrics();
            (minute, InstanceMinute { volumes, is_stalled, balances })
        };
        Ok(found.into_iter().map(whole).collect())
    }

    /// Minutes of a volume, of an instance with its volumes, or of a volume on an instance, with the type of each; in the order
    /// of the minutes.
    fn rows(
        &self,
        (owner, region): (&str, &str),
        volume: Option<&str>,
        instance: Option<&str>,
        minutes: Range<u64>,
    ) -> Result<impl Iterator<Item = (u64, (String, Minute))>, DbError> {
        // Each of them by its own index.
        let wanted = match (volume, instance) {
            (Some(_), Some(_)) => "s.volume = ?3 AND s.instance = ?4",
            (Some(_), None) => "s.volume = ?3 AND ?4 IS NULL",
            (None, _) => "s.instance = ?4 AND ?3 IS NULL",
        };
        // By minute and series: a minute that is written after its hour is packed replaces the packed one.
        let mut rows: BTreeMap<(u64, i64), (String, Minute)> = BTreeMap::new();
        let sql = format!(
            "SELECT h.series, h.hour, h.packed FROM series s JOIN hours h ON s.id = h.series \
             WHERE s.owner = ?1 AND s.region = ?2 AND {wanted} AND h.hour >= ?5 AND h.hour <= ?6"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let hours = (stored(minutes.start / HOUR), stored(minutes.end / HOUR));
        let mut packed = statement.query(params![owner, region, volume, instance, hours.0, hours.1])?;
        while let Some(row) = packed.next()? {
            let (series, first) = (row.get("series")?, unsigned(row, "hour")? * HOUR);
            for (number, kind, counters) in
                packed::unpack(row.get_ref("packed")?.as_blob().unwrap_or_default())
            {
                let minute = first + u64::from(number);
                if minutes.contains(&minute) {
                    rows.insert((minute, series), (kind, counters));
                }
            }
        }
        let sql = format!(
            "SELECT m.* FROM series s JOIN minutes m ON s.id = m.series \
             WHERE s.owner = ?1 AND s.region = ?2 AND {wanted} AND m.minute >= ?5 AND m.minute < ?6"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let bounds = (stored(minutes.start), stored(minutes.end));
        let mut single = statement.query(params![owner, region, volume, instance, bounds.0, bounds.1])?;
        while let Some(row) = single.next()? {
            rows.insert((unsigned(row, "minute")?, row.get("series")?), (row.get("kind")?, counters(row)?));
        }
        Ok(rows.into_iter().map(|((minute, _), row)| (minute, row)))
    }

    /// Packs the minutes of the oldest hour that has passed, of at most so many volumes and instances. Returns of how many.
    pub(super) fn pack(&mut self, now_ms: u64, most: usize) -> Result<usize, DbError> {
        // A minute of the hour before may still be written again.
        let before = (now_ms / 60_000 / HOUR).saturating_sub(1) * HOUR;
        let transaction = self.connection.transaction()?;
        let oldest: Option<i64> = transaction
            .prepare_cached("SELECT min(minute) FROM minutes WHERE minute < ?1")?
            .query_row([stored(before)], |row| row.get(0))?;
        let Some(oldest) = oldest.and_then(|minute| u64::try_from(minute).ok()) else { return Ok(0) };
        let first = oldest / HOUR * HOUR;
        let sql = "SELECT DISTINCT series FROM minutes WHERE minute >= ?1 AND minute < ?2 LIMIT ?3";
        let bounds = params![stored(first), stored(first + HOUR), stored(most as u64)];
        let due: Vec<i64> = transaction
            .prepare_cached(sql)?
            .query_map(bounds, |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for series in &due {
            pack_hour(&transaction, first, *series)?;
        }
        transaction.commit()?;
        Ok(due.len())
    }

    /// All volumes and instances of an account and Region that ever published, by their ids.
    pub(super) fn series(&self, (owner, region): (&str, &str)) -> Result<Vec<SeriesRow>, DbError> {
        let sql = "SELECT volume, instance, latest, latest_burst, latest_provisioned, latest_checked FROM series \
                   WHERE owner = ?1 AND region = ?2 ORDER BY volume, instance";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![owner, region], |row| {
            let latest = [row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?];
            Ok(SeriesRow { volume: row.get(0)?, instance: row.get(1)?, latest })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    // ---- Metrics that are neither of volumes nor of instances ---------------------------------------------------------

    /// Writes the values of a minute, all of them or none. One that is there already is replaced.
    pub(super) fn write_gauges(&mut self, minute: u64, gauges: &[Gauge]) -> Result<(), DbError> {
        let transaction = self.connection.transaction()?;
        for Gauge { owner, region, metric, dimensions, value } in gauges {
            let dimensions = joined(dimensions.iter().map(|(_, value)| value));
            let sql = "INSERT INTO gauge_series (owner, region, metric, dimensions, latest) VALUES (?1, ?2, ?3, ?4, ?5) \
                       ON CONFLICT DO UPDATE SET latest = max(latest, excluded.latest) RETURNING id";
            let series: i64 = transaction
                .prepare_cached(sql)?
                .query_row(params![owner, region, metric, dimensions, stored(minute)], |row| row.get(0))?;
            let sql = "INSERT OR REPLACE INTO gauges (series, minute, value) VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute(params![series, stored(minute), value])?;
        }
        Ok(transaction.commit()?)
    }

    /// The values of a metric with dimensions, by the minute.
    pub(super) fn gauges(
        &self,
        (owner, region): (&str, &str),
        metric: &str,
        dimensions: &[String],
        minutes: Range<u64>,
    ) -> Result<Vec<(u64, f64)>, DbError> {
        let sql = "SELECT g.minute, g.value FROM gauge_series s JOIN gauges g ON s.id = g.series \
                   WHERE s.owner = ?1 AND s.region = ?2 AND s.metric = ?3 AND s.dimensions = ?4 \
                   AND g.minute >= ?5 AND g.minute < ?6";
        let mut statement = self.connection.prepare_cached(sql)?;
        let (from, to) = (stored(minutes.start), stored(minutes.end));
        let rows = statement
            .query_map(params![owner, region, metric, joined(dimensions), from, to], |row| {
                Ok((unsigned(row, "minute")?, row.get(1)?))
            })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The dimensions with which a metric has a value since a minute.
    pub(super) fn gauge_series(
        &self,
        (owner, region): (&str, &str),
        metric: &str,
        since: u64,
    ) -> Result<Vec<Vec<String>>, DbError> {
        let sql = "SELECT dimensions FROM gauge_series \
                   WHERE owner = ?1 AND region = ?2 AND metric = ?3 AND latest >= ?4 ORDER BY dimensions";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![owner, region, metric, stored(since)], |row| {
            let joined: String = row.get(0)?;
            Ok(joined.split('/').map(str::to_owned).collect())
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Forgets what is too old, or too much.
    pub(super) fn prune(&mut self, now_ms: u64) -> Result<(), DbError> {
        let transaction = self.connection.transaction()?;
        let oldest = (now_ms / 60_000).saturating_sub(KEPT_MINUTES);
        transaction.execute("DELETE FROM minutes WHERE minute < ?1", [stored(oldest)])?;
        // A series stays as long as its last hour.
        transaction.execute("DELETE FROM series WHERE latest < ?1", [stored(oldest / HOUR * HOUR)])?;
        transaction.execute("DELETE FROM gauges WHERE minute < ?1", [stored(oldest)])?;
        transaction.execute("DELETE FROM gauge_series WHERE latest < ?1", [stored(oldest)])?;
        transaction.execute("DELETE FROM hours WHERE hour < ?1", [stored(oldest / HOUR)])?;
        // The hours of the oldest times, whole, until few enough are left, and then the minutes.
        let sql = "DELETE FROM hours WHERE hour <= (SELECT hour FROM (SELECT hour, sum(sum(count)) OVER (ORDER BY hour DESC) AS total \
                   FROM hours GROUP BY hour) WHERE total > ?1 - (SELECT count(*) FROM minutes) ORDER BY hour DESC LIMIT 1)";
        transaction.execute(sql, [stored(self.bounds.minutes)])?;
        let sql = "DELETE FROM minutes WHERE minute <= (SELECT minute FROM minutes ORDER BY minute DESC LIMIT 1 OFFSET ?1)";
        transaction.execute(sql, [stored(self.bounds.minutes)])?;
        let oldest = now_ms.saturating_sub(KEPT_HISTORY_MS);
        transaction.execute("DELETE FROM history WHERE at_ms < ?1", [stored(oldest)])?;
        let sql =
            "DELETE FROM history WHERE id <= (SELECT id FROM history ORDER BY id DESC LIMIT 1 OFFSET ?1)";
        transaction.execute(sql, [stored(self.bounds.history)])?;
        Ok(transaction.commit()?)
    }
}

/// Packs the minutes of an hour of a series, with those that are packed already. `first` is the hour's first minute.
fn pack_hour(transaction: &Transaction<'_>, first: u64, series: i64) -> Result<(), DbError> {
    let hour = stored(first / HOUR);
    let earlier = transaction
        .prepare_cached("SELECT packed FROM hours WHERE series = ?1 AND hour = ?2")?
        .query_row([series, hour], |row| row.get::<_, Vec<u8>>(0))
        .optional()?;
    let mut minutes: BTreeMap<u8, (String, Minute)> = BTreeMap::new();
    for (number, kind, counters) in packed::unpack(&earlier.unwrap_or_default()) {
        minutes.insert(number, (kind, counters));
    }
    let sql = "SELECT * FROM minutes WHERE series = ?1 AND minute >= ?2 AND minute < ?3";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query([series, stored(first), stored(first + HOUR)])?;
    while let Some(row) = rows.next()? {
        let number = u8::try_from(unsigned(row, "minute")? - first).unwrap_or_default();
        minutes.insert(number, (row.get("kind")?, counters(row)?));
    }
    let bytes =
        packed::pack(minutes.iter().map(|(number, (kind, counters))| (*number, kind.as_str(), counters)));
    let sql = "INSERT OR REPLACE INTO hours (series, hour, count, packed) VALUES (?1, ?2, ?3, ?4)";
    let count = i64::try_from(minutes.len()).unwrap_or_default();
    transaction.prepare_cached(sql)?.execute(params![series, hour, count, bytes])?;
    let sql = "DELETE FROM minutes WHERE series = ?1 AND minute >= ?2 AND minute < ?3";
    transaction.prepare_cached(sql)?.execute([series, stored(first), stored(first + HOUR)])?;
    Ok(())
}

/// The values of dimensions as one text; none of them has a slash.
fn joined<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.as_ref().to_owned()).collect::<Vec<_>>().join("/")
}

/// A number of a row.
pub(super) fn unsigned(row: &Row<'_>, column: &str) -> Result<u64, rusqlite::Error> {
    let number: i64 = row.get(column)?;
    Ok(u64::try_from(number).unwrap_or_default())
}

fn counters(row: &Row<'_>) -> Result<Minute, rusqlite::Error> {
    let number = |column: &str| unsigned(row, column);
    let time = |column: &str| number(column).map(Nanos);
    let ops = |ops: &str, bytes: &str, spent: &str| -> Result<OpStats, rusqlite::Error> {
        Ok(OpStats { ops: number(ops)?, bytes: number(bytes)?, time: time(spent)? })
    };
    let rate: Option<i64> = row.get("iops_rate")?;
    let balances = InstanceBalances { io: row.get("balance_io")?, bytes: row.get("balance_bytes")? };
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
    Ok(Minute { counters, balances })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: (&str, &str) = ("000000000000", "us-east-1");

    fn row(volume: &str, minute: u64, ops: u64) -> MinuteRow {
        let span = Nanos::from_secs(60);
        let write = OpStats { ops, bytes: ops << 14, time: Nanos(ops * 612_345) };
        MinuteRow {
            attached: Attached {
                volume: volume.to_owned(),
                owner: OWNER.0.to_owned(),
                region: OWNER.1.to_owned(),
                instance: "i-1".to_owned(),
                kind: "gp3".to_owned(),
            },
            minute,
            counters: Minute {
                counters: Stats { at: span, write, idle_time: Nanos(span.0 / (ops + 1)), ..Stats::default() },
                ..Minute::default()
            },
        }
    }

    fn ops(db: &Db, volume: &str, minutes: Range<u64>) -> Vec<(u64, u64)> {
        let found = db.minutes(OWNER, volume, None, minutes).unwrap();
        found.into_iter().map(|(minute, (_, of_one))| (minute, of_one.counters.write.ops)).collect()
    }

    fn open(bounds: Bounds) -> (tempfile::TempDir, Db) {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), bounds).unwrap();
        (dir, db)
    }

    #[test]
    fn a_minute_that_is_written_after_its_hour_is_packed_replaces_it() {
        let (_dir, mut db) = open(Bounds::default());
        let hour = 500_000 * HOUR;
        db.write(&[row("vol-1", hour, 1), row("vol-1", hour + 1, 2)]).unwrap();
        assert_eq!(db.pack((hour + HOUR) * 60_000, 10).unwrap(), 0, "an hour later it may still change");
        let now_ms = (hour + 2 * HOUR) * 60_000;
        assert_eq!(db.pack(now_ms, 10).unwrap(), 1);
        db.write(&[row("vol-1", hour + 1, 5), row("vol-1", hour + 2, 7)]).unwrap();
        let all = [(hour, 1), (hour + 1, 5), (hour + 2, 7)];
        assert_eq!(ops(&db, "vol-1", hour..hour + HOUR), all);
        assert_eq!(db.pack(now_ms, 10).unwrap(), 1);
        assert_eq!(ops(&db, "vol-1", hour..hour + HOUR), all);
        assert_eq!(ops(&db, "vol-1", hour + 1..hour + 2), all[1..2], "the end is exclusive");
        assert_eq!(db.pack(now_ms, 10).unwrap(), 0);
    }

    #[test]
    fn a_file_of_an_earlier_version_keeps_its_minutes_and_takes_those_of_instances() {
        let dir = tempfile::tempdir().unwrap();
        let earlier = Connection::open(dir.path().join(SCHEMA.file)).unwrap();
        earlier.execute_batch(concat!(include_str!("db.sql"), include_str!("db-2.sql"))).unwrap();
        let minute = 500_000 * HOUR;
        let sql = "INSERT INTO series (owner, region, volume, instance) VALUES ('000000000000', 'us-east-1', 'vol-1', 'i-1'); \
                   INSERT INTO minutes SELECT 1, 30000000, 'gp3', 60000000000, 0, 0, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, NULL, NULL";
        earlier.execute_batch(sql).unwrap();
        drop(earlier);
        let mut db = Db::open(dir.path(), Bounds::default()).unwrap();
        assert_eq!(ops(&db, "vol-1", minute..minute + 2), [(minute, 9)]);
        let balances = InstanceBalances { io: Some(0.5), bytes: None };
        let mut of_instance = row("", minute + 1, 0);
        of_instance.attached.kind = INSTANCE.to_owned();
        of_instance.counters.balances = balances;
        db.write(&[of_instance]).unwrap();
        let found = db.instance_minutes(OWNER, "i-1", minute..minute + 2).unwrap();
        let seen = |minute: u64| (found[&minute].volumes.volume_write_ops, found[&minute].balances);
        assert_eq!((seen(minute), seen(minute + 1)), ((9, None), (0, Some(balances))));
    }

    #[test]
    fn beyond_the_bound_the_oldest_hours_go_first_packed_or_not() {
        let (_dir, mut db) = open(Bounds { minutes: 150, ..Bounds::default() });
        let (first, end) = (500_000 * HOUR, 500_004 * HOUR);
        db.write(&(first..end).map(|minute| row("vol-1", minute, minute)).collect::<Vec<_>>()).unwrap();
        let now_ms = end * 60_000;
        while db.pack(now_ms, 10).unwrap() > 0 {}
        db.prune(now_ms).unwrap();
        // Three hours are packed. With the one that is not, two have room.
        let left = ops(&db, "vol-1", first..end);
        assert_eq!((left.len(), left[0].0), (120, end - 2 * HOUR));
        db.bounds.minutes = 50;
        db.prune(now_ms).unwrap();
        assert_eq!(ops(&db, "vol-1", first..end)[0].0, end - 50);
    }

    #[test]
    fn after_15_days_packed_hours_and_their_volumes_go() {
        let (_dir, mut db) = open(Bounds::default());
        let hour = 500_000 * HOUR;
        db.write(&(hour..hour + HOUR).map(|minute| row("vol-1", minute, 1)).collect::<Vec<_>>()).unwrap();
        db.pack((hour + 2 * HOUR) * 60_000, 10).unwrap();
        db.prune((hour + HOUR - 1 + KEPT_MINUTES) * 60_000).unwrap();
        assert_eq!(db.series(OWNER).unwrap().len(), 1);
        db.prune((hour + HOUR + KEPT_MINUTES) * 60_000).unwrap();
        assert!(db.series(OWNER).unwrap().is_empty());
        assert!(ops(&db, "vol-1", hour..hour + HOUR).is_empty());
    }

    #[test]
    #[ignore = "a measurement: an hour of 10,000 volumes"]
    fn an_hour_of_10_000_volumes_is_packed_fast() {
        let (dir, mut db) = open(Bounds::default());
        let hour = 500_000 * HOUR;
        let volumes: Vec<String> = (0..10_000).map(|number| format!("vol-{number:017x}")).collect();
        for minute in hour..hour + HOUR {
            let ops = |at: usize| {
                if at.is_multiple_of(10) { 50_000 + (minute * 7_919 + at as u64) % 9_000 } else { 0 }
            };
            let rows = volumes.iter().enumerate().map(|(at, volume)| row(volume, minute, ops(at)));
            db.write(&rows.collect::<Vec<_>>()).unwrap();
        }
        let (mut calls, mut longest) = (0, std::time::Duration::ZERO);
        let whole = std::time::Instant::now();
        loop {
            let begun = std::time::Instant::now();
            if db.pack((hour + 2 * HOUR) * 60_000, 200).unwrap() == 0 {
                break;
            }
            (calls, longest) = (calls + 1, longest.max(begun.elapsed()));
        }
        let packed: i64 =
            db.connection.query_row("SELECT sum(length(packed)) FROM hours", (), |row| row.get(0)).unwrap();
        println!("{calls} calls in {:?}, longest {longest:?}, {packed} bytes, of 10% busy", whole.elapsed());
        let begun = std::time::Instant::now();
        db.prune((hour + 2 * HOUR) * 60_000).unwrap();
        println!(
            "prune {:?}; the file has {} bytes",
            begun.elapsed(),
            dir.path().join(SCHEMA.file).metadata().unwrap().len()
        );
        assert_eq!(calls, 50);
    }
}
