//! Power cuts against a ledger of what was answered: what a volume may show afterwards, and whether
//! the ledger would notice a volume that loses acknowledged writes.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::faults::Faults;

/// Writes of one run; each fills its range with its own number, so that every 512 bytes show which
/// write they are from.
const WRITES: u32 = 120;
const SECTOR: u64 = 512;

struct Write {
    number: u32,
    offset: u64,
    len: u64,
}

/// Answers in the order in which they came: the number of a write that succeeded, or a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    Write(u32),
    Flush,
    PowerLost,
}

type Log = Arc<Mutex<Vec<Answered>>>;

/// What a run left: the broken rules, and how the cut went.
#[derive(Debug, Default)]
struct Verdict {
    lost: usize,
    torn: usize,
    units_new: u64,
    units_old: u64,
    cached_lost: u64,
}

fn payload(number: u32, len: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(usize::try_from(len / 4).unwrap())
}

/// What each sector may show after the cut, by the numbers of the writes.
struct Ledger {
    promised: Vec<u32>,
    allowed: Vec<BTreeSet<u32>>,
    /// Whether only a flush makes an answered write a promise.
    flushed_only: bool,
}

impl Ledger {
    fn new(flushed_only: bool) -> Self {
        let sectors = usize::try_from(SIZE / SECTOR).unwrap();
        Self { promised: vec![0; sectors], allowed: vec![BTreeSet::from([0]); sectors], flushed_only }
    }

    fn note(&mut self, answered: Answered, writes: &[Write]) {
        match answered {
            Answered::Write(number) => {
                for sector in sectors(&writes[usize::try_from(number - 1).unwrap()]) {
                    self.promised[sector] = number;
                    if !self.flushed_only {
                        self.allowed[sector].clear();
                    }
                    self.allowed[sector].insert(number);
                }
            }
            Answered::Flush => {
                for (allowed, promised) in self.allowed.iter_mut().zip(&self.promised) {
                    *allowed = BTreeSet::from([*promised]);
                }
            }
            Answered::PowerLost => {}
        }
    }
}

fn submit(fixture: &Fixture, log: &Log, write: Option<&Write>) {
    let log = Arc::clone(log);
    let done = write.map_or(Answered::Flush, |write| Answered::Write(write.number));
    let reply = Reply::callback(move |outcome| {
        log.lock().push(if outcome.is_ok() { done } else { Answered::PowerLost });
    });
    match write {
        Some(write) => fixture.volume.submit_write(write.offset, &payload(write.number, write.len), reply),
        None => fixture.volume.submit(Request {
            command: Command::Flush,
            offset: 0,
            len: 0,
            fua: false,
            data: None,
            reply,
        }),
    }
}

/// A write of 512 bytes to 64 KiB, every second one an aligned page of 16 KiB.
fn draw(number: u32, rng: &mut impl Rng) -> Write {
    let page = rng.next_u32() & 1 == 0;
    let len = if page { 16 * KIB } else { SECTOR * (u64::from(rng.next_u32() % 128) + 1) };
    let step = if page { len } else { SECTOR };
    let offset = u64::from(rng.next_u32()) % ((512 * KIB - len) / step) * step;
    Write { number, offset, len }
}

/// Random writes, some flushes, and a power cut in the middle of them. With `flushed_only`, only
/// writes that a flush covered count as promised.
fn run(limits: Limits, faults: Faults, seed: u64, flushed_only: bool) -> Verdict {
    let unit = limits.durability.atomic_unit;
    let fixture = Fixture::new(limits);
    fixture.volume.set_faults(faults).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut ledger = Ledger::new(flushed_only);
    let mut writes: Vec<Write> = Vec::new();
    let mut answered = BTreeSet::new();
    let log = Log::default();
    for number in 1..=WRITES {
        writes.push(draw(number, &mut rng));
        submit(&fixture, &log, writes.last());
        if rng.next_u32().is_multiple_of(10) {
            submit(&fixture, &log, None);
        }
        fixture.pass(Nanos::from_us(u64::from(rng.next_u32() % 120)));
        for event in log.lock().drain(..) {
            ledger.note(event, &writes);
            if let Answered::Write(number) = event {
                answered.insert(number);
            }
        }
    }
    let report = fixture.volume.power_cut(seed).unwrap();
    assert!(log.lock().iter().all(|answer| *answer == Answered::PowerLost));
    let in_flight: Vec<_> = writes.iter().filter(|write| !answered.contains(&write.number)).collect();
    assert_eq!(report.writes_in_flight, u64::try_from(in_flight.len()).unwrap());
    for write in &in_flight {
        sectors(write).for_each(|sector| _ = ledger.allowed[sector].insert(write.number));
    }
    let image = fixture.stored(0, SIZE);
    let found: Vec<_> =
        image.chunks(512).map(|sector| u32::from_le_bytes(sector[..4].try_into().unwrap())).collect();
    Verdict {
        lost: found.iter().zip(&ledger.allowed).filter(|(found, allowed)| !allowed.contains(found)).count(),
        torn: in_flight.iter().filter(|write| is_torn(write, &in_flight, &found, unit)).count(),
        units_new: report.units_new,
        units_old: report.units_old,
        cached_lost: report.cached_units_lost,
    }
}

fn sectors(write: &Write) -> std::ops::Range<usize> {
    let at = |byte: u64| usize::try_from(byte / SECTOR).unwrap();
    at(write.offset)..at(write.offset + write.len)
}

/// Whether some aligned unit of a write in flight is partly there and partly not, where no other
/// write in flight is above it.
fn is_torn(write: &Write, all: &[&Write], found: &[u32], unit: AtomicUnit) -> bool {
    let per_unit = usize::try_from(unit.bytes() / SECTOR).unwrap();
    let range = sectors(write);
    let others = |sector| all.iter().any(|o| o.number != write.number && sectors(o).contains(&sector));
    let units = range.start / per_unit..range.end.div_ceil(per_unit);
    units.into_iter().any(|unit| {
        let mine = (unit * per_unit).max(range.start)..((unit + 1) * per_unit).min(range.end);
        let new = mine.clone().filter(|&sector| found[sector] == write.number).count();
        !mine.clone().any(others) && new != 0 && new != mine.len()
    })
}

#[test]
fn two_hundred_power_cuts_keep_every_answered_write_and_tear_no_unit() {
    for unit in [AtomicUnit::FourKib, AtomicUnit::SixteenKib] {
        let (mut new, mut old) = (0, 0);
        for seed in 0..100 {
            let verdict = run(limits(unit, 0), Faults::default(), seed, false);
            assert_eq!((verdict.lost, verdict.torn, verdict.cached_lost), (0, 0, 0), "{unit:?}, seed {seed}");
            new += verdict.units_new;
            old += verdict.units_old;
        }
        assert!(new > 500 && old > 500, "units in flight go both ways: {new} new, {old} old");
    }
}

#[test]
fn the_planted_answer_before_durable_is_caught() {
    let caught = |faults: &Faults, seed| run(ebs(), faults.clone(), seed, false).lost > 0;
    let early = Faults { answer_early: true, ignore_flush: true, ..Faults::default() };
    let found = (0..50).filter(|&seed| caught(&early, seed)).count();
    assert_eq!(found, 50, "a volume that answers early must not get through a single run");
}

#[test]
fn a_volatile_cache_loses_answered_writes_but_none_that_was_flushed() {
    let mut lost = 0;
    for seed in 0..100 {
        let verdict = run(limits(AtomicUnit::FourKib, 64 * KIB), Faults::default(), seed, true);
        assert_eq!(verdict.lost, 0, "seed {seed}");
        lost += verdict.cached_lost;
    }
    assert!(lost > 100, "{lost} units lost in a hundred cuts: the cache is volatile");
}

#[test]
fn a_volatile_cache_that_ignores_flushes_is_caught() {
    let lying = Faults { ignore_flush: true, ..Faults::default() };
    let caught = (0..50)
        .filter(|&seed| run(limits(AtomicUnit::FourKib, MIB), lying.clone(), seed, true).lost > 0)
        .count();
    assert_eq!(caught, 50, "every run has flushed writes that the cache still holds");
}

#[test]
fn the_same_seed_cuts_the_same_way() {
    let cut = |seed| {
        let fixture = Fixture::new(ebs());
        (0..8_u8).for_each(|i| drop(fixture.write(u64::from(i) * 16 * KIB, &filled(i + 1, 16 * KIB))));
        fixture.volume.power_cut(seed).unwrap();
        fixture.stored(0, SIZE)
    };
    assert_eq!(cut(5), cut(5));
    assert_ne!(cut(5), cut(6));
}
