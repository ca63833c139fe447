//! What a snapshot holds, without a volume of it.

use std::ops::Range;

use super::layer::locate_in;
use super::registry::VolumeStore;
use super::{BLOCK_BYTES, StoreError};

impl VolumeStore {
    /// The ranges of bytes in which a snapshot has data, in order, neighbours joined. The rest reads as zeroes.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Damaged`].
    pub fn snapshot_data(&self, name: &str) -> Result<Vec<Range<u64>>, StoreError> {
        let (chain, size_bytes) = {
            let state = self.inner().state.lock();
            let snapshot = state.snapshot(name)?;
            (state.frozen_chain(snapshot.layer)?, snapshot.size_bytes)
        };
        let (mut at, end) = (0, size_bytes / BLOCK_BYTES);
        let mut data: Vec<Range<u64>> = Vec::new();
        while at < end {
            let (holder, run_end) = locate_in(&chain, at, end);
            if holder.is_some() {
                match data.last_mut() {
                    Some(last) if last.end == at * BLOCK_BYTES => last.end = run_end * BLOCK_BYTES,
                    _ => data.push(at * BLOCK_BYTES..run_end * BLOCK_BYTES),
                }
            }
            at = run_end;
        }
        Ok(data)
    }
}
