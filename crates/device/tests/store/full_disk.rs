//! A full host disk: the write reports it, the volume stays consistent, nothing answered is lost.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use ebbtide_device::store::{OpenVolume, StoreError};
use serde_json::Value;

use crate::support::{Rng, assert_clean, open, seed, skipped};

const BLOCK: u64 = 4096;
/// Blocks of the volume: four times what the host's disk holds.
const BLOCKS: u64 = 8192;

/// A small file system of its own.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(dir.path()).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(dir)),
            _ => {
                skipped("mounting a tmpfs needs root");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.path().display());
    }
}

/// Writes random blocks until the disk is full; gives what was answered.
fn fill(volume: &OpenVolume, rng: &mut Rng, answered: &mut [u8]) {
    loop {
        let (block, fill) = (rng.below(BLOCKS - 4), u8::try_from(1 + rng.below(255)).unwrap());
        let blocks = 1 + rng.below(4);
        let bytes = vec![fill; usize::try_from(blocks * BLOCK).unwrap()];
        let range = usize::try_from(block).unwrap()..usize::try_from(block + blocks).unwrap();
        match volume.write_at(&bytes, block * BLOCK) {
            Ok(()) => answered[range].fill(fill),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::StorageFull, "{e}");
                // The write that failed may have taken place in some of its blocks.
                for at in range {
                    let is = first_byte(volume, at);
                    assert!(
                        is == fill || is == answered[at],
                        "block {at} is {is}, not {fill} nor {}",
                        answered[at]
                    );
                    answered[at] = is;
                }
                return;
            }
        }
    }
}

fn first_byte(volume: &OpenVolume, block: usize) -> u8 {
    let mut bytes = [0; 4096];
    volume.read_at(&mut bytes, u64::try_from(block).unwrap() * BLOCK).unwrap();
    assert!(bytes.iter().all(|b| *b == bytes[0]), "block {block} is torn");
    bytes[0]
}

fn assert_holds(volume: &OpenVolume, answered: &[u8]) {
    for (block, fill) in answered.iter().enumerate() {
        assert_eq!(first_byte(volume, block), *fill, "block {block}");
    }
}

#[test]
fn a_full_disk_fails_the_write_and_nothing_else() {
    let Some(disk) = SmallDisk::mount() else { return };
    let mut rng = Rng(seed("full disk"));
    let mut answered = vec![0; usize::try_from(BLOCKS).unwrap()];
    let store = open(disk.path());
    store.create_volume("v", BLOCKS * BLOCK, Value::Null).unwrap();
    let volume = store.open_volume("v").unwrap();
    fill(&volume, &mut rng, &mut answered);
    assert_holds(&volume, &answered);

    // What is there can be overwritten still.
    let there = answered.iter().position(|fill| *fill != 0).unwrap();
    volume.write_at(&[200; 4096], u64::try_from(there).unwrap() * BLOCK).unwrap();
    answered[there] = 200;

    // A discard makes room again, on a full disk.
    for round in 0..4 {
        let from = usize::try_from(rng.below(BLOCKS - 600)).unwrap();
        volume.discard(u64::try_from(from).unwrap() * BLOCK, 600 * BLOCK).unwrap();
        answered[from..from + 600].fill(0);
        fill(&volume, &mut rng, &mut answered);
        assert_holds(&volume, &answered);
        println!("round {round}: {} blocks answered", answered.iter().filter(|fill| **fill != 0).count());
    }
    drop((volume, store));
    assert_clean(disk.path());
    let store = open(disk.path());
    assert_holds(&store.open_volume("v").unwrap(), &answered);
}

#[test]
fn a_snapshot_that_does_not_fit_is_refused_and_the_volume_goes_on() {
    // What merges lack at first, and get when files are removed, depends on the moment.
    for _ in 0..6 {
        let Some(disk) = SmallDisk::mount() else { return };
        fill_with_snapshots(&disk);
    }
}

fn fill_with_snapshots(disk: &SmallDisk) {
    let mut rng = Rng(seed("snapshot on a full disk"));
    let mut answered = vec![0; usize::try_from(BLOCKS).unwrap()];
    let store = open(disk.path());
    store.create_volume("v", BLOCKS * BLOCK, Value::Null).unwrap();
    let volume = store.open_volume("v").unwrap();
    fill(&volume, &mut rng, &mut answered);
    // A little room, which the snapshots' own files take up; a write in between makes each a new layer.
    volume.discard(0, 400 * BLOCK).unwrap();
    answered[..400].fill(0);
    let mut taken = Vec::new();
    let refused = loop {
        let name = format!("s{}", taken.len());
        match store.snapshot("v", &name, Value::Null) {
            Ok(()) => taken.push((name, answered.clone())),
            Err(e) => break e,
        }
        let block = usize::try_from(rng.below(BLOCKS)).unwrap();
        if volume.write_at(&[77; 4096], u64::try_from(block).unwrap() * BLOCK).is_ok() {
            answered[block] = 77;
        }
        assert!(taken.len() < 1000, "the disk never gets full");
    };
    assert!(refused.is_full(), "{refused}");
    assert!(matches!(&refused, StoreError::Io { .. }), "{refused}");
    println!("{} snapshots fitted", taken.len());
    assert!(taken.len() > 3, "only {} snapshots fitted", taken.len());
    assert_holds(&volume, &answered);
    drop((volume, store));
    assert_clean(disk.path());

    // The store opens on the full disk, and deleting is possible and gives the room back.
    let store = open(disk.path());
    let (last, image) = taken.pop().unwrap();
    for (name, _) in &taken {
        store.delete_snapshot(name).unwrap();
    }
    store.settle();
    assert_holds(&store.open_volume("v").unwrap(), &answered);
    store.create_from_snapshot("w", &last, BLOCKS * BLOCK, Value::Null).unwrap();
    let restored = store.open_volume("w").unwrap();
    assert_holds(&restored, &image);
    restored.write_at(&[78; 4096], 0).unwrap();
}
