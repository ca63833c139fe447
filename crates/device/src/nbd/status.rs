//! Block status: which parts of a volume are allocated, and which changed since a snapshot.

use crate::transport::nbd::wire::{chunk, chunk_head};

/// The context that every server has.
const ALLOCATION: &str = "base:allocation";

/// The start of the dirty contexts' names; the snapshot's name follows. It is the name under
/// which qemu publishes the same fact, so that its tools and libnbd's show it in words.
const DIRTY_PREFIX: &str = "qemu:dirty-bitmap:";

/// `base:allocation`: nothing is stored here.
const STATE_HOLE: u32 = 1;
/// `base:allocation`: reads as zeroes.
const STATE_ZERO: u32 = 1 << 1;
/// `qemu:dirty-bitmap`: written since the snapshot.
const STATE_DIRTY: u32 = 1;

/// The most descriptors in one chunk: 64 KiB of reply. The protocol allows 2^20; a client asks on
/// where a shorter answer ends, and in between other requests get their turn.
pub(super) const MAX_DESCRIPTORS: usize = 8 << 10;

/// What a metadata context reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContextKind {
    /// Holes and data.
    Allocation,
    /// What was written since a snapshot.
    Dirty {
        /// Its name.
        snapshot: String,
    },
}

/// A context that a connection selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Context {
    /// The number under which its chunks are sent.
    pub(super) id: u32,
    pub(super) kind: ContextKind,
}

impl ContextKind {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Allocation => ALLOCATION.to_owned(),
            Self::Dirty { snapshot } => format!("{DIRTY_PREFIX}{snapshot}"),
        }
    }

    /// The one context that a query selects, if it selects one.
    pub(super) fn parse(query: &str, is_snapshot: impl Fn(&str) -> bool) -> Option<Self> {
        if query == ALLOCATION {
            return Some(Self::Allocation);
        }
        let name = query.strip_prefix(DIRTY_PREFIX).filter(|name| is_snapshot(name))?;
        Some(Self::Dirty { snapshot: name.to_owned() })
    }

    /// The status flags of a piece of which `set` has whether it is allocated, or dirty.
    pub(super) const fn flags(&self, set: bool) -> u32 {
        match self {
            Self::Allocation if set => 0,
            Self::Allocation => STATE_HOLE | STATE_ZERO,
            Self::Dirty { .. } if set => STATE_DIRTY,
            Self::Dirty { .. } => 0,
        }
    }
}

/// Collects the descriptors of one chunk, joining neighbours of the same status.
#[derive(Debug)]
pub(super) struct Descriptors {
    list: Vec<(u32, u32)>,
    left: u32,
    max: usize,
}

impl Descriptors {
    /// For a request of `len` bytes; `one` where the client wants a single descriptor.
    pub(super) const fn new(len: u32, one: bool) -> Self {
        Self { list: Vec::new(), left: len, max: if one { 1 } else { MAX_DESCRIPTORS } }
    }

    /// Adds the next piece; `false` where no more is wanted.
    pub(super) fn add(&mut self, len: u64, flags: u32) -> bool {
        let len = u32::try_from(len).unwrap_or(u32::MAX).min(self.left);
        if len == 0 {
            return self.left > 0;
        }
        let full = self.list.len() == self.max;
        match self.list.last_mut() {
            Some((last, same)) if *same == flags => *last += len,
            _ if full => return false,
            _ => self.list.push((len, flags)),
        }
        self.left -= len;
        self.left > 0
    }

    /// Appends the chunk.
    pub(super) fn encode(&self, out: &mut Vec<u8>, cookie: u64, id: u32, done: bool) {
        let len = u32::try_from(4 + 8 * self.list.len()).expect("the descriptors are bounded");
        out.extend_from_slice(&chunk_head(cookie, chunk::BLOCK_STATUS, done, len));
        out.extend_from_slice(&id.to_be_bytes());
        for (len, flags) in &self.list {
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(&flags.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_status_become_one_descriptor_and_the_request_bounds_them() {
        let mut descriptors = Descriptors::new(100, false);
        assert!(descriptors.add(10, 0));
        assert!(descriptors.add(20, 0));
        assert!(descriptors.add(0, 3));
        assert!(descriptors.add(30, 3));
        assert!(!descriptors.add(u64::MAX, 0));
        assert_eq!(descriptors.list, [(30, 0), (30, 3), (40, 0)]);
    }

    #[test]
    fn a_client_that_wants_one_descriptor_gets_one() {
        let mut descriptors = Descriptors::new(100, true);
        assert!(descriptors.add(10, 0));
        assert!(descriptors.add(10, 0));
        assert!(!descriptors.add(30, 3));
        assert_eq!(descriptors.list, [(20, 0)]);
    }

    #[test]
    fn a_reply_is_bounded_however_broken_up_the_volume_is() {
        let mut descriptors = Descriptors::new(u32::MAX, false);
        let taken = (0..).take_while(|piece| descriptors.add(4096, piece % 2)).count();
        assert_eq!((taken, descriptors.list.len()), (MAX_DESCRIPTORS, MAX_DESCRIPTORS));
    }

    #[test]
    fn a_chunk_is_laid_out_as_the_protocol_defines() {
        let mut descriptors = Descriptors::new(4096, false);
        descriptors.add(4096, ContextKind::Allocation.flags(false));
        let mut out = Vec::new();
        descriptors.encode(&mut out, 1, 5, true);
        assert_eq!(out.len(), 20 + 12);
        assert_eq!(out[4..8], [0, 1, 0, 5]);
        assert_eq!(out[20..], [0, 0, 0, 5, 0, 0, 16, 0, 0, 0, 0, 3]);
    }
}
