//! Burst credits: how long they last, the step after them, and how they come back.

use ebbtide_volume::{Array, Nanos, Op, RateLimit};

use crate::support::{Load, assert_within, drive, gp2, rate, st1, with_service};

const T0: Nanos = Nanos::ZERO;

#[test]
fn a_gp2_burst_lasts_as_long_as_the_formula_gives() {
    for (gib, baseline) in [(33, 100_u64), (100, 300), (334, 1_002), (750, 2_250)] {
        let length = 5_400_000 / (3_000 - baseline);
        let mut volume = Array::single(gp2(gib), T0).unwrap();
        let load = Load::random(Op::Read, 16, 32);
        let done = drive(&mut volume, &load, T0, Nanos::from_secs(length + 62), None);
        assert_within(rate(&done, 0, length - 1), 3_000.0, 0.001);
        assert_within(rate(&done, length + 2, length + 62), baseline as f64, 0.001);
    }
}

#[test]
fn throttling_shows_as_a_step_in_latency_and_not_as_errors() {
    let mut volume = Array::single(with_service(gp2(167)), T0).unwrap();
    volume.set_credit_share(0.01, T0);
    let done = drive(&mut volume, &Load::random(Op::Read, 16, 64), T0, Nanos::from_secs(120), None);
    let mean = |from: u64, to: u64| {
        let window = Nanos::from_secs(from)..Nanos::from_secs(to);
        let latencies: Vec<_> =
            done.iter().filter(|(at, _)| window.contains(at)).map(|(_, l)| l.as_secs_f64()).collect();
        latencies.iter().sum::<f64>() / latencies.len() as f64
    };
    // 54,000 credits drain at 2,499 a second. The published case: below 10 ms at the burst with
    // less concurrency, over 100 ms at about 500 IOPS.
    assert_within(mean(2, 20), 64.0 / 3_000.0, 0.01);
    assert_within(mean(30, 120), 64.0 / 501.0, 0.01);
}

#[test]
fn an_empty_gp2_refills_in_the_documented_time() {
    for (gib, seconds) in [(33, 54_000), (100, 18_000), (334, 5_389), (750, 2_400)] {
        let mut volume = Array::single(gp2(gib), T0).unwrap();
        volume.set_credit_share(0.0, T0);
        let share = |s: u64| volume.credit_share(Nanos::from_secs(s)).unwrap();
        assert_within(share(seconds / 2), 0.5, 0.001);
        assert!(share(seconds - 2) < 1.0);
        assert_within(share(seconds + 1), 1.0, 0.000_001);
    }
}

#[test]
fn an_st1_spends_throughput_credit_and_a_full_bucket_scans_the_volume_once() {
    // 5 TiB: 200 MiB/s base, 500 MiB/s burst; AWS gives 2.91 h for the scan.
    let mut volume = Array::single(st1(5), T0).unwrap();
    let burst_s = 5 * (1 << 20) / (500 - 200);
    let done =
        drive(&mut volume, &Load::sequential(Op::Read, 1024, 8), T0, Nanos::from_secs(burst_s + 120), None);
    assert_within(rate(&done, 0, burst_s - 10), 500.0, 0.001);
    assert_within(rate(&done, burst_s + 20, burst_s + 120), 200.0, 0.001);
    let scan_s = done[5 * (1 << 20) - 1].0.as_secs_f64();
    assert_within(scan_s / 3_600.0, 2.91, 0.01);
}

#[test]
fn a_small_random_io_costs_an_hdd_volume_a_whole_mebibyte() {
    let mut volume = Array::single(st1(1), T0).unwrap();
    let done = drive(&mut volume, &Load::random(Op::Read, 16, 8), T0, Nanos::from_secs(60), None);
    assert_within(rate(&done, 1, 60), 250.0, 0.001);
    let mut sequential = Array::single(st1(1), T0).unwrap();
    let load = Load::sequential(Op::Read, 128, 8);
    let done = drive(&mut sequential, &load, T0, Nanos::from_secs(60), None);
    assert_within(rate(&done, 1, 60), 250.0 * 8.0, 0.001);
}

#[test]
fn a_gp2s_throughput_falls_to_its_baseline_operations_of_256_kib() {
    let mut volume = Array::single(gp2(200), T0).unwrap();
    volume.set_credit_share(0.01, T0);
    let done = drive(&mut volume, &Load::random(Op::Read, 256, 32), T0, Nanos::from_secs(300), None);
    assert_within(rate(&done, 1, 60) / 4.0, 250.0, 0.001);
    assert_within(rate(&done, 200, 300) / 4.0, 600.0 / 4.0, 0.001);
}

#[test]
fn credits_are_conserved() {
    let mut volume = Array::single(gp2(100), T0).unwrap();
    let done = drive(&mut volume, &Load::random(Op::Write, 16, 32), T0, Nanos::from_secs(600), None);
    let end = Nanos::from_secs(600);
    let left = volume.credit_share(end).unwrap() * 5_400_000.0;
    // What was granted beyond the end is already paid for: at most the queue's depth.
    let spent = done.len() as f64;
    assert!((5_400_000.0 + 300.0 * 600.0 - spent - left).abs() <= 32.0 + 1.0, "{left} left, {spent} spent");
}

#[test]
fn changing_a_limit_keeps_the_credits_that_there_are() {
    let before = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
    let mut bucket = ebbtide_volume::BurstBucket::new(before);
    bucket.set_credit_share(0.5, T0);
    bucket.change(RateLimit { rate: 600, ..before }, T0);
    assert_within(bucket.credit_share(T0).unwrap(), 0.5, 1e-9);
    bucket.change(RateLimit { credits: 1_000_000, ..before }, T0);
    assert_within(bucket.credit_share(T0).unwrap(), 1.0, 1e-9);
    bucket.change(RateLimit { credits: 4_000_000, ..before }, T0);
    assert_within(bucket.credit_share(T0).unwrap(), 0.25, 1e-9);
    bucket.change(RateLimit::flat(3_000), T0);
    assert_eq!(bucket.credit_share(T0), None);
}
