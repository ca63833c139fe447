//! Figures that agree, that do not, and a past that was throttled.

use ebbtide_observe::{Limited, LoadInterval, VolumeLoad};

use super::{load, of_size, volume};
use crate::sizing::{LoadOrigin, examine, queue_rule};

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
    let inputs = examine(&timed(3_000.0, 0.001, 100), LoadOrigin::Host, None, None).unwrap();
    let little = inputs.little.unwrap();
    assert_eq!((little.agrees_pct, little.queue, little.expected), (100.0, 3.0, 3.0));
    let mut wrong = timed(3_000.0, 0.001, 100);
    for one in &mut wrong.intervals[..30] {
        one.queue = Some(15.0);
    }
    assert_eq!(examine(&wrong, LoadOrigin::Host, None, None).unwrap().little.unwrap().agrees_pct, 70.0);
    assert_eq!(
        examine(&load(&[(1.0, 60.0)]), LoadOrigin::Host, None, None).unwrap().little,
        None,
        "nothing says how long they took"
    );
}

#[test]
fn what_cannot_be_true_is_refused_with_its_time() {
    let said = |change: fn(&mut LoadInterval)| {
        let mut load = load(&[(100.0, 60.0); 3]);
        change(&mut load.intervals[1]);
        examine(&load, LoadOrigin::Host, None, None).map_err(|error| error.to_string())
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
    let throttled =
        |load: &VolumeLoad| examine(load, LoadOrigin::Host, Some(&today), None).unwrap().throttled;
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
    let found = examine(&load, LoadOrigin::Host, None, None).unwrap().throttled.unwrap();
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
    let inputs = examine(&load, LoadOrigin::Host, None, None).unwrap();
    assert_eq!((inputs.gaps, inputs.gaps_s), (1, 60.0));
}

/// What does not agree in metrics of EBS.
fn inconsistent(load: &VolumeLoad, today: Option<&str>) -> Vec<(String, f64, f64)> {
    let today = today.map(volume);
    let inputs = examine(load, LoadOrigin::EbsMetrics, today.as_ref(), None).unwrap();
    assert_eq!(inputs.is_consistent(), inputs.inconsistent.is_empty());
    inputs.inconsistent.into_iter().map(|one| (one.what, one.at_s, one.time_pct)).collect()
}

#[test]
fn operations_that_are_larger_than_ebs_counts_are_named_with_interval_and_size() {
    let mut large = load(&[(100.0, 60.0); 4]);
    // Sums of minutes that were given as rates: 60 times too few operations.
    (large.intervals[2].reads, large.intervals[3].reads) = (50.0 / 60.0, 50.0 / 120.0);
    let found = inconsistent(&large, Some("gp2:size=500GiB"));
    let [(what, at_s, time_pct)] = &found[..] else { panic!("{found:?}") };
    assert!(what.starts_with("its reads have 1.88 MiB each, and EBS counts at most 256 KiB"), "{what}");
    assert!(what.contains("probably given as a rate"), "{what}");
    assert_eq!((*at_s, *time_pct), (180.0, 50.0), "the clearest interval, and how much of the time");
    // An HDD volume counts up to 1 MiB, and full operations of it are right.
    let full = of_size(1_048_576.0, &[(50.0, 60.0)]);
    assert_eq!(inconsistent(&full, Some("st1:size=2000GiB")), []);
    // Where the volume is not known, it may be one.
    assert_eq!(inconsistent(&full, None), []);
    let (what, ..) = inconsistent(&large, None).remove(0);
    assert!(what.contains("at most 1 MiB as one operation of any volume"), "{what}");
    assert_eq!(inconsistent(&of_size(262_144.0, &[(50.0, 60.0)]), Some("gp2:size=500GiB")), []);
    // Few operations say nothing: their bytes may be of the minute before.
    assert_eq!(inconsistent(&of_size(400_000.0, &[(0.2, 60.0)]), None), []);
    // Tools on the host count before EBS does, and submit larger ones.
    assert!(examine(&full, LoadOrigin::Host, None, None).unwrap().is_consistent());
}

#[test]
fn more_than_todays_volume_can_give_is_named() {
    let peak = load(&[(900.0, 60.0), (2_751.0, 60.0), (900.0, 120.0)]);
    let found = inconsistent(&peak, Some("io1:size=600GiB,iops=1000"));
    let [(what, at_s, time_pct)] = &found[..] else { panic!("{found:?}") };
    assert!(
        what.starts_with("it shows 2,751 IOPS, and io1:size=600GiB,iops=1000 gives at most 1,000:"),
        "{what}"
    );
    assert_eq!((*at_s, *time_pct), (60.0, 25.0));
    assert_eq!(inconsistent(&peak, Some("gp2:size=100GiB")), [], "its burst gives 3,000");
    let wide = of_size(262_144.0, &[(1_500.0, 60.0)]);
    let found = inconsistent(&wide, Some("gp2:size=1000GiB"));
    assert!(
        found[0].0.starts_with("it shows 375 MiB/s, and gp2:size=1000GiB gives at most 250:"),
        "{found:?}"
    );
}

#[test]
fn a_modelled_load_has_no_past_to_be_throttled() {
    let today = volume("gp3:size=500GiB");
    let peak = load(&[(3_400.0, 60.0); 4]);
    assert!(examine(&peak, LoadOrigin::Host, Some(&today), None).unwrap().throttled.is_some());
    let modelled = examine(&peak, LoadOrigin::Model, Some(&today), None).unwrap();
    assert_eq!((modelled.throttled.as_ref(), modelled.is_consistent()), (None, true));
}
