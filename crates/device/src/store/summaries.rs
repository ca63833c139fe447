//! Volumes in short, for who looks often.

use super::entries::VolumeEntry;
use super::pending::pending_name;
use super::registry::VolumeStore;
use super::{StoreError, VolumeSummary};

impl VolumeStore {
    /// A volume, without counting what it takes as [`Self::volume`] does.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`].
    pub fn summary(&self, name: &str) -> Result<VolumeSummary, StoreError> {
        let state = self.inner().state.lock();
        let entry = state.volume(name)?.clone();
        let is_damaged = state.refuse_damaged(entry.top).is_err();
        drop(state);
        Ok(summary(name.to_owned(), entry, is_damaged))
    }

    /// All volumes by name, without counting what each takes as [`Self::volumes`] does.
    #[must_use]
    pub fn summaries(&self) -> Vec<VolumeSummary> {
        let state = self.inner().state.lock();
        let volumes = state.manifest.volumes().iter().filter(|(name, _)| pending_name(name).is_none());
        let found: Vec<(String, VolumeEntry, bool)> = volumes
            .map(|(name, entry)| (name.clone(), entry.clone(), state.refuse_damaged(entry.top).is_err()))
            .collect();
        drop(state);
        found.into_iter().map(|(name, entry, is_damaged)| summary(name, entry, is_damaged)).collect()
    }
}

/// Its text becomes a value here: without the lock.
fn summary(name: String, entry: VolumeEntry, is_damaged: bool) -> VolumeSummary {
    VolumeSummary {
        name,
        size_bytes: entry.size_bytes,
        meta: entry.meta.value(),
        created_unix_s: entry.created_unix_s,
        from_snapshot: entry.from_snapshot,
        key_id: entry.key.map(|key| key.key_id),
        is_damaged,
    }
}
