//! The file: points are written, read, packed and deleted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::error::HistoryError;
use crate::key::{Selector, SeriesKey};
use crate::layout::{Layout, Value};
use crate::packed;
use crate::tier::Tier;
use crate::{FILE, upgrade};

/// What is on the disk once a point is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The point: it survives the power loss of the host, for an fsync a minute.
    Disk,
    /// The file as it was some time before. A kill loses nothing, the power loss of the host the latest minutes. There is no
    /// fsync a minute, for which a journaling file system would write out what volumes beside the file have in its cache.
    #[default]
    Process,
}

/// A point to be written.
#[derive(Debug)]
pub struct NewPoint<'a> {
    /// Its series.
    pub key: &'a SeriesKey,
    /// The number of its interval since 1970.
    pub number: u64,
    /// What the subject was in the interval: the type of a volume, the version of a server.
    pub kind: &'a str,
    /// The columns.
    pub layout: &'a Layout,
    /// A value for each, where there is one.
    pub values: Vec<Option<Value>>,
    /// Names under which the series is found as active.
    pub marks: Vec<&'static str>,
}

/// A point that was found.
#[derive(Debug, Clone, Copy)]
pub struct Scanned<'a> {
    /// The number of its interval since 1970.
    pub number: u64,
    /// What the subject was in the interval.
    pub kind: &'a str,
    /// The columns.
    pub layout: &'a Layout,
    /// A value for each, where there is one.
    pub values: &'a [Option<Value>],
}

/// A series that has points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRow {
    /// Which one.
    pub key: SeriesKey,
    /// The minute of its latest point, since 1970.
    pub latest_minute: u64,
    /// The minute of the latest point with each mark.
    pub marks: BTreeMap<String, u64>,
}

/// The open file.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// Points of each tier that may be there.
    most: u64,
    /// Bytes of packed seconds, as [`Self::limit_second_bytes`] counts them; None where they have to be counted again.
    second_bytes: Option<u64>,
    /// The layouts that were seen, by id.
    layouts: RefCell<BTreeMap<i64, Arc<Layout>>>,
}

/// Bytes that a packed chunk takes besides its points: its row, and its entry in the index. An estimate.
const CHUNK_OVERHEAD: u64 = 64;

/// A point that is not packed yet.
struct Single {
    number: u64,
    layout: Arc<Layout>,
    packed: Vec<u8>,
}

/// A number as SQLite has it.
pub(crate) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of SQLite.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

impl Store {
    /// Opens the file of a home, or makes it, readable by its owner alone. The file of a home of before is taken over. Beyond `most`
    /// points of a tier, the oldest go first.
    ///
    /// # Errors
    /// A file that cannot be opened, made or read; one of a later version.
    pub fn open(home: &Path, durability: Durability, most: u64) -> Result<Self, HistoryError> {
        upgrade::adopt(home)?;
        let path = home.join(FILE);
        // SQLite gives its other files the mode of this one.
        let mut options = std::fs::OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        options.open(&path).map_err(HistoryError::Private)?;
        let mut connection = Connection::open(path)?;
        // `serve` and `watch` may write the same file. A transaction that began as a reader fails at once where the other has written
        // meanwhile; one that begins as a writer waits for it.
        connection.set_transaction_behavior(TransactionBehavior::Immediate);
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let synchronous = match durability {
            Durability::Disk => "FULL",
            Durability::Process => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        upgrade::bring_up(&mut connection)?;
        Ok(Self { connection, most, second_bytes: None, layouts: RefCell::default() })
    }

    /// Opens the file of a home to read it alone. Nothing is made, taken over or brought up; each write is refused.
    ///
    /// # Errors
    /// There is no file, it cannot be read, or it is of another version.
    pub fn open_read_only(home: &Path) -> Result<Self, HistoryError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(home.join(FILE), flags)?;
        upgrade::expect_present(&connection)?;
        Ok(Self { connection, most: 0, second_bytes: None, layouts: RefCell::default() })
    }

    /// Writes points of intervals, all of them or none. One that is there already is replaced.
    ///
    /// # Errors
    /// SQLite refuses, such as on a full disk.
    pub fn write(&mut self, tier: Tier, points: &[NewPoint<'_>]) -> Result<(), HistoryError> {
        let layouts =
            points.iter().map(|point| self.layout_id(point.layout)).collect::<Result<Vec<_>, _>>()?;
        let transaction = self.connection.transaction()?;
        for (point, layout) in points.iter().zip(layouts) {
            let series = series_id(&transaction, point.key)?;
            let number = stored(point.number);
            let minute = stored(point.number * tier.seconds() / 60);
            let marks: BTreeMap<&str, i64> = point.marks.iter().map(|mark| (*mark, minute)).collect();
            let marks = serde_json::to_string(&marks).expect("numbers under texts");
            let sql =
                "UPDATE series SET latest = max(latest, ?2), marks = json_patch(marks, ?3) WHERE id = ?1";
            transaction.prepare_cached(sql)?.execute(params![series, minute, marks])?;
            let packed = packed::pack([(0, point.kind, point.values.as_slice())]);
            let sql = format!(
                "INSERT OR REPLACE INTO {} (series, number, layout, packed) VALUES (?1, ?2, ?3, ?4)",
                tier.points()
            );
            transaction.prepare_cached(&sql)?.execute(params![series, number, layout, packed])?;
        }
        Ok(transaction.commit()?)
    }

    /// Visits the points of the selected series in a span of intervals, series by series, and the points of a series by their
    /// numbers.
    ///
    /// # Errors
    /// SQLite refuses; a layout that cannot be read.
    pub fn scan(
        &self,
        tier: Tier,
        selector: Selector<'_>,
        numbers: Range<u64>,
        mut visit: impl FnMut(Scanned<'_>),
    ) -> Result<(), HistoryError> {
        let (tail, parameters) = selected(selector);
        let sql = format!("SELECT s.id {tail}");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let ids = statement.query_map(rusqlite::params_from_iter(parameters), |row| row.get(0))?;
        for series in ids.collect::<Result<Vec<i64>, _>>()? {
            self.scan_series(tier, series, &numbers, &mut visit)?;
        }
        Ok(())
    }

    /// Visits the points of one series, by their numbers.
    ///
    /// # Errors
    /// As [`Self::scan`].
    pub fn scan_key(
        &self,
        tier: Tier,
        key: &SeriesKey,
        numbers: Range<u64>,
        mut visit: impl FnMut(Scanned<'_>),
    ) -> Result<(), HistoryError> {
        match find_series(&self.connection, key)? {
            Some(series) => self.scan_series(tier, series, &numbers, &mut visit),
            None => Ok(()),
        }
    }

    fn scan_series(
        &self,
        tier: Tier,
        series: i64,
        numbers: &Range<u64>,
        visit: &mut impl FnMut(Scanned<'_>),
    ) -> Result<(), HistoryError> {
        let mut singles = self.singles(tier, series, numbers)?.into_iter().peekable();
        let visit_single = |single: &Single, visit: &mut dyn FnMut(Scanned<'_>)| {
            packed::unpack(&single.packed, &single.layout, |_, kind, values| {
                visit(Scanned { number: single.number, kind, layout: &single.layout, values });
            });
        };
        let sql = format!(
            "SELECT chunk, layout, packed FROM {} WHERE series = ?1 AND chunk >= ?2 AND chunk <= ?3 ORDER BY chunk",
            tier.chunks()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let per_chunk = tier.per_chunk();
        let bounds = (stored(numbers.start / per_chunk), stored(numbers.end / per_chunk));
        let mut rows = statement.query(params![series, bounds.0, bounds.1])?;
        while let Some(row) = rows.next()? {
            let first = unsigned(row.get(0)?) * per_chunk;
            let layout = self.layout(row.get(1)?)?;
            let bytes = row.get_ref(2)?.as_blob().unwrap_or_default();
            packed::unpack(bytes, &layout, |position, kind, values| {
                let number = first.saturating_add(position);
                if !numbers.contains(&number) {
                    return;
                }
                while let Some(single) = singles.next_if(|single| single.number < number) {
                    visit_single(&single, visit);
                }
                // A point that is written after its chunk is packed replaces the packed one.
                if singles.peek().is_none_or(|single| single.number > number) {
                    visit(Scanned { number, kind, layout: &layout, values });
                }
            });
        }
        singles.for_each(|single| visit_single(&single, visit));
        Ok(())
    }

    fn singles(&self, tier: Tier, series: i64, numbers: &Range<u64>) -> Result<Vec<Single>, HistoryError> {
        let sql = format!(
            "SELECT number, layout, packed FROM {} WHERE series = ?1 AND number >= ?2 AND number < ?3 ORDER BY number",
            tier.points()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![series, stored(numbers.start), stored(numbers.end)])?;
        let mut singles = Vec::new();
        while let Some(row) = rows.next()? {
            let (number, layout) = (unsigned(row.get(0)?), self.layout(row.get(1)?)?);
            singles.push(Single { number, layout, packed: row.get(2)? });
        }
        Ok(singles)
    }

    /// The series that are selected, in the order in which they were first written.
    ///
    /// # Errors
    /// SQLite refuses; a series that cannot be read.
    pub fn series(&self, selector: Selector<'_>) -> Result<Vec<SeriesRow>, HistoryError> {
        self.series_since(selector, 0)
    }

    /// The same, without series whose latest point is before a minute since 1970.
    pub(crate) fn series_since(
        &self,
        selector: Selector<'_>,
        minute: u64,
    ) -> Result<Vec<SeriesRow>, HistoryError> {
        let (tail, parameters) = selected(selector);
        let sql = format!("SELECT s.id, s.subject, s.labels, s.latest, s.marks {tail}");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
        let mut series = Vec::new();
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            let latest_minute = unsigned(row.get(3)?);
            if latest_minute < minute {
                continue;
            }
            let damaged = |source| HistoryError::Damaged { table: "series", id, source };
            let labels: String = row.get(2)?;
            let marks: String = row.get(4)?;
            series.push(SeriesRow {
                key: SeriesKey::read(row.get(1)?, &labels).map_err(damaged)?,
                latest_minute,
                marks: serde_json::from_str(&marks).map_err(damaged)?,
            });
        }
        Ok(series)
    }

    /// Packs the points of the oldest chunk that has passed, of at most so many series. Returns of how many.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn pack(&mut self, tier: Tier, now_ms: u64, most: usize) -> Result<usize, HistoryError> {
        let (per_chunk, table) = (tier.per_chunk(), tier.points());
        // A point of the chunk before may still be written again.
        let before = (tier.number(now_ms) / per_chunk).saturating_sub(1) * per_chunk;
        let oldest: Option<i64> = self
            .connection
            .prepare_cached(&format!("SELECT min(number) FROM {table} WHERE number < ?1"))?
            .query_row([stored(before)], |row| row.get(0))?;
        let Some(oldest) = oldest else { return Ok(0) };
        let chunk = unsigned(oldest) / per_chunk;
        let span = chunk * per_chunk..(chunk + 1) * per_chunk;
        let sql = format!("SELECT DISTINCT series FROM {table} WHERE number >= ?1 AND number < ?2 LIMIT ?3");
        let bounds = params![stored(span.start), stored(span.end), stored(most as u64)];
        let due: Vec<i64> = self
            .connection
            .prepare_cached(&sql)?
            .query_map(bounds, |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let chunks = due
            .iter()
            .map(|series| self.packed_chunk(tier, *series, &span))
            .collect::<Result<Vec<_>, _>>()?;
        let added: usize = chunks.iter().flatten().map(|chunk| chunk.bytes.len()).sum();
        let added = (added as u64).saturating_add(CHUNK_OVERHEAD * due.len() as u64);
        let transaction = self.connection.transaction()?;
        for (series, packed) in due.iter().zip(chunks) {
            if let Some(Chunk { count, bytes, layout }) = packed {
                let sql = format!(
                    "INSERT OR REPLACE INTO {} (series, chunk, count, packed, layout) VALUES (?1, ?2, ?3, ?4, ?5)",
                    tier.chunks()
                );
                transaction.prepare_cached(&sql)?.execute(params![
                    series,
                    stored(chunk),
                    count,
                    bytes,
                    layout
                ])?;
            }
            // Also where none of them can be read: later chunks would wait for them for ever.
            let sql = format!("DELETE FROM {table} WHERE series = ?1 AND number >= ?2 AND number < ?3");
            transaction.prepare_cached(&sql)?.execute([*series, stored(span.start), stored(span.end)])?;
        }
        transaction.commit()?;
        if tier == Tier::Second {
            self.second_bytes = self.second_bytes.map(|bytes| bytes.saturating_add(added));
        }
        Ok(due.len())
    }

    /// The points of a chunk of a series together, those that are packed already included.
    fn packed_chunk(
        &self,
        tier: Tier,
        series: i64,
        span: &Range<u64>,
    ) -> Result<Option<Chunk>, HistoryError> {
        let mut points: Vec<Unpacked> = Vec::new();
        self.scan_series(tier, series, span, &mut |point: Scanned<'_>| {
            let layout = match points.last() {
                Some(latest) if *latest.layout == *point.layout => Arc::clone(&latest.layout),
                _ => Arc::new(point.layout.clone()),
            };
            let (number, kind) = (point.number - span.start, point.kind.to_owned());
            points.push(Unpacked { number, kind, layout, values: point.values.to_vec() });
        })?;
        // Earlier layouts become the latest one.
        let Some(layout) = points.last().map(|point| Arc::clone(&point.layout)) else { return Ok(None) };
        for point in points.iter_mut().filter(|point| point.layout != layout) {
            point.values = layout.translate(&point.layout, &point.values);
        }
        let bytes = packed::pack(
            points.iter().map(|point| (point.number, point.kind.as_str(), point.values.as_slice())),
        );
        Ok(Some(Chunk { count: stored(points.len() as u64), bytes, layout: self.layout_id(&layout)? }))
    }

    /// Deletes what is too old of all series, and what is too much of the series of some subjects. Others that write the same file keep
    /// a tier for the same time, and have bounds of their own.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn prune(&mut self, tier: Tier, now_ms: u64, subjects: &[&str]) -> Result<(), HistoryError> {
        let (points, chunks, per_chunk) = (tier.points(), tier.chunks(), tier.per_chunk());
        let subjects = serde_json::to_string(subjects).expect("a list of texts");
        let oldest = tier.number(now_ms).saturating_sub(tier.kept());
        let transaction = self.connection.transaction()?;
        transaction.execute(&format!("DELETE FROM {points} WHERE number < ?1"), [stored(oldest)])?;
        transaction
            .execute(&format!("DELETE FROM {chunks} WHERE chunk < ?1"), [stored(oldest / per_chunk)])?;
        // A series stays as long as its last chunk, of whatever tier.
        let minute = stored(oldest / per_chunk * per_chunk * tier.seconds() / 60);
        let mut ended = "latest < ?1".to_owned();
        for table in Tier::ALL.into_iter().flat_map(|tier| [tier.points(), tier.chunks()]) {
            ended += &format!(" AND NOT EXISTS (SELECT 1 FROM {table} p WHERE p.series = series.id)");
        }
        transaction.execute(
            &format!("DELETE FROM labels WHERE series IN (SELECT id FROM series WHERE {ended})"),
            [minute],
        )?;
        transaction.execute(&format!("DELETE FROM series WHERE {ended}"), [minute])?;
        // Most files have room for all, which needs no look at the subjects.
        let sql = format!(
            "SELECT (SELECT coalesce(sum(count), 0) FROM {chunks}) + (SELECT count(*) FROM {points})"
        );
        if unsigned(transaction.query_row(&sql, (), |row| row.get(0))?) > self.most {
            prune_beyond(&transaction, tier, self.most, &subjects)?;
        }
        transaction.commit()?;
        // Chunks of seconds may be among what was deleted.
        self.second_bytes = None;
        Ok(())
    }

    /// How many series of some subjects have a point of a minute since 1970, or a later one.
    ///
    /// # Errors
    /// SQLite refuses.
    pub(crate) fn live_series(&self, subjects: &[&str], minute: u64) -> Result<u64, HistoryError> {
        let subjects = serde_json::to_string(subjects).expect("a list of texts");
        let sql =
            "SELECT count(*) FROM series WHERE latest >= ?1 AND subject IN (SELECT value FROM json_each(?2))";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(unsigned(statement.query_row(params![stored(minute), subjects], |row| row.get(0))?))
    }

    /// The number of the latest interval of a tier that a series of a subject has, or may have; None where there is none.
    ///
    /// # Errors
    /// SQLite refuses.
    pub(crate) fn latest(&self, tier: Tier, subject: &str) -> Result<Option<u64>, HistoryError> {
        let (points, chunks, per_chunk) = (tier.points(), tier.chunks(), tier.per_chunk());
        let of_subject = "series IN (SELECT id FROM series WHERE subject = ?1)";
        let single = format!("SELECT max(number) FROM {points} WHERE {of_subject}");
        let single: Option<i64> = self.connection.query_row(&single, [subject], |row| row.get(0))?;
        let packed = format!("SELECT max(chunk) FROM {chunks} WHERE {of_subject}");
        let packed: Option<i64> = self.connection.query_row(&packed, [subject], |row| row.get(0))?;
        let packed = packed.map(|chunk| (unsigned(chunk) + 1) * per_chunk - 1);
        Ok(single.map(unsigned).max(packed))
    }

    /// Bytes of the file that have something in them. What was deleted is used again, and the file does not shrink.
    ///
    /// # Errors
    /// SQLite refuses.
    pub fn used_bytes(&self) -> Result<u64, HistoryError> {
        let pragma = |name: &str| -> Result<u64, HistoryError> {
            Ok(unsigned(self.connection.pragma_query_value(None, name, |row| row.get(0))?))
        };
        let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
        Ok(pages.saturating_mul(pragma("page_size")?))
    }

    /// Deletes the oldest packed seconds, an hour at a time, until those that are left take at most so many bytes. What others have in
    /// the file does not count, and minutes and hours stay: they are bounded by their number. Returns the time before which there are
    /// no packed seconds any more, in milliseconds since 1970; None where nothing had to be deleted.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn limit_second_bytes(&mut self, most: u64) -> Result<Option<u64>, HistoryError> {
        if self.second_bytes.is_some_and(|bytes| bytes <= most) {
            return Ok(None);
        }
        let chunks_an_hour = 3_600 / Tier::Second.per_chunk();
        let sql = format!(
            "SELECT chunk / ?1, sum(length(packed) + ?2) FROM {} GROUP BY chunk / ?1 ORDER BY chunk / ?1 DESC",
            Tier::Second.chunks()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let parameters = params![stored(chunks_an_hour), stored(CHUNK_OVERHEAD)];
        let hours = statement
            .query_map(parameters, |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?))))?
            .collect::<Result<Vec<(u64, u64)>, _>>()?;
        drop(statement);
        let mut kept = 0_u64;
        for (hour, bytes) in hours {
            if kept.saturating_add(bytes) > most {
                let end = (hour + 1) * chunks_an_hour;
                let sql = format!("DELETE FROM {} WHERE chunk < ?1", Tier::Second.chunks());
                self.connection.execute(&sql, [stored(end)])?;
                self.second_bytes = Some(kept);
                return Ok(Some(Tier::Second.start_ms(end * Tier::Second.per_chunk())));
            }
            kept += bytes;
        }
        self.second_bytes = Some(kept);
        Ok(None)
    }

    /// Refuses each write as a full disk does, until it is called again.
    #[cfg(test)]
    pub(crate) fn refuse_writes(&self, is_refused: bool) {
        self.connection.pragma_update(None, "query_only", is_refused).unwrap();
    }

    fn layout(&self, id: i64) -> Result<Arc<Layout>, HistoryError> {
        if let Some(known) = self.layouts.borrow().get(&id) {
            return Ok(Arc::clone(known));
        }
        let sql = "SELECT columns FROM layouts WHERE id = ?1";
        let text: String = self.connection.prepare_cached(sql)?.query_row([id], |row| row.get(0))?;
        let damaged = |source| HistoryError::Damaged { table: "layouts", id, source };
        let layout: Arc<Layout> = Arc::new(serde_json::from_str(&text).map_err(damaged)?);
        self.layouts.borrow_mut().insert(id, Arc::clone(&layout));
        Ok(layout)
    }

    /// The id of a layout, which is stored if it is new.
    fn layout_id(&self, layout: &Layout) -> Result<i64, HistoryError> {
        let known = self.layouts.borrow();
        if let Some((id, _)) = known.iter().find(|(_, known)| ***known == *layout) {
            return Ok(*id);
        }
        drop(known);
        let id = upgrade::layout_id(&self.connection, layout)?;
        self.layouts.borrow_mut().insert(id, Arc::new(layout.clone()));
        Ok(id)
    }
}

/// Deletes the oldest points of the series of some subjects, which are a JSON list, beyond `most`.
fn prune_beyond(
    transaction: &Transaction<'_>,
    tier: Tier,
    most: u64,
    subjects: &str,
) -> Result<(), rusqlite::Error> {
    let (points, chunks) = (tier.points(), tier.chunks());
    let own = "series IN (SELECT id FROM series WHERE subject IN (SELECT value FROM json_each(?2)))";
    // The chunks of the oldest times, whole, until few enough points are left, and then the points.
    let sql = format!(
        "DELETE FROM {chunks} WHERE {own} AND chunk <= (SELECT chunk FROM (SELECT chunk, sum(sum(count)) OVER (ORDER BY \
         chunk DESC) AS total FROM {chunks} WHERE {own} GROUP BY chunk) WHERE total > ?1 - (SELECT count(*) FROM {points} \
         WHERE {own}) ORDER BY chunk DESC LIMIT 1)"
    );
    transaction.execute(&sql, params![stored(most), subjects])?;
    let sql = format!(
        "DELETE FROM {points} WHERE {own} AND number <= (SELECT number FROM {points} WHERE {own} \
         ORDER BY number DESC LIMIT 1 OFFSET ?1)"
    );
    transaction.execute(&sql, params![stored(most), subjects])?;
    Ok(())
}

/// A point that is to be packed, by its number in the chunk.
struct Unpacked {
    number: u64,
    kind: String,
    layout: Arc<Layout>,
    values: Vec<Option<Value>>,
}

/// Packed points of one series.
struct Chunk {
    count: i64,
    bytes: Vec<u8>,
    layout: i64,
}

/// The end of a query for the selected series `s`, with its parameters.
fn selected<'a>(Selector { subject, labels }: Selector<'a>) -> (String, Vec<Option<&'a str>>) {
    let mut parameters = vec![subject];
    let mut tail = match labels {
        [] => "FROM series s WHERE".to_owned(),
        _ => "FROM labels l JOIN series s ON s.id = l.series WHERE".to_owned(),
    };
    for (number, (name, value)) in labels.iter().enumerate() {
        parameters.extend([Some(*name), Some(*value)]);
        let (name, value) = (number * 2 + 2, number * 2 + 3);
        tail += &match number {
            0 => format!(" l.name = ?{name} AND l.value = ?{value} AND"),
            _ => format!(
                " EXISTS (SELECT 1 FROM labels WHERE name = ?{name} AND value = ?{value} AND series = s.id) AND"
            ),
        };
    }
    tail += " (?1 IS NULL OR s.subject = ?1) ORDER BY s.id";
    (tail, parameters)
}

fn find_series(connection: &Connection, key: &SeriesKey) -> Result<Option<i64>, HistoryError> {
    let sql = "SELECT id FROM series WHERE subject = ?1 AND labels = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([key.subject(), &key.labels_text()], |row| row.get(0)).optional()?)
}

/// The id of a series, which is stored if it is new.
fn series_id(transaction: &Transaction<'_>, key: &SeriesKey) -> Result<i64, HistoryError> {
    match find_series(transaction, key)? {
        Some(id) => Ok(id),
        None => upgrade::insert_series(transaction, None, key, (0, "{}")),
    }
}

#[cfg(test)]
mod tests;
