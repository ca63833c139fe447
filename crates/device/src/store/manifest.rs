//! The manifest: which volumes, snapshots and layers there are. `manifest_file.rs` has its file, `change_log.rs` that of
//! its changes.

use std::collections::BTreeMap;

use super::entries::{Change, Entries, LayerEntry, LayerId, SnapshotEntry, VolumeEntry};
use super::uses::Uses;

/// All names, and which layer is on top of which. Only [`Self::apply`] changes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Manifest {
    entries: Entries,
    uses: Uses,
}

impl Manifest {
    /// The manifest of a new store.
    pub(super) fn empty() -> Self {
        Self { entries: Entries { next_layer: 1, ..Entries::default() }, uses: Uses::default() }
    }

    /// The manifest of these entries, or what contradicts itself in them.
    pub(super) fn of(entries: Entries) -> Result<Self, String> {
        if let Some(what) = entries.inconsistency() {
            return Err(what);
        }
        let mut uses = Uses::default();
        for (id, layer) in &entries.layers {
            if let Some(parent) = layer.parent {
                uses.change(parent, |uses| uses.children.insert(*id));
            }
        }
        for (name, volume) in &entries.volumes {
            uses.change(volume.top, |uses| uses.volume = Some(name.clone()));
        }
        for (name, snapshot) in &entries.snapshots {
            uses.change(snapshot.layer, |uses| uses.snapshots.insert(name.clone()));
        }
        Ok(Self { entries: entries.packed(), uses: uses.packed() })
    }

    /// Makes a change.
    pub(super) fn apply(&mut self, change: Change) {
        let (entries, uses) = (&self.entries, &mut self.uses);
        for (id, layer) in &change.layers {
            if let Some(parent) = entries.layers.get(id).and_then(|old| old.parent) {
                uses.change(parent, |uses| uses.children.remove(id));
            }
            if let Some(parent) = layer.as_ref().and_then(|layer| layer.parent) {
                uses.change(parent, |uses| uses.children.insert(*id));
            }
        }
        // First all that goes: a layer may go from one volume to another.
        for name in change.volumes.keys() {
            if let Some(old) = entries.volumes.get(name) {
                uses.change(old.top, |uses| uses.volume = None);
            }
        }
        for (name, volume) in &change.volumes {
            if let Some(volume) = volume {
                uses.change(volume.top, |uses| uses.volume = Some(name.clone()));
            }
        }
        for (name, snapshot) in &change.snapshots {
            if let Some(old) = entries.snapshots.get(name) {
                uses.change(old.layer, |uses| uses.snapshots.remove(name));
            }
            if let Some(snapshot) = snapshot {
                uses.change(snapshot.layer, |uses| uses.snapshots.insert(name.clone()));
            }
        }
        self.entries.apply(change);
    }

    /// What the file has of it.
    pub(super) const fn entries(&self) -> &Entries {
        &self.entries
    }

    /// The number of the next layer.
    pub(super) const fn next_layer(&self) -> u64 {
        self.entries.next_layer
    }

    /// The layers.
    pub(super) const fn layers(&self) -> &BTreeMap<LayerId, LayerEntry> {
        &self.entries.layers
    }

    /// The volumes, by name.
    pub(super) const fn volumes(&self) -> &BTreeMap<String, VolumeEntry> {
        &self.entries.volumes
    }

    /// The snapshots, by name.
    pub(super) const fn snapshots(&self) -> &BTreeMap<String, SnapshotEntry> {
        &self.entries.snapshots
    }

    /// The layer below.
    pub(super) fn parent(&self, id: LayerId) -> Option<LayerId> {
        self.entries.parent(id)
    }

    /// A layer and all below it, nearest first.
    pub(super) fn chain(&self, top: LayerId) -> Vec<LayerId> {
        std::iter::successors(Some(top), |id| self.parent(*id)).collect()
    }

    /// Of a layer and all below it, nearest first: whether nothing else needs them.
    pub(super) fn owned(&self, top: LayerId) -> Vec<bool> {
        let mut own = true;
        let owned = |id: LayerId| {
            if id != top {
                own &= self.uses.only_children().contains_key(&id);
            }
            own
        };
        self.chain(top).into_iter().map(owned).collect()
    }

    /// Layers directly above.
    pub(super) fn children(&self, id: LayerId) -> impl Iterator<Item = LayerId> + '_ {
        self.uses.of(id).into_iter().flat_map(|uses| uses.children.iter().copied())
    }

    /// The layers that only one other needs, with that one.
    pub(super) const fn only_children(&self) -> &BTreeMap<LayerId, LayerId> {
        self.uses.only_children()
    }

    /// Whether a volume writes to this layer; gives its name.
    pub(super) fn volume_on(&self, id: LayerId) -> Option<&str> {
        self.uses.of(id)?.volume.as_deref()
    }

    /// The snapshots that name this layer.
    pub(super) fn snapshots_of(&self, id: LayerId) -> impl Iterator<Item = &str> {
        self.uses.of(id).into_iter().flat_map(|uses| uses.snapshots.iter().map(String::as_str))
    }
}
