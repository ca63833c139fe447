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

#[derive(Debug, Clone, Copy)]
struct Stream {
    op: Op,
    next_offset: u64,
    /// Bytes of the last unit that are used; the unit is full at `unit_bytes`.
    used: u64,
    /// When the I/O that last extended the stream completes.
    in_flight_until: Nanos,
    last_use: u64,
}

/// Follows the streams of one volume.
#[derive(Debug, Clone)]
pub(crate) struct Accountant {
    rules: Accounting,
    streams: [Option<Stream>; STREAMS],
    uses: u64,
}

impl Accountant {
    pub(crate) fn new(rules: Accounting) -> Self {
        Self { rules, streams: [None; STREAMS], uses: 0 }
    }

    pub(crate) fn set_rules(&mut self, rules: Accounting) {
        self.rules = rules;
    }

    /// Charges an I/O submitted at `now`. [`Self::completes`] must follow with its completion time.
    pub(crate) fn charge(&mut self, io: Io, now: Nanos) -> Charge {
        self.uses += 1;
        let unit = u64::from(self.rules.unit_bytes);
        let len = u64::from(io.len);
        let slot = self.slot_for(io);
        let continued =
            self.streams[slot].filter(|stream| stream.op == io.op && stream.next_offset == io.offset);
        let joins = continued.is_some_and(|stream| match self.rules.merge {
            Merge::Never => false,
            Merge::InFlight => now < stream.in_flight_until,
            Merge::Contiguous => true,
        });
        let room = continued.filter(|_| joins).map_or(0, |stream| unit - stream.used);
        let fresh = len.saturating_sub(room);
        let operations = fresh.div_ceil(unit);
        let used = if operations == 0 { unit - room + len } else { fresh - (operations - 1) * unit };
        self.streams[slot] = Some(Stream {
            op: io.op,
            next_offset: io.offset + len,
            used,
            in_flight_until: continued.map_or(Nanos::ZERO, |stream| stream.in_flight_until),
            last_use: self.uses,
        });
        let bytes = if self.rules.whole_units { operations * unit } else { len };
        Charge { operations, bytes, sequential: continued.is_some() }
    }

    /// Notes when the I/O that was charged last completes.
    pub(crate) fn completes(&mut self, at: Nanos) {
        let uses = self.uses;
        if let Some(stream) = self.streams.iter_mut().flatten().find(|s| s.last_use == uses) {
            stream.in_flight_until = stream.in_flight_until.max(at);
        }
    }

    /// The stream that the I/O continues, or the one to give up for it.
    fn slot_for(&self, io: Io) -> usize {
        let continued = self
            .streams
            .iter()
            .position(|stream| stream.is_some_and(|s| s.op == io.op && s.next_offset == io.offset));
        continued.unwrap_or_else(|| {
            let oldest = self.streams.iter().enumerate().min_by_key(|(_, s)| s.map_or(0, |s| s.last_use));
            oldest.map_or(0, |(slot, _)| slot)
        })
    }
}
