//! A store whose directory or lock is replaced while a process has it.

use std::path::Path;

use ebbtide_device::store::{StoreError, VolumeStore};
use serde_json::Value;

use crate::support::{assert_clean, open};

const SIZE: u64 = 1 << 20;

/// Writes one block of a volume with a byte.
fn write(volume: &ebbtide_device::store::OpenVolume, block: u64, byte: u8) {
    volume.write_at(&[byte; 4096], block * 4096).unwrap();
}

fn names(store: &VolumeStore) -> Vec<String> {
    store.volumes().into_iter().map(|volume| volume.name).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

#[track_caller]
fn assert_refused(refused: Result<(), StoreError>) {
    let refused = refused.unwrap_err();
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(why.contains("deleted or replaced"), "{refused}: {why}");
}

#[test]
fn a_store_that_was_deleted_and_made_again_loses_nothing_to_the_process_that_had_the_old_one() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("store");
    let old = open(&dir);
    old.create_volume("v", SIZE, Value::Null).unwrap();
    let old_volume = old.open_volume("v").unwrap();
    write(&old_volume, 0, 1);
    std::fs::remove_dir_all(&dir).unwrap();
    let new = open(&dir);
    new.create_volume("v", SIZE, Value::Null).unwrap();
    let volume = new.open_volume("v").unwrap();
    for block in [4, 6, 8] {
        write(&volume, block, 2);
    }
    assert_refused(old.create_volume("w", SIZE, Value::Null));
    // Writes its journal anew, over the one that is there by name.
    drop(old_volume);
    drop(old);
    write(&volume, 10, 2);
    // As `kill -9` of the new process would leave it.
    let killed = temp.path().join("killed");
    copy(&dir, &killed);
    assert_clean(&killed);
    let store = open(&killed);
    assert_eq!(names(&store), ["v"]);
    let volume = store.open_volume("v").unwrap();
    for (block, byte) in [(0, 0), (4, 2), (6, 2), (8, 2), (10, 2)] {
        let mut found = [9; 4096];
        volume.read_at(&mut found, block * 4096).unwrap();
        assert_eq!(found, [byte; 4096], "block {block}");
    }
}

#[test]
fn a_store_whose_lock_was_removed_is_changed_by_its_next_process_alone() {
    let temp = tempfile::tempdir().unwrap();
    let old = open(temp.path());
    old.create_volume("v", SIZE, Value::Null).unwrap();
    std::fs::remove_file(temp.path().join("lock")).unwrap();
    assert_refused(old.create_volume("w", SIZE, Value::Null));
    let new = open(temp.path());
    new.create_volume("x", SIZE, Value::Null).unwrap();
    let files = crate::support::layer_files(temp.path());
    assert_refused(old.create_volume("w", SIZE, Value::Null));
    assert_refused(old.delete_volume("v"));
    assert_refused(old.set_meta("v", Value::Bool(true)));
    drop(old);
    assert_eq!(crate::support::layer_files(temp.path()), files);
    drop(new);
    assert_eq!(names(&open(temp.path())), ["v", "x"]);
}

#[test]
fn a_store_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let temp = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let layers = temp.path().join("layers");
    let dirs = [temp.path(), &layers];
    let files = || {
        let all = dirs.iter().flat_map(|dir| std::fs::read_dir(dir).unwrap());
        let files = all.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        files.collect::<Vec<_>>()
    };
    set(temp.path(), 0o755);
    for round in ["new", "opened again"] {
        let store = open(temp.path());
        if round == "new" {
            store.create_volume("v", SIZE, Value::Null).unwrap();
        }
        write(&store.open_volume("v").unwrap(), 0, 1);
        drop(store);
        assert!(files().len() >= 5, "{:?}", files());
        for (path, right) in
            files().iter().map(|file| (file.as_path(), 0o600)).chain(dirs.map(|dir| (dir, 0o700)))
        {
            assert_eq!(mode(path), right, "{round}: {}", path.display());
            set(path, right | right >> 3 & 0o055 | 0o044);
        }
    }
}
