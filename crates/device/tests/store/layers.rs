//! Snapshots and clones: points in time, taken under load, deleted in any order.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ebbtide_device::store::{Extent, ExtentKind, OpenVolume, StoreError, StoreOptions, VolumeStore};
use serde_json::Value;

use crate::support::{Rng, assert_clean, layer_files, open, seed, store_with_volume};

const BLOCK: u64 = 4096;
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn first_word(volume: &OpenVolume, block: u64) -> u64 {
    let mut word = [0; 8];
    volume.read_at(&mut word, block * BLOCK).unwrap();
    u64::from_le_bytes(word)
}

fn write_word(volume: &OpenVolume, block: u64, word: u64) {
    let mut bytes = [0; 4096];
    bytes[..8].copy_from_slice(&word.to_le_bytes());
    volume.write_at(&bytes, block * BLOCK).unwrap();
}

/// A volume whose generations overlap: generation `g` writes blocks `g..g + 600` of generation-specific content.
fn generation(volume: &OpenVolume, g: u64) {
    (g * 100..g * 100 + 600).for_each(|block| write_word(volume, block, (g + 1) << 32 | block));
    volume.discard((g * 100 + 50) * BLOCK, 20 * BLOCK).unwrap();
}

fn content(volume: &OpenVolume) -> Vec<u64> {
    (0..1200).map(|block| first_word(volume, block)).collect()
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in of {
        let rest: Vec<usize> = of.iter().copied().filter(|n| n != first).collect();
        all.extend(permutations(&rest).into_iter().map(|tail| [vec![*first], tail].concat()));
    }
    all
}

#[test]
fn snapshots_deleted_in_any_order_leave_the_right_bytes_and_no_files() {
    for (turn, order) in permutations(&[0, 1, 2, 3]).into_iter().enumerate() {
        let (dir, store) = store_with_volume(64 * MIB);
        let mut volume = store.open_volume("v").unwrap();
        let mut at_snapshot = Vec::new();
        for g in 0..4 {
            generation(&volume, g);
            store.snapshot("v", &format!("s{g}"), Value::Null).unwrap();
            at_snapshot.push(content(&volume));
        }
        generation(&volume, 4);
        let now = content(&volume);
        let is_open = turn % 2 == 0;
        if !is_open {
            drop(volume);
            volume = {
                store.create_volume("other", MIB, Value::Null).unwrap();
                store.open_volume("other").unwrap()
            };
        }
        for (i, deleted) in order.iter().enumerate() {
            store.delete_snapshot(&format!("s{deleted}")).unwrap();
            store.settle();
            for kept in &order[i + 1..] {
                store.create_from_snapshot("look", &format!("s{kept}"), 64 * MIB, Value::Null).unwrap();
                assert_eq!(
                    content(&store.open_volume("look").unwrap()),
                    at_snapshot[*kept],
                    "{order:?}: s{kept}"
                );
                store.delete_volume("look").unwrap();
            }
        }
        store.settle();
        if is_open {
            assert_eq!(content(&volume), now, "{order:?}");
        }
        drop(volume);
        assert_eq!(content(&store.open_volume("v").unwrap()), now, "{order:?}");
        let info = store.volume("v").unwrap();
        assert_eq!((info.layers, info.shared_bytes), (1, 0), "{order:?}");
        assert_eq!(info.allocated_bytes, info.data_blocks * BLOCK, "nothing stale takes up space");
        drop(store);
        let own = layer_files(dir.path()).len();
        assert_eq!(own, if is_open { 2 } else { 3 }, "{order:?}: {:?}", layer_files(dir.path()));
        assert_clean(dir.path());
    }
}

#[test]
fn a_deleted_volume_gives_its_files_back_and_its_snapshot_stays() {
    let (dir, store) = store_with_volume(GIB);
    let volume = store.open_volume("v").unwrap();
    generation(&volume, 0);
    let then = content(&volume);
    store.snapshot("v", "s", Value::Null).unwrap();
    generation(&volume, 1);
    store.clone_volume("v", "c", Value::Null).unwrap();
    let cloned = content(&volume);
    generation(&volume, 2);
    drop(volume);
    store.delete_volume("v").unwrap();
    store.settle();
    assert_eq!(content(&store.open_volume("c").unwrap()), cloned);
    store.delete_volume("c").unwrap();
    store.create_from_snapshot("w", "s", GIB, Value::Null).unwrap();
    assert_eq!(content(&store.open_volume("w").unwrap()), then);
    store.delete_volume("w").unwrap();
    store.delete_snapshot("s").unwrap();
    store.settle();
    assert_eq!(layer_files(dir.path()), Vec::<String>::new());
}

#[test]
fn a_snapshot_with_nothing_written_since_the_last_adds_no_layer() {
    let (_dir, store) = store_with_volume(GIB);
    let volume = store.open_volume("v").unwrap();
    generation(&volume, 0);
    for i in 0..50 {
        store.snapshot("v", &format!("s{i}"), Value::Null).unwrap();
    }
    assert_eq!(store.volume("v").unwrap().layers, 2);
}

#[test]
fn a_discard_gives_the_host_its_space_back() {
    let (_dir, store) = store_with_volume(GIB);
    let volume = store.open_volume("v").unwrap();
    let chunk = vec![5; 1 << 20];
    (0..64).for_each(|mib| volume.write_at(&chunk, mib * MIB).unwrap());
    volume.sync().unwrap();
    let full = store.volume("v").unwrap().allocated_bytes;
    assert!(full >= 64 * MIB, "{full}");
    volume.discard(8 * MIB, 48 * MIB).unwrap();
    volume.write_zeroes(0, 4 * MIB).unwrap();
    let left = store.volume("v").unwrap().allocated_bytes;
    assert!(left <= full - 52 * MIB, "{left} of {full}");
    let kinds: Vec<_> =
        volume.extents(0, 80 * MIB).iter().map(|e| (e.offset / MIB, e.len / MIB, e.kind)).collect();
    let (data, hole) = (ExtentKind::Data, ExtentKind::Hole);
    assert_eq!(kinds, [(0, 4, hole), (4, 4, data), (8, 48, hole), (56, 8, data), (64, 16, hole)]);
}

#[test]
fn changes_since_a_snapshot_are_reported_block_by_block() {
    let (_dir, store) = store_with_volume(64 << 40);
    let volume = store.open_volume("v").unwrap();
    let far = (8 << 40) - 8192; // across the seam of two data files
    volume.write_at(&[1; 16384], far).unwrap();
    store.snapshot("v", "a", Value::Null).unwrap();
    volume.write_at(&[2; 512], far + 8192 + 512).unwrap();
    store.snapshot("v", "b", Value::Null).unwrap();
    volume.discard(far, 4096).unwrap();
    let data = |extents: Vec<Extent>| -> Vec<(u64, u64)> {
        extents.iter().filter(|e| e.kind == ExtentKind::Data).map(|e| (e.offset - far, e.len)).collect()
    };
    assert_eq!(data(volume.dirty_since("a", 0, u64::MAX).unwrap()), [(0, 4096), (8192, 4096)]);
    assert_eq!(data(volume.dirty_since("b", 0, u64::MAX).unwrap()), [(0, 4096)]);
    assert_eq!(data(volume.extents(0, u64::MAX)), [(4096, 12288)]);
    let mut bytes = [9; 16384];
    volume.read_at(&mut bytes, far).unwrap();
    assert!(bytes[..4096].iter().all(|b| *b == 0) && bytes[4096..8704].iter().all(|b| *b == 1));
    assert!(bytes[8704..9216].iter().all(|b| *b == 2) && bytes[9216..].iter().all(|b| *b == 1));
}

/// Writers of counters: writer `w` writes 1, 2, 3, ... to the blocks of its region in turn. A point in time is one where
/// some count `t` was reached: the region holds, for every block, the last count up to `t` that belongs there.
struct Counters<'a> {
    volume: &'a OpenVolume,
    answered: [AtomicU64; 2],
    longest_us: AtomicU64,
    stop: AtomicBool,
}

const REGION: u64 = 1500;

/// Ends the writers also where the test fails, which would wait for them for ever.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Counters<'_> {
    fn write(&self, writer: usize) {
        let mut count = 0;
        while !self.stop.load(Ordering::Relaxed) {
            count += 1;
            let begin = Instant::now();
            write_word(self.volume, u64::try_from(writer).unwrap() * REGION + count % REGION, count);
            self.longest_us.fetch_max(u64::try_from(begin.elapsed().as_micros()).unwrap(), Ordering::Relaxed);
            self.answered[writer].store(count, Ordering::SeqCst);
        }
    }

    /// Panics where `image` is no point in time at or after `answered`.
    fn verify(image: &OpenVolume, answered: [u64; 2]) {
        for (writer, at_least) in (0..2).zip(answered) {
            let counts: Vec<u64> = (0..REGION).map(|i| first_word(image, writer * REGION + i)).collect();
            let reached = *counts.iter().max().unwrap();
            assert!(reached >= at_least, "{reached} is older than {at_least}, which was answered before");
            for (i, count) in (0..REGION).zip(&counts) {
                let back = (reached % REGION + REGION - i) % REGION;
                assert_eq!(
                    *count,
                    reached.saturating_sub(back),
                    "writer {writer} had reached {reached}; block {i}"
                );
            }
        }
    }
}

#[test]
fn snapshots_and_clones_under_load_are_points_in_time_and_copy_no_data() {
    let (dir, store) = store_with_volume(100 * GIB);
    let volume = store.open_volume("v").unwrap();
    let chunk = vec![3; 1 << 20];
    let begin = Instant::now();
    (0..512).for_each(|mib| volume.write_at(&chunk, GIB + mib * MIB).unwrap());
    let filled = begin.elapsed();
    (0..2 * REGION).for_each(|block| write_word(&volume, block, 0));
    let counters = Counters {
        volume: &volume,
        answered: [AtomicU64::new(0), AtomicU64::new(0)],
        longest_us: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        let counters = &counters;
        let _stop = StopAtEnd(&counters.stop);
        (0..2).for_each(|writer| drop(scope.spawn(move || counters.write(writer))));
        for i in 0..12 {
            std::thread::sleep(Duration::from_millis(30));
            let answered = [0, 1].map(|w: usize| counters.answered[w].load(Ordering::SeqCst));
            let begin = Instant::now();
            if i % 2 == 0 {
                store.snapshot("v", &format!("s{i}"), Value::Null).unwrap();
            } else {
                store.clone_volume("v", &format!("i{i}"), Value::Null).unwrap();
            }
            taken.push((i, answered, begin.elapsed()));
            if i == 6 {
                // Deleting starts merges under the same load.
                (0..6).step_by(2).for_each(|i| store.delete_snapshot(&format!("s{i}")).unwrap());
            }
        }
    });
    let times: Vec<_> = taken.iter().map(|(_, _, took)| *took).collect();
    println!("snapshots and clones under load took {times:?}, writing the data {filled:?}");
    println!("longest write meanwhile {} us", counters.longest_us.load(Ordering::Relaxed));
    let mut sorted = times;
    sorted.sort();
    assert!(sorted[sorted.len() / 2] < filled / 2, "{sorted:?} and {filled:?}");
    let reached = counters.answered.each_ref().map(|a| a.load(Ordering::SeqCst));
    Counters::verify(&volume, reached);
    store.settle();
    for (i, answered, _) in taken.iter().filter(|(i, ..)| i % 2 == 1 || *i >= 6) {
        let name = format!("i{i}");
        if i % 2 == 0 {
            store.create_from_snapshot(&name, &format!("s{i}"), 100 * GIB, Value::Null).unwrap();
        }
        Counters::verify(&store.open_volume(&name).unwrap(), *answered);
    }
    drop((volume, store));
    assert_clean(dir.path());
}

#[test]
fn merges_of_a_volume_under_load_lose_nothing_and_end_with_one_layer() {
    let mut rng = Rng(seed("merges under load"));
    let (dir, store) = store_with_volume(GIB);
    let volume = store.open_volume("v").unwrap();
    let counters = Counters {
        volume: &volume,
        answered: [AtomicU64::new(0), AtomicU64::new(0)],
        longest_us: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let counters = &counters;
        let _stop = StopAtEnd(&counters.stop);
        (0..2).for_each(|writer| drop(scope.spawn(move || counters.write(writer))));
        for i in 0..60 {
            store.snapshot("v", &format!("s{i}"), Value::Null).unwrap();
            std::thread::sleep(Duration::from_millis(rng.below(12)));
            if i >= 2 {
                store.delete_snapshot(&format!("s{}", i - 2)).unwrap();
            }
            let before = [0, 1].map(|w: usize| counters.answered[w].load(Ordering::SeqCst));
            // A reader that runs during the merges never sees an older count than was answered before it looked.
            for (writer, answered) in (0..2).zip(before).filter(|(_, a)| *a > REGION) {
                let back = rng.below(REGION);
                let seen = first_word(&volume, writer * REGION + (answered - back) % REGION);
                assert!(seen >= answered - back, "block of count {} holds {seen}", answered - back);
            }
        }
    });
    let reached = counters.answered.each_ref().map(|a| a.load(Ordering::SeqCst));
    println!("{reached:?} writes, the longest {} us", counters.longest_us.load(Ordering::Relaxed));
    Counters::verify(&volume, reached);
    (58..60).for_each(|i| store.delete_snapshot(&format!("s{i}")).unwrap());
    store.settle();
    Counters::verify(&volume, reached);
    assert_eq!(store.volume("v").unwrap().layers, 1);
    drop((volume, store));
    assert_clean(dir.path());
    assert_eq!(layer_files(dir.path()).len(), 2);
}

/// Pages of the layers' files that the host's page cache has and its disk has not.
fn dirty_pages(store: &Path) -> Option<u64> {
    // cachestat(2), Linux 6.5: no wrapper has it yet.
    const CACHESTAT: libc::c_long = 451;
    let mut dirty = 0;
    for entry in std::fs::read_dir(store.join("layers")).unwrap() {
        let file = std::fs::File::open(entry.unwrap().path()).unwrap();
        let range = [0_u64, 0];
        // Cached, dirty, in writeback, and two that count what was evicted.
        let mut counts = [0_u64; 5];
        // SAFETY: the kernel reads two numbers and writes five, in arrays that outlive the call.
        let done =
            unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0) };
        if done != 0 {
            println!("SKIPPED: this kernel has no cachestat: {}", std::io::Error::last_os_error());
            return None;
        }
        dirty += counts[1] + counts[2];
    }
    Some(dirty)
}

#[test]
fn with_host_sync_everything_works_the_same_and_flushes_reach_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = VolumeStore::open(dir.path(), StoreOptions { host_sync: true }).unwrap();
    store.create_volume("v", GIB, Value::Null).unwrap();
    let volume = store.open_volume("v").unwrap();
    generation(&volume, 0);
    store.snapshot("v", "s", Value::Null).unwrap();
    generation(&volume, 1);
    if let Some(dirty) = dirty_pages(dir.path()) {
        assert!(dirty > 0, "the page cache has what was written");
        volume.sync().unwrap();
        assert_eq!(dirty_pages(dir.path()), Some(0));
    }
    let now = content(&volume);
    store.delete_snapshot("s").unwrap();
    store.settle();
    volume.sync().unwrap();
    assert_eq!(content(&volume), now);
    drop((volume, store));
    let store = open(dir.path());
    assert_eq!(content(&store.open_volume("v").unwrap()), now);
}

#[test]
fn the_journal_of_a_volume_that_is_written_and_discarded_for_long_stays_short() {
    let (dir, store) = store_with_volume(GIB);
    let volume = store.open_volume("v").unwrap();
    let rounds = 300_000;
    for i in 0..rounds {
        volume.write_at(&[7; 4096], i % 8 * 8192).unwrap();
        volume.discard(i % 8 * 8192, 4096).unwrap();
    }
    store.settle();
    let len = std::fs::metadata(dir.path().join("layers/00000001.journal")).unwrap().len();
    let unbounded = 2 * rounds * 20;
    println!("{len} bytes of journal, {unbounded} were written");
    assert!(len < unbounded / 2, "{len}");
    write_word(&volume, 3, 11);
    drop((volume, store));
    assert_clean(dir.path());
    assert_eq!(first_word(&open(dir.path()).open_volume("v").unwrap(), 3), 11);
}

#[test]
fn writers_of_neighbouring_sectors_do_not_undo_each_other_when_a_block_is_brought_up() {
    let (_dir, store) = store_with_volume(GIB);
    let volume = store.open_volume("v").unwrap();
    for round in 1..=8_u8 {
        volume.write_at(&vec![0xFF; 256 * 4096], 0).unwrap();
        // From here on the first write of each sector finds its block in the layer below.
        store.snapshot("v", &format!("s{round}"), Value::Null).unwrap();
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (volume, barrier) = (&volume, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    for block in 0..256 {
                        for sector in [thread, thread + 4] {
                            let offset = block * BLOCK + u64::from(sector) * 512;
                            volume.write_at(&[round * 8 + sector; 512], offset).unwrap();
                        }
                    }
                });
            }
        });
        let mut bytes = vec![0; 256 * 4096];
        volume.read_at(&mut bytes, 0).unwrap();
        for (at, sector) in bytes.chunks(512).enumerate() {
            let expected = round * 8 + u8::try_from(at % 8).unwrap();
            assert!(sector.iter().all(|b| *b == expected), "round {round}, sector {at}: {}", sector[0]);
        }
    }
}

#[test]
fn a_store_that_is_closed_in_the_middle_of_a_merge_is_sealed() {
    let mut interrupted = 0;
    for _ in 0..20 {
        let (dir, store) = store_with_volume(64 * MIB);
        let volume = store.open_volume("v").unwrap();
        volume.write_at(&vec![1; 4096], 0).unwrap();
        store.snapshot("v", "below", Value::Null).unwrap();
        // More than one step of a merge, in runs that are records each.
        (0..16).for_each(|n| volume.write_at(&vec![2; 1 << 20], 2 * n * MIB).unwrap());
        store.snapshot("v", "above", Value::Null).unwrap();
        volume.write_at(&[3; 4096], 0).unwrap();
        store.delete_snapshot("below").unwrap();
        drop(volume);
        std::thread::sleep(Duration::from_millis(2));
        drop(store);
        let report = ebbtide_device::store::check(dir.path(), None).unwrap();
        assert!(report.is_clean() && report.unsealed == 0 && report.notes.is_empty(), "{report:#?}");
        interrupted += u32::from(report.layers == 3 && report.records > 18);
    }
    assert!(interrupted > 0, "no merge was interrupted after its first step");
}

#[test]
fn the_data_of_a_snapshot_are_those_of_a_volume_that_is_made_from_it() {
    let (_dir, store) = store_with_volume(GIB);
    let volume = store.open_volume("v").unwrap();
    for g in 0..3 {
        generation(&volume, g);
        volume.write_zeroes(g * 3 * BLOCK, 2 * BLOCK).unwrap();
        store.snapshot("v", &format!("s{g}"), Value::Null).unwrap();
    }
    generation(&volume, 3);
    store.snapshot("v", "closed", Value::Null).unwrap();
    drop(volume);
    for name in ["s0", "s1", "s2", "closed"] {
        let made = format!("of-{name}");
        store.create_from_snapshot(&made, name, GIB, Value::Null).unwrap();
        let extents = store.open_volume(&made).unwrap().extents(0, GIB);
        let data: Vec<_> = extents
            .iter()
            .filter(|extent| extent.kind == ExtentKind::Data)
            .map(|extent| extent.offset..extent.offset + extent.len)
            .collect();
        assert!(!data.is_empty());
        assert_eq!(store.snapshot_data(name).unwrap(), data, "{name}");
    }
    assert!(matches!(store.snapshot_data("none"), Err(StoreError::NotFound { kind: "snapshot", .. })));
}
