//! Shares of cases: how many of so many, and what that shows about all the cases that were not tried.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

use super::ALPHA;

/// How many cases of so many, with the exact 95% interval of the true share (Clopper and Pearson, 1934).
///
/// Where none of the cases is one, or all are, only one side can be wrong and has all of the 5%: 0 of n is at
/// most `1 - 0.05^(1/n)`, which the rule of three takes as 3/n.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// How many.
    pub count: u64,
    /// Of how many.
    pub of: u64,
    /// The share, 0 to 1; none of no cases.
    pub share: Option<f64>,
    /// The lower end of its interval; none of no cases.
    pub low: Option<f64>,
    /// The upper end; none of no cases.
    pub high: Option<f64>,
}

impl Share {
    /// `count` of `of` cases, at most all of them.
    #[must_use]
    pub fn new(count: u64, of: u64) -> Self {
        let count = count.min(of);
        if of == 0 {
            return Self::default();
        }
        let (hits, misses) = (count as f64, (of - count) as f64);
        let (low, high) = match (count, of - count) {
            (0, _) => (0.0, 1.0 - ALPHA.powf(1.0 / misses)),
            (_, 0) => (ALPHA.powf(1.0 / hits), 1.0),
            _ => (quantile(hits, misses + 1.0, ALPHA / 2.0), quantile(hits + 1.0, misses, 1.0 - ALPHA / 2.0)),
        };
        Self { count, of, share: Some(hits / of as f64), low: Some(low), high: Some(high) }
    }
}

/// What a beta distribution does not exceed with `probability`.
fn quantile(a: f64, b: f64, probability: f64) -> f64 {
    Beta::new(a, b).expect("both are counts over 0").inverse_cdf(probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends that the binomial sums themselves give.
    #[test]
    fn intervals_are_those_of_clopper_and_pearson() {
        let known = [
            (1, 10, 0.002_528_578_5, 0.445_016_117_0),
            (5, 10, 0.187_086_028_4, 0.812_913_971_6),
            (1, 2, 0.012_579_117_1, 0.987_420_882_9),
            (12, 88, 0.072_493_899_6, 0.226_087_553_7),
            (61, 100, 0.507_314_479_6, 0.705_989_585_1),
            (499, 500, 0.988_907_523_1, 0.999_949_365_7),
            (1500, 3000, 0.481_948_769_3, 0.518_051_230_7),
            (1, 3000, 8.439_233_7e-6, 0.001_855_800_0),
            (2999, 3000, 0.998_144_200_0, 0.999_991_560_8),
        ];
        for (count, of, low, high) in known {
            let share = Share::new(count, of);
            let (found_low, found_high) = (share.low.unwrap(), share.high.unwrap());
            assert!((found_low - low).abs() < 1e-7, "{count} of {of}: {found_low}, not {low}");
            assert!((found_high - high).abs() < 1e-7, "{count} of {of}: {found_high}, not {high}");
        }
    }

    #[test]
    fn none_of_many_is_the_rule_of_three_exactly() {
        let none = Share::new(0, 3000);
        assert_eq!((none.share, none.low), (Some(0.0), Some(0.0)));
        assert!((none.high.unwrap() - 0.000_998_079).abs() < 1e-8, "{none:?}");
        assert!(none.high.unwrap() < 3.0 / 3000.0, "the rule of three is a little above it");
        let all = Share::new(20, 20);
        assert_eq!(all.high, Some(1.0));
        assert!((all.low.unwrap() - 0.860_891_66).abs() < 1e-7, "{all:?}");
        assert_eq!(Share::new(0, 1).high, Some(0.95));
    }

    #[test]
    fn no_cases_give_no_interval() {
        let nothing = Share::new(0, 0);
        assert_eq!((nothing.share, nothing.low, nothing.high), (None, None, None));
    }

    #[test]
    fn an_interval_holds_its_share_and_narrows_with_more_cases() {
        for of in [1_u64, 2, 3, 7, 50, 400, 5000] {
            for count in (0..=of).step_by(usize::try_from(of.div_ceil(25)).unwrap()) {
                let share = Share::new(count, of);
                let (low, mid, high) = (share.low.unwrap(), share.share.unwrap(), share.high.unwrap());
                assert!((0.0..=mid).contains(&low) && (mid..=1.0).contains(&high), "{share:?}");
                let wider = Share::new(count * 10, of * 10);
                assert!(wider.high.unwrap() - wider.low.unwrap() < high - low, "{share:?} {wider:?}");
            }
        }
    }
}
