//! I/O accounting: what an I/O costs in the operations and bytes that the limits count.
//!
//! AWS splits large I/O at 256 KiB (SSD) or 1 MiB (HDD), merges physically contiguous small I/O up
//! to that size, and charges HDD volumes a whole MiB for a small random I/O (EBS user guide,
//! `ebs-io-characteristics` and `hdd-vols`).

use crate::{Accounting, Io, Merge, Nanos, Op};

/// Contiguous streams that are followed at the same time (redo, binary log, doublewrite and a
/// scan or two run next to each other on a database volume).
const STREAMS: usize = 8;

/// What one I/O costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charge {
    /// Units newly begun: the operations that an IOPS limit counts.
    pub(crate) operations: u64,
    /// Bytes that a throughput limit counts.
    pub(crate) bytes: u64,
    /// Whether the I/O continues its stream, so that a disk would not seek.
    pub(crate) sequential: bool,
}

/// A key that no stream has.
const NO_STREAM: u64 = u64::MAX;

/// Follows the streams of one volume.
///
/// A kernel with several queues lets the requests of one stream overtake each other by a little, so a
/// stream grows at both ends, and two that meet become one; what was paid for both is given back.
#[derive(Debug, Clone)]
pub(crate) struct Accountant {
    rules: Accounting,
    /// Where each stream begins and goes on, with its operation: see [`key`].
    begin: [u64; STREAMS],
    next: [u64; STREAMS],
    /// Bytes of each stream's units that are paid for and not used yet.
    room: [u64; STREAMS],
    /// When the I/O that last extended each stream completes.
    in_flight_until: [Nanos; STREAMS],
    /// Streams that went on since the hand last passed them: they get a second chance.
    continued: [bool; STREAMS],
    hand: usize,
    current: usize,
    /// Units that were paid for both of two streams that then met; the next ones are free.
    overpaid: u64,
}

/// A place and an operation in one word. Offsets are below 2^63, since sizes are.
const fn key(offset: u64, op: Op) -> u64 {
    offset << 1 | matches!(op, Op::Write) as u64
}

/// The stream with this key, without branches: this is on the path of every I/O.
#[inline]
fn find(keys: &[u64; STREAMS], wanted: u64) -> Option<usize> {
    let found = (0..STREAMS).fold(STREAMS, |found, n| if keys[n] == wanted { n } else { found });
    (found < STREAMS).then_some(found)
}

impl Accountant {
    pub(crate) const fn new(rules: Accounting) -> Self {
        Self {
            rules,
            begin: [NO_STREAM; STREAMS],
            next: [NO_STREAM; STREAMS],
            room: [0; STREAMS],
            in_flight_until: [Nanos::ZERO; STREAMS],
            continued: [false; STREAMS],
            hand: 0,
            current: 0,
            overpaid: 0,
        }
    }

    pub(crate) const fn set_rules(&mut self, rules: Accounting) {
        self.rules = rules;
    }

    /// Charges an I/O submitted at `now`. [`Self::completes`] must follow with its completion time.
    #[inline]
    pub(crate) fn charge(&mut self, io: Io, now: Nanos) -> Charge {
        let charge = self.count(io, now);
        let free = self.rules.free_writes && io.op == Op::Write;
        if free { Charge { operations: 0, bytes: 0, ..charge } } else { charge }
    }

    #[inline]
    fn count(&mut self, io: Io, now: Nanos) -> Charge {
        let unit = u64::from(self.rules.unit_bytes);
        let len = u64::from(io.len);
        let (from, to) = (key(io.offset, io.op), key(io.offset + len, io.op));
        let (slot, sequential) = if let Some(stream) = find(&self.next, from) {
            self.next[stream] = to;
            (stream, true)
        } else if let Some(stream) = find(&self.begin, to) {
            self.begin[stream] = from;
            (stream, true)
        } else {
            (self.begin_stream(from, to), false)
        };
        self.current = slot;
        if sequential {
            self.continued[slot] = true;
            if !self.joins(slot, now) {
                self.room[slot] = 0;
            }
            self.absorb(slot, now);
        }
        let fresh = len.saturating_sub(self.room[slot]);
        let operations = match fresh {
            0 => 0,
            _ if fresh <= unit => 1,
            _ => fresh.div_ceil(unit),
        };
        self.room[slot] = self.room[slot] + operations * unit - len;
        let paid_before = operations.min(self.overpaid);
        self.overpaid -= paid_before;
        let operations = operations - paid_before;
        let bytes = if self.rules.whole_units { operations * unit } else { len };
        Charge { operations, bytes, sequential }
    }

    fn joins(&self, stream: usize, now: Nanos) -> bool {
        match self.rules.merge {
            Merge::Never => false,
            Merge::InFlight => now < self.in_flight_until[stream],
            Merge::Contiguous => true,
        }
    }

    /// Takes over the stream that begins where this one now ends.
    fn absorb(&mut self, slot: usize, now: Nanos) {
        let Some(other) = find(&self.begin, self.next[slot]).filter(|&other| other != slot) else { return };
        self.next[slot] = self.next[other];
        if self.joins(other, now) {
            let unit = u64::from(self.rules.unit_bytes);
            let room = self.room[slot] + self.room[other];
            self.room[slot] = room % unit;
            self.overpaid += room / unit;
        }
        self.in_flight_until[slot] = self.in_flight_until[slot].max(self.in_flight_until[other]);
        self.begin[other] = NO_STREAM;
        self.next[other] = NO_STREAM;
        self.continued[other] = false;
    }

    /// Notes when the I/O that was charged last completes.
    #[inline]
    pub(crate) fn completes(&mut self, at: Nanos) {
        let until = &mut self.in_flight_until[self.current];
        *until = (*until).max(at);
    }

    /// Gives a slot to a new stream: that of one that has not gone on for a while.
    #[inline]
    fn begin_stream(&mut self, begin: u64, next: u64) -> usize {
        while self.continued[self.hand] {
            self.continued[self.hand] = false;
            self.hand = (self.hand + 1) % STREAMS;
        }
        let slot = self.hand;
        self.hand = (slot + 1) % STREAMS;
        (self.begin[slot], self.next[slot]) = (begin, next);
        (self.room[slot], self.in_flight_until[slot]) = (0, Nanos::ZERO);
        slot
    }
}
