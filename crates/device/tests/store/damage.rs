//! Damage is named with its file and place, and never taken for data.

use std::fs;
use std::path::{Path, PathBuf};

use ebbtide_device::store::{CheckReport, StoreError, StoreOptions, VolumeStore, check};
use serde_json::Value;

use crate::support::{open, store_with_volume};

const BLOCK: u64 = 4096;
const HEADER: usize = 40;
const RECORD: usize = 20;

/// A store whose one volume has a journal of five records, as a killed process leaves it.
fn killed_store() -> (tempfile::TempDir, PathBuf) {
    let (dir, store) = store_with_volume(1 << 20);
    let volume = store.open_volume("v").unwrap();
    store.settle(); // the log of the manifest is sealed
    for i in 0..5_u8 {
        volume.write_at(&[i + 1; 4096], u64::from(i) * 2 * BLOCK).unwrap();
    }
    let killed = tempfile::tempdir().unwrap();
    copy(dir.path(), killed.path());
    let journal = killed.path().join("layers/00000001.journal");
    assert_eq!(fs::read(&journal).unwrap().len(), HEADER + 5 * RECORD);
    (killed, journal)
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

/// First byte of each of the first ten blocks.
fn contents(dir: &Path) -> Vec<u8> {
    let store = open(dir);
    let volume = store.open_volume("v").unwrap();
    let mut bytes = vec![0; 10 * 4096];
    volume.read_at(&mut bytes, 0).unwrap();
    bytes.chunks(4096).map(|block| block[0]).collect()
}

fn refusal(dir: &Path) -> StoreError {
    let store = open(dir);
    assert!(store.volume("v").unwrap().damage.is_some());
    store.open_volume("v").unwrap_err()
}

fn checked(dir: &Path) -> CheckReport {
    check(dir, Some("v")).unwrap()
}

#[test]
fn a_flipped_bit_anywhere_in_a_journal_is_named_or_is_a_cut_tail() {
    for byte in 0..HEADER + 5 * RECORD {
        let (dir, journal) = killed_store();
        let mut bytes = fs::read(&journal).unwrap();
        bytes[byte] ^= 0x10;
        fs::write(&journal, bytes).unwrap();
        let report = checked(dir.path());
        if byte >= HEADER + 4 * RECORD {
            // The very last record: an unanswered write as far as can be known. Cut off, and reported.
            assert!(report.is_clean() && report.notes[0].contains("a torn record"), "{byte}: {report:?}");
            assert_eq!(contents(dir.path()), [1, 0, 2, 0, 3, 0, 4, 0, 0, 0]);
            continue;
        }
        let begin = if byte < HEADER { 0 } else { HEADER + (byte - HEADER) / RECORD * RECORD };
        assert_eq!(report.damages.len(), 1, "{byte}: {report:?}");
        assert_eq!(report.damages[0].file, journal);
        assert_eq!(report.damages[0].offset, u64::try_from(begin).unwrap(), "{byte}");
        match refusal(dir.path()) {
            StoreError::Damaged(damage) => assert_eq!(damage, report.damages[0]),
            other => panic!("{byte}: {other}"),
        }
    }
}

#[test]
fn a_journal_cut_anywhere_loses_its_torn_record_or_is_refused() {
    for len in 0..HEADER + 5 * RECORD {
        let (dir, journal) = killed_store();
        fs::File::options().write(true).open(&journal).unwrap().set_len(u64::try_from(len).unwrap()).unwrap();
        if len < HEADER {
            assert!(matches!(refusal(dir.path()), StoreError::Damaged(d) if d.what.contains("header")));
            continue;
        }
        let torn = !(len - HEADER).is_multiple_of(RECORD);
        let notes = checked(dir.path()).notes;
        assert_eq!(notes.iter().any(|note| note.contains("a torn record")), torn, "{notes:?}");
        let whole = (len - HEADER) / RECORD;
        let expected: Vec<u8> = (0..10_u8)
            .map(|block| if block % 2 == 0 && usize::from(block / 2) < whole { block / 2 + 1 } else { 0 })
            .collect();
        assert_eq!(contents(dir.path()), expected, "cut at {len}");
        assert!(checked(dir.path()).notes.is_empty(), "the tail is gone");
    }
}

#[test]
fn a_journal_cut_between_records_is_damage_where_a_flush_a_close_or_an_open_had_sealed_them() {
    let flushed = |options| {
        let (dir, store) = store_with_volume(1 << 20);
        drop(store);
        let store = VolumeStore::open(dir.path(), options).unwrap();
        let volume = store.open_volume("v").unwrap();
        for i in 0..5_u8 {
            volume.write_at(&[i + 1; 4096], u64::from(i) * 2 * BLOCK).unwrap();
        }
        volume.sync().unwrap();
        let killed = tempfile::tempdir().unwrap();
        copy(dir.path(), killed.path());
        killed
    };
    let closed = || {
        let (dir, _) = killed_store();
        drop(open(dir.path()).open_volume("v").unwrap());
        dir
    };
    let opened = || {
        let (dir, _) = killed_store();
        drop(open(dir.path()));
        dir
    };
    let (without_host_sync, with_host_sync) =
        (|| flushed(StoreOptions::default()), || flushed(StoreOptions { host_sync: true }));
    let sealed: [&dyn Fn() -> tempfile::TempDir; 4] = [&without_host_sync, &with_host_sync, &closed, &opened];
    for dir in sealed {
        for whole in 0..5 {
            let dir = dir();
            let journal = dir.path().join("layers/00000001.journal");
            assert_eq!(checked(dir.path()).unsealed, 0);
            assert_eq!(checked(dir.path()).notes, [] as [&str; 0]);
            let len = u64::try_from(HEADER + whole * RECORD).unwrap();
            fs::File::options().write(true).open(&journal).unwrap().set_len(len).unwrap();
            let damages = checked(dir.path()).damages;
            assert_eq!(damages.len(), 1, "{whole}: {damages:?}");
            assert_eq!((&damages[0].file, damages[0].offset), (&journal, len));
            assert!(damages[0].what.contains(&format!("after {whole} of 5 sealed")), "{}", damages[0].what);
            match refusal(dir.path()) {
                StoreError::Damaged(damage) => assert_eq!(damage, damages[0]),
                other => panic!("{whole}: {other}"),
            }
        }
    }
}

#[test]
fn a_volume_that_is_never_flushed_is_sealed_within_seconds() {
    let (dir, store) = store_with_volume(1 << 20);
    let volume = store.open_volume("v").unwrap();
    volume.write_at(&[1; 4096], 0).unwrap();
    let begin = std::time::Instant::now();
    loop {
        let killed = tempfile::tempdir().unwrap();
        copy(dir.path(), killed.path());
        if checked(killed.path()).unsealed == 0 {
            break;
        }
        assert!(begin.elapsed().as_secs() < 60, "the worker looks every five seconds");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn an_older_programs_store_is_reported_as_unsealed_and_not_as_damaged() {
    let (dir, journal) = killed_store();
    // What an older program leaves when it is killed: no seal of the last records, and no note of the boot.
    fs::remove_file(dir.path().join("boot")).unwrap();
    let head = fs::read(&journal).unwrap();
    assert_eq!(head[24..36], [0; 12], "nothing was flushed");
    let report = checked(dir.path());
    assert!(report.is_clean() && report.unsealed == 5, "{report:?}");
    assert!(report.notes[0].contains("5 of 5 records that are not sealed"), "{report:?}");
    assert_eq!(contents(dir.path()), [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]);
    assert_eq!(checked(dir.path()).unsealed, 0, "now it is sealed");
}

#[test]
fn a_tail_of_zeroes_is_cut_and_zeroes_amid_records_are_damage() {
    let (dir, journal) = killed_store();
    let good = fs::read(&journal).unwrap();
    fs::write(&journal, [good.as_slice(), &[0; 4096]].concat()).unwrap();
    assert!(checked(dir.path()).is_clean());
    assert_eq!(contents(dir.path()), [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]);

    let (dir, journal) = killed_store();
    let mut bytes = fs::read(&journal).unwrap();
    bytes[HEADER + RECORD..HEADER + 3 * RECORD].fill(0);
    fs::write(&journal, bytes).unwrap();
    assert!(matches!(refusal(dir.path()), StoreError::Damaged(d) if d.offset == 60));
}

#[test]
fn records_out_of_place_are_damage() {
    let (dir, journal) = killed_store();
    let mut bytes = fs::read(&journal).unwrap();
    let (first, second) = (HEADER..HEADER + RECORD, HEADER + RECORD..HEADER + 2 * RECORD);
    let kept = bytes[first.clone()].to_vec();
    bytes.copy_within(second.clone(), first.start);
    bytes[second].copy_from_slice(&kept);
    fs::write(&journal, bytes).unwrap();
    assert_eq!(checked(dir.path()).damages.len(), 2);
}

#[test]
fn a_volume_that_was_closed_has_no_record_that_may_be_lost() {
    for damage in [HEADER + 4 * RECORD, HEADER + 5 * RECORD - 1] {
        let (dir, journal) = killed_store();
        drop(open(dir.path()).open_volume("v").unwrap()); // closing seals the journal
        let mut bytes = fs::read(&journal).unwrap();
        assert_eq!(bytes.len(), HEADER + 5 * RECORD);
        bytes[damage] ^= 1;
        fs::write(&journal, &bytes).unwrap();
        assert!(matches!(refusal(dir.path()), StoreError::Damaged(d) if d.offset == 120));
        fs::write(&journal, &bytes[..HEADER + 4 * RECORD]).unwrap();
        assert!(matches!(refusal(dir.path()), StoreError::Damaged(d) if d.what.contains("sealed")));
    }
}

#[test]
fn a_flipped_bit_or_a_cut_anywhere_in_the_manifest_is_refused() {
    let (dir, _) = killed_store();
    let manifest = ["manifest", "changes.00000001"].map(|name| dir.path().join(name));
    for path in &manifest {
        let good = fs::read(path).unwrap();
        let refused = |what: &str| match VolumeStore::open(dir.path(), StoreOptions::default()).unwrap_err() {
            StoreError::Damaged(d) => assert_eq!(&d.file, path, "{what}"),
            StoreError::Foreign { what: why, .. } => assert!(why.contains("version"), "{what}: {why}"),
            other => panic!("{what}: {other}"),
        };
        for byte in 0..good.len() {
            let mut bytes = good.clone();
            bytes[byte] ^= 0x04;
            fs::write(path, &bytes).unwrap();
            refused(&format!("bit in byte {byte}"));
            fs::write(path, &good[..byte]).unwrap();
            refused(&format!("cut at {byte}"));
        }
        fs::remove_file(path).unwrap();
        refused("missing"); // with layers there, a new store must not take their place
        assert!(!check(dir.path(), None).unwrap().is_clean());
        fs::write(path, &good).unwrap();
    }
    assert_eq!(contents(dir.path()), [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]);
}

#[test]
fn a_change_that_a_kill_left_in_part_is_cut_off_by_the_next_open() {
    let (dir, _) = killed_store();
    let log = dir.path().join("changes.00000001");
    let good = fs::read(&log).unwrap();
    fs::write(&log, [good.as_slice(), b"0badc0de {\"volumes\":{\"v\":nu"].concat()).unwrap();
    let report = check(dir.path(), None).unwrap();
    assert!(
        report.is_clean() && report.notes.iter().any(|note| note.contains("a torn change")),
        "{report:?}"
    );
    assert_eq!(contents(dir.path()), [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]);
    assert!(fs::read(&log).unwrap().starts_with(&good));
    assert!(check(dir.path(), None).unwrap().notes.is_empty());
}

#[test]
fn a_data_file_that_is_missing_or_short_is_named() {
    let (dir, journal) = killed_store();
    let data = journal.with_extension("data");
    fs::File::options().write(true).open(&data).unwrap().set_len(8 * BLOCK + 100).unwrap();
    assert!(
        matches!(refusal(dir.path()), StoreError::Damaged(d) if d.file == data && d.offset == 8 * BLOCK + 100)
    );
    fs::remove_file(&data).unwrap();
    assert!(
        matches!(refusal(dir.path()), StoreError::Damaged(d) if d.file == data && d.what.contains("missing"))
    );
    fs::remove_file(&journal).unwrap();
    assert!(matches!(refusal(dir.path()), StoreError::Damaged(d) if d.file == journal));
}

#[test]
fn damage_of_one_volume_leaves_the_others_usable_and_the_check_finds_every_part() {
    let (dir, journal) = killed_store();
    let store = open(dir.path());
    store.create_volume("sound", 1 << 20, Value::Null).unwrap();
    drop(store);
    let mut bytes = fs::read(&journal).unwrap();
    bytes[HEADER + 3] ^= 1;
    bytes[HEADER + 2 * RECORD] ^= 1;
    fs::write(&journal, bytes).unwrap();
    let store = open(dir.path());
    store.open_volume("sound").unwrap().write_at(&[1; 4096], 0).unwrap();
    assert!(matches!(store.snapshot("v", "s", Value::Null), Err(StoreError::Damaged(_))));
    assert!(matches!(store.clone_volume("v", "w", Value::Null), Err(StoreError::Damaged(_))));
    drop(store);
    let offsets: Vec<u64> = check(dir.path(), None).unwrap().damages.iter().map(|d| d.offset).collect();
    assert_eq!(offsets, [40, 80]);
    let store = open(dir.path());
    store.delete_volume("v").unwrap();
    drop(store);
    assert!(check(dir.path(), None).unwrap().is_clean());
}

#[test]
fn files_that_a_killed_process_left_are_removed_and_others_are_not_touched() {
    let (dir, _) = killed_store();
    let layers = dir.path().join("layers");
    for name in ["000000ff.data", "000000ff.journal", "00000001.journal.new", "notes.txt"] {
        fs::write(layers.join(name), "left").unwrap();
    }
    let notes = check(dir.path(), None).unwrap().notes;
    assert_eq!(notes.iter().filter(|note| note.contains("is left over")).count(), 3, "{notes:?}");
    assert_eq!(contents(dir.path())[0], 1);
    assert_eq!(crate::support::layer_files(dir.path()), ["00000001.data", "00000001.journal", "notes.txt"]);
}
