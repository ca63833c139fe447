//! How evenly a cap is kept, and how late answers are.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use ebbtide_device::engine::{LiveVolume, PacingReport};
use ebbtide_volume::Nanos;
use hdrhistogram::Histogram;

use crate::{
    MIB,
    busy_loops::BusyLoops,
    judge,
    sleeper::{LATE_PERCENT, Late, Pattern, Sleepers, added_percent, later_than, median_limit_ns},
    support::{Attached, capped, fio, slow},
};

const SIZE: u64 = 256 * MIB;
const CAP: u64 = 3_000;
const DEPTH: u64 = 32;
/// The first second is left out: fio starts in the middle of it.
const WARM_UP_MS: u64 = 1_000;
/// How often the thread of shadows takes the requests.
const FOLLOWER: Duration = Duration::from_millis(20);
/// An answer is late from here on.
const LATE: Duration = Duration::from_micros(500);

/// A cap of 3,000 IOPS at depth 32.
pub(crate) fn cap(seconds: u32) -> bool {
    let attached = Attached::new(capped(SIZE, CAP));
    let logs = tempfile::tempdir().expect("a temporary directory can be made");
    let prefix = logs.path().join("log");
    let words = [
        "--rw=randread".to_owned(),
        "--bs=16k".to_owned(),
        format!("--iodepth={DEPTH}"),
        "--time_based".to_owned(),
        format!("--runtime={seconds}"),
        format!("--write_lat_log={}", prefix.display()),
    ];
    let measured = fio(&attached.path(), &words.each_ref().map(String::as_str));
    let until = u64::from(seconds) * 1_000;
    let completions = completions_ms(&logs.path().join("log_clat.1.log"));
    let within = completions.iter().filter(|&&at| (WARM_UP_MS..until).contains(&at)).count();
    let mean = within as f64 * 1e3 / (until - WARM_UP_MS) as f64;
    let error = (mean / CAP as f64 - 1.0).abs() * 100.0;
    let little_us = DEPTH as f64 / CAP as f64 * 1e6;
    println!("cap of {CAP} IOPS, depth {DEPTH}, {seconds} s, through the block device: {mean:.2} IOPS");
    println!(
        "latency p50 {:.0} us, p99 {:.0} us, max {:.0} us",
        measured.p50_us, measured.p99_us, measured.max_us
    );
    let spread = |window_ms| deviation(&completions, WARM_UP_MS, until, window_ms);
    let p50_error = (measured.p50_us / little_us - 1.0).abs() * 100.0;
    let tail = measured.p99_us / measured.p50_us;
    report(attached.volume.pacing());
    judge("mean against the cap", error, "%", error <= 0.1, "at most 0.1%")
        & judge(
            "mean absolute deviation, 1 s windows",
            spread(1_000),
            "%",
            spread(1_000) <= 0.05,
            "at most 0.05%",
        )
        & judge(
            "mean absolute deviation, 100 ms windows",
            spread(100),
            "%",
            spread(100) <= 0.4,
            "at most 0.4%",
        )
        & judge("p50 against Little's law", p50_error, "%", p50_error <= 1.0, "at most 1% off")
        & judge("p99 / p50", tail, "times", tail <= 1.2, "at most 1.2")
}

/// Lateness while two other processes keep the cores busy, compared with that of bare sleepers at the same time.
pub(crate) fn pacing(seconds: u32) -> bool {
    let runtime = format!("--runtime={seconds}");
    let _loops = BusyLoops::new(2);
    let gap = Pattern::Gap(Duration::from_secs(1) / u32::try_from(CAP).expect("a few thousand"));
    let service = Pattern::Service(Duration::from_micros(500));
    let volumes = [
        ("3,000 IOPS cap", capped(SIZE, CAP), gap, 32, false),
        ("3,000 IOPS cap with a shadow", capped(SIZE, CAP), gap, 32, true),
        ("500 us service time", slow(SIZE, Nanos::from_us(500)), service, 1, false),
        ("500 us service time", slow(SIZE, Nanos::from_us(500)), service, 8, false),
    ];
    let mut kept = true;
    for (name, limits, pattern, depth, shadow) in volumes {
        let queue = format!("--iodepth={depth}");
        let attached = Attached::filled(limits);
        for direction in ["--rw=randread", "--rw=randwrite"] {
            attached.volume.reset_pacing();
            let sleepers = Sleepers::start(pattern, depth);
            let run = || fio(&attached.path(), &[direction, "--bs=16k", &queue, "--time_based", &runtime]);
            let measured = if shadow { followed(&attached.volume, run) } else { run() };
            let bare = sleepers.finish();
            println!("{name}, depth {depth}, {direction}, two busy processes: {:.0} IOPS", measured.iops);
            kept &= judge_pacing(&attached.volume, &bare);
        }
    }
    kept
}

/// Does something while the volume keeps its requests, and another thread takes them as the thread of shadows does. What a
/// shadow makes of them costs that thread 2 us each at most (`./dev bench virtual`).
fn followed<T>(volume: &LiveVolume, run: impl FnOnce() -> T) -> T {
    let (ended, mut taken) = (AtomicBool::new(false), 0);
    let outcome = thread::scope(|scope| {
        volume.observe(true);
        let follower = scope.spawn(|| {
            let (mut requests, mut count, mut lost) = (Vec::new(), 0, 0);
            while !ended.load(Ordering::Relaxed) {
                thread::sleep(FOLLOWER);
                lost += volume.take_observed(&mut requests);
                count += requests.len();
                requests.clear();
            }
            assert_eq!(lost, 0, "requests were lost on the way to a shadow");
            count
        });
        let outcome = run();
        ended.store(true, Ordering::Relaxed);
        taken = follower.join().expect("the follower lost nothing");
        volume.observe(false);
        outcome
    });
    assert!(taken > 0, "a shadow got no request");
    println!("a shadow got {taken} requests");
    outcome
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Whether the pacer keeps its promise, given how late bare sleepers on each core were meanwhile.
fn judge_pacing(volume: &LiveVolume, bare: &[Histogram<u64>]) -> bool {
    let pacing = volume.pacing();
    report(pacing);
    for (core, wakes) in bare.iter().enumerate() {
        let at = |quantile| us(wakes.value_at_quantile(quantile));
        println!(
            "a bare sleeper late by: p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us, of {}; core {core}",
            at(0.5),
            at(0.99),
            at(0.999),
            us(wakes.max()),
            wakes.len(),
        );
    }
    let limit = Nanos(u64::try_from(LATE.as_nanos()).expect("half a millisecond"));
    let late = Late { late: volume.answers_later_than(limit), all: pacing.count };
    let machine: Vec<_> = bare.iter().map(|wakes| later_than(wakes, LATE)).collect();
    let added = added_percent(late, &machine);
    println!("later than 500 us: {:.3}% of the answers, {:.3}% by the pacer", late.percent(), added.max(0.0));
    let medians: Vec<_> = bare.iter().map(|wakes| wakes.value_at_quantile(0.5)).collect();
    let limit = median_limit_ns(&medians);
    let promise = format!("at most {:.1} us", us(limit));
    judge("lateness, median", us(pacing.p50_ns), "us", pacing.p50_ns <= limit, &promise)
        & judge(
            "later than 500 us by the pacer",
            added,
            "%",
            added <= LATE_PERCENT,
            "at most 0.1% of answers",
        )
}

fn report(pacing: PacingReport) {
    println!(
        "answers late by: p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us, of {}; scheduling {}",
        us(pacing.p50_ns),
        us(pacing.p99_ns),
        us(pacing.p999_ns),
        us(pacing.max_ns),
        pacing.count,
        pacing.scheduling,
    );
}

/// Mean absolute deviation of the windows' counts from their mean, in percent of it.
fn deviation(completions_ms: &[u64], from: u64, until: u64, window_ms: u64) -> f64 {
    let windows = (until - from) / window_ms;
    let mut counts = vec![0_u32; usize::try_from(windows).expect("a handful of windows")];
    for at in completions_ms.iter().filter_map(|at| at.checked_sub(from)) {
        if let Some(count) = usize::try_from(at / window_ms).ok().and_then(|window| counts.get_mut(window)) {
            *count += 1;
        }
    }
    let mean = counts.iter().map(|&count| f64::from(count)).sum::<f64>() / counts.len() as f64;
    counts.iter().map(|&count| (f64::from(count) - mean).abs()).sum::<f64>() / counts.len() as f64 / mean
        * 100.0
}

/// When each I/O of fio's log completed, in milliseconds since the job's start.
fn completions_ms(log: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(log).expect("fio wrote the log that it was asked for");
    text.lines().filter_map(|line| line.split(',').next()?.trim().parse().ok()).collect()
}
