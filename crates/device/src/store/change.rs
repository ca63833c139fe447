//! Changes of a manifest, as the operations of the store put them together.

use super::entries::{Change, LayerEntry, LayerId, SnapshotEntry, VolumeEntry};
use super::manifest::Manifest;

impl Change {
    /// The change that puts the only child of `parent` in its place: whatever named `child` names `parent` after it.
    pub(super) fn merge_child(manifest: &Manifest, parent: LayerId, child: LayerId) -> Self {
        let mut change = Self::default();
        change.layers.insert(child, None);
        for grandchild in manifest.children(child) {
            change.layers.insert(grandchild, Some(LayerEntry { parent: Some(parent) }));
        }
        if let Some(volume) = manifest.volume_on(child) {
            change.set_top(manifest, volume, parent);
        }
        for name in manifest.snapshots_of(child) {
            if let Some(entry) = manifest.snapshots().get(name) {
                change.put_snapshot(name, SnapshotEntry { layer: parent, ..entry.clone() });
            }
        }
        change
    }

    /// Adds a layer on top of `parent`.
    pub(super) fn add_layer(&mut self, manifest: &Manifest, parent: Option<LayerId>) -> LayerId {
        let id = self.next_layer.unwrap_or_else(|| manifest.next_layer());
        self.next_layer = Some(id + 1);
        self.layers.insert(LayerId(id), Some(LayerEntry { parent }));
        LayerId(id)
    }

    /// Puts a volume, in the place of one of its name.
    pub(super) fn put_volume(&mut self, name: impl Into<String>, entry: VolumeEntry) {
        self.volumes.insert(name.into(), Some(entry));
    }

    /// Puts a snapshot, in the place of one of its name.
    pub(super) fn put_snapshot(&mut self, name: impl Into<String>, entry: SnapshotEntry) {
        self.snapshots.insert(name.into(), Some(entry));
    }

    /// Drops a volume, if there is one.
    pub(super) fn drop_volume(&mut self, manifest: &Manifest, name: &str) {
        if manifest.volumes().contains_key(name) {
            self.volumes.insert(name.to_owned(), None);
        }
    }

    /// Drops a snapshot, if there is one.
    pub(super) fn drop_snapshot(&mut self, manifest: &Manifest, name: &str) {
        if manifest.snapshots().contains_key(name) {
            self.snapshots.insert(name.to_owned(), None);
        }
    }

    /// Changes a volume of the manifest that this change has not changed yet.
    pub(super) fn edit_volume(
        &mut self,
        manifest: &Manifest,
        name: &str,
        edit: impl FnOnce(&mut VolumeEntry),
    ) {
        if let Some(mut entry) = manifest.volumes().get(name).cloned() {
            edit(&mut entry);
            self.put_volume(name, entry);
        }
    }

    /// Lets a volume write to another layer.
    pub(super) fn set_top(&mut self, manifest: &Manifest, volume: &str, top: LayerId) {
        self.edit_volume(manifest, volume, |entry| entry.top = top);
    }

    /// Drops the layers that nothing needs once this change is made, and gives their numbers. Only layers of what the change
    /// replaces or drops can be such ones, and those below them.
    pub(super) fn drop_unreachable(&mut self, manifest: &Manifest) -> Vec<LayerId> {
        let mut candidates = self.former_layers(manifest);
        let mut gone = Vec::new();
        while let Some(id) = candidates.pop() {
            let dropped = self.layers.get(&id).is_some_and(Option::is_none);
            if dropped || self.needs(manifest, id) {
                continue;
            }
            self.layers.insert(id, None);
            candidates.extend(manifest.parent(id));
            gone.push(id);
        }
        gone
    }

    /// The layers that the volumes and snapshots of this change have in the manifest.
    pub(super) fn former_layers(&self, manifest: &Manifest) -> Vec<LayerId> {
        let tops = self.volumes.keys().filter_map(|name| Some(manifest.volumes().get(name)?.top));
        let layers = self.snapshots.keys().filter_map(|name| Some(manifest.snapshots().get(name)?.layer));
        tops.chain(layers).collect()
    }

    /// The layers that the volumes and snapshots of this change have after it, and those that it puts.
    pub(super) fn present_layers(&self) -> Vec<LayerId> {
        let put = self.layers.iter().filter(|(_, entry)| entry.is_some()).map(|(id, _)| *id);
        let tops = self.volumes.values().flatten().map(|entry| entry.top);
        put.chain(tops).chain(self.snapshots.values().flatten().map(|entry| entry.layer)).collect()
    }

    /// Whether a layer is below another one, written to, or a snapshot's once this change is made.
    fn needs(&self, manifest: &Manifest, id: LayerId) -> bool {
        manifest.children(id).any(|child| !self.layers.contains_key(&child))
            || manifest.volume_on(id).is_some_and(|name| !self.volumes.contains_key(name))
            || manifest.snapshots_of(id).any(|name| !self.snapshots.contains_key(name))
            || self.layers.values().flatten().any(|entry| entry.parent == Some(id))
            || self.volumes.values().flatten().any(|entry| entry.top == id)
            || self.snapshots.values().flatten().any(|entry| entry.layer == id)
    }
}
