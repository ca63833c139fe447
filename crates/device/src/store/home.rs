//! The store's directory: its lock, its making, and files in it that nothing names.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::boot::{BOOT, NEW_BOOT};
use super::manifest::{LayerId, MANIFEST, Manifest, sync_dir};
use super::{Damage, StoreError};

/// Name of the directory of layers.
pub(super) const LAYERS: &str = "layers";
const LOCK: &str = "lock";
/// Space kept back so that a deletion can write the manifest on a full disk, and its size, bytes: that of a manifest of
/// hundreds of volumes.
const SPARE: &str = "spare";
const SPARE_BYTES: u64 = 256 << 10;

/// The lock of a store.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    /// Closing the file is not enough where this process is just starting another one, on any thread:
    /// until that one begins its own program it has the file too.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the lock of a store stays until its file is closed everywhere");
        }
    }
}

/// Locks the store in `dir`. With `take`, this process writes its number there.
pub(super) fn lock(dir: &Path, take: bool) -> Result<Lock, StoreError> {
    let path = dir.join(LOCK);
    let mut options = File::options();
    options.read(true);
    if take {
        options.write(true).create(true);
    }
    let mut file = options.open(&path).map_err(StoreError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(StoreError::Locked { dir: dir.to_owned(), pid });
        }
        Err(TryLockError::Error(e)) => return Err(StoreError::io("lock", path)(e)),
    }
    if take {
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // On a full disk the number may be missing; the lock holds all the same.
        if let Err(e) = write(&mut file) {
            tracing::warn!(file = %path.display(), error = %e, "cannot note the process number");
        }
    }
    Ok(Lock(file))
}

/// Takes the spare space, where it is missing and the disk has much more.
pub(super) fn keep_spare(dir: &Path) {
    let path = dir.join(SPARE);
    let there = path.metadata().is_ok_and(|m| m.len() == SPARE_BYTES);
    let has_room = || rustix::fs::statvfs(dir).is_ok_and(|s| s.f_bavail * s.f_frsize > 8 * SPARE_BYTES);
    if there || !has_room() {
        return;
    }
    let bytes = vec![0xFF; usize::try_from(SPARE_BYTES).expect("small")];
    if fs::write(&path, bytes).is_err() {
        drop(fs::remove_file(&path)); // as small as it got, it would be in the way
    }
}

/// Gives the spare space back to the disk; false where there is none.
pub(super) fn release_spare(dir: &Path) -> bool {
    fs::remove_file(dir.join(SPARE)).is_ok()
}

/// Makes a store in a directory that has none, provided that nothing is lost by that.
pub(super) fn create(dir: &Path, layers_dir: &Path) -> Result<Manifest, StoreError> {
    for entry in fs::read_dir(dir).map_err(StoreError::io("list", dir))? {
        let name = entry.map_err(StoreError::io("list", dir))?.file_name();
        if name == LAYERS {
            let mut layers = fs::read_dir(layers_dir).map_err(StoreError::io("list", layers_dir))?;
            if layers.next().is_some() {
                let what = "the file is missing, while there are layers".to_owned();
                return Err(Damage { file: dir.join(MANIFEST), offset: 0, what }.into());
            }
        } else if ![LOCK, SPARE, BOOT, NEW_BOOT, "manifest.new"].iter().any(|known| name == *known) {
            let what = format!("it holds '{}'; give an empty directory", name.to_string_lossy());
            return Err(StoreError::Foreign { dir: dir.to_owned(), what });
        }
    }
    fs::create_dir_all(layers_dir).map_err(StoreError::io("create", layers_dir))?;
    let manifest = Manifest { next_layer: 1, ..Manifest::default() };
    manifest.save(dir, true)?;
    sync_dir(dir)?;
    Ok(manifest)
}

/// Files in the directory of layers that the manifest does not name and this store made.
pub(super) fn orphans(layers_dir: &Path, manifest: &Manifest) -> Result<Vec<PathBuf>, StoreError> {
    let mut orphans = Vec::new();
    for entry in fs::read_dir(layers_dir).map_err(StoreError::io("list", layers_dir))? {
        let path = entry.map_err(StoreError::io("list", layers_dir))?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((id, kind)) = name.split_once('.') else { continue };
        let Ok(id) = u64::from_str_radix(id, 16) else { continue };
        let ours = kind == "journal" || kind == "journal.new" || kind.starts_with("data");
        if ours && (kind == "journal.new" || !manifest.layers.contains_key(&LayerId(id))) {
            orphans.push(path);
        }
    }
    Ok(orphans)
}

/// Removes them.
pub(super) fn remove_orphans(layers_dir: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    for path in orphans(layers_dir, manifest)? {
        tracing::info!(file = %path.display(), "removed a file that a killed process left");
        fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_given_up_even_where_a_process_that_is_starting_has_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let first = lock(dir.path(), true).unwrap();
        let inherited = first.0.try_clone().unwrap();
        assert!(matches!(lock(dir.path(), true), Err(StoreError::Locked { .. })));
        drop(first);
        lock(dir.path(), true).unwrap();
        drop(inherited);
    }
}
