//! What is left of a store with `host_sync` when the host loses its power.
//!
//! The disk of a lost host has at least what was synced, and any part of what was written since: the kernel writes pages
//! back in its own order. The tests keep each file as it was at its last sync, mix that by sectors with the file as it
//! is, and open the result as after a restart.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::boot::BOOT;
use super::synced::{Synced, observe};
use super::{BLOCK_BYTES, OpenVolume, StoreOptions, VolumeStore, check};

const BLOCKS: u64 = 64;
const BLOCK: usize = 4096;
const SECTOR: usize = 512;

type Content = BTreeMap<String, Vec<u8>>;

/// A store with `host_sync`, and what has reached the disk of it.
struct Host {
    dir: tempfile::TempDir,
    synced: Arc<Mutex<Content>>,
    /// In which order content reached the disk.
    order: Arc<Mutex<Vec<String>>>,
    store: VolumeStore,
}

impl Host {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (synced, order) = (Arc::new(Mutex::new(Content::new())), Arc::new(Mutex::new(Vec::new())));
        let (content, names) = (Arc::clone(&synced), Arc::clone(&order));
        let observer = move |what: Synced<'_>| match what {
            Synced::Content(path) => {
                // A file that was removed meanwhile needs no content.
                if let Ok(bytes) = fs::read(path) {
                    content.lock().insert(name(path), bytes);
                    names.lock().push(name(path));
                }
            }
            Synced::Name(from, to) => {
                let moved = content.lock().remove(&name(from)).expect("synced before it is renamed");
                content.lock().insert(name(to), moved);
            }
        };
        let observer = Arc::new(observer);
        for dir in [dir.path().to_owned(), dir.path().join("layers")] {
            let observer = Arc::clone(&observer);
            observe(&dir, move |what| observer(what));
        }
        let store = VolumeStore::open(dir.path(), StoreOptions { host_sync: true }).unwrap();
        store.create_volume("v", BLOCKS * BLOCK_BYTES, Value::Null).unwrap();
        Self { dir, synced, order, store }
    }

    fn open(&self) -> Arc<OpenVolume> {
        self.store.open_volume("v").unwrap()
    }

    fn layers(&self) -> PathBuf {
        self.dir.path().join("layers")
    }

    /// Runs `act` once, after the data of a layer have been synced and before its journal is.
    fn at_next_data_sync(&self, act: impl Fn() + Send + Sync + 'static) {
        let once = OnceLock::new();
        observe(&self.layers(), move |what| {
            if let Synced::Content(path) = what
                && name(path).ends_with(".data")
                && once.set(()).is_ok()
            {
                act();
            }
        });
    }

    /// The store as it may be when the host starts again. `newer` decides of each sector of a file whether the disk has
    /// it as it is now, instead of as a sync had left it in `synced`.
    fn lost(&self, synced: &Content, mut newer: impl FnMut(&str, usize) -> bool) -> tempfile::TempDir {
        let image = tempfile::tempdir().unwrap();
        fs::create_dir(image.path().join("layers")).unwrap();
        fs::write(image.path().join("manifest"), &synced["manifest"]).unwrap();
        fs::write(image.path().join(BOOT), "the boot before\n").unwrap();
        fs::write(image.path().join("lock"), "").unwrap();
        let logs = fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        for path in logs.filter(|path| name(path).starts_with("changes.")) {
            let (name, now) = (name(&path), fs::read(&path).unwrap());
            let mixed = mix(&synced[&name], &now, |sector| newer(&name, sector));
            fs::write(image.path().join(&name), mixed).unwrap();
        }
        for entry in fs::read_dir(self.layers()).unwrap() {
            let path = entry.unwrap().path();
            let (name, now) = (name(&path), fs::read(&path).unwrap());
            let old = synced.get(&name);
            if old.is_none() && !newer(&name, 0) {
                continue; // not even its name is there
            }
            let mixed = mix(old.map_or(&[][..], |old| old), &now, |sector| newer(&name, sector));
            fs::write(image.path().join("layers").join(&name), mixed).unwrap();
        }
        image
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn mix(old: &[u8], now: &[u8], mut newer: impl FnMut(usize) -> bool) -> Vec<u8> {
    let mut mixed = old.to_vec();
    for (number, sector) in now.chunks(SECTOR).enumerate() {
        let at = number * SECTOR;
        if newer(number) {
            mixed.resize(mixed.len().max(at + sector.len()), 0);
            mixed[at..at + sector.len()].copy_from_slice(sector);
        }
    }
    mixed
}

fn write(volume: &OpenVolume, block: u64, value: u8) {
    volume.write_at(&[value; BLOCK], block * BLOCK_BYTES).unwrap();
}

/// The first byte of each block of the volume in an image. Whole blocks are of one byte, since the data files are
/// mixed by blocks.
fn contents(image: &Path) -> Vec<u8> {
    let report = check(image, None).unwrap();
    assert!(report.is_clean(), "{report:?}");
    let store = VolumeStore::open(image, StoreOptions { host_sync: true }).unwrap();
    let mut bytes = vec![0; usize::try_from(BLOCKS).unwrap() * BLOCK];
    store.open_volume("v").unwrap().read_at(&mut bytes, 0).unwrap();
    bytes.chunks(BLOCK).map(|block| block[0]).collect()
}

#[test]
fn a_block_first_written_after_the_last_flush_is_old_or_new_and_not_zeroes() {
    let host = Host::new();
    let volume = host.open();
    (0..10).for_each(|block| write(&volume, block, 1));
    volume.sync().unwrap();
    host.store.snapshot("v", "s", Value::Null).unwrap();
    (0..5).for_each(|block| write(&volume, block, 2));
    volume.sync().unwrap();
    (5..8).for_each(|block| write(&volume, block, 3));
    // The kernel wrote the journal back, and of the data only what was synced.
    let image = host.lost(&host.synced.lock().clone(), |file, _| file.ends_with(".journal"));
    let report = check(image.path(), None).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("no flush had covered")), "{report:?}");
    assert_eq!(contents(image.path())[..10], [2, 2, 2, 2, 2, 1, 1, 1, 1, 1]);
    assert_eq!(check(image.path(), None).unwrap().notes, [] as [&str; 0], "the records are gone");
    // Where only the process was killed, nothing answered is lost.
    let image = host.lost(&host.synced.lock().clone(), |_, _| true);
    fs::copy(host.dir.path().join(BOOT), image.path().join(BOOT)).unwrap();
    assert_eq!(contents(image.path())[..10], [2, 2, 2, 2, 2, 3, 3, 3, 1, 1]);
}

#[test]
fn a_write_between_the_sync_of_the_data_and_that_of_the_journal_waits_for_the_next_flush() {
    let host = Host::new();
    let volume = host.open();
    (0..10).for_each(|block| write(&volume, block, 1));
    volume.sync().unwrap();
    host.store.snapshot("v", "s", Value::Null).unwrap();
    host.store.settle();
    write(&volume, 0, 2);
    host.order.lock().clear();
    let writer: Weak<OpenVolume> = Arc::downgrade(&volume);
    host.at_next_data_sync(move || write(&writer.upgrade().unwrap(), 9, 4));
    volume.sync().unwrap();
    let order = host.order.lock().clone();
    assert_eq!(
        order[..2],
        ["00000002.data", "00000002.journal"],
        "data before the records of them: {order:?}"
    );
    let image = host.lost(&host.synced.lock().clone(), |_, _| false);
    let journal = fs::read(image.path().join("layers/00000002.journal")).unwrap();
    assert_eq!(journal.len(), 40 + 2 * 20, "the record of block 9 went to the disk with the other");
    assert_eq!((contents(image.path())[0], contents(image.path())[9]), (2, 1));
    volume.sync().unwrap();
    let image = host.lost(&host.synced.lock().clone(), |_, _| false);
    assert_eq!((contents(image.path())[0], contents(image.path())[9]), (2, 4));
}

#[test]
fn a_loss_of_the_hosts_power_while_a_change_goes_to_the_log_leaves_the_old_or_the_new_and_never_less() {
    let host = Host::new();
    let volume = host.open();
    for number in 0..12_u8 {
        write(&volume, 0, number + 1);
        volume.sync().unwrap();
        let before = host.synced.lock().clone();
        host.store.snapshot("v", &format!("s{number}"), json!("x".repeat(300))).unwrap();
        host.store.settle(); // journals are not rewritten under the images
        let after = host.synced.lock().clone();
        let log = "changes.00000001";
        let now = fs::read(host.dir.path().join(log)).unwrap();
        // Before the log's sync with any one sector that the host wrote ahead of it, and after it with the seal or without.
        for (old, new, answered) in [(&before[log], &after[log], false), (&after[log], &now, true)] {
            for sector in 0..=new.len().div_ceil(SECTOR) {
                let image = host.lost(&after, |_, _| false);
                fs::write(image.path().join(log), mix(old, new, |at| at == sector)).unwrap();
                assert_eq!(contents(image.path())[0], number + 1);
                let store = VolumeStore::open(image.path(), StoreOptions { host_sync: true }).unwrap();
                let there = store.names().snapshots.len();
                let least = usize::from(number) + usize::from(answered);
                assert!((least..=usize::from(number) + 1).contains(&there), "{there} snapshots of {least}");
            }
        }
    }
}

/// A volume under random operations, with what each block may be after a loss of power: what it was at the last flush,
/// or anything that was written to it since.
struct Run {
    host: Host,
    random: u64,
    allowed: Vec<Vec<u8>>,
    value: u8,
}

impl Run {
    fn new(seed: u64) -> Self {
        let allowed = (0..BLOCKS).map(|_| vec![0]).collect();
        Self { host: Host::new(), random: seed * 2 + 1, allowed, value: 0 }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 16) % end
    }

    fn put(&mut self, volume: &OpenVolume) {
        let (first, kind) = (self.below(BLOCKS), self.below(4));
        let last = (first + self.below(12)).min(BLOCKS);
        for block in first..last {
            self.value = self.value % 250 + 1;
            let value = if kind == 0 { 0 } else { self.value };
            match kind {
                0 => volume.write_zeroes(block * BLOCK_BYTES, BLOCK_BYTES).unwrap(),
                _ => write(volume, block, value),
            }
            self.allowed[usize::try_from(block).unwrap()].push(value);
        }
    }

    /// A flush, in a third of the cases with a loss of power while the journal is on its way to the disk.
    fn flush(&mut self, volume: &OpenVolume) {
        let before = self.host.synced.lock().clone();
        volume.sync().unwrap();
        if self.below(3) == 0 {
            let mut synced = self.host.synced.lock().clone();
            synced.extend(before.into_iter().filter(|(file, _)| file.ends_with(".journal")));
            self.lose(&synced);
        }
        self.allowed.iter_mut().for_each(|values| *values = vec![*values.last().unwrap()]);
    }

    fn lose(&mut self, synced: &Content) {
        // The data files' sectors go together by blocks: a block that is half new is no matter of the journal.
        let (share, mut random) = (self.below(4), self.below(u64::MAX) | 1);
        let mut together = false;
        let image = self.host.lost(synced, |file, sector| {
            if !file.ends_with(".journal") && sector % 8 != 0 {
                return together;
            }
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            together = (random >> 16) % 3 < share;
            together
        });
        for (block, (value, allowed)) in contents(image.path()).iter().zip(&self.allowed).enumerate() {
            assert!(allowed.contains(value), "block {block} is {value}, may be {allowed:?}");
        }
    }
}

#[test]
fn a_loss_of_the_hosts_power_at_any_moment_leaves_every_block_as_flushed_or_as_written_since() {
    for seed in 1..40 {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        let mut volume = run.host.open();
        for step in 0..30 {
            match run.below(12) {
                0..=5 => run.put(&volume),
                6..=7 => run.flush(&volume),
                8 => {
                    run.host.store.snapshot("v", &format!("s{step}"), Value::Null).unwrap();
                    run.host.store.settle();
                }
                9 => {
                    if let Some(snapshot) = run.host.store.snapshots().first() {
                        run.host.store.delete_snapshot(&snapshot.name).unwrap();
                        run.host.store.settle();
                    }
                }
                10 => {
                    drop(volume);
                    run.host.store.settle();
                    volume = run.host.open();
                }
                _ => {
                    let synced = run.host.synced.lock().clone();
                    run.lose(&synced);
                }
            }
        }
    }
}
