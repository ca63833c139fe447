//! Service times against the anchors that were published.

use std::{cmp::Reverse, collections::BinaryHeap};

use ebbtide_catalog::Catalog;
use ebbtide_volume::{Io, Nanos, Op, QuantileCurve, ServiceTimes};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::support::resolve;

const SEED: u64 = 7;

fn service(text: &str) -> ServiceTimes {
    resolve(text).members[0].service.clone()
}

fn mean_us(curve: &QuantileCurve) -> f64 {
    let sum: u64 = (0..10_000).map(|i| curve.quantile(i * 100 + 50).0).sum();
    sum as f64 / 1e4 / 1e3
}

/// Share of I/Os of `bytes` that take longer than `us`.
fn share_above(service: &ServiceTimes, curve: &QuantileCurve, bytes: u64, us: u64) -> f64 {
    let transfer = bytes * u64::from(service.transfer_ps_per_byte) / 1_000;
    let above = (0..1_000_000).step_by(100).filter(|&ppm| curve.quantile(ppm).0 + transfer > us * 1_000);
    above.count() as f64 / 1e4
}

/// Operations a second of 4 KiB random I/O with `depth` in flight, over `count` I/Os.
fn saturated(text: &str, op: Op, depth: usize, count: u64) -> f64 {
    let mut array = resolve(text).array(Nanos::ZERO);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    println!("seed {SEED}");
    let mut done = BinaryHeap::new();
    let mut now = Nanos::ZERO;
    for number in 0..count {
        if done.len() == depth {
            let Reverse(next) = done.pop().unwrap();
            now = next;
        }
        // A stride of odd pages never continues a stream.
        let offset = number.wrapping_mul(7_919) % 1_000_000 * 4_096;
        let grant = array.submit(Io { op, offset, len: 4_096 }, now, &mut rng, None);
        done.push(Reverse(grant.completes));
    }
    count as f64 / now.as_secs_f64()
}

#[test]
fn a_commit_takes_as_long_as_was_measured_on_gp2_and_gp3() {
    // fdatasync in ms on 128 GiB volumes (2021): mean, p99 and p99.9, at 2.27 device writes each.
    for (text, mean, p99, p999) in [
        ("gp2:size=128GiB", 1.06..=1.35, 1.9..=2.9, 4.8..=9.9),
        ("gp3:size=128GiB", 1.58..=1.75, 3.1..=5.1, 8.0..=13.0),
    ] {
        let write = service(text).write;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
        println!("seed {SEED}");
        let mut commits: Vec<u64> = (0..100_000)
            .map(|i| (0..if i % 100 < 27 { 3 } else { 2 }).map(|_| write.draw(&mut rng).0).sum())
            .collect();
        commits.sort_unstable();
        let ms = |ns: u64| ns as f64 / 1e6;
        let figures = [ms(commits.iter().sum::<u64>()) / 1e5, ms(commits[99_000]), ms(commits[99_900])];
        for (figure, range) in figures.iter().zip([mean, p99, p999]) {
            assert!(range.contains(figure), "{text}: {figures:?}");
        }
    }
}

#[test]
fn gp2_reads_begin_where_they_were_measured() {
    let read = service("gp2:size=8GiB").read;
    assert_eq!(read.quantile(10_000), Nanos(367_000), "p1");
    assert!((440..=490).contains(&read.quantile(50_000).as_us()), "p5 was 465 us");
}

#[test]
fn write_latencies_stay_below_those_of_volumes_at_their_limit() {
    // Mean write latencies at the IOPS limit (2021): upper bounds of the service time.
    for (text, ms) in [
        ("gp2:size=500GiB", 1.1),
        ("gp3:size=500GiB", 1.01),
        ("io1:size=500GiB,iops=3000", 0.994),
        ("io2@2022:size=500GiB,iops=3000", 0.824),
    ] {
        let mean = mean_us(&service(text).write) / 1e3;
        assert!(mean < ms, "{text}: {mean:.3} ms");
    }
}

#[test]
fn io2_averages_under_half_a_millisecond_and_rarely_exceeds_800_us() {
    let io2 = service("io2:size=500GiB,iops=3000");
    for (curve, name) in [(&io2.read, "read"), (&io2.write, "write")] {
        let transfer_us = 16.384 * f64::from(io2.transfer_ps_per_byte) / 1e3;
        assert!(mean_us(curve) + transfer_us < 500.0, "{name}");
    }
    let slow = share_above(&io2, &io2.read, 16_384, 800);
    for text in ["gp2:size=500GiB", "gp3:size=500GiB"] {
        let general = service(text);
        let general = share_above(&general, &general.read, 16_384, 800);
        assert!(general > 10.0 * slow, "{text}: {general} against {slow}");
    }
}

/// Operations a second of 4 KiB at places drawn from the seed.
fn random_iops(text: &str, op: Op, depth: usize, count: u32) -> f64 {
    let resolved = resolve(text);
    let mut array = resolved.array(Nanos::ZERO);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    println!("seed {SEED}");
    let mut done: BinaryHeap<_> = (0..depth).map(|_| Reverse(Nanos::ZERO)).collect();
    let mut now = Nanos::ZERO;
    for _ in 0..count {
        Reverse(now) = done.pop().unwrap();
        let offset = rng.next_u64() % (resolved.size_bytes() / 4_096) * 4_096;
        done.push(Reverse(array.submit(Io { op, offset, len: 4_096 }, now, &mut rng, None).completes));
    }
    f64::from(count) / now.as_secs_f64()
}

#[test]
fn a_15k_disk_serves_175_to_210_random_reads_a_second_and_twice_as_many_from_a_queue() {
    let whole = "sas-hdd-15k";
    let alone = random_iops(whole, Op::Read, 1, 10_000);
    assert!((175.0..=210.0).contains(&alone), "{alone:.0}");
    let writes = random_iops(whole, Op::Write, 1, 10_000);
    assert!((170.0..alone).contains(&writes), "{writes:.0} writes");
    let deep = random_iops(whole, Op::Read, 32, 10_000);
    assert!(deep > 400.0 && (2.0..3.0).contains(&(deep / alone)), "{deep:.0} at depth 32, {alone:.0} alone");
    let small = random_iops("sas-hdd-15k:size=12GiB", Op::Read, 1, 10_000);
    assert!((small / alone - 1.0).abs() < 0.03, "{small:.0} on a small disk, {alone:.0} on a larger one");
}

#[test]
fn flash_serves_as_many_random_ios_as_its_data_sheet_says() {
    for (tier, op, published) in [
        ("sata-ssd", Op::Read, 95_000.0),
        ("sas-ssd", Op::Read, 195_000.0),
        ("sas-ssd", Op::Write, 45_000.0),
        ("nvme", Op::Read, 750_000.0),
        ("nvme", Op::Write, 150_000.0),
    ] {
        let deep = random_iops(tier, op, 512, 100_000);
        assert!((deep / published - 1.0).abs() < 0.1, "{tier} {op:?}: {deep:.0} of {published}");
        let alone = random_iops(tier, op, 1, 10_000);
        assert!(alone < deep / 3.0, "{tier} {op:?}: {alone:.0} at depth 1");
    }
}

#[test]
fn a_standard_volume_serves_about_a_hundred() {
    let iops = saturated("standard:size=100GiB", Op::Read, 4, 4_000);
    assert!((90.0..=110.0).contains(&iops), "{iops:.0}");
    let service = service("standard:size=100GiB");
    let range =
        [service.read.quantile(1_000_000), service.read.minimum()].map(|time| 1.0 / time.as_secs_f64());
    assert!((range[0] - 40.0).abs() < 1.0 && range[1] > 200.0, "{range:?} is not 40 to 200");
    let stream_mib_s = 1e6 / f64::from(service.transfer_ps_per_byte) / 1.048_576;
    assert!((40.0..=90.0).contains(&stream_mib_s), "{stream_mib_s:.0}");
}

#[test]
fn instance_stores_reach_their_published_iops() {
    for (class, read, write) in [
        ("i3en.large", 42_500.0, 32_500.0),
        ("i3en.6xlarge", 500_000.0, 400_000.0),
        ("i7ie.48xlarge", 5_200_000.0, 4_160_000.0),
    ] {
        for (op, published) in [(Op::Read, read), (Op::Write, write)] {
            let measured = saturated(&format!("instance-store:{class}"), op, 1_024, 60_000);
            assert!(
                (measured / published - 1.0).abs() < 0.03,
                "{class} {op:?}: {measured:.0} of {published}"
            );
        }
    }
}

#[test]
fn flushes_cost_what_the_cache_behind_them_costs() {
    let p50 = |text| service(text).flush.quantile(500_000);
    assert_eq!(p50("gp3:size=1GiB"), Nanos::ZERO, "EBS has no volatile cache");
    assert!((900..=5_000).contains(&p50("sata-ssd").as_us()), "no power-loss protection");
    for text in ["sas-ssd", "nvme"] {
        assert!((12..=58).contains(&p50(text).as_us()), "{text} has power-loss protection");
    }
    assert_eq!(service("ideal"), ServiceTimes::instant());
}

#[test]
fn device_tiers_are_in_their_order() {
    let commit_us = |text| {
        let service = service(text);
        let half_turn = service.mechanics.map_or(0.0, |disk| disk.turn.as_us() as f64 / 2.0);
        mean_us(&service.write) + half_turn + mean_us(&service.flush)
    };
    let tiers = ["nvme", "sas-ssd", "sata-ssd", "sas-hdd-15k"].map(commit_us);
    assert!(tiers.windows(2).all(|pair| pair[0] < pair[1]), "{tiers:?}");
    assert!(Catalog::builtin().types().iter().any(|info| info.name == "nvme"));
}
