//! Snapshots: taken, copied, looked at, and the names of everything.

use serde_json::Value;

use super::copy_plan::{CopyPlan, SnapshotRequest};
use super::entries::Change;
use super::pending::pending_name;
use super::registry::VolumeStore;
use super::shared::check_name;
use super::usage::Usage;
use super::{SnapshotInfo, StoreError};

/// The names in a store, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreNames {
    /// Of the volumes.
    pub volumes: Vec<String>,
    /// Of the snapshots.
    pub snapshots: Vec<String>,
    /// Of the snapshots that are being put together from blocks.
    pub pending: Vec<String>,
}

impl VolumeStore {
    /// Takes a point-in-time snapshot of a volume, which may be open and under load. Every write that was answered before
    /// the call is in it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::NotFound`], [`StoreError::Damaged`],
    /// [`StoreError::Io`]. The volume goes on as it was.
    pub fn snapshot(&self, volume: &str, snapshot: &str, meta: Value) -> Result<(), StoreError> {
        self.take_snapshots(&[SnapshotRequest { volume, name: snapshot, meta }])
    }

    /// Takes several snapshots, all of them or none. They are of one moment only where the caller keeps writes to the
    /// volumes from being answered meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Self::snapshot`].
    pub fn take_snapshots(&self, requests: &[SnapshotRequest<'_>]) -> Result<(), StoreError> {
        let inner = self.inner();
        let mut state = inner.state.lock();
        let mut plan = CopyPlan::default();
        requests.iter().try_for_each(|request| plan.add_snapshot(&state, request))?;
        plan.carry_out(inner, &mut state)
    }

    /// Gives a snapshot a second name: a snapshot of its own with the same content, which takes no space.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::NotFound`], [`StoreError::Io`].
    pub fn copy_snapshot(&self, snapshot: &str, name: &str) -> Result<(), StoreError> {
        check_name(name)?;
        let inner = self.inner();
        let mut state = inner.state.lock();
        if state.manifest.snapshots().contains_key(name) {
            return Err(StoreError::Exists { kind: "snapshot", name: name.to_owned() });
        }
        let entry = state.snapshot(snapshot)?.clone();
        let mut change = Change::default();
        change.put_snapshot(name, entry);
        inner.commit(&mut state, change)
    }

    /// One snapshot. What the others hold is not counted, as [`Self::snapshots`] does.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`].
    pub fn snapshot_info(&self, name: &str) -> Result<SnapshotInfo, StoreError> {
        let state = self.inner().state.lock();
        let entry = state.snapshot(name)?.clone();
        let usage = Usage::gather(state, entry.layer);
        Ok(SnapshotInfo {
            name: name.to_owned(),
            size_bytes: entry.size_bytes,
            meta: entry.meta.value(),
            created_unix_s: entry.created_unix_s,
            from_volume: entry.from_volume,
            allocated_bytes: usage.allocated(true),
            data_blocks: usage.data_blocks(),
            layers: usage.layers,
            key_id: entry.key.map(|key| key.key_id),
            damage: usage.damage,
        })
    }

    /// All snapshots, by name.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        let names = self.names().snapshots;
        names.iter().filter_map(|name| self.snapshot_info(name).ok()).collect()
    }

    /// The names of all volumes and snapshots. Nothing is counted.
    pub fn names(&self) -> StoreNames {
        let state = self.inner().state.lock();
        let plain = |name: &&String| pending_name(name).is_none();
        let (volumes, snapshots) = (state.manifest.volumes(), state.manifest.snapshots());
        StoreNames {
            volumes: volumes.keys().filter(plain).cloned().collect(),
            snapshots: snapshots.keys().filter(plain).cloned().collect(),
            pending: volumes.keys().filter_map(|name| pending_name(name)).map(str::to_owned).collect(),
        }
    }
}
