//! The recorder and its file, shared by the threads of a program.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use parking_lot::{Mutex, MutexGuard};

use crate::error::HistoryError;
use crate::key::{GAUGE, INSTANCE, Selector, VOLUME};
use crate::recorder::{Marks, Reading, Recorder};
use crate::store::{Durability, Store};
use crate::tier::Tier;
use crate::volume::VolumeMinute;

/// How often old points are looked for, in minutes.
const PRUNE_MINUTES: u64 = 60;

/// Of how many series an hour is packed after each minute: 12,000 within an hour. Readers wait meanwhile.
const PACKED_AT_ONCE: usize = 200;

/// What is recorded here, and by CloudWatch beside it: what [`Options::most_minutes`] bounds.
const SUBJECTS: &[&str] = &[VOLUME, INSTANCE, GAUGE];

/// How a history is kept.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// What is on the disk once a minute is written.
    pub durability: Durability,
    /// Minutes of volumes, instances and gauges that the file may have: with the default, 10,000 volumes have all 15 days. Beyond, the oldest go first.
    pub most_minutes: u64,
    /// Under which names a series is found as active.
    pub marks: Marks,
    /// When recording begins, in milliseconds since 1970. Of a volume that was attached before, what it did until it is first read
    /// is another recorder's of the same process. 0: there was none.
    pub began_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            most_minutes: 216_000_000,
            marks: |_, _| Vec::new(),
            began_ms: 0,
        }
    }
}

/// The history of a home.
#[derive(Debug)]
pub struct History {
    marks: Marks,
    recorder: Mutex<Recorder>,
    store: Mutex<Store>,
    /// The minute of the latest upkeep, and of the latest pruning.
    kept_up: Mutex<(u64, u64)>,
}

impl History {
    /// Opens the history of a home, or makes it.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(home: &Path, options: Options) -> Result<Self, HistoryError> {
        let store = Store::open(home, options.durability, options.most_minutes)?;
        Ok(Self {
            marks: options.marks,
            recorder: Mutex::new(Recorder::new(options.began_ms)),
            store: Mutex::new(store),
            kept_up: Mutex::default(),
        })
    }

    /// Takes readings of all volumes and instances at a time, in milliseconds since 1970. Once a minute has ended, its points
    /// are there. To be called about once a second, and at the beginning of each minute.
    ///
    /// # Errors
    /// A history that cannot be written.
    pub fn record(&self, now_ms: u64, readings: Vec<Reading>) -> Result<(), HistoryError> {
        self.recorder.lock().tick(&mut self.store.lock(), self.marks, now_ms, readings)
    }

    /// Stores what the present minute has so far. It goes on to grow.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn publish(&self) -> Result<(), HistoryError> {
        self.recorder.lock().publish(&mut self.store.lock(), self.marks)
    }

    /// Packs minutes of past hours after each minute, and deletes the oldest once an hour. To be called about once a second.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn keep_up(&self, now_ms: u64) -> Result<(), HistoryError> {
        let minute = Tier::Minute.number(now_ms);
        let mut kept_up = self.kept_up.lock();
        let (latest, pruned) = *kept_up;
        kept_up.0 = minute.max(latest);
        // Not at the first call, with which no minute ends.
        if latest > 0 && minute > latest {
            self.store.lock().pack(Tier::Minute, now_ms, PACKED_AT_ONCE)?;
        }
        if minute >= pruned + PRUNE_MINUTES {
            kept_up.1 = minute;
            self.store.lock().prune(Tier::Minute, now_ms, SUBJECTS)?;
        }
        Ok(())
    }

    /// The file, for everything else. Recording waits for the one who has it.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock()
    }
}

impl Store {
    /// The minutes of a volume with its type in each, by the minutes since 1970. `labels` may be of several series, such as those
    /// of a volume on each of its instances: a minute has what all of them did.
    ///
    /// # Errors
    /// As [`Self::scan`].
    pub fn volume_minutes(
        &self,
        labels: &[(&str, &str)],
        minutes: Range<u64>,
    ) -> Result<BTreeMap<u64, (String, VolumeMinute)>, HistoryError> {
        let mut found: BTreeMap<u64, (String, VolumeMinute)> = BTreeMap::new();
        let selector = Selector { subject: Some(VOLUME), labels };
        self.scan(Tier::Minute, selector, minutes, |point| {
            let minute = VolumeMinute::read(point.layout, point.values);
            // A volume can change instances within a minute.
            let whole = found.get(&point.number).map_or(minute, |(_, earlier)| earlier.then(&minute));
            found.insert(point.number, (point.kind.to_owned(), whole));
        })?;
        Ok(found)
    }
}
