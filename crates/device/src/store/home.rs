//! The store's directory: its lock, its making, and files in it that nothing names.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};

use super::boot::{BOOT, NEW_BOOT};
use super::change_log::{ChangeLog, log_name, log_number};
use super::entries::LayerId;
use super::manifest::Manifest;
use super::manifest_file::{MANIFEST, NEW_MANIFEST, begin};
use super::{Damage, StoreError};
use ebbtide_dir::{Access, Dir, make_file_private};

/// Name of the directory of layers.
const LAYERS: &str = "layers";
const LOCK: &str = "lock";
/// Space kept back so that a deletion can be written on a full disk, and its size, bytes: also that of the manifest of
/// hundreds of volumes, for a store of the first format.
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

/// Checks that a directory is this user's.
pub(super) fn require_own(dir: &Dir) -> Result<(), StoreError> {
    let (owner, _) = dir.owner_and_mode().map_err(StoreError::io("examine", dir.path()))?;
    let own = rustix::process::geteuid().as_raw();
    if owner != own {
        let what = format!("it belongs to user {owner}, and this process runs as {own}; run it as its owner");
        return Err(StoreError::Foreign { dir: dir.path().to_owned(), what });
    }
    Ok(())
}

/// Takes everyone's permissions to a directory and the files in it away but the owner's.
pub(super) fn protect(dir: &Dir) -> Result<(), StoreError> {
    let protected = dir.make_private().and_then(|()| dir.make_files_private());
    protected.map_err(StoreError::io("protect", dir.path()))
}

/// The same for a directory of many files. They are looked at only where others may enter the directory: it is closed to
/// them after its files are, and every file in it was made for the owner alone.
pub(super) fn protect_many(dir: &Dir) -> Result<(), StoreError> {
    let protect = || {
        if dir.is_private()? {
            return Ok(());
        }
        dir.make_files_private()?;
        dir.make_private()
    };
    protect().map_err(StoreError::io("protect", dir.path()))
}

/// The directory of layers.
pub(super) fn layers(dir: &Dir) -> Result<Dir, StoreError> {
    dir.open_sub(LAYERS).map_err(StoreError::io("open", dir.path().join(LAYERS)))
}

/// Locks the store in `dir`, and gives the directory as one that is changed only while this lock is in place. With
/// `take`, this process writes its number there.
pub(super) fn lock(dir: &Dir, take: bool) -> Result<(Lock, Dir), StoreError> {
    let path = dir.path().join(LOCK);
    let access = if take { Access::Make } else { Access::Read };
    let mut file = dir.file(LOCK, access).map_err(StoreError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(StoreError::Locked { dir: dir.path().to_owned(), pid });
        }
        Err(TryLockError::Error(e)) => return Err(StoreError::io("lock", path)(e)),
    }
    let dir = dir.guarded(LOCK, &file).map_err(StoreError::io("lock", &path))?;
    // Between the two calls it may have been removed with its directory.
    dir.require_held().map_err(StoreError::io("lock", &path))?;
    if take {
        make_file_private(&file).map_err(StoreError::io("protect", &path))?;
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
    Ok((Lock(file), dir))
}

/// Takes the spare space, where it is missing and the disk has much more.
pub(super) fn keep_spare(dir: &Dir) {
    let there = dir.stat(SPARE).is_ok_and(|found| u64::try_from(found.st_size) == Ok(SPARE_BYTES));
    let has_room = || rustix::fs::fstatvfs(dir).is_ok_and(|s| s.f_bavail * s.f_frsize > 8 * SPARE_BYTES);
    if there || !has_room() {
        return;
    }
    let bytes = vec![0xFF; usize::try_from(SPARE_BYTES).expect("small")];
    let written = dir.file(SPARE, Access::Empty).and_then(|mut file| file.write_all(&bytes));
    if written.is_err() {
        drop(dir.remove(SPARE)); // as small as it got, it would be in the way
    }
}

/// Gives the spare space back to the disk; false where there is none.
pub(super) fn release_spare(dir: &Dir) -> bool {
    dir.remove(SPARE).is_ok()
}

/// Makes a store in a directory that has none, provided that nothing is lost by that.
pub(super) fn create(dir: &Dir) -> Result<(Manifest, ChangeLog), StoreError> {
    for name in dir.names().map_err(StoreError::io("list", dir.path()))? {
        if name == LAYERS {
            let layers = layers(dir)?;
            if !layers.names().map_err(StoreError::io("list", layers.path()))?.is_empty() {
                let what = "the file is missing, while there are layers".to_owned();
                return Err(Damage { file: dir.path().join(MANIFEST), offset: 0, what }.into());
            }
            continue;
        }
        let known = [LOCK, SPARE, BOOT, NEW_BOOT, NEW_MANIFEST].iter().any(|known| name == *known);
        if !known && name.to_str().and_then(log_number).is_none() {
            let what = format!("it holds '{}'; give an empty directory", name.to_string_lossy());
            return Err(StoreError::Foreign { dir: dir.path().to_owned(), what });
        }
    }
    dir.make_sub(LAYERS).map_err(StoreError::io("create", dir.path().join(LAYERS)))?;
    let manifest = Manifest::empty();
    let log = begin(dir, &manifest)?;
    Ok((manifest, log))
}

/// Brings a store of the first format to the second.
pub(super) fn upgrade(dir: &Dir, manifest: &Manifest) -> Result<ChangeLog, StoreError> {
    tracing::info!(dir = %dir.path().display(), "the manifest gets a log of its changes; older versions of this program refuse it");
    match begin(dir, manifest) {
        Err(error) if error.is_full() && release_spare(dir) => begin(dir, manifest),
        begun => begun,
    }
}

/// Files of the manifest that a killed process left: logs that it does not name, and one that was not put in place.
pub(super) fn former_manifests(dir: &Dir, log: Option<u64>) -> Result<Vec<String>, StoreError> {
    let names = dir.files().map_err(StoreError::io("list", dir.path()))?.into_iter();
    let left = |name: &String| {
        let number = log_number(name);
        name == NEW_MANIFEST || number.is_some_and(|number| Some(number) != log && *name == log_name(number))
    };
    Ok(names.filter_map(|name| name.into_string().ok()).filter(left).collect())
}

/// Files in the directory of layers that the manifest does not name and this store made.
pub(super) fn orphans(layers_dir: &Dir, manifest: &Manifest) -> Result<Vec<String>, StoreError> {
    let mut orphans = Vec::new();
    for name in layers_dir.names().map_err(StoreError::io("list", layers_dir.path()))? {
        let Ok(name) = name.into_string() else { continue };
        let Some((id, kind)) = name.split_once('.') else { continue };
        let Ok(id) = u64::from_str_radix(id, 16) else { continue };
        let ours = kind == "journal" || kind == "journal.new" || kind.starts_with("data");
        if ours && (kind == "journal.new" || !manifest.layers().contains_key(&LayerId(id))) {
            orphans.push(name);
        }
    }
    Ok(orphans)
}

/// Removes files that a killed process left.
pub(super) fn remove_left(dir: &Dir, names: &[String]) -> Result<(), StoreError> {
    for name in names {
        let path = dir.path().join(name);
        tracing::info!(file = %path.display(), "removed a file that a killed process left");
        dir.remove(name).map_err(StoreError::io("remove", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_given_up_even_where_a_process_that_is_starting_has_its_file() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open(temp.path()).unwrap();
        let (first, _) = lock(&dir, true).unwrap();
        let inherited = first.0.try_clone().unwrap();
        assert!(matches!(lock(&dir, true), Err(StoreError::Locked { .. })));
        drop(first);
        lock(&dir, true).unwrap();
        drop(inherited);
    }
}
