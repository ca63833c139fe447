//! Counters: what CloudWatch and the NVMe statistics page would show.

use ebbtide_volume::{Array, Io, LatencyHistogram, Nanos, Op, Stats};

use crate::support::{Load, assert_within, drive, gp2, gp3, rng, unlimited, with_service};

const T0: Nanos = Nanos::ZERO;

#[test]
fn a_minute_at_the_cap_reads_as_cloudwatch_would_show_it() {
    let mut volume = Array::single(with_service(gp2(100)), T0).unwrap();
    let load = Load::random(Op::Write, 16, 32);
    drive(&mut volume, &load, T0, Nanos::from_secs(60), None);
    let start = volume.clone().stats(T0);
    let end = volume.clone().stats(Nanos::from_secs(60));
    let metrics = end.since(&Stats { at: T0, ..Stats::default() }).metrics();
    assert_eq!(start.queue, 32, "a clock that runs backwards is ignored");
    assert_within(metrics.volume_avg_iops, 3_000.0, 0.002);
    assert_within(metrics.volume_avg_throughput, 3_000.0 * 16.0, 0.002);
    assert_within(metrics.volume_queue_length, 32.0, 0.002);
    assert_within(metrics.volume_avg_write_latency, 32.0 / 3.0, 0.01);
    assert_within(metrics.burst_balance.unwrap(), 100.0 * (1.0 - 60.0 * 2_700.0 / 5.4e6), 0.001);
    // The baseline of 100 GiB is 300: a burst delivers ten times that.
    assert_within(metrics.volume_throughput_percentage.unwrap(), 1_000.0, 0.002);
    assert_eq!((metrics.volume_read_ops, metrics.volume_avg_read_latency), (0, 0.0));
    assert_eq!((metrics.volume_iops_exceeded_check, metrics.volume_throughput_exceeded_check), (1, 0));
    assert!(metrics.volume_idle_time < 0.001);
    assert_eq!(metrics.volume_stalled_io_check, 0);
}

#[test]
fn what_happened_between_two_moments_is_the_growth_of_the_counters_and_the_gauges_of_the_end() {
    let mut volume = Array::single(with_service(gp2(100)), T0).unwrap();
    let load = Load::random(Op::Write, 512, 32);
    drive(&mut volume, &load, T0, Nanos::from_secs(20), None);
    let earlier = volume.stats(Nanos::from_secs(20));
    drive(&mut volume, &load, Nanos::from_secs(20), Nanos::from_secs(60), None);
    let later = volume.stats(Nanos::from_secs(60));
    let happened = later.since(&earlier);
    assert_eq!(happened.at, Nanos::from_secs(40));
    assert!(happened.write.ops > 0 && happened.write_split.ops > 0 && happened.write.ops < later.write.ops);
    assert_eq!(earlier.write.ops + happened.write.ops, later.write.ops);
    assert_eq!(earlier.write.bytes + happened.write.bytes, later.write.bytes);
    assert_eq!(earlier.write.time + happened.write.time, later.write.time);
    assert_eq!(earlier.write_split.ops + happened.write_split.ops, later.write_split.ops);
    assert_eq!(earlier.queue_time + happened.queue_time, later.queue_time);
    assert_eq!(
        earlier.volume_throughput_exceeded + happened.volume_throughput_exceeded,
        later.volume_throughput_exceeded
    );
    assert_eq!(happened.write_latency.bins.iter().sum::<u64>(), happened.write.ops);
    let gauges = |stats: &Stats| (stats.queue, stats.credit_share, stats.iops_rate);
    assert_eq!(gauges(&happened), gauges(&later));
    // Counters that went back, as those of another attachment, give nothing.
    let back = earlier.since(&later);
    assert_eq!((back.at, back.write.ops, back.queue_time), (Nanos::ZERO, 0, Nanos::ZERO));
}

#[test]
fn operations_are_counted_in_requests_that_the_device_of_an_ebs_volume_takes() {
    let mut volume = Array::single(with_service(unlimited()), T0).unwrap();
    let mut rng = rng(13);
    let mut expected = (0, Nanos::ZERO);
    for (number, kib) in [4, 256, 257, 411, 512, 1_024].into_iter().enumerate() {
        let now = Nanos::from_secs(number as u64 + 1);
        let io = Io { op: Op::Read, offset: (number as u64) << 30, len: kib << 10 };
        let latency = volume.submit(io, now, &mut rng, None).completes.since(now);
        let pieces = u64::from(kib.div_ceil(256));
        expected = (expected.0 + pieces, expected.1 + Nanos(latency.0 * pieces));
    }
    let stats = volume.stats(Nanos::from_secs(60));
    assert_eq!((stats.read.ops, expected.0), (6, 1 + 1 + 2 + 2 + 2 + 4));
    let minute = stats.since(&Stats::default()).metrics();
    assert_eq!(minute.volume_read_ops, expected.0);
    let time = expected.1.as_secs_f64();
    assert_within(minute.volume_total_read_time, time, 1e-9);
    assert_within(minute.volume_queue_length, time / 60.0, 1e-9);
    assert_within(minute.volume_avg_read_latency, time / expected.0 as f64 * 1e3, 1e-9);
}

#[test]
fn idle_time_queue_and_service_time_add_up() {
    let mut volume = Array::single(with_service(unlimited()), T0).unwrap();
    let mut rng = rng(7);
    let mut busy = Nanos::ZERO;
    for second in 1..=50 {
        let now = Nanos::from_secs(second);
        let grant = volume.submit(Io { op: Op::Read, offset: 0, len: 4096 }, now, &mut rng, None);
        busy += grant.completes.since(now);
    }
    let stats = volume.stats(Nanos::from_secs(51));
    assert_eq!(stats.read.ops, 50);
    assert_eq!(stats.read.time, busy);
    assert_eq!(stats.queue_time, busy, "with one I/O at a time the queue is busy or empty");
    assert_eq!(stats.idle_time + busy, Nanos::from_secs(51));
    assert_eq!(stats.read_latency.bins.iter().sum::<u64>(), 50);
}

#[test]
fn time_over_the_throughput_limit_is_distinguished_from_time_over_the_iops_limit() {
    let mut volume = Array::single(gp3(3_000, 125), T0).unwrap();
    drive(&mut volume, &Load::random(Op::Read, 256, 8), T0, Nanos::from_secs(30), None);
    let stats = volume.stats(Nanos::from_secs(30));
    assert!(stats.volume_throughput_exceeded > Nanos::from_secs(28));
    assert_eq!(stats.volume_iops_exceeded, Nanos::ZERO);
}

#[test]
fn histogram_bins_are_those_of_the_statistics_page() {
    assert_eq!(LatencyHistogram::bounds_us(0), (0, Some(1)));
    assert_eq!(LatencyHistogram::bounds_us(1), (1, Some(2)));
    assert_eq!(LatencyHistogram::bounds_us(26), (1 << 25, Some(1 << 26)));
    assert_eq!(LatencyHistogram::bounds_us(27), (67_108_864, None));
    let mut volume = Array::single(with_service(unlimited()), T0).unwrap();
    let mut rng = rng(9);
    let grant = volume.submit(Io { op: Op::Write, offset: 0, len: 4096 }, T0, &mut rng, None);
    let stats = volume.stats(grant.completes);
    let bin = stats.write_latency.bins.iter().position(|&n| n == 1).unwrap();
    let (low, high) = LatencyHistogram::bounds_us(bin);
    assert!((low..high.unwrap()).contains(&grant.completes.as_us()));
}

#[test]
fn flushes_and_discards_cost_an_ebs_volume_nothing() {
    let mut volume = Array::single(gp3(100, 125), T0).unwrap();
    let mut rng = rng(11);
    for _ in 0..10_000 {
        let flush = volume.submit(Io { op: Op::Flush, offset: 0, len: 0 }, T0, &mut rng, None);
        let discard = volume.submit(Io { op: Op::Discard, offset: 0, len: 1 << 30 }, T0, &mut rng, None);
        assert_eq!((flush.completes, discard.completes, flush.operations), (T0, T0, 0));
    }
    let stats = volume.stats(Nanos::SECOND);
    assert_eq!((stats.flush_ops, stats.discard_ops, stats.consumed_ops), (10_000, 10_000, 0));
}
