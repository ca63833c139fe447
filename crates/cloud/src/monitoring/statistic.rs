//! Statistics of the values of a period.

/// A statistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Statistic {
    SampleCount,
    Average,
    Sum,
    Minimum,
    Maximum,
    /// p0 to p100: the smallest value that at least so many percent of the values do not exceed.
    Percentile(f64),
}

impl Statistic {
    /// One of the five that `Statistics` and `Statistic` take.
    pub(super) fn simple(name: &str) -> Option<Self> {
        Some(match name {
            "SampleCount" => Self::SampleCount,
            "Average" => Self::Average,
            "Sum" => Self::Sum,
            "Minimum" => Self::Minimum,
            "Maximum" => Self::Maximum,
            _ => return None,
        })
    }

    /// A percentile: `p99`, `p99.9`.
    pub(super) fn extended(name: &str) -> Option<Self> {
        let digits = name.strip_prefix('p')?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let percent: f64 = digits.parse().ok().filter(|_| plain)?;
        (0.0..=100.0).contains(&percent).then_some(Self::Percentile(percent))
    }

    /// One of all.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::simple(name).or_else(|| Self::extended(name))
    }

    /// Of the values of a period; none without values.
    pub(super) fn of(self, values: &[f64]) -> Option<f64> {
        let sum = || values.iter().sum::<f64>();
        let count = values.len() as f64;
        match self {
            _ if values.is_empty() => None,
            Self::SampleCount => Some(count),
            Self::Sum => Some(sum()),
            Self::Average => Some(sum() / count),
            Self::Minimum => values.iter().copied().reduce(f64::min),
            Self::Maximum => values.iter().copied().reduce(f64::max),
            Self::Percentile(percent) => {
                let mut sorted = values.to_vec();
                sorted.sort_by(f64::total_cmp);
                // 7 / 100 * 100 is more than 7, and 99.9 * 1,000 may be more than 99,900.
                let wanted = percent * count * (1.0 - 1e-12);
                let rank = |position: usize| (position as f64 + 1.0) * 100.0 >= wanted;
                (0..sorted.len()).find(|position| rank(*position)).map(|position| sorted[position])
            }
        }
    }
}

/// Names of what AWS has besides, to tell what is not built from what is wrong.
pub(super) fn is_of_aws(name: &str) -> bool {
    name == "iqm"
        || name.eq_ignore_ascii_case("IQM")
        || ["tm", "wm", "tc", "ts", "pr", "TM", "WM", "TC", "TS", "PR"].iter().any(|prefix| {
            name.strip_prefix(prefix).is_some_and(|rest| {
                rest.starts_with('(') || rest.starts_with(|letter: char| letter.is_ascii_digit())
            })
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statistics_of_values_counted_by_hand() {
        let values = [4.0, 1.0, 3.0, 2.0];
        let of = |name: &str| Statistic::named(name).unwrap().of(&values).unwrap();
        let names =
            ["SampleCount", "Sum", "Average", "Minimum", "Maximum", "p50", "p75", "p76", "p0", "p100"];
        assert_eq!(names.map(of), [4.0, 10.0, 2.5, 1.0, 4.0, 2.0, 3.0, 4.0, 1.0, 4.0]);
        let many: Vec<f64> = (1..=175).map(f64::from).collect();
        assert_eq!(Statistic::Percentile(68.0).of(&many), Some(119.0));
        assert_eq!(Statistic::Sum.of(&[]), None);
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(Statistic::Percentile(7.0).of(&hundred), Some(7.0));
        for wrong in ["p", "p101", "p-1", "p1e1", "average", "tm99", "pinf"] {
            assert_eq!(Statistic::named(wrong), None, "{wrong}");
        }
        assert!(is_of_aws("tm99") && is_of_aws("TM(1%:9%)") && is_of_aws("iqm") && !is_of_aws("time"));
    }

    proptest! {
        /// Against a plain recomputation: counting instead of sorting.
        #[test]
        fn statistics_agree_with_a_plain_recomputation(
            values in prop::collection::vec(-1_000_i32..1_000, 1..200),
            percent in 0_u8..=100,
        ) {
            let floats: Vec<f64> = values.iter().copied().map(f64::from).collect();
            let total: i64 = values.iter().map(|value| i64::from(*value)).sum();
            let count = i64::try_from(values.len()).unwrap();
            prop_assert_eq!(Statistic::Sum.of(&floats), Some(total as f64));
            prop_assert_eq!(Statistic::SampleCount.of(&floats), Some(count as f64));
            prop_assert_eq!(Statistic::Average.of(&floats), Some(total as f64 / count as f64));
            prop_assert_eq!(Statistic::Minimum.of(&floats), values.iter().min().map(|value| f64::from(*value)));
            prop_assert_eq!(Statistic::Maximum.of(&floats), values.iter().max().map(|value| f64::from(*value)));
            let not_above = |limit: i32| {
                i64::try_from(values.iter().filter(|value| **value <= limit).count()).unwrap()
            };
            let enough = |limit: &&i32| not_above(**limit) * 100 >= i64::from(percent) * count;
            let expected = values.iter().filter(enough).min().map(|value| f64::from(*value));
            let found = Statistic::Percentile(f64::from(percent)).of(&floats);
            prop_assert_eq!(found, expected);
        }
    }
}
