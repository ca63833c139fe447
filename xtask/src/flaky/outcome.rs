//! What a run of a test program reports of each of its tests.

use super::process::End;

/// What became of one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It held.
    Passed,
    /// The machine lacks what it needs: what it printed after `SKIPPED:`.
    Skipped(String),
    /// It did not hold: how.
    Failed(String),
    /// Nothing is known, because another test ended the program.
    NotRun,
}

/// The outcome of each of the tests (by their exact names) that a program was asked for, from its output and its end.
///
/// What a test's child processes print goes past the test harness and may be anywhere in a line, so that only the
/// harness's closing list is believed, and the line `test NAME ...` of the test that ended the program.
pub(super) fn outcomes(tests: &[&str], output: &str, end: End) -> Vec<Outcome> {
    let complete = matches!(end, End::Status(0 | 101)) && output.lines().any(is_result);
    let culprit = (!complete).then(|| started(tests, output).last().copied()).flatten();
    let failed = failures(output);
    let outcome = |(number, test): (usize, &&str)| {
        if failed.contains(test) || output.lines().any(|line| line == format!("test {test} ... FAILED")) {
            Outcome::Failed("failed".into())
        } else if culprit.is_some_and(|culprit| culprit == number) {
            Outcome::Failed(how(end))
        } else if !complete {
            // Those after the culprit had no turn; of those before it nothing shows whether one was skipped.
            Outcome::NotRun
        } else if let Some(why) = skipped(test, output) {
            Outcome::Skipped(why)
        } else {
            Outcome::Passed
        }
    };
    let mut outcomes: Vec<_> = tests.iter().enumerate().map(outcome).collect();
    // A run that failed and blames no test is a failure all the same.
    let blamed = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(_)));
    if end != End::Status(0) && !blamed {
        outcomes.fill(Outcome::Failed(how(end)));
    } else if !output.lines().any(is_result) && !blamed {
        outcomes.fill(Outcome::Failed("the program ended before it ran it".into()));
    }
    outcomes
}

fn how(end: End) -> String {
    match end {
        End::Status(code) => format!("ended the program with exit status {code}"),
        End::Signal(signal) => format!("ended the program by signal {signal}"),
        End::TimeLimit(limit) => format!("did not end within {} s", limit.as_secs_f64()),
        End::Interrupted => "was interrupted".into(),
    }
}

fn is_result(line: &str) -> bool {
    line.starts_with("test result: ")
}

/// Positions of the tests that the harness began, in that order.
fn started(tests: &[&str], output: &str) -> Vec<usize> {
    let begun = |line: &str| {
        let name = line.strip_prefix("test ")?.split(" ...").next()?;
        // `test NAME - should panic ...`
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        tests.iter().position(|test| *test == name)
    };
    output.lines().filter_map(begun).collect()
}

/// The names in the list `failures:` that the harness ends with.
fn failures(output: &str) -> Vec<&str> {
    let Some(at) = output.rfind("\nfailures:\n") else { return Vec::new() };
    output[at..].lines().skip(2).map_while(|line| line.strip_prefix("    ")).collect()
}

/// What a test printed after `SKIPPED:`, in the section of the output that is its own.
fn skipped(test: &str, output: &str) -> Option<String> {
    let section = format!("---- {test} stdout ----");
    let mut own = output.lines().skip_while(|line| *line != section).skip(1);
    let why = own.by_ref().take_while(|line| !line.starts_with("---- ") && !is_result(line));
    why.filter_map(|line| line.strip_prefix("SKIPPED:")).map(|why| why.trim().to_owned()).next()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TESTS: [&str; 3] = ["m::a", "m::b", "m::c"];

    #[test]
    fn the_closing_list_names_the_failed_tests() {
        let output = "\nrunning 3 tests\ntest m::a ... ok\ntest m::b ... noise of a childFAILED\ntest m::c ... ok\n\n\
                      successes:\n\n---- m::c stdout ----\nSKIPPED: no /dev/fuse\n\n\nsuccesses:\n    m::a\n    m::c\n\n\
                      failures:\n\n---- m::b stdout ----\nfailures:\n    m::a\n\nfailures:\n    m::b\n\n\
                      test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out\n";
        let expected =
            [Outcome::Passed, Outcome::Failed("failed".into()), Outcome::Skipped("no /dev/fuse".into())];
        assert_eq!(outcomes(&TESTS, output, End::Status(101)), expected);
    }

    #[test]
    fn the_test_that_ended_the_program_is_blamed_and_no_other() {
        let output = "\nrunning 3 tests\ntest m::a ... ok\ntest m::b - should panic ... ";
        let blamed = |end| outcomes(&TESTS, output, end);
        let by = |how: &str| [Outcome::NotRun, Outcome::Failed(how.into()), Outcome::NotRun];
        assert_eq!(blamed(End::Signal(6)), by("ended the program by signal 6"));
        assert_eq!(blamed(End::Status(0)), by("ended the program with exit status 0"));
        assert_eq!(blamed(End::TimeLimit(Duration::from_secs(600))), by("did not end within 600 s"));
    }

    #[test]
    fn a_failure_before_the_end_of_the_program_counts() {
        let output = "\nrunning 3 tests\ntest m::a ... FAILED\ntest m::b ... ";
        let failed = |how: &str| Outcome::Failed(how.into());
        let expected = [failed("failed"), failed("ended the program by signal 9"), Outcome::NotRun];
        assert_eq!(outcomes(&TESTS, output, End::Signal(9)), expected);
    }

    #[test]
    fn a_run_that_reports_nothing_is_no_success() {
        for end in [End::Status(0), End::Status(1), End::Signal(11)] {
            assert!(outcomes(&TESTS, "", end).iter().all(|outcome| matches!(outcome, Outcome::Failed(_))));
        }
    }
}
