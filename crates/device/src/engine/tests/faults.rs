//! Faults on command.

use super::*;
use crate::faults::{AddedLatency, Affected, Errors, Faults};

fn set(fixture: &Fixture, faults: Faults) {
    fixture.volume.set_faults(faults.clone()).unwrap();
    assert_eq!(fixture.volume.faults(), faults);
}

#[test]
fn added_latency_comes_on_top_of_the_models_and_only_where_it_was_asked_for() {
    let fixture = Fixture::new(ebs());
    let latency = vec![AddedLatency { affected: Affected::Reads, us: 200 }];
    set(&fixture, Faults { latency, ..Faults::default() });
    let (read, write) = (fixture.read(0, 4096), fixture.write(0, &filled(1, PAGE)));
    fixture.pass(SERVICE);
    assert!(write.now().is_some());
    assert!(read.now().is_none());
    fixture.pass(Nanos::from_us(199));
    assert!(read.now().is_none());
    fixture.pass(Nanos::from_us(1));
    assert!(read.now().unwrap().is_ok());
}

#[test]
fn an_injected_error_comes_at_the_models_time_and_changes_nothing() {
    let fixture = Fixture::new(ebs());
    let errors = vec![Errors { affected: Affected::Writes, per_million: 1_000_000, range: None }];
    set(&fixture, Faults { errors, ..Faults::default() });
    let write = fixture.write(0, &filled(1, PAGE));
    assert!(write.now().is_none());
    let read = fixture.read(0, 4096);
    fixture.pass(SERVICE);
    assert_eq!(write.now(), Some(Err(IoError::Io)));
    assert_eq!(read.now(), Some(Ok(filled(0, PAGE))));
    set(&fixture, Faults::default());
    fixture.write_and_wait(0, &filled(1, PAGE));
}

#[test]
fn errors_hit_the_range_that_was_named_and_nothing_else() {
    let fixture = Fixture::new(ebs());
    let errors =
        vec![Errors { affected: Affected::All, per_million: 1_000_000, range: Some(2 * PAGE..3 * PAGE) }];
    set(&fixture, Faults { errors, ..Faults::default() });
    let outcomes: Vec<_> = (0..4).map(|page| fixture.read(page * PAGE, 4096)).collect();
    let across = fixture.read(PAGE + 512, 4096);
    fixture.pass(SERVICE);
    let failed: Vec<_> = outcomes.iter().map(|read| read.now().unwrap().is_err()).collect();
    assert_eq!(failed, [false, false, true, false]);
    assert!(across.now().unwrap().is_err(), "it touches the range");
}

#[test]
fn an_error_rate_is_a_share_and_the_seed_decides() {
    let run = || {
        let fixture = Fixture::new(Limits { service: ServiceTimes::instant(), ..ebs() });
        let errors = vec![Errors { affected: Affected::All, per_million: 100_000, range: None }];
        set(&fixture, Faults { errors, ..Faults::default() });
        (0..2_000).map(|_| fixture.read(0, 512).now().unwrap().is_err()).collect::<Vec<_>>()
    };
    let (first, second) = (run(), run());
    let failed = first.iter().filter(|&&failed| failed).count();
    assert!((150..250).contains(&failed), "{failed} of 2,000 failed; a tenth should");
    assert_eq!(first, second);
}

#[test]
fn while_io_is_stalled_nothing_is_answered_and_then_everything_that_was_due() {
    let fixture = Fixture::new(ebs());
    let before = fixture.write(0, &filled(1, PAGE));
    set(&fixture, Faults { stalled: true, ..Faults::default() });
    let during = fixture.write(PAGE, &filled(2, PAGE));
    fixture.pass(Nanos::from_secs(70));
    assert!(before.now().is_none());
    assert!(during.now().is_none());
    let stats = fixture.volume.stats();
    assert_eq!(
        (stats.queue, stats.write.ops),
        (2, 0),
        "both are queued, as the statistics of the queue show"
    );
    assert_eq!(stats.queue_time, Nanos(2 * Nanos::from_secs(70).0));
    set(&fixture, Faults::default());
    fixture.volume.run_due();
    assert!(before.now().unwrap().is_ok(), "it was due long ago");
    assert!(during.now().is_none(), "the model sees it only now");
    fixture.pass(SERVICE);
    assert!(during.now().unwrap().is_ok());
}

#[test]
fn a_stall_reaches_what_would_have_passed_at_once() {
    let fixture = Fixture::new(Limits { service: ServiceTimes::instant(), ..ebs() });
    set(&fixture, Faults { stalled: true, ..Faults::default() });
    let requests = [fixture.read(0, 4096), fixture.write(0, &filled(1, PAGE)), fixture.flush()];
    fixture.pass(Nanos::SECOND);
    assert!(requests.iter().all(|request| request.now().is_none()));
    set(&fixture, Faults::default());
    fixture.volume.run_due();
    assert!(requests.iter().all(|request| request.now().is_some_and(|outcome| outcome.is_ok())));
}

#[test]
fn a_stalled_volume_can_still_lose_its_power() {
    let fixture = Fixture::new(ebs());
    set(&fixture, Faults { stalled: true, ..Faults::default() });
    let write = fixture.write(0, &filled(1, PAGE));
    let report = fixture.volume.power_cut(1).unwrap();
    assert_eq!(report.writes_in_flight, 1);
    assert_eq!(write.now(), Some(Err(IoError::PowerLost)));
}

#[test]
fn what_was_answered_early_is_written_when_the_fault_is_lifted() {
    let fixture = Fixture::new(ebs());
    set(&fixture, Faults { answer_early: true, ..Faults::default() });
    fixture.write_and_wait(0, &filled(1, PAGE));
    assert_eq!(fixture.stored(0, PAGE), filled(0, PAGE), "answered, and only in memory");
    let read = fixture.read(0, 4096);
    fixture.pass(SERVICE);
    assert_eq!(read.now(), Some(Ok(filled(1, PAGE))), "reads see it");
    set(&fixture, Faults::default());
    assert_eq!(fixture.stored(0, PAGE), filled(1, PAGE));
}
