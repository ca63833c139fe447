//! Cuts the counters of attached volumes, and the time of running instances, into minutes.
//!
//! A minute begins with the sample of the tick that closed the one before. A restart within a minute goes on with what
//! is stored of it, so that what was answered stays, and nothing is counted twice.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ebbtide_volume::{Nanos, Stats};

use crate::error::HistoryError;
use crate::key::SeriesKey;
use crate::store::{NewPoint, Store};
use crate::tier::Tier;
use crate::volume::{Balances, LAYOUT, VolumeMinute};

/// Milliseconds of a minute.
const MINUTE_MS: u64 = 60_000;

/// The names under which a minute of a kind is found as active ([`SeriesRow::marks`](crate::SeriesRow::marks)).
pub type Marks = fn(kind: &str, minute: &VolumeMinute) -> Vec<&'static str>;

/// What a volume, or an instance, has counted at one time.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Its series.
    pub key: SeriesKey,
    /// The type of the volume.
    pub kind: String,
    /// Since when it counts, by its own clock. Another value is another attachment, with counters of its own.
    pub since: Nanos,
    /// The counters.
    pub stats: Stats,
    /// What an instance has left, where that is known.
    pub balances: Option<Balances>,
}

impl Reading {
    /// That of a volume which has nothing but its name.
    #[must_use]
    pub fn of_volume(name: String, since: Nanos, stats: Stats) -> Self {
        Self { key: SeriesKey::volume(name), kind: String::new(), since, stats, balances: None }
    }
}

/// Volumes and instances in the minute that is not closed yet.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// [`Options::began_ms`](crate::Options::began_ms).
    began_ms: u64,
    /// The minute that is open; none before the first tick.
    minute: Option<u64>,
    open: BTreeMap<SeriesKey, Open>,
}

/// A volume or an instance in the open minute.
#[derive(Debug)]
struct Open {
    kind: String,
    /// What the minute has of earlier attachments, or of an earlier process.
    before: VolumeMinute,
    /// When the attachment began.
    since: Nanos,
    /// The counters at the beginning of the minute, or of the attachment.
    first: Stats,
    latest: Stats,
    /// What an instance had left when that was last known in the minute.
    balances: Balances,
    /// Whether the latest tick has seen it.
    is_attached: bool,
}

impl Open {
    fn total(&self) -> VolumeMinute {
        let between = VolumeMinute::between(&self.first, &self.latest);
        self.before.then(&VolumeMinute { balances: self.balances, ..between })
    }
}

impl Recorder {
    /// One that begins at a time, in milliseconds since 1970.
    pub(crate) const fn new(began_ms: u64) -> Self {
        Self { began_ms, minute: None, open: BTreeMap::new() }
    }

    /// Takes readings at a time. Where a minute ends with them, its points are written.
    pub(crate) fn tick(
        &mut self,
        store: &mut Store,
        marks: Marks,
        now_ms: u64,
        readings: Vec<Reading>,
    ) -> Result<(), HistoryError> {
        // A clock that was set back reopens no minute.
        let minute = (now_ms / MINUTE_MS).max(self.minute.unwrap_or_default());
        let ends = self.minute.is_some_and(|open| open < minute);
        let current = self.minute.unwrap_or(minute);
        self.minute = Some(current);
        for open in self.open.values_mut() {
            open.is_attached = false;
        }
        for reading in readings {
            self.see(store, current, now_ms, reading)?;
        }
        if ends {
            self.write(store, marks, current)?;
            self.begin(minute);
        }
        Ok(())
    }

    /// Writes what the open minute has so far.
    pub(crate) fn publish(&self, store: &mut Store, marks: Marks) -> Result<(), HistoryError> {
        self.minute.map_or(Ok(()), |minute| self.write(store, marks, minute))
    }

    fn write(&self, store: &mut Store, marks: Marks, number: u64) -> Result<(), HistoryError> {
        let minutes = self.open.iter().map(|(key, open)| (key, open.kind.as_str(), open.total()));
        let points =
            minutes.filter(|(_, _, minute)| !minute.is_empty()).map(|(key, kind, minute)| NewPoint {
                key,
                number,
                kind,
                layout: &LAYOUT,
                values: minute.values(),
                marks: marks(kind, &minute),
            });
        store.write(Tier::Minute, &points.collect::<Vec<_>>())
    }

    fn begin(&mut self, minute: u64) {
        self.minute = Some(minute);
        self.open.retain(|_, open| open.is_attached);
        for open in self.open.values_mut() {
            open.before = VolumeMinute::default();
            open.balances = Balances::default();
            open.first = open.latest;
        }
    }

    /// Takes a reading of the open minute.
    fn see(
        &mut self,
        store: &Store,
        minute: u64,
        now_ms: u64,
        Reading { key, kind, since, stats: latest, balances }: Reading,
    ) -> Result<(), HistoryError> {
        let first = beginning(since, &latest, now_ms, self.began_ms);
        let open = match self.open.entry(key) {
            Entry::Vacant(vacant) => {
                let before = minute_of_key(store, vacant.key(), minute)?;
                let balances = balances.unwrap_or_default();
                vacant.insert(Open { kind, before, since, first, latest, balances, is_attached: true });
                return Ok(());
            }
            Entry::Occupied(open) => open.into_mut(),
        };
        if open.since == since {
            (open.latest, open.kind, open.is_attached) = (latest, kind, true);
            open.balances = balances.unwrap_or(open.balances);
        } else {
            // Detached and attached again.
            let before = open.total();
            let balances = balances.unwrap_or_default();
            *open = Open { kind, before, since, first, latest, balances, is_attached: true };
        }
        Ok(())
    }
}

/// What is stored of a minute of a series; an empty minute where nothing is.
fn minute_of_key(store: &Store, key: &SeriesKey, minute: u64) -> Result<VolumeMinute, HistoryError> {
    let mut found = VolumeMinute::default();
    store.scan_key(Tier::Minute, key, minute..minute + 1, |point| {
        found = VolumeMinute::read(point.layout, point.values);
    })?;
    Ok(found)
}

/// The counters from which an attachment that was not seen before is counted: from its own beginning, if that is recent and no
/// other recorder has had it.
fn beginning(since: Nanos, stats: &Stats, now_ms: u64, began_ms: u64) -> Stats {
    let since_ms = since.0 / 1_000_000;
    let is_recorded = since_ms < began_ms;
    if is_recorded || since_ms.saturating_add(MINUTE_MS) < now_ms {
        *stats
    } else {
        Stats { at: since, ..Stats::default() }
    }
}

#[cfg(test)]
mod tests;
