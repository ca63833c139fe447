//! One open volume.

use std::io;

use super::{Extent, StoreError};

/// An open volume. All operations may be called from any number of threads.
#[derive(Debug)]
pub struct BlockStore {}

#[allow(unused_variables, clippy::missing_errors_doc)]
impl BlockStore {
    /// Size, bytes.
    pub fn size_bytes(&self) -> u64 {
        unimplemented!()
    }
    /// Fills `buf` from `offset`, any range inside the volume. What was never written reads as zeroes.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        unimplemented!()
    }
    /// Writes `buf` at `offset`, any range inside the volume. Survives `kill -9` once it returned.
    pub fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        unimplemented!()
    }
    /// Makes the range read as zeroes; whole blocks free their host space.
    pub fn write_zeroes(&self, offset: u64, len: u64) -> io::Result<()> {
        unimplemented!()
    }
    /// Frees the whole blocks inside the range, which read as zeroes from then on; its ragged ends stay as they are.
    pub fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        unimplemented!()
    }
    /// Puts every answered write on the host's disk when the store was opened with `host_sync`; otherwise nothing.
    pub fn sync(&self) -> io::Result<()> {
        unimplemented!()
    }
    /// What holds data and what does not, in order and without gaps, neighbours of one kind joined.
    pub fn extents(&self, offset: u64, len: u64) -> Vec<Extent> {
        unimplemented!()
    }
    /// What changed since `snapshot`, which must be an ancestor, in order and without gaps.
    pub fn dirty_since(&self, snapshot: &str, offset: u64, len: u64) -> Result<Vec<Extent>, StoreError> {
        unimplemented!()
    }
}
