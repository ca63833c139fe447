//! I/O accounting: what an I/O costs in the operations and bytes that the limits count.
//!
//! AWS splits large I/O at 256 KiB (SSD) or 1 MiB (HDD), merges physically contiguous small I/O up
//! to that size, and charges HDD volumes a whole MiB for a small random I/O (EBS user guide,
//! `ebs-io-characteristics` and `hdd-vols`).

use crate::{Accounting, Io, Merge, Nanos, Op};

/// Contiguous streams that are followed at the same time (redo, binary log, doublewrite and a
/// scan or two run beside each other on a database volume).
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
#[derive(Debug, Clone)]
pub(crate) struct Accountant {
    rules: Accounting,
    /// Where each stream goes on, with its operation: see [`key`].
    next: [u64; STREAMS],
    /// Bytes of each stream's last unit that are used.
    used: [u64; STREAMS],
    /// When the I/O that last extended each stream completes.
    in_flight_until: [Nanos; STREAMS],
    /// Streams that went on since the hand last passed them: they get a second chance.
    continued: [bool; STREAMS],
    hand: usize,
    current: usize,
}

/// A place and an operation in one word. Offsets are below 2^63, since sizes are.
const fn key(offset: u64, op: Op) -> u64 {
    offset << 1 | matches!(op, Op::Write) as u64
}

impl Accountant {
    pub(crate) const fn new(rules: Accounting) -> Self {
        Self {
            rules,
            next: [NO_STREAM; STREAMS],
            used: [0; STREAMS],
            in_flight_until: [Nanos::ZERO; STREAMS],
            continued: [false; STREAMS],
            hand: 0,
            current: 0,
        }
    }

    pub(crate) const fn set_rules(&mut self, rules: Accounting) {
        self.rules = rules;
    }

    /// Charges an I/O submitted at `now`. [`Self::completes`] must follow with its completion time.
    #[inline]
    pub(crate) fn charge(&mut self, io: Io, now: Nanos) -> Charge {
        let unit = u64::from(self.rules.unit_bytes);
        let len = u64::from(io.len);
        let wanted = key(io.offset, io.op);
        let found = (0..STREAMS).fold(STREAMS, |found, n| if self.next[n] == wanted { n } else { found });
        let sequential = found < STREAMS;
        let (slot, room) = if sequential {
            self.continued[found] = true;
            (found, if self.joins(found, now) { unit - self.used[found] } else { 0 })
        } else {
            (self.give_up_one(), 0)
        };
        let fresh = len.saturating_sub(room);
        let operations = match fresh {
            0 => 0,
            _ if fresh <= unit => 1,
            _ => fresh.div_ceil(unit),
        };
        self.used[slot] = if operations == 0 { unit - room + len } else { fresh - (operations - 1) * unit };
        self.next[slot] = key(io.offset + len, io.op);
        self.current = slot;
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

    /// Notes when the I/O that was charged last completes.
    #[inline]
    pub(crate) fn completes(&mut self, at: Nanos) {
        let until = &mut self.in_flight_until[self.current];
        *until = (*until).max(at);
    }

    /// Frees a slot: of a stream that has not gone on for a while.
    #[inline]
    fn give_up_one(&mut self) -> usize {
        while self.continued[self.hand] {
            self.continued[self.hand] = false;
            self.hand = (self.hand + 1) % STREAMS;
        }
        let slot = self.hand;
        self.hand = (slot + 1) % STREAMS;
        self.in_flight_until[slot] = Nanos::ZERO;
        slot
    }
}
