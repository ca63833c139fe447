//! Volumes from a snapshot: what the first touch of a block costs, and what the background loads.

use core::num::NonZeroU64;
use core::ops::Range;
use core::slice::from_ref;

use ebbtide_volume::{
    Array, ArrayError, GIB, Grant, Io, KIB, LOAD_BLOCK_BYTES, Limits, LoadProgress, LoadState, Loader, MIB,
    Nanos, Op, QuantileCurve, ServiceTimes,
};
use proptest::prelude::*;

use crate::support::{PAGE, rng, unlimited};

/// Blocks of the snapshot in an example.
const BLOCKS: u64 = 64;
const SIZE: u64 = BLOCKS * LOAD_BLOCK_BYTES;
const FIRST_TOUCH: Nanos = Nanos::from_ms(40);
const SERVICE: Nanos = Nanos::from_us(500);

fn loader(rate_mib_s: u64) -> Loader {
    let rate = NonZeroU64::new(rate_mib_s * MIB);
    Loader { first_touch: QuantileCurve::constant(FIRST_TOUCH), rate }
}

fn limits() -> Limits {
    let curve = QuantileCurve::constant(SERVICE);
    let service = ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() };
    Limits { size_bytes: SIZE, service, ..unlimited() }
}

/// A volume that is wholly in its snapshot; a rate of 0 is none.
fn restored(rate_mib_s: u64) -> Array {
    restored_with(rate_mib_s, from_ref(&(0..SIZE)))
}

fn restored_with(rate_mib_s: u64, data: &[Range<u64>]) -> Array {
    let mut array = Array::single(limits(), Nanos::ZERO).unwrap();
    let states = array.new_load_states(data, Nanos::ZERO);
    array.begin_loading(&loader(rate_mib_s), states).unwrap();
    array
}

fn block(number: u64) -> u64 {
    number * LOAD_BLOCK_BYTES
}

fn io(op: Op, offset: u64, len: u64) -> Io {
    Io { op, offset, len: u32::try_from(len).unwrap() }
}

/// How long an I/O takes.
fn took(array: &mut Array, op: Op, offset: u64, len: u64, now: Nanos) -> Nanos {
    array.submit(io(op, offset, len), now, &mut rng(1), None).completes.since(now)
}

fn progress(array: &Array, now: Nanos) -> LoadProgress {
    array.load_progress(now).unwrap()
}

const SLOW: Nanos = Nanos(FIRST_TOUCH.0 + SERVICE.0);

#[test]
fn the_first_touch_of_a_block_waits_for_it_and_no_later_one_does() {
    let mut array = restored(0);
    assert_eq!(took(&mut array, Op::Read, block(3) + 4096, 4096, Nanos::ZERO), SLOW);
    // On its way: who comes later waits for the same load.
    assert_eq!(took(&mut array, Op::Read, block(3), 4096, Nanos::from_ms(30)), Nanos(SLOW.0 - 30_000_000));
    assert_eq!(progress(&array, Nanos(FIRST_TOUCH.0 - 1)).missing, BLOCKS);
    assert_eq!(progress(&array, FIRST_TOUCH).missing, BLOCKS - 1);
    assert_eq!(took(&mut array, Op::Read, block(3), LOAD_BLOCK_BYTES, FIRST_TOUCH), SERVICE);
    assert_eq!(took(&mut array, Op::Read, block(4), 4096, FIRST_TOUCH), SLOW);
    // Without a rate nothing comes by itself.
    let later = progress(&array, Nanos::from_secs(1_000_000));
    assert_eq!((later.counts.touched, later.counts.background, later.missing), (2, 0, BLOCKS - 2));
    assert_eq!(later.completes, None);
}

#[test]
fn the_progress_is_that_of_the_state_that_is_kept() {
    for rate in [0, 4] {
        let mut array = restored(rate);
        took(&mut array, Op::Read, block(BLOCKS - 1), 4096, Nanos::ZERO);
        took(&mut array, Op::Write, block(2), LOAD_BLOCK_BYTES, Nanos::ZERO);
        for ms in [0, 1, 30, 100, 125, 400, 1_000, 60_000] {
            let now = Nanos::from_ms(ms);
            let (progress, kept) = (progress(&array, now), array.load_states(now).remove(0));
            assert_eq!((progress.missing, progress.counts), (kept.missing.len(), kept.counts), "{rate} {ms}");
            assert_eq!(progress.completes.is_some(), rate > 0 && progress.missing > 0, "{rate} {ms}");
        }
    }
}

#[test]
fn a_block_that_the_snapshot_does_not_have_is_there_at_once() {
    let mut array = restored_with(0, &[block(1)..block(1) + 4096, block(5) - 4096..block(6), 7..7]);
    let slow = |number| (block(number), [1, 4, 5].contains(&number));
    for (offset, waits) in (0..8).map(slow) {
        let wanted = if waits { SLOW } else { SERVICE };
        assert_eq!(took(&mut array, Op::Read, offset, 4096, Nanos::ZERO), wanted, "{offset}");
    }
    assert_eq!(progress(&array, Nanos::SECOND).blocks(), 3);
    let fresh = Array::single(limits(), Nanos::ZERO).unwrap();
    assert_eq!((fresh.load_progress(Nanos::ZERO), fresh.load_states(Nanos::ZERO)), (None, vec![]));
}

#[test]
fn a_write_of_a_whole_block_needs_no_load_and_one_of_a_part_waits_for_it() {
    let mut array = restored(0);
    assert_eq!(took(&mut array, Op::Write, block(2), LOAD_BLOCK_BYTES, Nanos::ZERO), SERVICE);
    assert_eq!(took(&mut array, Op::Read, block(2), 4096, Nanos::ZERO), SERVICE);
    assert_eq!(took(&mut array, Op::Write, block(3), PAGE.into(), Nanos::ZERO), SLOW);
    // Two parts and a whole block between them.
    assert_eq!(took(&mut array, Op::Write, block(5) - 4096, LOAD_BLOCK_BYTES + 8192, Nanos::ZERO), SLOW);
    let counts = progress(&array, Nanos::SECOND).counts;
    assert_eq!((counts.overwritten, counts.touched), (2, 3));
}

#[test]
fn a_discarded_block_needs_no_load_and_a_part_of_one_still_does() {
    let mut array = restored(0);
    assert_eq!(
        took(&mut array, Op::Discard, block(2) - 4096, LOAD_BLOCK_BYTES + 8192, Nanos::ZERO),
        Nanos::ZERO
    );
    assert_eq!(took(&mut array, Op::Read, block(2), LOAD_BLOCK_BYTES, Nanos::ZERO), SERVICE);
    assert_eq!(took(&mut array, Op::Read, block(1), 4096, Nanos::ZERO), SLOW);
    // Also of one that is on its way.
    took(&mut array, Op::Discard, block(1), LOAD_BLOCK_BYTES, Nanos::from_ms(1));
    assert_eq!(took(&mut array, Op::Read, block(1), 4096, Nanos::from_ms(2)), SERVICE);
    assert_eq!(took(&mut array, Op::Flush, 0, 0, Nanos::from_ms(2)), Nanos::ZERO);
    let counts = progress(&array, Nanos::SECOND).counts;
    assert_eq!((counts.discarded, counts.touched), (2, 0));
}

#[test]
fn ten_gib_at_300_mib_s_are_loaded_after_34_seconds_and_in_order() {
    let mut array = Array::single(Limits { size_bytes: 10 * GIB, ..limits() }, Nanos::ZERO).unwrap();
    let states = array.new_load_states(from_ref(&(0..10 * GIB)), Nanos::ZERO);
    array.begin_loading(&loader(300), states).unwrap();
    // The example of the EBS user guide, initalize-volume: 34.1 s.
    let end = Nanos(10 * 1024 * 1_000_000_000 / 300 + 1);
    assert_eq!(progress(&array, Nanos::ZERO).completes, Some(end));
    for second in 1..34 {
        let now = Nanos::from_secs(second);
        let loaded = progress(&array, now).counts.background;
        assert!((second * 600 - 1..=second * 600).contains(&loaded), "{loaded} blocks after {second} s");
        assert_eq!(array.load_states(now)[0].missing.min().map(u64::from), Some(loaded), "in order");
    }
    assert!(progress(&array, Nanos(end.0 - 2)).missing > 0);
    let done = progress(&array, end);
    assert_eq!((done.missing, done.counts.background, done.completes), (0, 20_480, None));
    assert_eq!(took(&mut array, Op::Read, 10 * GIB - 4096, 4096, end), SERVICE);
}

#[test]
fn a_read_ahead_of_the_background_loads_its_block_and_the_background_leaves_it_out() {
    // A block in 5 ms.
    let mut array = restored(100);
    assert_eq!(took(&mut array, Op::Read, block(20), 4096, Nanos::ZERO), SLOW);
    // The third block comes in its turn sooner than by the touch.
    assert_eq!(took(&mut array, Op::Read, block(2), 4096, Nanos::ZERO), Nanos::from_us(15_500));
    assert_eq!(took(&mut array, Op::Read, block(1), 4096, Nanos::from_ms(10)), SERVICE);
    let end = Nanos::from_ms(5 * (BLOCKS - 1));
    assert_eq!(progress(&array, Nanos::ZERO).completes, Some(Nanos::from_ms(5 * BLOCKS)));
    assert_eq!(progress(&array, FIRST_TOUCH).completes, Some(end));
    assert_eq!(progress(&array, Nanos(end.0 - 1)).missing, 1);
    let counts = progress(&array, end).counts;
    assert_eq!((counts.touched, counts.background), (1, BLOCKS - 1));
}

#[test]
fn what_is_kept_of_a_loading_goes_on_where_it_was() {
    let mut array = restored(100);
    took(&mut array, Op::Read, block(40), 4096, Nanos::ZERO);
    took(&mut array, Op::Discard, block(50), LOAD_BLOCK_BYTES, Nanos::ZERO);
    let kept = array.load_states(Nanos::from_ms(22));
    // What is on its way has not come when nobody is there any more.
    assert!(kept[0].missing.contains(40) && !kept[0].missing.contains(50) && !kept[0].missing.contains(3));
    let mut again = Array::single(limits(), Nanos::from_secs(1)).unwrap();
    again.begin_loading(&loader(100), kept.clone()).unwrap();
    assert_eq!(again.load_states(Nanos::from_ms(22)), kept);
    let (before, after) = (progress(&array, Nanos::from_ms(22)), progress(&again, Nanos::from_ms(24)));
    assert_eq!((before.counts, before.missing), (after.counts, after.missing));
    // The background went on by the clock.
    assert_eq!(progress(&again, Nanos::from_ms(25)).counts.background, 5);
    assert_eq!(progress(&again, Nanos::from_secs(10)).missing, 0);
    let error = again.begin_loading(&loader(100), vec![]).unwrap_err();
    assert_eq!(error, ArrayError::LoadStates { states: 0, members: 1 });
}

#[test]
fn a_volume_that_grows_has_nothing_to_load_in_its_new_part() {
    let mut array = restored(0);
    let larger = Limits { size_bytes: 2 * SIZE, ..limits() };
    array.modify(&larger, Nanos::ZERO, Nanos::ZERO, Nanos::ZERO).unwrap();
    assert_eq!(took(&mut array, Op::Read, SIZE, 4096, Nanos::ZERO), SERVICE);
    assert_eq!(took(&mut array, Op::Read, SIZE - 4096, 4096, Nanos::ZERO), SLOW);
}

#[test]
fn each_member_of_an_array_loads_its_own_part() {
    let chunk = 64 * KIB;
    let mut array = Array::striped(vec![limits(); 2], chunk, Nanos::ZERO).unwrap();
    // The first 2 MiB of the array are the first MiB of each member: two blocks of each.
    let states = array.new_load_states(&[0..2 * MIB, 8 * MIB..8 * MIB + 4096], Nanos::ZERO);
    assert_eq!(states[0].missing.iter().collect::<Vec<_>>(), [0, 1, 8]);
    assert_eq!(states[1].missing.iter().collect::<Vec<_>>(), [0, 1]);
    array.begin_loading(&loader(100), states).unwrap();
    let all = progress(&array, Nanos::ZERO);
    assert_eq!((all.blocks(), all.completes), (5, Some(Nanos::from_ms(15))));
    // A discard comes to the members in chunks, which are smaller than a block.
    assert_eq!(took(&mut array, Op::Discard, 0, 2 * MIB, Nanos::ZERO), Nanos::ZERO);
    let left = progress(&array, Nanos::ZERO);
    assert_eq!((left.counts.discarded, left.missing), (4, 1));
    assert_eq!(took(&mut array, Op::Read, 8 * MIB, 4096, Nanos::ZERO), Nanos::from_us(5_500));
    assert_eq!(took(&mut array, Op::Read, 8 * MIB + chunk, 4096, Nanos::ZERO), SERVICE);
}

#[test]
fn the_largest_volume_is_tracked_whole_and_one_beyond_the_numbers_of_blocks_does_not_panic() {
    let state = LoadState::new(Some(0..64 << 40), Nanos::ZERO);
    assert_eq!(state.missing.len(), 128 << 20);
    let limits = Limits { size_bytes: 1 << 60, ..limits() };
    let mut array = Array::single(limits, Nanos::ZERO).unwrap();
    let states = vec![LoadState::new(Some(1 << 59..1 << 60), Nanos::ZERO)];
    array.begin_loading(&loader(0), states).unwrap();
    assert_eq!(took(&mut array, Op::Read, 1 << 59, 4096, Nanos::ZERO), SERVICE);
}

/// What a block is to the plain copy of the rules below.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Plain {
    Missing,
    Coming(Nanos),
    There,
}

/// The rules again, block by block, for loading by touch alone.
fn waits(blocks: &mut [Plain], io: Io, now: Nanos) -> Nanos {
    let end = io.offset + u64::from(io.len);
    let mut all = now;
    for (number, state) in (0..).zip(blocks) {
        let (start, until) = (block(number), block(number + 1));
        if io.op == Op::Flush || until <= io.offset || start >= end || *state == Plain::There {
            continue;
        }
        let whole = io.offset <= start && until <= end;
        *state = match (*state, io.op) {
            (_, Op::Write | Op::Discard) if whole => Plain::There,
            (before, Op::Discard) => before,
            (Plain::Coming(there), _) if there <= now => Plain::There,
            (Plain::Coming(there), _) => Plain::Coming(there),
            _ => Plain::Coming(now + FIRST_TOUCH),
        };
        if let Plain::Coming(there) = *state
            && io.op != Op::Discard
        {
            all = all.max(there);
        }
    }
    all
}

fn any_load() -> impl Strategy<Value = Vec<(u64, Io)>> {
    let op =
        prop_oneof![4 => Just(Op::Read), 3 => Just(Op::Write), 1 => Just(Op::Flush), 1 => Just(Op::Discard)];
    let pages = BLOCKS * 128;
    let any = (op, 0..pages, prop_oneof![3 => 1_u64..8, 1 => 1_u64..600, 1 => Just(128_u64)], any::<bool>())
        .prop_map(move |(op, page, len, aligned)| {
            let page = if aligned { page / 128 * 128 } else { page };
            io(op, page * 4096, len.min(pages - page) * 4096)
        });
    proptest::collection::vec((prop_oneof![0_u64..100_000, 0_u64..60_000_000], any), 1..200)
}

fn any_data() -> impl Strategy<Value = Vec<Range<u64>>> {
    let range =
        (0..BLOCKS * 128, 1_u64..1_000).prop_map(|(page, len)| page * 4096..((page + len) * 4096).min(SIZE));
    proptest::collection::vec(range, 0..6)
}

/// Submits the load; each grant, with the progress after it.
fn run(array: &mut Array, load: &[(u64, Io)]) -> Vec<(Nanos, Io, Grant, LoadProgress)> {
    let (mut now, mut rng) = (Nanos::ZERO, rng(3));
    let submit = |&(gap, io): &(u64, Io)| {
        now += Nanos(gap);
        let grant = array.submit(io, now, &mut rng, None);
        (now, io, grant, array.load_progress(now).unwrap())
    };
    load.iter().map(submit).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn loading_never_goes_back_and_every_block_counts_once(
        data in any_data(), load in any_load(), rate in prop_oneof![Just(0_u64), 100_u64..301],
    ) {
        let mut array = restored_with(rate, &data);
        let blocks = array.load_progress(Nanos::ZERO).unwrap().blocks();
        let mut missing = blocks;
        let mut counts = progress(&array, Nanos::ZERO).counts;
        for (now, _, _, after) in run(&mut array, &load) {
            prop_assert_eq!(after.blocks(), blocks);
            prop_assert!(after.missing <= missing);
            for (before, after) in [
                (counts.touched, after.counts.touched), (counts.background, after.counts.background),
                (counts.overwritten, after.counts.overwritten), (counts.discarded, after.counts.discarded),
            ] {
                prop_assert!(before <= after);
            }
            prop_assert!(u128::from(after.counts.background * LOAD_BLOCK_BYTES) * 1_000_000_000
                <= u128::from(rate * MIB) * u128::from(now.0));
            (missing, counts) = (after.missing, after.counts);
        }
        let end = Nanos::from_secs(3_600);
        if rate > 0 {
            prop_assert_eq!(progress(&array, end).missing, 0);
        } else {
            // Every block once more: then all are there.
            let all: Vec<_> = (0..BLOCKS).map(|number| (0, io(Op::Read, block(number), 4096))).collect();
            array.advance(end);
            for (_, io) in &all {
                array.submit(*io, end, &mut rng(5), None);
            }
            let done = progress(&array, end + FIRST_TOUCH);
            prop_assert_eq!((done.missing, done.counts.total()), (0, blocks));
            for (_, io) in &all {
                let grant = array.submit(*io, end + FIRST_TOUCH, &mut rng(5), None);
                prop_assert_eq!(grant.completes.since(end), FIRST_TOUCH + SERVICE);
            }
        }
    }

    #[test]
    fn an_io_waits_exactly_for_the_blocks_that_it_is_first_to_touch(data in any_data(), load in any_load()) {
        let mut array = restored_with(0, &data);
        let is_data = |number: u64| data.iter().any(|range| range.start < block(number + 1) && range.end > block(number));
        let mut blocks: Vec<_> =
            (0..BLOCKS).map(|number| if is_data(number) { Plain::Missing } else { Plain::There }).collect();
        for (now, io, grant, _) in run(&mut array, &load) {
            let there = waits(&mut blocks, io, now);
            let served = if matches!(io.op, Op::Read | Op::Write) { SERVICE } else { Nanos::ZERO };
            prop_assert_eq!(grant.completes, there + served, "{:?} at {}", io, now);
            prop_assert_eq!(grant.unthrottled, grant.completes);
        }
    }

    #[test]
    fn a_state_that_is_kept_at_any_time_loses_no_block(
        data in any_data(), load in any_load(), rate in prop_oneof![Just(0_u64), 100_u64..301], at in 0_u64..200,
    ) {
        let mut array = restored_with(rate, &data);
        let blocks = array.load_progress(Nanos::ZERO).unwrap().blocks();
        let (first, rest) = load.split_at(load.len().min(usize::try_from(at).unwrap()));
        let now = run(&mut array, first).last().map_or(Nanos::ZERO, |last| last.0);
        let kept = array.load_states(now);
        let mut again = Array::single(limits(), now).unwrap();
        again.begin_loading(&loader(rate), kept).unwrap();
        prop_assert_eq!(progress(&again, now).missing, progress(&array, now).missing);
        for (_, _, _, after) in run(&mut again, rest) {
            prop_assert_eq!(after.blocks(), blocks);
        }
    }
}
