//! What volumes and snapshots take of the host.

use parking_lot::MutexGuard;

use super::Damage;
use super::entries::LayerId;
use super::layer::Frozen;
use super::maps::visible_blocks;
use super::shared::StoreState;

/// What a chain takes, gathered under the lock and counted without it.
pub(super) struct Usage {
    /// The layers that could be read, and whether nothing else needs them.
    chain: Vec<(Frozen, bool)>,
    /// Layers in the chain.
    pub(super) layers: usize,
    /// The topmost damage.
    pub(super) damage: Option<Damage>,
}

impl Usage {
    /// Looks at a layer and all below it.
    pub(super) fn gather(state: MutexGuard<'_, StoreState>, top: LayerId) -> Self {
        let ids = state.manifest.chain(top);
        let mut usage = Self { chain: Vec::new(), layers: ids.len(), damage: None };
        for (id, own) in ids.into_iter().zip(state.manifest.owned(top)) {
            match state.layer(id) {
                Ok(frozen) => usage.chain.push((frozen, own)),
                Err(damage) => usage.damage = usage.damage.or(Some(damage)),
            }
        }
        usage
    }

    /// Host space of the layers that are its own, or of those that are not, bytes.
    pub(super) fn allocated(&self, own: bool) -> u64 {
        self.chain
            .iter()
            .filter(|(_, o)| *o == own)
            .map(|(frozen, _)| frozen.layer.files.allocated_bytes())
            .sum()
    }

    /// Blocks that are data through the chain.
    pub(super) fn data_blocks(&self) -> u64 {
        let maps: Vec<_> = self.chain.iter().map(|(frozen, _)| &*frozen.maps).collect();
        visible_blocks(&maps)
    }
}
