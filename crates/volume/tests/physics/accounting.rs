//! How I/O is counted: splitting, merging, whole units.

use ebbtide_volume::{Array, Io, Nanos, Op};

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
    assert_eq!(operations(&mut ssd(), &contiguous), [1, 0, 0, 0, 0, 0, 0, 0, 1]);
    let random: Vec<_> = (0..8).map(|n| ((n * 96) << 10, 32 << 10)).collect();
    assert_eq!(operations(&mut ssd(), &random), [1; 8]);
}

#[test]
fn two_interleaved_streams_are_both_merged() {
    let two: Vec<_> = (0..8).map(|n: u64| ((n % 2) << 30 | (n / 2 * 64) << 10, 64 << 10)).collect();
    assert_eq!(operations(&mut ssd(), &two).iter().sum::<u64>(), 2);
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
    assert_eq!(operations(&mut ssd(), &ios), [1, 1, 0, 1]);
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
