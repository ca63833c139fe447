//! Clones: volumes that begin as others are.

use serde_json::Value;

use super::StoreError;
use super::copy_plan::{CloneRequest, CopyPlan};
use super::registry::VolumeStore;

impl VolumeStore {
    /// Creates `name` as `source` is at this moment. `source` may be open and under load, which goes on.
    ///
    /// # Errors
    ///
    /// As [`Self::create_volume`], and [`StoreError::NotFound`] and [`StoreError::Damaged`] of the source.
    pub fn clone_volume(&self, source: &str, name: &str, meta: Value) -> Result<(), StoreError> {
        self.clone_volumes(&[CloneRequest { source, name, meta }])
    }

    /// Creates several clones, all of them or none. They are of one moment only where the caller keeps writes to the
    /// sources from being answered meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Self::clone_volume`].
    pub fn clone_volumes(&self, requests: &[CloneRequest<'_>]) -> Result<(), StoreError> {
        let inner = self.inner();
        let mut state = inner.state.lock();
        let mut plan = CopyPlan::default();
        requests.iter().try_for_each(|request| plan.add_clone(&state, request))?;
        plan.carry_out(inner, &mut state)
    }
}
