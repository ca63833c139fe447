//! What a program that watches servers and machines records each second, and the upkeep of it.
//!
//! A sample is on the disk at most five seconds after it was taken, whatever kills the program. Minutes are made of the seconds once
//! they have ended, and hours of the minutes, by what is in the file: a start goes on where the last one ended.
//!
//! The time is the caller's. A clock that jumps ahead leaves a gap. One that was set back has later samples replace what is there of
//! the same seconds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::error::HistoryError;
use crate::key::{Selector, SeriesKey};
use crate::layout::{Layout, Value};
use crate::store::{Durability, NewPoint, Store};
use crate::tier::Tier;

/// How long samples may wait to be written, ms. With one call a second they are on the disk within 5 s.
const WRITE_AFTER_MS: u64 = 4_000;

/// For how long points wait while the file cannot be written, such as on a full disk, s. The oldest go first.
const MOST_WAITING_S: usize = 60;

/// Points that wait at most, whatever the number of series: a minute of 1,000, which are some tens of MB. It is more than all series have
/// within the time that they wait for a write.
const MOST_WAITING: usize = 60_000;

/// How many intervals are made of shorter ones in one call: an hour of seconds, or 60 hours of minutes.
const ROLLED_AT_ONCE: u64 = 60;

/// Of how many series a chunk is packed in one call, or of as many as there are seconds of now.
const PACKED_AT_ONCE: usize = 100;

/// What was seen of one subject.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Its series.
    pub key: SeriesKey,
    /// What it is now: the version of a server, the model of a device.
    pub kind: String,
    /// The columns. Counters are [`Aggregate::Sum`](crate::Aggregate::Sum) with their growth since the sample before, gauges
    /// [`Aggregate::Latest`](crate::Aggregate::Latest), and [`SPAN`](crate::SPAN) is the time since the sample before.
    pub layout: Arc<Layout>,
    /// A value for each column. None where there is none, as for a counter that was reset: it is a gap, not a zero.
    pub values: Vec<Option<Value>>,
}

/// How samples are kept.
#[derive(Debug, Clone, Copy)]
pub struct SampleOptions {
    /// What is on the disk once samples are written.
    pub durability: Durability,
    /// The subjects whose minutes are made of seconds, and whose hours of minutes. Series of other subjects are left as they are.
    pub subjects: &'static [&'static str],
    /// Points of these subjects that each tier may have. Beyond, the oldest go first.
    pub most_points: u64,
    /// Bytes that packed seconds may take. Beyond, the oldest hours of them go first.
    pub most_bytes: u64,
}

impl SampleOptions {
    /// Those of some subjects: of 100 series all seconds, minutes and hours that a tier keeps, and at most 2 GiB of seconds.
    #[must_use]
    pub const fn new(subjects: &'static [&'static str]) -> Self {
        let most_points = 100 * Tier::Second.kept();
        Self { durability: Durability::Process, subjects, most_points, most_bytes: 2 << 30 }
    }
}

/// How many points may wait of so many series.
fn most_waiting(series: usize) -> usize {
    series.saturating_mul(MOST_WAITING_S).min(MOST_WAITING)
}

/// What was recorded of one second so far.
#[derive(Debug)]
struct Second {
    number: u64,
    kind: String,
    layout: Arc<Layout>,
    values: Vec<Option<Value>>,
    /// Whether the file does not have all of it.
    is_unwritten: bool,
}

impl Second {
    fn new(number: u64, sample: Sample) -> Self {
        let Sample { kind, layout, values, .. } = sample;
        Self { number, kind, layout, values, is_unwritten: true }
    }

    /// Adds a later sample of the same second.
    fn add(&mut self, sample: Sample) {
        if self.layout != sample.layout {
            self.values = sample.layout.translate(&self.layout, &self.values);
            self.layout = sample.layout;
        }
        self.layout.add(&mut self.values, &sample.values);
        (self.kind, self.is_unwritten) = (sample.kind, true);
    }
}

/// What is not written yet.
#[derive(Debug, Default)]
struct Buffer {
    /// The second of the latest call.
    number: u64,
    /// The latest second of each series.
    latest: BTreeMap<SeriesKey, Second>,
    /// Seconds before it that have ended.
    ended: Vec<(SeriesKey, Second)>,
    /// When the first sample was taken that is not written; None where all are.
    since_ms: Option<u64>,
    /// Points that were given up, because the file could not be written for too long.
    lost: u64,
}

impl Buffer {
    fn take(&mut self, now_ms: u64, samples: Vec<Sample>) {
        let number = Tier::Second.number(now_ms);
        self.number = number;
        if !samples.is_empty() {
            self.since_ms.get_or_insert(now_ms);
        }
        for sample in samples {
            match self.latest.get_mut(&sample.key) {
                Some(second) if second.number == number => second.add(sample),
                Some(second) => {
                    let key = sample.key.clone();
                    let ended = std::mem::replace(second, Second::new(number, sample));
                    if ended.is_unwritten {
                        self.ended.push((key, ended));
                    }
                }
                None => {
                    self.latest.insert(sample.key.clone(), Second::new(number, sample));
                }
            }
        }
        let beyond = self.ended.len().saturating_sub(most_waiting(self.latest.len()));
        self.ended.drain(..beyond);
        self.lost += u64::try_from(beyond).unwrap_or_default();
    }

    /// Whether what waits is to be written at a time. Also where the clock was set back.
    fn is_due(&self, now_ms: u64, after_ms: u64) -> bool {
        self.since_ms.is_some_and(|since_ms| now_ms < since_ms || now_ms - since_ms >= after_ms)
    }

    fn write_points(&self, store: &mut Store) -> Result<(), HistoryError> {
        let ended = self.ended.iter().map(|(key, second)| (key, second));
        let latest = self.latest.iter().filter(|(_, second)| second.is_unwritten);
        let points = ended.chain(latest).map(|(key, second)| NewPoint {
            key,
            number: second.number,
            kind: &second.kind,
            layout: &second.layout,
            values: second.values.clone(),
            marks: Vec::new(),
        });
        let points: Vec<_> = points.collect();
        if points.is_empty() { Ok(()) } else { store.write(Tier::Second, &points) }
    }

    /// Writes all that waits. Nothing is forgotten where that fails.
    fn write(&mut self, store: &mut Store) -> Result<(), HistoryError> {
        self.write_points(store)?;
        self.ended.clear();
        self.since_ms = None;
        // A subject that is no longer seen is not kept in memory.
        let number = self.number;
        self.latest.retain(|_, second| second.number == number);
        for second in self.latest.values_mut() {
            second.is_unwritten = false;
        }
        Ok(())
    }
}

/// How far the upkeep is.
#[derive(Debug, Default)]
struct Upkeep {
    /// The latest minute in which something was done.
    minute: Option<u64>,
    /// The latest hour in which old points were deleted.
    hour: Option<u64>,
    /// The first minute that is not made of seconds yet, and the first hour that is not made of minutes yet; None before the first
    /// look at the file.
    next: BTreeMap<Tier, u64>,
    /// Before which time seconds were deleted to hold the limit of bytes, in milliseconds since 1970, and at which time that was.
    limited: Option<(u64, u64)>,
}

/// The samples of a home.
#[derive(Debug)]
pub struct Samples {
    options: SampleOptions,
    write_after_ms: u64,
    buffer: Mutex<Buffer>,
    store: Mutex<Store>,
    upkeep: Mutex<Upkeep>,
}

impl Samples {
    /// Opens the history of a home for samples, or makes it. Another program may record volumes in the same file.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(home: &Path, options: SampleOptions) -> Result<Self, HistoryError> {
        Ok(Self::new(Store::open(home, options.durability, options.most_points)?, options))
    }

    /// Opens the history of a home to read it alone. What is recorded is refused.
    ///
    /// # Errors
    /// As [`Store::open_read_only`].
    pub fn open_read_only(home: &Path) -> Result<Self, HistoryError> {
        Ok(Self::new(Store::open_read_only(home)?, SampleOptions::new(&[])))
    }

    fn new(store: Store, options: SampleOptions) -> Self {
        Self {
            options,
            write_after_ms: WRITE_AFTER_MS,
            buffer: Mutex::default(),
            store: Mutex::new(store),
            upkeep: Mutex::default(),
        }
    }

    /// Takes samples at a time, in milliseconds since 1970, and writes those that have waited for 4 s. To be called about once a second,
    /// also without samples. Two samples of a series in one second become one.
    ///
    /// # Errors
    /// A history that cannot be written. The samples wait for the next call; how many were given up says [`Self::lost`].
    pub fn record(&self, now_ms: u64, samples: Vec<Sample>) -> Result<(), HistoryError> {
        let mut buffer = self.buffer.lock();
        buffer.take(now_ms, samples);
        if buffer.is_due(now_ms, self.write_after_ms) {
            buffer.write(&mut self.store.lock())?;
        }
        Ok(())
    }

    /// Writes all samples now, as before an orderly end.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn flush(&self) -> Result<(), HistoryError> {
        self.buffer.lock().write(&mut self.store.lock())
    }

    /// Points that were given up, because the history could not be written for more than a minute, or for less where there are more
    /// than 1,000 series.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.buffer.lock().lost
    }

    /// Once a minute makes minutes of seconds and hours of minutes and packs what has passed; once an hour deletes the oldest. To be
    /// called about once a second.
    ///
    /// # Errors
    /// As [`Self::record`]. The next minute tries again.
    pub fn keep_up(&self, now_ms: u64) -> Result<(), HistoryError> {
        let mut upkeep = self.upkeep.lock();
        let (minute, hour) = (Tier::Minute.number(now_ms), Tier::Hour.number(now_ms));
        if upkeep.minute == Some(minute) {
            return Ok(());
        }
        upkeep.minute = Some(minute);
        // The seconds of the minute that has ended are among those that wait.
        self.flush()?;
        for tier in [Tier::Second, Tier::Minute] {
            self.roll_up(&mut upkeep, tier, now_ms)?;
        }
        let mut store = self.store.lock();
        // Each minute ends a chunk of seconds of each series: fewer than those would pile up.
        let live = store.live_series(self.options.subjects, minute.saturating_sub(2))?;
        let live = usize::try_from(live).unwrap_or(usize::MAX);
        for tier in Tier::ALL {
            let most = if tier == Tier::Second { PACKED_AT_ONCE.max(live) } else { PACKED_AT_ONCE };
            // Twice, so that what an earlier process left is packed in time.
            store.pack(tier, now_ms, most)?;
            store.pack(tier, now_ms, most)?;
        }
        // A clock that jumps ahead by mistake must not delete the history: it has to go on evenly from one hour to the next first.
        let is_even = upkeep.hour.is_some_and(|before| before + 1 == hour);
        upkeep.hour = Some(hour);
        if is_even {
            for tier in Tier::ALL {
                store.prune(tier, now_ms, self.options.subjects)?;
            }
        }
        if let Some(oldest_ms) = store.limit_second_bytes(self.options.most_bytes)? {
            upkeep.limited = Some((oldest_ms, now_ms));
        }
        Ok(())
    }

    /// How much time back seconds are kept, ms, where the limit of bytes has deleted some that a day would have; None where it has not
    /// within the last day.
    #[must_use]
    pub fn limited_to_ms(&self, now_ms: u64) -> Option<u64> {
        let (oldest_ms, limited_ms) = self.upkeep.lock().limited?;
        let kept_ms = Tier::Second.kept() * 1_000;
        (now_ms.saturating_sub(limited_ms) < kept_ms).then(|| limited_ms.saturating_sub(oldest_ms))
    }

    /// Makes those of the next longer intervals that have ended and are not made yet, a part of them in each call.
    fn roll_up(&self, upkeep: &mut Upkeep, tier: Tier, now_ms: u64) -> Result<(), HistoryError> {
        let Some(longer) = tier.longer() else { return Ok(()) };
        let now = longer.number(now_ms);
        // The interval in which the oldest point lies may have lost some of its points: it stays as it was made.
        let oldest = tier.number(now_ms).saturating_sub(tier.kept());
        let first = (oldest * tier.seconds()).div_ceil(longer.seconds());
        let mut store = self.store.lock();
        let next = match upkeep.next.get(&tier) {
            Some(next) => *next,
            // What the latest one in the file was made of may not have been all.
            None => self.latest(&store, longer)?.unwrap_or_default().max(first),
        };
        // After a clock that was set back, its intervals are made again.
        let mut next = next.min(now);
        loop {
            let end = now.min(next.saturating_add(ROLLED_AT_ONCE));
            let mut written = 0;
            for subject in self.options.subjects {
                let selector = Selector { subject: Some(*subject), labels: &[] };
                written += store.roll_up(tier, selector, next..end)?;
            }
            // After a clock that jumped ahead, or a long pause, there is nothing of the time between.
            next = end.max(first.min(now));
            upkeep.next.insert(tier, next);
            // Readers and samples wait meanwhile: what is left is for the next minute.
            if written > 0 || next == now {
                return Ok(());
            }
        }
    }

    /// The latest interval of a tier that the file has of the subjects.
    fn latest(&self, store: &Store, tier: Tier) -> Result<Option<u64>, HistoryError> {
        let mut latest: Option<u64> = None;
        for subject in self.options.subjects {
            latest = latest.max(store.latest(tier, subject)?);
        }
        Ok(latest)
    }

    /// The file, for readers. Recording waits for the one who has it.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock()
    }
}

#[cfg(test)]
mod tests;
