//! A volume from a snapshot: the model makes its answers wait, and the data are right from the beginning.

use ebbtide_volume::{LOAD_BLOCK_BYTES, LoadProgress, Loader};

use super::*;

const FIRST_TOUCH: Nanos = Nanos::from_ms(40);
const BLOCK: u64 = LOAD_BLOCK_BYTES;

/// A volume restored from a snapshot that has data in its first six blocks of eight, which loads only what is touched.
fn restored() -> Fixture {
    let fixture = Fixture::new(ebs());
    let written: Vec<u8> = (0..6 * BLOCK).map(|at| u8::try_from(at / 4096 % 251).unwrap()).collect();
    fixture.volume.store().write_at(&written, 0).unwrap();
    fixture.volume.snapshot(&fixture.store, "snap", Value::Null).unwrap();
    fixture.store.create_from_snapshot("copy", "snap", SIZE, Value::Null).unwrap();
    let data = fixture.store.snapshot_data("snap").unwrap();
    let mut array = Array::single(ebs(), START).unwrap();
    let states = array.new_load_states(&data, START);
    array
        .begin_loading(&Loader { first_touch: QuantileCurve::constant(FIRST_TOUCH), rate: None }, states)
        .unwrap();
    let mut options = LiveOptions::new("copy", array, fixture.store.open_volume("copy").unwrap(), 7);
    options.clock = Arc::<ManualClock>::clone(&fixture.clock);
    let volume = LiveVolume::start(options).unwrap();
    Fixture { volume, ..fixture }
}

fn progress(fixture: &Fixture) -> LoadProgress {
    fixture.volume.inspect(Array::load_progress).unwrap()
}

fn byte(offset: u64) -> u8 {
    u8::try_from(offset / 4096 % 251).unwrap()
}

#[test]
fn a_block_that_is_touched_first_is_answered_late_and_with_its_data() {
    let fixture = restored();
    let (slow, known) = (fixture.read(BLOCK, 4096), fixture.read(7 * BLOCK, 4096));
    fixture.pass(SERVICE);
    assert_eq!(known.now().unwrap().unwrap(), filled(0, 4096), "the snapshot has nothing there");
    assert!(slow.now().is_none());
    fixture.pass(Nanos(FIRST_TOUCH.0 - 1));
    assert!(slow.now().is_none());
    fixture.pass(Nanos(1));
    assert_eq!(slow.now().unwrap().unwrap(), filled(byte(BLOCK), 4096));
    let again = fixture.read(BLOCK + 8192, 4096);
    fixture.pass(SERVICE);
    assert_eq!(again.now().unwrap().unwrap(), filled(byte(BLOCK + 8192), 4096));
    assert_eq!(progress(&fixture).counts.touched, 1);
}

#[test]
fn a_write_of_a_part_waits_and_changes_only_that_part() {
    let fixture = restored();
    let page = filled(0xEE, PAGE);
    let written = fixture.write(2 * BLOCK + PAGE, &page);
    fixture.pass(SERVICE);
    assert!(written.now().is_none());
    fixture.pass(FIRST_TOUCH);
    written.now().unwrap().unwrap();
    assert_eq!(fixture.stored(2 * BLOCK + PAGE, PAGE), page);
    assert_eq!(fixture.stored(2 * BLOCK, PAGE), filled(byte(2 * BLOCK), PAGE));
    fixture.write_and_wait(3 * BLOCK, &filled(0xDD, BLOCK));
    let discarded = fixture.ask(Command::Discard, 4 * BLOCK, u32::try_from(BLOCK).unwrap(), None, false);
    fixture.pass(Nanos(1));
    discarded.now().unwrap().unwrap();
    for (offset, wanted) in [(3 * BLOCK, 0xDD), (4 * BLOCK, 0)] {
        let read = fixture.read(offset, 4096);
        fixture.pass(SERVICE);
        assert_eq!(read.now().unwrap().unwrap(), filled(wanted, 4096));
    }
    let counts = progress(&fixture).counts;
    assert_eq!((counts.touched, counts.overwritten, counts.discarded), (1, 1, 1));
}

#[test]
fn a_power_cut_during_a_load_leaves_the_snapshots_data_or_the_writes() {
    let fixture = restored();
    let unanswered = fixture.write(BLOCK, &filled(0xEE, PAGE));
    fixture.pass(Nanos::from_ms(20));
    fixture.volume.crash_image(&fixture.store, "image", 5, Value::Null).unwrap();
    let report = fixture.volume.power_cut(5).unwrap();
    assert_eq!((report.writes_in_flight, report.units_new + report.units_old), (1, 1));
    assert_eq!(unanswered.now().unwrap().unwrap_err(), IoError::PowerLost);
    let (image, left) = (fixture.contents("image"), fixture.stored(0, SIZE));
    assert!(image == left, "the same seed cuts the same way");
    for (page, bytes) in (0..).zip(left.chunks(4096)) {
        let offset = page * 4096;
        let old = if offset < 6 * BLOCK { byte(offset) } else { 0 };
        let new = offset == BLOCK && bytes == filled(0xEE, PAGE);
        assert!(new || bytes == filled(old, PAGE), "page {page}");
    }
}
