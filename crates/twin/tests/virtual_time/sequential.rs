//! Sequential jobs on volumes of the catalogue: what is measured of them at and below their limits.

use ebbtide_catalog::{Catalog, Spec};
use ebbtide_twin::VolumeOutcome;
use ebbtide_volume::{Array, Instance, Nanos};

use crate::support::{SEED, assert_near, try_run};

fn volume(spec: &str) -> Array {
    let spec = Spec::parse(spec).expect("a spec");
    Catalog::builtin().resolve(&spec).expect("a volume of the catalogue").array(Nanos::ZERO)
}

fn run(spec: &str, instance: Option<Instance>, words: &str) -> VolumeOutcome {
    let outcome = try_run(vec![volume(spec)], instance, words, SEED, Nanos::SECOND).expect(words).0;
    outcome.volumes.into_iter().next().expect("a run has a volume")
}

/// I/Os a second.
fn iops(spec: &str, words: &str, seconds: u32) -> f64 {
    let totals = run(spec, None, &format!("{words},runtime={seconds}s")).totals();
    (totals.read.ios + totals.write.ios) as f64 / f64::from(seconds)
}

/// Time in which I/O waited for a limit of the volume.
fn held(outcome: &VolumeOutcome) -> Nanos {
    outcome.stats.volume_iops_exceeded + outcome.stats.volume_throughput_exceeded
}

#[test]
fn streams_far_below_the_limit_of_a_disk_take_their_service_times() {
    for (spec, words) in [
        ("st1:size=500GiB", "rw=read,bs=64k,iodepth=2,runtime=120s"),
        ("sc1:size=1024GiB", "rw=write,bs=4k,iodepth=32,runtime=60s"),
        ("sc1:size=125GiB,credits=0%", "rw=write,bs=4k,iodepth=1,rate_iops=100,runtime=120s"),
        ("sc1:size=125GiB,credits=0%", "rw=read,bs=256k,iodepth=1,rate_iops=2,runtime=120s"),
        ("raid0(2x st1:size=500GiB)", "rw=read,bs=256k,iodepth=1,runtime=60s"),
    ] {
        let outcome = run(spec, None, words);
        // Now and then two I/Os come so close that the second is served within what the first one cost.
        assert!(held(&outcome).0 * 1_000 < outcome.stats.at.0, "{spec}, {words}: {:?}", outcome.stats);
    }
    // 32 at 3.788 ms, the mean of the service curve.
    let rate = iops("sc1:size=1024GiB", "rw=write,bs=4k,iodepth=32", 60);
    assert_near("IOPS", rate, 32.0 / 0.003_788, 0.02);
}

#[test]
fn two_streams_far_below_the_limit_of_a_disk_wait_for_each_other_at_their_beginnings_alone() {
    let words = "rw=write,bs=4k,numjobs=2,offset_increment=10g,rate_iops=50,runtime=120s";
    let outcome = run("sc1:size=125GiB,credits=0%", None, words);
    // The first MiB of one, at 1.5 MiB/s.
    assert!(held(&outcome) <= Nanos::from_ms(700), "{:?}", outcome.stats);
}

#[test]
fn a_spent_gp2_and_an_io1_of_300_operations_take_300_ios_for_each_that_wait_together() {
    for depth in [1_u32, 2, 3, 4, 6, 8, 16] {
        for spec in ["gp2:size=100GiB,credits=0%", "io1:size=100GiB,iops=300"] {
            let rate = iops(spec, &format!("rw=write,bs=16k,iodepth={depth}"), 60);
            assert_near(&format!("{spec} at depth {depth}"), rate, 300.0 * f64::from(depth), 0.01);
        }
    }
    assert_near(
        "io1 of 1,000",
        iops("io1:size=100GiB,iops=1000", "rw=write,bs=16k,iodepth=2", 60),
        2_000.0,
        0.04,
    );
}

#[test]
fn streams_that_bytes_limit_are_as_fast_as_those_allow() {
    for depth in [8, 16, 64] {
        let outcome = run("gp3:size=100GiB", None, &format!("rw=read,bs=16k,iodepth={depth},runtime=60s"));
        // The first second gives twice the rate.
        assert_near("bytes", outcome.totals().read.bytes as f64, 61.0 * 125.0 * 1_048_576.0, 0.002);
    }
}

#[test]
fn a_stream_above_the_baseline_uses_credits_up() {
    for spec in ["gp2:size=100GiB,credits=5%", "raid0(2x gp2:size=100GiB,credits=5%)"] {
        for depth in [2, 4, 16] {
            let outcome = run(spec, None, &format!("rw=write,bs=16k,iodepth={depth},runtime=30s"));
            let share = outcome.stats.credit_share.expect("it has credits");
            // 128 MiB/s are 512 operations a second of a member: 212 above its baseline, of 5.4 million.
            assert!(share < 0.05 - 30.0 * 200.0 / 5.4e6, "{spec} at depth {depth}: {share} left");
        }
    }
}

#[test]
fn more_depth_gives_no_fewer_sequential_ios_whatever_the_type() {
    for spec in [
        "gp2:size=100GiB,credits=0%",
        "gp2:size=500GiB,credits=5%",
        "gp3:size=100GiB",
        "io1:size=100GiB,iops=1000",
        "io2:size=100GiB,iops=3000",
        "st1:size=500GiB",
        "sc1:size=125GiB,credits=0%",
    ] {
        for job in ["rw=write,bs=4k", "rw=read,bs=16k", "rw=write,bs=192k", "rw=read,bs=1m"] {
            let mut most = 0.0_f64;
            for depth in [1, 2, 3, 4, 6, 8, 16, 32] {
                let rate = iops(spec, &format!("{job},iodepth={depth}"), 20);
                assert!(rate >= most * 0.98, "{spec}, {job}: {rate} at depth {depth} after {most}");
                most = most.max(rate);
            }
        }
    }
}
