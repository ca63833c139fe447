//! Cuts the counters of attached volumes into minutes.
//!
//! A minute begins with the sample of the tick that closed the one before. A restart within a minute goes on with what
//! is stored of it, so that what was answered stays, and nothing is counted twice.

use std::collections::BTreeMap;

use ebbtide_control::{Nanos, Stats, VolumeCounters};

use super::db::{Db, DbError, MinuteRow};
use super::inventory::Attached;
use super::minute::Minute;

/// Milliseconds of a minute.
pub(super) const MINUTE_MS: u64 = 60_000;

/// Volumes in the minute that is not closed yet.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// The minute that is open; none before the first tick.
    minute: Option<u64>,
    open: BTreeMap<Key, Open>,
}

/// Owner, Region, volume and instance.
type Key = (String, String, String, String);

fn key(of: &Attached) -> Key {
    (of.owner.clone(), of.region.clone(), of.volume.clone(), of.instance.clone())
}

/// A volume in the open minute.
#[derive(Debug)]
struct Open {
    attached: Attached,
    /// What the minute has of earlier attachments, or of an earlier process.
    before: Minute,
    /// When the attachment began.
    since: Nanos,
    /// The counters at the beginning of the minute, or of the attachment.
    first: Stats,
    latest: Stats,
    /// Whether the latest tick has seen it.
    is_attached: bool,
}

impl Open {
    fn total(&self) -> Minute {
        self.before.then(&Minute::between(&self.first, &self.latest))
    }
}

impl Sampler {
    /// Takes a sample at a time. Where a minute ends with it, its rows are written.
    pub(super) fn tick(
        &mut self,
        db: &mut Db,
        now_ms: u64,
        attached: Vec<Attached>,
        counters: Vec<VolumeCounters>,
    ) -> Result<(), DbError> {
        // A clock that was set back reopens no minute.
        let minute = (now_ms / MINUTE_MS).max(self.minute.unwrap_or_default());
        let ends = self.minute.is_some_and(|open| open < minute);
        let current = self.minute.unwrap_or(minute);
        self.minute = Some(current);
        self.take(db, current, now_ms, attached, counters)?;
        if ends {
            db.write(&self.rows(current))?;
            self.begin(minute);
        }
        Ok(())
    }

    /// Writes what the open minute has so far.
    pub(super) fn publish(&self, db: &mut Db) -> Result<(), DbError> {
        match self.minute {
            Some(minute) => db.write(&self.rows(minute)),
            None => Ok(()),
        }
    }

    fn rows(&self, minute: u64) -> Vec<MinuteRow> {
        let rows = self.open.values().map(|open| MinuteRow {
            attached: open.attached.clone(),
            minute,
            counters: open.total(),
        });
        rows.filter(|row| !row.counters.is_empty()).collect()
    }

    fn begin(&mut self, minute: u64) {
        self.minute = Some(minute);
        self.open.retain(|_, open| open.is_attached);
        for open in self.open.values_mut() {
            open.before = Minute::default();
            open.first = open.latest;
        }
    }

    fn take(
        &mut self,
        db: &Db,
        minute: u64,
        now_ms: u64,
        attached: Vec<Attached>,
        counters: Vec<VolumeCounters>,
    ) -> Result<(), DbError> {
        for open in self.open.values_mut() {
            open.is_attached = false;
        }
        let mut by_name: BTreeMap<String, VolumeCounters> =
            counters.into_iter().map(|counters| (counters.name.clone(), counters)).collect();
        for attached in attached {
            let Some(VolumeCounters { since, stats, .. }) = by_name.remove(&attached.volume) else {
                continue;
            };
            match self.open.get_mut(&key(&attached)) {
                Some(open) if open.since == since => {
                    open.latest = stats;
                    (open.attached, open.is_attached) = (attached, true);
                }
                // Detached and attached again.
                Some(open) => {
                    let before = open.total();
                    let first = beginning(since, &stats, now_ms);
                    *open = Open { attached, before, since, first, latest: stats, is_attached: true };
                }
                None => {
                    let before = db.minute(&attached, minute)?.unwrap_or_default();
                    let first = beginning(since, &stats, now_ms);
                    let open = Open {
                        attached: attached.clone(),
                        before,
                        since,
                        first,
                        latest: stats,
                        is_attached: true,
                    };
                    self.open.insert(key(&attached), open);
                }
            }
        }
        Ok(())
    }
}

/// The counters from which an attachment that was not seen before is counted: from its own beginning, if that is recent.
fn beginning(since: Nanos, stats: &Stats, now_ms: u64) -> Stats {
    let since_ms = since.0 / 1_000_000;
    if since_ms.saturating_add(MINUTE_MS) < now_ms { *stats } else { Stats { at: since, ..Stats::default() } }
}
