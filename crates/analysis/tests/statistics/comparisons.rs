//! Many comparisons in one run: how often equal arms have a false difference, and a true one is seen.
//!
//! The tests run each row of the table often enough to tell 7% from 10%. The figures of
//! `docs/decisions/statistics.md` are of 5,000 runs for each row:
//!
//! ```sh
//! cargo test -p ebbtide-analysis --test statistics -- --ignored --nocapture
//! ```

use ebbtide_analysis::stats::{ALPHA, Prior, Sample, holm, ratio};

use crate::draws::{Draws, percent};

/// Runs for each row in the tests: the standard error of 7% is 0.7 points, and 10% is five of them away.
const RUNS: usize = 1500;

/// Runs for each row of the table in the document: the standard error of 5% is 0.3 points.
const RUNS_OF_THE_TABLE: usize = 5000;

/// The most runs with a false difference, in percent: 5% is the aim.
const MOST_FALSE: f64 = 7.0;

/// The fewest single intervals that contain the true ratio, in percent.
const FEWEST_CONTAIN: f64 = 93.0;

/// Arms of a run that are all alike.
#[derive(Debug, Clone, Copy)]
struct Equals {
    arms: usize,
    trials: usize,
    seconds: usize,
    /// Standard deviation of a trial's level, as a share of it.
    between: f64,
    /// Correlation of a second with the next; the seconds vary by 15%.
    correlation: f64,
}

/// What most rows have: the spread between trials is then added.
const USUAL: Equals = Equals { arms: 20, trials: 3, seconds: 60, between: 0.0, correlation: 0.6 };

/// Spreads on both sides of 3.9%, which is what the seconds alone make of the mean of 60.
const SPREADS: [f64; 8] = [0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.20];

/// Other arms, trials, seconds and correlations, each where their seconds bound the spread of few trials.
const OTHERS: [Equals; 12] = [
    Equals { seconds: 30, between: 0.05, ..USUAL },
    Equals { seconds: 120, between: 0.03, ..USUAL },
    Equals { seconds: 120, between: 0.05, ..USUAL },
    Equals { correlation: 0.0, between: 0.03, ..USUAL },
    Equals { correlation: 0.9, between: 0.10, ..USUAL },
    Equals { arms: 5, between: 0.05, ..USUAL },
    Equals { arms: 40, between: 0.05, ..USUAL },
    Equals { trials: 2, between: 0.05, ..USUAL },
    Equals { trials: 2, between: 0.10, ..USUAL },
    Equals { trials: 2, arms: 5, between: 0.05, ..USUAL },
    Equals { trials: 5, between: 0.05, ..USUAL },
    Equals { trials: 5, arms: 5, seconds: 120, between: 0.05, ..USUAL },
];

/// What many runs of such arms had, in percent.
#[derive(Debug)]
struct Rates {
    /// Runs with at least one false difference after Holm's correction.
    wrong: f64,
    /// Runs with at least one without the correction.
    uncorrected: f64,
    /// Single 95% intervals that contain the true ratio, 1.
    contain: f64,
    /// Runs in which one true difference of 15%, and of 20%, is seen after Holm's correction.
    seen: [f64; 2],
}

impl Equals {
    fn measure(&self, runs: usize, draws: &mut Draws) -> Rates {
        let (mut wrong, mut uncorrected, mut contain, mut seen) = (0, 0, 0, [0, 0]);
        for _ in 0..runs {
            let mut arms: Vec<Vec<Sample>> = (0..self.arms).map(|_| self.arm(draws)).collect();
            let p_values = p_values(&arms);
            contain += p_values.iter().filter(|p| **p >= ALPHA).count();
            uncorrected += usize::from(p_values.iter().any(|p| *p < ALPHA));
            wrong += usize::from(after_holm(&p_values).iter().any(|p| *p < ALPHA));
            for (count, effect) in seen.iter_mut().zip([0.15, 0.20]) {
                let equal = arms[1].clone();
                arms[1].iter_mut().for_each(|sample| sample.log += effect);
                *count += usize::from(after_holm(&self::p_values(&arms))[0] < ALPHA);
                arms[1] = equal;
            }
        }
        Rates {
            wrong: percent(wrong, runs),
            uncorrected: percent(uncorrected, runs),
            contain: percent(contain, runs * (self.arms - 1)),
            seen: seen.map(|count| percent(count, runs)),
        }
    }

    fn arm(&self, draws: &mut Draws) -> Vec<Sample> {
        let trials = (0..self.trials).map(|_| {
            let level = 1000.0 * (self.between * draws.normal()).exp();
            let noise = draws.correlated(self.seconds, self.correlation);
            let rates: Vec<f64> = noise.iter().map(|noise| (level * (1.0 + 0.15 * noise)).max(1.0)).collect();
            Sample::of_mean(&rates).expect("rates are over 0")
        });
        trials.collect()
    }
}

/// Of each arm but the first, compared with that.
fn p_values(arms: &[Vec<Sample>]) -> Vec<f64> {
    let prior = Prior::learn(arms);
    let tested = arms[1..].iter().map(|arm| ratio(arm, &arms[0], &prior).expect("arms have several trials"));
    tested.map(|tested| tested.p_value).collect()
}

fn after_holm(p_values: &[f64]) -> Vec<f64> {
    let known: Vec<Option<f64>> = p_values.iter().copied().map(Some).collect();
    holm(&known).into_iter().map(|adjusted| adjusted.expect("each has a p-value")).collect()
}

/// Prints a row's rates, and holds them against the limits.
fn judge(equals: Equals, runs: usize, draws: &mut Draws) -> Rates {
    let rates = equals.measure(runs, draws);
    println!(
        "{} arms, {} trials of {} s, correlation {}, {:.0}% between: {:.1}% of runs with a false difference \
         ({:.1}% without Holm), {:.1}% of intervals contain 1, 15% seen in {:.1}%, 20% in {:.1}%",
        equals.arms,
        equals.trials,
        equals.seconds,
        equals.correlation,
        100.0 * equals.between,
        rates.wrong,
        rates.uncorrected,
        rates.contain,
        rates.seen[0],
        rates.seen[1],
    );
    assert!(rates.wrong <= MOST_FALSE && rates.contain >= FEWEST_CONTAIN, "{equals:?}: {rates:?}");
    rates
}

#[test]
fn twenty_equal_arms_rarely_have_one_false_difference_whatever_their_spread() {
    let mut draws = Draws::new(5);
    for between in SPREADS {
        let rates = judge(Equals { between, ..USUAL }, RUNS, &mut draws);
        assert!(rates.uncorrected > 20.0, "without the correction the test would not need it: {rates:?}");
        // What a wider interval costs: at 3% a difference of 20% is to be seen in 4 of 5 runs.
        assert!(between > 0.03 || rates.seen[0] >= 50.0 && rates.seen[1] >= 78.0, "{between}: {rates:?}");
    }
}

#[test]
fn few_or_many_equal_arms_of_other_lengths_rarely_have_one_false_difference() {
    let mut draws = Draws::new(10);
    for equals in OTHERS {
        judge(equals, RUNS, &mut draws);
    }
}

#[test]
#[ignore = "a measurement: 5,000 runs for each row of the document's table"]
fn the_table_of_the_document() {
    let mut draws = Draws::new(11);
    let usual = SPREADS.map(|between| Equals { between, ..USUAL });
    for equals in usual.into_iter().chain(OTHERS) {
        judge(equals, RUNS_OF_THE_TABLE, &mut draws);
    }
}
