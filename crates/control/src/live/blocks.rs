//! Snapshots block by block: put together, listed, compared and read.

use std::collections::BTreeMap;
use std::io;

use ebbtide_device::store::{PendingSnapshot, StoreError, VolumeStore};
use parking_lot::{RwLock, RwLockUpgradableReadGuard};
use serde_json::Value;

use super::LiveControl;
use crate::{BeginSnapshot, ChangedBlock, ControlError, SnapshotView};

/// The snapshots that blocks are being written to, by name. They stay open from the first block until they are completed
/// or abandoned: opening one for each block would rewrite its journal each time.
#[derive(Debug, Default)]
pub(super) struct Pending {
    open: RwLock<BTreeMap<String, PendingSnapshot>>,
}

impl Pending {
    pub(super) const fn new() -> Self {
        Self { open: RwLock::new(BTreeMap::new()) }
    }

    /// Does something with an open one, next to other callers.
    fn with<T>(
        &self,
        store: &VolumeStore,
        name: &str,
        work: impl FnOnce(&PendingSnapshot) -> io::Result<T>,
    ) -> Result<T, ControlError> {
        let failed = |error| of_io(name, error);
        if let Some(pending) = self.open.read().get(name) {
            return work(pending).map_err(failed);
        }
        let mut open = self.open.upgradable_read();
        if !open.contains_key(name) {
            let pending = store.open_pending(name)?;
            let mut writing = RwLockUpgradableReadGuard::upgrade(open);
            writing.insert(name.to_owned(), pending);
            open = parking_lot::RwLockWriteGuard::downgrade_to_upgradable(writing);
        }
        work(&open[name]).map_err(failed)
    }

    /// Closes one, and does something before it can be opened again.
    fn without<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, ControlError> {
        let mut open = self.open.write();
        open.remove(name);
        Ok(work()?)
    }

    /// Closes all.
    pub(super) fn close(&self) {
        self.open.write().clear();
    }
}

fn of_io(name: &str, source: io::Error) -> ControlError {
    StoreError::Io { action: "access the blocks of", path: name.into(), source }.into()
}

impl LiveControl {
    pub(super) fn begin(&self, request: &BeginSnapshot) -> Result<(), ControlError> {
        let BeginSnapshot { name, size_bytes, parent, key } = request;
        let store = self.host.store();
        match (key, parent) {
            (Some(key), None) => store.begin_encrypted_snapshot(name, *size_bytes, key.clone())?,
            _ => store.begin_snapshot(name, *size_bytes, parent.as_deref())?,
        }
        tracing::info!(snapshot = name, size_bytes, parent, "snapshot begun");
        Ok(())
    }

    pub(super) fn write_one(&self, name: &str, block: u64, data: &[u8]) -> Result<(), ControlError> {
        self.pending.with(self.host.store(), name, |pending| pending.write_block(block, data))
    }

    pub(super) fn written(&self, name: &str) -> Result<Vec<u64>, ControlError> {
        self.pending.with(self.host.store(), name, |pending| Ok(pending.written()))
    }

    pub(super) fn read_written(&self, name: &str, block: u64) -> Result<Vec<u8>, ControlError> {
        self.pending.with(self.host.store(), name, |pending| pending.read_block(block))
    }

    pub(super) fn complete(&self, name: &str) -> Result<SnapshotView, ControlError> {
        self.pending.without(name, || self.host.store().complete_snapshot(name, Value::Null))?;
        tracing::info!(snapshot = name, "snapshot completed");
        self.find_snapshot(name)
    }

    pub(super) fn abandon(&self, name: &str) -> Result<(), ControlError> {
        self.pending.without(name, || self.host.store().abandon_snapshot(name))?;
        tracing::info!(snapshot = name, "pending snapshot deleted");
        Ok(())
    }

    pub(super) fn changed(
        &self,
        (first, second): (&str, &str),
        from: u64,
        most: usize,
    ) -> Result<Vec<ChangedBlock>, ControlError> {
        Ok(self.host.store().changed_blocks(first, second, from, most)?)
    }
}
