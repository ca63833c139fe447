//! All volumes in short, for who looks often.

use super::VolumeSummary;
use super::meta::Meta;
use super::pending::pending_name;
use super::registry::VolumeStore;

impl VolumeStore {
    /// All volumes by name, without counting what each takes as [`Self::volumes`] does.
    pub fn summaries(&self) -> Vec<VolumeSummary> {
        let state = self.inner().state.lock();
        let volumes = state.manifest.volumes().iter().filter(|(name, _)| pending_name(name).is_none());
        let found: Vec<(String, u64, Meta, bool)> = volumes
            .map(|(name, entry)| {
                let is_damaged = state.refuse_damaged(entry.top).is_err();
                (name.clone(), entry.size_bytes, entry.meta.clone(), is_damaged)
            })
            .collect();
        drop(state);
        // Texts become values without the lock.
        let summaries = found.into_iter().map(|(name, size_bytes, meta, is_damaged)| VolumeSummary {
            name,
            size_bytes,
            meta: meta.value(),
            is_damaged,
        });
        summaries.collect()
    }
}
