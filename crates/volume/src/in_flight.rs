//! I/O in flight, in the order in which it completes.

use alloc::collections::VecDeque;

use crate::{Nanos, Op};

/// One I/O that has been granted and has not completed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    pub(crate) completes: Nanos,
    pub(crate) submitted: Nanos,
    pub(crate) op: Op,
    pub(crate) len: u32,
}

/// A sorted queue. A throttled volume completes I/O in the order in which it took it, so nearly every
/// insertion is at the end; elsewhere few entries have to move.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlightQueue(VecDeque<InFlight>);

impl InFlightQueue {
    #[inline]
    pub(crate) fn insert(&mut self, io: InFlight) {
        if self.0.back().is_none_or(|last| last.completes <= io.completes) {
            self.0.push_back(io);
        } else {
            let place = self.0.partition_point(|other| other.completes <= io.completes);
            self.0.insert(place, io);
        }
    }

    /// Takes the next I/O out if it has completed by `now`.
    #[inline]
    pub(crate) fn pop_completed(&mut self, now: Nanos) -> Option<InFlight> {
        self.0.front().filter(|next| next.completes <= now)?;
        self.0.pop_front()
    }

    pub(crate) fn next_completion(&self) -> Option<Nanos> {
        self.0.front().map(|next| next.completes)
    }
}
