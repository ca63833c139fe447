//! Sequential streams and loads below a limit: what is merged, what waits, and what more depth gives.

use std::{cmp::Reverse, collections::BinaryHeap};

use ebbtide_volume::{
    Array, Instance, InstanceLimits, Io, Limits, MIB, Nanos, Op, QuantileCurve, RateLimit, ServiceTimes,
};
use proptest::prelude::*;

use crate::support::{assert_within, gp2, gp3, rng, st1, unlimited, with_service};

const T0: Nanos = Nanos::ZERO;
const DEPTHS: [usize; 12] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 17, 24, 32];

/// Sequential streams, each kept at a depth.
#[derive(Debug, Clone, Copy)]
struct Streams {
    op: Op,
    len: u32,
    number: u64,
    depth: usize,
}

impl Streams {
    const fn writes(kib: u32, depth: usize) -> Self {
        Self { op: Op::Write, len: kib << 10, number: 1, depth }
    }
}

/// I/Os a second of a closed loop from one second to another; it begins at zero.
fn iops(
    array: &mut Array,
    streams: Streams,
    (from, to): (u64, u64),
    mut instance: Option<&mut Instance>,
) -> f64 {
    let mut rng = rng(1);
    let (begin, end) = (Nanos::from_secs(from), Nanos::from_secs(to));
    // As many places as streams, none of which reaches the next one.
    let mut next: Vec<u64> = (0..streams.number).map(|stream| stream << 37).collect();
    let slots = (0..streams.number).flat_map(|stream| vec![(T0, stream); streams.depth]);
    let mut free: BinaryHeap<_> = slots.map(Reverse).collect();
    let mut done = 0_u64;
    while let Some(Reverse((now, stream))) = free.pop().filter(|Reverse((now, _))| *now < end) {
        let offset = &mut next[usize::try_from(stream).unwrap()];
        let io = Io { op: streams.op, offset: *offset, len: streams.len };
        *offset += u64::from(streams.len);
        let completes = array.submit(io, now, &mut rng, instance.as_deref_mut()).completes;
        done += u64::from(completes > begin && completes <= end);
        free.push(Reverse((completes, stream)));
    }
    done as f64 / (to - from) as f64
}

fn single(limits: &Limits, credits: f64) -> Array {
    let mut array = Array::single(with_service(limits.clone()), T0).unwrap();
    array.set_credit_share(credits, T0);
    array
}

fn io1(iops: u64) -> Limits {
    let throughput = Some(RateLimit::flat(128 * MIB));
    Limits { iops: Some(RateLimit::flat(iops)), throughput, ..unlimited() }
}

/// A gp2 of 100 GiB: 128 MiB/s.
fn small_gp2() -> Limits {
    Limits { throughput: Some(RateLimit::flat(128 * MIB)), ..gp2(100) }
}

/// A gp3 that has used its first second: what a load just above the limit takes of it, lasts for a minute.
fn spent_gp3(iops: u64, mib_s: u64) -> Limits {
    let throughput = Some(RateLimit::flat(mib_s * MIB));
    Limits { iops: Some(RateLimit::flat(iops)), throughput, ..unlimited() }
}

/// A cold disk of 125 GiB: 1.5 MiB/s, 10 with credits.
fn small_sc1() -> Limits {
    let throughput = RateLimit { rate: 3 * MIB / 2, ceiling: 10 * MIB, allowance: 0, credits: 125 << 30 };
    Limits { throughput: Some(throughput), ..st1(1) }
}

#[test]
fn a_limit_of_300_operations_takes_300_ios_for_each_that_wait_together() {
    for depth in [1_u32, 2, 3, 4, 6, 8, 16] {
        let streams = Streams::writes(16, depth as usize);
        let wanted = f64::from(depth) * 300.0;
        assert_within(iops(&mut single(&small_gp2(), 0.0), streams, (2, 62), None), wanted, 0.01);
        assert_within(iops(&mut single(&io1(300), 0.0), streams, (2, 62), None), wanted, 0.01);
    }
    // 256 KiB are 16 of them, and no more of them are one operation.
    assert_within(iops(&mut single(&io1(300), 0.0), Streams::writes(16, 64), (2, 62), None), 4_800.0, 0.01);
}

#[test]
fn a_stream_that_the_bytes_limit_is_as_fast_as_they_allow_from_depth_eight_on() {
    for depth in [8, 16, 32, 64] {
        let rate = iops(&mut single(&gp3(3_000, 125), 1.0), Streams::writes(16, depth), (6, 16), None);
        assert_within(rate, 8_000.0, 0.002);
    }
}

#[test]
fn credits_fall_while_a_stream_takes_more_operations_than_the_baseline() {
    for members in [1, 2] {
        for depth in [2, 4, 16] {
            let limits = vec![with_service(small_gp2()); members];
            let mut array = Array::striped(limits, 512 << 10, T0).unwrap();
            array.set_credit_share(0.05, T0);
            let mut before = 0.05;
            for second in 1..=20 {
                let mut after = array.clone();
                let rate = iops(&mut after, Streams::writes(16, depth), (0, second), None);
                let share = after.credit_share(Nanos::from_secs(second)).unwrap();
                assert!(
                    share < before,
                    "{members} members at depth {depth}: {share} after {before}, {rate} IOPS"
                );
                before = share;
            }
        }
    }
}

/// Submits I/Os at an even rate, each stream in its turn; the longest wait for a limit after a second.
fn longest_wait(array: &mut Array, streams: Streams, a_second: u64, seconds: u64) -> Nanos {
    let mut rng = rng(1);
    let mut longest = T0;
    for number in 0..a_second * seconds {
        let now = Nanos(number * 1_000_000_000 / a_second);
        let (stream, step) = (number % streams.number, number / streams.number);
        let offset = (stream << 37) + step * u64::from(streams.len);
        let grant = array.submit(Io { op: streams.op, offset, len: streams.len }, now, &mut rng, None);
        if now >= Nanos::SECOND {
            longest = longest.max(grant.completes.since(grant.unthrottled));
        }
    }
    longest
}

#[test]
fn a_stream_far_below_the_limit_of_a_disk_waits_for_nothing() {
    // 0.39 of 1.5 MiB/s without credits, as 4 KiB and as 256 KiB; 25 of 250 MiB/s with them.
    for (limits, credits, kib, a_second) in [
        (small_sc1(), 0.0, 4, 100),
        (small_sc1(), 0.0, 256, 2),
        (st1(1), 1.0, 64, 400),
        (st1(1), 1.0, 1024, 25),
    ] {
        for op in [Op::Read, Op::Write] {
            let streams = Streams { op, len: kib << 10, number: 1, depth: 1 };
            let wait = longest_wait(&mut single(&limits, credits), streams, a_second, 60);
            assert_eq!(wait, T0, "{kib} KiB, {a_second} a second");
        }
    }
}

#[test]
fn a_closed_loop_on_a_disk_runs_at_its_service_times_below_the_limit() {
    // 4 KiB in 568 us on average: 55 MiB/s at depth 8, of 250.
    let limited = iops(&mut single(&st1(1), 1.0), Streams::writes(4, 8), (0, 20), None);
    let unlimited = Limits { throughput: None, ..st1(1) };
    let free = iops(&mut single(&unlimited, 1.0), Streams::writes(4, 8), (0, 20), None);
    assert_within(limited, free, 0.001);
}

#[test]
fn a_stream_above_the_limit_of_a_disk_moves_what_that_gives_and_evenly() {
    let mut disk = single(&st1(1), 0.0);
    let rate = iops(&mut disk, Streams::writes(64, 16), (2, 22), None);
    assert_within(rate * 64.0 / 1_024.0, 40.0, 0.001);
    // 16 of 64 KiB at 40 MiB/s: 25 ms for each, and none waits for a whole MiB of another.
    let mut disk = single(&st1(1), 0.0);
    let mut rng = rng(1);
    let mut free: BinaryHeap<_> = [T0; 16].map(Reverse).into_iter().collect();
    for number in 0..5_000_u64 {
        let Reverse(now) = free.pop().unwrap();
        let io = Io { op: Op::Read, offset: number << 16, len: 64 << 10 };
        let completes = disk.submit(io, now, &mut rng, None).completes;
        let waited = completes.since(now).as_secs_f64();
        assert!(number < 100 || (0.024..0.026).contains(&waited), "I/O {number}: {waited}");
        free.push(Reverse(completes));
    }
}

fn any_volume() -> impl Strategy<Value = (Limits, f64)> {
    let limits = prop_oneof![
        Just(small_gp2()),
        (30_u64..1_000).prop_map(gp2),
        (100_u64..6_000).prop_map(io1),
        Just(spent_gp3(3_000, 125)),
        (3_000_u64..16_000, 125_u64..750).prop_map(|(iops, mib_s)| spent_gp3(iops, mib_s)),
        (1_u64..8).prop_map(st1),
        Just(small_sc1()),
    ];
    (limits, prop_oneof![Just(0.0), Just(0.05), Just(1.0)])
}

fn any_streams() -> impl Strategy<Value = Streams> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write)];
    let kib =
        prop_oneof![Just(4_u32), Just(16), Just(64), Just(128), Just(192), Just(256), Just(384), Just(1_024)];
    (op, kib, 1_u64..4).prop_map(|(op, kib, number)| Streams { op, len: kib << 10, number, depth: 1 })
}

fn any_instance() -> impl Strategy<Value = Option<InstanceLimits>> {
    let limits = (200_u64..6_000, 10_u64..200).prop_map(|(iops, mib_s)| InstanceLimits {
        iops: RateLimit::flat(iops),
        throughput: RateLimit::flat(mib_s * MIB),
    });
    prop_oneof![2 => Just(None), 1 => limits.prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn more_depth_never_gives_fewer_ios(
        (limits, credits) in any_volume(), streams in any_streams(), instance in any_instance(),
    ) {
        let mut most = 0.0_f64;
        // What a slow disk has in flight takes it two seconds.
        let is_slow = limits.throughput.is_some_and(|limit| limit.rate < 4 * MIB);
        let span = if is_slow { (6, 66) } else { (1, 11) };
        for depth in DEPTHS {
            let mut instance = instance.map(Instance::new);
            let streams = Streams { depth, ..streams };
            let rate = iops(&mut single(&limits, credits), streams, span, instance.as_mut());
            prop_assert!(rate >= most * 0.98 - 0.2, "{rate} at depth {depth} after {most}");
            most = most.max(rate);
        }
    }

    /// On an array a chunk's end leaves an operation with fewer I/Os than it could have: which depth it suits, varies.
    #[test]
    fn more_depth_gives_hardly_fewer_ios_on_an_array(
        (limits, credits) in any_volume(), streams in any_streams(), members in 2_usize..4,
    ) {
        let mut most = 0.0_f64;
        for depth in DEPTHS {
            let mut array = Array::striped(vec![with_service(limits.clone()); members], 512 << 10, T0).unwrap();
            array.set_credit_share(credits, T0);
            let rate = iops(&mut array, Streams { depth, ..streams }, (1, 11), None);
            prop_assert!(rate >= most * 0.9 - 0.2, "{rate} at depth {depth} after {most}");
            most = most.max(rate);
        }
    }

    #[test]
    fn how_a_run_begins_does_not_decide_it(
        iops_limit in 100_u64..2_000, streams in any_streams(), depth in 1_usize..24,
    ) {
        let streams = Streams { depth, ..streams };
        // One that was idle before, and one whose limit has a backlog of a second.
        let mut idle = single(&io1(iops_limit), 1.0);
        let mut busy = idle.clone();
        let mut rng = rng(2);
        for number in 0..iops_limit {
            busy.submit(Io { op: Op::Read, offset: (1 << 39) + (number << 22), len: 4096 }, T0, &mut rng, None);
        }
        let rates = [&mut idle, &mut busy].map(|array| iops(array, streams, (4, 24), None));
        prop_assert!((rates[0] / rates[1] - 1.0).abs() <= 0.02, "{rates:?}");
    }

    #[test]
    fn two_types_with_one_limit_give_one_figure(gib in 34_u64..200, streams in any_streams(), depth in 1_usize..24) {
        let gp2 = Limits { throughput: Some(RateLimit::flat(128 * MIB)), ..gp2(gib) };
        let streams = Streams { depth, ..streams };
        let without = iops(&mut single(&gp2, 0.0), streams, (4, 24), None);
        let flat = iops(&mut single(&io1(3 * gib), 0.0), streams, (4, 24), None);
        // Slow I/Os leave slots unused. A gp2 saves them up, and an io1 does not: the more, the higher the limit.
        prop_assert!(without >= flat * 0.98 && without <= flat * 1.02 + 1.0, "{without} and {flat}");
    }

    /// Where every I/O takes equally long, no slot is left unused, and there is nothing that a gp2 could save up.
    #[test]
    fn two_types_with_one_limit_are_equal_where_no_io_is_slow(
        gib in 34_u64..1_000, streams in any_streams(), depth in 1_usize..24, us in 100_u64..900,
    ) {
        let even = |limits: Limits| {
            let curve = QuantileCurve::constant(Nanos::from_us(us));
            let service = ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() };
            let mut array = Array::single(Limits { service, ..limits }, T0).unwrap();
            array.set_credit_share(0.0, T0);
            array
        };
        let gp2 = Limits { throughput: Some(RateLimit::flat(128 * MIB)), ..gp2(gib) };
        let streams = Streams { depth, ..streams };
        let without = iops(&mut even(gp2), streams, (4, 14), None);
        let flat = iops(&mut even(io1(3 * gib)), streams, (4, 14), None);
        prop_assert!((without - flat).abs() <= flat * 0.002 + 0.2, "{without} and {flat}");
    }

    #[test]
    fn an_even_stream_below_eight_tenths_of_a_limit_waits_for_nothing(
        (limits, credits) in any_volume(), streams in any_streams(), share in 0.05_f64..0.8,
    ) {
        let (credits, number) = (credits.max(0.05), 1);
        let streams = Streams { number, ..streams };
        let mut array = single(&limits, credits);
        let bytes = limits.throughput.map_or(f64::MAX, |limit| limit.ceiling as f64);
        let operations = limits.iops.map_or(f64::MAX, |limit| limit.ceiling as f64);
        let units = f64::from(streams.len.div_ceil(limits.accounting.unit_bytes));
        let most = (bytes / f64::from(streams.len)).min(operations / units) * share;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
        let a_second = most as u64;
        prop_assume!(a_second > 0);
        prop_assert_eq!(longest_wait(&mut array, streams, a_second, 5), T0);
        let stats = array.stats(Nanos::from_secs(5));
        prop_assert_eq!((stats.volume_iops_exceeded, stats.volume_throughput_exceeded), (T0, T0));
    }
}
