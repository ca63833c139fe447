//! A request in flight, in the order in which requests are due.

use std::cmp::Ordering;

use ebbtide_volume::Nanos;

use super::Done;
use crate::request::{Buffer, Command, Reply, Request};

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(super) due: Nanos,
    pub(super) arrived: Nanos,
    /// Whether the model has it wait.
    pub(super) waits: bool,
    pub(super) sequence: u64,
    pub(super) command: Command,
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) fua: bool,
    /// What a write brings or a read takes home.
    pub(super) data: Option<Buffer>,
    /// What is already known about its end.
    pub(super) fate: Done,
    pub(super) reply: Reply,
}

impl Pending {
    /// A request that has just come and that the model has not seen.
    pub(super) fn arriving(request: Request, arrived: Nanos) -> Self {
        let Request { command, offset, len, fua, data, reply } = request;
        Self {
            due: arrived,
            arrived,
            waits: false,
            sequence: 0,
            command,
            offset,
            len,
            fua,
            data,
            fate: Ok(()),
            reply,
        }
    }

    fn key(&self) -> (Nanos, u64) {
        (self.due, self.sequence)
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Pending {}
impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Pending {
    /// The greatest is the one that is due first, as the heap wants it.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
