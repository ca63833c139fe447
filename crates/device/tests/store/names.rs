//! What the store refuses, and its messages.

use ebbtide_device::store::{
    CloneRequest, SnapshotRequest, StoreError, StoreNames, StoreOptions, VolumeStore, check, list_snapshots,
};
use serde_json::{Value, json};

use crate::support::{assert_clean, layer_files, open, store_with_volume};

const GIB: u64 = 1 << 30;

#[test]
fn names_outside_the_allowed_form_are_refused() {
    let (_dir, store) = store_with_volume(GIB);
    for name in ["", "A", "-a", ".a", "a/b", "a b", "ä", &"a".repeat(64)] {
        let refused = store.create_volume(name, GIB, Value::Null).unwrap_err();
        assert!(matches!(&refused, StoreError::Name { name: n } if n == name), "{name}: {refused}");
        assert!(matches!(store.snapshot("v", name, Value::Null), Err(StoreError::Name { .. })));
    }
    store.create_volume(&"a".repeat(63), GIB, Value::Null).unwrap();
    store.create_volume("0._-", GIB, Value::Null).unwrap();
}

#[test]
fn sizes_that_no_volume_can_have_are_refused_with_the_rule() {
    let (_dir, store) = store_with_volume(GIB);
    for size in [0, 1, 4095, 4097, (64 << 40) + 4096] {
        let refused = store.create_volume("w", size, Value::Null).unwrap_err().to_string();
        assert!(refused.contains(&size.to_string()) && refused.contains("64 TiB"), "{refused}");
    }
    store.create_volume("w", 64 << 40, Value::Null).unwrap();
    let shrunk = store.resize_volume("v", GIB / 2).unwrap_err().to_string();
    assert!(shrunk.contains("only grows"), "{shrunk}");
    store.snapshot("v", "s", Value::Null).unwrap();
    assert!(matches!(
        store.create_from_snapshot("x", "s", GIB / 2, Value::Null),
        Err(StoreError::Size { .. })
    ));
}

#[test]
fn what_is_missing_taken_or_in_use_is_refused_by_name() {
    let (_dir, store) = store_with_volume(GIB);
    assert!(matches!(
        store.create_volume("v", GIB, Value::Null),
        Err(StoreError::Exists { kind: "volume", .. })
    ));
    assert!(matches!(store.open_volume("w"), Err(StoreError::NotFound { kind: "volume", .. })));
    assert!(matches!(
        store.snapshot("w", "s", Value::Null),
        Err(StoreError::NotFound { kind: "volume", .. })
    ));
    assert!(matches!(store.delete_snapshot("s"), Err(StoreError::NotFound { kind: "snapshot", .. })));
    store.snapshot("v", "s", Value::Null).unwrap();
    assert!(matches!(
        store.snapshot("v", "s", Value::Null),
        Err(StoreError::Exists { kind: "snapshot", .. })
    ));

    let open = store.open_volume("v").unwrap();
    assert!(matches!(store.open_volume("v"), Err(StoreError::Busy { .. })));
    assert!(matches!(store.delete_volume("v"), Err(StoreError::Busy { .. })));
    store.create_volume("w", GIB, Value::Null).unwrap();
    store.snapshot("w", "other", Value::Null).unwrap();
    assert!(matches!(open.dirty_since("other", 0, GIB), Err(StoreError::NotAncestor { .. })));
    drop(open);
    store.delete_volume("v").unwrap();
}

#[test]
fn a_store_that_is_open_refuses_a_second_opening_and_a_check_and_names_the_process() {
    let (dir, store) = store_with_volume(GIB);
    let me = Some(std::process::id());
    let again = VolumeStore::open(dir.path(), StoreOptions::default()).unwrap_err();
    assert!(matches!(&again, StoreError::Locked { pid, .. } if *pid == me), "{again}");
    let checked = check(dir.path(), None).unwrap_err();
    assert!(matches!(&checked, StoreError::Locked { pid, .. } if *pid == me), "{checked}");

    // An open volume keeps the store: its handle may outlive every other.
    let volume = store.open_volume("v").unwrap();
    drop(store);
    assert!(matches!(check(dir.path(), None), Err(StoreError::Locked { .. })));
    drop(volume);
    assert!(check(dir.path(), None).unwrap().is_clean());
}

#[test]
fn a_directory_of_other_things_is_not_made_a_store() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
    let refused = VolumeStore::open(dir.path(), StoreOptions::default()).unwrap_err();
    assert!(matches!(&refused, StoreError::Foreign { what, .. } if what.contains("thesis.txt")), "{refused}");
}

#[test]
fn what_is_kept_with_a_volume_and_a_snapshot_comes_back() {
    let (dir, store) = store_with_volume(GIB);
    store.set_meta("v", json!({"type": "gp3", "iops": 3000})).unwrap();
    store.snapshot("v", "s", json!("nightly")).unwrap();
    store.create_from_snapshot("w", "s", 2 * GIB, json!(1)).unwrap();
    store.clone_volume("w", "x", json!(2)).unwrap();
    store.resize_volume("v", 3 * GIB).unwrap();
    drop(store);
    let store = open(dir.path());
    let volumes = store.volumes();
    let seen: Vec<_> = volumes.iter().map(|v| (v.name.as_str(), v.size_bytes, &v.meta)).collect();
    assert_eq!(
        seen,
        [
            ("v", 3 * GIB, &json!({"type": "gp3", "iops": 3000})),
            ("w", 2 * GIB, &json!(1)),
            ("x", 2 * GIB, &json!(2))
        ]
    );
    let summaries = store.summaries();
    let short: Vec<_> = summaries.iter().map(|v| (v.name.as_str(), v.size_bytes, &v.meta)).collect();
    assert_eq!(short, seen);
    assert!(summaries.iter().all(|summary| !summary.is_damaged));
    assert_eq!(volumes[1].from_snapshot.as_deref(), Some("s"));
    assert_eq!(volumes[2].from_volume.as_deref(), Some("w"));
    let snapshot = &store.snapshots()[0];
    assert_eq!(
        (snapshot.meta.clone(), snapshot.size_bytes, snapshot.from_volume.as_str()),
        (json!("nightly"), GIB, "v")
    );
}

#[test]
fn io_outside_the_volume_is_refused_with_the_numbers() {
    let (_dir, store) = store_with_volume(8192);
    let volume = store.open_volume("v").unwrap();
    let refused = volume.write_at(&[1; 513], 7680).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    assert!(
        refused.to_string().contains("513 bytes at 7680") && refused.to_string().contains("8192"),
        "{refused}"
    );
    assert!(volume.read_at(&mut [0; 2], u64::MAX).is_err());
    assert!(volume.discard(0, 8193).is_err());
    store.resize_volume("v", 12288).unwrap();
    volume.write_at(&[1; 513], 7680).unwrap();
}

#[test]
fn several_clones_are_made_or_none_is() {
    let (dir, store) = store_with_volume(GIB);
    let volume = store.open_volume("v").unwrap();
    store.create_volume("w", GIB, Value::Null).unwrap();
    let files = || layer_files(dir.path());
    let names = || store.volumes().into_iter().map(|volume| volume.name).collect::<Vec<_>>();
    volume.write_at(&[1; 4096], 0).unwrap();
    let before = files();
    let clone = |source, name| CloneRequest { source, name, meta: Value::Null };
    for [(source, name), second] in [
        [("v", "a"), ("v", "w")],
        [("v", "a"), ("w", "a")],
        [("v", "a"), ("x", "b")],
        [("v", "a"), ("v", "A")],
    ] {
        store.clone_volumes(&[clone(source, name), clone(second.0, second.1)]).unwrap_err();
        assert_eq!((files(), names()), (before.clone(), vec!["v".to_owned(), "w".to_owned()]));
    }

    store.clone_volumes(&[clone("v", "a"), clone("w", "b"), clone("v", "c")]).unwrap();
    volume.write_at(&[2; 4096], 0).unwrap();
    for (name, byte) in [("a", 1), ("b", 0), ("c", 1)] {
        let mut bytes = [9; 4096];
        let clone = store.open_volume(name).unwrap();
        clone.read_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [byte; 4096], "{name}");
        clone.write_at(&[3; 4096], 0).unwrap();
    }
    let mut bytes = [0; 4096];
    volume.read_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [2; 4096]);
    drop((volume, store));
    let store = open(dir.path());
    assert_eq!(store.volume("c").unwrap().from_volume.as_deref(), Some("v"));
    drop(store);
    assert_clean(dir.path());
}

#[test]
fn the_snapshots_of_a_store_that_is_open_are_listed_without_its_lock_as_its_owner_lists_them() {
    let (dir, store) = store_with_volume(GIB);
    assert_eq!(list_snapshots(dir.path()).unwrap(), []);
    let volume = store.open_volume("v").unwrap();
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        volume.write_at(&[1; 8192], u64::try_from(number).unwrap() * 4096).unwrap();
        store.snapshot("v", name, json!({ "number": number })).unwrap();
    }
    store.delete_snapshot("b").unwrap();
    store.settle();
    volume.write_at(&[2; 4096], 1 << 20).unwrap();
    let listed = list_snapshots(dir.path()).unwrap();
    assert_eq!(listed, store.snapshots());
    assert_eq!(listed.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!((listed[1].data_blocks, &listed[1].damage), (4, &None));
    assert_eq!(list_snapshots(&dir.path().join("nowhere")).unwrap(), []);
}

#[test]
fn several_snapshots_are_taken_or_none_and_a_copy_needs_no_source() {
    let (dir, store) = store_with_volume(GIB);
    store.create_volume("w", GIB, json!("of w")).unwrap();
    let volume = store.open_volume("v").unwrap();
    volume.write_at(&[1; 4096], 0).unwrap();
    let request = |volume, name| SnapshotRequest { volume, name, meta: json!(name) };
    let refused =
        store.take_snapshots(&[request("v", "a"), request("w", "b"), request("v", "a")]).unwrap_err();
    assert!(matches!(refused, StoreError::Exists { .. }), "{refused}");
    assert!(store.snapshots().is_empty());
    store.take_snapshots(&[request("v", "a"), request("w", "b"), request("v", "c")]).unwrap();
    volume.write_at(&[2; 4096], 0).unwrap();
    store.copy_snapshot("a", "copy").unwrap();
    store.delete_snapshot("a").unwrap();
    store.delete_snapshot("c").unwrap();
    assert!(matches!(store.copy_snapshot("a", "d"), Err(StoreError::NotFound { .. })));
    assert!(matches!(store.copy_snapshot("b", "copy"), Err(StoreError::Exists { .. })));
    store.settle();
    let names = StoreNames {
        volumes: vec!["v".into(), "w".into()],
        snapshots: vec!["b".into(), "copy".into()],
        pending: Vec::new(),
    };
    assert_eq!(store.names(), names);
    let found = store.snapshot_info("copy").unwrap();
    assert_eq!((found.data_blocks, found.meta.clone(), found.from_volume.as_str()), (1, json!("a"), "v"));
    store.create_from_snapshot("x", "copy", GIB, json!(null)).unwrap();
    let mut bytes = [0; 4096];
    store.open_volume("x").unwrap().read_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [1; 4096]);
    drop((volume, store));
    assert_clean(dir.path());
}
