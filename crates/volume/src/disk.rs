//! A disk with one arm: how long it takes until the head is over the data.
//!
//! Positioning is a seek, whose time depends on how far the arm moves, and then the wait until the
//! platter has turned to the data. A drive with requests in its queue serves them in the order that
//! saves positioning. A completion is decided here when a request is submitted, so nothing can be
//! reordered afterwards. In place of that, a request is positioned from whichever request of the
//! queue it follows soonest. This gives the throughput of shortest-positioning-first; its
//! latencies spread less than a drive's, which lets single requests wait.

use alloc::collections::VecDeque;

use crate::Nanos;

/// The moving parts of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mechanics {
    /// One turn of the platter (4 ms at 15,000 rpm).
    pub turn: Nanos,
    /// The shortest seek, to a track next to this one.
    pub settle: Nanos,
    /// The longest seek, over the whole disk. Between the two a seek grows with the square root of
    /// its distance: between random places of the whole disk it takes `settle` and 8/15 of the rest.
    pub full_stroke: Nanos,
    /// Bytes of the whole disk: a volume that is smaller uses a part of the stroke.
    pub capacity_bytes: u64,
    /// Requests among which the drive chooses the next one, at least 1.
    pub queue: u16,
}

impl Mechanics {
    /// Whether such a disk can exist.
    pub(crate) fn is_possible(&self) -> bool {
        self.turn > Nanos::ZERO
            && self.capacity_bytes > 0
            && self.queue > 0
            && self.full_stroke >= self.settle
            && self.full_stroke <= LONGEST
    }

    /// The time to move the arm over so many bytes; none on one track.
    fn seek(&self, bytes: u64, track_bytes: u64) -> u64 {
        if bytes < track_bytes {
            return 0;
        }
        let share = (u128::from(bytes) << 32) / u128::from(self.capacity_bytes.max(bytes));
        let root = u64::try_from(share.isqrt()).unwrap_or(1 << 16);
        self.settle.0 + ((self.full_stroke.since(self.settle).0 * root) >> 16)
    }
}

/// No seek takes a minute: the unit would be wrong, and products of it would not fit.
const LONGEST: Nanos = Nanos(60_000_000_000);

/// A request whose data the head has not passed yet.
#[derive(Debug, Clone, Copy)]
struct Queued {
    end: u64,
    completes: Nanos,
}

/// Where the head of a disk is, and what it still has to do.
#[derive(Debug, Clone)]
pub(crate) struct Arm {
    mechanics: Mechanics,
    transfer_ps_per_byte: u32,
    /// One past the last byte that the head passed, and when it did.
    head: Queued,
    queue: VecDeque<Queued>,
}

/// A request as the arm sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Time of the electronics before the arm moves.
    pub(crate) overhead: Nanos,
    /// Whether the drive has read ahead, so that nothing moves.
    pub(crate) read_ahead: bool,
}

impl Arm {
    pub(crate) fn new(mechanics: Mechanics, transfer_ps_per_byte: u32) -> Self {
        let head = Queued { end: 0, completes: Nanos::ZERO };
        Self { mechanics, transfer_ps_per_byte, head, queue: VecDeque::new() }
    }

    /// The same arm, at the same place, on a disk that moves it otherwise.
    pub(crate) fn with(self, mechanics: Mechanics, transfer_ps_per_byte: u32) -> Self {
        Self { mechanics, transfer_ps_per_byte, ..self }
    }

    /// When a request submitted at `now` has been served.
    pub(crate) fn serve(&mut self, access: Access, now: Nanos) -> Nanos {
        while self.queue.front().is_some_and(|first| first.completes <= now) {
            self.queue.pop_front();
        }
        let completes =
            self.head.completes.max(now) + self.positioning(access, now) + self.spin(access.len.into());
        self.head = Queued { end: access.offset + u64::from(access.len), completes };
        if self.queue.len() == usize::from(self.mechanics.queue) {
            self.queue.pop_front();
        }
        self.queue.push_back(self.head);
        completes
    }

    /// The time from the end of the request before to the first byte.
    fn positioning(&self, access: Access, now: Nanos) -> Nanos {
        if access.read_ahead {
            return access.overhead;
        }
        if self.queue.is_empty() {
            return self.after(self.head, access, now.since(self.head.completes));
        }
        let ways = self.queue.iter().map(|&before| match before.end == access.offset {
            true => Nanos::ZERO,
            false => self.after(before, access, Nanos::ZERO),
        });
        ways.min().unwrap_or(access.overhead)
    }

    /// Overhead, seek and rotation from the end of `before`, over which the platter has turned for
    /// `idle` since.
    fn after(&self, before: Queued, access: Access, idle: Nanos) -> Nanos {
        let turn = self.mechanics.turn.0;
        let track_bytes = turn * 1_000 / u64::from(self.transfer_ps_per_byte.max(1));
        let seek = self.mechanics.seek(access.offset.abs_diff(before.end), track_bytes);
        let on_track = access.overhead.0 + seek;
        let passed = (self.angle(before.end) + idle.0 % turn + on_track) % turn;
        Nanos(on_track + (turn + self.angle(access.offset) - passed) % turn)
    }

    /// How far the platter turns over so many bytes, ns.
    fn spin(&self, bytes: u64) -> Nanos {
        let ps = u128::from(bytes) * u128::from(self.transfer_ps_per_byte);
        Nanos(u64::try_from(ps / 1_000).unwrap_or(u64::MAX))
    }

    /// Where on its track a byte is, as the time of the turn at which the head passes it.
    fn angle(&self, offset: u64) -> u64 {
        self.spin(offset).0 % self.mechanics.turn.0
    }
}
