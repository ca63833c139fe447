//! What needs each layer: an index of the manifest, so that no change has to go through all of it.

use std::collections::BTreeMap;

use super::entries::{LayerId, packed};
use super::few::FewSet;

/// What names one layer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LayerUses {
    /// Layers directly above.
    pub(super) children: FewSet<LayerId>,
    /// The volume that writes to it.
    pub(super) volume: Option<String>,
    /// The snapshots that it is.
    pub(super) snapshots: FewSet<String>,
}

impl LayerUses {
    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.volume.is_none() && self.snapshots.is_empty()
    }

    /// The layer above, where nothing else needs this one.
    fn only_child(&self) -> Option<LayerId> {
        self.children.only().filter(|_| self.snapshots.is_empty()).copied()
    }
}

/// What names each layer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Uses {
    of: BTreeMap<LayerId, LayerUses>,
    /// The layers that only one other needs, with that one.
    only_children: BTreeMap<LayerId, LayerId>,
}

impl Uses {
    /// What names a layer; none where nothing does.
    pub(super) fn of(&self, id: LayerId) -> Option<&LayerUses> {
        self.of.get(&id)
    }

    /// The layers that only one other needs, with that one.
    pub(super) const fn only_children(&self) -> &BTreeMap<LayerId, LayerId> {
        &self.only_children
    }

    /// The same in as little memory as it takes.
    pub(super) fn packed(self) -> Self {
        Self { of: packed(self.of), only_children: packed(self.only_children) }
    }

    /// Changes what names a layer.
    pub(super) fn change<T>(&mut self, id: LayerId, change: impl FnOnce(&mut LayerUses) -> T) {
        let uses = self.of.entry(id).or_default();
        change(uses);
        match uses.only_child() {
            Some(child) => self.only_children.insert(id, child),
            None => self.only_children.remove(&id),
        };
        if uses.is_empty() {
            self.of.remove(&id);
        }
    }
}
