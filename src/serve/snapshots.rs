//! The server's part of `ebbtide snapshot`.

use ebbtide_device::host::{HostError, Status};
use ebbtide_device::store::{BLOCK_BYTES, SnapshotInfo};
use serde_json::Value;

use super::meta::Meta;
use super::service::{Service, refuse_host, refuse_store};
use crate::answers::Deleted;
use crate::snapshot::SnapshotCreate;
use crate::text;
use crate::volume::view::SnapshotView;

impl Service {
    /// `snapshot create`
    pub(super) fn snapshot(&self, args: &SnapshotCreate) -> anyhow::Result<Value> {
        let store = self.host.store();
        let volume = store.volume(&args.volume).map_err(refuse_store)?;
        match self.host.status(&args.volume) {
            // Through the engine, so that the snapshot holds exactly what was answered by now.
            Status::Attached(attachment) => attachment
                .live()
                .snapshot(store, &args.name, volume.meta)
                .map_err(|error| refuse_host(error.into()))?,
            Status::Free => store.snapshot(&args.volume, &args.name, volume.meta).map_err(refuse_store)?,
            // Its cache may hold what the store does not have yet.
            Status::Busy(why) => {
                let (volume, state) = (args.volume.clone(), why.to_owned());
                return Err(refuse_host(HostError::NotFree { volume, state }));
            }
        }
        tracing::info!(snapshot = args.name, volume = args.volume, "snapshot taken");
        let taken = store.snapshots().into_iter().find(|snapshot| snapshot.name == args.name);
        Ok(serde_json::to_value(taken.as_ref().map(view))?)
    }

    /// `snapshot list`
    pub(super) fn snapshots(&self) -> anyhow::Result<Value> {
        let all: Vec<_> = self.host.store().snapshots().iter().map(view).collect();
        Ok(serde_json::to_value(all)?)
    }

    /// `snapshot delete`
    pub(super) fn delete_snapshot(&self, name: &str) -> anyhow::Result<Value> {
        self.host.store().delete_snapshot(name).map_err(refuse_store)?;
        tracing::info!(snapshot = name, "snapshot deleted");
        Ok(serde_json::to_value(Deleted { deleted: name })?)
    }
}

fn view(snapshot: &SnapshotInfo) -> SnapshotView {
    SnapshotView {
        name: snapshot.name.clone(),
        from_volume: snapshot.from_volume.clone(),
        spec: Meta::read(&snapshot.meta).map(|meta| meta.spec).unwrap_or_default(),
        size_bytes: snapshot.size_bytes,
        data_bytes: snapshot.data_blocks * BLOCK_BYTES,
        allocated_bytes: snapshot.allocated_bytes,
        created: text::timestamp(i64::try_from(snapshot.created_unix_s).unwrap_or(i64::MAX)),
        damage: snapshot.damage.as_ref().map(ToString::to_string),
    }
}
