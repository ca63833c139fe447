//! The manifest and its log: as an older program left it, at each step of a rewrite, with damage, and after many changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::change_log::{ChangeLog, HEADER_BYTES, line, log_name, scan};
use super::entries::{Change, Entries, LayerId};
use super::manifest::Manifest;
use super::manifest_file::{MANIFEST, NEW_MANIFEST, load};
use super::synced::{Synced, observe};
use super::{BLOCK_BYTES, StoreError, StoreOptions, VolumeStore, check};
use ebbtide_dir::{Access, Dir};

const SIZE: u64 = 64 * BLOCK_BYTES;

fn open(dir: &Path) -> VolumeStore {
    VolumeStore::open(dir, StoreOptions::default()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What a killed process leaves at this moment.
fn image(dir: &Path) -> TempDir {
    let image = tempfile::tempdir().unwrap();
    copy(dir, image.path());
    image
}

fn write(store: &VolumeStore, volume: &str, block: u64, byte: u8) {
    store.open_volume(volume).unwrap().write_at(&[byte; 4096], block * BLOCK_BYTES).unwrap();
}

fn first_byte(store: &VolumeStore, volume: &str, block: u64) -> u8 {
    let mut bytes = [0; 4096];
    store.open_volume(volume).unwrap().read_at(&mut bytes, block * BLOCK_BYTES).unwrap();
    bytes[0]
}

/// The manifest of a store that nobody has open, with its log.
fn read(dir: &Path) -> Manifest {
    load(&Dir::open(dir).unwrap(), false).unwrap().unwrap().manifest
}

/// Files of the manifest.
fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter(|name| name.starts_with("manifest") || name.starts_with("changes")).collect();
    names.sort();
    names
}

/// Writes the manifest as the first format had it, in which each change replaced the file.
fn to_first_format(dir: &Path) {
    let Entries { next_layer, layers, volumes, snapshots } = read(dir).entries().clone();
    let body =
        json!({"next_layer": next_layer, "layers": layers, "volumes": volumes, "snapshots": snapshots});
    let body = serde_json::to_vec_pretty(&body).unwrap();
    let head = format!("ebbtide-store 1 {:08x} {}\n", crc32c::crc32c(&body), body.len());
    files(dir).iter().for_each(|name| fs::remove_file(dir.join(name)).unwrap());
    fs::write(dir.join(MANIFEST), [head.into_bytes(), body].concat()).unwrap();
}

/// A store with two volumes, one of them made from a snapshot of the other.
fn filled() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create_volume("v", SIZE, json!({"of": "v"})).unwrap();
    write(&store, "v", 0, 1);
    store.snapshot("v", "s", Value::Null).unwrap();
    write(&store, "v", 0, 2);
    store.create_from_snapshot("w", "s", SIZE, Value::Null).unwrap();
    write(&store, "w", 1, 3);
    store.settle();
    drop(store);
    dir
}

fn assert_filled(dir: &Path) {
    let report = check(dir, None).unwrap();
    assert!(report.is_clean(), "{:?}", report.damages);
    let store = open(dir);
    let found = [("v", 0), ("v", 1), ("w", 0), ("w", 1)].map(|(volume, at)| first_byte(&store, volume, at));
    assert_eq!(found, [2, 0, 1, 3]);
    assert_eq!(store.names().snapshots, ["s"]);
    assert_eq!(store.meta("v").unwrap(), json!({"of": "v"}));
}

/// What a kill would leave after each step that puts something of the manifest on the disk, from now on.
fn images_of_steps(dir: &Path) -> Arc<Mutex<Vec<(PathBuf, TempDir)>>> {
    let images = Arc::new(Mutex::new(Vec::new()));
    let (taken, of) = (Arc::clone(&images), dir.to_owned());
    observe(dir, move |what| {
        let (Synced::Content(path) | Synced::Name(_, path)) = what;
        taken.lock().push((path.to_owned(), image(&of)));
    });
    images
}

fn steps(images: &[(PathBuf, TempDir)]) -> Vec<&str> {
    images.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect()
}

#[test]
fn a_store_of_the_first_format_is_brought_to_the_second_and_a_kill_at_any_step_leaves_one_of_them() {
    for host_sync in [false, true] {
        let dir = filled();
        to_first_format(dir.path());
        assert!(check(dir.path(), None).unwrap().is_clean(), "a check changes nothing");
        assert_eq!(super::list_snapshots(dir.path()).unwrap().len(), 1);
        assert_eq!(files(dir.path()), ["manifest"]);
        let images = images_of_steps(dir.path());
        drop(VolumeStore::open(dir.path(), StoreOptions { host_sync }).unwrap());
        let images = std::mem::take(&mut *images.lock());
        assert_eq!(steps(&images), ["changes.00000001", "manifest.new", "manifest"]);
        for (at, (_, image)) in images.iter().enumerate() {
            let first_line = fs::read_to_string(image.path().join(MANIFEST)).unwrap();
            let version = first_line.split(' ').nth(1).unwrap();
            assert_eq!(version, ["1", "1", "2"][at], "the rename is the moment");
            assert_filled(image.path());
            assert_eq!(files(image.path()), ["changes.00000001", "manifest"]);
            assert_filled(image.path());
        }
        assert_filled(dir.path());
    }
}

#[test]
fn a_store_of_the_first_format_takes_changes_of_what_it_had() {
    let dir = filled();
    to_first_format(dir.path());
    let store = open(dir.path());
    store.snapshot("v", "t", json!({"of": "t"})).unwrap();
    store.copy_snapshot("s", "u").unwrap();
    write(&store, "v", 1, 9);
    store.settle();
    let killed = image(dir.path());
    drop(store);
    for dir in [dir.path(), killed.path()] {
        let report = check(dir, None).unwrap();
        assert!(report.is_clean(), "{:?}", report.damages);
        let store = open(dir);
        assert_eq!([("v", 0), ("v", 1)].map(|(volume, at)| first_byte(&store, volume, at)), [2, 9]);
        let names: Vec<_> = store.snapshots().into_iter().map(|snapshot| snapshot.name).collect();
        assert_eq!(names, ["s", "t", "u"]);
    }
}

#[test]
fn a_partly_written_successor_of_the_manifest_is_removed() {
    let dir = filled();
    to_first_format(dir.path());
    for name in [NEW_MANIFEST, "changes.00000001", "changes.00000007"] {
        fs::write(dir.path().join(name), "ebbtide").unwrap();
    }
    let left = |note: &&String| note.contains("left over");
    assert_eq!(check(dir.path(), None).unwrap().notes.iter().filter(left).count(), 3);
    assert_filled(dir.path());
    assert_eq!(files(dir.path()), ["changes.00000001", "manifest"]);
}

#[test]
fn a_store_of_a_later_format_is_refused_by_its_version_also_with_changes_in_its_log() {
    let dir = filled();
    assert!(fs::metadata(dir.path().join("changes.00000001")).unwrap().len() > HEADER_BYTES);
    let path = dir.path().join(MANIFEST);
    let text = fs::read_to_string(&path).unwrap();
    // As a program that knows the first format alone compares it.
    fs::write(&path, text.replacen("ebbtide-store 2", "ebbtide-store 3", 1)).unwrap();
    match VolumeStore::open(dir.path(), StoreOptions::default()).unwrap_err() {
        StoreError::Foreign { what, .. } => {
            assert!(what.contains("format is version 3") && what.contains("use the program"), "{what}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_manifest_is_rewritten_once_its_log_is_long_and_a_kill_at_any_step_loses_no_change() {
    for host_sync in [false, true] {
        let dir = filled();
        let store = VolumeStore::open(dir.path(), StoreOptions { host_sync }).unwrap();
        let images = images_of_steps(dir.path());
        let number = store.inner().state.lock().log.number();
        let mut last = 0;
        while store.inner().state.lock().log.number() == number {
            last += 1;
            store.set_meta("w", json!({"last": last, "pad": "x".repeat(500)})).unwrap();
            if store.inner().state.lock().log.is_long() {
                store.settle();
            }
        }
        drop(store);
        assert!((80..400).contains(&last), "{last} changes of 700 bytes");
        assert_eq!(files(dir.path()), [log_name(number + 1).as_str(), "manifest"]);
        let images = std::mem::take(&mut *images.lock());
        let rewritten = steps(&images).iter().position(|step| *step == log_name(number + 1)).unwrap();
        assert!(steps(&images)[rewritten..].ends_with(&["manifest"]), "{:?}", steps(&images));
        for (_, image) in &images[rewritten..] {
            assert_filled(image.path());
            let store = open(image.path());
            assert_eq!(store.meta("w").unwrap()["last"], last);
        }
        assert_filled(dir.path());
    }
}

#[test]
fn changes_that_are_made_while_the_manifest_is_rewritten_are_taken_over() {
    for host_sync in [false, true] {
        let dir = filled();
        let store = VolumeStore::open(dir.path(), StoreOptions { host_sync }).unwrap();
        let once = Mutex::new(Some(store.clone()));
        observe(dir.path(), move |what| {
            if let Synced::Content(path) = what
                && path.ends_with(NEW_MANIFEST)
                && let Some(store) = once.lock().take()
            {
                store.snapshot("v", "late", Value::Null).unwrap();
                store.set_meta("v", json!("late")).unwrap();
            }
        });
        let number = store.inner().state.lock().log.number();
        while store.inner().state.lock().log.number() == number {
            store.set_meta("w", json!("x".repeat(2_000))).unwrap();
        }
        store.set_meta("w", json!("after")).unwrap();
        store.settle(); // the old log is removed after the switch
        let killed = image(dir.path());
        drop(store);
        for dir in [killed.path(), dir.path()] {
            assert!(check(dir, None).unwrap().is_clean());
            let store = open(dir);
            assert_eq!(store.names().snapshots, ["late", "s"]);
            assert_eq!((store.meta("v").unwrap(), store.meta("w").unwrap()), (json!("late"), json!("after")));
            assert_eq!(first_byte(&store, "v", 0), 2);
        }
    }
}

/// Changes of all kinds, by a small generator.
fn change_at_random(store: &VolumeStore, random: &mut u64, step: usize) {
    let mut below = |end: usize| {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        usize::try_from(*random >> 33).unwrap() % end
    };
    let names = store.names();
    let (kind, at) = (below(12), below(1 << 20));
    let of = |names: &[String]| (!names.is_empty()).then(|| names[at % names.len()].clone());
    let new = format!("n{step}");
    match (kind, of(&names.volumes), of(&names.snapshots), of(&names.pending)) {
        (0, ..) | (_, None, ..) => store.create_volume(&new, SIZE, Value::Null).unwrap(),
        (1 | 2, Some(volume), ..) => write(store, &volume, u64::try_from(at % 60).unwrap(), 7),
        (3 | 4, Some(volume), ..) => store.snapshot(&volume, &new, Value::Null).unwrap(),
        (5, Some(volume), ..) => store.clone_volume(&volume, &new, Value::Null).unwrap(),
        (6, Some(volume), ..) => store.delete_volume(&volume).unwrap(),
        (7, _, Some(snapshot), _) => store.delete_snapshot(&snapshot).unwrap(),
        (8, _, Some(snapshot), _) => store.create_from_snapshot(&new, &snapshot, SIZE, Value::Null).unwrap(),
        (9, _, Some(snapshot), _) if at % 2 == 0 => store.copy_snapshot(&snapshot, &new).unwrap(),
        (9 | 10, _, parent, None) => store.begin_snapshot(&new, SIZE, parent.as_deref()).unwrap(),
        (9, .., Some(pending)) => store.complete_snapshot(&pending, Value::Null).unwrap(),
        (10, .., Some(pending)) if at % 3 == 0 => store.abandon_snapshot(&pending).unwrap(),
        (10, .., Some(pending)) => store.open_pending(&pending).unwrap().write_block(0, &[1; 512]).unwrap(),
        (_, Some(volume), ..) => store.set_meta(&volume, json!(step)).unwrap(),
    }
}

/// The layers that something needs, found by going down from all volumes and snapshots.
fn reachable(manifest: &Manifest) -> BTreeSet<LayerId> {
    let tops = manifest.volumes().values().map(|volume| volume.top);
    let roots = tops.chain(manifest.snapshots().values().map(|snapshot| snapshot.layer));
    roots.flat_map(|root| manifest.chain(root)).collect()
}

#[test]
fn after_each_change_the_manifest_is_what_its_files_say_and_has_no_layer_that_nothing_needs() {
    for seed in 1..12_u64 {
        println!("seed {seed}");
        let dir = tempfile::tempdir().unwrap();
        let (mut store, mut random) = (open(dir.path()), seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for step in 0..150 {
            change_at_random(&store, &mut random, step);
            match step % 10 {
                3 => store.settle(),
                7 => {
                    drop(store);
                    store = open(dir.path());
                }
                _ => {}
            }
            let state = store.inner().state.lock();
            let manifest = &state.manifest;
            assert_eq!(&Manifest::of(manifest.entries().clone()).unwrap(), manifest, "step {step}");
            assert_eq!(&read(dir.path()), manifest, "step {step}");
            let listed: BTreeSet<_> = manifest.layers().keys().copied().collect();
            assert_eq!(listed, reachable(manifest), "step {step}");
        }
    }
}

#[test]
fn the_bytes_that_a_change_writes_do_not_grow_with_the_number_of_snapshots() {
    const ROUNDS: usize = 6;
    const EACH: usize = 400;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create_volume("v", SIZE, Value::Null).unwrap();
    let rewritten = Arc::new(Mutex::new(0));
    let sum = Arc::clone(&rewritten);
    observe(dir.path(), move |what| {
        if let Synced::Content(path) = what
            && path.ends_with(NEW_MANIFEST)
        {
            *sum.lock() += path.metadata().unwrap().len();
        }
    });
    let mut longest = [0; ROUNDS];
    for number in 0..ROUNDS * EACH {
        if number % 10 == 0 {
            write(&store, "v", 0, 1); // the snapshot is a layer of its own
        }
        let log = || {
            let state = store.inner().state.lock();
            (state.log.number(), state.log.end())
        };
        let before = log();
        store.snapshot("v", &format!("s{number:06}"), json!({"number": 1})).unwrap();
        let after = log();
        if after.0 == before.0 {
            longest[number / EACH] = longest[number / EACH].max(after.1 - before.1);
        }
    }
    store.settle();
    let rewritten = *rewritten.lock();
    println!("at most {longest:?} bytes appended for one, {rewritten} bytes rewritten");
    assert!(longest[ROUNDS - 1] <= longest[0] + 20, "only numbers get longer: {longest:?}");
    let all = longest[0] * u64::try_from(ROUNDS * EACH).unwrap();
    assert!(rewritten > 0 && rewritten < 3 * all, "{rewritten} bytes rewritten for {all} appended");
    assert_eq!(store.names().snapshots.len(), ROUNDS * EACH);
}

/// A directory with a log of changes, and the log.
fn log_of(changes: u64) -> (TempDir, Dir, ChangeLog) {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    let mut log = ChangeLog::create(&dir, 5, 0).unwrap();
    (0..changes).for_each(|number| append(&mut log, number).unwrap());
    (temp, dir, log)
}

fn append(log: &mut ChangeLog, number: u64) -> Result<(), StoreError> {
    let change = Change { next_layer: Some(number), ..Default::default() };
    log.append(&change, false)
}

/// The changes that are read, or what is damaged and where.
fn scanned(dir: &Dir, restarted: bool) -> Result<Vec<u64>, (u64, String)> {
    let mut numbers = Vec::new();
    match scan(dir, 5, restarted, &mut |change| numbers.push(change.next_layer.unwrap())) {
        Ok(scan) => {
            assert_eq!(scan.changes, numbers.len());
            Ok(numbers)
        }
        Err(StoreError::Damaged(damage)) => Err((damage.offset, damage.what)),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_bit_or_a_cut_in_what_is_sealed_is_damage_and_behind_it_only_the_last_change_may_be_torn() {
    let (temp, dir, mut log) = log_of(3);
    let path = temp.path().join("changes.00000005");
    let sealed = log.end();
    log.seal(sealed);
    let lines: Vec<u64> = (3..6)
        .map(|number| {
            let at = log.end();
            append(&mut log, number).unwrap();
            at
        })
        .collect();
    let good = fs::read(&path).unwrap();
    assert_eq!(scanned(&dir, false).unwrap(), [0, 1, 2, 3, 4, 5]);
    for byte in 0..good.len() {
        let at = u64::try_from(byte).unwrap();
        let mut bytes = good.clone();
        bytes[byte] ^= 0x04;
        fs::write(&path, &bytes).unwrap();
        let (found, after_restart) = (scanned(&dir, false), scanned(&dir, true));
        if at < sealed {
            assert!(found.is_err() && after_restart.is_err(), "{byte}: {found:?} {after_restart:?}");
        } else {
            let whole = 3 + u64::try_from(lines.iter().filter(|line| **line <= at).count()).unwrap() - 1;
            let kept: Vec<u64> = (0..whole).collect();
            assert_eq!(after_restart.unwrap(), kept, "{byte}");
            match at < lines[2] {
                true => assert!(lines.contains(&found.unwrap_err().0), "{byte}"),
                false => assert_eq!(found.unwrap(), kept, "{byte}"),
            }
        }
        fs::write(&path, &good[..byte]).unwrap();
        let found = scanned(&dir, false);
        if at < sealed {
            assert_eq!(found.unwrap_err().0, if at < HEADER_BYTES { 0 } else { at }, "cut at {byte}");
        } else {
            let whole = 3 + lines.iter().filter(|line| **line <= at).count() - 1;
            assert_eq!(found.unwrap().len(), whole, "cut at {byte}");
        }
    }
    fs::write(&path, [good.as_slice(), &[0; 700]].concat()).unwrap();
    assert_eq!(scanned(&dir, false).unwrap(), [0, 1, 2, 3, 4, 5]);
    fs::remove_file(&path).unwrap();
    assert_eq!(scanned(&dir, true).unwrap_err(), (0, "the file is missing".to_owned()));
}

#[test]
fn a_torn_change_is_reported_cut_off_and_the_next_one_is_whole() {
    let (temp, dir, log) = log_of(2);
    let path = temp.path().join("changes.00000005");
    drop(log);
    let whole = path.metadata().unwrap().len();
    let torn = [fs::read(&path).unwrap(), b"0123abcd {\"next_lay".to_vec()].concat();
    fs::write(&path, torn).unwrap();
    let found = scan(&dir, 5, false, &mut |_| ()).unwrap();
    assert_eq!((found.end, found.torn_bytes, found.changes), (whole, 19, 2));
    let mut log = ChangeLog::adopt(&dir, found, 0, true).unwrap();
    assert!(!log.is_unsealed(), "with host_sync an open seals");
    assert_eq!(path.metadata().unwrap().len(), whole);
    append(&mut log, 2).unwrap();
    assert_eq!(scanned(&dir, false).unwrap(), [0, 1, 2]);
}

#[test]
fn a_change_that_failed_is_cut_off_before_the_next_one_is_answered() {
    let (temp, dir, mut log) = log_of(2);
    let path = temp.path().join("changes.00000005");
    let read_only = dir.file("changes.00000005", Access::Read).unwrap();
    let good = log.replace_file(read_only);
    assert!(append(&mut log, 7).is_err());
    // What such a failure may leave.
    fs::write(&path, [fs::read(&path).unwrap(), vec![b'x'; 300]].concat()).unwrap();
    assert!(append(&mut log, 7).is_err(), "it cannot be cut off yet");
    log.replace_file(good);
    append(&mut log, 2).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), log.end());
    assert_eq!(scanned(&dir, false).unwrap(), [0, 1, 2]);
}

#[test]
fn a_store_whose_log_is_missing_or_of_another_manifest_is_refused() {
    let dir = filled();
    let path = dir.path().join("changes.00000001");
    let good = fs::read(&path).unwrap();
    let refused = || match VolumeStore::open(dir.path(), StoreOptions::default()).unwrap_err() {
        StoreError::Damaged(damage) => damage.file,
        other => panic!("{other}"),
    };
    fs::remove_file(&path).unwrap();
    assert_eq!(refused(), path);
    let other = ChangeLog::create(&Dir::open(dir.path()).unwrap(), 2, 0).unwrap();
    drop(other);
    fs::rename(dir.path().join("changes.00000002"), &path).unwrap();
    assert_eq!(refused(), path);
    fs::write(&path, good).unwrap();
    assert_filled(dir.path());
}

#[test]
fn files_of_a_deleted_volume_go_when_the_deletion_is_on_the_hosts_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create_volume("v", SIZE, Value::Null).unwrap();
    write(&store, "v", 0, 1);
    store.settle();
    let journal = dir.path().join("layers/00000001.journal");
    assert!(journal.exists());
    let there = Arc::new(Mutex::new(Vec::new()));
    let (seen, of) = (Arc::clone(&there), journal.clone());
    observe(dir.path(), move |_| seen.lock().push(of.exists()));
    store.delete_volume("v").unwrap();
    store.settle();
    assert_eq!((there.lock().last(), journal.exists()), (Some(&true), false));
}

#[test]
fn what_a_killed_process_left_goes_when_the_changes_are_on_the_hosts_disk() {
    let dir = filled();
    let orphan = dir.path().join("layers/000000ff.journal");
    fs::write(&orphan, "left").unwrap();
    let there = Arc::new(Mutex::new(Vec::new()));
    let (seen, of) = (Arc::clone(&there), orphan.clone());
    observe(dir.path(), move |_| seen.lock().push(of.exists()));
    let store = open(dir.path());
    assert_eq!((there.lock().first(), orphan.exists()), (Some(&true), false));
    drop(store);
    assert_filled(dir.path());
}

#[test]
fn a_whole_change_that_cannot_be_read_is_damage_and_not_torn() {
    let (_temp, dir, log) = log_of(2);
    let line = line(log.number(), log.end(), br#"{"of_a_later_version":1}"#);
    let file = dir.file(log_name(log.number()), Access::Write).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &line, log.end()).unwrap();
    for restarted in [false, true] {
        let (at, what) = scanned(&dir, restarted).unwrap_err();
        assert_eq!(at, log.end(), "{what}");
        assert!(what.contains("of_a_later_version"), "{what}");
    }
}

#[test]
fn a_log_whose_sync_failed_is_replaced_before_anything_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create_volume("v", SIZE, Value::Null).unwrap();
    store.create_volume("w", SIZE, Value::Null).unwrap();
    store.settle();
    // It takes what is written, and refuses to be synced.
    let null = fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    store.inner().state.lock().log.replace_file(null);
    store.delete_volume("v").unwrap();
    store.settle();
    assert_eq!(files(dir.path()), ["changes.00000002", "manifest"]);
    assert!(!dir.path().join("layers/00000001.journal").exists());
    drop(store);
    assert_eq!(open(dir.path()).names().volumes, ["w"]);
}
