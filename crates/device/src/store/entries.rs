//! What the manifest has of layers, volumes and snapshots, as its file and the log of its changes keep it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::meta::Meta;
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

/// The entries of a manifest.
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
    pub(super) meta: Meta,
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
    pub(super) meta: Meta,
    pub(super) created_unix_s: u64,
    pub(super) from_volume: String,
    pub(super) layer: LayerId,
    /// The key of its data; none of plain data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<WrappedKey>,
}

/// A change of them: what is put (the entry) and dropped (`None`), all at once. It is also the form in which the log keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// The number of the next layer, where layers are new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next_layer: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) layers: BTreeMap<LayerId, Option<LayerEntry>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) volumes: BTreeMap<String, Option<VolumeEntry>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) snapshots: BTreeMap<String, Option<SnapshotEntry>>,
}

/// A map in as little memory as it takes.
pub(super) fn packed<K: Ord, V>(map: BTreeMap<K, V>) -> BTreeMap<K, V> {
    map.into_iter().collect()
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

    /// The layer below.
    pub(super) fn parent(&self, id: LayerId) -> Option<LayerId> {
        self.layers.get(&id).and_then(|l| l.parent)
    }

    /// The same in as little memory as it takes: maps that were filled in the order of their keys are half empty.
    pub(super) fn packed(self) -> Self {
        Self {
            next_layer: self.next_layer,
            layers: packed(self.layers),
            volumes: packed(self.volumes),
            snapshots: packed(self.snapshots),
        }
    }

    /// What contradicts itself, if anything does. Sets, as a search for each entry takes seconds with 10,000 of them.
    pub(super) fn inconsistency(&self) -> Option<String> {
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
        // A layer is put on an earlier one, so that the way down ends.
        if self.layers.iter().all(|(id, layer)| layer.parent.is_none_or(|parent| parent < *id)) {
            return None;
        }
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
