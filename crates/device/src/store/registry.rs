//! The store as a whole: which volumes and snapshots there are.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::{BlockStore, SnapshotInfo, StoreError, StoreOptions, VolumeInfo};

/// A directory of volumes and snapshots, held by one process at a time. A clone is another handle to the same store.
#[derive(Debug, Clone)]
pub struct Store {}

#[allow(unused_variables, clippy::missing_errors_doc)]
impl Store {
    /// Opens the store in `dir`, or creates it where the directory is missing or empty, and locks it to this process.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        unimplemented!()
    }
    /// Creates an empty volume.
    pub fn create_volume(&self, name: &str, size_bytes: u64, meta: Value) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Creates a volume that begins as `snapshot`, at least as large.
    pub fn create_from_snapshot(
        &self,
        name: &str,
        snapshot: &str,
        size_bytes: u64,
        meta: Value,
    ) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Creates `name` as `source` is at this moment. `source` may be open and under load.
    pub fn clone_volume(&self, source: &str, name: &str, meta: Value) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Grows a volume. An open one has its new size at once.
    pub fn resize_volume(&self, name: &str, size_bytes: u64) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Replaces what is kept with the volume.
    pub fn set_meta(&self, name: &str, meta: Value) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Deletes a volume that is not open.
    pub fn delete_volume(&self, name: &str) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// All volumes, by name.
    pub fn volumes(&self) -> Vec<VolumeInfo> {
        unimplemented!()
    }
    /// One volume.
    pub fn volume(&self, name: &str) -> Result<VolumeInfo, StoreError> {
        unimplemented!()
    }
    /// Takes a point-in-time snapshot; the volume may be open and under load.
    pub fn snapshot(&self, volume: &str, snapshot: &str, meta: Value) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Deletes a snapshot, in any order.
    pub fn delete_snapshot(&self, name: &str) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// All snapshots, by name.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        unimplemented!()
    }
    /// Opens a volume for reading and writing; closed when the last handle is dropped.
    pub fn open_volume(&self, name: &str) -> Result<Arc<BlockStore>, StoreError> {
        unimplemented!()
    }
    /// Waits until the background work (layers merged, journals rewritten) has nothing left to do.
    pub fn settle(&self) {
        unimplemented!()
    }
}
