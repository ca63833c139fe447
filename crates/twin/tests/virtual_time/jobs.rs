//! What jobs do: pace, amount, pauses, flushes, phases, and the same again by seed.

use ebbtide_twin::{Setup, SimulateError, fio, simulate};
use ebbtide_volume::{Limits, MIB, Nanos, QuantileCurve, RateLimit, ServiceTimes};

use crate::support::{Kept, SEED, array, assert_near, gp3, run, ssd, try_run};

fn spread() -> Limits {
    let curve =
        QuantileCurve::new(vec![(0, 200_000), (500_000, 600_000), (1_000_000, 9_000_000)]).expect("rising");
    Limits { service: ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() }, ..gp3() }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let intervals = |seed: u64| {
        let words = "rw=randrw,bssplit=4k/60:16k/40,iodepth=3,runtime=5,rate_process=poisson";
        try_run(vec![array(spread())], None, words, seed, Nanos::from_ms(100)).unwrap().1.0
    };
    assert_eq!(intervals(SEED), intervals(SEED));
    assert_ne!(intervals(SEED), intervals(SEED + 1));
}

#[test]
fn an_open_loop_keeps_its_rate_below_the_cap_and_queues_above_it() {
    for process in ["linear", "poisson"] {
        let words = format!("rw=randwrite,bs=16k,rate_iops=1500,rate_process={process},runtime=120");
        let (outcome, _) = run(gp3(), &words);
        assert_near(process, outcome.volumes[0].totals().write.ios as f64, 180_000.0, 0.01);
    }
    let (outcome, intervals) = run(gp3(), "rw=randread,bs=16k,rate_iops=3500,runtime=4");
    assert_near("queue", intervals[3].queue, 500.0 * 3.5, 0.02);
    assert_near("in flight", outcome.volumes[0].in_flight as f64, 2_000.0, 0.02);
}

#[test]
fn a_paced_job_with_a_depth_has_no_more_in_flight_than_that() {
    let (_, intervals) = run(gp3(), "rw=randread,bs=16k,rate_iops=5000,iodepth=4,runtime=10");
    assert!(intervals.iter().all(|interval| interval.queue <= 4.0));
    assert_near("IOPS", intervals[5].iops(), 3_000.0, 0.001);
}

#[test]
fn a_rate_in_bytes_and_a_rate_by_direction_hold() {
    let (outcome, _) = run(gp3(), "rw=randwrite,bs=16k,rate=10m,runtime=60");
    assert_near("bytes", outcome.volumes[0].totals().write.bytes as f64, (600 * MIB) as f64, 0.001);
    let (outcome, _) = run(gp3(), "rw=randrw,bs=16k,rate_iops=500,300,runtime=60");
    let totals = outcome.volumes[0].totals();
    assert_near("reads", totals.read.ios as f64, 30_000.0, 0.001);
    assert_near("writes", totals.write.ios as f64, 18_000.0, 0.001);
}

#[test]
fn a_size_ends_a_job_when_it_is_moved() {
    let (outcome, intervals) = run(gp3(), "rw=randread,bs=16k,iodepth=32,size=750m,runtime=1h");
    assert_eq!(outcome.volumes[0].totals().read.bytes, 750 * MIB);
    assert_near("duration", outcome.duration.as_secs_f64(), 16.0, 0.001);
    assert_eq!(intervals.last().unwrap().end, outcome.duration);
    assert_eq!(outcome.volumes[0].in_flight, 0);
}

#[test]
fn a_mix_keeps_its_share_of_reads() {
    let (outcome, _) = run(gp3(), "rw=randrw,rwmixread=70,bs=4k,iodepth=16,runtime=100");
    let totals = outcome.volumes[0].totals();
    assert_near("reads", totals.read.ios as f64, 210_000.0, 0.01);
}

#[test]
fn thinktime_pauses_with_nothing_in_flight() {
    // 700 us of service and 9,300 us of thought: 100 a second.
    let (_, intervals) = run(gp3(), "rw=randread,bs=4k,thinktime=9300,runtime=10");
    assert_near("IOPS", intervals[5].iops(), 100.0, 0.011);
    // Four at once, then the pause.
    let (_, batches) =
        run(gp3(), "rw=randread,bs=4k,iodepth=64,thinktime=99300us,thinktime_blocks=4,runtime=10");
    let ios: u64 = batches.iter().map(|interval| interval.reads).sum();
    assert_near("I/Os", ios as f64, 400.0, 0.02);
}

#[test]
fn a_flush_holds_its_clone_up_and_is_counted() {
    let mut limits = ssd(100, 500, None, None);
    limits.service.flush = QuantileCurve::constant(Nanos::from_us(1_500));
    let (outcome, intervals) = run(limits, "rw=write,bs=4k,fdatasync=1,runtime=10");
    assert_near("IOPS", intervals[5].iops(), 500.0, 0.01);
    assert_near("flushes", outcome.volumes[0].totals().flushes as f64, 5_000.0, 0.001);
    assert!(intervals[5].queue < 0.26, "a flush is no read or write in flight");
}

#[test]
fn jobs_of_a_file_run_together_and_a_stonewall_waits() {
    println!("seed {SEED}");
    let text = "[global]\nbs=16k\nruntime=10\n[a]\nrw=randread\niodepth=8\nstartdelay=2\n[b]\nrw=randwrite\n\
                rate_iops=100\n[c]\nstonewall\nrw=read\nsize=1m\n";
    let workload = fio::parse_file(text, "", &fio::Nothing).unwrap();
    let mut kept = Kept::default();
    let volumes = vec![array(gp3())];
    let setup = Setup { volumes, instance: None, workload: &workload, seed: SEED, interval: Nanos::SECOND };
    let outcome = simulate(setup, &mut kept).unwrap();
    let intervals = &kept.0[0];
    assert_eq!((intervals[0].reads, intervals[0].writes), (0, 100), "a starts after 2 s");
    assert_near("together", intervals[5].iops(), 3_000.0, 0.001);
    let [a, b, c] = &outcome.volumes[0].jobs[..] else { panic!("three jobs") };
    assert_near("b", b.write.ios as f64, 1_000.0, 0.011);
    assert!(a.read.ios > 28_000 && c.read.ios == 64);
    assert!(outcome.duration > Nanos::from_secs(12), "c runs after a");
}

#[test]
fn a_run_ends_with_its_last_job_and_not_with_what_another_might_have_lasted() {
    println!("seed {SEED}");
    let text = "[global]\nruntime=20\n[overload]\nrw=randread\nrate_iops=4000\n\
                [short]\nstartdelay=1\nrw=read\nbs=1m\nsize=1m\n";
    let workload = fio::parse_file(text, "", &fio::Nothing).unwrap();
    let volumes = vec![array(gp3())];
    let setup = Setup { volumes, instance: None, workload: &workload, seed: SEED, interval: Nanos::SECOND };
    let outcome = simulate(setup, &mut Kept::default()).unwrap();
    assert_eq!(outcome.duration, Nanos::from_secs(20));
    assert!(outcome.volumes[0].in_flight > 3_000, "the backlog is left");
}

#[test]
fn every_clone_has_its_own_depth_and_place() {
    let (outcome, intervals) =
        run(gp3(), "rw=read,bs=16k,iodepth=4,numjobs=8,offset_increment=10g,size=1g,runtime=5");
    assert_near("queue", intervals[3].queue, 32.0, 0.01);
    assert!(outcome.volumes[0].stats.consumed_ops < outcome.volumes[0].totals().read.ios, "streams merge");
}

#[test]
fn a_job_that_does_not_fit_the_volume_is_refused() {
    let refused =
        |words: &str| try_run(vec![array(gp3())], None, words, SEED, Nanos::SECOND).unwrap_err().to_string();
    assert!(refused("size=200g").contains("does not fit the volume of 100GiB"));
    assert!(refused("offset=100g").contains("does not fit"));
    assert!(refused("size=4k,bs=16k").contains("shorter than its block of 16KiB"));
    assert!(refused("numjobs=11,offset_increment=10g").contains("does not fit"));
}

#[test]
fn a_volume_that_answers_at_once_is_refused_instead_of_running_for_ever() {
    let ideal = ssd(1, 0, None, None);
    let error = try_run(vec![array(ideal)], None, "rw=randread,runtime=1", SEED, Nanos::SECOND).unwrap_err();
    assert!(matches!(error, SimulateError::Standstill { .. }), "{error}");
    let ideal = ssd(1, 0, None, None);
    let (outcome, _) = run(ideal, "rw=randread,rate_iops=1000,runtime=1");
    assert_eq!(outcome.volumes[0].totals().read.ios, 1_000);
}

#[test]
fn intervals_cover_the_run_without_gap_or_overlap() {
    let volumes = vec![array(ssd(100, 700, Some(RateLimit::flat(3_000)), None))];
    let words = "rw=randread,bs=16k,iodepth=8,runtime=10500ms";
    let (outcome, kept) = try_run(volumes, None, words, SEED, Nanos::from_secs(2)).unwrap();
    let intervals = &kept.0[0];
    assert_eq!(intervals.len(), 6);
    assert_eq!((intervals[0].start, intervals[5].end), (Nanos::ZERO, Nanos::from_ms(10_500)));
    assert!(intervals.windows(2).all(|pair| pair[0].end == pair[1].start));
    let counted: u64 = intervals.iter().map(|interval| interval.reads).sum();
    assert_eq!(counted, outcome.volumes[0].totals().read.ios);
    let stats = outcome.volumes[0].stats;
    assert_eq!(
        (counted, outcome.volumes[0].in_flight),
        (stats.read.ops, stats.queue),
        "as the volume counts"
    );
}
