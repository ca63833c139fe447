//! Cuts the counters of attached volumes, and the time of running instances, into minutes.
//!
//! A minute begins with the sample of the tick that closed the one before. A restart within a minute goes on with what
//! is stored of it, so that what was answered stays, and nothing is counted twice.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ebbtide_control::{InstanceBalances, Nanos, Stats, VolumeCounters};

use super::db::{Db, DbError, MinuteRow};
use super::inventory::{Attached, INSTANCE, Running};
use super::minute::Minute;

/// Milliseconds of a minute.
pub(super) const MINUTE_MS: u64 = 60_000;

/// What is known at one time.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) attached: Vec<Attached>,
    pub(super) counters: Vec<VolumeCounters>,
    pub(super) running: Vec<Running>,
}

/// Volumes and instances in the minute that is not closed yet.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// The minute that is open; none before the first tick.
    minute: Option<u64>,
    open: BTreeMap<Key, Open>,
}

/// Owner, Region, volume and instance. An instance has itself, without a volume.
type Key = (String, String, String, String);

fn key(of: &Attached) -> Key {
    (of.owner.clone(), of.region.clone(), of.volume.clone(), of.instance.clone())
}

/// A volume or an instance in the open minute.
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
    /// What an instance had left when that was last known in the minute.
    balances: InstanceBalances,
    /// Whether the latest tick has seen it.
    is_attached: bool,
}

impl Open {
    fn total(&self) -> Minute {
        let since = Minute { balances: self.balances, ..Minute::between(&self.first, &self.latest) };
        self.before.then(&since)
    }
}

impl Sampler {
    /// Takes a sample at a time. Where a minute ends with it, its rows are written.
    pub(super) fn tick(&mut self, db: &mut Db, now_ms: u64, sample: Sample) -> Result<(), DbError> {
        // A clock that was set back reopens no minute.
        let minute = (now_ms / MINUTE_MS).max(self.minute.unwrap_or_default());
        let ends = self.minute.is_some_and(|open| open < minute);
        let current = self.minute.unwrap_or(minute);
        self.minute = Some(current);
        self.take(db, current, now_ms, sample)?;
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
            open.balances = InstanceBalances::default();
            open.first = open.latest;
        }
    }

    fn take(
        &mut self,
        db: &Db,
        minute: u64,
        now_ms: u64,
        Sample { attached, counters, running }: Sample,
    ) -> Result<(), DbError> {
        for open in self.open.values_mut() {
            open.is_attached = false;
        }
        let mut by_name: BTreeMap<String, VolumeCounters> =
            counters.into_iter().map(|counters| (counters.name.clone(), counters)).collect();
        let mut left: BTreeMap<(String, String, String), InstanceBalances> = BTreeMap::new();
        for attached in attached {
            let Some(VolumeCounters { since, stats, instance, .. }) = by_name.remove(&attached.volume) else {
                continue;
            };
            if let Some(balances) = instance {
                let Attached { owner, region, instance, .. } = attached.clone();
                left.insert((owner, region, instance), balances);
            }
            self.see(db, minute, now_ms, attached, (since, stats))?;
        }
        for Running { owner, region, instance } in running {
            let balances = left.remove(&(owner.clone(), region.clone(), instance.clone()));
            let itself =
                Attached { volume: String::new(), owner, region, instance, kind: INSTANCE.to_owned() };
            // It counts time alone.
            let stats = Stats { at: Nanos(now_ms.saturating_mul(1_000_000)), ..Stats::default() };
            let open = self.see(db, minute, now_ms, itself, (Nanos::ZERO, stats))?;
            open.balances = balances.unwrap_or(open.balances);
        }
        Ok(())
    }

    /// Takes the counters of a volume or an instance, with the time since which they count.
    fn see(
        &mut self,
        db: &Db,
        minute: u64,
        now_ms: u64,
        attached: Attached,
        (since, latest): (Nanos, Stats),
    ) -> Result<&mut Open, DbError> {
        let first = beginning(since, &latest, now_ms);
        let balances = InstanceBalances::default();
        let open = match self.open.entry(key(&attached)) {
            Entry::Vacant(vacant) => {
                let before = db.minute(&attached, minute)?.unwrap_or_default();
                return Ok(vacant.insert(Open {
                    attached,
                    before,
                    since,
                    first,
                    latest,
                    balances,
                    is_attached: true,
                }));
            }
            Entry::Occupied(open) => open.into_mut(),
        };
        if open.since == since {
            (open.latest, open.attached, open.is_attached) = (latest, attached, true);
        } else {
            // Detached and attached again.
            let before = open.total();
            *open = Open { attached, before, since, first, latest, balances, is_attached: true };
        }
        Ok(open)
    }
}

/// The counters from which an attachment that was not seen before is counted: from its own beginning, if that is recent.
fn beginning(since: Nanos, stats: &Stats, now_ms: u64) -> Stats {
    let since_ms = since.0 / 1_000_000;
    if since_ms.saturating_add(MINUTE_MS) < now_ms { *stats } else { Stats { at: since, ..Stats::default() } }
}
