//! Snapshots.

use ebbtide_device::engine::snapshots_at_once;
use ebbtide_device::host::{SavedLoading, Status};
use ebbtide_device::store::{BLOCK_BYTES, SnapshotInfo, SnapshotRequest};

use super::{LiveControl, occupancy};
use crate::record::VolumeRecord;
use crate::state::{Operation, VolumeState};
use crate::{ControlError, CreateSnapshot, SnapshotView, UnixTime};

impl LiveControl {
    /// Copies volumes as they are now, at one instant, all of them or none.
    pub(super) fn take_snapshots(
        &self,
        requests: &[CreateSnapshot],
    ) -> Result<Vec<SnapshotView>, ControlError> {
        let store = self.host.store();
        let mut attached = Vec::new();
        let mut asked = Vec::new();
        let named = |request: &CreateSnapshot| CreateSnapshot {
            volume: self.name_of(&request.volume).into_owned(),
            ..request.clone()
        };
        let requests: Vec<_> = requests.iter().map(named).collect();
        for CreateSnapshot { name, volume } in &requests {
            let mut info = store.volume(volume)?;
            // The snapshot is whole, however much of the volume is loaded.
            SavedLoading::write(None, &mut info.meta);
            let status = self.host.status(volume);
            VolumeState::of(&info, occupancy(&status)).permits(Operation::Snapshot)?;
            asked.push(SnapshotRequest { volume, name, meta: info.meta });
            // Of the others nothing is in flight, and no cache holds what the store does not have.
            if let Status::Attached(attachment) = status {
                attached.push(attachment);
            }
        }
        // Through the engines, so that the snapshots hold exactly what was answered by now.
        let live: Vec<_> = attached.iter().map(|attachment| &**attachment.live()).collect();
        snapshots_at_once(store, &live, &asked)?;
        for CreateSnapshot { name, volume } in &requests {
            tracing::info!(snapshot = name, volume, "snapshot taken");
        }
        requests.iter().map(|request| self.find_snapshot(&request.name)).collect()
    }

    /// One snapshot.
    pub(super) fn find_snapshot(&self, name: &str) -> Result<SnapshotView, ControlError> {
        Ok(view(&self.host.store().snapshot_info(name)?))
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
        key_id: snapshot.key_id.clone(),
        created: UnixTime::of_seconds(snapshot.created_unix_s),
        damage: snapshot.damage.as_ref().map(ToString::to_string),
    }
}
