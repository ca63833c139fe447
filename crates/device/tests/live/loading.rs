//! A volume from a snapshot as a block device: what is read while it loads is what the snapshot has.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ebbtide_device::clock::{Clock as _, MonotonicClock};
use ebbtide_device::engine::{LiveOptions, LiveVolume};
use ebbtide_device::store::{StoreOptions, VolumeStore};
use ebbtide_volume::{Array, LOAD_BLOCK_BYTES, Loader, MIB, Nanos, QuantileCurve};
use serde_json::Value;

use crate::support::{Attached, ideal, missing};

const SIZE: u64 = 32 * MIB;
const BLOCK: u64 = LOAD_BLOCK_BYTES;
/// Blocks that the snapshot has; the rest of the volume is empty.
const DATA: u64 = 48;
const FIRST_TOUCH: Nanos = Nanos::from_ms(30);

/// A page of the snapshot.
fn page(number: u64) -> [u8; 4096] {
    let mut page = [0xA5; 4096];
    page[..8].copy_from_slice(&number.to_le_bytes());
    page
}

/// A volume from a snapshot with data in its first blocks, of which only what is touched is loaded.
fn restored() -> Attached {
    let dir = tempfile::tempdir().unwrap();
    let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
    store.create_volume("source", SIZE, Value::Null).unwrap();
    let source = store.open_volume("source").unwrap();
    (0..DATA * BLOCK / 4096).for_each(|number| source.write_at(&page(number), number * 4096).unwrap());
    store.snapshot("source", "snap", Value::Null).unwrap();
    store.create_from_snapshot("copy", "snap", SIZE, Value::Null).unwrap();
    let clock = MonotonicClock::new();
    let mut array = Array::single(ideal(SIZE), clock.now()).unwrap();
    let states = array.new_load_states(&store.snapshot_data("snap").unwrap(), clock.now());
    let first_touch = QuantileCurve::constant(FIRST_TOUCH);
    array.begin_loading(&Loader { first_touch, rate: None }, states).unwrap();
    let mut options = LiveOptions::new("copy", array, store.open_volume("copy").unwrap(), 1);
    options.clock = Arc::new(clock);
    Attached::with(dir, store, LiveVolume::start(options).unwrap())
}

#[test]
fn what_is_read_and_written_while_a_volume_loads_is_right() {
    if let Some(missing) = missing(&[]) {
        println!("SKIPPED: {missing} is missing");
        return;
    }
    let attached = restored();
    // Through the page cache, which reads ahead, merges and writes parts of blocks.
    let file = OpenOptions::new().read(true).write(true).open(attached.path()).unwrap();
    let began = Instant::now();
    let mut bytes = [0; 4096];
    file.read_exact_at(&mut bytes, 17 * BLOCK).unwrap();
    assert_eq!(bytes, page(17 * BLOCK / 4096));
    assert!(began.elapsed() >= Duration::from_nanos(FIRST_TOUCH.0), "{:?}", began.elapsed());
    file.write_all_at(&[0xEE; 4096], 20 * BLOCK + 4096).unwrap();
    file.write_all_at(&vec![0xDD; 1 << 20], 30 * BLOCK - 4096).unwrap();
    file.sync_all().unwrap();
    let mut all = vec![0; usize::try_from(SIZE).unwrap()];
    for (at, part) in (0..).zip(all.chunks_mut(1 << 20)) {
        file.read_exact_at(part, at << 20).unwrap();
    }
    for (number, found) in (0..).zip(all.chunks(4096)) {
        let offset = number * 4096;
        let wanted = match offset {
            _ if offset == 20 * BLOCK + 4096 => [0xEE; 4096],
            _ if (30 * BLOCK - 4096..32 * BLOCK - 4096).contains(&offset) => [0xDD; 4096],
            _ if offset < DATA * BLOCK => page(number),
            _ => [0; 4096],
        };
        assert!(found == wanted, "page {number}");
    }
    let loaded = attached.volume.inspect(Array::load_progress).unwrap();
    assert_eq!((loaded.missing, loaded.blocks()), (0, DATA), "{loaded:?}");
}
