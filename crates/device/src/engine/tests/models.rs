//! A volume whose physics is replaced while it is in use.

use ebbtide_volume::{Instance, InstanceLimits, RateLimit};
use parking_lot::Mutex;

use super::*;
use crate::engine::EngineError;

/// Ten operations a second with all credits spent, and nothing else.
fn ten_a_second() -> Limits {
    Limits { iops: Some(RateLimit::flat(10)), service: ServiceTimes::instant(), ..ebs() }
}

fn unlimited() -> Limits {
    Limits { service: ServiceTimes::instant(), ..ebs() }
}

impl Fixture {
    fn replace(&self, limits: Limits) {
        let array = Array::single(limits, self.volume.now()).unwrap();
        self.volume.replace_model(array, None).unwrap();
    }
}

#[test]
fn what_is_in_flight_completes_as_the_old_model_decided_and_the_rest_as_the_new_one_does() {
    let fixture = Fixture::new(ebs());
    let old = fixture.write(0, &filled(1, PAGE));
    fixture.pass(Nanos(SERVICE.0 / 2));
    fixture.replace(ten_a_second());
    let first = fixture.write(PAGE, &filled(2, PAGE));
    let second = fixture.write(2 * PAGE, &filled(3, PAGE));
    let third = fixture.write(3 * PAGE, &filled(4, PAGE));
    fixture.pass(Nanos(SERVICE.0 / 2 - 1));
    assert!(old.now().is_none(), "a nanosecond early");
    fixture.pass(Nanos(1));
    assert_eq!(old.now(), Some(Ok(Vec::new())));
    fixture.pass(Nanos::from_ms(100));
    assert!(first.now().is_some() && second.now().is_some(), "the first one waits for nothing");
    assert!(third.now().is_none(), "ten a second");
    fixture.pass(Nanos::from_ms(100));
    assert!(third.now().is_some());
}

#[test]
fn the_counters_go_on_over_a_replacement() {
    let fixture = Fixture::new(unlimited());
    for page in 0..5 {
        fixture.write(page * PAGE, &filled(1, PAGE)).now().unwrap().unwrap();
    }
    fixture.pass(Nanos::SECOND);
    let mut last = fixture.volume.stats();
    assert_eq!((last.write.ops, last.idle_time), (5, Nanos::SECOND));
    fixture.replace(ten_a_second());
    assert_eq!(fixture.volume.stats().write, last.write);
    let awaited: Vec<_> = (0..5).map(|page| fixture.read(page * PAGE, 4096)).collect();
    for _ in 0..10 {
        fixture.pass(Nanos::from_ms(100));
        let now = fixture.volume.stats();
        assert!(now.read.ops >= last.read.ops && now.queue_time >= last.queue_time, "{now:?}");
        assert!(now.idle_time >= last.idle_time && now.at > last.at, "{now:?}");
        assert!(now.volume_iops_exceeded >= last.volume_iops_exceeded, "{now:?}");
        last = now;
    }
    assert!(awaited.iter().all(|read| read.now().is_some()));
    assert_eq!((last.read.ops, last.write.ops, last.queue), (5, 5, 0));
    assert!(last.idle_time < Nanos::from_secs(2), "it was busy for half a second: {last:?}");
    assert_eq!(last.iops_rate, Some(10));
}

#[test]
fn an_instance_holds_from_the_replacement_on_and_its_volumes_share_it() {
    let fixture = Fixture::new(unlimited());
    fixture.write(0, &filled(1, PAGE)).now().unwrap().unwrap();
    let limits = InstanceLimits { iops: RateLimit::flat(10), throughput: RateLimit::flat(1 << 30) };
    let instance = Arc::new(Mutex::new(Instance::new(limits)));
    let array = Array::single(unlimited(), fixture.volume.now()).unwrap();
    fixture.volume.replace_model(array, Some(Arc::clone(&instance))).unwrap();
    let awaited = [0, PAGE, 2 * PAGE].map(|offset| fixture.write(offset, &filled(2, PAGE)));
    fixture.pass(Nanos::from_ms(100));
    assert_eq!(awaited.iter().filter(|write| write.now().is_some()).count(), 2, "at once, and after 100 ms");
    fixture.pass(Nanos::from_ms(100));
    assert_eq!(fixture.volume.stats().write.ops, 4);
}

#[test]
fn what_a_stall_held_back_is_charged_to_the_new_model() {
    let fixture = Fixture::new(unlimited());
    let faults = |stalled| crate::faults::Faults { stalled, ..Default::default() };
    fixture.volume.set_faults(faults(true)).unwrap();
    let awaited = [0, PAGE, 2 * PAGE].map(|offset| fixture.write(offset, &filled(1, PAGE)));
    fixture.replace(ten_a_second());
    fixture.volume.set_faults(faults(false)).unwrap();
    fixture.pass(Nanos::from_ms(100));
    assert_eq!(awaited.iter().filter(|write| write.now().is_some()).count(), 2, "at once, and after 100 ms");
}

#[test]
fn a_model_of_another_size_or_durability_does_not_take_over() {
    let fixture = Fixture::new(unlimited());
    for limits in [
        Limits { size_bytes: SIZE / 2, ..unlimited() },
        limits(AtomicUnit::SixteenKib, 0),
        limits(AtomicUnit::FourKib, MIB),
    ] {
        let array = Array::single(limits, fixture.volume.now()).unwrap();
        let refused = fixture.volume.replace_model(array, None).unwrap_err();
        assert!(matches!(&refused, EngineError::OtherVolume { .. }), "{refused}");
    }
    fixture.write(0, &filled(1, PAGE)).now().unwrap().unwrap();
}
