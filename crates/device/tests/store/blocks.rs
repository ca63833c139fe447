//! Snapshots block by block, against a model that is a few maps: what is listed, what differs, and what is read.

use std::collections::BTreeMap;
use std::path::Path;

use ebbtide_device::store::{
    BLOCK_BYTES, ChangedBlock, PendingSnapshot, SNAPSHOT_BLOCK_BYTES, StoreError, VolumeStore,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{assert_clean, open};

/// Three whole blocks of a snapshot and half of one.
const SIZE: usize = 7 << 18;
const BLOCK: usize = 4096;
const BIG: usize = 512 << 10;
const BIGS: usize = 4;
const _: () = assert!(BIG as u64 == SNAPSHOT_BLOCK_BYTES && BLOCK as u64 == BLOCK_BYTES);

/// A disk: the content of its blocks of 4 KiB, none where nothing holds data, and the last change of each.
#[derive(Debug, Clone, Default)]
struct Disk {
    data: BTreeMap<usize, u8>,
    changed: BTreeMap<usize, u64>,
    /// Which disk it began as, through all snapshots.
    line: u64,
}

impl Disk {
    fn write(&mut self, blocks: std::ops::Range<usize>, fill: u8, now: u64) {
        for block in blocks {
            self.data.insert(block, fill);
            self.changed.insert(block, now);
        }
    }

    fn discard(&mut self, blocks: std::ops::Range<usize>, now: u64) {
        for block in blocks {
            if self.data.remove(&block).is_some() {
                self.changed.insert(block, now);
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; BIGS * BIG];
        for (block, fill) in &self.data {
            bytes[block * BLOCK..][..BLOCK].fill(*fill);
        }
        bytes
    }

    fn has_data(&self, big: usize) -> bool {
        self.data.range(blocks_of(big)).next().is_some()
    }

    fn differs(&self, other: &Self, big: usize) -> bool {
        blocks_of(big).any(|block| self.changed.get(&block) != other.changed.get(&block))
    }
}

fn blocks_of(big: usize) -> std::ops::Range<usize> {
    big * BIG / BLOCK..(big + 1) * BIG / BLOCK
}

#[derive(Debug, Clone)]
enum Op {
    Write { volume: u8, at: usize, blocks: usize, fill: u8 },
    Discard { volume: u8, at: usize, blocks: usize },
    Snapshot { volume: u8, to: u8 },
    Restore { from: u8, volume: u8 },
    Begin { to: u8, parent: Option<u8> },
    Put { to: u8, big: usize, fill: u8 },
    Complete(u8),
    Abandon(u8),
    DeleteSnapshot(u8),
    DeleteVolume(u8),
    Reopen,
    Settle,
}

fn op() -> impl Strategy<Value = Op> {
    let run = || (0..SIZE / BLOCK, 1..200_usize).prop_map(|(at, len)| (at, len.min(SIZE / BLOCK - at)));
    prop_oneof![
        8 => (0..2_u8, run(), any::<u8>())
            .prop_map(|(volume, (at, blocks), fill)| Op::Write { volume, at, blocks, fill }),
        2 => (0..2_u8, run()).prop_map(|(volume, (at, blocks))| Op::Discard { volume, at, blocks }),
        4 => (0..2_u8, 0..5_u8).prop_map(|(volume, to)| Op::Snapshot { volume, to }),
        1 => (0..5_u8, 0..2_u8).prop_map(|(from, volume)| Op::Restore { from, volume }),
        2 => (0..5_u8, prop::option::of(0..5_u8)).prop_map(|(to, parent)| Op::Begin { to, parent }),
        8 => (0..5_u8, 0..BIGS, prop_oneof![2 => Just(0), 5 => any::<u8>()])
            .prop_map(|(to, big, fill)| Op::Put { to, big, fill }),
        3 => (0..5_u8).prop_map(Op::Complete),
        1 => (0..5_u8).prop_map(Op::Abandon),
        3 => (0..5_u8).prop_map(Op::DeleteSnapshot),
        1 => (0..2_u8).prop_map(Op::DeleteVolume),
        2 => Just(Op::Reopen),
        2 => Just(Op::Settle),
    ]
}

fn len_of(big: usize) -> usize {
    (SIZE - big * BIG).min(BIG)
}

struct World<'a> {
    dir: &'a Path,
    store: VolumeStore,
    writing: BTreeMap<u8, PendingSnapshot>,
    volumes: BTreeMap<u8, Disk>,
    snapshots: BTreeMap<u8, Disk>,
    /// With the blocks that were put.
    pending: BTreeMap<u8, (Disk, BTreeMap<u64, ()>)>,
    now: u64,
}

fn snap(number: u8) -> String {
    format!("s{number}")
}

fn vol(number: u8) -> String {
    format!("v{number}")
}

impl<'a> World<'a> {
    fn new(dir: &'a Path) -> Self {
        let (volumes, snapshots, pending) = Default::default();
        Self { dir, store: open(dir), writing: BTreeMap::new(), volumes, snapshots, pending, now: 0 }
    }

    fn volume(&mut self, number: u8) -> &mut Disk {
        let line = self.now;
        let store = &self.store;
        self.volumes.entry(number).or_insert_with(|| {
            store.create_volume(&vol(number), SIZE as u64, Value::Null).unwrap();
            Disk { line, ..Disk::default() }
        })
    }

    fn is_free(&self, number: u8) -> bool {
        !self.snapshots.contains_key(&number) && !self.pending.contains_key(&number)
    }

    fn step(&mut self, op: Op) {
        self.now += 1;
        let now = self.now;
        match op {
            Op::Write { volume, at, blocks, fill } => {
                self.volume(volume).write(at..at + blocks, fill, now);
                let open = self.store.open_volume(&vol(volume)).unwrap();
                open.write_at(&vec![fill; blocks * BLOCK], (at * BLOCK) as u64).unwrap();
            }
            Op::Discard { volume, at, blocks } => {
                self.volume(volume).discard(at..at + blocks, now);
                let open = self.store.open_volume(&vol(volume)).unwrap();
                open.discard((at * BLOCK) as u64, (blocks * BLOCK) as u64).unwrap();
            }
            Op::Snapshot { volume, to } if self.is_free(to) => {
                let disk = self.volume(volume).clone();
                self.store.snapshot(&vol(volume), &snap(to), Value::Null).unwrap();
                self.snapshots.insert(to, disk);
            }
            Op::Restore { from, volume } => {
                let Some(disk) = self.snapshots.get(&from).cloned() else { return };
                if self.volumes.contains_key(&volume) {
                    return;
                }
                let (name, from) = (vol(volume), snap(from));
                self.store.create_from_snapshot(&name, &from, SIZE as u64, Value::Null).unwrap();
                self.volumes.insert(volume, disk);
            }
            Op::DeleteSnapshot(number) => {
                let deleted = self.store.delete_snapshot(&snap(number));
                assert_eq!(deleted.is_ok(), self.snapshots.remove(&number).is_some(), "{deleted:?}");
            }
            Op::DeleteVolume(number) => {
                let deleted = self.store.delete_volume(&vol(number));
                assert_eq!(deleted.is_ok(), self.volumes.remove(&number).is_some(), "{deleted:?}");
            }
            Op::Reopen => {
                self.writing.clear();
                let elsewhere = tempfile::tempdir().unwrap();
                drop(std::mem::replace(&mut self.store, open(elsewhere.path())));
                self.store = open(self.dir);
            }
            Op::Settle => self.store.settle(),
            other => self.step_pending(other, now),
        }
    }

    /// What is done to a pending snapshot.
    fn step_pending(&mut self, op: Op, now: u64) {
        match op {
            Op::Begin { to, parent } if self.is_free(to) => {
                let parent = parent.filter(|parent| self.snapshots.contains_key(parent));
                let disk = parent.map(|parent| self.snapshots[&parent].clone());
                let parent = parent.map(snap);
                self.store.begin_snapshot(&snap(to), SIZE as u64, parent.as_deref()).unwrap();
                let disk = disk.unwrap_or_else(|| Disk { line: now, ..Disk::default() });
                self.pending.insert(to, (disk, BTreeMap::new()));
            }
            Op::Put { to, big, fill } => {
                let Some((disk, put)) = self.pending.get_mut(&to) else { return };
                let blocks = big * BIG / BLOCK..(big * BIG + len_of(big)) / BLOCK;
                disk.write(blocks, fill, now);
                put.insert(big as u64, ());
                let store = &self.store;
                let open = self.writing.entry(to).or_insert_with(|| store.open_pending(&snap(to)).unwrap());
                open.write_block(big as u64, &vec![fill; len_of(big)]).unwrap();
            }
            Op::Complete(to) => {
                let Some((disk, _)) = self.pending.remove(&to) else { return };
                self.writing.remove(&to);
                self.store.complete_snapshot(&snap(to), Value::Null).unwrap();
                self.snapshots.insert(to, disk);
            }
            Op::Abandon(to) => {
                self.writing.remove(&to);
                let abandoned = self.store.abandon_snapshot(&snap(to));
                assert_eq!(abandoned.is_ok(), self.pending.remove(&to).is_some(), "{abandoned:?}");
            }
            _ => {}
        }
    }

    fn compare(&self) {
        let names = self.store.names();
        assert_eq!(names.volumes, self.volumes.keys().copied().map(vol).collect::<Vec<_>>());
        assert_eq!(names.snapshots, self.snapshots.keys().copied().map(snap).collect::<Vec<_>>());
        assert_eq!(names.pending, self.pending.keys().copied().map(snap).collect::<Vec<_>>());
        for (number, disk) in &self.snapshots {
            let name = snap(*number);
            let data: Vec<u64> = (0..BIGS).filter(|big| disk.has_data(*big)).map(|big| big as u64).collect();
            assert_eq!(self.store.snapshot_blocks(&name, 0, 100).unwrap(), data, "{name}");
            let rest: Vec<u64> = data.iter().copied().filter(|big| *big >= 1).take(2).collect();
            assert_eq!(self.store.snapshot_blocks(&name, 1, 2).unwrap(), rest, "{name}");
            let bytes = disk.bytes();
            for big in 0..BIGS {
                let read = self.store.read_snapshot_block(&name, big as u64).unwrap();
                assert!(read == bytes[big * BIG..][..BIG], "{name}, block {big}");
            }
            for (other, second) in &self.snapshots {
                self.compare_pair((&name, disk), (&snap(*other), second));
            }
        }
        for (number, (disk, put)) in &self.pending {
            let _ = disk;
            if let Some(open) = self.writing.get(number) {
                assert_eq!(open.written(), put.keys().copied().collect::<Vec<_>>(), "{number}");
            }
        }
    }

    fn compare_pair(&self, (first, of_first): (&str, &Disk), (second, of_second): (&str, &Disk)) {
        let changed = self.store.changed_blocks(first, second, 0, 100);
        if of_first.line != of_second.line {
            assert!(matches!(changed, Err(StoreError::Unrelated { .. })), "{first} {second}: {changed:?}");
            return;
        }
        let change = |big: usize| ChangedBlock {
            index: big as u64,
            in_first: of_first.has_data(big),
            in_second: of_second.has_data(big),
        };
        let differ = (0..BIGS).filter(|big| of_first.differs(of_second, *big)).map(change);
        let expected: Vec<_> = differ.filter(|change| change.in_first || change.in_second).collect();
        assert_eq!(changed.unwrap(), expected, "{first} {second}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_of_snapshots_are_those_of_a_model(ops in prop::collection::vec(op(), 1..60)) {
        let dir = tempfile::tempdir().unwrap();
        let mut world = World::new(dir.path());
        for op in ops {
            world.step(op);
            world.compare();
        }
        world.step(Op::Settle);
        world.step(Op::Reopen);
        let pending: Vec<u8> = world.pending.keys().copied().collect();
        for number in pending {
            let open = world.store.open_pending(&snap(number)).unwrap();
            let put: Vec<u64> = world.pending[&number].1.keys().copied().collect();
            assert_eq!(open.written(), put, "{number} after a start");
            drop(open);
            world.step(Op::Complete(number));
        }
        world.compare();
        drop(world);
        assert_clean(dir.path());
    }
}

#[test]
fn what_was_put_is_known_apart_from_a_parent_that_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create_volume("v", SIZE as u64, Value::Null).unwrap();
    store.open_volume("v").unwrap().write_at(&vec![1; SIZE], 0).unwrap();
    store.snapshot("v", "parent", Value::Null).unwrap();
    store.begin_snapshot("child", SIZE as u64, Some("parent")).unwrap();
    store.open_pending("child").unwrap().write_block(2, &vec![2; BIG]).unwrap();
    store.delete_snapshot("parent").unwrap();
    store.delete_volume("v").unwrap();
    store.settle();
    drop(store);
    let store = open(dir.path());
    store.settle();
    let pending = store.open_pending("child").unwrap();
    assert_eq!(pending.written(), [2]);
    assert!(matches!(store.complete_snapshot("child", Value::Null), Err(StoreError::Busy { .. })));
    drop(pending);
    store.complete_snapshot("child", Value::Null).unwrap();
    store.settle();
    assert_eq!(store.snapshot_blocks("child", 0, 10).unwrap(), [0, 1, 2, 3]);
    assert_eq!(store.read_snapshot_block("child", 2).unwrap(), vec![2; BIG]);
    assert_eq!(store.read_snapshot_block("child", 1).unwrap(), vec![1; BIG]);
    let end = store.read_snapshot_block("child", 3).unwrap();
    assert!(end[..BIG / 2] == vec![1; BIG / 2] && end[BIG / 2..] == vec![0; BIG / 2]);
    assert!(matches!(store.open_pending("child"), Err(StoreError::NotFound { kind: "snapshot", .. })));
    assert_eq!(store.names().pending, Vec::<String>::new());
}

#[test]
fn a_pending_snapshot_is_in_no_list_and_its_name_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.begin_snapshot("s", SIZE as u64, None).unwrap();
    assert!(matches!(store.begin_snapshot("s", SIZE as u64, None), Err(StoreError::Exists { .. })));
    assert!(matches!(store.begin_snapshot("+s", SIZE as u64, None), Err(StoreError::Name { .. })));
    assert!(matches!(store.begin_snapshot("t", 1, None), Err(StoreError::Size { .. })));
    assert!(matches!(store.begin_snapshot("t", SIZE as u64, Some("none")), Err(StoreError::NotFound { .. })));
    assert!(store.volumes().is_empty() && store.snapshots().is_empty());
    assert!(matches!(store.delete_snapshot("s"), Err(StoreError::NotFound { .. })));
    assert_eq!(store.names().pending, ["s"]);
    let past_the_end = store.open_pending("s").unwrap().write_block(4, &[0; BLOCK]);
    assert_eq!(past_the_end.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    store.abandon_snapshot("s").unwrap();
    assert_eq!(store.names(), Default::default());
}
