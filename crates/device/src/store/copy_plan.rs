//! Clones and snapshots of several volumes as one change of the manifest: all of them or none.

use serde_json::Value;

use super::StoreError;
use super::entries::{Change, LayerId, SnapshotEntry, VolumeEntry};
use super::layer::{Frozen, remove_files};
use super::shared::{StoreShared, StoreState, check_name, now_unix_s};

/// One of the volumes that [`super::VolumeStore::clone_volumes`] makes.
#[derive(Debug, Clone)]
pub struct CloneRequest<'a> {
    /// What it begins as. Several may begin as the same.
    pub source: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What is kept with it.
    pub meta: Value,
}

/// One of the snapshots that [`super::VolumeStore::take_snapshots`] takes.
#[derive(Debug, Clone)]
pub struct SnapshotRequest<'a> {
    /// The volume to copy. Several snapshots may be of the same.
    pub volume: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What is kept with it.
    pub meta: Value,
}

/// What becomes of the manifest, and which layers are new in it.
#[derive(Default)]
pub(super) struct CopyPlan<'a> {
    change: Change,
    /// Sources that get an empty layer, with the layer that is frozen by that and the new one.
    frozen: Vec<(&'a str, LayerId, LayerId)>,
    /// The clones' own layers.
    tops: Vec<LayerId>,
}

impl<'a> CopyPlan<'a> {
    /// Adds a clone of a volume as it is now.
    pub(super) fn add_clone(
        &mut self,
        state: &StoreState,
        request: &CloneRequest<'a>,
    ) -> Result<(), StoreError> {
        state.may_create_volume(request.name)?;
        if self.change.volumes.contains_key(request.name) {
            return Err(StoreError::Exists { kind: "volume", name: request.name.to_owned() });
        }
        let source = state.volume(request.source)?;
        let (size_bytes, key) = (source.size_bytes, source.key.clone());
        let layer = self.frozen_layer(state, request.source)?;
        let top = self.change.add_layer(&state.manifest, Some(layer));
        let entry = VolumeEntry {
            size_bytes,
            meta: request.meta.clone().into(),
            created_unix_s: now_unix_s(),
            from_snapshot: None,
            from_volume: Some(request.source.to_owned()),
            top,
            key,
        };
        self.change.put_volume(request.name, entry);
        self.tops.push(top);
        Ok(())
    }

    /// Adds a snapshot of a volume as it is now.
    pub(super) fn add_snapshot(
        &mut self,
        state: &StoreState,
        request: &SnapshotRequest<'a>,
    ) -> Result<(), StoreError> {
        check_name(request.name)?;
        let taken = state.manifest.snapshots().contains_key(request.name);
        if taken || self.change.snapshots.contains_key(request.name) {
            return Err(StoreError::Exists { kind: "snapshot", name: request.name.to_owned() });
        }
        let source = state.volume(request.volume)?;
        let (size_bytes, key) = (source.size_bytes, source.key.clone());
        let layer = self.frozen_layer(state, request.volume)?;
        let entry = SnapshotEntry {
            size_bytes,
            meta: request.meta.clone().into(),
            created_unix_s: now_unix_s(),
            from_volume: request.volume.to_owned(),
            layer,
            key,
        };
        self.change.put_snapshot(request.name, entry);
        Ok(())
    }

    /// A layer that will be the source as it is now.
    fn frozen_layer(&mut self, state: &StoreState, source: &'a str) -> Result<LayerId, StoreError> {
        if let Some((_, layer, _)) = self.frozen.iter().find(|(frozen, ..)| *frozen == source) {
            return Ok(*layer);
        }
        let top = state.volume(source)?.top;
        state.refuse_damaged(top)?;
        // With nothing written since the last one, that one is this one.
        if let (true, Some(parent)) = (state.top_is_empty(source, top), state.manifest.parent(top)) {
            return Ok(parent);
        }
        let empty = self.change.add_layer(&state.manifest, Some(top));
        self.change.set_top(&state.manifest, source, empty);
        self.frozen.push((source, top, empty));
        Ok(top)
    }

    pub(super) fn carry_out(self, inner: &StoreShared, state: &mut StoreState) -> Result<(), StoreError> {
        let new: Vec<_> =
            self.frozen.iter().map(|(.., empty)| *empty).chain(self.tops.iter().copied()).collect();
        let create = |id: &LayerId| Frozen::create(&inner.layers_dir, *id, true, inner.options.host_sync);
        let layers = new.iter().map(create).collect::<Result<Vec<_>, _>>();
        // First the manifest, then the writes: none may be answered in a layer that a crash would make an orphan.
        let layers = layers.and_then(|layers| inner.commit(state, self.change).map(|()| layers));
        let layers =
            layers.inspect_err(|_| new.iter().for_each(|id| remove_files(&inner.layers_dir, *id)))?;
        let mut layers = layers.into_iter();
        for ((source, old, top), empty) in self.frozen.into_iter().zip(layers.by_ref()) {
            match state.open.get(source) {
                Some(core) => {
                    let frozen = core.freeze(empty);
                    state.layers.insert(old, Ok(frozen));
                }
                None => {
                    empty.layer.journal.lock().close_file();
                    state.layers.insert(top, Ok(empty));
                }
            }
        }
        for (top, empty) in self.tops.into_iter().zip(layers) {
            empty.layer.journal.lock().close_file();
            state.layers.insert(top, Ok(empty));
        }
        Ok(())
    }
}
