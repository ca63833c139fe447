//! Comparisons without a verdict whose own interval is without 1: what stands against the verdict, and what would decide.

use ebbtide_text::{count as counted, percent};

use super::compare::{LEAST, primary};
use super::comparison::{Compared, Ratio, Verdict};
use super::model::Summary;
use super::sentences::count;
use crate::stats::student::{t_quantile, two_sided};
use crate::stats::{ALPHA, Interval};

/// Repeats above this are no advice.
const MOST_REPEATS: u32 = 50;

/// Fewer repeats than these are no advice where there were too few trials.
const FEWEST_REPEATS: u32 = 5;

/// Why a comparison has no verdict, although its interval is without 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Undecided {
    /// Among so many comparisons such an interval comes by chance.
    Corrected {
        /// Comparisons of the run, this one included.
        comparisons: usize,
        /// Trials of each arm that would decide if the ratio and the spread stay as measured, an estimate; None above 50.
        repeats: Option<u32>,
    },
    /// The difference is no larger than what equal arms show, as a share.
    Small(f64),
}

impl Undecided {
    /// That of a ratio: one of `comparisons`, from so many trials of each arm. `floor` is the largest difference that is not
    /// called one. None where the interval has 1 in it, and where there is none.
    #[must_use]
    pub fn of_ratio(ratio: &Ratio, comparisons: usize, trials: u32, floor: f64) -> Option<Self> {
        let interval = ratio.interval?;
        if interval.low <= 1.0 && interval.high >= 1.0 {
            return None;
        }
        if ratio.ratio.ln().abs().exp_m1() <= floor {
            return Some(Self::Small(floor));
        }
        let repeats = ratio.p_value.and_then(|p| repeats_to_decide(interval, p, comparisons, trials));
        Some(Self::Corrected { comparisons, repeats })
    }

    /// That of a comparison of a run; None where it has a verdict, or an interval with 1 in it.
    #[must_use]
    pub fn of_comparison(summary: &Summary, compared: &Compared) -> Option<Self> {
        if compared.verdict != Verdict::NoDifferenceSeen {
            return None;
        }
        let tested = |compared: &&Compared| primary(compared).is_some_and(|ratio| ratio.p_value.is_some());
        let comparisons = summary.comparisons.iter().filter(tested).count();
        let fewest = fewest_trials(summary, compared);
        let floor = if compared.equal { LEAST } else { summary.noise.floor };
        Self::of_ratio(&primary(compared)?, comparisons, fewest, floor)
    }

    /// What stands against the verdict, to follow a comma; `option` is how the repeats are given on the command line.
    #[must_use]
    pub fn words(self, option: &str) -> String {
        match self {
            Self::Corrected { comparisons, repeats } => {
                let plural = if comparisons == 1 { "" } else { "s" };
                let decides = repeats.map_or_else(
                    || {
                        format!(
                            "over {} of each arm would be needed to decide",
                            counted(MOST_REPEATS, "trial")
                        )
                    },
                    |repeats| format!("by an estimate, {option}{repeats} would decide"),
                );
                format!("not certain after {} comparison{plural}; {decides}", count(comparisons))
            }
            Self::Small(floor) => format!("less than the {} that equal arms may differ by", percent(floor)),
        }
    }
}

/// The trials of each arm to run again where a comparison has no verdict because its interval is so wide that nothing can be
/// said: twice as many, 5 at least. None where the comparison has a verdict, or an interval that says something.
#[must_use]
pub fn too_few_trials(summary: &Summary, compared: &Compared) -> Option<u32> {
    let interval = primary(compared)?.interval?;
    let is_open = compared.verdict == Verdict::NoDifferenceSeen && interval.contains(1.0);
    let fewest = fewest_trials(summary, compared);
    let repeats = fewest.saturating_mul(2).clamp(FEWEST_REPEATS, MOST_REPEATS);
    (is_open && interval.is_wide() && repeats > fewest).then_some(repeats)
}

/// The trials of the side of a comparison that has fewer of them.
fn fewest_trials(summary: &Summary, compared: &Compared) -> u32 {
    let (ours, theirs) = compared.regimes.unzip();
    let trials = |arm: usize, regime| {
        summary
            .arms
            .get(arm)
            .and_then(|arm| super::figures_under(arm, regime))
            .map_or(0, |figures| figures.trials)
    };
    trials(compared.arm, ours).min(trials(compared.baseline, theirs))
}

/// The smallest number of trials of each arm with which the same ratio would have a verdict by the strictest step of the
/// correction, where its trials spread as these do.
fn repeats_to_decide(interval: Interval, p_value: f64, comparisons: usize, trials: u32) -> Option<u32> {
    let had = f64::from(trials.max(2));
    let half = (interval.high / interval.low).ln() / 2.0;
    let size = interval.mid.ln().abs();
    let df = degrees(size / half, p_value);
    let spread = half / t_quantile(1.0 - ALPHA / 2.0, df) * had.sqrt();
    let called = 1.0 - ALPHA / (2.0 * comparisons.max(1) as f64);
    (trials.max(2) + 1..=MOST_REPEATS).find(|repeats| {
        let repeats = f64::from(*repeats);
        let error = spread / repeats.sqrt();
        size > t_quantile(called, df * (repeats - 1.0) / (had - 1.0)) * error
    })
}

/// The degrees of freedom with which a difference of so many half intervals has this p-value: interval and p-value are of one
/// test, and its degrees of freedom are in neither.
fn degrees(halves: f64, p_value: f64) -> f64 {
    let p = |df: f64| two_sided(halves * t_quantile(1.0 - ALPHA / 2.0, df), df);
    // A difference beyond its interval has the smaller p-value the more degrees of freedom there are.
    let (mut low, mut high) = (1.0_f64, 1e4_f64);
    for _ in 0..60 {
        let mid = (low * high).sqrt();
        if p(mid) > p_value { low = mid } else { high = mid }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Prior, Sample, ratio};

    fn arm(mid: f64, repeats: u32, spread: f64) -> Vec<Sample> {
        let figure = |repeat: u32| mid * (1.0 + spread * (f64::from(repeat % 3) - 1.0));
        (0..repeats).map(|repeat| Sample::new(figure(repeat), &[]).unwrap()).collect()
    }

    fn measured(times: f64, repeats: u32) -> Ratio {
        let tested =
            ratio(&arm(100.0 * times, repeats, 0.05), &arm(100.0, repeats, 0.05), &Prior::NONE).unwrap();
        let Interval { mid, .. } = tested.interval;
        Ratio { ratio: mid, interval: Some(tested.interval), p_value: Some(tested.p_value), p_adjusted: None }
    }

    #[test]
    fn the_estimate_is_a_number_of_trials_with_which_the_corrected_test_decides() {
        let few = measured(1.14, 3);
        assert!(few.p_value.unwrap() < ALPHA && few.p_value.unwrap() * 10.0 > ALPHA, "{few:?}");
        let Some(Undecided::Corrected { comparisons: 10, repeats: Some(repeats) }) =
            Undecided::of_ratio(&few, 10, 3, LEAST)
        else {
            panic!("{:?}", Undecided::of_ratio(&few, 10, 3, LEAST))
        };
        assert!((4..=9).contains(&repeats), "{repeats}");
        // Whole rounds of the three levels spread alike.
        let decided = measured(1.14, repeats.div_ceil(3) * 3);
        assert!(decided.p_value.unwrap() * 10.0 < ALPHA, "{repeats}: {decided:?}");
    }

    #[test]
    fn an_interval_with_1_in_it_is_not_undecided_and_a_small_difference_is_called_small() {
        assert_eq!(Undecided::of_ratio(&measured(1.02, 3), 1, 3, LEAST), None);
        let sure = measured(1.3, 3);
        assert_eq!(Undecided::of_ratio(&sure, 1, 3, 0.4), Some(Undecided::Small(0.4)));
        assert_eq!(
            Undecided::Small(0.4).words("--repeats "),
            "less than the 40% that equal arms may differ by"
        );
        let corrected = Undecided::Corrected { comparisons: 3, repeats: Some(5) };
        assert_eq!(
            corrected.words("--repeats "),
            "not certain after three comparisons; by an estimate, --repeats 5 would decide"
        );
    }

    #[test]
    fn degrees_of_freedom_come_back_out_of_interval_and_p_value() {
        for df in [2.0, 4.0, 9.5, 60.0] {
            let halves = 1.2;
            let p = two_sided(halves * t_quantile(1.0 - ALPHA / 2.0, df), df);
            assert!((degrees(halves, p) / df - 1.0).abs() < 1e-6, "{df}");
        }
    }
}
