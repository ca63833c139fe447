//! Figures that agree, that do not, and a past that was throttled.

use ebbtide_observe::{Limited, LoadInterval, VolumeLoad};

use super::{load, volume};
use crate::sizing::{examine, queue_rule};

/// Intervals of a minute with a latency, s, and the queue of Little's law.
fn timed(ios: f64, latency_s: f64, minutes: usize) -> VolumeLoad {
    let mut load = load(&vec![(ios, 60.0); minutes]);
    for one in &mut load.intervals {
        (one.read_s, one.write_s, one.queue) = (Some(latency_s), Some(latency_s), Some(ios * latency_s));
    }
    load
}

#[test]
fn littles_law_is_held_against_queue_and_latency() {
    let inputs = examine(&timed(3_000.0, 0.001, 100), None, None).unwrap();
    let little = inputs.little.unwrap();
    assert_eq!((little.agrees_pct, little.queue, little.expected), (100.0, 3.0, 3.0));
    let mut wrong = timed(3_000.0, 0.001, 100);
    for one in &mut wrong.intervals[..30] {
        one.queue = Some(15.0);
    }
    assert_eq!(examine(&wrong, None, None).unwrap().little.unwrap().agrees_pct, 70.0);
    assert_eq!(
        examine(&load(&[(1.0, 60.0)]), None, None).unwrap().little,
        None,
        "nothing says how long they took"
    );
}

#[test]
fn what_cannot_be_true_is_refused_with_its_time() {
    let said = |change: fn(&mut LoadInterval)| {
        let mut load = load(&[(100.0, 60.0); 3]);
        change(&mut load.intervals[1]);
        examine(&load, None, None).map_err(|error| error.to_string())
    };
    assert!(said(|_| ()).is_ok());
    type Change = fn(&mut LoadInterval);
    let cases: [(Change, &str); 5] = [
        (|one| one.reads = 0.0, "at 60 s contradicts itself: 819200 bytes a second and no reads"),
        (|one| one.written_bytes = 5_000.0, "100.0 bytes each: expected 512 bytes"),
        (|one| one.writes = -1.0, "-1 is no figure"),
        (|one| one.read_bytes = f64::NAN, "NaN is no figure"),
        (|one| one.queue = Some(-0.5), "-0.5 is no figure"),
    ];
    for (change, words) in cases {
        let error = said(change).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_past_at_its_limit_that_waited_is_throttled_and_one_that_did_not_wait_is_not() {
    let today = volume("gp3:size=500GiB");
    let throttled = |load: &VolumeLoad| examine(load, Some(&today), None).unwrap().throttled;
    assert_eq!(throttled(&timed(2_990.0, 0.0007, 60)), None, "at the limit, and quick");
    assert_eq!(throttled(&timed(1_000.0, 0.02, 60)), None, "slow, and far from the limit");
    let mut load = timed(1_000.0, 0.0007, 60);
    load.intervals.extend(timed(2_990.0, 0.02, 20).intervals);
    let found = throttled(&load).unwrap();
    assert_eq!((found.time_pct, found.seen_iops), (25.0, 2_990.0));
    assert_eq!(found.because, ["it ran at the IOPS of gp3"]);
    // A queue of 59.8 at 0.7 ms each.
    assert!((found.implied_iops.unwrap() - 59.8 / 0.0007).abs() < 1.0, "{found:?}");
    let implied = found.implied(&load, 1.0).unwrap().iops().unwrap();
    assert!((implied.max - 59.8 / 0.0007).abs() < 1.0 && implied.p50 == 1_000.0, "{implied:?}");
}

#[test]
fn metrics_that_say_so_and_credits_that_ended_are_believed() {
    let mut load = load(&[(500.0, 60.0); 4]);
    load.intervals[0].limited = Some(Limited { instance_throughput: true, ..Limited::default() });
    load.intervals[1].credits = Some(0.0);
    load.intervals[2].limited = Some(Limited::default());
    load.intervals[3].credits = Some(0.5);
    let found = examine(&load, None, None).unwrap().throttled.unwrap();
    assert_eq!(found.time_pct, 50.0);
    assert_eq!(found.implied_iops, None);
    assert!(found.because.iter().any(|why| why.contains("instance's throughput")), "{found:?}");
    assert!(found.because.iter().any(|why| why.contains("credits were used up")), "{found:?}");
}

#[test]
fn the_rule_of_the_whitepaper_is_a_fifth_of_what_its_own_volumes_did() {
    // Its Table 6: a queue of 3.01 at 1.01 ms.
    let rule = queue_rule(&timed(2_980.0, 0.00101, 60)).unwrap();
    assert!(
        (rule.whitepaper_iops - 602.0).abs() < 1.0 && (rule.newer_iops - 3_010.0).abs() < 1.0,
        "{rule:?}"
    );
    assert!((rule.latency_ms.unwrap() - 1.01).abs() < 1e-9 && (rule.seen_iops - 2_980.0).abs() < 1e-6);
    assert_eq!(queue_rule(&load(&[(1.0, 1.0)])), None);
}

#[test]
fn gaps_are_counted() {
    let mut load = load(&[(1.0, 60.0); 5]);
    load.intervals.remove(2);
    let inputs = examine(&load, None, None).unwrap();
    assert_eq!((inputs.gaps, inputs.gaps_s), (1, 60.0));
}
