//! The life of a request: charged, held, applied, answered once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use ebbtide_volume::RateLimit;

use super::*;
use crate::{
    clock::Clock,
    engine::{BUFFER_BYTES, EngineError, MAX_DATA_BYTES},
    faults::{Affected, Errors, Faults},
    request::BufferPool,
};

#[test]
fn a_write_is_in_flight_until_the_models_time_and_stored_when_it_is_answered() {
    let fixture = Fixture::new(ebs());
    let awaited = fixture.write(0, &filled(7, PAGE));
    fixture.pass(Nanos(SERVICE.0 - 1));
    assert!(awaited.now().is_none(), "a nanosecond early");
    assert_eq!(fixture.stored(0, PAGE), filled(0, PAGE), "in flight means not yet durable");
    assert_eq!(fixture.volume.in_flight(), 1);
    fixture.pass(Nanos(1));
    assert_eq!(awaited.now(), Some(Ok(Vec::new())));
    assert_eq!(fixture.stored(0, PAGE), filled(7, PAGE));
    assert_eq!(fixture.volume.in_flight(), 0);
}

#[test]
fn what_the_model_lets_pass_at_once_is_answered_before_submit_returns() {
    let fixture = Fixture::new(Limits { service: ServiceTimes::instant(), ..ebs() });
    assert_eq!(fixture.write(PAGE, &filled(3, PAGE)).now(), Some(Ok(Vec::new())));
    assert_eq!(fixture.read(0, 8192).now(), Some(Ok([filled(0, PAGE), filled(3, PAGE)].concat())));
    assert_eq!(fixture.flush().now(), Some(Ok(Vec::new())));
    assert_eq!(fixture.volume.pacing().count, 0, "nothing waited, so nothing was paced");
}

#[test]
fn a_borrowed_write_is_the_same_write() {
    let fixture = Fixture::new(ebs());
    let (sender, receiver) = mpsc::channel();
    let reply = Reply::callback(move |outcome| sender.send(outcome.is_ok()).unwrap());
    fixture.volume.submit_write(PAGE, &filled(9, PAGE), reply);
    assert!(receiver.try_recv().is_err());
    fixture.pass(SERVICE);
    assert!(receiver.try_recv().unwrap());
    assert_eq!(fixture.stored(PAGE, PAGE), filled(9, PAGE));
}

/// A read as the FUSE export submits it.
fn exported_read(fixture: &Fixture, offset: u64, len: u32) -> Awaited {
    let (sender, receiver) = mpsc::channel();
    let reply = Reply::callback(move |outcome| {
        // Some tests do not listen.
        let _ = sender.send(outcome.map(|data| data.map_or_else(Vec::new, |data| data.to_vec())));
    });
    fixture.volume.submit_read(offset, len, reply);
    Awaited(receiver)
}

#[test]
fn an_exported_read_waits_for_the_models_time_with_the_bytes_of_its_arrival() {
    let fixture = Fixture::new(ebs());
    fixture.write_and_wait(PAGE, &filled(1, PAGE));
    let read = exported_read(&fixture, 0, 8192);
    let write = fixture.write(PAGE, &filled(2, PAGE));
    assert_eq!(fixture.volume.in_flight(), 2);
    fixture.pass(Nanos(SERVICE.0 - 1));
    assert!(read.now().is_none() && write.now().is_none(), "a nanosecond early");
    fixture.pass(Nanos(1));
    assert_eq!(read.now(), Some(Ok([filled(0, PAGE), filled(1, PAGE)].concat())));
    assert!(write.now().is_some());
    let refused = exported_read(&fixture, SIZE, 512).now();
    assert_eq!(refused, Some(Err(IoError::OutOfRange)));
    assert_eq!(fixture.volume.stats().read.ops, 1, "what is refused is not charged");
}

#[test]
fn an_exported_read_that_passes_at_once_has_its_bytes_whatever_its_length() {
    let fixture = Fixture::new(Limits { service: ServiceTimes::instant(), ..ebs() });
    for (number, len) in [(1_u8, 512), (2, 16 << 10), (3, 1 << 20), (4, 2 << 20), (5, 4096)] {
        let bytes = filled(number, len);
        assert!(fixture.write(0, &bytes).now().is_some());
        let read = exported_read(&fixture, 0, u32::try_from(len).unwrap());
        assert_eq!(read.now(), Some(Ok(bytes)), "{len} bytes");
    }
    assert_eq!(fixture.volume.pacing().count, 0, "nothing waited, so nothing was paced");
    assert_eq!(fixture.volume.in_flight(), 0);
}

#[test]
fn an_exported_read_meets_stalls_errors_and_the_loss_of_power_as_any_other() {
    let fixture = Fixture::new(Limits { service: ServiceTimes::instant(), ..ebs() });
    fixture.volume.set_faults(Faults { stalled: true, ..Faults::default() }).unwrap();
    let stalled = exported_read(&fixture, 0, 4096);
    fixture.pass(SERVICE);
    assert!(stalled.now().is_none());
    fixture.volume.set_faults(Faults::default()).unwrap();
    fixture.pass(Nanos(1));
    assert_eq!(stalled.now(), Some(Ok(filled(0, PAGE))));
    let errors = vec![Errors { affected: Affected::Reads, per_million: 1_000_000, range: None }];
    fixture.volume.set_faults(Faults { errors, ..Faults::default() }).unwrap();
    assert_eq!(exported_read(&fixture, 0, 4096).now(), Some(Err(IoError::Io)));
    fixture.volume.set_faults(Faults::default()).unwrap();
    fixture.volume.stop().unwrap();
    assert_eq!(exported_read(&fixture, 0, 4096).now(), Some(Err(IoError::PowerLost)));
}

#[test]
fn a_read_sees_every_write_answered_before_it_was_submitted() {
    let fixture = Fixture::new(ebs());
    fixture.write_and_wait(0, &filled(1, PAGE));
    let before = fixture.read(0, 4096);
    let write = fixture.write(0, &filled(2, PAGE));
    fixture.pass(SERVICE);
    assert!(write.now().is_some());
    assert_eq!(before.now(), Some(Ok(filled(1, PAGE))), "in flight together: the old bytes are as good");
    let after = fixture.read(0, 4096);
    fixture.pass(SERVICE);
    assert_eq!(after.now(), Some(Ok(filled(2, PAGE))));
}

#[test]
fn a_cap_spaces_the_answers() {
    let fixture = Fixture::new(Limits { iops: Some(RateLimit::flat(1_000)), ..ebs() });
    let writes: Vec<_> = (0..4).map(|page| fixture.write(page * PAGE, &filled(1, PAGE))).collect();
    let answered = || writes.iter().filter(|write| write.now().is_some()).count();
    assert_eq!(answered(), 0);
    fixture.pass(SERVICE);
    assert_eq!(answered(), 1, "the first one waits for its service alone");
    fixture.pass(Nanos(Nanos::from_us(999).0 - SERVICE.0));
    for millisecond in 1..=3 {
        if millisecond > 1 {
            fixture.pass(Nanos::from_us(999));
        }
        assert_eq!(answered(), 0, "just before {millisecond} ms");
        fixture.pass(Nanos::from_us(1));
        assert_eq!(answered(), 1, "at {millisecond} ms");
    }
    assert_eq!(fixture.volume.stats().write.ops, 4);
}

#[test]
fn a_bad_request_is_refused_and_changes_nothing() {
    let fixture = Fixture::new(ebs());
    let page = filled(1, PAGE);
    let refused = |awaited: Awaited| awaited.now().expect("refused at once").unwrap_err();
    assert_eq!(refused(fixture.write(SIZE - 2048, &page)), IoError::OutOfRange);
    assert_eq!(refused(fixture.write(u64::MAX - 511, &page)), IoError::OutOfRange);
    assert_eq!(refused(fixture.read(SIZE, 512)), IoError::OutOfRange);
    assert_eq!(refused(fixture.read(0, MAX_DATA_BYTES + 512)), IoError::OutOfRange);
    assert_eq!(refused(fixture.read(256, 512)), IoError::Misaligned);
    assert_eq!(refused(fixture.read(0, 511)), IoError::Misaligned);
    assert_eq!(refused(fixture.ask(Command::Discard, 0, 100, None, false)), IoError::Misaligned);
    assert_eq!(refused(fixture.ask(Command::Write, 0, 4096, None, false)), IoError::Misaligned);
    assert_eq!(refused(fixture.ask(Command::Write, 0, 8192, Some(&page), false)), IoError::Misaligned);
    fixture.pass(SERVICE);
    assert_eq!(fixture.volume.stats().consumed_ops, 0);
    assert_eq!(fixture.stored(0, SIZE), filled(0, SIZE));
}

/// A clock that every look at it moves on.
#[derive(Debug)]
struct HastyClock(ManualClock);

impl Clock for HastyClock {
    fn now(&self) -> Nanos {
        self.0.advance(Nanos(2 * SERVICE.0));
        self.0.now()
    }

    fn to_monotonic(&self, at: Nanos) -> Option<Nanos> {
        self.0.to_monotonic(at)
    }
}

#[test]
fn a_request_that_is_late_before_it_can_wait_counts_as_late() {
    let fixture = Fixture::new(ebs());
    let options =
        LiveOptions::new(NAME, Array::single(ebs(), START).unwrap(), Arc::clone(fixture.volume.store()), 1);
    let clock = Arc::new(HastyClock(ManualClock::new(START)));
    let fixture = Fixture { volume: LiveVolume::start(LiveOptions { clock, ..options }).unwrap(), ..fixture };
    assert!(fixture.read(0, 4096).now().is_some(), "its time is over when it is submitted");
    assert!(fixture.write(0, &filled(1, PAGE)).now().is_some());
    fixture.volume.submit_write(0, &filled(2, PAGE), Reply::callback(|answer| assert!(answer.is_ok())));
    fixture.volume.submit_read(0, 4096, Reply::callback(|answer| assert!(answer.is_ok())));
    let pacing = fixture.volume.pacing();
    assert!(pacing.count == 4 && pacing.p50_ns >= SERVICE.0, "{pacing:?}");
}

#[test]
fn a_volume_of_4_kib_blocks_refuses_512_bytes() {
    let fixture = Fixture::new(ebs());
    let array = Array::single(ebs(), START).unwrap();
    let options = LiveOptions::new(NAME, array, Arc::clone(fixture.volume.store()), 1);
    let clock: Arc<ManualClock> = Arc::clone(&fixture.clock);
    let refused = LiveVolume::start(LiveOptions {
        block_bytes: 1024,
        ..LiveOptions::new(NAME, Array::single(ebs(), START).unwrap(), Arc::clone(fixture.volume.store()), 1)
    });
    assert!(matches!(refused, Err(EngineError::BlockBytes(1024))));
    let volume = LiveVolume::start(LiveOptions { block_bytes: 4096, clock, ..options }).unwrap();
    let fixture = Fixture { volume, ..fixture };
    assert_eq!(fixture.read(0, 512).now(), Some(Err(IoError::Misaligned)));
    assert!(fixture.read(0, 4096).now().is_none());
}

#[test]
fn a_model_larger_than_its_store_is_refused_with_both_sizes() {
    let fixture = Fixture::new(ebs());
    let array = Array::single(Limits { size_bytes: 2 * SIZE, ..ebs() }, START).unwrap();
    let refused = LiveVolume::start(LiveOptions::new(NAME, array, Arc::clone(fixture.volume.store()), 1));
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("8388608") && text.contains("4194304"), "{text}");
}

#[test]
fn a_grown_volume_takes_requests_beyond_its_old_end() {
    let fixture = Fixture::new(ebs());
    assert_eq!(fixture.read(SIZE, 4096).now(), Some(Err(IoError::OutOfRange)));
    let target = Limits { size_bytes: 2 * SIZE, ..ebs() };
    fixture.volume.modify(&target, START, START).unwrap();
    assert_eq!(fixture.volume.size_bytes(), SIZE, "the store has not grown yet");
    fixture.store.resize_volume(NAME, 2 * SIZE).unwrap();
    assert_eq!(fixture.volume.size_bytes(), 2 * SIZE);
    fixture.write_and_wait(SIZE, &filled(5, PAGE));
}

#[test]
fn zeroed_and_discarded_ranges_read_as_zeroes() {
    let fixture = Fixture::new(ebs());
    fixture.write_and_wait(0, &filled(1, 4 * PAGE));
    assert_eq!(
        fixture.ask(Command::Discard, PAGE + 512, 4096, None, false).now(),
        Some(Ok(Vec::new())),
        "free"
    );
    let zeroes = fixture.ask(Command::WriteZeroes, 3 * PAGE, 512, None, false);
    fixture.pass(SERVICE);
    assert_eq!(zeroes.now(), Some(Ok(Vec::new())));
    let stored = fixture.stored(0, 4 * PAGE);
    let zero: Vec<_> = (0..stored.len()).filter(|&i| stored[i] == 0).collect();
    let expected: Vec<_> = (4608..8704).chain(12288..12800).collect();
    assert_eq!(zero, expected);
}

#[test]
fn every_request_is_answered_exactly_once_whatever_becomes_of_it() {
    let answers = Arc::new(AtomicUsize::new(0));
    let count = || {
        let answers = Arc::clone(&answers);
        Reply::callback(move |_| {
            answers.fetch_add(1, Ordering::Relaxed);
        })
    };
    let dropped = Arc::new(AtomicUsize::new(0));
    let note = Arc::clone(&dropped);
    drop(Reply::callback(move |outcome| {
        assert_eq!(outcome.unwrap_err(), IoError::Io);
        note.fetch_add(1, Ordering::Relaxed);
    }));
    assert_eq!(dropped.load(Ordering::Relaxed), 1, "a reply that is dropped answers with an error");

    let fixture = Fixture::new(ebs());
    let request =
        |command, offset| Request { command, offset, len: 4096, fua: false, data: None, reply: count() };
    fixture.volume.submit(request(Command::Read, 0));
    fixture.pass(SERVICE);
    fixture.volume.submit(request(Command::Read, SIZE));
    fixture.volume.submit(request(Command::WriteZeroes, 0));
    fixture.volume.stop().unwrap();
    fixture.volume.submit(request(Command::Read, 0));
    fixture.pass(Nanos::SECOND);
    assert_eq!(answers.load(Ordering::Relaxed), 4);
}

#[test]
fn what_is_in_flight_when_the_volume_stops_has_not_happened() {
    let fixture = Fixture::new(ebs());
    let awaited = fixture.write(0, &filled(1, PAGE));
    fixture.volume.stop().unwrap();
    assert_eq!(awaited.now(), Some(Err(IoError::PowerLost)));
    assert_eq!(fixture.stored(0, PAGE), filled(0, PAGE));
}

#[test]
fn buffers_come_back_and_their_number_is_bounded() {
    let pool = BufferPool::new(64 << 10);
    let held: Vec<_> = (0..4).map(|_| pool.take(16 << 10)).collect();
    assert_eq!(pool.in_use(), 64 << 10);
    let waiting = thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.take(8 << 10).len()
    });
    thread::sleep(Duration::from_millis(20));
    assert!(!waiting.is_finished(), "the pool is exhausted");
    drop(held);
    assert_eq!(waiting.join().unwrap(), 8 << 10);
    assert_eq!(pool.in_use(), 0);
    assert_eq!(pool.take(100).len(), 100, "any length is served");
    assert_eq!(pool.take(1 << 20).len(), 1 << 20, "beyond the bound only while nothing else is in use");
    drop(pool.take(64 << 10));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_buffer_begins_at_a_page_and_holds_every_byte_that_is_put_in() {
    let pool = BufferPool::new(1 << 20);
    for len in [1, 512, 4096, 4097, 16 << 10, 256 << 10, 2 << 20] {
        let mut buffer = pool.take(len);
        assert!(buffer.as_ptr().addr().is_multiple_of(4096), "{len} bytes");
        let content: Vec<u8> = (0..len).map(|number| u8::try_from(number % 251).unwrap()).collect();
        buffer.copy_from_slice(&content);
        assert_eq!(*buffer, content, "{len} bytes");
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_submitter_waits_while_requests_in_flight_hold_all_the_memory() {
    let fixture = Fixture::new(ebs());
    let each = 1_u32 << 20;
    let fitting = BUFFER_BYTES / usize::try_from(each).unwrap();
    let reads: Vec<_> = (0..fitting).map(|_| fixture.read(0, each)).collect();
    let another = thread::spawn({
        let volume = Arc::clone(&fixture.volume);
        move || volume.buffer(each).len()
    });
    thread::sleep(Duration::from_millis(20));
    assert!(!another.is_finished());
    fixture.pass(SERVICE);
    drop(reads);
    assert_eq!(another.join().unwrap(), 1 << 20);
}
