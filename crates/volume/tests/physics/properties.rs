//! Promises that hold for every volume and every load.

use ebbtide_volume::{
    Array, AtomicUnit, BurstBucket, Io, Limits, Nanos, Op, PowerCut, QuantileCurve, RateLimit, WaitLine,
};
use proptest::prelude::*;

use crate::support::{gp2, gp3, rng, st1, unlimited, with_service};

fn any_rate() -> impl Strategy<Value = RateLimit> {
    (1_u64..20_000, 0_u64..20_000, 0_u64..3_000, 0_u64..50_000).prop_map(
        |(rate, above, allowance, credits)| RateLimit { rate, ceiling: rate + above, allowance, credits },
    )
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let bytes = any_rate().prop_map(|r| RateLimit {
        rate: r.rate << 16,
        ceiling: r.ceiling << 16,
        allowance: r.allowance << 16,
        credits: r.credits << 16,
    });
    prop_oneof![
        Just(gp2(100)),
        Just(gp3(3_000, 125)),
        Just(st1(1)),
        (proptest::option::of(any_rate()), proptest::option::of(bytes))
            .prop_map(|(iops, throughput)| with_service(Limits { iops, throughput, ..unlimited() })),
    ]
}

fn any_load() -> impl Strategy<Value = Vec<(u64, Io)>> {
    let op =
        prop_oneof![3 => Just(Op::Read), 3 => Just(Op::Write), 1 => Just(Op::Flush), 1 => Just(Op::Discard)];
    let io = (op, 0_u64..1 << 20, 1_u32..600).prop_map(|(op, block, blocks)| Io {
        op,
        offset: block * 4096,
        len: blocks * 4096,
    });
    // Mostly bursts, sometimes a pause.
    let gap = prop_oneof![4 => 0_u64..50_000, 1 => 0_u64..2_000_000_000];
    proptest::collection::vec((gap, io), 1..400)
}

/// Submits the load; every I/O's submission, grant and cost.
fn run(limits: Limits, load: &[(u64, Io)], seed: u64) -> Vec<(Nanos, Io, ebbtide_volume::Grant)> {
    let mut array = Array::single(limits, Nanos::ZERO).unwrap();
    let mut rng = rng(seed);
    let mut now = Nanos::ZERO;
    let submit = |&(gap, io): &(u64, Io)| {
        now += Nanos(gap);
        (now, io, array.submit(io, now, &mut rng, None))
    };
    load.iter().map(submit).collect()
}

/// No window of the grants holds more units than the limit earns in it plus what it had saved.
fn never_more_than_allowed(granted: &[(Nanos, u64)], rate: u64, saved: u64) -> Result<(), TestCaseError> {
    let mut granted: Vec<_> = granted.iter().copied().filter(|g| g.1 > 0).collect();
    granted.sort_unstable();
    for first in 0..granted.len() {
        let mut sum = 0_u128;
        for &(at, units) in &granted[first..] {
            let span = u128::from(at.since(granted[first].0).0) + 1;
            let earned = u128::from(rate) * span / 1_000_000_000 + u128::from(saved);
            // What the last I/O of the window costs is earned after it, and times are whole nanoseconds.
            prop_assert!(sum <= earned + 1, "{sum} units in {span} ns at {rate}/s with {saved} saved");
            sum += u128::from(units);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_window_gets_more_than_its_bucket_may_give(
        limit in any_rate(), takes in proptest::collection::vec((0_u64..2_000_000_000, 1_u64..600), 1..400),
    ) {
        let mut bucket = BurstBucket::new(limit);
        let mut now = Nanos::ZERO;
        let grant = |(gap, units): (u64, u64)| {
            now += Nanos(gap);
            (bucket.take(units, now), units)
        };
        let granted: Vec<_> = takes.into_iter().map(grant).collect();
        never_more_than_allowed(&granted, limit.ceiling, limit.allowance)?;
        if limit.credits > 0 {
            never_more_than_allowed(&granted, limit.rate, limit.credits)?;
        }
    }

    #[test]
    fn an_even_load_waits_as_its_units_do_one_by_one(
        limit in any_rate(), share in 0.0_f64..1.0,
        spans in proptest::collection::vec((0_u64..1_500, 1_u64..4), 1..8),
    ) {
        let (mut whole, mut single) = (BurstBucket::new(limit), BurstBucket::new(limit));
        whole.set_credit_share(share, Nanos::ZERO);
        single.set_credit_share(share, Nanos::ZERO);
        // What a unit costs: one alone waits for itself, which an even stream has no share of.
        let unit_ns = i64::try_from(1_000_000_000 / limit.rate).unwrap();
        let mut from = Nanos::ZERO;
        for (units, seconds) in spans {
            let to = from + Nanos::from_secs(seconds);
            let wait = whole.flow(units, from, to);
            let at = |n: u64| from + Nanos((to.0 - from.0) / units * n);
            let waits: Vec<i64> =
                (1..=units).map(|n| single.take(1, at(n)).since(at(n)).0.cast_signed()).collect();
            let longest = |end: fn(&WaitLine) -> i64| {
                wait.credits.iter().chain([&wait.ceiling]).map(end).fold(0, i64::max)
            };
            if let (Some(first), Some(last)) = (waits.first(), waits.last()) {
                let of_unit = (to.0 - from.0) / units;
                let near = 2 * unit_ns + of_unit.cast_signed() + 2_000;
                prop_assert!((longest(|line| line.at_start) - first).abs() <= near, "{wait:?}: {waits:?}");
                prop_assert!((longest(|line| line.at_end) - last).abs() <= near, "{wait:?}: {waits:?}");
            }
            from = to;
        }
    }

    #[test]
    fn no_window_of_a_volume_gets_more_than_its_limit(limit in any_rate(), of_bytes: bool, load in any_load()) {
        let limits = if of_bytes {
            let mib = RateLimit { rate: limit.rate << 16, ceiling: limit.ceiling << 16, allowance: limit.allowance << 16, credits: limit.credits << 16 };
            Limits { throughput: Some(mib), ..unlimited() }
        } else {
            Limits { iops: Some(limit), ..unlimited() }
        };
        let done = run(limits.clone(), &load, 1);
        let granted = |cost: fn(&ebbtide_volume::Grant) -> u64| -> Vec<_> {
            done.iter().map(|(_, _, grant)| (grant.completes, cost(grant))).collect()
        };
        for (limit, granted) in [(limits.iops, granted(|g| g.operations)), (limits.throughput, granted(|g| g.bytes))] {
            let Some(limit) = limit else { continue };
            never_more_than_allowed(&granted, limit.ceiling, limit.allowance)?;
            if limit.credits > 0 && limit.ceiling > limit.rate {
                never_more_than_allowed(&granted, limit.rate, limit.credits)?;
            }
        }
    }

    #[test]
    fn nothing_completes_before_it_was_submitted_and_served(limits in any_limits(), load in any_load()) {
        for (submitted, io, grant) in run(limits.clone(), &load, 2) {
            let minimum = match io.op {
                Op::Read => limits.service.read.minimum(),
                Op::Write => limits.service.write.minimum(),
                Op::Flush => limits.service.flush.minimum(),
                Op::Discard => Nanos::ZERO,
            };
            prop_assert!(grant.unthrottled >= submitted + minimum);
            prop_assert!(grant.completes >= grant.unthrottled);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(limits in any_limits(), load in any_load(), seed: u64) {
        prop_assert_eq!(run(limits.clone(), &load, seed), run(limits, &load, seed));
    }

    #[test]
    fn every_submission_is_counted_once(limits in any_limits(), load in any_load()) {
        let mut array = Array::single(limits, Nanos::ZERO).unwrap();
        let mut rng = rng(4);
        let mut now = Nanos::ZERO;
        for &(gap, io) in &load {
            now += Nanos(gap);
            array.submit(io, now, &mut rng, None);
        }
        let end = array.members()[0].clone();
        let stats = array.stats(Nanos(u64::MAX / 2));
        let count = |op: Op| load.iter().filter(|(_, io)| io.op == op).count() as u64;
        let bytes = |op: Op| load.iter().filter(|(_, io)| io.op == op).map(|(_, io)| u64::from(io.len)).sum::<u64>();
        prop_assert_eq!((stats.read.ops, stats.read.bytes), (count(Op::Read), bytes(Op::Read)));
        prop_assert_eq!((stats.write.ops, stats.write.bytes), (count(Op::Write), bytes(Op::Write)));
        prop_assert_eq!((stats.flush_ops, stats.discard_ops), (count(Op::Flush), count(Op::Discard)));
        prop_assert_eq!(stats.queue, 0);
        prop_assert!(end.next_completion().is_none_or(|at| at >= now));
    }

    #[test]
    fn a_stripe_serves_each_member_as_if_it_were_alone(load in any_load(), width in 2_usize..5) {
        let chunk = 64 << 10;
        let mut stripe = Array::striped(vec![gp3(500, 20); width], chunk, Nanos::ZERO).unwrap();
        let mut alone: Vec<_> = (0..width).map(|_| Array::single(gp3(500, 20), Nanos::ZERO).unwrap()).collect();
        let (mut rng_a, mut rng_b) = (rng(5), rng(5));
        let mut now = Nanos::ZERO;
        for (gap, io) in load.into_iter().filter(|(_, io)| matches!(io.op, Op::Read | Op::Write)) {
            now += Nanos(gap);
            let whole = stripe.submit(io, now, &mut rng_a, None);
            let mut last = now;
            let mut at = io.offset;
            // Chunks of a member follow each other on it.
            let mut parts: Vec<Option<Io>> = vec![None; width];
            while at < io.offset + u64::from(io.len) {
                let member = usize::try_from(at / chunk).unwrap() % width;
                let within = at % chunk;
                let len = (chunk - within).min(io.offset + u64::from(io.len) - at);
                let offset = at / chunk / width as u64 * chunk + within;
                let part = parts[member].get_or_insert(Io { op: io.op, offset, len: 0 });
                prop_assert_eq!(part.offset + u64::from(part.len), offset);
                part.len += u32::try_from(len).unwrap();
                at += len;
            }
            for (member, part) in parts.into_iter().enumerate() {
                let Some(part) = part else { continue };
                last = last.max(alone[member].submit(part, now, &mut rng_b, None).completes);
            }
            prop_assert_eq!(whole.completes, last);
        }
    }

    #[test]
    fn draws_follow_their_quantiles(seed: u64) {
        let curve = QuantileCurve::new(vec![(0, 100), (500_000, 1_000), (900_000, 5_000), (1_000_000, 50_000)]).unwrap();
        let mut rng = rng(seed);
        let mut draws: Vec<_> = (0..20_000).map(|_| curve.draw(&mut rng).0).collect();
        draws.sort_unstable();
        prop_assert!((900..1_200).contains(&draws[10_000]), "median {}", draws[10_000]);
        prop_assert!((4_400..10_000).contains(&draws[18_000]), "p90 {}", draws[18_000]);
        prop_assert!(draws[0] >= 100 && draws[19_999] <= 50_000);
        prop_assert_eq!(curve.quantile(500_000), Nanos(1_000));
        prop_assert_eq!((curve.quantile(0), curve.quantile(1_000_000)), (Nanos(100), Nanos(50_000)));
    }

    #[test]
    fn a_power_cut_leaves_whole_units_of_the_write_and_nothing_else(
        block in 0_u64..1_000, blocks in 1_u64..64, seed: u64, sixteen: bool,
    ) {
        let unit = if sixteen { AtomicUnit::SixteenKib } else { AtomicUnit::FourKib };
        let (offset, len) = (block * 4096, blocks * 4096);
        let mut rng_a = rng(seed);
        let mut cut = PowerCut::new(unit, &mut rng_a);
        let kept: Vec<_> = cut.surviving(offset, len).collect();
        let mut rng_b = rng(seed);
        let again: Vec<_> = PowerCut::new(unit, &mut rng_b).surviving(offset, len).collect();
        prop_assert_eq!(&kept, &again);
        for piece in kept {
            prop_assert!(piece.offset >= offset && piece.offset + piece.len <= offset + len);
            prop_assert_eq!(piece.offset / unit.bytes(), (piece.offset + piece.len - 1) / unit.bytes());
            let starts_unit = piece.offset.is_multiple_of(unit.bytes()) || piece.offset == offset;
            let ends_unit = (piece.offset + piece.len).is_multiple_of(unit.bytes()) || piece.offset + piece.len == offset + len;
            prop_assert!(starts_unit && ends_unit, "a piece of a unit survived: {piece:?}");
        }
    }
}

#[test]
fn a_power_cut_can_both_keep_and_lose_every_unit() {
    let mut rng = rng(6);
    let mut cut = PowerCut::new(AtomicUnit::FourKib, &mut rng);
    let kept: usize = (0..1_000).map(|_| cut.surviving(0, 16 << 10).count()).sum();
    assert!((1_800..2_200).contains(&kept), "about half of 4,000 units survive: {kept}");
}
