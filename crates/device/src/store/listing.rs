//! The snapshots of a store that another process may have open: read from its files, without its lock.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use super::boot::host_restarted;
use super::check::load_layer;
use super::entries::{LayerId, SnapshotEntry};
use super::files::allocated_bytes;
use super::home::layers;
use super::journal::Scan;
use super::manifest::Manifest;
use super::manifest_file::{self, Loaded};
use super::maps::visible_blocks;
use super::pending::pending_name;
use super::{SnapshotInfo, StoreError};
use ebbtide_dir::Dir;

/// How often the files are read again because their owner has changed them meanwhile.
const ATTEMPTS: usize = 10;

/// All snapshots of the store in `dir`, by name; none where there is no store. Nothing is changed, and no lock is
/// taken: a process that has the store open goes on.
///
/// # Errors
///
/// [`StoreError::Foreign`], [`StoreError::Damaged`] for the manifest, [`StoreError::Io`].
pub fn list_snapshots(dir: &Path) -> Result<Vec<SnapshotInfo>, StoreError> {
    let dir = match Dir::open(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => &opened.map_err(StoreError::io("open", dir))?,
    };
    let restarted = host_restarted(dir);
    let Some(mut manifest) = load(dir, restarted)? else { return Ok(Vec::new()) };
    for _ in 1..ATTEMPTS {
        let read = Reader::new(dir, &manifest, restarted).and_then(Reader::read);
        // The owner merges layers and removes their files; it changes the manifest first.
        let now = load(dir, restarted)?.unwrap_or_default();
        if now == manifest {
            return read;
        }
        manifest = now;
    }
    Reader::new(dir, &manifest, restarted)?.read()
}

/// The manifest as it is now. What looks like damage may be the owner's work: it replaces a manifest and its log one after
/// the other.
fn load(dir: &Dir, restarted: bool) -> Result<Option<Manifest>, StoreError> {
    let once = || Ok(manifest_file::load(dir, restarted)?.map(|Loaded { manifest, .. }| manifest));
    for _ in 1..ATTEMPTS {
        match once() {
            Err(StoreError::Damaged(_)) => {}
            loaded => return loaded,
        }
    }
    once()
}

struct Reader<'a> {
    layers_dir: Dir,
    manifest: &'a Manifest,
    restarted: bool,
    /// Those that were read already: snapshots of one volume share most of them.
    layers: BTreeMap<LayerId, Scan>,
}

impl<'a> Reader<'a> {
    fn new(dir: &Dir, manifest: &'a Manifest, restarted: bool) -> Result<Self, StoreError> {
        Ok(Self { layers_dir: layers(dir)?, manifest, restarted, layers: BTreeMap::new() })
    }

    fn read(mut self) -> Result<Vec<SnapshotInfo>, StoreError> {
        let named = self.manifest.snapshots().iter().filter(|(name, _)| pending_name(name).is_none());
        named.map(|(name, entry)| self.info(name, entry)).collect()
    }

    fn info(&mut self, name: &str, entry: &SnapshotEntry) -> Result<SnapshotInfo, StoreError> {
        let chain = self.manifest.chain(entry.layer);
        for id in &chain {
            if !self.layers.contains_key(id) {
                let has_parent = self.manifest.parent(*id).is_some();
                self.layers.insert(*id, load_layer(&self.layers_dir, *id, has_parent, self.restarted)?);
            }
        }
        let scans: Vec<_> = chain.iter().map(|id| &self.layers[id]).collect();
        let own = chain.iter().zip(self.manifest.owned(entry.layer)).filter(|(_, own)| *own);
        Ok(SnapshotInfo {
            name: name.to_owned(),
            size_bytes: entry.size_bytes,
            meta: entry.meta.value(),
            created_unix_s: entry.created_unix_s,
            from_volume: entry.from_volume.clone(),
            allocated_bytes: own.map(|(id, _)| allocated_bytes(&self.layers_dir, *id)).sum(),
            data_blocks: visible_blocks(&scans.iter().map(|scan| &scan.maps).collect::<Vec<_>>()),
            layers: chain.len(),
            key_id: entry.key.as_ref().map(|key| key.key_id.clone()),
            damage: scans.iter().find_map(|scan| scan.damages.first().cloned()),
        })
    }
}
