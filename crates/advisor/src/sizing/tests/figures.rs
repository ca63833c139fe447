//! Figures that agree, that do not, and a past that was throttled.

use ebbtide_catalog::Catalog;
use ebbtide_observe::{Limited, LoadInterval, VolumeLoad};
use ebbtide_volume::{GIB, Nanos};
use proptest::prelude::*;

use super::{load, of_sides, of_size, volume};
use crate::sizing::change::short;
use crate::sizing::{Asked, Demand, Limit, LoadOrigin, Objective, Today, examine, queue_rule, size};

/// Intervals of a minute with a latency, s, and the queue of Little's law.
fn timed(ios: f64, latency_s: f64, minutes: usize) -> VolumeLoad {
    let mut load = load(&vec![(ios, 60.0); minutes]);
    for one in &mut load.intervals {
        (one.read_s, one.write_s, one.queue) = (Some(latency_s), Some(latency_s), Some(ios * latency_s));
    }
    load
}

/// Seconds in which a number of reads starts every `period` seconds and takes 1.2 s: the kernel counts the queue as it
/// passes, and the operations when they end.
fn straddling(period: usize, seconds: usize) -> VolumeLoad {
    let mut load = load(&vec![(0.0, 1.0); seconds]);
    for (second, one) in load.intervals.iter_mut().enumerate() {
        match second % period {
            0 => one.queue = Some(20.0),
            1 => {
                (one.queue, one.reads, one.writes) = (Some(4.0), 20.0, 0.0);
                (one.read_bytes, one.read_s) = (20.0 * 16_384.0, Some(1.2));
            }
            _ => one.queue = Some(0.0),
        }
    }
    load
}

#[test]
fn requests_that_straddle_samples_do_not_make_a_sound_record_inconsistent() {
    for (period, seconds) in [(2, 40), (2, 1_000), (5, 7), (3, 2_000)] {
        let load = straddling(period, seconds);
        let inputs = examine(&load, LoadOrigin::Host, None, None).unwrap();
        let little = inputs.little.unwrap();
        assert!(inputs.is_consistent() && little.agrees_pct == 100.0, "{period}: {little:?}");
    }
    // A queue that is half as long again is wrong over any window.
    let mut wrong = straddling(2, 1_000);
    wrong.intervals.iter_mut().for_each(|one| one.queue = one.queue.map(|queue| queue * 1.5));
    assert!(!examine(&wrong, LoadOrigin::Host, None, None).unwrap().is_consistent());
    // A gap ends a window: what was in flight at its edges is not of the same requests.
    let mut gaps = straddling(2, 40);
    gaps.intervals.retain(|one| !(10.0..20.0).contains(&one.start_s));
    assert!(examine(&gaps, LoadOrigin::Host, None, None).unwrap().is_consistent());
}

proptest! {
    #[test]
    fn means_that_agree_to_a_hundredth_are_never_inconsistent(
        queues in proptest::collection::vec(0.1_f64..50.0, 2..40), latency_s in 0.0005_f64..5.0,
    ) {
        // The operations of an interval are those of another one's queue.
        let mut load = load(&vec![(0.0, 1.0); queues.len()]);
        for (place, one) in load.intervals.iter_mut().enumerate() {
            let ended = queues[queues.len() - 1 - place] / latency_s;
            (one.queue, one.reads, one.read_s) = (Some(queues[place]), ended, Some(latency_s));
            one.read_bytes = ended * 4_096.0;
        }
        let little = examine(&load, LoadOrigin::Host, None, None).unwrap().little.unwrap();
        prop_assert!((little.queue - little.expected).abs() < 1e-6 * little.queue);
        prop_assert!(little.agrees(), "{:?}", little);
    }
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
    // A queue of 59.8 that does not grow is of clients that wait: it does not say what they would have sent.
    assert_eq!((found.served_before_iops, found.implied_iops), (None, None));
    assert_eq!(found.implied(&load, 1.0), None);
    // One that grows by 500 a second is of work that came.
    for (minute, one) in load.intervals[60..].iter_mut().enumerate() {
        one.queue = Some(500.0 * 60.0 * (minute as f64 + 0.5));
    }
    let found = throttled(&load).unwrap();
    assert!((found.implied_iops.unwrap() - 3_490.0).abs() < 1.0, "{found:?}");
    let implied = found.implied(&load, 2.0).unwrap().requests().unwrap();
    assert!((implied.max - 6_980.0).abs() < 1.0 && implied.p50 == 2_000.0, "{implied:?}");
}

/// Minutes of 100 GiB of gp2 in a night: (operations a second, latency in s, credits), with the queue of Little's law.
fn night(minutes: &[(f64, f64, f64)]) -> VolumeLoad {
    let mut load = load(&minutes.iter().map(|(ios, ..)| (*ios, 60.0)).collect::<Vec<_>>());
    for (one, (ios, latency_s, credits)) in load.intervals.iter_mut().zip(minutes) {
        (one.read_s, one.write_s) = (Some(*latency_s), Some(*latency_s));
        (one.queue, one.credits) = (Some(ios * latency_s), Some(*credits));
    }
    load
}

#[test]
fn a_past_without_credits_is_bounded_by_what_was_served_before_they_ended() {
    let today = volume("gp2:size=100GiB");
    let examined = |load: &VolumeLoad| examine(load, LoadOrigin::EbsMetrics, Some(&today), None).unwrap();
    // 32 clients in the queue: at 0.9 ms each Little's law would have 35,556 IOPS.
    let minutes = [
        &[(2_900.0, 0.001, 1.0); 10][..],
        &[(200.0, 0.0008, 1.0); 30],
        &[(2_200.0, 0.0012, 0.5); 30],
        &[(300.0, 0.107, 0.0); 60],
        &[(100.0, 0.0008, 0.1); 60],
    ]
    .concat();
    let load = night(&minutes);
    let found = examined(&load).throttled.unwrap();
    // The peak before the credits were last full does not belong to the burst that ended them.
    assert_eq!((found.served_before_iops, found.implied_iops), (Some(2_200.0), Some(2_200.0)));
    assert!((found.credits_ended_pct - 60.0 / 190.0 * 100.0).abs() < 0.1, "{found:?}");
    let implied = found.implied(&load, 1.2).unwrap().requests().unwrap();
    assert!((implied.p50 - 2_640.0).abs() < 1e-6, "{implied:?}");
    // The first interval that has no credits may have had them nearly to its end.
    let mut nearly = load.clone();
    for one in &mut nearly.intervals[65..70] {
        one.credits = Some(0.006);
    }
    let found = examined(&nearly).throttled.unwrap();
    assert_eq!(found.served_before_iops, Some(2_200.0));
    assert!((found.implied_iops.unwrap() - 2_200.0).abs() < 1.0, "{found:?}");
    // Without the column of the credits, the baseline and the latency show it.
    let mut unnamed = load.clone();
    unnamed.intervals.iter_mut().for_each(|one| one.credits = None);
    let found = examined(&unnamed).throttled.unwrap();
    assert_eq!(found.because, ["it ran at the baseline IOPS of gp2, as without burst credits"]);
    assert!((found.time_pct - 60.0 / 190.0 * 100.0).abs() < 0.1, "{found:?}");
    assert_eq!(found.implied_iops, Some(2_900.0), "nothing says that the credits were full since");
    // A record that begins without credits has what another of its bursts had.
    let found = examined(&night(&[&minutes[70..], &minutes[..130]].concat())).throttled.unwrap();
    assert_eq!((found.served_before_iops, found.implied_iops), (Some(2_200.0), Some(2_200.0)));
    // And nothing where there is no other.
    let found = examined(&night(&minutes[70..])).throttled.unwrap();
    assert_eq!((found.served_before_iops, found.implied_iops), (None, None));
}

#[test]
fn a_limit_is_reached_by_operations_as_the_volume_counts_them() {
    // 1,000 reads of 4 KiB and 500 writes of 1 MiB are 3,000 operations.
    let mut load = of_sides((1_000.0, 4_096.0), (500.0, 1_048_576.0), 60.0);
    for one in &mut load.intervals {
        (one.read_s, one.write_s) = (Some(0.02), Some(0.02));
    }
    let today = volume("gp3:size=500GiB,iops=3000,throughput=750");
    let found = examine(&load, LoadOrigin::Host, Some(&today), None).unwrap().throttled.unwrap();
    assert_eq!((found.because, found.seen_iops), (vec!["it ran at the IOPS of gp3".to_owned()], 3_000.0));
}

#[test]
fn what_is_in_the_record_takes_precedence_over_the_model() {
    let catalog = Catalog::builtin();
    let today = volume("gp2:size=100GiB");
    let now = |minutes: &[(f64, f64, f64)]| {
        let load = night(minutes);
        let inputs = examine(&load, LoadOrigin::EbsMetrics, Some(&today), None).unwrap();
        let demand = Demand::of(&load, 1.0);
        let objective = Objective { size_bytes: 100 * GIB, carried: 0.999, p99: None };
        let asked = Asked {
            catalog: &catalog,
            prices: catalog.prices(None).unwrap(),
            now: &demand,
            planned: &demand,
            implied: None,
            objective,
            most_members: 1,
            arrays_asked: false,
            today: Some(&today),
            past: inputs.past.as_ref(),
            instance: None,
            instances: &[],
        };
        size(&asked).today.unwrap()
    };
    let slow = now(&[&[(200.0, 0.0008, 1.0); 90][..], &[(300.0, 0.053, 0.0); 10]].concat());
    // A seventh of the I/O took 53 ms. The model sees 300 operations on a volume that gives 300.
    assert_eq!(slow.latency(0.99).as_us(), 53_000);
    assert!(slow.now.latency(0.99) < Nanos::from_ms(5) && slow.now.waiting == 0.0);
    assert!(!slow.meets_now && !slow.meets_planned && slow.choice.room.is_none());
    let credits = slow.past.as_ref().unwrap().credits.unwrap();
    assert_eq!((credits.lowest, credits.at_zero, credits.zero_after_s), (0.0, 0.1, Some(5_400.0)));
    // Where no interval shows a wait, the times are those of the type: means hide what is slow.
    let quick = now(&[(200.0, 0.0008, 1.0); 100]);
    assert_eq!(quick.latency(0.99), quick.now.latency(0.99));
    assert!(quick.meets_now && quick.latency.unwrap().longest_mean().is_none());
}

/// The cheapest specs of each type for a load of EBS's metrics that today's volume carried, and how today's did.
fn sized(load: &VolumeLoad, today: &str, p99: Option<Nanos>) -> (Vec<String>, Today) {
    let (catalog, today) = (Catalog::builtin(), volume(today));
    let inputs = examine(load, LoadOrigin::EbsMetrics, Some(&today), None).unwrap();
    let demand = Demand::from_origin(load, LoadOrigin::EbsMetrics, 1.0);
    let objective = Objective { size_bytes: today.size_bytes(), carried: 0.999, p99 };
    let sizing = size(&Asked {
        catalog: &catalog,
        prices: catalog.prices(None).unwrap(),
        now: &demand,
        planned: &demand,
        implied: None,
        objective,
        most_members: 2,
        arrays_asked: false,
        today: Some(&today),
        past: inputs.past.as_ref(),
        instance: None,
        instances: &[],
    });
    let specs = sizing.choices.iter().map(|choice| short(&choice.volumes.spec).to_string()).collect();
    (specs, sizing.today.unwrap())
}

#[test]
fn no_choice_is_what_the_record_shows_to_be_too_little() {
    let gp2_of = |specs: &[String]| specs.iter().find(|spec| spec.starts_with("gp2:")).cloned();
    // An hour without credits, then an idle day: with full credits the model has nothing to wait for.
    let minutes = [&[(300.0, 0.1, 0.0); 60][..], &[(50.0, 0.0008, 0.5); 1_380]].concat();
    let mut load = night(&minutes);
    let (specs, today) = sized(&load, "gp2:size=100GiB", None);
    assert!(!today.meets_planned && today.now.waiting == 0.0, "{today:?}");
    assert_eq!(gp2_of(&specs).unwrap(), "gp2:size=101GiB", "{specs:?}");
    // The same record without a throttled interval has today's volume as the cheapest gp2.
    load.intervals
        .iter_mut()
        .for_each(|one| (one.read_s, one.write_s, one.queue) = (Some(0.0008), Some(0.0008), None));
    load.intervals.iter_mut().for_each(|one| one.credits = Some(0.5));
    assert_eq!(gp2_of(&sized(&load, "gp2:size=100GiB", None).0).unwrap(), "gp2:size=100GiB");
    // Means of a minute are far below the limit, and its metrics say that it was exceeded.
    let exceeded = |limited: Limited| {
        let mut load = night(&[(500.0, 0.0008, 1.0); 100]);
        load.intervals.iter_mut().for_each(|one| one.credits = None);
        load.intervals[..5].iter_mut().for_each(|one| one.limited = Some(limited));
        sized(&load, "gp3:size=500GiB,iops=4000,throughput=250", None)
    };
    let (specs, today) = exceeded(Limited { volume_iops: true, ..Limited::default() });
    assert_eq!(specs[0], "gp3:size=500GiB,iops=4100,throughput=125", "{specs:?}");
    assert_eq!(today.past.unwrap().limited_by(), Some(Limit::VolumeIops));
    let (specs, _) = exceeded(Limited { volume_throughput: true, ..Limited::default() });
    assert_eq!(specs[0], "gp3:size=500GiB,iops=3000,throughput=255", "{specs:?}");
    // I/O took longer than is asked for, at no limit: the same type with no more of anything takes as long.
    let slow = night(&[&[(500.0, 0.0008, 1.0); 90][..], &[(500.0, 0.02, 1.0); 10]].concat());
    let (specs, _) = sized(&slow, "gp3:size=500GiB,iops=4000,throughput=250", Some(Nanos::from_ms(10)));
    assert!(specs.contains(&"gp3:size=500GiB,iops=4000,throughput=255".to_owned()), "{specs:?}");
}

#[test]
fn a_queue_tells_how_long_i_o_took_where_no_latency_was_recorded() {
    let minutes = [&[(200.0, 0.0008, 1.0); 90][..], &[(300.0, 0.053, 0.0); 10]].concat();
    let mut load = night(&minutes);
    let (_, timed) = sized(&load, "gp2:size=100GiB", None);
    load.intervals.iter_mut().for_each(|one| (one.read_s, one.write_s) = (None, None));
    let (_, queued) = sized(&load, "gp2:size=100GiB", None);
    let (timed, queued) = (timed.latency(0.99).as_us(), queued.latency(0.99).as_us());
    // The queue of 15.9 is printed with two decimals.
    assert!(timed == 53_000 && (52_900..=53_000).contains(&queued), "{timed} {queued}");
    // What was not recorded at all is the model's.
    load.intervals.iter_mut().for_each(|one| one.queue = None);
    assert!(sized(&load, "gp2:size=100GiB", None).1.latency.is_none());
    // A queue of an idle volume is not more than its rounding.
    let mut idle = night(&[(0.5, 0.0008, 1.0); 10]);
    idle.intervals.iter_mut().for_each(|one| (one.read_s, one.write_s, one.queue) = (None, None, Some(0.01)));
    let (_, idle) = sized(&idle, "gp2:size=100GiB", None);
    assert_eq!(idle.latency.unwrap().longest_mean(), Some(Nanos::from_ms(10)));
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
