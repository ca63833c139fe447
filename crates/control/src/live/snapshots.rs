//! Snapshots.

use ebbtide_device::host::Status;
use ebbtide_device::store::{BLOCK_BYTES, SnapshotInfo, StoreError};

use super::{LiveControl, occupancy};
use crate::record::VolumeRecord;
use crate::state::{Operation, VolumeState};
use crate::{ControlError, CreateSnapshot, SnapshotView, UnixTime};

impl LiveControl {
    /// Copies a volume as it is now.
    pub(super) fn snapshot(&self, request: &CreateSnapshot) -> Result<SnapshotView, ControlError> {
        let store = self.host.store();
        let (name, volume) = (&request.name, &request.volume);
        let info = store.volume(volume)?;
        let status = self.host.status(volume);
        VolumeState::of(&info, occupancy(&status)).permits(Operation::Snapshot)?;
        match status {
            // Through the engine, so that the snapshot holds exactly what was answered by now.
            Status::Attached(attachment) => attachment.live().snapshot(store, name, info.meta)?,
            // Nothing is in flight, and no cache holds what the store does not have.
            Status::Free | Status::Busy(_) => store.snapshot(volume, name, info.meta)?,
        }
        tracing::info!(snapshot = name, volume, "snapshot taken");
        let taken = store.snapshots().into_iter().find(|snapshot| snapshot.name == *name);
        let deleted = || StoreError::NotFound { kind: "snapshot", name: name.clone() };
        Ok(view(&taken.ok_or_else(deleted)?))
    }
}

/// What is known of a snapshot.
pub(super) fn view(snapshot: &SnapshotInfo) -> SnapshotView {
    SnapshotView {
        name: snapshot.name.clone(),
        from_volume: snapshot.from_volume.clone(),
        spec: VolumeRecord::read(&snapshot.meta).map(|record| record.spec).unwrap_or_default(),
        size_bytes: snapshot.size_bytes,
        data_bytes: snapshot.data_blocks * BLOCK_BYTES,
        allocated_bytes: snapshot.allocated_bytes,
        created: UnixTime::of_seconds(snapshot.created_unix_s),
        damage: snapshot.damage.as_ref().map(ToString::to_string),
    }
}
