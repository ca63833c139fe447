//! How evenly a cap is kept, and how late answers are.

use std::path::Path;

use ebbtide_device::engine::PacingReport;
use ebbtide_volume::Nanos;

use crate::{
    MIB,
    hogs::Hogs,
    judge,
    support::{Attached, capped, fio, slow},
};

const SIZE: u64 = 256 * MIB;
const CAP: u64 = 3_000;
const DEPTH: u64 = 32;
/// The first second is left out: fio starts in the middle of it.
const WARM_UP_MS: u64 = 1_000;

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
    report(attached.volume.pacing(), false);
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

/// Lateness while two other processes keep the cores busy.
pub(crate) fn pacing(seconds: u32) -> bool {
    let runtime = format!("--runtime={seconds}");
    let _hogs = Hogs::new(2);
    let volumes = [
        ("3,000 IOPS cap, depth 32", capped(SIZE, CAP), "--iodepth=32"),
        ("500 us service time, depth 1", slow(SIZE, Nanos::from_us(500)), "--iodepth=1"),
        ("500 us service time, depth 8", slow(SIZE, Nanos::from_us(500)), "--iodepth=8"),
    ];
    let mut kept = true;
    for (name, limits, depth) in volumes {
        let attached = Attached::filled(limits);
        for direction in ["--rw=randread", "--rw=randwrite"] {
            attached.volume.reset_pacing();
            let measured = fio(&attached.path(), &[direction, "--bs=16k", depth, "--time_based", &runtime]);
            println!("{name}, {direction}, two busy processes: {:.0} IOPS", measured.iops);
            kept &= report(attached.volume.pacing(), true);
        }
    }
    kept
}

fn report(pacing: PacingReport, judged: bool) -> bool {
    let us = |ns: u64| ns as f64 / 1e3;
    println!(
        "answers late by: p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us, of {}; scheduling {}",
        us(pacing.p50_ns),
        us(pacing.p99_ns),
        us(pacing.p999_ns),
        us(pacing.max_ns),
        pacing.count,
        pacing.scheduling,
    );
    !judged
        || judge("lateness, median", us(pacing.p50_ns), "us", pacing.p50_ns <= 50_000, "at most 50 us")
            & judge("lateness, p99.9", us(pacing.p999_ns), "us", pacing.p999_ns <= 500_000, "at most 500 us")
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
