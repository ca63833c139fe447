//! The store as a whole: which volumes and snapshots there are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex, MutexGuard};
use serde_json::Value;

use super::boot::{host_restarted, note_boot};
use super::check::load_layer;
use super::cipher::Cipher;
use super::home::{
    Lock, create, keep_spare, layers, lock, protect, release_spare, remove_orphans, require_own,
};
use super::key::KeyUnwrapper;
use super::layer::{Chain, Frozen, Top, remove_files};
use super::manifest::{LayerId, Manifest, SnapshotEntry, VolumeEntry, sync_dir};
use super::reclaim::Job;
use super::usage::Usage;
use super::volume::Core;
use super::{
    BLOCK_BYTES, Damage, MAX_VOLUME_BYTES, OpenVolume, StoreError, StoreOptions, VolumeInfo, WrappedKey,
};
use crate::dir::Dir;

/// A directory of volumes and snapshots, held by one process at a time. A clone is another handle to the same store.
#[derive(Debug, Clone)]
pub struct VolumeStore {
    background: Arc<BackgroundWorker>,
}

/// Ends the background work with the last handle.
#[derive(Debug)]
struct BackgroundWorker {
    inner: Arc<StoreShared>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for BackgroundWorker {
    fn drop(&mut self) {
        self.inner.stop.store(true, Ordering::SeqCst);
        drop(self.inner.state.lock()); // the worker either waits by now or sees the flag
        self.inner.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// What the handles and the background work share.
#[derive(Debug)]
pub(super) struct StoreShared {
    dir: Dir,
    pub(super) layers_dir: Dir,
    pub(super) options: StoreOptions,
    pub(super) state: Mutex<StoreState>,
    pub(super) changed: Condvar,
    pub(super) stop: AtomicBool,
    /// Who has the keys of encrypted volumes.
    pub(super) unwrapper: Mutex<Option<Arc<dyn KeyUnwrapper>>>,
    _lock: Lock,
}

/// What changes under the store's lock, which no read and no write of a volume ever takes.
#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) manifest: Manifest,
    /// Every layer except those that open volumes write to.
    pub(super) layers: BTreeMap<LayerId, Result<Frozen, Damage>>,
    pub(super) open: BTreeMap<String, Arc<Core>>,
    /// Whether the manifest may not be on the host's disk yet.
    pub(super) manifest_unsynced: bool,
    /// Jobs that failed, not to be tried again before something changes.
    pub(super) given_up: BTreeSet<Job>,
    /// Layers frozen by the background work since something changed.
    pub(super) rounds: u32,
    /// Whether a job runs.
    pub(super) working: bool,
    /// Callers that wait for the background work.
    pub(super) waiting: usize,
}

impl VolumeStore {
    /// Opens the store in `dir`, or creates it where the directory is missing or empty, and locks it to this process.
    ///
    /// Files that a killed process left without a name in the manifest are removed, torn journal tails cut off, and after a
    /// restart of the host the records that no flush had covered. A damaged
    /// layer does not keep the rest from being used: [`Self::open_volume`] refuses the volumes that need it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`], [`StoreError::Foreign`], [`StoreError::Damaged`] for the manifest, [`StoreError::Io`].
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        Self::open_in(Dir::make(dir).map_err(StoreError::io("create", dir))?, options)
    }

    /// As [`Self::open`], in a directory that is held already.
    pub(crate) fn open_in(dir: Dir, options: StoreOptions) -> Result<Self, StoreError> {
        require_own(&dir)?;
        let (lock, dir) = lock(&dir, true)?;
        let manifest = match Manifest::load(&dir)? {
            Some(manifest) => manifest,
            None => create(&dir)?,
        };
        let layers_dir = layers(&dir)?;
        protect(&dir)?;
        protect(&layers_dir)?;
        remove_orphans(&layers_dir, &manifest)?;
        keep_spare(&dir);
        let restarted = host_restarted(&dir);
        let mut layers = BTreeMap::new();
        for (id, entry) in &manifest.layers {
            let has_parent = entry.parent.is_some();
            let loaded = match load_layer(&layers_dir, *id, has_parent, restarted)? {
                scan if scan.damages.is_empty() => {
                    Ok(Frozen::adopt(&layers_dir, *id, scan, has_parent, options.host_sync)?)
                }
                mut scan => Err(scan.damages.swap_remove(0)),
            };
            layers.insert(*id, loaded);
        }
        note_boot(&dir, options.host_sync);
        let state = StoreState {
            manifest,
            layers,
            open: BTreeMap::new(),
            manifest_unsynced: false,
            given_up: BTreeSet::new(),
            rounds: 0,
            working: false,
            waiting: 0,
        };
        let inner = Arc::new(StoreShared {
            dir,
            layers_dir,
            options,
            state: Mutex::new(state),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            unwrapper: Mutex::new(None),
            _lock: lock,
        });
        let for_worker = Arc::clone(&inner);
        let worker = std::thread::Builder::new()
            .name("store-reclaim".to_owned())
            .spawn(move || for_worker.work())
            .map_err(StoreError::io("start a thread for", inner.dir.path()))?;
        Ok(Self { background: Arc::new(BackgroundWorker { inner, thread: Some(worker) }) })
    }

    /// Creates an empty volume.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Size`] (1 block to 64 TiB, whole blocks of 4 KiB),
    /// [`StoreError::Io`].
    pub fn create_volume(&self, name: &str, size_bytes: u64, meta: Value) -> Result<(), StoreError> {
        self.create_empty(name, size_bytes, meta, None)
    }

    pub(super) fn create_empty(
        &self,
        name: &str,
        size_bytes: u64,
        meta: Value,
        key: Option<WrappedKey>,
    ) -> Result<(), StoreError> {
        let volume = |top| VolumeEntry {
            size_bytes,
            meta,
            created_unix_s: now_unix_s(),
            from_snapshot: None,
            from_volume: None,
            top,
            key,
        };
        let inner = self.inner();
        let mut state = inner.state.lock();
        state.may_create_volume(name)?;
        check_size(size_bytes)?;
        inner.add_volume(&mut state, name, None, volume)
    }

    /// Creates a volume that begins as `snapshot` and is at least as large. It has the snapshot's data key, if any.
    ///
    /// # Errors
    ///
    /// As [`Self::create_volume`], and [`StoreError::NotFound`] and [`StoreError::Damaged`] of the snapshot.
    pub fn create_from_snapshot(
        &self,
        name: &str,
        snapshot: &str,
        size_bytes: u64,
        meta: Value,
    ) -> Result<(), StoreError> {
        let inner = self.inner();
        let mut state = inner.state.lock();
        state.may_create_volume(name)?;
        let source = state.snapshot(snapshot)?.clone();
        check_size(size_bytes)?;
        check_not_below(size_bytes, source.size_bytes, "the snapshot")?;
        state.refuse_damaged(source.layer)?;
        inner.add_volume(&mut state, name, Some(source.layer), |top| VolumeEntry {
            size_bytes,
            meta,
            created_unix_s: now_unix_s(),
            from_snapshot: Some(snapshot.to_owned()),
            from_volume: Some(source.from_volume),
            top,
            key: source.key,
        })
    }

    /// Grows a volume; an open one has its new size at once.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`]; [`StoreError::Size`] for a size below the present one or outside what is possible;
    /// [`StoreError::Io`].
    pub fn resize_volume(&self, name: &str, size_bytes: u64) -> Result<(), StoreError> {
        let inner = self.inner();
        let mut state = inner.state.lock();
        check_size(size_bytes)?;
        check_not_below(size_bytes, state.volume(name)?.size_bytes, "the volume")?;
        let mut next = state.manifest.clone();
        if let Some(volume) = next.volumes.get_mut(name) {
            volume.size_bytes = size_bytes;
        }
        inner.commit(&mut state, next)?;
        if let Some(core) = state.open.get(name) {
            core.size_bytes.store(size_bytes, Ordering::Release);
        }
        Ok(())
    }

    /// What is kept with the volume, without counting what it takes as [`Self::volume`] does.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`].
    pub fn meta(&self, name: &str) -> Result<Value, StoreError> {
        Ok(self.inner().state.lock().volume(name)?.meta.clone())
    }

    /// Replaces what is kept with the volume.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Io`].
    pub fn set_meta(&self, name: &str, meta: Value) -> Result<(), StoreError> {
        let inner = self.inner();
        let mut state = inner.state.lock();
        state.volume(name)?;
        let mut next = state.manifest.clone();
        if let Some(volume) = next.volumes.get_mut(name) {
            volume.meta = meta;
        }
        inner.commit(&mut state, next)
    }

    /// Deletes a volume that is not open. Its snapshots and clones stay. A full host disk does not prevent it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Busy`], [`StoreError::Io`].
    pub fn delete_volume(&self, name: &str) -> Result<(), StoreError> {
        let inner = self.inner();
        let state = inner.state.lock();
        state.volume(name)?;
        if state.open.contains_key(name) {
            return Err(StoreError::Busy { name: name.to_owned() });
        }
        let mut next = state.manifest.clone();
        next.volumes.remove(name);
        inner.commit_and_drop_layers(state, next)
    }

    /// All volumes, by name.
    pub fn volumes(&self) -> Vec<VolumeInfo> {
        let names = self.names().volumes;
        names.iter().filter_map(|name| self.volume(name).ok()).collect()
    }

    /// One volume.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`].
    pub fn volume(&self, name: &str) -> Result<VolumeInfo, StoreError> {
        let state = self.inner().state.lock();
        let volume = state.volume(name)?.clone();
        let open = state.open.contains_key(name);
        let usage = Usage::gather(state, volume.top);
        Ok(VolumeInfo {
            name: name.to_owned(),
            size_bytes: volume.size_bytes,
            meta: volume.meta,
            created_unix_s: volume.created_unix_s,
            from_snapshot: volume.from_snapshot,
            from_volume: volume.from_volume,
            allocated_bytes: usage.allocated(true),
            shared_bytes: usage.allocated(false),
            data_blocks: usage.data_blocks(),
            layers: usage.layers,
            key_id: volume.key.map(|key| key.key_id),
            open,
            damage: usage.damage,
        })
    }

    /// Deletes a snapshot; the order does not matter. Volumes made from it stay. A full host disk does not prevent it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Io`].
    pub fn delete_snapshot(&self, name: &str) -> Result<(), StoreError> {
        let inner = self.inner();
        let state = inner.state.lock();
        state.snapshot(name)?;
        let mut next = state.manifest.clone();
        next.snapshots.remove(name);
        inner.commit_and_drop_layers(state, next)
    }

    /// Opens a volume for reading and writing. It is closed when the last handle is dropped.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Busy`], [`StoreError::Damaged`], [`StoreError::Key`], [`StoreError::Io`].
    pub fn open_volume(&self, name: &str) -> Result<Arc<OpenVolume>, StoreError> {
        let key = self.inner().state.lock().volume(name)?.key.clone();
        // Not under the lock: whoever has the keys may be slow.
        let cipher = key.map(|key| self.cipher(name, &key)).transpose()?;
        self.open_with(name, cipher)
    }

    /// As [`Self::open_volume`], with the cipher for what it holds.
    pub(super) fn open_with(
        &self,
        name: &str,
        cipher: Option<Arc<Cipher>>,
    ) -> Result<Arc<OpenVolume>, StoreError> {
        let inner = self.inner();
        let mut state = inner.state.lock();
        let (top, size_bytes) = state.volume(name).map(|v| (v.top, v.size_bytes))?;
        if state.open.contains_key(name) {
            return Err(StoreError::Busy { name: name.to_owned() });
        }
        let mut below = state.frozen_chain(top)?;
        below.iter().try_for_each(|frozen| frozen.layer.files.open_existing())?;
        let frozen = below.remove(0);
        state.layers.remove(&top);
        let chain = Chain { top: Arc::new(Top::thaw(frozen)), below };
        let core = Arc::new(Core::new(chain, size_bytes, inner.options.host_sync));
        state.open.insert(name.to_owned(), Arc::clone(&core));
        drop(state);
        Ok(Arc::new(OpenVolume::new(name, core, self.clone(), cipher)))
    }

    /// Waits until the background work (layers merged, journals rewritten) has nothing left to do.
    pub fn settle(&self) {
        let inner = self.inner();
        let mut state = inner.state.lock();
        state.waiting += 1;
        inner.changed.notify_all();
        while state.working || inner.next_job(&state).is_some() {
            inner.changed.wait(&mut state);
        }
        state.waiting -= 1;
    }

    /// Waits until a volume is closed, whichever thread gives up its last handle; false where it is still open
    /// after `patience`.
    pub(crate) fn wait_until_closed(&self, name: &str, patience: Duration) -> bool {
        let inner = self.inner();
        let until = Instant::now() + patience;
        let mut state = inner.state.lock();
        while state.open.contains_key(name) {
            if inner.changed.wait_until(&mut state, until).timed_out() {
                return !state.open.contains_key(name);
            }
        }
        true
    }

    pub(super) fn close_volume(&self, name: &str) {
        let inner = self.inner();
        let core = inner.state.lock().open.get(name).cloned();
        let core = core.expect("only the handle that is dropped closes the volume");
        let top = Arc::clone(&core.chain.load().top);
        let grown = top.layer.journal.lock().has_grown();
        if grown && let Err(e) = top.layer.rewrite_journal(|| top.maps()) {
            tracing::warn!(volume = name, error = %e, "kept the journal as it is");
        }
        if let Err(e) = top.layer.seal() {
            tracing::warn!(volume = name, error = %e, "the journal is not sealed");
        }
        let mut state = inner.state.lock();
        state.open.remove(name);
        let top = core.chain.load().top.freeze();
        top.layer.journal.lock().close_file();
        state.layers.insert(top.layer.id, Ok(top));
        state.rounds = 0;
        inner.something_changed(&mut state);
    }

    /// The chain of an open volume, and how many of its layers are above `snapshot`.
    pub(super) fn chain_since(
        &self,
        volume: &str,
        core: &Core,
        snapshot: &str,
    ) -> Result<(Arc<Chain>, usize), StoreError> {
        let state = self.inner().state.lock();
        let layer = state.snapshot(snapshot)?.layer;
        let chain = core.chain.load_full();
        let below = chain.below.iter().position(|frozen| frozen.layer.id == layer);
        let not_ancestor =
            || StoreError::NotAncestor { volume: volume.to_owned(), snapshot: snapshot.to_owned() };
        below.map(|at| (chain, at + 1)).ok_or_else(not_ancestor)
    }

    pub(super) fn inner(&self) -> &StoreShared {
        &self.background.inner
    }
}

impl StoreShared {
    /// Makes `next` the manifest.
    pub(super) fn commit(&self, state: &mut StoreState, next: Manifest) -> Result<(), StoreError> {
        let durable = self.options.host_sync;
        if durable {
            sync_dir(&self.layers_dir)?; // no manifest on disk names a file that is not
        }
        next.save(&self.dir, durable)?;
        state.manifest = next;
        state.manifest_unsynced = true;
        if durable {
            // The new manifest is in place either way; where this fails, the background work tries again.
            state.manifest_unsynced = sync_dir(&self.dir).is_err();
        }
        self.something_changed(state);
        Ok(())
    }

    /// Puts the manifest on the host's disk.
    pub(super) fn sync_manifest(&self) -> Result<(), StoreError> {
        super::manifest::sync_manifest(&self.dir)
    }

    /// Puts an empty layer on a volume; `change` gets the layer that is frozen by that.
    pub(super) fn put_layer_on_top(
        &self,
        state: &mut StoreState,
        volume: &str,
        change: impl FnOnce(&mut Manifest, LayerId),
    ) -> Result<LayerId, StoreError> {
        let mut next = state.manifest.clone();
        let old = state.volume(volume)?.top;
        let top = next.add_layer(Some(old));
        if let Some(entry) = next.volumes.get_mut(volume) {
            entry.top = top;
        }
        change(&mut next, old);
        let empty = Frozen::create(&self.layers_dir, top, true, self.options.host_sync)?;
        // First the manifest, then the writes: none may be answered in a layer that a crash would make an orphan.
        self.commit(state, next).inspect_err(|_| remove_files(&self.layers_dir, top))?;
        match state.open.get(volume) {
            Some(core) => {
                let frozen = core.freeze(empty);
                state.layers.insert(old, Ok(frozen));
            }
            None => {
                state.layers.insert(top, Ok(empty));
            }
        }
        Ok(old)
    }

    fn add_volume(
        &self,
        state: &mut StoreState,
        name: &str,
        parent: Option<LayerId>,
        volume: impl FnOnce(LayerId) -> VolumeEntry,
    ) -> Result<(), StoreError> {
        let mut next = state.manifest.clone();
        let top = next.add_layer(parent);
        next.volumes.insert(name.to_owned(), volume(top));
        let empty = Frozen::create(&self.layers_dir, top, parent.is_some(), self.options.host_sync)?;
        empty.layer.journal.lock().close_file();
        self.commit(state, next).inspect_err(|_| remove_files(&self.layers_dir, top))?;
        state.layers.insert(top, Ok(empty));
        Ok(())
    }

    /// Commits, and removes the files of layers that nothing needs any more.
    pub(super) fn commit_and_drop_layers(
        &self,
        mut state: MutexGuard<'_, StoreState>,
        mut next: Manifest,
    ) -> Result<(), StoreError> {
        let gone = next.drop_unreachable();
        let mut committed = self.commit(&mut state, next.clone());
        if committed.as_ref().is_err_and(StoreError::is_full) && release_spare(&self.dir) {
            committed = self.commit(&mut state, next);
        }
        committed?;
        state.rounds = 0;
        let gone: Vec<_> = gone.into_iter().map(|id| (id, state.layers.remove(&id))).collect();
        drop(state);
        for (id, layer) in gone {
            match layer {
                Some(Ok(frozen)) => frozen.layer.remove(),
                _ => remove_files(&self.layers_dir, id),
            }
        }
        keep_spare(&self.dir);
        Ok(())
    }

    /// Lets the background work look again.
    fn something_changed(&self, state: &mut StoreState) {
        state.given_up.clear();
        self.changed.notify_all();
    }
}

impl StoreState {
    pub(super) fn volume(&self, name: &str) -> Result<&VolumeEntry, StoreError> {
        let not_found = || StoreError::NotFound { kind: "volume", name: name.to_owned() };
        self.manifest.volumes.get(name).ok_or_else(not_found)
    }

    pub(super) fn snapshot(&self, name: &str) -> Result<&SnapshotEntry, StoreError> {
        let not_found = || StoreError::NotFound { kind: "snapshot", name: name.to_owned() };
        self.manifest.snapshots.get(name).ok_or_else(not_found)
    }

    pub(super) fn may_create_volume(&self, name: &str) -> Result<(), StoreError> {
        check_name(name)?;
        if self.manifest.volumes.contains_key(name) {
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
