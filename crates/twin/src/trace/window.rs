//! Puts requests in the order of their arrival, and joins them with their answers.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use ebbtide_volume::{Io, Nanos, Op};

use super::Record;
use super::lines::Event;

/// A request is held for so long, ns: until its answer came, and those that the trace has after it but that arrived before.
const HELD_NS: u64 = 10_000_000_000;
/// Requests that are held at most.
const MOST_HELD: usize = 1 << 16;

/// A request that is held.
#[derive(Debug, Clone, Copy)]
struct Held {
    at: u64,
    order: u64,
    io: Io,
    client: u64,
    latency: Option<u64>,
    /// Whether its answer may still come.
    open: bool,
    /// Whether it was taken back: the device did not take it, and it is issued again.
    taken_back: bool,
}

/// Hashes a place on a device. It is faster than the standard library's hash, and no more is asked of it: a trace is no
/// attacker.
#[derive(Debug, Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        // Offsets end in zeroes, and so do their products: the upper half, which depends on all bits, is mixed in below.
        let product = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The requests between the trace and its reader.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// In the order of their times, then of the trace.
    held: VecDeque<Held>,
    /// Time and order of the latest request without an answer, by its first byte and whether it writes.
    open: HashMap<(u64, bool), (u64, u64), BuildHasherDefault<PlaceHasher>>,
    added: u64,
    pub(super) newest: u64,
    /// Time of the last one that was handed on, ns.
    last: u64,
    /// The time from which all count, ns: that of the first request, unless the trace has a beginning of its own.
    pub(super) first: Option<u64>,
    /// Requests that came after a later one had been handed on.
    pub(super) late: u64,
}

impl Window {
    /// A request of the trace; `open` where a later event has its answer.
    pub(super) fn arrived(&mut self, event: &Event<'_>, io: Io, open: bool) {
        self.added += 1;
        let (at, order) = (event.at, self.added);
        if open {
            self.open.insert((io.offset, io.op == Op::Write), (at, order));
        }
        let entry =
            Held { at, order, io, client: event.client, latency: event.latency, open, taken_back: false };
        self.newest = self.newest.max(at);
        if self.held.back().is_none_or(|last| last.at <= at) {
            self.held.push_back(entry);
        } else {
            let behind = self.held.iter().rev().take_while(|one| one.at > at).count();
            self.held.insert(self.held.len() - behind, entry);
        }
    }

    /// An answer. Returns false where its request was not seen.
    pub(super) fn answered(&mut self, event: &Event<'_>) -> bool {
        let Some(held) = self.request_of(event) else { return false };
        (held.latency, held.open) = (Some(event.at.saturating_sub(held.at)), false);
        true
    }

    /// A request that the device did not take and that is issued again, so that this one is left out. Returns false where it
    /// was not seen.
    pub(super) fn taken_back(&mut self, event: &Event<'_>) -> bool {
        let Some(held) = self.request_of(event) else { return false };
        (held.taken_back, held.open) = (true, false);
        true
    }

    /// The latest request without an answer at the place of an event.
    fn request_of(&mut self, event: &Event<'_>) -> Option<&mut Held> {
        self.newest = self.newest.max(event.at);
        let key = self.open.remove(&(event.offset, event.op == Op::Write))?;
        let is_it = |one: &Held| (one.at, one.order) == key;
        // Where nothing came out of order, its place follows from the numbers.
        let place = self.held.front().and_then(|first| usize::try_from(key.1.checked_sub(first.order)?).ok());
        let place = place.filter(|place| self.held.get(*place).is_some_and(is_it));
        let place = place.unwrap_or_else(|| self.held.partition_point(|one| (one.at, one.order) < key));
        self.held.get_mut(place).filter(|one| is_it(one))
    }

    /// The next request, if none before it can come any more.
    pub(super) fn next(&mut self, ended: bool) -> Option<Record> {
        while self.held.front()?.taken_back {
            self.held.pop_front();
        }
        let front = self.held.front()?;
        let old = self.newest.saturating_sub(front.at) >= HELD_NS;
        if !(ended || old || self.held.len() > MOST_HELD) {
            return None;
        }
        let one = self.held.pop_front()?;
        if one.open {
            self.open.remove(&(one.io.offset, one.io.op == Op::Write));
        }
        let first = *self.first.get_or_insert(one.at);
        self.late += u64::from(one.at < self.last);
        self.last = one.at.max(self.last);
        Some(Record {
            at: Nanos(self.last - first),
            io: one.io,
            client: one.client,
            latency: one.latency.map(Nanos),
        })
    }
}
