//! `cargo xtask flaky`: repeats the tests that involve threads, processes or the kernel, and lists those that do
//! not always pass. `./dev flaky` calls it.
//!
//! Each round runs every test program as `./dev test` does, one test at a time in one process, and then each of its
//! tests alone in a process of its own: a race may need either the state that an earlier test left, or the start of
//! the process. Which programs are left out is in `xtask/tidy.toml` under `[repeat]`.

mod mode;
mod outcome;
mod process;
mod programs;
mod repeat;
mod report;
#[cfg(test)]
mod tests;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use self::{
    mode::Mode,
    programs::Program,
    repeat::{Limits, Plan},
};

/// How the command is called.
pub(crate) const USAGE: &str =
    "cargo xtask flaky [--alone | --together] [--package PACKAGE] [--out DIR] [ROUNDS] [NAME]";
/// Rounds where none are named.
const ROUNDS: u32 = 20;
/// The longest that one test, and one program as a whole, may take before it counts as one that does not end.
const LIMITS: Limits = Limits { alone: Duration::from_secs(600), together: Duration::from_secs(3_600) };

/// The request failed in the environment: nothing was built, or nothing could run.
const ENVIRONMENT: u8 = 3;
/// The command line is wrong.
const USAGE_ERROR: u8 = 2;

/// The words of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    rounds: u32,
    /// Only tests whose `PROGRAM TEST` contains it.
    name: String,
    /// Only tests of this package, and only it is built.
    package: Option<String>,
    modes: Vec<Mode>,
    out: PathBuf,
}

impl Request {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let mut request = Self {
            rounds: ROUNDS,
            name: String::new(),
            package: None,
            modes: vec![Mode::Together, Mode::Alone],
            out: PathBuf::from("target/flaky"),
        };
        let mut words = words.iter();
        let mut named_rounds = false;
        while let Some(&word) = words.next() {
            match word {
                "--alone" => request.modes = vec![Mode::Alone],
                "--together" => request.modes = vec![Mode::Together],
                "--package" | "-p" => {
                    request.package = Some((*words.next().ok_or("--package needs a name")?).into());
                }
                "--out" => request.out = words.next().ok_or("--out needs a directory")?.into(),
                option if option.starts_with('-') => return Err(format!("no option is called {option}")),
                number if !named_rounds && number.parse::<u64>().is_ok() => {
                    named_rounds = true;
                    let rounds = number.parse().ok().filter(|rounds| (1..=100_000).contains(rounds));
                    request.rounds = rounds.ok_or(format!("{number} rounds: 1 to 100000 are possible"))?;
                }
                name if request.name.is_empty() => request.name = name.into(),
                further => return Err(format!("one NAME is possible, and {further} is a second")),
            }
        }
        Ok(request)
    }
}

/// Builds all tests, repeats them, prints what was found. 0: all pass always; 1: some do not.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let request = match Request::parse(words) {
        Ok(request) => request,
        Err(error) => {
            eprintln!("flaky: {error}\nusage: {USAGE}");
            return Ok(ExitCode::from(USAGE_ERROR));
        }
    };
    let Some(mut programs) = programs::build(request.package.as_deref())? else {
        eprintln!("flaky: the tests do not build");
        return Ok(ExitCode::from(ENVIRONMENT));
    };
    programs.iter_mut().for_each(|program| program.keep(&request.name));
    programs.retain(|program| !program.tests.is_empty());
    if programs.is_empty() {
        eprintln!("flaky: no repeated test has `{}` in `PROGRAM TEST`", request.name);
        return Ok(ExitCode::from(USAGE_ERROR));
    }
    std::fs::create_dir_all(&request.out)
        .with_context(|| format!("cannot create {}", request.out.display()))?;
    announce(&programs, &request);

    let plan = Plan { rounds: request.rounds, modes: request.modes, limits: LIMITS, out: request.out };
    let signals = count_signals()?;
    let findings = repeat::repeat(&programs, &plan, &signals, |line| eprintln!("{line}"))?;
    print!("{findings}");
    Ok(ExitCode::from(findings.exit()))
}

fn announce(programs: &[Program], request: &Request) {
    let tests: usize = programs.iter().map(|program| program.tests.len()).sum();
    let modes: Vec<_> = request.modes.iter().map(ToString::to_string).collect();
    eprintln!(
        "flaky: {} rounds of {tests} tests in {} programs, {}; outputs of failures: {}",
        request.rounds,
        programs.len(),
        modes.join(" and "),
        request.out.display()
    );
    eprintln!("flaky: Ctrl-C ends it after the test that runs, and a second one ends that test too");
}

/// Counts requests to end, instead of ending at once: a test that is killed leaves mounts and servers behind.
fn count_signals() -> Result<Arc<AtomicUsize>> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for _ in &mut signals {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    Ok(count)
}
