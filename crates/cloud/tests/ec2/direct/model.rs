//! Drawn writes, snapshots and puts against a model in memory, with starts in between: lists, differences and bytes.

use std::collections::BTreeMap;

use ebbtide_device::host::{Home, Host, HostOptions};
use ebbtide_device::store::{ExtentKind, SNAPSHOT_BLOCK_BYTES as SIZE};
use serde_json::{Value, json};

use super::{BLOCK, aggregate, filled};
use crate::support::{Rig, Rng, home, seed, text};

/// Places that are written: the first and the last blocks of a disk of 1 GiB, and some between.
const PLACES: [u64; 6] = [0, 1, 2, 700, 2_046, 2_047];

/// What a disk has at a place: the fill of its block, and when it was written last.
type Disk = BTreeMap<u64, (u8, u64)>;

/// A snapshot or a volume, and the disk that it began as, through all snapshots.
#[derive(Debug, Clone, Default)]
struct Image {
    disk: Disk,
    line: u64,
}

#[derive(Debug, Default)]
struct Model {
    now: u64,
    volumes: BTreeMap<String, Image>,
    snapshots: BTreeMap<String, Image>,
    /// With the blocks that were put.
    pending: BTreeMap<String, (Image, BTreeMap<u64, u8>)>,
}

fn key<T>(rng: &mut Rng, map: &BTreeMap<String, T>) -> Option<String> {
    let keys: Vec<&String> = map.keys().collect();
    rng.pick(&keys).map(|id| (*id).clone())
}

impl Model {
    /// One drawn step; the rig after it.
    fn step(&mut self, rig: Rig, rng: &mut Rng) -> Rig {
        self.now += 1;
        let now = self.now;
        let index = PLACES[rng.below(PLACES.len())];
        let fill = u8::try_from(rng.below(4)).unwrap();
        match rng.below(14) {
            0 if self.volumes.len() < 3 => {
                let from = key(rng, &self.snapshots).filter(|_| rng.below(3) > 0);
                let mut input = json!({"Size": 1});
                let mut image = Image { line: now, ..Image::default() };
                if let Some(from) = from {
                    image = self.snapshots[&from].clone();
                    input = json!({"SnapshotId": from});
                }
                self.volumes.insert(rig.volume_of(input), image);
            }
            1 | 2 => {
                let Some(volume) = key(rng, &self.volumes) else { return rig };
                self.volumes.get_mut(&volume).unwrap().disk.insert(index, (fill, now));
                return rig.between(|store| {
                    let open = store.open_volume(&volume).unwrap();
                    open.write_at(&filled(fill), index * SIZE).unwrap();
                });
            }
            3 => {
                let Some(volume) = key(rng, &self.volumes) else { return rig };
                let image = self.volumes[&volume].clone();
                self.snapshots.insert(rig.snapshot(&volume), image);
            }
            4 => {
                let parent = key(rng, &self.snapshots).filter(|_| rng.below(3) > 0);
                let id = rig.start(parent.as_deref());
                let image = parent.map(|parent| self.snapshots[&parent].clone());
                let image = image.unwrap_or_else(|| Image { line: now, ..Image::default() });
                self.pending.insert(id, (image, BTreeMap::new()));
            }
            5..=8 => {
                let Some(id) = key(rng, &self.pending) else { return rig };
                rig.put(&id, index, &filled(fill));
                let (image, put) = self.pending.get_mut(&id).unwrap();
                image.disk.insert(index, (fill, now));
                put.insert(index, fill);
            }
            9 | 10 => {
                self.complete(&rig, rng);
            }
            11 => {
                let Some(id) = key(rng, &self.snapshots) else { return rig };
                rig.call("DeleteSnapshot", json!({"SnapshotId": id}));
                self.snapshots.remove(&id);
            }
            12 => {
                let Some(id) = key(rng, &self.volumes) else { return rig };
                rig.call("DeleteVolume", json!({"VolumeId": id}));
                self.volumes.remove(&id);
            }
            _ => return rig.reopened(),
        }
        rig
    }

    fn complete(&mut self, rig: &Rig, rng: &mut Rng) {
        let Some(id) = key(rng, &self.pending) else { return };
        let (image, put) = self.pending.remove(&id).unwrap();
        let blocks: Vec<Vec<u8>> = put.values().map(|fill| filled(*fill)).collect();
        rig.direct(
            "CompleteSnapshot",
            json!({
                "SnapshotId": id, "ChangedBlocksCount": put.len(), "ChecksumAlgorithm": "SHA256",
                "ChecksumAggregationMethod": "LINEAR",
                "Checksum": aggregate(blocks.iter().map(Vec::as_slice)),
            }),
        );
        self.snapshots.insert(id, image);
    }

    #[track_caller]
    fn compare(&self, rig: &Rig, place: &str) {
        let shown = rig.call("DescribeSnapshots", json!({}));
        let state = |row: &Value| (text(&row["SnapshotId"]), text(&row["State"]));
        let shown: BTreeMap<_, _> = shown["Snapshots"].as_array().unwrap().iter().map(state).collect();
        let completed = self.snapshots.keys().map(|id| (id.clone(), "completed".to_owned()));
        let pending = self.pending.keys().map(|id| (id.clone(), "pending".to_owned()));
        assert_eq!(shown, completed.chain(pending).collect(), "{place}");
        for (id, image) in &self.snapshots {
            let listed = rig.listed(id);
            let found: BTreeMap<u64, u8> = listed
                .iter()
                .map(|(index, token)| {
                    let data = rig.block(id, *index, token);
                    assert!(data == filled(data[0]), "{place}: {id} {index}");
                    (*index, data[0])
                })
                .collect();
            let expected: BTreeMap<u64, u8> =
                image.disk.iter().map(|(index, (fill, _))| (*index, *fill)).collect();
            assert_eq!(found, expected, "{place}: {id}");
        }
    }

    #[track_caller]
    fn compare_pairs(&self, rig: &Rig, place: &str) {
        for (first, of_first) in &self.snapshots {
            for (second, of_second) in &self.snapshots {
                let input = json!({"FirstSnapshotId": first, "SecondSnapshotId": second});
                if of_first.line != of_second.line {
                    assert_eq!(
                        rig.direct_refused("ListChangedBlocks", input),
                        "UNRELATED_SNAPSHOTS",
                        "{place}"
                    );
                    continue;
                }
                let answer = rig.direct("ListChangedBlocks", input);
                let rows = answer["ChangedBlocks"].as_array().unwrap();
                let row = |row: &Value| {
                    let has = |name: &str| row.get(name).is_some();
                    (row["BlockIndex"].as_u64().unwrap(), has("FirstBlockToken"), has("SecondBlockToken"))
                };
                let found: Vec<_> = rows.iter().map(row).collect();
                let (a, b) = (&of_first.disk, &of_second.disk);
                let differs = PLACES.into_iter().filter(|index| a.get(index) != b.get(index));
                let expected: Vec<_> =
                    differs.map(|index| (index, a.contains_key(&index), b.contains_key(&index))).collect();
                assert_eq!(found, expected, "{place}: {first} {second}");
            }
        }
    }

    /// Makes a volume of each snapshot, and compares its bytes in the block store.
    fn restore(self, rig: Rig, place: &str) {
        let volumes: Vec<(String, Disk)> = self
            .snapshots
            .iter()
            .map(|(id, image)| (rig.volume_of(json!({"SnapshotId": id})), image.disk.clone()))
            .collect();
        let dir = std::sync::Arc::clone(&rig.dir);
        drop(rig);
        let home = Home::open(&home(dir.path())).unwrap();
        let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
        for (volume, disk) in volumes {
            let open = host.store().open_volume(&volume).unwrap();
            assert_eq!(open.size_bytes(), 1 << 30);
            let mut written = Vec::new();
            for extent in open.extents(0, 1 << 30).iter().filter(|extent| extent.kind == ExtentKind::Data) {
                written.extend(extent.offset / SIZE..(extent.offset + extent.len).div_ceil(SIZE));
            }
            assert_eq!(written, disk.keys().copied().collect::<Vec<_>>(), "{place}: {volume}");
            let mut data = vec![0; BLOCK];
            for (index, (fill, _)) in disk {
                open.read_at(&mut data, index * SIZE).unwrap();
                assert!(data == filled(fill), "{place}: {volume}, block {index}");
            }
        }
    }
}

#[test]
fn drawn_writes_snapshots_and_puts_are_listed_and_restored_as_a_model_has_them() {
    let seed = seed(512);
    for run in 0..3 {
        let mut rng = Rng(seed ^ (run << 32));
        let mut model = Model::default();
        let mut rig = Rig::new();
        for step in 0..50 {
            rig = model.step(rig, &mut rng);
            let place = format!("seed {seed}, run {run}, step {step}");
            model.compare(&rig, &place);
            if step % 5 == 0 {
                model.compare_pairs(&rig, &place);
            }
        }
        let place = format!("seed {seed}, run {run}");
        model.compare_pairs(&rig, &place);
        model.restore(rig, &place);
    }
}
