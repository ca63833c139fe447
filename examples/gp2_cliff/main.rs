//! The gp2 cliff, live: the same fio load on a 100 GiB gp2 volume that begins with few burst credits
//! and on a gp3 of the same size, both real block devices of this machine, compared with what the model
//! predicts for them. `./dev demo` runs it.

#[path = "../../tests/support/host.rs"]
mod host;
mod page;

use std::{
    fs,
    io::{IsTerminal, Write},
    path::PathBuf,
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use ebbtide_testing::fio::{Second, Series, by_second};

use crate::host::Host;

/// 1.5% of 5.4 million credits drain at 2,700 a second: 30 s.
const VOLUMES: [(&str, &str); 2] = [("gp2", "gp2:size=100GiB,credits=1.5%"), ("gp3", "gp3:size=100GiB")];
const JOB: &str = "rw=randread,bs=16k,iodepth=32";
const SECONDS: usize = 60;
/// The seconds that are compared, clear of the first second and of the step.
const BEFORE: (usize, usize) = (3, 28);
const AFTER: (usize, usize) = (34, 60);

/// How far the live rate may be from the model's before the run says nothing about the volume.
const AGREEMENT: f64 = 0.05;

/// One volume's hour of truth: what fio measured and what the model said.
struct Run {
    name: &'static str,
    spec: &'static str,
    live: Series,
    model: Series,
    /// When the burst ended on the live volume, in seconds.
    cliff: Option<usize>,
    /// How late the host answered against the model.
    lateness: String,
}

fn main() -> ExitCode {
    if host::skipped() {
        eprintln!(
            "the demonstration needs root, FUSE, loop devices and fio: run './dev setup' as root first"
        );
        return ExitCode::from(3);
    }
    let out = std::env::args().nth(1).unwrap_or_else(|| "target/demo".into());
    if out.starts_with('-') {
        eprintln!("usage: ./dev demo [DIRECTORY FOR THE REPORT]");
        return ExitCode::from(2);
    }
    let out = PathBuf::from(out);
    fs::create_dir_all(&out).expect("the report's directory can be made");
    let live = measure();
    let runs: Vec<_> = VOLUMES
        .iter()
        .zip(live)
        .map(|(&(name, spec), (live, lateness))| {
            let cliff = cliff(&live);
            Run { name, spec, live, model: predict(spec), cliff, lateness }
        })
        .collect();
    print(&runs);
    let file = out.join("gp2-cliff.html");
    fs::write(&file, page::page(&runs).to_html()).expect("the report can be written");
    println!("\nreport: {}", fs::canonicalize(&file).unwrap_or(file).display());
    ExitCode::from(u8::from(!runs.iter().all(Run::agrees)))
}

impl Run {
    /// Whether the live volume did what the model says, in both spans.
    fn agrees(&self) -> bool {
        [BEFORE, AFTER].iter().all(|&(from, to)| {
            (self.live.iops(from, to) / self.model.iops(from, to) - 1.0).abs() <= AGREEMENT
        })
    }
}

/// Attaches both volumes and runs fio on both at the same time.
fn measure() -> Vec<(Series, String)> {
    println!("starting a host, and attaching two volumes as block devices ...");
    let host = Host::start();
    let logs = tempfile::TempDir::with_prefix("ebbtide-demo-").expect("a temporary directory");
    let mut fio = Command::new("fio");
    fio.current_dir(logs.path());
    fio.args(["--direct=1", "--ioengine=libaio", "--time_based", "--norandommap", "--output=fio.txt"]);
    fio.arg(format!("--runtime={SECONDS}")).args(JOB.split(',').map(|word| format!("--{word}")));
    for (name, spec) in VOLUMES {
        let device = host.attached(name, spec, &[]);
        println!("  {name}: {spec} is {}", device.display());
        fio.arg(format!("--name={name}")).arg(format!("--filename={}", device.display()));
        fio.arg(format!("--write_lat_log={name}"));
    }
    println!("fio on both: {JOB}, {SECONDS} s");
    let mut fio = fio.spawn().expect("fio starts");
    let start = Instant::now();
    while fio.try_wait().expect("fio can be waited for").is_none() {
        if std::io::stderr().is_terminal() {
            show_progress(&host, start.elapsed());
        }
        thread::sleep(Duration::from_secs(1));
    }
    eprint!("\r\x1b[K");
    let read = |(number, (name, _)): (usize, (&str, &str))| {
        let log = logs.path().join(format!("{name}_clat.{}.log", number + 1));
        let series = by_second(&fs::read_to_string(log).expect("fio wrote its log"));
        (series, lateness(&host.json(&["volume", "show", name])["live"]["pacing"]))
    };
    VOLUMES.into_iter().enumerate().map(read).collect()
}

fn lateness(pacing: &Value) -> String {
    let us = |field: &str| pacing[field].as_f64().unwrap_or(f64::NAN) / 1e3;
    format!("median {:.0} us, p99 {:.0} us, p99.9 {:.0} us", us("p50_ns"), us("p99_ns"), us("p999_ns"))
}

fn show_progress(host: &Host, elapsed: Duration) {
    let gp2 = host.json(&["volume", "show", "gp2"]);
    let credits = gp2["credit_pct"].as_f64().unwrap_or(0.0);
    let queue = &gp2["live"]["stats"]["queue"];
    eprint!(
        "\r\x1b[K{} / {SECONDS} s, gp2 has {credits:.2}% of its credits, {queue} I/Os wait",
        elapsed.as_secs()
    );
    let _ = std::io::stderr().flush();
}

/// The same job on the same volume in virtual time.
fn predict(spec: &str) -> Series {
    let job = format!("{JOB},runtime={SECONDS}s");
    let output = host::ebbtide()
        .args(["--json", "simulate", "--interval", "1s", "--seed", "1", "--volume", spec, "--job", &job])
        .output()
        .expect("the program runs");
    let result: Value = serde_json::from_slice(&output.stdout).expect("simulate prints JSON");
    let number = |interval: &Value, field: &str| interval[field].as_f64().unwrap_or(0.0);
    let second = |interval: &Value| Second {
        ios: number(interval, "iops"),
        p50_us: number(interval, "p50_us"),
        p99_us: number(interval, "p99_us"),
    };
    Series(result["intervals"].as_array().expect("intervals").iter().map(second).collect())
}

/// The first second from which on less than half of the burst's IOPS came, for good.
fn cliff(series: &Series) -> Option<usize> {
    let burst = series.iops(BEFORE.0, BEFORE.1);
    let last = series.0[..SECONDS].iter().rposition(|second| second.ios >= burst / 2.0)?;
    (last + 1 < AFTER.0).then_some(last + 1)
}

fn print(runs: &[Run]) {
    println!("\n{:<5} {:<8} {:>24} {:>24}", "", "", before_label(), after_label());
    for run in runs {
        for (target, series) in [("live", &run.live), ("model", &run.model)] {
            let cell = |(from, to): (usize, usize)| {
                let p50 = series.mean(from, to, |second| second.p50_us) / 1e3;
                format!("{:.0} IOPS, {p50:.1} ms", series.iops(from, to))
            };
            println!("{:<5} {target:<8} {:>24} {:>24}", run.name, cell(BEFORE), cell(AFTER));
        }
    }
    for run in runs {
        println!("{:<5} answered late against the model: {}", run.name, run.lateness);
    }
    println!("\nIOPS, one bar for two seconds, a full bar is 3,000:");
    for run in runs {
        println!("{:<5} {}", run.name, bars(&run.live));
    }
    for line in page::findings(runs) {
        println!("\n{line}");
    }
}

fn before_label() -> String {
    format!("seconds {} to {}", BEFORE.0, BEFORE.1)
}

fn after_label() -> String {
    format!("seconds {} to {}", AFTER.0, AFTER.1)
}

fn bars(series: &Series) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |pair: &[Second]| {
        let iops = pair.iter().map(|second| second.ios).sum::<f64>() / pair.len() as f64;
        let level = (1..LEVELS.len()).filter(|&level| iops >= 3_000.0 * level as f64 / 7.5).count();
        LEVELS[level]
    };
    series.0.chunks(2).take(SECONDS / 2).map(bar).collect()
}
