//! The store as a whole: which volumes and snapshots there are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use serde_json::Value;

use super::boot::{host_restarted, note_boot};
use super::change_log::ChangeLog;
use super::check::load_layer;
use super::cipher::Cipher;
use super::entries::{Change, VolumeEntry, packed};
use super::home::{
    create, former_manifests, keep_spare, layers, lock, orphans, protect, protect_many, remove_left,
    require_own, upgrade,
};
use super::layer::{Chain, Frozen, Top};
use super::manifest::Manifest;
use super::manifest_file::{Loaded, load};
use super::reclaim::BackgroundWorker;
use super::shared::{StoreShared, StoreState, check_not_below, check_size, now_unix_s};
use super::usage::Usage;
use super::volume_core::VolumeCore;
use super::{OpenVolume, StoreError, StoreOptions, VolumeBrief, VolumeInfo, WrappedKey};
use ebbtide_dir::Dir;

/// A directory of volumes and snapshots, held by one process at a time. A clone is another handle to the same store.
#[derive(Debug, Clone)]
pub struct VolumeStore {
    background: Arc<BackgroundWorker>,
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
        let restarted = host_restarted(&dir);
        let (manifest, mut log) = take_up(&dir, restarted, options)?;
        let layers_dir = layers(&dir)?;
        protect(&dir)?;
        protect_many(&layers_dir)?;
        let former = former_manifests(&dir, Some(log.number()))?;
        let orphans = orphans(&layers_dir, &manifest)?;
        if !(former.is_empty() && orphans.is_empty()) {
            // A host could else lose the change that dropped them, and keep the removal.
            log.settle()?;
        }
        remove_left(&dir, &former)?;
        remove_left(&layers_dir, &orphans)?;
        keep_spare(&dir);
        let mut layers = BTreeMap::new();
        for (id, entry) in manifest.layers() {
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
            any_damage: layers.values().any(Result::is_err),
            unsettled: layers.keys().copied().collect(),
            log_unsynced: log.is_unsealed(),
            doomed: Vec::new(),
            manifest,
            log,
            layers: packed(layers),
            open: BTreeMap::new(),
            given_up: BTreeSet::new(),
            rounds: 0,
            changes: 0,
            working: false,
            synced_last: false,
            waiting: 0,
        };
        let shared = StoreShared {
            dir,
            layers_dir,
            options,
            state: Mutex::new(state),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            unwrapper: Mutex::new(None),
            _lock: lock,
        };
        Ok(Self { background: Arc::new(BackgroundWorker::start(shared)?) })
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
            meta: meta.into(),
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
            meta: meta.into(),
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
        let mut change = Change::default();
        change.edit_volume(&state.manifest, name, |volume| volume.size_bytes = size_bytes);
        inner.commit(&mut state, change)?;
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
        Ok(self.inner().state.lock().volume(name)?.meta.value())
    }

    /// What is known of a volume without looking at its layers, as [`Self::volume`] does.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`].
    pub fn volume_brief(&self, name: &str) -> Result<VolumeBrief, StoreError> {
        let volume = self.inner().state.lock().volume(name)?.clone();
        Ok(VolumeBrief {
            size_bytes: volume.size_bytes,
            meta: volume.meta.value(),
            created_unix_s: volume.created_unix_s,
            from_snapshot: volume.from_snapshot,
            key_id: volume.key.map(|key| key.key_id),
        })
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
        let mut change = Change::default();
        change.edit_volume(&state.manifest, name, |volume| volume.meta = meta.into());
        inner.commit(&mut state, change)
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
        let mut change = Change::default();
        change.drop_volume(&state.manifest, name);
        inner.commit_and_drop_layers(state, change)
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
            meta: volume.meta.value(),
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
        let mut change = Change::default();
        change.drop_snapshot(&state.manifest, name);
        inner.commit_and_drop_layers(state, change)
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
        let core = Arc::new(VolumeCore::new(chain, size_bytes, inner.options.host_sync));
        state.open.insert(name.to_owned(), Arc::clone(&core));
        drop(state);
        Ok(Arc::new(OpenVolume::new(name, core, Arc::clone(&self.background), cipher)))
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

    pub(super) fn inner(&self) -> &StoreShared {
        self.background.shared()
    }
}

/// The manifest of a store that this process has locked, with its log: read, made, or brought to the present format.
fn take_up(
    dir: &Dir,
    host_restarted: bool,
    options: StoreOptions,
) -> Result<(Manifest, ChangeLog), StoreError> {
    let Some(Loaded { manifest, file_bytes, log }) = load(dir, host_restarted)? else { return create(dir) };
    let log = match log {
        Some(scan) => ChangeLog::adopt(dir, scan, file_bytes, options.host_sync)?,
        None => upgrade(dir, &manifest)?,
    };
    Ok((manifest, log))
}
