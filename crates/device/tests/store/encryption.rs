//! Encrypted volumes against plain ones that are written to alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use ebbtide_device::store::{
    DATA_KEY_BYTES, DataKey, KeyUnavailable, KeyUnwrapper, StoreError, VolumeStore, WrappedKey,
    list_snapshots,
};
use serde_json::{Value, json};

use crate::support::{Rng, assert_clean, open, seed};

const SIZE: u64 = 4 << 20;

/// A key's blob is the number that its bytes begin with; it unwraps with its own name only.
#[derive(Debug)]
struct Keys;

impl KeyUnwrapper for Keys {
    fn unwrap_key(&self, wrapped: &WrappedKey) -> Result<DataKey, KeyUnavailable> {
        let first: u8 =
            wrapped.blob.parse().map_err(|_| KeyUnavailable(format!("{} is disabled.", wrapped.key_id)))?;
        let mut bytes = [0; DATA_KEY_BYTES];
        bytes.iter_mut().zip(first..).for_each(|(byte, value)| *byte = value);
        DataKey::new(bytes)
    }
}

fn key(blob: &str) -> WrappedKey {
    let context = BTreeMap::from([("aws:ebs:id".to_owned(), "vol-1".to_owned())]);
    WrappedKey { key_id: format!("key/{blob}"), blob: blob.to_owned(), context }
}

/// A store with a plain volume and an encrypted one.
fn pair() -> (tempfile::TempDir, VolumeStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.set_key_unwrapper(Arc::new(Keys));
    store.create_volume("plain", SIZE, Value::Null).unwrap();
    store.create_encrypted_volume("secret", SIZE, Value::Null, key("1")).unwrap();
    (dir, store)
}

fn whole(store: &VolumeStore, volume: &str) -> Vec<u8> {
    let volume = store.open_volume(volume).unwrap();
    let mut all = vec![0; usize::try_from(volume.size_bytes()).unwrap()];
    volume.read_at(&mut all, 0).unwrap();
    all
}

fn of_volume(store: &VolumeStore, name: &str, snapshot: &str, key: Option<WrappedKey>) -> Vec<u8> {
    match key {
        Some(key) => store.create_from_snapshot_encrypted(name, snapshot, SIZE, Value::Null, key).unwrap(),
        None => store.create_from_snapshot(name, snapshot, SIZE, Value::Null).unwrap(),
    }
    whole(store, name)
}

#[test]
fn an_encrypted_volume_reads_as_a_plain_one_after_the_same_writes_discards_snapshots_and_merges() {
    let (dir, store) = pair();
    let mut rng = Rng(seed("encrypted and plain"));
    for round in 0..6 {
        let volumes = ["plain", "secret"].map(|name| store.open_volume(name).unwrap());
        for _ in 0..60 {
            let sector = rng.below(SIZE / 512);
            let (offset, len) = (sector * 512, (rng.below(40) + 1).min(SIZE / 512 - sector) * 512);
            let fill = u8::try_from(rng.below(256)).unwrap();
            let what = rng.below(5);
            for volume in &volumes {
                match what {
                    0 => volume.write_zeroes(offset, len).unwrap(),
                    1 => volume.discard(offset, len).unwrap(),
                    _ => volume.write_at(&vec![fill; usize::try_from(len).unwrap()], offset).unwrap(),
                }
            }
        }
        let extents = volumes.each_ref().map(|volume| volume.extents(0, SIZE));
        assert_eq!(extents[0], extents[1], "as sparse as the plain one");
        drop(volumes);
        for name in ["plain", "secret"] {
            store.snapshot(name, &format!("{name}-{round}"), Value::Null).unwrap();
            if round % 2 == 1 {
                store.delete_snapshot(&format!("{name}-{}", round - 1)).unwrap();
            }
        }
        store.settle();
        assert_eq!(whole(&store, "plain"), whole(&store, "secret"));
    }
    let expected = of_volume(&store, "plain-copy", "plain-5", None);
    assert_eq!(of_volume(&store, "secret-copy", "secret-5", None), expected);
    for block in 0..SIZE >> 19 {
        let read = |name| store.read_snapshot_block(name, block).unwrap();
        assert_eq!(read("plain-5"), read("secret-5"));
    }
    // Under another key, and from plain.
    assert_eq!(of_volume(&store, "other", "secret-5", Some(key("2"))), expected);
    assert_eq!(of_volume(&store, "first", "plain-5", Some(key("3"))), expected);
    store.copy_snapshot_encrypted("secret-5", "moved", key("4")).unwrap();
    store.copy_snapshot("secret-5", "named").unwrap();
    assert_eq!(of_volume(&store, "of-moved", "moved", None), expected);
    let blocks = |name| store.snapshot_blocks(name, 0, 100).unwrap();
    assert_eq!(blocks("moved"), blocks("plain-5"));
    let key_of = |name: &str| store.snapshot_key(name).unwrap().map(|key| key.blob);
    assert_eq!(
        ["plain-5", "secret-5", "named", "moved"].map(key_of),
        [None, Some("1"), Some("1"), Some("4")].map(|key| key.map(str::to_owned))
    );
    assert_eq!(store.volume("of-moved").unwrap().key_id.unwrap(), "key/4");
    assert_eq!(store.volume("other").unwrap().from_snapshot.unwrap(), "secret-5");
    assert_eq!(store.names().pending, [""; 0]);
    drop(store);
    let store = open(dir.path());
    store.set_key_unwrapper(Arc::new(Keys));
    assert_eq!(whole(&store, "other"), expected);
    let listed = list_snapshots(dir.path()).unwrap();
    assert!(listed.iter().all(|one| one.key_id.is_some() != one.name.starts_with("plain")));
    drop(store);
    assert_clean(dir.path());
}

#[test]
fn without_its_key_nothing_encrypted_is_opened_or_read_and_a_copy_leaves_nothing_behind() {
    let (dir, store) = pair();
    store.open_volume("secret").unwrap().write_at(&[7; 4096], 0).unwrap();
    store.snapshot("secret", "s", json!({ "kept": 1 })).unwrap();
    store.snapshot("plain", "p", Value::Null).unwrap();
    let bad = || key("none");
    let refusals = [
        store.copy_snapshot_encrypted("s", "t", bad()).unwrap_err(),
        store.copy_snapshot_encrypted("p", "t", bad()).unwrap_err(),
        store.create_from_snapshot_encrypted("v", "s", SIZE, Value::Null, bad()).unwrap_err(),
    ];
    for refused in refusals {
        assert!(matches!(refused, StoreError::Key { .. }), "{refused:?}");
        let cause = std::error::Error::source(&refused).unwrap();
        assert_eq!(cause.to_string(), "key/none is disabled.");
    }
    // An open volume goes on, and what has its key is made of it.
    let exists = store.copy_snapshot_encrypted("s", "p", key("2")).unwrap_err();
    assert!(matches!(exists, StoreError::Exists { .. }), "{exists}");
    let exists = store.create_from_snapshot_encrypted("plain", "s", SIZE, Value::Null, key("2")).unwrap_err();
    assert!(matches!(exists, StoreError::Exists { .. }), "{exists}");
    let names = store.names();
    assert_eq!((names.snapshots, names.pending), (vec!["p".to_owned(), "s".to_owned()], Vec::new()));
    drop(store);
    let store = open(dir.path());
    for refused in [
        store.open_volume("secret").unwrap_err(),
        store.read_snapshot_block("s", 0).unwrap_err(),
        store.copy_snapshot_encrypted("s", "t", key("2")).unwrap_err(),
    ] {
        assert!(matches!(refused, StoreError::Key { .. }), "{refused:?}");
    }
    // A copy with the same key needs none.
    store.copy_snapshot("s", "t").unwrap();
    store.open_volume("plain").unwrap();
}

#[test]
fn a_snapshot_of_blocks_is_encrypted_and_so_is_one_that_begins_as_it() {
    let (_dir, store) = pair();
    store.begin_encrypted_snapshot("s", SIZE, key("5")).unwrap();
    let block = vec![9; 512 << 10];
    store.open_pending("s").unwrap().write_block(2, &block).unwrap();
    assert_eq!(store.open_pending("s").unwrap().read_block(2).unwrap(), block);
    store.complete_snapshot("s", Value::Null).unwrap();
    store.begin_snapshot("t", SIZE, Some("s")).unwrap();
    store.open_pending("t").unwrap().write_block(3, &block).unwrap();
    store.complete_snapshot("t", Value::Null).unwrap();
    assert_eq!(store.snapshot_key("t").unwrap(), Some(key("5")));
    let read = |index| store.read_snapshot_block("t", index).unwrap();
    assert!(read(2) == block && read(3) == block && read(0) == vec![0; 512 << 10]);
}
