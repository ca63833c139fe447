//! A 100 GiB volume with 10 GiB of data under a write load: how long a snapshot and a crash image
//! take, the command included, and how much memory the host process holds. A tiny run (`BENCH_TINY=1`) writes 64 MiB,
//! takes one of each, and judges nothing.
#![allow(clippy::unwrap_used)] // a bench fails by a panic

#[path = "../tests/support/host.rs"]
mod host;

use std::{
    fs,
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    time::Instant,
};

use crate::host::Host;

const WRITTEN_MIB: u64 = 10 << 10;
const ROUNDS: usize = 7;
/// What the promises allow.
const COPY_MS: f64 = 100.0;
const MEMORY_MIB: f64 = 64.0;
const MEMORY_BYTES_PER_BLOCK: f64 = 8.0;

fn main() -> ExitCode {
    if host::skipped() {
        return ExitCode::from(3);
    }
    let host = Host::start();
    let device = host.attached("big", "ideal:size=100GiB", &[]);
    let (written_mib, rounds) = if ebbtide_testing::tiny() { (64, 1) } else { (WRITTEN_MIB, ROUNDS) };
    let size = format!("--size={written_mib}m");
    let filled = fio(&device, &["--rw=write", "--bs=1m", &size]).wait().unwrap();
    assert!(filled.success(), "fio could not fill the volume");
    let load = ["--rw=randwrite", "--bs=16k", "--time_based", "--runtime=600", &size];
    let mut load = fio(&device, &load);
    let mut kept = true;
    kept &= copies(&host, rounds, "snapshot", |name| vec!["snapshot", "create", name, "--volume", "big"]);
    kept &= copies(&host, rounds, "crash image", |name| vec!["volume", "crash-image", "big", name]);
    load.kill().unwrap();
    load.wait().unwrap();
    let budget = MEMORY_MIB + written_mib as f64 * 256.0 * MEMORY_BYTES_PER_BLOCK / f64::from(1 << 20);
    kept &= judge("memory of the host process", "MiB", resident_mib(host.pid()), budget);
    ExitCode::from(u8::from(!kept && !ebbtide_testing::tiny()))
}

fn fio(device: &Path, words: &[&str]) -> Child {
    Command::new("fio")
        .args(["--name=space", "--direct=1", "--ioengine=libaio", "--iodepth=16", "--output=/dev/null"])
        .arg(format!("--filename={}", device.display()))
        .args(words)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn copies(host: &Host, rounds: usize, kind: &str, command: fn(&str) -> Vec<&str>) -> bool {
    let time = |round| {
        let name = format!("{}{round}", kind.replace(' ', "-"));
        let start = Instant::now();
        host.json(&command(&name));
        start.elapsed().as_secs_f64() * 1e3
    };
    let mut millis: Vec<_> = (0..rounds).map(time).collect();
    millis.sort_by(f64::total_cmp);
    println!("{kind}: {:.1} ms [{:.1}-{:.1}]", millis[rounds / 2], millis[0], millis[rounds - 1]);
    judge(kind, "ms", millis[rounds / 2], COPY_MS)
}

fn judge(what: &str, unit: &str, figure: f64, most: f64) -> bool {
    let kept = figure <= most;
    println!("{} {what}: {figure:.1} {unit}, at most {most:.0}", if kept { "kept  " } else { "MISSED" });
    kept
}

fn resident_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
