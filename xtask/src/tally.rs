//! Counts the tests in the output of `cargo test -- --show-output`.

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
}
