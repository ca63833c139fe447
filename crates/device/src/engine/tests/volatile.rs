//! Devices whose write cache a power cut empties.

use super::*;
use crate::faults::Faults;

const CACHE: u64 = 64 * KIB;

fn consumer_ssd() -> Fixture {
    Fixture::new(limits(AtomicUnit::FourKib, CACHE))
}

#[test]
fn an_unflushed_write_is_in_the_cache_and_a_flush_stores_it() {
    let fixture = consumer_ssd();
    fixture.write_and_wait(0, &filled(1, PAGE));
    assert_eq!(fixture.stored(0, PAGE), filled(0, PAGE));
    let flush = fixture.flush();
    assert!(flush.now().is_none(), "a flush takes its service time");
    fixture.pass(Nanos(SERVICE.0 / 10));
    assert!(flush.now().unwrap().is_ok());
    assert_eq!(fixture.stored(0, PAGE), filled(1, PAGE));
}

#[test]
fn a_read_sees_the_cache_over_the_store() {
    let fixture = consumer_ssd();
    fixture.write_and_wait(0, &filled(1, 3 * PAGE));
    fixture.flush();
    fixture.pass(SERVICE);
    fixture.write_and_wait(PAGE + 512, &filled(2, 1024));
    let read = fixture.read(512, 11 * 1024);
    fixture.pass(SERVICE);
    let mut expected = filled(1, 11 * KIB);
    expected[4096..5120].fill(2);
    assert_eq!(read.now(), Some(Ok(expected)));
}

#[test]
fn the_cache_is_bounded_and_the_oldest_leave_first() {
    let fixture = consumer_ssd();
    let pages = CACHE / PAGE;
    for page in 0..pages + 3 {
        fixture.write_and_wait(page * PAGE, &filled(1, PAGE));
    }
    let stored: Vec<_> = (0..pages + 3).map(|page| fixture.stored(page * PAGE, 1)[0]).collect();
    let expected: Vec<_> = (0..pages + 3).map(|page| u8::from(page < 3)).collect();
    assert_eq!(stored, expected);
}

#[test]
fn a_write_larger_than_the_cache_passes_through_it() {
    let fixture = consumer_ssd();
    fixture.write_and_wait(0, &filled(1, 4 * CACHE));
    let read = fixture.read(0, u32::try_from(4 * CACHE).unwrap());
    fixture.pass(SERVICE);
    assert_eq!(read.now(), Some(Ok(filled(1, 4 * CACHE))));
    assert_eq!(fixture.stored(0, 3 * CACHE), filled(1, 3 * CACHE));
}

#[test]
fn a_write_with_fua_is_stored_when_it_is_answered() {
    let fixture = consumer_ssd();
    fixture.write_and_wait(0, &filled(1, 2 * PAGE));
    let fua = fixture.ask(Command::Write, 512, 512, Some(&filled(2, 512)), true);
    fixture.pass(SERVICE);
    assert!(fua.now().unwrap().is_ok());
    assert_eq!(fixture.stored(0, 1024), [filled(1, 512), filled(2, 512)].concat());
    fixture.volume.power_cut(3).unwrap();
    assert_eq!(fixture.stored(512, 512), filled(2, 512));
}

#[test]
fn a_discard_reaches_what_is_in_the_cache() {
    let fixture = consumer_ssd();
    fixture.write_and_wait(0, &filled(1, 2 * PAGE));
    fixture.ask(Command::Discard, 512, 4096, None, false);
    fixture.pass(SERVICE);
    let read = fixture.read(0, 8192);
    fixture.pass(SERVICE);
    assert_eq!(read.now(), Some(Ok([filled(1, 512), filled(0, PAGE), filled(1, PAGE - 512)].concat())));
}

#[test]
fn an_ignored_flush_is_answered_and_stores_nothing() {
    let fixture = consumer_ssd();
    fixture.volume.set_faults(Faults { ignore_flush: true, ..Faults::default() }).unwrap();
    fixture.write_and_wait(0, &filled(1, PAGE));
    let flush = fixture.flush();
    fixture.pass(SERVICE);
    assert!(flush.now().unwrap().is_ok());
    assert_eq!(fixture.stored(0, PAGE), filled(0, PAGE));
}

#[test]
fn an_orderly_stop_stores_the_cache() {
    let fixture = consumer_ssd();
    fixture.write_and_wait(0, &filled(1, PAGE));
    fixture.volume.stop().unwrap();
    assert_eq!(fixture.stored(0, PAGE), filled(1, PAGE));
}
