//! Snapshots block by block: which hold data, which differ between two snapshots, and what is in them.
//!
//! A layer's files are opened for one call, under the lock: a merge that runs may remove them, and then reads go on.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::cipher::Cipher;
use super::entries::LayerId;
use super::files::Files;
use super::layer::{Frozen, locate_in};
use super::registry::VolumeStore;
use super::shared::StoreState;
use super::{BLOCK_BYTES, SNAPSHOT_BLOCK_BYTES, StoreError};

const BLOCKS_OF_ONE: u64 = SNAPSHOT_BLOCK_BYTES / BLOCK_BYTES;

/// A block of [`SNAPSHOT_BLOCK_BYTES`] in which two snapshots differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedBlock {
    /// Its number: its offset in the disk divided by its size.
    pub index: u64,
    /// Whether it holds data in the first snapshot.
    pub in_first: bool,
    /// Whether it holds data in the second snapshot.
    pub in_second: bool,
}

/// A snapshot's layers, nearest first, and its size in blocks of 4 KiB.
struct View {
    layers: Vec<Frozen>,
    blocks: u64,
}

impl View {
    fn of(state: &StoreState, name: &str) -> Result<Self, StoreError> {
        let entry = state.snapshot(name)?;
        let blocks = entry.size_bytes / BLOCK_BYTES;
        Ok(Self { layers: state.frozen_chain(entry.layer)?, blocks })
    }

    /// The first block of 4 KiB from `from` on, below `end`, that holds data.
    fn data_from(&self, from: u64, end: u64) -> Option<u64> {
        let (mut at, end) = (from, end.min(self.blocks));
        while at < end {
            let (holder, run_end) = locate_in(&self.layers, at, end);
            if holder.is_some() {
                return Some(at);
            }
            at = run_end;
        }
        None
    }

    fn has_data(&self, index: u64) -> bool {
        self.data_from(index * BLOCKS_OF_ONE, (index + 1) * BLOCKS_OF_ONE).is_some()
    }

    fn ids(&self) -> BTreeSet<LayerId> {
        self.layers.iter().map(|frozen| frozen.layer.id).collect()
    }
}

/// The first block of 4 KiB from `from` on, below `end`, that one of the layers decides.
fn decided_from(layers: &[&Frozen], from: u64, end: u64) -> Option<u64> {
    let mut at = from;
    while at < end {
        let mut undecided_until = end;
        for frozen in layers {
            let (kind, run_end) = frozen.maps.run_at(at, undecided_until);
            if kind.is_some() {
                return Some(at);
            }
            undecided_until = run_end;
        }
        at = undecided_until;
    }
    None
}

impl VolumeStore {
    /// The blocks of [`SNAPSHOT_BLOCK_BYTES`] of a snapshot that hold data, in order: at most `most`, from `from` on. One
    /// that was written with zeroes holds data; one that was never written, or discarded, does not.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Damaged`].
    pub fn snapshot_blocks(&self, name: &str, from: u64, most: usize) -> Result<Vec<u64>, StoreError> {
        let view = View::of(&self.inner().state.lock(), name)?;
        let mut found = Vec::new();
        let mut at = from.saturating_mul(BLOCKS_OF_ONE);
        while found.len() < most {
            let Some(block) = view.data_from(at, view.blocks) else { break };
            found.push(block / BLOCKS_OF_ONE);
            at = (block / BLOCKS_OF_ONE + 1) * BLOCKS_OF_ONE;
        }
        Ok(found)
    }

    /// The blocks of [`SNAPSHOT_BLOCK_BYTES`] in which two snapshots differ, in order: at most `most`, from `from` on. What
    /// was written again with the same content differs; what holds data in neither is left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Damaged`], [`StoreError::Unrelated`].
    pub fn changed_blocks(
        &self,
        first: &str,
        second: &str,
        from: u64,
        most: usize,
    ) -> Result<Vec<ChangedBlock>, StoreError> {
        let (of_first, of_second) = {
            let state = self.inner().state.lock();
            (View::of(&state, first)?, View::of(&state, second)?)
        };
        let (ids_of_first, ids_of_second) = (of_first.ids(), of_second.ids());
        if ids_of_first.is_disjoint(&ids_of_second) {
            return Err(StoreError::Unrelated { first: first.to_owned(), second: second.to_owned() });
        }
        let only_first = of_first.layers.iter().filter(|frozen| !ids_of_second.contains(&frozen.layer.id));
        let only_second = of_second.layers.iter().filter(|frozen| !ids_of_first.contains(&frozen.layer.id));
        let own: Vec<&Frozen> = only_first.chain(only_second).collect();
        let end = of_first.blocks.max(of_second.blocks);
        let mut changed = Vec::new();
        let mut at = from.saturating_mul(BLOCKS_OF_ONE);
        while changed.len() < most {
            let Some(block) = decided_from(&own, at, end) else { break };
            let index = block / BLOCKS_OF_ONE;
            let (in_first, in_second) = (of_first.has_data(index), of_second.has_data(index));
            if in_first || in_second {
                changed.push(ChangedBlock { index, in_first, in_second });
            }
            at = (index + 1) * BLOCKS_OF_ONE;
        }
        Ok(changed)
    }

    /// Reads a block of [`SNAPSHOT_BLOCK_BYTES`] of a snapshot. What was never written, or is beyond the end of the last
    /// block, reads as zeroes.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Damaged`], [`StoreError::Key`], [`StoreError::Io`].
    pub fn read_snapshot_block(&self, name: &str, index: u64) -> Result<Vec<u8>, StoreError> {
        let key = self.inner().state.lock().snapshot(name)?.key.clone();
        let cipher = key.map(|key| self.cipher(name, &key)).transpose()?;
        let start = index.saturating_mul(BLOCKS_OF_ONE);
        let mut pieces = Vec::new();
        {
            let state = self.inner().state.lock();
            let view = View::of(&state, name)?;
            let (mut at, end) = (start, start.saturating_add(BLOCKS_OF_ONE).min(view.blocks));
            while at < end {
                let (holder, run_end) = locate_in(&view.layers, at, end);
                if let Some(layer) = holder {
                    let files = Files::new(&layer.dir, layer.id);
                    files.open_existing()?;
                    pieces.push((files, at..run_end));
                }
                at = run_end;
            }
        }
        let place = |offset: u64| usize::try_from((offset - start) * BLOCK_BYTES).map_err(io::Error::other);
        let mut data = vec![0; place(start.saturating_add(BLOCKS_OF_ONE)).unwrap_or_default()];
        let read = pieces.into_iter().try_for_each(|(files, blocks)| {
            let (from, to) = (place(blocks.start)?, place(blocks.end)?);
            files.read_at(&mut data[from..to], blocks.start * BLOCK_BYTES)?;
            let decrypt =
                |cipher: &Arc<Cipher>| cipher.decrypt(&mut data[from..to], blocks.start * BLOCK_BYTES);
            cipher.as_ref().map_or(Ok(()), decrypt)
        });
        read.map_err(StoreError::io("read a snapshot in", self.inner().layers_dir.path()))?;
        Ok(data)
    }
}
