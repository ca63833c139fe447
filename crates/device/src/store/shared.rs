//! What the handles of a store and its background work share, and how it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::change_log::ChangeLog;
use super::entries::{Change, LayerId, SnapshotEntry, VolumeEntry};
use super::home::{Lock, keep_spare, release_spare};
use super::key::KeyUnwrapper;
use super::layer::{Chain, Frozen, Layer, remove_files};
use super::manifest::Manifest;
use super::manifest_file::sync_dir;
use super::volume_core::VolumeCore;
use super::{BLOCK_BYTES, Damage, MAX_VOLUME_BYTES, StoreError, StoreOptions};
use ebbtide_dir::Dir;

/// What the handles and the background work share.
#[derive(Debug)]
pub(super) struct StoreShared {
    pub(super) dir: Dir,
    pub(super) layers_dir: Dir,
    pub(super) options: StoreOptions,
    pub(super) state: Mutex<StoreState>,
    pub(super) changed: Condvar,
    pub(super) stop: AtomicBool,
    /// Who has the keys of encrypted volumes.
    pub(super) unwrapper: Mutex<Option<Arc<dyn KeyUnwrapper>>>,
    pub(super) _lock: Lock,
}

/// What changes under the store's lock, which no read and no write of a volume ever takes.
#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) manifest: Manifest,
    /// Where its changes go.
    pub(super) log: ChangeLog,
    /// Every layer except those that open volumes write to.
    pub(super) layers: BTreeMap<LayerId, Result<Frozen, Damage>>,
    /// Whether one of them was damaged when the store was opened.
    pub(super) any_damage: bool,
    /// Layers that may have become frozen or longer since the background work last looked at all of these.
    pub(super) unsettled: BTreeSet<LayerId>,
    pub(super) open: BTreeMap<String, Arc<VolumeCore>>,
    /// Whether the log may not be on the host's disk yet.
    pub(super) log_unsynced: bool,
    /// Layers that nothing needs once the log is there. Their files go then: a host that has lost the change, and not the
    /// removal, would have a manifest that names what is missing.
    pub(super) doomed: Vec<Doomed>,
    /// Jobs that failed, not to be tried again before something changes.
    pub(super) given_up: BTreeSet<Job>,
    /// Layers frozen by the background work since something changed.
    pub(super) rounds: u32,
    /// How often something has changed.
    pub(super) changes: u64,
    /// Whether a job runs.
    pub(super) working: bool,
    /// Whether the latest job was [`Job::SyncLog`].
    pub(super) synced_last: bool,
    /// Callers that wait for the background work.
    pub(super) waiting: usize,
}

/// A layer whose files are to be removed.
#[derive(Debug)]
pub(super) enum Doomed {
    /// One that is loaded.
    Loaded(Arc<Layer>),
    /// One that is damaged.
    Damaged(LayerId),
}

impl Doomed {
    /// A layer of the manifest.
    fn of(id: LayerId, layer: Option<Result<Frozen, Damage>>) -> Self {
        match layer {
            Some(Ok(frozen)) => Self::Loaded(frozen.layer),
            _ => Self::Damaged(id),
        }
    }
}

/// One piece of background work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Job {
    /// Put the log of the manifest's changes on the host's disk.
    SyncLog,
    /// Write the manifest as a whole.
    RewriteManifest,
    /// Merge two frozen layers.
    Merge { parent: LayerId, child: LayerId },
    /// Merge a volume's writable layer with the frozen one below.
    Absorb { volume: String, parent: LayerId },
    /// Rewrite the journal of a frozen layer, which seals it and makes it short.
    Seal(LayerId),
    /// Rewrite the journal of an open volume's writable layer.
    Rewrite(String),
}

impl StoreShared {
    pub(super) fn close_volume(&self, name: &str) {
        let core = self.state.lock().open.get(name).cloned();
        let core = core.expect("only the handle that is dropped closes the volume");
        let top = Arc::clone(&core.chain.load().top);
        let grown = top.layer.journal.lock().has_grown();
        if grown && let Err(e) = top.layer.rewrite_journal(|| top.maps()) {
            tracing::warn!(volume = name, error = %e, "kept the journal as it is");
        }
        if let Err(e) = top.layer.seal() {
            tracing::warn!(volume = name, error = %e, "the journal is not sealed");
        }
        let mut state = self.state.lock();
        state.open.remove(name);
        let top = core.chain.load().top.freeze();
        top.layer.journal.lock().close_file();
        state.layers.insert(top.layer.id, Ok(top));
        state.rounds = 0;
        self.something_changed(&mut state);
    }

    /// The chain of an open volume, and how many of its layers are above `snapshot`.
    pub(super) fn chain_since(
        &self,
        volume: &str,
        core: &VolumeCore,
        snapshot: &str,
    ) -> Result<(Arc<Chain>, usize), StoreError> {
        let state = self.state.lock();
        let layer = state.snapshot(snapshot)?.layer;
        let chain = core.chain.load_full();
        let below = chain.below.iter().position(|frozen| frozen.layer.id == layer);
        let not_ancestor =
            || StoreError::NotAncestor { volume: volume.to_owned(), snapshot: snapshot.to_owned() };
        below.map(|at| (chain, at + 1)).ok_or_else(not_ancestor)
    }

    /// Makes a change of the manifest. Where that fails, it has not happened.
    pub(super) fn commit(&self, state: &mut StoreState, change: Change) -> Result<(), StoreError> {
        let durable = self.options.host_sync;
        if durable {
            sync_dir(&self.layers_dir)?; // no change on disk names a file that is not
        }
        state.log.append(&change, durable)?;
        state.log_unsynced = !durable;
        state.unsettled.extend(change.former_layers(&state.manifest));
        state.unsettled.extend(change.present_layers());
        state.manifest.apply(change);
        self.something_changed(state);
        Ok(())
    }

    /// Puts an empty layer on a volume.
    pub(super) fn put_layer_on_top(&self, state: &mut StoreState, volume: &str) -> Result<(), StoreError> {
        let old = state.volume(volume)?.top;
        let mut change = Change::default();
        let top = change.add_layer(&state.manifest, Some(old));
        change.set_top(&state.manifest, volume, top);
        let empty = Frozen::create(&self.layers_dir, top, true, self.options.host_sync)?;
        // First the manifest, then the writes: none may be answered in a layer that a crash would make an orphan.
        self.commit(state, change).inspect_err(|_| remove_files(&self.layers_dir, top))?;
        match state.open.get(volume) {
            Some(core) => {
                let frozen = core.freeze(empty);
                state.layers.insert(old, Ok(frozen));
            }
            None => {
                empty.layer.journal.lock().close_file();
                state.layers.insert(top, Ok(empty));
            }
        }
        Ok(())
    }

    pub(super) fn add_volume(
        &self,
        state: &mut StoreState,
        name: &str,
        parent: Option<LayerId>,
        volume: impl FnOnce(LayerId) -> VolumeEntry,
    ) -> Result<(), StoreError> {
        let mut change = Change::default();
        let top = change.add_layer(&state.manifest, parent);
        change.put_volume(name, volume(top));
        let empty = Frozen::create(&self.layers_dir, top, parent.is_some(), self.options.host_sync)?;
        empty.layer.journal.lock().close_file();
        self.commit(state, change).inspect_err(|_| remove_files(&self.layers_dir, top))?;
        state.layers.insert(top, Ok(empty));
        Ok(())
    }

    /// Commits, and removes the files of layers that nothing needs any more.
    pub(super) fn commit_and_drop_layers(
        &self,
        mut state: MutexGuard<'_, StoreState>,
        mut change: Change,
    ) -> Result<(), StoreError> {
        let gone = change.drop_unreachable(&state.manifest);
        let mut committed = self.commit(&mut state, change.clone());
        let is_full = committed.as_ref().is_err_and(StoreError::is_full);
        if is_full && release_spare(&self.dir) {
            committed = self.commit(&mut state, change);
        }
        committed?;
        state.rounds = 0;
        let gone = gone.into_iter().map(|id| Doomed::of(id, state.layers.remove(&id))).collect();
        self.doom(state, gone);
        if is_full {
            // The next deletion needs the room. This one has happened, whatever becomes of its files.
            if let Err(error) = self.sync_log() {
                tracing::warn!(%error, "the files of what was deleted stay until the next change");
            }
        }
        keep_spare(&self.dir);
        Ok(())
    }

    /// Removes the files of layers that the latest change has dropped, or has it done when the change is on the host's disk.
    pub(super) fn doom(&self, mut state: MutexGuard<'_, StoreState>, layers: Vec<Doomed>) {
        if state.log_unsynced {
            state.doomed.extend(layers);
            return;
        }
        drop(state);
        if !layers.is_empty() {
            self.remove_doomed(layers);
            self.room_was_made();
        }
    }

    /// Removes the files of layers.
    pub(super) fn remove_doomed(&self, layers: Vec<Doomed>) {
        for layer in layers {
            match layer {
                Doomed::Loaded(layer) => layer.remove(),
                Doomed::Damaged(id) => remove_files(&self.layers_dir, id),
            }
        }
    }

    /// Lets the background work try again what a full disk kept it from.
    pub(super) fn room_was_made(&self) {
        self.something_changed(&mut self.state.lock());
    }

    /// Lets the background work look again.
    fn something_changed(&self, state: &mut StoreState) {
        state.changes += 1;
        state.given_up.clear();
        self.changed.notify_all();
    }
}

impl StoreState {
    pub(super) fn volume(&self, name: &str) -> Result<&VolumeEntry, StoreError> {
        let not_found = || StoreError::NotFound { kind: "volume", name: name.to_owned() };
        self.manifest.volumes().get(name).ok_or_else(not_found)
    }

    pub(super) fn snapshot(&self, name: &str) -> Result<&SnapshotEntry, StoreError> {
        let not_found = || StoreError::NotFound { kind: "snapshot", name: name.to_owned() };
        self.manifest.snapshots().get(name).ok_or_else(not_found)
    }

    pub(super) fn may_create_volume(&self, name: &str) -> Result<(), StoreError> {
        check_name(name)?;
        if self.manifest.volumes().contains_key(name) {
            return Err(StoreError::Exists { kind: "volume", name: name.to_owned() });
        }
        Ok(())
    }

    /// A layer as it is now, whether it is written to or not.
    pub(super) fn layer(&self, id: LayerId) -> Result<Frozen, Damage> {
        if let Some(layer) = self.layers.get(&id) {
            return layer.clone();
        }
        let core = self.manifest.volume_on(id).and_then(|name| self.open.get(name));
        Ok(core.expect("a layer is loaded, or an open volume writes to it").chain.load().top.freeze())
    }

    pub(super) fn top_is_empty(&self, volume: &str, top: LayerId) -> bool {
        match self.open.get(volume) {
            Some(core) => core.chain.load().top.is_empty(),
            None => self.layers.get(&top).is_some_and(|l| l.as_ref().is_ok_and(|top| top.maps.is_empty())),
        }
    }

    pub(super) fn refuse_damaged(&self, top: LayerId) -> Result<(), StoreError> {
        if !self.any_damage {
            return Ok(()); // without a look at each layer of a long chain
        }
        let damage = self.manifest.chain(top).into_iter().find_map(|id| self.layers.get(&id)?.as_ref().err());
        damage.map_or(Ok(()), |damage| Err(damage.clone().into()))
    }

    /// A layer and all below it, nearest first, as they are now.
    pub(super) fn frozen_chain(&self, top: LayerId) -> Result<Vec<Frozen>, StoreError> {
        let layers: Result<_, Damage> =
            self.manifest.chain(top).into_iter().map(|id| self.layer(id)).collect();
        Ok(layers?)
    }
}

pub(super) fn check_name(name: &str) -> Result<(), StoreError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let valid = name.len() <= 63
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|b| plain(b) || b"._-".contains(&b));
    if valid { Ok(()) } else { Err(StoreError::Name { name: name.to_owned() }) }
}

pub(super) fn check_size(size_bytes: u64) -> Result<(), StoreError> {
    if (BLOCK_BYTES..=MAX_VOLUME_BYTES).contains(&size_bytes) && size_bytes.is_multiple_of(BLOCK_BYTES) {
        return Ok(());
    }
    let rule =
        format!("give a multiple of {BLOCK_BYTES} bytes, at least one, at most {MAX_VOLUME_BYTES} (64 TiB)");
    Err(StoreError::Size { size_bytes, rule })
}

pub(super) fn check_not_below(size_bytes: u64, least: u64, of: &str) -> Result<(), StoreError> {
    if size_bytes >= least {
        return Ok(());
    }
    Err(StoreError::Size { size_bytes, rule: format!("{of} has {least} bytes, and a volume only grows") })
}

pub(super) fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
