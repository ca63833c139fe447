//! How I/O is counted: splitting, merging, whole units.

use ebbtide_volume::{Array, Io, Limits, Nanos, Op, RateLimit};

use crate::support::{Load, PAGE, assert_within, drive, gp3, rate, rng, st1, unlimited, with_service};

const T0: Nanos = Nanos::ZERO;

fn operations(array: &mut Array, ios: &[(u64, u32)]) -> Vec<u64> {
    let mut rng = rng(1);
    let submit = |&(offset, len): &(u64, u32)| {
        array.submit(Io { op: Op::Read, offset, len }, T0, &mut rng, None).operations
    };
    ios.iter().map(submit).collect()
}

fn ssd() -> Array {
    Array::single(with_service(unlimited()), T0).unwrap()
}

/// An SSD volume whose limit covers nothing more for an hour.
fn waiting_ssd() -> Array {
    let limits = Limits { iops: Some(RateLimit::flat(1)), ..unlimited() };
    let mut array = Array::single(with_service(limits), T0).unwrap();
    let mut rng = rng(1);
    for n in 0..3_600 {
        array.submit(Io { op: Op::Read, offset: (1 << 39) + (n << 20), len: 4096 }, T0, &mut rng, None);
    }
    array
}

#[test]
fn a_large_io_is_split_at_the_units_size() {
    assert_eq!(operations(&mut ssd(), &[(0, 1 << 20)]), [4], "1,024 KiB on SSD are four operations");
    assert_eq!(operations(&mut ssd(), &[(0, 256 << 10)]), [1]);
    assert_eq!(operations(&mut ssd(), &[(0, (256 << 10) + 512)]), [2]);
    let mut hdd = Array::single(st1(1), T0).unwrap();
    assert_eq!(operations(&mut hdd, &[(0, 1 << 20)]), [1], "and one on HDD");
}

#[test]
fn eight_contiguous_ios_of_32_kib_are_one_operation() {
    let contiguous: Vec<_> = (0..9).map(|n| ((n * 32) << 10, 32 << 10)).collect();
    assert_eq!(operations(&mut waiting_ssd(), &contiguous), [1, 0, 0, 0, 0, 0, 0, 0, 1]);
    let random: Vec<_> = (0..8).map(|n| ((n * 96) << 10, 32 << 10)).collect();
    assert_eq!(operations(&mut waiting_ssd(), &random), [1; 8]);
}

#[test]
fn an_ssd_merges_nothing_where_nothing_waits() {
    let contiguous: Vec<_> = (0..8).map(|n| ((n * 32) << 10, 32 << 10)).collect();
    assert_eq!(operations(&mut ssd(), &contiguous), [1; 8], "no limit");
    // The first of these begins at once. The second waits for what it cost, and the others wait with it.
    let limits = Limits { iops: Some(RateLimit::flat(100)), ..unlimited() };
    let mut volume = Array::single(with_service(limits), T0).unwrap();
    assert_eq!(operations(&mut volume, &contiguous), [1, 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn an_io_joins_no_operation_that_is_being_served() {
    let limits = Limits { iops: Some(RateLimit::flat(1_000)), ..unlimited() };
    let mut volume = Array::single(with_service(limits), T0).unwrap();
    let mut rng = rng(3);
    let mut submit = |number: u64, us: u64| {
        let io = Io { op: Op::Write, offset: number * 4096, len: 4096 };
        volume.submit(io, Nanos::from_us(us), &mut rng, None)
    };
    // The second waits until 1 ms. It is served until later than that.
    let costs = [(0, 0), (1, 900), (2, 950), (3, 999), (4, 1_000)].map(|(number, us)| submit(number, us));
    assert_eq!(costs.map(|grant| grant.operations), [1, 1, 0, 0, 1]);
    let served = costs.map(|grant| grant.completes);
    assert!(served[1] > Nanos::from_us(1_100), "{served:?}: it is in flight when the last one comes");
}

#[test]
fn what_joins_an_operation_is_covered_when_that_is() {
    let limits = Limits { iops: Some(RateLimit::flat(100)), ..unlimited() };
    let mut volume = Array::single(limits, T0).unwrap();
    let mut rng = rng(3);
    let mut submit = |place: u64| {
        let io = Io { op: Op::Read, offset: place << 12, len: 4096 };
        volume.submit(io, T0, &mut rng, None).completes.0 / 1_000_000
    };
    // Two random ones, one that begins a stream, two more random ones, and one that joins the stream.
    assert_eq!([900, 800, 1, 700, 600, 2].map(&mut submit), [0, 10, 20, 30, 40, 20]);
}

#[test]
fn two_interleaved_streams_are_both_merged() {
    let two: Vec<_> = (0..8).map(|n: u64| ((n % 2) << 30 | (n / 2 * 64) << 10, 64 << 10)).collect();
    assert_eq!(operations(&mut waiting_ssd(), &two).iter().sum::<u64>(), 2);
}

#[test]
fn the_chunks_of_an_io_on_one_member_are_one_operation() {
    // Chunks of 16 KiB: 32 of this I/O follow each other on each member.
    let mut pair = Array::striped(vec![with_service(unlimited()); 2], 16 << 10, T0).unwrap();
    assert_eq!(operations(&mut pair, &[(0, 1 << 20)]), [4], "512 KiB on each member");
    let stats = pair.stats(Nanos::SECOND);
    assert_eq!((stats.read.ops, stats.read.bytes), (2, 1 << 20));
}

#[test]
fn an_ssd_does_not_merge_with_what_has_already_completed() {
    let mut volume = ssd();
    let mut rng = rng(2);
    let mut now = T0;
    for n in 0..100 {
        let io = Io { op: Op::Write, offset: n * 4096, len: 4096 };
        let grant = volume.submit(io, now, &mut rng, None);
        assert_eq!(grant.operations, 1, "a synchronous log write pays for itself");
        now = grant.completes;
    }
}

#[test]
fn an_io_that_outgrows_its_unit_begins_the_next() {
    // 192 KiB used of 256: the next 128 KiB fill the unit and begin another, which then has 192 left.
    let ios = [(0, 192 << 10), (192 << 10, 128 << 10), (320 << 10, 192 << 10), (512 << 10, 4096)];
    assert_eq!(operations(&mut waiting_ssd(), &ios), [1, 1, 0, 1]);
}

#[test]
fn sequential_small_io_is_bound_by_bytes_where_random_is_bound_by_operations() {
    let end = Nanos::from_secs(22);
    let mut volume = Array::single(with_service(gp3(3_000, 125)), T0).unwrap();
    let done = drive(&mut volume, &Load::sequential(Op::Read, 16, 64), T0, end, None);
    assert_within(rate(&done, 2, 22) * f64::from(PAGE), 125.0 * f64::from(1 << 20), 0.002);
    let mut volume = Array::single(with_service(gp3(3_000, 125)), T0).unwrap();
    let done = drive(&mut volume, &Load::random(Op::Read, 16, 64), T0, end, None);
    assert_within(rate(&done, 2, 22), 3_000.0, 0.001);
}

#[test]
fn a_read_does_not_merge_with_an_adjacent_write() {
    let mut volume = ssd();
    let mut rng = rng(5);
    let first = volume.submit(Io { op: Op::Write, offset: 0, len: 4096 }, T0, &mut rng, None);
    let second = volume.submit(Io { op: Op::Read, offset: 4096, len: 4096 }, T0, &mut rng, None);
    assert_eq!((first.operations, second.operations), (1, 1));
}

#[test]
fn requests_of_a_stream_that_overtake_each_other_cost_no_more() {
    // A 16 MiB scan in requests of 256 KiB, each swapped with one up to three places later.
    let mut order: Vec<u64> = (0..64).collect();
    for n in (0..60).step_by(3) {
        order.swap(usize::try_from(n).unwrap(), usize::try_from(n + 1 + n % 3).unwrap());
    }
    let scan: Vec<_> = order.iter().map(|&n| ((n * 256) << 10, 256 << 10)).collect();
    let mut hdd = Array::single(st1(1), T0).unwrap();
    let cost: u64 = operations(&mut hdd, &scan).iter().sum();
    assert!((16..=18).contains(&cost), "16 MiB of a scan cost {cost} operations of 1 MiB");
    assert_eq!(operations(&mut ssd(), &scan).iter().sum::<u64>(), 64, "256 KiB are a whole unit on SSD");
}

#[test]
fn streams_that_meet_become_one_and_nothing_is_paid_twice() {
    let mut hdd = Array::single(st1(1), T0).unwrap();
    // The second quarter of a MiB comes first, the first closes the gap, and the rest is paid for.
    let kib = |n: u32| (u64::from(n) << 10, 256 << 10);
    assert_eq!(operations(&mut hdd, &[kib(256), kib(0), kib(512), kib(768), kib(1024)]), [1, 0, 0, 0, 1]);
}

/// Bytes that a throughput limit counts of reads.
fn bytes(array: &mut Array, ios: &[(u64, u32)]) -> Vec<u64> {
    let mut rng = rng(1);
    let submit = |&(offset, len): &(u64, u32)| {
        array.submit(Io { op: Op::Read, offset, len }, T0, &mut rng, None).bytes
    };
    ios.iter().map(submit).collect()
}

#[test]
fn a_stream_of_an_hdd_uses_the_mebibyte_that_it_began_with_and_then_pays_by_the_byte() {
    let mut hdd = Array::single(st1(1), T0).unwrap();
    let stream: Vec<_> = (0..6).map(|n| ((n * 256) << 10, 256 << 10)).collect();
    assert_eq!(bytes(&mut hdd, &stream), [1 << 20, 0, 0, 0, 256 << 10, 256 << 10]);
    // A random I/O costs whole MiB. What continues it uses the rest of them.
    assert_eq!(
        bytes(&mut hdd, &[(1 << 32, 4096), (1 << 33, 1536 << 10), ((1 << 33) + (1536 << 10), 768 << 10)]),
        [1 << 20, 2 << 20, 256 << 10]
    );
}

#[test]
fn streams_of_an_hdd_that_meet_pay_for_no_byte_twice() {
    let mut hdd = Array::single(st1(1), T0).unwrap();
    let part = |number: u64| ((number * 256) << 10, 256 << 10);
    let cost =
        bytes(&mut hdd, &[part(0), part(2), part(1), part(3), part(4), part(5), part(6), part(7), part(8)]);
    assert_eq!(cost, [1 << 20, 1 << 20, 0, 0, 0, 0, 0, 0, 256 << 10]);
}

#[test]
fn an_ssd_gives_nothing_back_for_what_had_completed_before_the_streams_met() {
    let mut volume = ssd();
    let mut rng = rng(6);
    let mut now = T0;
    for offset in [4096, 12288, 0, 8192, 1 << 30] {
        let grant = volume.submit(Io { op: Op::Write, offset, len: 4096 }, now, &mut rng, None);
        assert_eq!(grant.operations, 1, "the write at {offset} is alone in flight");
        now = grant.completes;
    }
}
