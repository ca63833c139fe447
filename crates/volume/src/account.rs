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
    /// Whether the I/O begins a unit. Otherwise all of it belongs to the unit that its stream is in.
    pub(crate) begins_unit: bool,
    /// Whether the I/O continues its stream, so that a disk would not seek.
    pub(crate) sequential: bool,
}

/// From when on each limit covers an I/O, or the unit that it belongs to; zero without that limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slots {
    pub(crate) volume_iops: Nanos,
    pub(crate) volume_throughput: Nanos,
    pub(crate) instance_iops: Nanos,
    pub(crate) instance_throughput: Nanos,
}

impl Slots {
    /// From when on all limits cover it.
    #[inline]
    fn latest(&self) -> Nanos {
        let volume = self.volume_iops.max(self.volume_throughput);
        volume.max(self.instance_iops).max(self.instance_throughput)
    }

    /// The later slot of two units, limit by limit.
    fn later(&self, other: &Self) -> Self {
        Self {
            volume_iops: self.volume_iops.max(other.volume_iops),
            volume_throughput: self.volume_throughput.max(other.volume_throughput),
            instance_iops: self.instance_iops.max(other.instance_iops),
            instance_throughput: self.instance_throughput.max(other.instance_throughput),
        }
    }
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
    /// Bytes of each stream's units that no I/O has used yet.
    room: [u64; STREAMS],
    /// Bytes of each stream's room that a throughput limit has counted already: of whole units.
    paid: [u64; STREAMS],
    /// From when on the limits cover the unit that each stream began last.
    slots: [Slots; STREAMS],
    /// Until when an I/O that continues the stream can join that unit.
    open_until: [Nanos; STREAMS],
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
        const NO_SLOTS: Slots = Slots {
            volume_iops: Nanos::ZERO,
            volume_throughput: Nanos::ZERO,
            instance_iops: Nanos::ZERO,
            instance_throughput: Nanos::ZERO,
        };
        Self {
            rules,
            begin: [NO_STREAM; STREAMS],
            next: [NO_STREAM; STREAMS],
            room: [0; STREAMS],
            paid: [0; STREAMS],
            slots: [NO_SLOTS; STREAMS],
            open_until: [Nanos::ZERO; STREAMS],
            continued: [false; STREAMS],
            hand: 0,
            current: 0,
            overpaid: 0,
        }
    }

    pub(crate) const fn set_rules(&mut self, rules: Accounting) {
        self.rules = rules;
    }

    /// Charges an I/O submitted at `now`. [`Self::granted`] must follow with its slots.
    #[inline]
    pub(crate) fn charge(&mut self, io: Io, now: Nanos) -> Charge {
        let charge = self.count(io, now);
        if self.rules.free_writes && io.op == Op::Write {
            self.slots[self.current] = Slots::default();
            return Charge { operations: 0, bytes: 0, begins_unit: false, ..charge };
        }
        charge
    }

    #[inline]
    fn count(&mut self, io: Io, now: Nanos) -> Charge {
        let unit = u64::from(self.rules.unit_bytes);
        let len = u64::from(io.len);
        let (from, to) = (key(io.offset, io.op), key(io.offset + len, io.op));
        let (stream, sequential) = if let Some(stream) = find(&self.next, from) {
            self.next[stream] = to;
            (stream, true)
        } else if let Some(stream) = find(&self.begin, to) {
            self.begin[stream] = from;
            (stream, true)
        } else {
            (self.begin_stream(from, to), false)
        };
        self.current = stream;
        if sequential {
            self.continued[stream] = true;
            if !self.joins(stream, now) {
                self.room[stream] = 0;
            }
            self.absorb(stream, now);
        }
        let fresh = len.saturating_sub(self.room[stream]);
        let units = match fresh {
            0 => 0,
            _ if fresh <= unit => 1,
            _ => fresh.div_ceil(unit),
        };
        self.room[stream] = self.room[stream] + units * unit - len;
        let paid_before = units.min(self.overpaid);
        self.overpaid -= paid_before;
        let bytes = match (self.rules.whole_units, sequential) {
            (false, _) => len,
            (true, false) => {
                self.paid[stream] = units * unit - len;
                units * unit
            }
            (true, true) => {
                let unpaid = len.saturating_sub(self.paid[stream]);
                self.paid[stream] -= len - unpaid;
                unpaid
            }
        };
        Charge { operations: units - paid_before, bytes, begins_unit: units > 0, sequential }
    }

    /// Whether an I/O that continues a stream can join its unit.
    fn joins(&self, stream: usize, now: Nanos) -> bool {
        match self.rules.merge {
            Merge::Never => false,
            Merge::Waiting | Merge::InFlight => now < self.open_until[stream],
            Merge::Contiguous => true,
        }
    }

    /// Takes over the stream that begins where this one now ends.
    fn absorb(&mut self, stream: usize, now: Nanos) {
        let Some(other) = find(&self.begin, self.next[stream]).filter(|&other| other != stream) else {
            return;
        };
        self.next[stream] = self.next[other];
        if self.joins(other, now) {
            let unit = u64::from(self.rules.unit_bytes);
            let room = self.room[stream] + self.room[other];
            self.room[stream] = room % unit;
            self.overpaid += room / unit;
        }
        self.paid[stream] += self.paid[other];
        self.slots[stream] = self.slots[stream].later(&self.slots[other]);
        self.open_until[stream] = self.open_until[stream].max(self.open_until[other]);
        self.begin[other] = NO_STREAM;
        self.next[other] = NO_STREAM;
        self.continued[other] = false;
    }

    /// From when on the limits cover the unit that the stream of the I/O that was charged last is in.
    #[inline]
    pub(crate) fn unit(&self) -> &Slots {
        &self.slots[self.current]
    }

    /// Notes from when on the limits cover the I/O that was charged last, and when it completes.
    #[inline]
    pub(crate) fn granted(&mut self, charge: Charge, slots: Slots, completes: Nanos) {
        let stream = self.current;
        if charge.begins_unit {
            self.slots[stream] = slots;
        }
        match self.rules.merge {
            Merge::Waiting if charge.begins_unit => self.open_until[stream] = slots.latest(),
            Merge::InFlight => self.open_until[stream] = self.open_until[stream].max(completes),
            Merge::Waiting | Merge::Never | Merge::Contiguous => {}
        }
    }

    /// Gives a slot to a new stream: that of one that has not gone on for a while.
    #[inline]
    fn begin_stream(&mut self, begin: u64, next: u64) -> usize {
        while self.continued[self.hand] {
            self.continued[self.hand] = false;
            self.hand = (self.hand + 1) % STREAMS;
        }
        let stream = self.hand;
        self.hand = (stream + 1) % STREAMS;
        (self.begin[stream], self.next[stream]) = (begin, next);
        (self.room[stream], self.paid[stream]) = (0, 0);
        // Its slots follow with `granted`: a new stream begins a unit.
        self.open_until[stream] = Nanos::ZERO;
        stream
    }
}
