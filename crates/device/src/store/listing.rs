//! The snapshots of a store that another process may have open: read from its files, without its lock.

use std::io::ErrorKind;
use std::path::Path;

use super::boot::host_restarted;
use super::check::load_layer;
use super::files::allocated_bytes;
use super::home::layers;
use super::manifest::{Manifest, SnapshotEntry};
use super::maps::visible_blocks;
use super::pending::pending_name;
use super::{SnapshotInfo, StoreError};
use crate::dir::Dir;

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
    let Some(mut manifest) = Manifest::load(dir)? else { return Ok(Vec::new()) };
    for _ in 1..ATTEMPTS {
        let read = read(dir, &manifest);
        // The owner merges layers and removes their files; it replaces the manifest first.
        let now = Manifest::load(dir)?.unwrap_or_default();
        if now == manifest {
            return read;
        }
        manifest = now;
    }
    read(dir, &manifest)
}

fn read(dir: &Dir, manifest: &Manifest) -> Result<Vec<SnapshotInfo>, StoreError> {
    let named = manifest.snapshots.iter().filter(|(name, _)| pending_name(name).is_none());
    named.map(|(name, entry)| info(dir, manifest, name, entry)).collect()
}

fn info(
    dir: &Dir,
    manifest: &Manifest,
    name: &str,
    entry: &SnapshotEntry,
) -> Result<SnapshotInfo, StoreError> {
    let (layers_dir, restarted) = (layers(dir)?, host_restarted(dir));
    let chain = manifest.chain(entry.layer);
    let (mut allocated, mut damage, mut maps) = (0, None, Vec::new());
    for (id, own) in chain.iter().zip(manifest.owned(entry.layer)) {
        let scan = load_layer(&layers_dir, *id, manifest.parent(*id).is_some(), restarted)?;
        allocated += if own { allocated_bytes(&layers_dir, *id) } else { 0 };
        damage = damage.or(scan.damages.into_iter().next());
        maps.push(scan.maps);
    }
    Ok(SnapshotInfo {
        name: name.to_owned(),
        size_bytes: entry.size_bytes,
        meta: entry.meta.clone(),
        created_unix_s: entry.created_unix_s,
        from_volume: entry.from_volume.clone(),
        allocated_bytes: allocated,
        data_blocks: visible_blocks(&maps.iter().collect::<Vec<_>>()),
        layers: chain.len(),
        key_id: entry.key.as_ref().map(|key| key.key_id.clone()),
        damage,
    })
}
