//! Caps, the knee between them, queueing, instance limits and striping.

use ebbtide_volume::{Array, Instance, InstanceLimits, MIB, Modification, Nanos, Op, RateLimit, Volume};

use crate::support::{Load, assert_within, drive, gp2, gp3, percentile, rate, rng, unlimited, with_service};

const T0: Nanos = Nanos::ZERO;

#[test]
fn an_iops_cap_holds_to_a_thousandth_and_queues_by_littles_law() {
    for depth in [8, 32, 64] {
        let mut volume = Array::single(with_service(gp3(3_000, 1_000)), T0).unwrap();
        let done = drive(&mut volume, &Load::random(Op::Read, 16, depth), T0, Nanos::from_secs(62), None);
        assert_within(rate(&done, 2, 62), 3_000.0, 0.001);
        let steady: Vec<_> = done.into_iter().filter(|(at, _)| *at > Nanos::from_secs(2)).collect();
        let expected = depth as f64 / 3_000.0;
        assert_within(percentile(&steady, 0.5).as_secs_f64(), expected, 0.01);
        if depth >= 32 {
            assert!(percentile(&steady, 0.99).as_secs_f64() <= 1.2 * expected);
        }
    }
}

#[test]
fn the_first_second_of_an_idle_gp3_gives_twice_its_rate() {
    let mut volume = Array::single(with_service(gp3(3_000, 1_000)), T0).unwrap();
    let done = drive(&mut volume, &Load::random(Op::Read, 16, 64), T0, Nanos::from_secs(10), None);
    assert_within(rate(&done, 0, 1), 6_000.0, 0.01);
    assert_within(rate(&done, 2, 10), 3_000.0, 0.001);
}

#[test]
fn a_throughput_cap_holds_to_a_thousandth() {
    let mut volume = Array::single(gp3(3_000, 125), T0).unwrap();
    let done = drive(&mut volume, &Load::random(Op::Write, 256, 32), T0, Nanos::from_secs(62), None);
    assert_within(rate(&done, 2, 62) / 4.0, 125.0, 0.001);
}

#[test]
fn the_knee_is_where_the_two_caps_meet() {
    // 125 MiB/s over 3,000 IOPS: 42.7 KiB. Below it the IOPS bind, above it the bytes do.
    for (kib, iops) in
        [(4, 3_000.0), (32, 3_000.0), (40, 3_000.0), (48, 2_666.7), (64, 2_000.0), (256, 500.0)]
    {
        let mut volume = Array::single(gp3(3_000, 125), T0).unwrap();
        let done = drive(&mut volume, &Load::random(Op::Read, kib, 32), T0, Nanos::from_secs(22), None);
        assert_within(rate(&done, 2, 22), iops, 0.001);
    }
}

#[test]
fn below_its_cap_a_volume_is_as_fast_as_its_service_times() {
    let mut volume = Array::single(with_service(gp3(3_000, 125)), T0).unwrap();
    let done = drive(&mut volume, &Load::random(Op::Read, 16, 1), T0, Nanos::from_secs(30), None);
    assert_within(percentile(&done, 0.5).as_secs_f64(), 500e-6, 0.02);
    assert!(rate(&done, 0, 30) < 2_000.0);
}

#[test]
fn two_volumes_share_their_instances_cap() {
    let limits = InstanceLimits { iops: RateLimit::flat(3_600), throughput: RateLimit::flat(81 * MIB) };
    let mut instance = Instance::new(limits);
    let mut volumes = [gp3(3_000, 500), gp3(3_000, 500)].map(|l| Array::single(l, T0).unwrap());
    let mut rng = rng(1);
    let mut done = 0_u64;
    let mut free = [[T0; 32]; 2];
    let (warm, end) = (Nanos::from_secs(5), Nanos::from_secs(35));
    for n in 0_u64.. {
        let (which, slot) =
            (0..2).flat_map(|v| (0..32).map(move |s| (v, s))).min_by_key(|&(v, s)| free[v][s]).unwrap();
        let now = free[which][slot];
        if now >= end {
            break;
        }
        let io = ebbtide_volume::Io { op: Op::Read, offset: (n % 1_000_000) * 2 * 4096, len: 4096 };
        let grant = volumes[which].submit(io, now, &mut rng, Some(&mut instance));
        done += u64::from(grant.completes > warm && grant.completes <= end);
        free[which][slot] = grant.completes;
    }
    assert_within(done as f64 / 30.0, 3_600.0, 0.001);
    let stats = volumes.map(|mut v| v.stats(end));
    for stat in stats {
        assert!(stat.instance_iops_exceeded > Nanos::from_secs(25), "{:?}", stat.instance_iops_exceeded);
        assert!(stat.volume_iops_exceeded < Nanos::from_secs(3), "{:?}", stat.volume_iops_exceeded);
    }
}

#[test]
fn an_instance_burst_lasts_thirty_minutes_and_then_drops_to_the_baseline() {
    // r5.large: 3,600 to 18,750 IOPS.
    let (base, max) = (3_600, 18_750);
    let iops = RateLimit { rate: base, ceiling: max, allowance: 0, credits: (max - base) * 1_800 };
    let mut instance =
        Instance::new(InstanceLimits { iops, throughput: RateLimit::flat(u64::from(u32::MAX)) });
    let mut volume = Array::single(unlimited(), T0).unwrap();
    let load = Load::random(Op::Read, 4, 16);
    let done = drive(&mut volume, &load, T0, Nanos::from_secs(1_900), Some(&mut instance));
    assert_within(rate(&done, 0, 1_799), 18_750.0, 0.001);
    assert_within(rate(&done, 1_801, 1_900), 3_600.0, 0.001);
    let refilled = Nanos::from_secs(1_900 + 24 * 3_600);
    assert!(instance.io_balance(refilled).unwrap() > 0.999, "a day refills the burst");
}

#[test]
fn a_stripe_of_four_is_four_volumes() {
    let mut one = Array::single(gp3(3_000, 125), T0).unwrap();
    let mut four = Array::striped(vec![gp3(3_000, 125); 4], 256 << 10, T0).unwrap();
    assert_eq!(four.size_bytes(), 4 * one.size_bytes());
    let end = Nanos::from_secs(22);
    let single = drive(&mut one, &Load::random(Op::Read, 16, 32), T0, end, None);
    let striped = drive(&mut four, &Load::random(Op::Read, 16, 512), T0, end, None);
    assert_within(rate(&striped, 2, 22), 4.0 * rate(&single, 2, 22), 0.002);
}

#[test]
fn an_io_over_several_chunks_completes_with_its_last_part() {
    let mut pair = Array::striped(vec![gp3(100, 1_000); 2], 4096, T0).unwrap();
    let mut rng = rng(3);
    for second in 0..10 {
        let io = ebbtide_volume::Io { op: Op::Write, offset: 0, len: 16 << 10 };
        let grant = pair.submit(io, Nanos::from_secs(second), &mut rng, None);
        assert!(grant.completes >= Nanos::from_secs(second));
        assert_eq!(grant.bytes, 16 << 10);
    }
    let stats = pair.stats(Nanos::from_secs(100));
    assert_eq!((stats.write.bytes, stats.queue), (10 * (16 << 10), 0));
}

#[test]
fn a_modification_moves_the_cap_from_source_to_target() {
    let mut volume = Volume::new(gp3(3_000, 1_000), T0).unwrap();
    let mut target = gp3(9_000, 1_000);
    target.size_bytes *= 2;
    volume.modify(Modification {
        source: volume.limits().clone(),
        target: target.clone(),
        started: T0,
        optimizing: Nanos::from_secs(10),
        completes: Nanos::from_secs(110),
    });
    let rate_at = |volume: &mut Volume, s: u64| {
        volume.advance(Nanos::from_secs(s));
        volume.limits().iops.unwrap().rate
    };
    assert_eq!(rate_at(&mut volume, 5), 3_000);
    assert_eq!(volume.limits().size_bytes, target.size_bytes / 2);
    assert_eq!(rate_at(&mut volume, 60), 6_000);
    assert_eq!(volume.limits().size_bytes, target.size_bytes);
    assert_eq!(rate_at(&mut volume, 110), 9_000);
    assert_eq!(volume.limits(), &target);
}

#[test]
fn a_slow_station_queues_what_it_cannot_serve() {
    let mut limits = unlimited();
    let seek = ebbtide_volume::QuantileCurve::constant(Nanos::from_ms(5));
    limits.service = ebbtide_volume::ServiceTimes {
        read: seek.clone(),
        write: seek,
        parallelism: Some(1),
        ..ebbtide_volume::ServiceTimes::instant()
    };
    let mut disk = Array::single(limits, T0).unwrap();
    let done = drive(&mut disk, &Load::random(Op::Read, 16, 8), T0, Nanos::from_secs(20), None);
    assert_within(rate(&done, 1, 20), 200.0, 0.001);
    assert_within(percentile(&done, 0.5).as_secs_f64(), 0.040, 0.001);
}

#[test]
fn a_big_gp2_has_no_burst_and_keeps_its_credits() {
    let mut volume = Array::single(gp2(2_000), T0).unwrap();
    let done = drive(&mut volume, &Load::random(Op::Read, 4, 32), T0, Nanos::from_secs(30), None);
    assert_within(rate(&done, 1, 30), 6_000.0, 0.001);
    assert_eq!(volume.credit_share(Nanos::from_secs(30)), None);
}

#[test]
fn a_stripe_keeps_units_whole_that_its_chunks_do_not_split() {
    let mut member = unlimited();
    member.durability.volatile_cache_bytes = MIB;
    let stripe = |members: usize, chunk_kib: u64| {
        let all = vec![member.clone(); members];
        Array::striped(all, chunk_kib << 10, T0).unwrap().durability()
    };
    for (members, chunk_kib, unit) in
        [(1, 4, 16), (2, 4, 4), (2, 8, 4), (2, 20, 4), (2, 16, 16), (2, 512, 16)]
    {
        let durability = stripe(members, chunk_kib);
        assert_eq!(
            durability.atomic_unit.bytes(),
            unit << 10,
            "{members} members, chunks of {chunk_kib} KiB"
        );
        assert_eq!(durability.volatile_cache_bytes, MIB * members as u64, "each has its own cache");
    }
}
