//! Snapshots that are put together from blocks: begun, written, and completed or abandoned.
//!
//! Until it is completed, such a snapshot is a volume with [`MARK`] in front of its name, which no other volume has. Where it
//! has a parent, a snapshot of that name keeps the parent's layer: without it, that layer could be merged with the volume's
//! own after the parent is deleted, and what was written could not be told from what was there.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use serde_json::Value;

use super::entries::{Change, SnapshotEntry, VolumeEntry};
use super::layer::{Frozen, remove_files};
use super::maps::BlockKind;
use super::meta::Meta;
use super::registry::VolumeStore;
use super::shared::{check_name, check_not_below, check_size, now_unix_s};
use super::{BLOCK_BYTES, OpenVolume, SNAPSHOT_BLOCK_BYTES, StoreError, WrappedKey};

/// In front of the names of pending snapshots' volumes. A name that is given cannot begin with it.
const MARK: char = '+';

const BLOCKS_OF_ONE: u64 = SNAPSHOT_BLOCK_BYTES / BLOCK_BYTES;

/// The name of a pending snapshot's volume.
pub(super) fn hidden(name: &str) -> String {
    format!("{MARK}{name}")
}

/// The pending snapshot whose volume has this name; none of other volumes.
pub(super) fn pending_name(volume: &str) -> Option<&str> {
    volume.strip_prefix(MARK)
}

fn not_found(name: &str) -> StoreError {
    StoreError::NotFound { kind: "snapshot", name: name.to_owned() }
}

impl VolumeStore {
    /// Begins a snapshot of a disk of this size, empty or with what `parent` has, which may be deleted meanwhile. It is
    /// encrypted if the parent is, with its data key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Size`], [`StoreError::NotFound`] and
    /// [`StoreError::Damaged`] of the parent, [`StoreError::Io`].
    pub fn begin_snapshot(
        &self,
        name: &str,
        size_bytes: u64,
        parent: Option<&str>,
    ) -> Result<(), StoreError> {
        self.begin(name, size_bytes, parent, None)
    }

    /// Begins one whose blocks are encrypted with `key`, or with the parent's.
    pub(super) fn begin(
        &self,
        name: &str,
        size_bytes: u64,
        parent: Option<&str>,
        mut key: Option<WrappedKey>,
    ) -> Result<(), StoreError> {
        check_name(name)?;
        check_size(size_bytes)?;
        let inner = self.inner();
        let mut state = inner.state.lock();
        let volume = hidden(name);
        if state.manifest.snapshots().contains_key(name) || state.manifest.volumes().contains_key(&volume) {
            return Err(StoreError::Exists { kind: "snapshot", name: name.to_owned() });
        }
        let (mut change, mut below) = (Change::default(), None);
        if let Some(parent) = parent {
            let entry = state.snapshot(parent)?.clone();
            check_not_below(size_bytes, entry.size_bytes, "the snapshot")?;
            state.refuse_damaged(entry.layer)?;
            below = Some(entry.layer);
            key.clone_from(&entry.key);
            change.put_snapshot(volume.clone(), entry);
        }
        let top = change.add_layer(&state.manifest, below);
        let entry = VolumeEntry {
            size_bytes,
            meta: Value::Null.into(),
            created_unix_s: now_unix_s(),
            from_snapshot: parent.map(str::to_owned),
            from_volume: None,
            top,
            key,
        };
        change.put_volume(volume, entry);
        let empty = Frozen::create(&inner.layers_dir, top, below.is_some(), inner.options.host_sync)?;
        empty.layer.journal.lock().close_file();
        inner.commit(&mut state, change).inspect_err(|_| remove_files(&inner.layers_dir, top))?;
        state.layers.insert(top, Ok(empty));
        Ok(())
    }

    /// Opens a pending snapshot for writing. It can be completed once this is dropped.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Busy`], [`StoreError::Damaged`], [`StoreError::Io`].
    pub fn open_pending(&self, name: &str) -> Result<PendingSnapshot, StoreError> {
        let volume = self.open_volume(&hidden(name)).map_err(|error| match error {
            StoreError::NotFound { .. } => not_found(name),
            other => other,
        })?;
        Ok(PendingSnapshot { volume })
    }

    /// Makes a pending snapshot one that volumes can be made from. Nothing is copied.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Busy`] while it is open for writing, [`StoreError::Damaged`],
    /// [`StoreError::Io`].
    pub fn complete_snapshot(&self, name: &str, meta: Value) -> Result<(), StoreError> {
        self.complete(name, meta.into(), name)
    }

    pub(super) fn complete(&self, name: &str, meta: Meta, from_volume: &str) -> Result<(), StoreError> {
        let inner = self.inner();
        let state = inner.state.lock();
        let volume = hidden(name);
        let entry = state.manifest.volumes().get(&volume).ok_or_else(|| not_found(name))?.clone();
        if state.open.contains_key(&volume) {
            return Err(StoreError::Busy { name: name.to_owned() });
        }
        state.refuse_damaged(entry.top)?;
        // With nothing written, the parent's layer is this one's.
        let layer = match state.manifest.parent(entry.top) {
            Some(parent) if state.top_is_empty(&volume, entry.top) => parent,
            _ => entry.top,
        };
        let mut change = Change::default();
        change.drop_volume(&state.manifest, &volume);
        change.drop_snapshot(&state.manifest, &volume);
        let snapshot = SnapshotEntry {
            size_bytes: entry.size_bytes,
            meta,
            created_unix_s: now_unix_s(),
            from_volume: from_volume.to_owned(),
            layer,
            key: entry.key,
        };
        change.put_snapshot(name, snapshot);
        inner.commit_and_drop_layers(state, change)
    }

    /// Deletes a pending snapshot. A full host disk does not prevent it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Busy`], [`StoreError::Io`].
    pub fn abandon_snapshot(&self, name: &str) -> Result<(), StoreError> {
        let inner = self.inner();
        let state = inner.state.lock();
        let volume = hidden(name);
        if !state.manifest.volumes().contains_key(&volume) {
            return Err(not_found(name));
        }
        if state.open.contains_key(&volume) {
            return Err(StoreError::Busy { name: name.to_owned() });
        }
        let mut change = Change::default();
        change.drop_volume(&state.manifest, &volume);
        change.drop_snapshot(&state.manifest, &volume);
        inner.commit_and_drop_layers(state, change)
    }
}

/// A pending snapshot that is open for writing, in blocks of [`SNAPSHOT_BLOCK_BYTES`].
#[derive(Debug)]
pub struct PendingSnapshot {
    volume: Arc<OpenVolume>,
}

impl PendingSnapshot {
    /// Writes a block. It survives `kill -9` of this process once this returned, and with `host_sync` the host's death. The
    /// last block of a disk may be shorter.
    ///
    /// # Errors
    ///
    /// As [`OpenVolume::write_at`].
    pub fn write_block(&self, block: u64, data: &[u8]) -> io::Result<()> {
        self.volume.write_at(data, block.saturating_mul(SNAPSHOT_BLOCK_BYTES))?;
        self.volume.sync()
    }

    /// Reads a block, whether it was written or is the parent's.
    ///
    /// # Errors
    ///
    /// As [`OpenVolume::read_at`].
    pub fn read_block(&self, block: u64) -> io::Result<Vec<u8>> {
        let offset = block.saturating_mul(SNAPSHOT_BLOCK_BYTES);
        let len = self.volume.size_bytes().saturating_sub(offset).min(SNAPSHOT_BLOCK_BYTES);
        let mut data = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        self.volume.read_at(&mut data, offset)?;
        Ok(data)
    }

    /// The blocks that were written, in order; not those that only the parent has.
    pub fn written(&self) -> Vec<u64> {
        let maps = self.volume.top_maps();
        let runs = maps.runs().filter(|(_, kind)| *kind == BlockKind::Data);
        let blocks = runs.flat_map(|(run, _)| run.start / BLOCKS_OF_ONE..run.end.div_ceil(BLOCKS_OF_ONE));
        blocks.collect::<BTreeSet<_>>().into_iter().collect()
    }
}
