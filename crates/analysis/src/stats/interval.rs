//! From the trials of arms to intervals, p-values and the smallest effect that could have been seen.
//!
//! A trial is one figure: an arm's trials are the sample, its seconds are not (they are not independent,
//! and what differs from one start of a server to the next is the same in all seconds of a trial). All is
//! done on logarithms, on which ratios are differences and spreads in percent are alike on every level.

use serde::{Deserialize, Serialize};
use statrs::function::gamma::digamma;

use super::series::{mean, variance, variance_of_mean};
use super::student::{t_quantile, trigamma, trigamma_inverse, two_sided, variance_ratio_by_chance};
use super::{ALPHA, Interval};

/// An arm whose spread is this unlikely compared with that of the others takes nothing from theirs.
const STICKS_OUT: f64 = 0.05;

/// From this many trials on an arm's spread is joined with what the other arms' spreads show.
const BORROWS_FROM: usize = 3;

/// What a trial adds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Logarithm of the trial's figure.
    pub log: f64,
    /// Variance of that logarithm, as estimated from the seconds inside of the trial. It lacks what differs
    /// from trial to trial.
    pub within: f64,
}

impl Sample {
    /// The mean of a series of seconds; none where that is not over 0.
    #[must_use]
    pub fn of_mean(series: &[f64]) -> Option<Self> {
        Self::new(mean(series), series)
    }

    /// A figure of a trial (over 0) whose course over the seconds is `series`; none where it is not over 0.
    #[must_use]
    pub fn new(figure: f64, series: &[f64]) -> Option<Self> {
        let positive = figure.is_finite() && figure > 0.0;
        positive.then(|| Self { log: figure.ln(), within: variance_of_mean(series) / figure.powi(2) })
    }
}

/// What the arms of a run together show about the spread between trials: Smyth's empirical Bayes prior
/// (2004), a scaled inverse chi-squared distribution. It is learned from the trials alone: what their seconds
/// show is no draw from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// The variance that an arm has before its own trials are looked at.
    pub variance: f64,
    /// How many degrees of freedom that is worth; infinite where all arms spread alike, 0 where nothing
    /// is known.
    pub df: f64,
    /// Degrees of freedom of all arms together, which no estimate can exceed.
    pub most: f64,
}

impl Prior {
    /// No knowledge but an arm's own.
    pub const NONE: Self = Self { variance: 0.0, df: 0.0, most: f64::INFINITY };

    /// Learns from the arms of a run; those with too few trials are left out.
    #[must_use]
    pub fn learn(arms: &[Vec<Sample>]) -> Self {
        let known: Vec<(f64, f64)> = arms
            .iter()
            .filter(|arm| arm.len() >= BORROWS_FROM)
            .map(|arm| between(arm))
            .filter(|(variance, _)| *variance > 0.0)
            .collect();
        if known.len() < 2 {
            return Self::NONE;
        }
        let most = known.iter().map(|(_, df)| df).sum();
        // The logarithm of a variance with d degrees of freedom is off by digamma(d/2) - ln(d/2), and has
        // the variance trigamma(d/2); what the arms' logarithms vary beyond that is theirs.
        let logs: Vec<f64> =
            known.iter().map(|(v, df)| v.ln() - digamma(df / 2.0) + (df / 2.0).ln()).collect();
        let by_chance = mean(&known.iter().map(|(_, df)| trigamma(df / 2.0)).collect::<Vec<_>>());
        let beyond = variance(&logs) - by_chance;
        if beyond <= 0.0 {
            let pooled = known.iter().map(|(v, df)| v * df).sum::<f64>() / most;
            return Self { variance: pooled, df: f64::INFINITY, most };
        }
        let df = 2.0 * trigamma_inverse(beyond);
        let variance = (mean(&logs) + digamma(df / 2.0) - (df / 2.0).ln()).exp();
        Self { variance, df, most }
    }

    /// Variance between the trials of an arm, and its degrees of freedom.
    ///
    /// Trials can be alike by chance, so the seconds inside of them bound the variance from below. They lack
    /// the spread between trials: the bound adds no degrees of freedom, however well it is known.
    fn judge(&self, arm: &[Sample]) -> (f64, f64) {
        let own = between(arm);
        let (variance, df) = if arm.len() < BORROWS_FROM { own } else { self.join(own) };
        (variance.max(within(arm)), df)
    }

    /// An arm's own variance and degrees of freedom, joined with what the arms of the run show together.
    ///
    /// Where arms are seen to differ in their variance, the own one is never made smaller. Where they spread
    /// alike as far as the run shows, a larger own variance counts half, on the logarithm: few arms do not
    /// show that one of them spreads twice as much as the others.
    fn join(&self, (variance, df): (f64, f64)) -> (f64, f64) {
        if self.df <= 0.0 || variance_ratio_by_chance(variance / self.variance, df, self.df) < STICKS_OUT {
            return (variance, df);
        }
        let joined = if self.df.is_infinite() {
            self.variance.max((self.variance * variance).sqrt())
        } else {
            variance.max((self.df * self.variance + df * variance) / (self.df + df))
        };
        (joined, (self.df + df).min(self.most))
    }
}

/// Variance between an arm's trials, and its degrees of freedom.
fn between(arm: &[Sample]) -> (f64, f64) {
    let logs: Vec<f64> = arm.iter().map(|sample| sample.log).collect();
    (variance(&logs), (arm.len().max(2) - 1) as f64)
}

/// Variance of a trial's logarithm as its seconds show it, the mean of an arm's trials.
fn within(arm: &[Sample]) -> f64 {
    mean(&arm.iter().map(|sample| sample.within).collect::<Vec<_>>())
}

/// Mean of the logarithms, its squared standard error, and the degrees of freedom of that.
fn estimate(arm: &[Sample], prior: &Prior) -> (f64, f64, f64) {
    let (variance, df) = prior.judge(arm);
    let logs: Vec<f64> = arm.iter().map(|sample| sample.log).collect();
    (mean(&logs), variance / arm.len() as f64, df)
}

/// The geometric mean of an arm's trials with its 95% interval; none with fewer than two trials.
#[must_use]
pub fn mean_interval(arm: &[Sample], prior: &Prior) -> Option<Interval> {
    if arm.len() < 2 {
        return None;
    }
    let (mid, square, df) = estimate(arm, prior);
    let half = t_quantile(1.0 - ALPHA / 2.0, df) * square.sqrt();
    Some(Interval::of_logs(mid, half))
}

/// A ratio of two arms, tested against 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// The ratio of the geometric means, with its 95% interval.
    pub interval: Interval,
    /// How likely a ratio at least as far from 1 is where the arms are equal.
    pub p_value: f64,
}

/// `arm` over `baseline`, by Welch's t-test on the logarithms; none with fewer than two trials of either.
#[must_use]
pub fn ratio(arm: &[Sample], baseline: &[Sample], prior: &Prior) -> Option<Tested> {
    let (difference, error, df) = difference(arm, baseline, prior)?;
    let half = t_quantile(1.0 - ALPHA / 2.0, df) * error;
    let interval = Interval::of_logs(difference, half);
    let p_value =
        if error > 0.0 { two_sided(difference / error, df) } else { f64::from(u8::from(difference == 0.0)) };
    Some(Tested { interval, p_value })
}

/// Difference of the logarithms, its standard error, and the degrees of freedom (Satterthwaite's).
fn difference(arm: &[Sample], baseline: &[Sample], prior: &Prior) -> Option<(f64, f64, f64)> {
    if arm.len() < 2 || baseline.len() < 2 {
        return None;
    }
    let (a, a_square, a_df) = estimate(arm, prior);
    let (b, b_square, b_df) = estimate(baseline, prior);
    let square = a_square + b_square;
    let below = a_square.powi(2) / a_df + b_square.powi(2) / b_df;
    let df = if below > 0.0 { square.powi(2) / below } else { a_df + b_df };
    Some((a - b, square.sqrt(), df.min(prior.most)))
}

/// The smallest true ratio, less 1, that two arms with these trials' spreads show in 80 of 100 runs when
/// a difference is called at a p-value of `alpha`; none with fewer than two trials of either.
#[must_use]
pub fn smallest_effect(arm: &[Sample], baseline: &[Sample], prior: &Prior, alpha: f64) -> Option<f64> {
    let (_, error, df) = difference(arm, baseline, prior)?;
    let called = t_quantile(1.0 - alpha / 2.0, df);
    // The error that a run estimates varies from run to run, with an arm's own trials above all (the
    // normal approximation of the noncentral t distribution: Johnson and Welch, 1940).
    let own = (arm.len() + baseline.len() - 2) as f64;
    let seen = t_quantile(0.8, f64::INFINITY) * (1.0 + called.powi(2) / (2.0 * own.min(df))).sqrt();
    // Of few degrees of freedom more than half of the estimates are too small: take the median one.
    let median = (1.0 - 2.0 / (9.0 * df)).powi(3).max(0.2).sqrt();
    Some(((called + seen) * error / median).exp_m1())
}

/// Standard deviation between the trials of an arm, all arms together, as a share, with its degrees of
/// freedom; none without two trials of any arm.
#[must_use]
pub fn spread(arms: &[Vec<Sample>]) -> Option<(f64, f64)> {
    let several = arms.iter().filter(|arm| arm.len() >= 2);
    let (sum, df) = several.fold((0.0, 0.0), |(sum, all), arm| {
        let logs: Vec<f64> = arm.iter().map(|sample| sample.log).collect();
        let df = (arm.len() - 1) as f64;
        (sum + variance(&logs) * df, all + df)
    });
    (df > 0.0).then(|| ((sum / df).sqrt(), df))
}

/// By how much two equal arms of `trials` trials differ in 19 of 20 runs at most, as a share.
#[must_use]
pub fn expected_between_equals(spread: f64, df: f64, trials: f64) -> f64 {
    (t_quantile(1.0 - ALPHA / 2.0, df) * spread * (2.0 / trials).sqrt()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(figures: &[f64]) -> Vec<Sample> {
        figures.iter().map(|figure| Sample::new(*figure, &[]).unwrap()).collect()
    }

    #[test]
    fn one_trial_has_no_interval() {
        assert_eq!(mean_interval(&arm(&[100.0]), &Prior::NONE), None);
        assert_eq!(ratio(&arm(&[100.0]), &arm(&[50.0, 51.0]), &Prior::NONE), None);
        assert_eq!(Sample::new(0.0, &[]), None, "nothing has no logarithm");
    }

    #[test]
    fn two_trials_have_a_very_wide_one() {
        let interval = mean_interval(&arm(&[100.0, 104.0]), &Prior::NONE).unwrap();
        assert!(interval.high / interval.low > 1.5, "{interval:?}");
    }

    #[test]
    fn an_interval_whose_ends_no_number_holds_has_the_farthest_that_one_does() {
        let wild = arm(&[1e-100, 1e100]);
        let tested = ratio(&wild, &arm(&[1e100, 1e-100]), &Prior::NONE).unwrap();
        let own = mean_interval(&wild, &Prior::NONE).unwrap();
        for Interval { mid, low, high } in [tested.interval, own] {
            assert!(low > 0.0 && low < mid && mid < high && high.is_finite(), "{low} {mid} {high}");
        }
    }

    #[test]
    fn a_ratio_is_that_of_the_geometric_means() {
        let tested = ratio(&arm(&[200.0, 800.0]), &arm(&[100.0, 100.0]), &Prior::NONE).unwrap();
        assert!((tested.interval.mid - 4.0).abs() < 1e-12);
    }

    #[test]
    fn seconds_that_waver_keep_equal_trials_from_looking_exact() {
        let wavering: Vec<f64> = (0..60).map(|i| 100.0 + 30.0 * f64::sin(f64::from(i) / 4.0)).collect();
        let trials = vec![Sample::of_mean(&wavering).unwrap(); 3];
        let interval = mean_interval(&trials, &Prior::NONE).unwrap();
        assert!(interval.high / interval.low > 1.01, "{interval:?}");
    }

    #[test]
    fn seconds_raise_the_variance_and_add_no_degrees_of_freedom() {
        let alike = vec![Sample { log: 0.0, within: 0.01 }; 3];
        let half = mean_interval(&alike, &Prior::NONE).unwrap().high.ln();
        let wanted = t_quantile(0.975, 2.0) * (0.01_f64 / 3.0).sqrt();
        assert!((half - wanted).abs() < 1e-9, "{half} is not {wanted}");
        let quieter = [Sample { log: 0.0, within: 0.0 }, Sample { log: 0.3, within: 0.0 }];
        let prior = Prior::learn(&[quieter.repeat(2), quieter.repeat(2)]);
        let noisy: Vec<Sample> = quieter.iter().map(|sample| Sample { within: 9.0, ..*sample }).collect();
        assert_eq!(
            Prior::learn(&[noisy.repeat(2), noisy.repeat(2)]),
            prior,
            "it is learned from the trials alone"
        );
    }

    #[test]
    fn an_arm_that_sticks_out_keeps_its_own_spread() {
        let quiet = [0.99, 1.0, 1.01];
        let mut arms = vec![arm(&quiet); 8];
        arms.push(arm(&[0.6, 1.0, 1.5]));
        let prior = Prior::learn(&arms);
        let alone = mean_interval(&arms[8], &Prior::NONE).unwrap();
        assert_eq!(mean_interval(&arms[8], &prior), Some(alone));
        let (with, without) =
            (mean_interval(&arms[0], &prior).unwrap(), mean_interval(&arms[0], &Prior::NONE).unwrap());
        assert!(with.high < without.high, "the others make a quiet arm surer: {with:?} {without:?}");
    }
}
