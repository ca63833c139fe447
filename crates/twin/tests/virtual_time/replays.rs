//! Traces, replayed with the think times of their clients.

use ebbtide_twin::trace::Record;
use ebbtide_twin::{Outcome, ReplayError, ReplaySetup, replay, replay_closed};
use ebbtide_volume::{Io, Limits, Nanos, Op};

use crate::support::{Kept, SEED, array, gp3, ssd};

const MS: u64 = 1_000_000;

/// A read of a client: when it arrives and how long its answer takes, in ms.
fn read(client: u64, at_ms: u64, latency_ms: Option<u64>) -> Record {
    let offset = (client * 1_000 + at_ms) * 16_384;
    let io = Io { op: Op::Read, offset, len: 16_384 };
    Record { at: Nanos(at_ms * MS), io, client, latency: latency_ms.map(|ms| Nanos(ms * MS)) }
}

fn closed(volumes: Vec<Limits>, records: Vec<Record>) -> Result<Outcome, ReplayError> {
    let volumes = volumes.into_iter().map(array).collect();
    let setup = ReplaySetup { volumes, instance: None, seed: SEED, interval: Nanos::SECOND };
    replay_closed(setup, &mut records.into_iter().map(Ok), &mut Kept::default())
}

/// A volume that answers after so many ms, and has no limits.
fn constant(ms: u64) -> Limits {
    ssd(1_000, ms * 1_000, None, None)
}

/// One client with one read at a time: 4 ms for the answer, then 6 ms until the next one.
fn serial(requests: u64) -> Vec<Record> {
    (0..requests).map(|number| read(1, number * 10, Some(4))).collect()
}

#[test]
fn a_client_that_waits_for_each_answer_is_as_fast_as_the_volume_lets_it() {
    for (ms, expected) in [(4, 994), (1, 694), (10, 1_594)] {
        let outcome = closed(vec![constant(ms)], serial(100)).unwrap();
        assert_eq!(outcome.duration, Nanos(expected * MS), "answers after {ms} ms");
        assert_eq!(outcome.volumes[0].totals().all().ios, 100);
    }
}

#[test]
fn requests_that_did_not_wait_for_each_other_do_not_wait_now() {
    // Four at once, 8 ms; 2 ms after the last answer the next four.
    let batches: Vec<_> = (0..50).flat_map(|batch| (0..4).map(move |_| batch * 10)).collect();
    let records: Vec<_> = batches
        .iter()
        .zip(0..)
        .map(|(at, place)| Record {
            io: Io { op: Op::Write, offset: place << 20, len: 16_384 },
            ..read(7, *at, Some(8))
        })
        .collect();
    let outcome = closed(vec![constant(3)], records.clone()).unwrap();
    assert_eq!(outcome.duration, Nanos((49 * 5 + 3) * MS));
    // 3,000 I/Os a second take the 200 requests at their own pace.
    let outcome = closed(vec![gp3()], records).unwrap();
    assert!(outcome.duration < Nanos(300 * MS), "{}", outcome.duration);
}

#[test]
fn the_clients_of_a_trace_do_not_wait_for_each_other() {
    let slow = (0..10).map(|number| read(1, number * 100, Some(90)));
    let quick = (0..100).map(|number| read(2, number * 10 + 1, Some(9)));
    let mut records: Vec<_> = slow.chain(quick).collect();
    records.sort_by_key(|record| record.at);
    let outcome = closed(vec![constant(1)], records).unwrap();
    // The first client: 9 times 1 ms and 10 ms of thinking, then 1 ms. The second: 1 ms, 99 times 2 ms, then 1 ms.
    assert_eq!(outcome.duration, Nanos(200 * MS));
}

#[test]
fn each_volume_has_a_time_of_its_own() {
    let both = closed(vec![constant(1), constant(10)], serial(100)).unwrap();
    assert_eq!(both.duration, Nanos(1_594 * MS));
    for (volume, mean_ms) in both.volumes.iter().zip([1.0, 10.0]) {
        let totals = volume.totals();
        assert_eq!(totals.all().ios, 100);
        assert!((totals.read.mean().unwrap().0 as f64 / 1e6 - mean_ms).abs() < 1e-6, "{}", mean_ms);
    }
}

#[test]
fn a_volume_like_the_recorded_one_gets_the_requests_when_they_arrived() {
    let records: Vec<_> =
        (0..1_000).map(|number| read(number % 3, number * 2 + number % 3, Some(5))).collect();
    let setup = || ReplaySetup {
        volumes: vec![array(constant(5))],
        instance: None,
        seed: SEED,
        interval: Nanos::SECOND,
    };
    let open = replay(setup(), &mut records.iter().copied().map(Ok), &mut Kept::default()).unwrap();
    let closed = replay_closed(setup(), &mut records.into_iter().map(Ok), &mut Kept::default()).unwrap();
    assert_eq!(open.duration, closed.duration);
    assert_eq!(open.volumes[0].stats.queue_time, closed.volumes[0].stats.queue_time);
}

#[test]
fn a_request_without_an_answer_is_waited_for_by_nobody_and_a_trace_without_any_is_refused() {
    let records: Vec<_> = (0..10).map(|number| read(1, number * 10, (number != 3).then_some(4))).collect();
    // The fifth request waits for the third one's answer, and 6 + 10 ms.
    let outcome = closed(vec![constant(4)], records).unwrap();
    assert_eq!(outcome.duration, Nanos(94 * MS));
    let records = (0..10).map(|number| read(1, number * 10, None)).collect();
    let error = closed(vec![constant(4)], records).unwrap_err();
    assert!(matches!(error, ReplayError::NoLatencies), "{error}");
}

#[test]
fn a_long_trace_is_replayed_in_little_memory_and_loses_no_request() {
    let requests = 3 * ebbtide_twin::READ_AHEAD as u64;
    let outcome = closed(
        vec![ssd(16_384, 100, None, None)],
        (0..requests).map(|number| read(number % 8, number, Some(3))).collect(),
    )
    .unwrap();
    assert_eq!(outcome.volumes[0].totals().all().ios, requests);
    assert_eq!(outcome.volumes[0].in_flight, 0);
}
