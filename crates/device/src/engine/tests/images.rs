//! Snapshots and crash images of a volume that goes on, and what is left of one that does not.

use parking_lot::Mutex;

use super::*;
use crate::engine::{CrashReport, CutWrite, GroupCut, ImageRequest, Keep, SubmittedWrite, crash_images};

/// Some answered writes and some in flight.
fn busy(limits: Limits) -> (Fixture, Vec<Awaited>) {
    busy_on(Fixture::new(limits))
}

pub(super) fn busy_on(fixture: Fixture) -> (Fixture, Vec<Awaited>) {
    for i in 0..8_u8 {
        fixture.write_and_wait(u64::from(i) * 32 * KIB, &filled(i + 1, 32 * KIB));
    }
    let in_flight = (0..8_u8).map(|i| fixture.write(u64::from(i) * 24 * KIB, &filled(i + 101, 16 * KIB)));
    let in_flight = in_flight.collect();
    (fixture, in_flight)
}

#[test]
fn a_snapshot_holds_exactly_the_answered_writes() {
    let (fixture, in_flight) = busy(ebs());
    let answered = fixture.stored(0, SIZE);
    fixture.volume.snapshot(&fixture.store, "snap", Value::Null).unwrap();
    fixture.pass(SERVICE);
    assert!(in_flight.iter().all(|write| write.now().is_some_and(|outcome| outcome.is_ok())), "it goes on");
    assert_ne!(fixture.stored(0, SIZE), answered);
    fixture.store.create_from_snapshot("copy", "snap", SIZE, Value::Null).unwrap();
    assert_eq!(fixture.contents("copy"), answered);
}

#[test]
fn a_snapshot_holds_what_a_volatile_cache_had() {
    let fixture = Fixture::new(limits(AtomicUnit::FourKib, 64 * KIB));
    fixture.write_and_wait(0, &filled(1, PAGE));
    fixture.volume.snapshot(&fixture.store, "snap", Value::Null).unwrap();
    fixture.store.create_from_snapshot("copy", "snap", SIZE, Value::Null).unwrap();
    assert_eq!(fixture.contents("copy")[..4096], filled(1, PAGE));
}

#[test]
fn a_crash_image_is_what_a_power_cut_with_its_seed_leaves_and_the_volume_goes_on() {
    for cache in [0, 64 * KIB] {
        let (fixture, in_flight) = busy(limits(AtomicUnit::FourKib, cache));
        let before = fixture.stored(0, SIZE);
        let image = fixture.volume.crash_image(&fixture.store, "image", 42, Value::Null).unwrap();
        assert_eq!(fixture.stored(0, SIZE), before, "the volume itself is not disturbed");
        assert!(in_flight.iter().all(|write| write.now().is_none()));
        let cut = fixture.volume.power_cut(42).unwrap();
        assert_eq!(image.cut, cut);
        assert_eq!(fixture.contents("image"), fixture.stored(0, SIZE));
        assert_eq!(cut.cached_units_lost > 0, cache > 0, "{cut:?}");
        assert!(cut.units_new > 0 && cut.units_old > 0, "{cut:?}");
    }
}

#[test]
fn after_a_power_cut_everything_fails_until_the_volume_is_started_anew() {
    let (fixture, in_flight) = busy(ebs());
    let reading = fixture.read(0, 4096);
    let report = fixture.volume.power_cut(1).unwrap();
    assert_eq!((report.requests_in_flight, report.writes_in_flight), (9, 8));
    assert_eq!(report.at, fixture.volume.now());
    assert!(in_flight.iter().chain([&reading]).all(|r| r.now() == Some(Err(IoError::PowerLost))));
    let left = fixture.stored(0, SIZE);
    let refused = [fixture.read(0, 4096), fixture.write(0, &filled(9, PAGE)), fixture.flush()];
    fixture.pass(SERVICE);
    assert!(refused.iter().all(|request| request.now() == Some(Err(IoError::PowerLost))));
    assert_eq!(fixture.stored(0, SIZE), left);
    assert!(!fixture.volume.is_live());

    let Fixture { dir, store, clock, volume } = fixture;
    drop(volume);
    let volume = start(&store, NAME, ebs(), &clock);
    let fixture = Fixture { dir, store, clock, volume };
    let read = fixture.read(0, u32::try_from(SIZE).unwrap());
    fixture.pass(SERVICE);
    assert_eq!(read.now(), Some(Ok(left)), "what the cut left is what is found");
    assert!(fixture.dir.path().exists());
}

#[test]
fn a_zeroing_in_flight_is_decided_by_units_too() {
    let fixture = Fixture::new(ebs());
    fixture.write_and_wait(0, &filled(1, MIB));
    fixture.ask(Command::WriteZeroes, 512, 1 << 19, None, false);
    let report = fixture.volume.power_cut(4).unwrap();
    assert_eq!(report.units_new + report.units_old, 129, "128 pages and two ragged ends");
    let image = fixture.stored(0, MIB);
    assert_eq!(image[..512], filled(1, 512));
    for (number, page) in image[..1 << 19].chunks(4096).enumerate().skip(1) {
        assert!(page.iter().all(|&b| b == page[0]), "page {number} is torn");
    }
    let zeroed = image.iter().filter(|&&b| b == 0).count();
    assert!((1 << 17..1 << 19).contains(&zeroed), "about half of it: {zeroed}");
}

impl Fixture {
    /// Images of this one volume, named by their seeds.
    fn images(&self, seeds: &[u64], keep: Keep) -> GroupCut {
        let names: Vec<_> = seeds.iter().map(|seed| format!("image-{seed}")).collect();
        let volume = &*self.volume;
        let requests = seeds.iter().zip(&names);
        let requests: Vec<_> =
            requests.map(|(&seed, image)| ImageRequest { volume, image, seed, meta: Value::Null }).collect();
        crash_images(&self.store, &requests, keep).unwrap()
    }
}

fn part(bytes: &[u8], offset: u64, len: u64) -> &[u8] {
    let at = |bytes: u64| usize::try_from(bytes).unwrap();
    &bytes[at(offset)..at(offset + len)]
}

/// What a write left of its range, by what the report has.
fn merged(write: &CutWrite) -> Vec<u8> {
    let mut bytes = write.before.clone();
    for &(offset, len) in &write.new {
        let start = usize::try_from(offset - write.offset).unwrap();
        let end = start + usize::try_from(len).unwrap();
        bytes[start..end].copy_from_slice(&write.after[start..end]);
    }
    bytes
}

#[test]
fn every_write_in_flight_is_reported_with_the_content_before_and_after_it() {
    let (fixture, in_flight) = busy(ebs());
    let submitted = fixture.volume.now();
    let group = fixture.images(&[42], Keep::All);
    let [CrashReport { cut, writes, .. }] = &group.images[..] else { panic!("{group:?}") };
    assert_eq!(writes.len(), in_flight.len());
    assert_eq!(
        cut.units_new,
        writes.iter().map(|write| u64::try_from(write.new.len()).unwrap()).sum::<u64>()
    );
    assert_eq!(cut.units_new + cut.units_old, writes.iter().map(|write| write.units).sum::<u64>());
    let image = fixture.contents("image-42");
    for (number, write) in (0_u8..).zip(writes) {
        let offset = u64::from(number) * 24 * KIB;
        assert_eq!((write.offset, write.len, write.units), (offset, 16 * KIB, 4));
        assert_eq!((write.submitted, write.zeroes), (submitted, false));
        assert_eq!(write.before, fixture.stored(offset, 16 * KIB));
        assert_eq!(write.after, filled(number + 101, 16 * KIB));
        let found = part(&image, offset, 16 * KIB);
        assert_eq!(merged(write), found);
        assert_eq!(write.is_torn(), found != write.before && found != write.after, "write {number}");
    }
    assert!(writes.iter().any(CutWrite::is_torn), "seed 42 tears some");
}

#[test]
fn of_two_writes_to_one_place_the_later_one_finds_what_the_earlier_one_left() {
    let fixture = Fixture::new(ebs());
    fixture.write_and_wait(0, &filled(1, 64 * KIB));
    let _in_flight = [fixture.write(0, &filled(2, 64 * KIB)), fixture.write(0, &filled(3, 64 * KIB))];
    let group = fixture.images(&[5], Keep::All);
    let [earlier, later] = &group.images[0].writes[..] else { panic!("{group:?}") };
    assert!(earlier.is_torn() && later.is_torn());
    assert_eq!(merged(earlier), later.before);
    assert_eq!(merged(later), part(&fixture.contents("image-5"), 0, 64 * KIB));
}

#[test]
fn contents_are_kept_of_those_writes_only_that_were_asked_for() {
    let (fixture, _in_flight) = busy(ebs());
    fixture.ask(Command::WriteZeroes, MIB, 1 << 16, None, false);
    // One unit, which is never torn.
    fixture.write(2 * MIB, &filled(1, PAGE));
    let count = |seed, keep| {
        let group = fixture.images(&[seed], keep);
        let writes = &group.images[0].writes;
        let kept = writes.iter().filter(|write| !write.after.is_empty());
        assert!(kept.clone().all(|write| write.before.len() == write.after.len() && !write.zeroes));
        let torn = writes.iter().filter(|write| write.is_torn() && !write.zeroes).count();
        (kept.count(), torn, writes.len())
    };
    assert!(matches!(count(1, Keep::Nothing), (0, _, 10)));
    let (kept, torn, _) = count(2, Keep::Torn);
    assert!(kept == torn && kept > 0, "{kept} kept, {torn} torn");
    assert!(matches!(count(3, Keep::All), (9, _, 10)));
}

#[test]
fn one_volume_is_cut_in_several_ways_at_one_instant() {
    let (fixture, _in_flight) = busy(limits(AtomicUnit::FourKib, 64 * KIB));
    let seeds = [1, 2, 3];
    let group = fixture.images(&seeds, Keep::Nothing);
    assert_eq!(group.images.iter().map(|image| image.cut.seed).collect::<Vec<_>>(), seeds);
    let images = seeds.map(|seed| fixture.contents(&format!("image-{seed}")));
    assert!(images[0] != images[1] && images[1] != images[2]);
    let cut = fixture.volume.power_cut(3).unwrap();
    assert_eq!(group.images[2].cut, cut);
    assert_eq!(images[2], fixture.stored(0, SIZE));
}

#[test]
fn the_pages_that_a_cache_loses_are_named() {
    let fixture = Fixture::new(limits(AtomicUnit::SixteenKib, 64 * KIB));
    for page in 0..16_u8 {
        fixture.write_and_wait(u64::from(page) * PAGE, &filled(page + 1, PAGE));
    }
    let group = fixture.images(&[9], Keep::Nothing);
    let report = &group.images[0];
    let image = fixture.contents("image-9");
    let gone: Vec<_> = (0..16).map(|page| page * PAGE).filter(|at| part(&image, *at, 1) == [0]).collect();
    assert_eq!(report.cached_lost, gone);
    assert_eq!(report.cut.cached_units_lost * 4, u64::try_from(gone.len()).unwrap());
    assert!((1..16).contains(&gone.len()), "{gone:?}");
    assert_eq!(report.cached_lost_unnamed, 0);
}

#[test]
fn what_a_cache_takes_after_an_image_is_not_in_the_image() {
    let fixture = Fixture::new(limits(AtomicUnit::FourKib, 64 * KIB));
    fixture.write_and_wait(0, &filled(1, 8 * PAGE));
    let cached = fixture.images(&[4], Keep::Nothing).images.remove(0).cut;
    assert!(cached.cached_units_kept > 0, "{cached:?}");
    let before = fixture.contents("image-4");
    fixture.write_and_wait(0, &filled(2, 8 * PAGE));
    fixture.flush();
    fixture.pass(SERVICE);
    assert_eq!(fixture.contents("image-4"), before);
    assert_eq!(fixture.stored(0, PAGE), filled(2, PAGE));
}

#[test]
fn images_of_a_group_are_all_made_or_none_is() {
    let (fixture, _in_flight) = busy(ebs());
    fixture.store.create_volume("taken", PAGE, Value::Null).unwrap();
    for second in ["taken", "Not/A/Name", "first"] {
        let request = |image| ImageRequest { volume: &fixture.volume, image, seed: 1, meta: Value::Null };
        let refused = crash_images(&fixture.store, &[request("first"), request(second)], Keep::All);
        refused.expect_err(second);
        let names: Vec<_> = fixture.store.volumes().into_iter().map(|volume| volume.name).collect();
        assert_eq!(names, ["taken", NAME]);
    }
    assert!(crash_images(&fixture.store, &[], Keep::All).unwrap().images.is_empty());
}

#[test]
fn a_write_callback_is_called_for_every_write_that_waits_and_a_cut_from_then_on_has_it() {
    let fixture = Fixture::new(ebs());
    let submitted = Arc::new(Mutex::new(Vec::new()));
    let volume = Arc::downgrade(&fixture.volume);
    let store = fixture.store.clone();
    let notes = Arc::clone(&submitted);
    fixture.volume.set_write_callback(Some(Arc::new(move |write: SubmittedWrite| {
        let volume = volume.upgrade().unwrap();
        let image = format!("at-{}", write.offset);
        let report = volume.crash_image(&store, &image, 1, Value::Null).unwrap();
        let last = report.writes.last().map(|caught| (caught.offset, caught.len));
        assert_eq!(last, Some((write.offset, u64::from(write.len))));
        notes.lock().push((write.offset, write.len));
    })));
    let _reading = fixture.read(0, 4096);
    let _writing = [fixture.write(0, &filled(1, PAGE)), fixture.write(8 * KIB, &filled(2, 2 * PAGE))];
    let copied = filled(3, PAGE);
    fixture.volume.submit_write(64 * KIB, &copied, Reply::callback(|_| ()));
    fixture.flush();
    assert_eq!(*submitted.lock(), [(0, 4096), (8 * KIB, 8192), (64 * KIB, 4096)]);
    fixture.volume.set_write_callback(None);
    fixture.write(0, &filled(4, PAGE));
    assert_eq!(submitted.lock().len(), 3);
}
