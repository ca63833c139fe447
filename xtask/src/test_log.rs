//! Reads what test programs print with `--show-output`: counts the tests, shortens the output for a terminal, cuts out
//! what belongs to failures, and notes how long each test took.

use std::io::{BufRead, Write};
use std::time::Duration;

/// Lines of a failed test that are shown from its end; the panic is among them.
const LAST_LINES: usize = 80;

/// How a program begins in the output: a test program, or the doc tests of a crate.
const BEGINS: [&str; 2] = ["     Running ", "   Doc-tests "];

/// How `./dev test` and cargo say that a program ended with a status other than 0.
const ENDED: [&str; 3] = ["     Ended with status ", "error: test failed", "error: doctest failed"];

/// How many of the slowest tests are listed.
const SLOWEST: usize = 20;

/// Adds a line after each test that took a second, with its time, while the output comes: the time since the test before it ended.
/// `elapsed` is the time since any fixed instant. Of programs that run one test at a time.
///
/// # Errors
/// When a line cannot be read or written.
pub(crate) fn time(
    log: impl BufRead,
    mut out: impl Write,
    elapsed: impl Fn() -> Duration,
) -> std::io::Result<()> {
    let mut began = elapsed();
    // The test that runs. What its child processes print goes past the harness, and may be anywhere in its line.
    let mut running: Option<String> = None;
    for line in log.split(b'\n') {
        let mut line = line?;
        let text = String::from_utf8_lossy(&line);
        if let Some((name, end)) = text.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
            running = (!end.starts_with("ignored")).then(|| name.to_owned());
        }
        if text.starts_with("running ") {
            (began, running) = (elapsed(), None);
        } else if (text.ends_with("ok") || text.ends_with("FAILED"))
            && let Some(name) = running.take()
        {
            let now = elapsed();
            let took = now.saturating_sub(began).as_secs_f64();
            began = now;
            if took >= 1.0 {
                line.extend(format!("\n{TOOK}{took:.1} s  {name}").bytes());
            }
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

/// How a line begins that says how long a test took.
const TOOK: &str = "took ";

/// The slowest tests of a log with times, the slowest first.
pub(crate) fn slowest(log: &str) -> String {
    let mut program = "";
    let mut all: Vec<(f64, &str, &str)> = Vec::new();
    for line in log.lines() {
        if let Some(name) = program_of(line) {
            program = name.split(" (").next().unwrap_or(name);
        } else if let Some((took, name)) = line.strip_prefix(TOOK).and_then(|took| took.split_once(" s  ")) {
            all.extend(took.parse().ok().map(|took: f64| (took, program, name)));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.truncate(SLOWEST);
    all.iter().map(|(took, program, name)| format!("{took:7.1} s  {program}: {name}\n")).collect()
}

/// Shortens the output while it comes: of tests that passed, only that they said SKIPPED is kept.
///
/// # Errors
/// When a line cannot be read or written.
pub(crate) fn shorten(log: impl BufRead, mut out: impl Write) -> std::io::Result<()> {
    let mut passed = false;
    let mut test = String::new();
    for line in log.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        match line.as_ref() {
            "successes:" => passed = true,
            "failures:" => passed = false,
            _ if line.starts_with("test result: ") => passed = false,
            _ => {}
        }
        if !passed {
            writeln!(out, "{line}")?;
        } else if let Some(name) = block_of(&line) {
            name.clone_into(&mut test);
        } else if line.starts_with("SKIPPED:") {
            writeln!(out, "{test}: {line}")?;
        }
    }
    Ok(())
}

/// The name of the test whose output begins with a line.
fn block_of(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// What failed tests printed, and the last lines of programs that failed without a failed test. Long output is cut
/// at its front.
pub(crate) fn failures(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    let mut found = String::new();
    for (name, of_program) in parts(&lines, program_of) {
        add_failures(&mut found, name, of_program);
    }
    found
}

/// The parts of some lines: the name that the first line of each has, and the lines after it.
fn parts<'l, 't>(
    lines: &'l [&'t str],
    name_of: fn(&'t str) -> Option<&'t str>,
) -> Vec<(&'t str, &'l [&'t str])> {
    let starts: Vec<_> =
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, name_of(line)?))).collect();
    let ends = starts.iter().skip(1).map(|&(at, _)| at).chain([lines.len()]);
    starts.iter().zip(ends).map(|(&(at, name), end)| (name, &lines[at + 1..end])).collect()
}

/// The name of the program whose output begins with a line.
fn program_of(line: &str) -> Option<&str> {
    BEGINS.iter().find_map(|begin| line.strip_prefix(begin))
}

/// Adds the failures of one program.
fn add_failures(found: &mut String, name: &str, lines: &[&str]) {
    let Some(failed) = lines.iter().position(|line| *line == "failures:") else {
        if lines.iter().any(|line| ENDED.iter().any(|ended| line.starts_with(ended))) {
            add_block(found, &format!("{name}: no test failed, and the program did"), lines);
        }
        return;
    };
    // The second of the headings begins the list of names.
    let names = lines.iter().rposition(|line| *line == "failures:").unwrap_or(failed);
    let blocks = lines.get(failed + 1..names).unwrap_or_default();
    for (test, printed) in parts(blocks, block_of) {
        add_block(found, &format!("{name}: {test}"), printed);
    }
}

fn add_block(found: &mut String, title: &str, lines: &[&str]) {
    let cut = lines.len().saturating_sub(LAST_LINES);
    found.push_str(&format!("-- {title}\n"));
    if cut > 0 {
        found.push_str(&format!("[{cut} lines before]\n"));
    }
    for line in &lines[cut..] {
        found.push_str(line);
        found.push('\n');
    }
}

/// How many tests there were.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Ran and held.
    pub(crate) passed: u64,
    /// Did not hold.
    pub(crate) failed: u64,
    /// Were ignored, or printed `SKIPPED:` because the machine lacks something.
    pub(crate) skipped: u64,
}

impl Tally {
    /// The counts of all test programs in the log.
    ///
    /// The test harness knows no skipped test: one that printed a line that begins with `SKIPPED:`
    /// is among those that passed, and is taken off there.
    pub(crate) fn of(log: &str) -> Self {
        let mut tally = Self::default();
        let mut said_skipped = 0;
        let mut said_so = false;
        for line in log.lines() {
            if line.starts_with("---- ") {
                said_so = false;
            } else if line.starts_with("SKIPPED:") && !said_so {
                said_so = true;
                said_skipped += 1;
            } else if let Some(result) = line.strip_prefix("test result: ") {
                tally.passed += count(result, "passed");
                tally.failed += count(result, "failed");
                tally.skipped += count(result, "ignored");
            }
        }
        tally.passed = tally.passed.saturating_sub(said_skipped);
        tally.skipped += said_skipped;
        tally
    }
}

/// The number before a word of cargo's result line.
fn count(result: &str, word: &str) -> u64 {
    let words: Vec<_> = result.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_printed_skipped_is_not_counted_as_passed() {
        let log = "\
running 3 tests
test a ... ok
successes:

---- live::a stdout ----
SKIPPED: no /dev/fuse
SKIPPED: no fio either

---- live::b stdout ----
seed 7

test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.00s

test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s
";
        assert_eq!(Tally::of(log), Tally { passed: 7, failed: 2, skipped: 2 });
    }

    #[test]
    fn each_test_has_its_time_and_the_slowest_of_all_programs_are_listed_first() {
        let log = "     Running device lib (/target/lib) \n\nrunning 2 tests\ntest a ... ok\ntest b ... noise\nof a childFAILED\n\
                   test e ... ignored\n---- a stdout ----\nall is ok\n     Running device live (/target/live) \nrunning 1 test\n\
                   test c - should panic ... ok\n";
        // Each look at the clock is a second and a half after the one before.
        let looks = std::cell::Cell::new(0_u32);
        let elapsed = || Duration::from_millis(1500 * u64::from(looks.replace(looks.get() + 1)));
        let mut timed = Vec::new();
        time(log.as_bytes(), &mut timed, elapsed).unwrap();
        let timed = String::from_utf8(timed).unwrap();
        assert!(timed.contains("\ntest a ... ok\ntook 1.5 s  a\ntest b ... noise\n"), "{timed}");
        assert!(timed.contains("childFAILED\ntook 1.5 s  b\ntest e ... ignored\n---- a stdout"), "{timed}");
        assert!(timed.contains("\nall is ok\n     Running"), "{timed}");
        let slower = timed.replace("took 1.5 s  c", "took 20.0 s  c");
        let expected =
            "   20.0 s  device live: c - should panic\n    1.5 s  device lib: a\n    1.5 s  device lib: b\n";
        assert_eq!(slowest(&slower), expected);
    }

    const LOG: &str = "     Running device lib (/target/lib) 
running 3 tests
test a ... ok
test b ... FAILED
test c ... ok

successes:

---- a stdout ----
seed 1

---- c stdout ----
SKIPPED: no fio

successes:
    a
    c

failures:

---- b stdout ----
seed 2
b panicked at b.rs:1

failures:
    b

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
     Running device live (/target/live) 
running 1 test
test d ... stack overflow
     Ended with status 139
     Running benches/speed.rs (/target/speed)
17 million I/Os a second
     Running benches/space.rs (/target/space)
error: test failed, to rerun pass `-p ebbtide --bench space`

Caused by:
  process didn't exit successfully: `/target/space` (signal: 6, SIGABRT: process abort signal)
   Doc-tests device

failures:

---- store.rs - Store (line 9) stdout ----
Test executable failed (exit status: 101).

failures:
    store.rs - Store (line 9)

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
";

    #[test]
    fn failures_are_the_output_of_failed_tests_and_of_programs_that_died() {
        let expected = "-- device lib (/target/lib) : b\nseed 2\nb panicked at b.rs:1\n\n\
            -- device live (/target/live) : no test failed, and the program did\n\
            running 1 test\ntest d ... stack overflow\n     Ended with status 139\n\
            -- benches/space.rs (/target/space): no test failed, and the program did\n\
            error: test failed, to rerun pass `-p ebbtide --bench space`\n\n\
            Caused by:\n  process didn't exit successfully: `/target/space` (signal: 6, SIGABRT: process abort signal)\n\
            -- device: store.rs - Store (line 9)\nTest executable failed (exit status: 101).\n\n";
        assert_eq!(failures(LOG), expected);
        let long = LOG.replace("seed 2\n", &"seed 2\n".repeat(200));
        assert!(failures(&long).contains("[122 lines before]\nseed 2\n"), "{}", failures(&long));
    }

    #[test]
    fn output_of_tests_that_passed_is_left_out_and_a_skip_is_not() {
        let mut short = Vec::new();
        shorten(LOG.as_bytes(), &mut short).unwrap();
        let short = String::from_utf8(short).unwrap();
        assert!(short.contains("c: SKIPPED: no fio\n") && short.contains("seed 2\n"), "{short}");
        assert!(!short.contains("seed 1"), "{short}");
    }
}
