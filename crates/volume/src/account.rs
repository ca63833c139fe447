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
    pub(crate) fn latest(&self) -> Nanos {
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
    units: [Unit; STREAMS],
    /// Streams that went on since the hand last passed them: they get a second chance.
    continued: [bool; STREAMS],
    hand: usize,
    current: usize,
    /// Units that were paid for both of two streams that then met; the next ones are free.
    overpaid: u64,
}

/// The unit that a stream began last. What an I/O needs of it is in one line of the processor's cache.
#[derive(Debug, Clone, Copy, Default)]
struct Unit {
    /// Bytes of the stream's units that no I/O has used yet.
    room: u64,
    /// Bytes of the room that a throughput limit has counted already: of whole units.
    paid: u64,
    /// From when on the limits cover the unit.
    slots: Slots,
    /// Until when an I/O that continues the stream can join it.
    open_until: Nanos,
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
        const NO_UNIT: Unit = Unit { room: 0, paid: 0, slots: NO_SLOTS, open_until: Nanos::ZERO };
        Self {
            rules,
            begin: [NO_STREAM; STREAMS],
            next: [NO_STREAM; STREAMS],
            units: [NO_UNIT; STREAMS],
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
            self.units[self.current].slots = Slots::default();
            return Charge { operations: 0, bytes: 0, begins_unit: false, ..charge };
        }
        charge
    }

    #[inline]
    fn count(&mut self, io: Io, now: Nanos) -> Charge {
        let len = u64::from(io.len);
        let (from, to) = (key(io.offset, io.op), key(io.offset + len, io.op));
        if let Some(stream) = find(&self.next, from) {
            self.next[stream] = to;
            self.continue_stream(stream, len, now)
        } else if let Some(stream) = find(&self.begin, to) {
            self.begin[stream] = from;
            self.continue_stream(stream, len, now)
        } else {
            self.begin_stream(from, to, len)
        }
    }

    /// Units of which at least so many bytes are.
    #[inline]
    fn units_of(&self, bytes: u64) -> u64 {
        let unit = u64::from(self.rules.unit_bytes);
        // Nearly all I/O is no larger than a unit: no division for it.
        if bytes <= unit { u64::from(bytes > 0) } else { bytes.div_ceil(unit) }
    }

    /// The operations that begun units cost: some were paid for already.
    #[inline]
    fn unpaid(&mut self, units: u64) -> u64 {
        if self.overpaid == 0 {
            return units;
        }
        let paid = units.min(self.overpaid);
        self.overpaid -= paid;
        units - paid
    }

    /// What an I/O costs that continues a stream, which has its new end already.
    fn continue_stream(&mut self, stream: usize, len: u64, now: Nanos) -> Charge {
        self.current = stream;
        self.continued[stream] = true;
        if !self.joins(stream, now) {
            self.units[stream].room = 0;
        }
        self.absorb(stream, now);
        let room = self.units[stream].room;
        let units = self.units_of(len.saturating_sub(room));
        let unit = &mut self.units[stream];
        unit.room = room + units * u64::from(self.rules.unit_bytes) - len;
        let bytes = if self.rules.whole_units {
            let unpaid = len.saturating_sub(unit.paid);
            unit.paid -= len - unpaid;
            unpaid
        } else {
            len
        };
        Charge { operations: self.unpaid(units), bytes, begins_unit: units > 0, sequential: true }
    }

    /// Whether an I/O that continues a stream can join its unit.
    fn joins(&self, stream: usize, now: Nanos) -> bool {
        match self.rules.merge {
            Merge::Never => false,
            Merge::Waiting | Merge::InFlight => now < self.units[stream].open_until,
            Merge::Contiguous => true,
        }
    }

    /// Takes over the stream that begins where this one now ends.
    fn absorb(&mut self, stream: usize, now: Nanos) {
        let Some(other) = find(&self.begin, self.next[stream]).filter(|&other| other != stream) else {
            return;
        };
        self.next[stream] = self.next[other];
        let taken = self.units[other];
        let joins = self.joins(other, now);
        let unit = &mut self.units[stream];
        if joins {
            let whole = u64::from(self.rules.unit_bytes);
            let room = unit.room + taken.room;
            unit.room = room % whole;
            self.overpaid += room / whole;
        }
        unit.paid += taken.paid;
        unit.slots = unit.slots.later(&taken.slots);
        unit.open_until = unit.open_until.max(taken.open_until);
        self.begin[other] = NO_STREAM;
        self.next[other] = NO_STREAM;
        self.continued[other] = false;
    }

    /// From when on the limits cover the unit that the stream of the I/O that was charged last is in.
    #[inline]
    pub(crate) fn unit(&self) -> &Slots {
        &self.units[self.current].slots
    }

    /// Notes from when on the limits cover the I/O that was charged last, all of them from `covered` on, and when it completes.
    #[inline]
    pub(crate) fn granted(&mut self, charge: Charge, slots: Slots, covered: Nanos, completes: Nanos) {
        let unit = &mut self.units[self.current];
        if charge.begins_unit {
            unit.slots = slots;
        }
        match self.rules.merge {
            Merge::Waiting if charge.begins_unit => unit.open_until = covered,
            Merge::InFlight => unit.open_until = unit.open_until.max(completes),
            Merge::Waiting | Merge::Never | Merge::Contiguous => {}
        }
    }

    /// Gives a slot to a new stream: that of one that has not gone on for a while. What the I/O costs that begins it.
    #[inline]
    fn begin_stream(&mut self, begin: u64, next: u64, len: u64) -> Charge {
        while self.continued[self.hand] {
            self.continued[self.hand] = false;
            self.hand = (self.hand + 1) % STREAMS;
        }
        let stream = self.hand;
        self.hand = (stream + 1) % STREAMS;
        self.current = stream;
        (self.begin[stream], self.next[stream]) = (begin, next);
        let units = self.units_of(len);
        let whole = units * u64::from(self.rules.unit_bytes);
        let unit = &mut self.units[stream];
        unit.room = whole - len;
        (unit.paid, unit.open_until) = (0, Nanos::ZERO);
        let mut bytes = len;
        if self.rules.whole_units {
            (bytes, unit.paid) = (whole, whole - len);
        }
        // Its slots follow with `granted`: a new stream begins a unit.
        Charge { operations: self.unpaid(units), bytes, begins_unit: units > 0, sequential: false }
    }
}
