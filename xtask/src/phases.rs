//! Phases of a long command: how long each took, which tests and checks failed, and the summary at the end.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::test_log::{self, Tally};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// The machine lacks what the check needs.
    Skipped,
}

impl From<bool> for Outcome {
    fn from(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

/// Lines that are shown of a log in which no test has failed, although its command did.
const LAST_LINES: usize = 60;

/// What was done so far.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    times: Vec<(Duration, String)>,
    tally: Tally,
    failures: String,
}

impl Phases {
    /// A phase that took place before this process began.
    pub(crate) fn add_time(&mut self, took: Duration, name: impl Into<String>) {
        self.times.push((took, name.into()));
    }

    /// Runs a phase and remembers how long it took.
    pub(crate) fn phase<T>(&mut self, name: &str, run: impl FnOnce() -> T) -> T {
        eprintln!("== {name}");
        let began = Instant::now();
        let result = run();
        self.add_time(began.elapsed(), name);
        result
    }

    /// Runs a phase that counts as one test.
    pub(crate) fn check(&mut self, name: &str, run: impl FnOnce() -> Result<Outcome>) {
        let outcome = self.phase(name, run).unwrap_or_else(|error| {
            eprintln!("{error:#}");
            Outcome::Failed
        });
        match outcome {
            Outcome::Passed => self.tally.passed += 1,
            Outcome::Skipped => self.tally.skipped += 1,
            Outcome::Failed => {
                self.tally.failed += 1;
                eprintln!("FAILED: {name}");
            }
        }
    }

    /// Adds the counts and the failures of a log of tests, and whether the command that wrote it passed.
    pub(crate) fn count_tests(&mut self, log: &str, passed: bool) {
        let mut tally = Tally::of(log);
        let mut failures = test_log::failures(log);
        if !passed {
            // A test program that died, or did not compile, names no failed test.
            tally.failed = tally.failed.max(1);
            if failures.is_empty() {
                let lines: Vec<_> = log.lines().collect();
                failures = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n") + "\n";
            }
        }
        self.failures += &failures;
        self.tally.passed += tally.passed;
        self.tally.failed += tally.failed;
        self.tally.skipped += tally.skipped;
    }

    /// Counts tests that were left out.
    pub(crate) fn count_skipped(&mut self, tests: usize) {
        self.tally.skipped += tests as u64;
    }

    /// Prints the summary; whether nothing failed.
    pub(crate) fn finish(&self) -> bool {
        let (details, counts) = self.summary();
        eprint!("{details}");
        println!("{counts}");
        self.tally.failed == 0
    }

    /// The times and the failures; and the counts, which come last, where nobody can miss them.
    fn summary(&self) -> (String, String) {
        let mut text = "== time per phase\n".to_owned();
        for (took, name) in &self.times {
            let _ = writeln!(text, "{:7.1} s  {name}", took.as_secs_f64());
        }
        if !self.failures.is_empty() {
            let _ = writeln!(text, "== failed tests\n{}", self.failures);
        }
        let Tally { passed, failed, skipped } = self.tally;
        (text, format!("{passed} passed, {failed} failed, {skipped} skipped"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn checks_and_tests_are_counted_together_and_times_come_in_their_order() {
        let mut phases = Phases::default();
        phases.add_time(Duration::from_millis(12_340), "setup");
        phases.check("format", || Ok(Outcome::Passed));
        phases.check("tidy", || Ok(Outcome::Failed));
        phases.check("deny", || Ok(Outcome::Skipped));
        phases.check("shell", || Err(anyhow!("it cannot run")));
        phases.count_tests("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n", true);
        phases.count_skipped(2);
        let (details, counts) = phases.summary();
        assert_eq!(counts, "4 passed, 2 failed, 4 skipped");
        assert!(details.starts_with("== time per phase\n   12.3 s  setup\n    0.0 s  format\n"), "{details}");
        assert!(!details.contains("failed tests"), "{details}");
        assert!(!phases.finish());
    }

    #[test]
    fn a_command_that_failed_without_a_failed_test_counts_as_one_and_shows_its_last_lines() {
        let mut phases = Phases::default();
        let log = "line\n".repeat(200) + "error: it does not compile\n";
        phases.count_tests(&log, false);
        let (details, counts) = phases.summary();
        assert_eq!(counts, "0 passed, 1 failed, 0 skipped");
        assert!(
            details.ends_with("error: it does not compile\n\n") && details.lines().count() < 70,
            "{details}"
        );
    }
}
