//! Encrypted volumes and snapshots: whose data key they have, and how content gets another one.
//!
//! The manifest keeps a wrapped data key with each volume and snapshot. Snapshots, clones, copies and volumes of a
//! snapshot have its source's key, since they share its layers. Another key needs layers of its own: everything is read,
//! decrypted and written again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::cipher::{Cipher, PART_BYTES};
use super::entries::{Change, LayerId};
use super::files::Files;
use super::key::{KeyUnavailable, KeyUnwrapper, WrappedKey};
use super::layer::{Frozen, locate_in};
use super::meta::Meta;
use super::pending::hidden;
use super::registry::VolumeStore;
use super::shared::{check_not_below, now_unix_s};
use super::{BLOCK_BYTES, OpenVolume, StoreError};

/// What a snapshot holds, readable whatever happens to the snapshot meanwhile.
struct Source {
    layers: Vec<Frozen>,
    files: BTreeMap<LayerId, Files>,
    size_bytes: u64,
    meta: Meta,
    from_volume: String,
    cipher: Option<Arc<Cipher>>,
}

impl Source {
    /// Hands the plain content to `put` in order, in parts of at most [`PART_BYTES`].
    fn read_all(&self, mut put: impl FnMut(&[u8], u64) -> std::io::Result<()>) -> std::io::Result<()> {
        let most = u64::try_from(PART_BYTES).map_err(std::io::Error::other)? / BLOCK_BYTES;
        let mut buf = vec![0; PART_BYTES];
        let (mut at, end) = (0, self.size_bytes / BLOCK_BYTES);
        while at < end {
            let (holder, run_end) = locate_in(&self.layers, at, end);
            let Some(layer) = holder else {
                at = run_end;
                continue;
            };
            let part: Range<u64> = at..run_end.min(at + most);
            let len =
                usize::try_from((part.end - part.start) * BLOCK_BYTES).map_err(std::io::Error::other)?;
            let (data, offset) = (&mut buf[..len], part.start * BLOCK_BYTES);
            self.files[&layer.id].read_at(data, offset)?;
            if let Some(cipher) = &self.cipher {
                cipher.decrypt(data, offset)?;
            }
            put(data, offset)?;
            at = part.end;
        }
        Ok(())
    }
}

impl VolumeStore {
    /// Names who has the keys. Without one, nothing encrypted can be opened or read.
    pub fn set_key_unwrapper(&self, unwrapper: Arc<dyn KeyUnwrapper>) {
        *self.inner().unwrapper.lock() = Some(unwrapper);
    }

    /// The cipher of something encrypted; `name` is for messages.
    pub(super) fn cipher(&self, name: &str, key: &WrappedKey) -> Result<Arc<Cipher>, StoreError> {
        let unwrapper = self.inner().unwrapper.lock().clone();
        let nobody = || KeyUnavailable("nobody serves its key; start 'ebbtide serve' with --aws".to_owned());
        let plain = unwrapper.ok_or_else(nobody).and_then(|unwrapper| unwrapper.unwrap_key(key));
        let plain = plain.map_err(|source| StoreError::Key { name: name.to_owned(), source })?;
        Ok(Arc::new(Cipher::new(&plain)))
    }

    /// Creates an empty volume that is encrypted with a data key.
    ///
    /// # Errors
    ///
    /// As [`Self::create_volume`].
    pub fn create_encrypted_volume(
        &self,
        name: &str,
        size_bytes: u64,
        meta: Value,
        key: WrappedKey,
    ) -> Result<(), StoreError> {
        self.create_empty(name, size_bytes, meta, Some(key))
    }

    /// As [`Self::begin_snapshot`] of an empty disk, encrypted with a data key.
    ///
    /// # Errors
    ///
    /// As [`Self::begin_snapshot`].
    pub fn begin_encrypted_snapshot(
        &self,
        name: &str,
        size_bytes: u64,
        key: WrappedKey,
    ) -> Result<(), StoreError> {
        self.begin(name, size_bytes, None, Some(key))
    }

    /// Opens a volume that was cloned from an open one, with the data key that this one has.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Busy`], [`StoreError::Damaged`], [`StoreError::Io`].
    pub(crate) fn open_clone(&self, name: &str, of: &OpenVolume) -> Result<Arc<OpenVolume>, StoreError> {
        self.open_with(name, of.cipher().cloned())
    }

    /// The wrapped data key of a snapshot; none of one that is not encrypted.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`].
    pub fn snapshot_key(&self, name: &str) -> Result<Option<WrappedKey>, StoreError> {
        Ok(self.inner().state.lock().snapshot(name)?.key.clone())
    }

    /// Makes a snapshot with the content of another one, encrypted with a data key of its own. It takes the time and the
    /// space of the data. Until it is whole it is a pending snapshot, which [`Self::abandon_snapshot`] deletes after a kill.
    ///
    /// # Errors
    ///
    /// As [`Self::copy_snapshot`], and [`StoreError::Damaged`] and [`StoreError::Key`] of either.
    pub fn copy_snapshot_encrypted(
        &self,
        snapshot: &str,
        name: &str,
        key: WrappedKey,
    ) -> Result<(), StoreError> {
        let source = self.source(snapshot)?;
        self.begin(name, source.size_bytes, None, Some(key))?;
        let made =
            self.fill(name, &source).and_then(|()| self.complete(name, source.meta, &source.from_volume));
        made.inspect_err(|_| drop(self.abandon_snapshot(name)))
    }

    /// Creates a volume that begins as `snapshot`, encrypted with a data key of its own. It takes the time and the space of
    /// the data. Until it is whole it is a pending snapshot of the volume's name, which [`Self::abandon_snapshot`] deletes
    /// after a kill.
    ///
    /// # Errors
    ///
    /// As [`Self::create_from_snapshot`], and [`StoreError::Key`] of either.
    pub fn create_from_snapshot_encrypted(
        &self,
        name: &str,
        snapshot: &str,
        size_bytes: u64,
        meta: Value,
        key: WrappedKey,
    ) -> Result<(), StoreError> {
        let source = self.source(snapshot)?;
        self.inner().state.lock().may_create_volume(name)?;
        check_not_below(size_bytes, source.size_bytes, "the snapshot")?;
        self.begin(name, size_bytes, None, Some(key))?;
        let made =
            self.fill(name, &source).and_then(|()| self.reveal(name, snapshot, source.from_volume, meta));
        made.inspect_err(|_| drop(self.abandon_snapshot(name)))
    }

    fn source(&self, snapshot: &str) -> Result<Source, StoreError> {
        let key = self.snapshot_key(snapshot)?;
        let cipher = key.map(|key| self.cipher(snapshot, &key)).transpose()?;
        let state = self.inner().state.lock();
        let entry = state.snapshot(snapshot)?.clone();
        let layers = state.frozen_chain(entry.layer)?;
        let mut files = BTreeMap::new();
        // Under the lock: a merge may remove the files later, and then reads go on.
        for frozen in &layers {
            let open = Files::new(&frozen.layer.dir, frozen.layer.id);
            open.open_existing()?;
            files.insert(frozen.layer.id, open);
        }
        let (size_bytes, meta, from_volume) = (entry.size_bytes, entry.meta, entry.from_volume);
        Ok(Source { layers, files, size_bytes, meta, from_volume, cipher })
    }

    /// Writes a source's content to a pending snapshot.
    fn fill(&self, name: &str, source: &Source) -> Result<(), StoreError> {
        let target = self.open_volume(&hidden(name)).map_err(|error| match error {
            StoreError::Key { source, .. } => StoreError::Key { name: name.to_owned(), source },
            other => other,
        })?;
        let filled = source.read_all(|data, offset| target.write_at(data, offset));
        filled
            .and_then(|()| target.sync())
            .map_err(StoreError::io("encrypt what is copied in", self.inner().layers_dir.path()))
    }

    /// Makes what was put together a volume instead of a snapshot.
    fn reveal(&self, name: &str, snapshot: &str, from_volume: String, meta: Value) -> Result<(), StoreError> {
        let inner = self.inner();
        let mut state = inner.state.lock();
        state.may_create_volume(name)?;
        let hidden = hidden(name);
        let not_found = || StoreError::NotFound { kind: "volume", name: name.to_owned() };
        let mut entry = state.manifest.volumes().get(&hidden).cloned().ok_or_else(not_found)?;
        let mut change = Change::default();
        change.drop_volume(&state.manifest, &hidden);
        entry.meta = meta.into();
        entry.created_unix_s = now_unix_s();
        entry.from_snapshot = Some(snapshot.to_owned());
        entry.from_volume = Some(from_volume);
        change.put_volume(name, entry);
        inner.commit(&mut state, change)
    }
}
