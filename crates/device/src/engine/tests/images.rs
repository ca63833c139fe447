//! Snapshots and crash images of a volume that goes on, and what is left of one that does not.

use super::*;

/// Some answered writes and some in flight.
fn busy(limits: Limits) -> (Rig, Vec<Awaited>) {
    let rig = Rig::new(limits);
    for i in 0..8_u8 {
        rig.write_and_wait(u64::from(i) * 32 * KIB, &filled(i + 1, 32 * KIB));
    }
    let in_flight = (0..8_u8).map(|i| rig.write(u64::from(i) * 24 * KIB, &filled(i + 101, 16 * KIB)));
    let in_flight = in_flight.collect();
    (rig, in_flight)
}

#[test]
fn a_snapshot_holds_exactly_the_answered_writes() {
    let (rig, in_flight) = busy(ebs());
    let answered = rig.stored(0, SIZE);
    rig.volume.snapshot(&rig.store, "snap", Value::Null).unwrap();
    rig.pass(SERVICE);
    assert!(in_flight.iter().all(|write| write.now().is_some_and(|outcome| outcome.is_ok())), "it goes on");
    assert_ne!(rig.stored(0, SIZE), answered);
    rig.store.create_from_snapshot("copy", "snap", SIZE, Value::Null).unwrap();
    assert_eq!(rig.contents("copy"), answered);
}

#[test]
fn a_snapshot_holds_what_a_volatile_cache_had() {
    let rig = Rig::new(limits(AtomicUnit::FourKib, 64 * KIB));
    rig.write_and_wait(0, &filled(1, PAGE));
    rig.volume.snapshot(&rig.store, "snap", Value::Null).unwrap();
    rig.store.create_from_snapshot("copy", "snap", SIZE, Value::Null).unwrap();
    assert_eq!(rig.contents("copy")[..4096], filled(1, PAGE));
}

#[test]
fn a_crash_image_is_what_a_power_cut_with_its_seed_leaves_and_the_volume_goes_on() {
    for cache in [0, 64 * KIB] {
        let (rig, in_flight) = busy(limits(AtomicUnit::FourKib, cache));
        let before = rig.stored(0, SIZE);
        let image = rig.volume.crash_image(&rig.store, "image", 42, Value::Null).unwrap();
        assert_eq!(rig.stored(0, SIZE), before, "the volume itself is not disturbed");
        assert!(in_flight.iter().all(|write| write.now().is_none()));
        let cut = rig.volume.power_cut(42).unwrap();
        assert_eq!(image.cut, cut);
        assert_eq!(rig.contents("image"), rig.stored(0, SIZE));
        assert_eq!(cut.cached_units_lost > 0, cache > 0, "{cut:?}");
        assert!(cut.units_new > 0 && cut.units_old > 0, "{cut:?}");
    }
}

#[test]
fn after_a_power_cut_everything_fails_until_the_volume_is_started_anew() {
    let (rig, in_flight) = busy(ebs());
    let reading = rig.read(0, 4096);
    let report = rig.volume.power_cut(1).unwrap();
    assert_eq!((report.requests_in_flight, report.writes_in_flight), (9, 8));
    assert_eq!(report.at, rig.volume.now());
    assert!(in_flight.iter().chain([&reading]).all(|r| r.now() == Some(Err(IoError::PowerLost))));
    let left = rig.stored(0, SIZE);
    let refused = [rig.read(0, 4096), rig.write(0, &filled(9, PAGE)), rig.flush()];
    rig.pass(SERVICE);
    assert!(refused.iter().all(|request| request.now() == Some(Err(IoError::PowerLost))));
    assert_eq!(rig.stored(0, SIZE), left);
    assert!(!rig.volume.is_live());

    let Rig { dir, store, clock, volume } = rig;
    drop(volume);
    let volume = start(&store, NAME, ebs(), &clock);
    let rig = Rig { dir, store, clock, volume };
    let read = rig.read(0, u32::try_from(SIZE).unwrap());
    rig.pass(SERVICE);
    assert_eq!(read.now(), Some(Ok(left)), "what the cut left is what is found");
    assert!(rig.dir.path().exists());
}

#[test]
fn a_zeroing_in_flight_is_decided_by_units_too() {
    let rig = Rig::new(ebs());
    rig.write_and_wait(0, &filled(1, MIB));
    rig.ask(Command::WriteZeroes, 512, 1 << 19, None, false);
    let report = rig.volume.power_cut(4).unwrap();
    assert_eq!(report.units_new + report.units_old, 129, "128 pages and two ragged ends");
    let image = rig.stored(0, MIB);
    assert_eq!(image[..512], filled(1, 512));
    for (number, page) in image[..1 << 19].chunks(4096).enumerate().skip(1) {
        assert!(page.iter().all(|&b| b == page[0]), "page {number} is torn");
    }
    let zeroed = image.iter().filter(|&&b| b == 0).count();
    assert!((1 << 17..1 << 19).contains(&zeroed), "about half of it: {zeroed}");
}
