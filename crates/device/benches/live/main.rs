//! What a live volume costs and how exactly it keeps time, measured through its block device.
//!
//! `cargo bench -p ebbtide-device --bench live -- overhead|cap|pacing [SECONDS] [--yardstick]`
//!
//! With `--yardstick`, `overhead` is beside the smallest possible FUSE server.
//!
//! The figures mean something on a machine that does nothing else. A tiny run (`BENCH_TINY=1`) measures for a second and
//! judges nothing.

mod busy_loops;
mod overhead;
mod sleeper;
#[path = "../../tests/live/support.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "it is the tests' own, and they use the rest")]
mod support;
mod timing;
mod yardstick;

use std::{path::PathBuf, process::ExitCode};

const MIB: u64 = 1 << 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == yardstick::janitor::WORD) {
        yardstick::janitor::clean_up(&arguments.map(PathBuf::from).collect::<Vec<_>>());
        return ExitCode::SUCCESS;
    }
    // cargo passes --bench as well.
    let words: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let tiny = ebbtide_testing::tiny();
    let seconds = |default| if tiny { 2 } else { default };
    let seconds =
        |default| words.iter().find_map(|word| word.parse::<u32>().ok()).unwrap_or(seconds(default));
    let wanted =
        |name| words.iter().all(|word| word.parse::<u32>().is_ok()) || words.iter().any(|w| w == name);
    if let Some(missing) = support::missing(&["fio"]) {
        println!("SKIPPED: {missing} is missing");
        return ExitCode::SUCCESS;
    }
    if std::env::args().any(|word| word == "--yardstick") {
        yardstick::run(seconds(4));
        return ExitCode::SUCCESS;
    }
    let mut kept = true;
    if wanted("overhead") {
        kept &= overhead::run(seconds(4));
    }
    if wanted("cap") {
        kept &= timing::cap(seconds(31));
    }
    if wanted("pacing") {
        kept &= timing::pacing(seconds(10));
    }
    if kept || tiny { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a figure next to its promise, and whether the promise is met.
fn judge(what: &str, figure: f64, unit: &str, kept: bool, promise: &str) -> bool {
    println!("{what:40} {figure:>12.3} {unit:5} {promise:34} {}", if kept { "kept" } else { "MISSED" });
    kept
}
