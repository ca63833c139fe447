//! The manifest: which volumes, snapshots and layers there are. `manifest_file.rs` has its file, `change_log.rs` that of
//! its changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::change::Change;
use super::uses::Uses;
use super::{BLOCK_BYTES, MAX_VOLUME_BYTES, WrappedKey};

/// Number of a layer; never used twice in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct LayerId(pub(super) u64);

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// All names, and which layer is on top of which. Only [`Self::apply`] changes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Manifest {
    entries: Entries,
    uses: Uses,
}

/// What the file has of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Entries {
    pub(super) next_layer: u64,
    pub(super) layers: BTreeMap<LayerId, LayerEntry>,
    pub(super) volumes: BTreeMap<String, VolumeEntry>,
    pub(super) snapshots: BTreeMap<String, SnapshotEntry>,
}

/// A layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayerEntry {
    pub(super) parent: Option<LayerId>,
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VolumeEntry {
    pub(super) size_bytes: u64,
    pub(super) meta: Value,
    pub(super) created_unix_s: u64,
    pub(super) from_snapshot: Option<String>,
    pub(super) from_volume: Option<String>,
    pub(super) top: LayerId,
    /// The key of its data; none of plain data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<WrappedKey>,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotEntry {
    pub(super) size_bytes: u64,
    pub(super) meta: Value,
    pub(super) created_unix_s: u64,
    pub(super) from_volume: String,
    pub(super) layer: LayerId,
    /// The key of its data; none of plain data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<WrappedKey>,
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
        Ok(Self { entries, uses })
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

impl Entries {
    /// Makes a change.
    pub(super) fn apply(&mut self, change: Change) {
        fn put<K: Ord, V>(entries: &mut BTreeMap<K, V>, changes: BTreeMap<K, Option<V>>) {
            for (key, entry) in changes {
                match entry {
                    Some(entry) => drop(entries.insert(key, entry)),
                    None => drop(entries.remove(&key)),
                }
            }
        }
        self.next_layer = change.next_layer.unwrap_or(self.next_layer);
        put(&mut self.layers, change.layers);
        put(&mut self.volumes, change.volumes);
        put(&mut self.snapshots, change.snapshots);
    }

    fn parent(&self, id: LayerId) -> Option<LayerId> {
        self.layers.get(&id).and_then(|l| l.parent)
    }

    /// What contradicts itself, if anything does. Sets, as a search for each entry takes seconds with 10,000 of them.
    fn inconsistency(&self) -> Option<String> {
        for (id, layer) in &self.layers {
            if id.0 >= self.next_layer {
                return Some(format!("layer {id} is not below the next number {}", self.next_layer));
            }
            if let Some(parent) = layer.parent.filter(|p| !self.layers.contains_key(p)) {
                return Some(format!("layer {id} is on top of layer {parent}, which is not listed"));
            }
        }
        if let Some(id) = self.looped() {
            return Some(format!("layer {id} is on top of itself"));
        }
        // Layers that a volume cannot write to.
        let parents: BTreeSet<LayerId> = self.layers.values().filter_map(|layer| layer.parent).collect();
        let of_snapshots: BTreeSet<LayerId> =
            self.snapshots.values().map(|snapshot| snapshot.layer).collect();
        let mut tops = BTreeSet::new();
        for (name, volume) in &self.volumes {
            let top = volume.top;
            if !self.layers.contains_key(&top) {
                return Some(format!("volume {name} writes to layer {top}, which is not listed"));
            }
            if !tops.insert(top) || of_snapshots.contains(&top) || parents.contains(&top) {
                return Some(format!("layer {top}, which volume {name} writes to, is shared"));
            }
            if volume.size_bytes == 0
                || volume.size_bytes > MAX_VOLUME_BYTES
                || volume.size_bytes % BLOCK_BYTES != 0
            {
                return Some(format!("volume {name} has a size of {} bytes", volume.size_bytes));
            }
        }
        let lost = self.snapshots.iter().find(|(_, s)| !self.layers.contains_key(&s.layer));
        lost.map(|(name, s)| format!("snapshot {name} is layer {}, which is not listed", s.layer))
    }

    /// A layer from which no way down ends, if there is one. No layer is gone through twice.
    fn looped(&self) -> Option<LayerId> {
        let mut ended = BTreeSet::new();
        for id in self.layers.keys() {
            let mut way = BTreeSet::new();
            let mut at = Some(*id);
            while let Some(layer) = at.filter(|layer| !ended.contains(layer)) {
                if !way.insert(layer) {
                    return Some(*id);
                }
                at = self.parent(layer);
            }
            ended.append(&mut way);
        }
        None
    }
}
