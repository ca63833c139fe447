//! What the rounds found, in numbers and as text.

use std::{fmt, path::PathBuf};

use super::{mode::Mode, outcome::Outcome, programs::Program};

/// How often a test ended how, in one mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) passed: u32,
    pub(super) failed: u32,
    pub(super) skipped: u32,
}

impl Count {
    fn runs(self) -> u32 {
        self.passed + self.failed
    }
}

/// What became of one test.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// Program and test.
    pub(super) name: String,
    pub(super) together: Count,
    pub(super) alone: Count,
    /// How it failed first, and the kept output.
    pub(super) first_failure: Option<(String, PathBuf)>,
    /// Why it was skipped last.
    pub(super) skipped: Option<String>,
}

impl Record {
    /// Adds a run.
    pub(super) fn count(&mut self, mode: Mode, outcome: Outcome) {
        let count = match mode {
            Mode::Together => &mut self.together,
            Mode::Alone => &mut self.alone,
        };
        match outcome {
            Outcome::Passed => count.passed += 1,
            Outcome::Failed(_) => count.failed += 1,
            Outcome::NotRun => {}
            Outcome::Skipped(why) => {
                count.skipped += 1;
                self.skipped = Some(why);
            }
        }
    }

    fn failed(&self) -> u32 {
        self.together.failed + self.alone.failed
    }

    fn runs(&self) -> u32 {
        self.together.runs() + self.alone.runs()
    }
}

/// What became of all tests.
#[derive(Debug)]
pub(super) struct Findings {
    /// By program, in the order of its tests.
    pub(super) records: Vec<Vec<Record>>,
    /// Rounds that ended.
    pub(super) rounds: u32,
    /// Rounds that were asked for.
    wanted: u32,
    /// Whether the user ended it.
    pub(super) interrupted: bool,
}

impl Findings {
    /// Nothing found yet.
    pub(super) fn new(programs: &[Program], wanted: u32) -> Self {
        let record = |program: &Program, test: &String| Record {
            name: format!("{} {test}", program.name),
            together: Count::default(),
            alone: Count::default(),
            first_failure: None,
            skipped: None,
        };
        let records =
            programs.iter().map(|it| it.tests.iter().map(|test| record(it, test)).collect()).collect();
        Self { records, rounds: 0, wanted, interrupted: false }
    }

    fn all(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().flatten()
    }

    /// The exit code: 0 all tests that ran always passed; 1 some did not; 3 none ran, or not all rounds.
    pub(super) fn exit(&self) -> u8 {
        if self.all().any(|record| record.failed() > 0) {
            1
        } else if self.interrupted || self.all().all(|record| record.runs() == 0) {
            3
        } else {
            0
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut flaky: Vec<_> = self.all().filter(|record| record.failed() > 0).collect();
        flaky.sort_by_key(|record| std::cmp::Reverse(record.failed()));
        for record in &flaky {
            writeln!(f, "{} failed {} of {} runs", record.name, record.failed(), record.runs())?;
            for (mode, count) in [(Mode::Together, record.together), (Mode::Alone, record.alone)] {
                if count.runs() > 0 {
                    writeln!(f, "    {mode}: {} of {}", count.failed, count.runs())?;
                }
            }
            if let Some((how, log)) = &record.first_failure {
                writeln!(f, "    first: {how}: {}", log.display())?;
            }
        }
        for record in self.all().filter(|record| record.runs() == 0) {
            let why = record.skipped.as_deref().map_or("did not run".into(), |why| format!("SKIPPED: {why}"));
            writeln!(f, "{}: {why}", record.name)?;
        }
        let ran = self.all().filter(|record| record.runs() > 0).count();
        let rounds = match self.interrupted {
            true => format!("{} of {} rounds (interrupted)", self.rounds, self.wanted),
            false => format!("{} rounds", self.rounds),
        };
        writeln!(
            f,
            "{rounds}: {} of {ran} tests do not always pass, {} did not run",
            flaky.len(),
            self.all().count() - ran
        )
    }
}
