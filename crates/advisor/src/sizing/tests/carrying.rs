//! Limits, queues and credits over a series.

use ebbtide_catalog::Catalog;
use ebbtide_volume::Nanos;

use super::{load, of_sides, of_size, volume};
use crate::sizing::search::setup;
use crate::sizing::{Carried, Demand, Limit, Setup};

fn carried(spec: &str, steps: &[(f64, f64)]) -> Carried {
    Demand::of(&load(steps), 1.0).carried_by(&setup(&volume(spec), None))
}

#[test]
fn a_load_below_the_limits_waits_for_nothing_and_takes_its_service_time() {
    let carried = carried("gp3:size=500GiB", &[(2_900.0, 60.0); 30]);
    assert_eq!((carried.waiting, carried.longest, carried.overloaded), (0.0, Nanos::ZERO, false));
    assert_eq!(carried.limited_by(), None);
    let median = carried.latency(0.5).as_us();
    // Reads and writes of gp3 are near 0.6 ms, and 16 KiB take 16 us.
    assert!((580..680).contains(&median), "{median}");
    assert!(carried.latency(0.99) > carried.latency(0.95));
}

#[test]
fn what_a_peak_leaves_is_carried_over_the_intervals_after_it() {
    // 2,000 above the limit for a minute are 120,000; then 500 a second are worked off.
    let steps =
        [&[(1_000.0, 60.0)][..], &[(5_000.0, 60.0)], &[(2_500.0, 60.0); 6], &[(100.0, 60.0)]].concat();
    let carried = carried("gp3:size=500GiB", &steps);
    assert_eq!(carried.limited_by(), Some(Limit::VolumeIops));
    let longest = carried.longest.as_secs_f64();
    assert!((longest - 120_000.0 / 3_000.0).abs() < 0.1, "{longest}");
    // From the start of the peak until the queue is empty.
    let waited = carried.waiting * 9.0 * 60.0;
    let expected = 60.0 + 120_000.0 / 500.0;
    assert!((waited - expected).abs() < 2.0, "{waited} for {expected}");
    assert!(!carried.overloaded);
}

#[test]
fn what_an_idle_gp3_gives_beyond_its_rate_counts_only_where_it_is_asked_for() {
    // A second at 37,631 between quiet ones.
    let steps = [&[(500.0, 1.0); 30][..], &[(37_631.0, 1.0)], &[(500.0, 1.0); 30]].concat();
    let demand = Demand::of(&load(&steps), 1.0);
    let volume = volume("gp3:size=500GiB,iops=20000,throughput=1000");
    let own = setup(&volume, None);
    assert_eq!(demand.carried_by(&own).limited_by(), Some(Limit::VolumeIops));
    let counted = demand.carried_by(&Setup { counts_allowance: true, ..own });
    assert_eq!((counted.waiting, counted.limited_by()), (0.0, None));
}

#[test]
fn burst_credits_end_when_the_formula_says_and_what_does_not_come_back_does_not_count() {
    // 100 GiB of gp2: 300 a second for ever, 3,000 for 2,000 s.
    let burst = carried("gp2:size=100GiB", &[&[(3_000.0, 60.0); 60][..], &[(0.0, 60.0); 1_440]].concat());
    assert_eq!(burst.credits_end, Some(Nanos::from_secs(2_000)));
    assert_eq!(burst.limited_by(), Some(Limit::VolumeCredits));
    assert_eq!(burst.lowest_credits, Some(0.0));
    // An hour at 1,000 and a day of rest: 2.5 of 5.4 million credits, which come back.
    let hourly = carried("gp2:size=100GiB", &[&[(1_000.0, 60.0); 60][..], &[(0.0, 60.0); 1_440]].concat());
    assert_eq!((hourly.waiting, hourly.credits_end, hourly.overloaded), (0.0, None, false));
    let lowest = hourly.lowest_credits.unwrap();
    assert!((lowest - (5.4 - 2.52) / 5.4).abs() < 0.01, "{lowest}");
    // The same hour alone, over and over: full credits carry the first one, and nothing comes back.
    let alone = carried("gp2:size=100GiB", &[(1_000.0, 60.0); 60]);
    assert!(alone.overloaded && alone.waiting > 0.99, "{} {}", alone.overloaded, alone.waiting);
    assert_eq!(alone.credits_end, None, "the first hour is carried");
}

#[test]
fn an_instance_limits_all_its_volumes_with_its_own_burst() {
    let instance = Catalog::builtin().instance("r5.large").unwrap();
    let volumes = volume("raid0(4x gp3:size=100GiB,iops=16000,throughput=1000)");
    let demand = |ios: f64, minutes: usize| Demand::of(&load(&vec![(ios, 60.0); minutes]), 1.0);
    let on = setup(&volumes, Some(&instance));
    assert_eq!(demand(3_500.0, 60).carried_by(&on).waiting, 0.0);
    let day = Demand::of(&load(&[&[(18_000.0, 60.0); 25][..], &[(500.0, 60.0); 1_400]].concat()), 1.0);
    assert_eq!(day.carried_by(&on).waiting, 0.0, "thirty minutes a day at its maximum");
    let longer = Demand::of(&load(&[&[(18_000.0, 60.0); 45][..], &[(500.0, 60.0); 1_400]].concat()), 1.0);
    assert_eq!(longer.carried_by(&on).limited_by(), Some(Limit::InstanceCredits));
    let peak = Demand::of(&load(&[&[(20_000.0, 60.0); 5][..], &[(500.0, 60.0); 1_400]].concat()), 1.0);
    assert_eq!(peak.carried_by(&on).limited_by(), Some(Limit::InstanceIops));
}

#[test]
fn large_operations_are_split_and_a_disk_charges_whole_ones() {
    let mib = 1_048_576.0;
    // 100 of 1 MiB are 400 operations, and 100 MiB/s.
    let large = |spec: &str, ios: f64| {
        Demand::of(&of_size(mib, &[(ios, 60.0); 30]), 1.0)
            .carried_by(&setup(&volume(spec), None))
            .limited_by()
    };
    assert_eq!(large("gp3:size=500GiB", 120.0), None);
    assert_eq!(large("gp3:size=500GiB", 130.0), Some(Limit::VolumeThroughput));
    assert_eq!(large("io2:size=500GiB,iops=410", 100.0), None);
    assert!(large("io2:size=500GiB,iops=390", 100.0).is_some());
    // 1 TiB of st1 has 40 MiB/s for ever: 50 small operations are 50 MiB/s.
    let small = |ios: f64| carried("st1:size=1024GiB", &[(ios, 600.0); 600]);
    assert_eq!(small(39.0).limited_by(), None);
    assert_eq!(small(50.0).limited_by(), Some(Limit::VolumeCredits));
}

#[test]
fn each_direction_waits_by_its_own_size_on_volumes_disks_and_arrays() {
    let kib = 1_024.0;
    let limited = |spec: &str, reads: (f64, f64), writes: (f64, f64)| {
        let demand = Demand::of(&of_sides(reads, writes, 600.0), 1.0);
        let volumes = volume(spec);
        let carried = demand.carried_by(&setup(&volumes, None));
        carried.limited_by()
    };
    // 3,600 and 400 x 4 are 5,200; either direction may be the large one.
    for (reads, writes) in
        [((3_600.0, 4.0 * kib), (400.0, 1_024.0 * kib)), ((400.0, 1_024.0 * kib), (3_600.0, 4.0 * kib))]
    {
        assert_eq!(limited("gp3:size=500GiB,iops=5200,throughput=500", reads, writes), None);
        assert_eq!(
            limited("gp3:size=500GiB,iops=5100,throughput=500", reads, writes),
            Some(Limit::VolumeIops)
        );
    }
    // 1 TiB of st1 has 40 MiB/s for ever: 10 reads of 2 MiB are 20 units, and 15 small writes 15 more.
    let disk = |writes: f64| limited("st1:size=1024GiB", (10.0, 2_048.0 * kib), (writes, 4.0 * kib));
    assert_eq!((disk(15.0), disk(25.0)), (None, Some(Limit::VolumeCredits)));
    // Of an array a request of 256 KiB that begins at any page has the end of a chunk of 512 KiB in it nearly every other time.
    let array = |iops: u64| {
        let spec = format!("raid0(2x gp3:size=100GiB,iops={iops},throughput=1800)");
        limited(&spec, (3_000.0, 4.0 * kib), (8_000.0, 256.0 * kib))
    };
    // 3,000 and 8,000 x (1 + 240 / 512), half of it on each.
    assert_eq!((array(7_400), array(7_300)), (None, Some(Limit::VolumeIops)));
}

#[test]
fn a_quantile_of_the_latency_has_the_waits_in_it() {
    // A tenth of the I/O waits a second and more: p99 is among it, p50 is not.
    let steps = [&[(1_000.0, 60.0); 40][..], &[(4_000.0, 60.0)], &[(100.0, 60.0); 10]].concat();
    let carried = carried("gp3:size=500GiB", &steps);
    assert!(carried.latency(0.5).as_us() < 1_000);
    assert!(carried.latency(0.99) > Nanos::SECOND, "{}", carried.latency(0.99));
    let above = carried.slower_than(carried.latency(0.99));
    assert!((above - 0.01).abs() < 0.002, "{above}");
}
