//! Reads what test programs print with `--show-output`: counts the tests, shortens the output for a terminal, and
//! cuts out what belongs to failures.

use std::io::{BufRead, Write};

/// Lines of a failed test that are shown from its end; the panic is among them.
const LAST_LINES: usize = 80;

/// How `./dev test` says that a test program ended with a status other than 0.
const ENDED_WITH: &str = "     Ended with status ";

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

/// What failed tests printed, and the last lines of programs that ended without a result. Long output is cut at
/// its front.
pub(crate) fn failures(log: &str) -> String {
    let mut found = String::new();
    for program in log.split("     Running ").skip(1) {
        let lines: Vec<_> = program.lines().collect();
        let name = lines.first().copied().unwrap_or_default();
        let Some(failed) = lines.iter().position(|line| *line == "failures:") else {
            let ended = lines.iter().any(|line| line.starts_with("test result: "));
            if !ended || lines.iter().any(|line| line.starts_with(ENDED_WITH)) {
                add_block(&mut found, &format!("{name}: no test failed, and the program did"), &lines);
            }
            continue;
        };
        // The second of the headings begins the list of names.
        let names = lines.iter().rposition(|line| *line == "failures:").unwrap_or(failed);
        let blocks = lines.get(failed + 1..names).unwrap_or_default();
        let starts: Vec<_> = (0..blocks.len()).filter(|&at| block_of(blocks[at]).is_some()).collect();
        for (number, &start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(blocks.len());
            let test = block_of(blocks[start]).unwrap_or_default();
            add_block(&mut found, &format!("{name}: {test}"), &blocks[start + 1..end]);
        }
    }
    found
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
     Running device other (/target/other) 
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
     Ended with status 139
";

    #[test]
    fn failures_are_the_output_of_failed_tests_and_of_programs_that_died() {
        let expected = "-- device lib (/target/lib) : b\nseed 2\nb panicked at b.rs:1\n\n\
            -- device live (/target/live) : no test failed, and the program did\n\
            device live (/target/live) \nrunning 1 test\ntest d ... stack overflow\n\
            -- device other (/target/other) : no test failed, and the program did\n\
            device other (/target/other) \n\
            test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n     Ended with status 139\n";
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
