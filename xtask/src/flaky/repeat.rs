//! The rounds: each program as a whole, each test alone, and what became of each test.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::{
    mode::Mode,
    outcome::{Outcome, outcomes},
    process::{self, End},
    programs::Program,
    report::{Findings, Record},
};

/// The longest that a process may run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// With one test.
    pub(super) alone: Duration,
    /// With all tests of a program.
    pub(super) together: Duration,
}

/// What is to be done.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) rounds: u32,
    pub(super) modes: Vec<Mode>,
    pub(super) limits: Limits,
    /// An existing directory, for the outputs of failures.
    pub(super) out: PathBuf,
}

/// Runs all rounds, or as many as end before `signals` counts one; `report` gets a line for each failure and round.
pub(super) fn repeat(
    programs: &[Program],
    plan: &Plan,
    signals: &AtomicUsize,
    mut report: impl FnMut(&str),
) -> Result<Findings> {
    let mut findings = Findings::new(programs, plan.rounds);
    let began = Instant::now();
    for round in 1..=plan.rounds {
        for (number, program) in programs.iter().enumerate() {
            for &mode in &plan.modes {
                for tests in groups(program, mode) {
                    if signals.load(Ordering::Relaxed) > 0 {
                        findings.interrupted = true;
                        return Ok(findings);
                    }
                    let run = Run { program, mode, round, plan };
                    run.record(&tests, &mut findings.records[number], signals, &mut report)?;
                }
            }
        }
        findings.rounds = round;
        let each = began.elapsed().as_secs_f64() / f64::from(round);
        let left = each * f64::from(plan.rounds - round);
        report(&format!(
            "flaky: round {round} of {} ended; {each:.0} s a round, {left:.0} s to go",
            plan.rounds
        ));
    }
    Ok(findings)
}

/// Positions of the tests that go into one process.
fn groups(program: &Program, mode: Mode) -> Vec<Vec<usize>> {
    let all = 0..program.tests.len();
    match mode {
        Mode::Together => vec![all.collect()],
        Mode::Alone => all.map(|test| vec![test]).collect(),
    }
}

struct Run<'a> {
    program: &'a Program,
    mode: Mode,
    round: u32,
    plan: &'a Plan,
}

impl Run<'_> {
    fn record(
        &self,
        tests: &[usize],
        records: &mut [Record],
        signals: &AtomicUsize,
        report: &mut impl FnMut(&str),
    ) -> Result<()> {
        let log = self.plan.out.join(format!(".running-{}", std::process::id()));
        let names: Vec<_> = tests.iter().map(|&test| self.program.tests[test].as_str()).collect();
        let limit = match self.mode {
            Mode::Together => self.plan.limits.together,
            Mode::Alone => self.plan.limits.alone,
        };
        let end = process::run(self.program, &names, &log, limit, signals)?;
        let bytes = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
        let mut kept = None;
        if end != End::Interrupted {
            let outcomes = outcomes(&names, &String::from_utf8_lossy(&bytes), end);
            for (&test, outcome) in tests.iter().zip(outcomes) {
                let mut keep = || self.keep(&log, &self.program.tests[test], &mut kept);
                if let Outcome::Failed(how) = &outcome {
                    let log = keep()?;
                    let name = format!("{} {}", self.program.name, self.program.tests[test]);
                    let (mode, round) = (self.mode, self.round);
                    report(&format!("FAILED: {name}: {how} (round {round}, {mode}): {}", log.display()));
                    records[test].first_failure.get_or_insert_with(|| (how.clone(), log));
                }
                records[test].count(self.mode, outcome);
            }
        }
        if kept.is_none() {
            fs::remove_file(&log).with_context(|| format!("cannot remove {}", log.display()))?;
        }
        Ok(())
    }

    /// Gives the output of this run the name of the first test that failed in it.
    fn keep(&self, log: &Path, test: &str, kept: &mut Option<PathBuf>) -> Result<PathBuf> {
        if let Some(kept) = kept {
            return Ok(kept.clone());
        }
        let name = format!("{}-{test}", self.program.name).replace([' ', ':', '/'], "-");
        let path = self.plan.out.join(format!("{name}-{}-{}.log", self.round, self.mode));
        fs::rename(log, &path).with_context(|| format!("cannot name {}", path.display()))?;
        Ok(kept.insert(path).clone())
    }
}
