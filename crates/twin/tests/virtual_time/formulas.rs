//! Rates, bursts and latencies against their formulas.

use ebbtide_twin::{Balance, Interval};
use ebbtide_volume::{Instance, InstanceLimits, MIB, Nanos, RateLimit};

use crate::support::{SEED, array, assert_near, gp2, gp3, run, ssd, st1, try_run};

fn mean_iops(intervals: &[Interval]) -> f64 {
    intervals.iter().map(Interval::iops).sum::<f64>() / intervals.len() as f64
}

fn mean_mib_s(intervals: &[Interval]) -> f64 {
    intervals.iter().map(Interval::bytes_per_second).sum::<f64>() / intervals.len() as f64 / MIB as f64
}

#[test]
fn a_gp2_burst_lasts_as_long_as_the_formula_gives_and_the_baseline_follows() {
    for (gib, words) in [
        (100, "rw=randread,bs=16k,iodepth=64,runtime=3h"),
        (34, "rw=randwrite,bs=4k,iodepth=32,runtime=1h"),
        (500, "rw=randrw,bs=8k,iodepth=16,numjobs=4,runtime=70m"),
    ] {
        let (outcome, intervals) = run(gp2(gib), words);
        let baseline = 3 * gib;
        let formula = 5_400_000.0 / (3_000 - baseline) as f64;
        let [ended] = outcome.volumes[0].changes[..] else {
            panic!("{gib} GiB: {:?}", outcome.volumes[0].changes);
        };
        assert!(ended.ended && ended.balance == Balance::Volume);
        assert!((ended.at.as_secs_f64() - formula).abs() <= 1.0, "{gib} GiB: {} s", ended.at.as_secs_f64());
        let end = usize::try_from(ended.at.0 / 1_000_000_000).unwrap();
        assert_near("burst IOPS", mean_iops(&intervals[..end - 1]), 3_000.0, 0.001);
        assert_near("baseline IOPS", mean_iops(&intervals[end + 1..]), baseline as f64, 0.001);
        assert!(intervals[0].credit_share > Some(0.99) && intervals[end + 1].credit_share < Some(0.001));
    }
}

#[test]
fn gp3_is_bound_by_iops_below_its_knee_and_by_throughput_above_it() {
    // The knee: 125 MiB/s / 3,000 IOPS = 42.7 KiB.
    for (kib, iops) in
        [(4, 3_000.0), (16, 3_000.0), (32, 3_000.0), (42, 3_000.0), (64, 2_000.0), (256, 500.0)]
    {
        let (outcome, intervals) = run(gp3(), &format!("rw=randread,bs={kib}k,iodepth=32,runtime=60s"));
        assert_near(&format!("IOPS at {kib} KiB"), mean_iops(&intervals), iops, 0.001);
        let stats = outcome.volumes[0].stats;
        let by_iops = stats.volume_iops_exceeded > stats.volume_throughput_exceeded;
        assert_eq!(by_iops, kib < 43, "{kib} KiB: {stats:?}");
    }
}

#[test]
fn latency_at_the_cap_obeys_littles_law() {
    for depth in [8_u32, 32, 256] {
        let (outcome, intervals) = run(gp3(), &format!("rw=randread,bs=16k,iodepth={depth},runtime=60"));
        let expected_us = f64::from(depth) / 3_000.0 * 1e6;
        let p50 = intervals[30].p50.unwrap().0 as f64 / 1e3;
        assert_near("p50", p50, expected_us, 0.002);
        assert_near("queue", intervals[30].queue, f64::from(depth), 0.001);
        assert!(intervals[30].throttled_share > 0.5);
        assert!(
            outcome.volumes[0].in_flight.abs_diff(u64::from(depth)) <= 1,
            "all but one at the end itself"
        );
    }
}

#[test]
fn one_io_in_flight_runs_at_the_service_time() {
    let (outcome, intervals) = run(gp3(), "rw=randread,bs=16k,runtime=10");
    assert_near("IOPS", mean_iops(&intervals), 1e6 / 700.0, 0.001);
    let read = outcome.volumes[0].totals().read;
    assert_eq!(read.mean(), Some(Nanos::from_us(700)));
    assert_near("p99", read.percentiles.at(0.99).unwrap().0 as f64, 700_000.0, 0.001);
    assert!(intervals.iter().all(|interval| interval.throttled_share < 1e-9));
}

#[test]
fn st1_scans_at_its_burst_and_then_at_its_base() {
    // 1 TiB of credits drains at (250 - 40) MiB/s: 4,993 s.
    let (outcome, intervals) = run(st1(1), "rw=read,bs=1m,iodepth=4,runtime=90m");
    let ended = outcome.volumes[0].changes[0].at;
    assert!((ended.as_secs_f64() - 1_048_576.0 / 210.0).abs() < 2.0, "{ended}");
    let end = usize::try_from(ended.0 / 1_000_000_000).unwrap();
    assert_near("burst MiB/s", mean_mib_s(&intervals[..end - 1]), 250.0, 0.001);
    assert_near("base MiB/s", mean_mib_s(&intervals[end + 1..]), 40.0, 0.001);
}

#[test]
fn st1_pays_a_mebibyte_for_a_small_random_read() {
    let (_, intervals) = run(st1(1), "rw=randread,bs=16k,iodepth=8,runtime=10m");
    assert_near("IOPS", mean_iops(&intervals), 250.0, 0.001);
    let (_, sequential) = run(st1(1), "rw=read,bs=16k,iodepth=64,runtime=10m");
    assert_near("sequential MiB/s", mean_mib_s(&sequential), 250.0, 0.001);
}

#[test]
fn two_volumes_on_one_instance_share_its_limits() {
    let limits = InstanceLimits { iops: RateLimit::flat(4_000), throughput: RateLimit::flat(1_000 * MIB) };
    let volumes = vec![array(gp3()), array(gp3())];
    let words = "rw=randread,bs=16k,iodepth=32,runtime=60";
    let (outcome, kept) = try_run(volumes, Some(Instance::new(limits)), words, SEED, Nanos::SECOND).unwrap();
    let each: Vec<f64> = kept.0.iter().map(|intervals| mean_iops(intervals)).collect();
    assert_near("both", each[0] + each[1], 4_000.0, 0.001);
    assert_near("one", each[0], 2_000.0, 0.02);
    assert!(outcome.volumes[0].stats.instance_iops_exceeded > Nanos::from_secs(55));
}

#[test]
fn an_instance_holds_its_maximum_for_thirty_minutes() {
    let burst = |rate: u64, ceiling: u64| RateLimit {
        rate,
        ceiling,
        allowance: 0,
        credits: (ceiling - rate) * 1_800,
    };
    let limits =
        InstanceLimits { iops: burst(3_600, 18_750), throughput: burst(650_000_000 / 8, 4_750_000_000 / 8) };
    let fast = ssd(500, 300, Some(RateLimit::flat(64_000)), None);
    let words = "rw=randread,bs=4k,iodepth=128,runtime=32m";
    let (outcome, kept) =
        try_run(vec![array(fast)], Some(Instance::new(limits)), words, SEED, Nanos::SECOND).unwrap();
    let change = outcome.volumes[0].changes[0];
    assert_eq!((change.balance, change.ended), (Balance::InstanceIo, true));
    assert!((change.at.as_secs_f64() - 1_800.0).abs() <= 1.0, "{}", change.at);
    assert_near("maximum", mean_iops(&kept.0[0][..1_790]), 18_750.0, 0.001);
    assert_near("baseline", mean_iops(&kept.0[0][1_810..]), 3_600.0, 0.001);
}
