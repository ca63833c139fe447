//! Device tiers: arm and platters of a disk, stations of flash, and flushes that are served alone.

use std::{cmp::Reverse, collections::BinaryHeap};

use ebbtide_volume::{
    Array, GIB, Io, Limits, LimitsError, MIB, Mechanics, Nanos, Op, QuantileCurve, ServiceTimes,
};
use rand_core::Rng;

use crate::support::{Load, SEED, assert_within, drive, percentile, rate, rng, unlimited};

const T0: Nanos = Nanos::ZERO;
const TURN: Nanos = Nanos::from_ms(4);
const SETTLE: Nanos = Nanos::from_us(300);
const FULL_STROKE: Nanos = Nanos::from_us(5_200);
const CAPACITY: u64 = 500 * GIB;
/// 200 MB/s: a track holds 800,000 bytes.
const PS_PER_BYTE: u32 = 5_000;
const TRACK: u64 = 800_000;
const OVERHEAD: Nanos = Nanos::from_us(20);

/// A disk of 15,000 turns a minute.
fn disk(size_bytes: u64) -> Limits {
    let mechanics = Mechanics {
        turn: TURN,
        settle: SETTLE,
        full_stroke: FULL_STROKE,
        capacity_bytes: CAPACITY,
        queue: 64,
    };
    let service = ServiceTimes {
        read: QuantileCurve::constant(OVERHEAD),
        write: QuantileCurve::constant(OVERHEAD),
        transfer_ps_per_byte: PS_PER_BYTE,
        parallelism: Some(1),
        mechanics: Some(mechanics),
        sequential: Some(QuantileCurve::constant(Nanos::from_us(50))),
        ..ServiceTimes::instant()
    };
    Limits { size_bytes, service, ..unlimited() }
}

fn array(limits: &Limits) -> Array {
    Array::single(limits.clone(), T0).unwrap()
}

/// Seconds of a random 4 KiB I/O on a share of the disk: mean seek, half a turn, transfer, electronics.
fn alone_s(share: f64) -> f64 {
    let rise = (FULL_STROKE.0 - SETTLE.0) as f64;
    let seek = SETTLE.0 as f64 + rise * share.sqrt() * 8.0 / 15.0;
    (seek + (TURN.0 / 2 + OVERHEAD.0) as f64) / 1e9 + 4096.0 * f64::from(PS_PER_BYTE) / 1e12
}

/// I/Os a second of 4 KiB at places drawn from the seed.
fn iops(limits: &Limits, op: Op, depth: usize) -> f64 {
    const COUNT: u32 = 20_000;
    let (mut disk, mut rng) = (array(limits), rng(SEED));
    let mut slots: BinaryHeap<_> = (0..depth).map(|_| Reverse(T0)).collect();
    let mut last = T0;
    for _ in 0..COUNT {
        let Reverse(now) = slots.pop().unwrap();
        let io = Io { op, offset: rng.next_u64() % (limits.size_bytes / 4096) * 4096, len: 4096 };
        last = disk.submit(io, now, &mut rng, None).completes;
        slots.push(Reverse(last));
    }
    f64::from(COUNT) / last.as_secs_f64()
}

#[test]
fn a_disk_alone_takes_a_mean_seek_and_half_a_turn() {
    for (share, size) in [(1.0, CAPACITY), (0.25, CAPACITY / 4), (0.04, CAPACITY / 25)] {
        for op in [Op::Read, Op::Write] {
            assert_within(iops(&disk(size), op, 1), 1.0 / alone_s(share), 0.03);
        }
    }
}

#[test]
fn the_queue_of_a_disk_saves_positioning() {
    let whole = disk(CAPACITY);
    let depths = [1, 2, 4, 8, 16, 32, 64].map(|depth| iops(&whole, Op::Read, depth));
    assert!((depths[1] / depths[0] - 1.0).abs() < 0.03, "of two, one is being served: {depths:.0?}");
    assert!(depths[1..].windows(2).all(|pair| pair[1] > pair[0] * 1.05), "{depths:.0?}");
    assert!((2.0..3.2).contains(&(depths[5] / depths[0])), "at depth 32: {depths:.0?}");
    let mut short = disk(CAPACITY);
    let mechanics = Mechanics { queue: 1, ..short.service.mechanics.unwrap() };
    short.service.mechanics = Some(mechanics);
    assert_within(iops(&short, Op::Read, 32), depths[0], 0.03);
}

#[test]
fn the_time_of_a_seek_is_that_of_its_distance() {
    let mut rng = rng(SEED);
    // Whole tracks: every one of these begins at the same angle.
    let mut seek = |distance: u64| {
        let mut disk = array(&disk(CAPACITY));
        let mut at =
            |offset, now| disk.submit(Io { op: Op::Write, offset, len: 4096 }, now, &mut rng, None).completes;
        let first = at(0, T0);
        at(distance / TRACK * TRACK, first).since(first)
    };
    let near = seek(2 * TRACK);
    let far = seek(CAPACITY - MIB * 64);
    // Both wait for the same angle, so each takes whole turns, and a far one more of them.
    assert_within(near.as_secs_f64(), TURN.as_secs_f64(), 0.01);
    assert_within(far.as_secs_f64(), 2.0 * TURN.as_secs_f64(), 0.01);
}

#[test]
fn a_log_that_is_synced_by_block_writes_one_block_a_turn() {
    let limits = disk(CAPACITY);
    let done = drive(&mut array(&limits), &Load::sequential(Op::Write, 4, 1), T0, Nanos::from_secs(10), None);
    assert_within(rate(&done, 1, 10), 250.0, 0.01);
    // Where the next write waits already, the platter need not come round again.
    let done =
        drive(&mut array(&limits), &Load::sequential(Op::Write, 64, 2), T0, Nanos::from_secs(10), None);
    assert_within(rate(&done, 1, 10) * 65_536.0, 200e6, 0.01);
    // Reads come from what was read ahead.
    let done = drive(&mut array(&limits), &Load::sequential(Op::Read, 64, 1), T0, Nanos::from_secs(10), None);
    assert_within(percentile(&done, 0.5).as_secs_f64(), 50e-6 + 65_536.0 / 200e6, 0.01);
}

#[test]
fn a_disk_that_cannot_be_is_refused() {
    let check = |change: fn(&mut ServiceTimes)| {
        let mut limits = disk(CAPACITY);
        change(&mut limits.service);
        limits.check()
    };
    let arm = |change: fn(&mut Mechanics)| {
        let mut limits = disk(CAPACITY);
        change(limits.service.mechanics.as_mut().unwrap());
        limits.check()
    };
    assert_eq!(check(|_| ()), Ok(()));
    assert_eq!(check(|service| service.parallelism = Some(2)), Err(LimitsError::ParallelArm));
    assert_eq!(check(|service| service.parallelism = None), Err(LimitsError::ParallelArm));
    assert_eq!(check(|service| service.write_parallelism = Some(1)), Err(LimitsError::ParallelArm));
    assert_eq!(check(|service| service.write_parallelism = Some(0)), Err(LimitsError::ZeroParallelism));
    assert_eq!(check(|service| service.flush_alone = true), Err(LimitsError::FlushAlone));
    assert_eq!(check(|service| service.transfer_ps_per_byte = 0), Err(LimitsError::Mechanics));
    assert_eq!(arm(|arm| arm.turn = T0), Err(LimitsError::Mechanics));
    assert_eq!(arm(|arm| arm.queue = 0), Err(LimitsError::Mechanics));
    assert_eq!(arm(|arm| arm.capacity_bytes = 0), Err(LimitsError::Mechanics));
    assert_eq!(arm(|arm| arm.full_stroke = Nanos::from_us(299)), Err(LimitsError::Mechanics));
}

/// Flash with ten stations of 100 us for reads and two of 40 us for writes.
fn flash() -> Limits {
    let service = ServiceTimes {
        read: QuantileCurve::constant(Nanos::from_us(100)),
        write: QuantileCurve::constant(Nanos::from_us(40)),
        flush: QuantileCurve::constant(Nanos::from_ms(2)),
        parallelism: Some(10),
        write_parallelism: Some(2),
        ..ServiceTimes::instant()
    };
    Limits { service, ..unlimited() }
}

#[test]
fn iops_rise_with_the_depth_up_to_the_stations_and_latency_beyond() {
    let time = |op, depth| {
        let done = drive(&mut array(&flash()), &Load::random(op, 4, depth), T0, Nanos::from_secs(3), None);
        let us = done.iter().map(|(_, latency)| latency.as_secs_f64() * 1e6).sum::<f64>() / done.len() as f64;
        (rate(&done, 1, 3), us)
    };
    for (op, stations, us) in [(Op::Read, 10.0, 100.0), (Op::Write, 2.0, 40.0)] {
        for depth in [1_u32, 2, 5, 10, 20, 40] {
            let depth_f = f64::from(depth);
            let (iops, latency) = time(op, depth as usize);
            assert_within(iops, f64::min(depth_f, stations) / us * 1e6, 0.001);
            assert_within(latency, us * f64::max(1.0, depth_f / stations), 0.001);
        }
    }
}

#[test]
fn a_flush_that_is_served_alone_waits_and_is_waited_for() {
    let mut rng = rng(SEED);
    let submit = |array: &mut Array, op, offset: u64, rng: &mut _| {
        array.submit(Io { op, offset: offset << 20, len: 4096 }, T0, rng, None).completes
    };
    for alone in [false, true] {
        let mut limits = flash();
        limits.service.flush_alone = alone;
        let mut ssd = array(&limits);
        submit(&mut ssd, Op::Read, 1, &mut rng);
        let flushed = submit(&mut ssd, Op::Flush, 0, &mut rng);
        let read = submit(&mut ssd, Op::Read, 5, &mut rng);
        let written = submit(&mut ssd, Op::Write, 9, &mut rng);
        let us = [flushed, read, written].map(Nanos::as_us);
        let wanted = if alone { [2_100, 2_200, 2_140] } else { [2_000, 100, 40] };
        assert_eq!(us, wanted, "alone: {alone}");
    }
}
