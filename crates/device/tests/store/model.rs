//! The store against a model that is a few vectors.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ebbtide_device::store::{BLOCK_BYTES, ExtentKind, OpenVolume, StoreOptions, VolumeStore, check};
use proptest::prelude::*;
use serde_json::Value;

/// More than one stripe of 256 blocks, and no whole number of them.
const BLOCKS: usize = 300;
const BLOCK: usize = 4096;
const SIZE: usize = BLOCKS * BLOCK;

#[derive(Debug, Clone)]
enum Op {
    Write { at: usize, len: usize, fill: u8 },
    Zeroes { at: usize, len: usize },
    Discard { at: usize, len: usize },
    Snapshot(u8),
    DeleteSnapshot(u8),
    Clone { from: u8, to: u8 },
    Restore { from: u8, to: u8 },
    Delete(u8),
    Use(u8),
    Close,
    Reopen,
    Settle,
}

/// Ranges that begin and end anywhere, on sectors, or on blocks.
fn range() -> impl Strategy<Value = (usize, usize)> {
    let unit = prop_oneof![1 => Just(1_usize), 3 => Just(512), 3 => Just(BLOCK)];
    (unit, 0..SIZE, prop_oneof![8 => 1..6 * BLOCK, 1 => 1..SIZE]).prop_map(|(unit, at, len)| {
        let at = at / unit * unit;
        (at, (len.div_ceil(unit) * unit).min(SIZE - at))
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (range(), 1..=255_u8).prop_map(|((at, len), fill)| Op::Write { at, len, fill }),
        2 => range().prop_map(|(at, len)| Op::Zeroes { at, len }),
        2 => range().prop_map(|(at, len)| Op::Discard { at, len }),
        3 => (0..4_u8).prop_map(Op::Snapshot),
        3 => (0..4_u8).prop_map(Op::DeleteSnapshot),
        1 => (0..3_u8, 0..3_u8).prop_map(|(from, to)| Op::Clone { from, to }),
        1 => (0..4_u8, 0..3_u8).prop_map(|(from, to)| Op::Restore { from, to }),
        1 => (0..3_u8).prop_map(Op::Delete),
        2 => (0..3_u8).prop_map(Op::Use),
        1 => Just(Op::Close),
        1 => Just(Op::Reopen),
        2 => Just(Op::Settle),
    ]
}

/// What a volume or snapshot holds, which blocks are data, and which were touched since each ancestor was taken.
#[derive(Clone)]
struct Image {
    bytes: Vec<u8>,
    data: Vec<bool>,
    touched_since: BTreeMap<String, Vec<bool>>,
}

impl Image {
    fn empty() -> Self {
        Self { bytes: vec![0; SIZE], data: vec![false; BLOCKS], touched_since: BTreeMap::new() }
    }

    fn touch(&mut self, block: usize, is_data: bool) {
        self.data[block] = is_data;
        self.touched_since.values_mut().for_each(|touched| touched[block] = true);
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        (at / BLOCK..(at + bytes.len()).div_ceil(BLOCK)).for_each(|block| self.touch(block, true));
    }

    fn discard(&mut self, at: usize, len: usize) {
        for block in at.div_ceil(BLOCK)..(at + len) / BLOCK {
            self.bytes[block * BLOCK..][..BLOCK].fill(0);
            if self.data[block] {
                self.touch(block, false);
            }
        }
    }

    fn zero(&mut self, at: usize, len: usize) {
        self.discard(at, len);
        let (first, last) = (at.div_ceil(BLOCK) * BLOCK, (at + len) / BLOCK * BLOCK);
        let edges = if first > last { [at..at + len, 0..0] } else { [at..first, last..at + len] };
        for edge in
            edges.into_iter().filter(|e| !e.is_empty() && self.data[e.start / BLOCK]).collect::<Vec<_>>()
        {
            self.write(edge.start, &vec![0; edge.len()]);
        }
    }
}

struct StoreAndModel<'a> {
    dir: &'a Path,
    store: Option<VolumeStore>,
    open: Option<(String, Arc<OpenVolume>)>,
    volumes: BTreeMap<String, Image>,
    snapshots: BTreeMap<String, Image>,
}

impl<'a> StoreAndModel<'a> {
    fn new(dir: &'a Path) -> Self {
        let store = VolumeStore::open(dir, StoreOptions::default()).unwrap();
        store.create_volume("v0", u64::try_from(SIZE).unwrap(), Value::Null).unwrap();
        let volumes = BTreeMap::from([("v0".to_owned(), Image::empty())]);
        Self { dir, store: Some(store), open: None, volumes, snapshots: BTreeMap::new() }
    }

    fn store(&self) -> &VolumeStore {
        self.store.as_ref().unwrap()
    }

    fn use_volume(&mut self, name: &str) {
        self.open = None;
        self.open = Some((name.to_owned(), self.store().open_volume(name).unwrap()));
    }

    /// The volume in use; one is opened where none is.
    fn in_use(&mut self) -> Option<(Arc<OpenVolume>, &mut Image)> {
        if self.open.is_none() {
            let name = self.volumes.keys().next()?.clone();
            self.use_volume(&name);
        }
        let (name, volume) = self.open.as_ref()?;
        Some((Arc::clone(volume), self.volumes.get_mut(name)?))
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Write { at, len, fill } => {
                let Some((volume, image)) = self.in_use() else { return };
                let bytes: Vec<u8> =
                    (0..*len).map(|i| fill.wrapping_add(u8::try_from(i % 251).unwrap())).collect();
                volume.write_at(&bytes, offset(*at)).unwrap();
                image.write(*at, &bytes);
            }
            Op::Zeroes { at, len } => {
                let Some((volume, image)) = self.in_use() else { return };
                volume.write_zeroes(offset(*at), offset(*len)).unwrap();
                image.zero(*at, *len);
            }
            Op::Discard { at, len } => {
                let Some((volume, image)) = self.in_use() else { return };
                volume.discard(offset(*at), offset(*len)).unwrap();
                image.discard(*at, *len);
            }
            Op::Snapshot(n) => self.snapshot(*n),
            Op::DeleteSnapshot(n) => {
                let name = format!("s{n}");
                let deleted = self.store().delete_snapshot(&name);
                assert_eq!(deleted.is_ok(), self.snapshots.remove(&name).is_some());
                self.volumes.values_mut().for_each(|image| drop(image.touched_since.remove(&name)));
                self.snapshots.values_mut().for_each(|image| drop(image.touched_since.remove(&name)));
            }
            Op::Clone { from, to } => {
                let (from, to) = (format!("v{from}"), format!("v{to}"));
                let Some(image) = self.volumes.get(&from).cloned() else { return };
                let cloned = self.store().clone_volume(&from, &to, Value::Null);
                assert_eq!(cloned.is_ok(), !self.volumes.contains_key(&to));
                self.volumes.entry(to).or_insert(image);
            }
            Op::Restore { from, to } => {
                let (from, to) = (format!("s{from}"), format!("v{to}"));
                let Some(mut image) = self.snapshots.get(&from).cloned() else { return };
                image.touched_since.insert(from.clone(), vec![false; BLOCKS]);
                let restored = self.store().create_from_snapshot(&to, &from, offset(SIZE), Value::Null);
                assert_eq!(restored.is_ok(), !self.volumes.contains_key(&to));
                self.volumes.entry(to).or_insert(image);
            }
            Op::Delete(n) => {
                let name = format!("v{n}");
                if self.open.as_ref().is_some_and(|(open, _)| *open == name) {
                    assert!(self.store().delete_volume(&name).is_err());
                    return;
                }
                let deleted = self.store().delete_volume(&name);
                assert_eq!(deleted.is_ok(), self.volumes.remove(&name).is_some());
            }
            Op::Use(n) => {
                let name = format!("v{n}");
                if self.volumes.contains_key(&name) {
                    self.use_volume(&name);
                }
            }
            Op::Close => self.open = None,
            Op::Reopen => {
                self.open = None;
                self.store = None;
                let report = check(self.dir, None).unwrap();
                assert!(report.is_clean() && report.notes.is_empty(), "{report:#?}");
                self.store = Some(VolumeStore::open(self.dir, StoreOptions::default()).unwrap());
            }
            Op::Settle => self.store().settle(),
        }
    }

    fn snapshot(&mut self, n: u8) {
        let snapshot = format!("s{n}");
        let Some((volume, _)) = self.in_use() else { return };
        drop(volume);
        let name = self.open.as_ref().unwrap().0.clone();
        let taken = self.store().snapshot(&name, &snapshot, Value::Null);
        assert_eq!(taken.is_ok(), !self.snapshots.contains_key(&snapshot));
        if taken.is_ok() {
            let image = self.volumes.get_mut(&name).unwrap();
            self.snapshots.insert(snapshot.clone(), image.clone());
            image.touched_since.insert(snapshot, vec![false; BLOCKS]);
        }
    }

    /// The volume in use is what the model has, by content, extents and changes.
    fn compare_in_use(&mut self) {
        let snapshots: Vec<String> = self.snapshots.keys().cloned().collect();
        let Some((volume, image)) = self.in_use() else { return };
        let mut bytes = vec![0xEE; SIZE];
        volume.read_at(&mut bytes, 0).unwrap();
        assert!(
            bytes == image.bytes,
            "first difference at {:?}",
            bytes.iter().zip(&image.bytes).position(|(a, b)| a != b)
        );
        let flags = flags_of(&volume.extents(0, offset(SIZE)));
        assert_eq!(flags, image.data, "extents");
        for snapshot in snapshots {
            let dirty = volume.dirty_since(&snapshot, 0, offset(SIZE));
            if let Some(touched) = image.touched_since.get(&snapshot) {
                assert_eq!(&flags_of(&dirty.unwrap()), touched, "dirty since {snapshot}");
            }
        }
    }

    /// Everything is what the model has: each snapshot is looked at through a volume made from it.
    fn compare_all(mut self) {
        self.open = None;
        let store = self.store.take().unwrap();
        for name in self.snapshots.keys() {
            store.create_from_snapshot(&format!("of-{name}"), name, offset(SIZE), Value::Null).unwrap();
        }
        let snapshots = self.snapshots.iter().map(|(name, image)| (format!("of-{name}"), image));
        let volumes = self.volumes.iter().map(|(name, image)| (name.clone(), image));
        for (name, image) in snapshots.chain(volumes) {
            let volume = store.open_volume(&name).unwrap();
            let mut bytes = vec![0xEE; SIZE];
            volume.read_at(&mut bytes, 0).unwrap();
            assert!(bytes == image.bytes, "{name}");
            let data = image.data.iter().filter(|d| **d).count();
            assert_eq!(store.volume(&name).unwrap().data_blocks, u64::try_from(data).unwrap());
        }
        drop(store);
        let report = check(self.dir, None).unwrap();
        assert!(report.is_clean() && report.notes.is_empty(), "{report:#?}");
    }
}

fn flags_of(extents: &[ebbtide_device::store::Extent]) -> Vec<bool> {
    let mut flags = Vec::new();
    for (i, extent) in extents.iter().enumerate() {
        assert_eq!(extent.offset, u64::try_from(flags.len()).unwrap() * BLOCK_BYTES, "no gaps");
        assert!(i == 0 || extents[i - 1].kind != extent.kind, "neighbours of one kind are joined");
        let blocks = usize::try_from(extent.len / BLOCK_BYTES).unwrap();
        flags.resize(flags.len() + blocks, extent.kind == ExtentKind::Data);
    }
    flags
}

fn offset(at: usize) -> u64 {
    u64::try_from(at).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_volume_is_what_was_written_to_it_whatever_happens_to_its_layers(ops in prop::collection::vec(op(), 1..60)) {
        let dir = tempfile::tempdir().unwrap();
        let mut pair = StoreAndModel::new(dir.path());
        for op in &ops {
            pair.apply(op);
            pair.compare_in_use();
        }
        pair.compare_all();
    }
}
