//! Student's t and the functions of the gamma function that its use takes.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// From here on t is the normal distribution to four digits.
const NORMAL_FROM: f64 = 1e5;

/// The value that t of `df` degrees of freedom (over 0) does not exceed with `probability`.
///
/// # Panics
///
/// `df` is not over 0, or `probability` not between 0 and 1.
#[must_use]
pub fn t_quantile(probability: f64, df: f64) -> f64 {
    if df >= NORMAL_FROM {
        return Normal::standard().inverse_cdf(probability);
    }
    StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are over 0").inverse_cdf(probability)
}

/// Share of the standard normal distribution below `value`.
#[must_use]
pub fn normal_below(value: f64) -> f64 {
    Normal::standard().cdf(value)
}

/// How likely `|t|` or more is with `df` degrees of freedom (over 0).
///
/// # Panics
///
/// `df` is not over 0.
#[must_use]
pub fn two_sided(t: f64, df: f64) -> f64 {
    let below = if df >= NORMAL_FROM {
        Normal::standard().cdf(-t.abs())
    } else {
        StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are over 0").cdf(-t.abs())
    };
    (2.0 * below).min(1.0)
}

/// How likely a ratio of two variances of `ratio` or more is by chance.
///
/// # Panics
///
/// A number of degrees of freedom is not over 0.
#[must_use]
pub fn variance_ratio_by_chance(ratio: f64, df_above: f64, df_below: f64) -> f64 {
    let below = df_below.min(NORMAL_FROM);
    FisherSnedecor::new(df_above, below).expect("degrees of freedom are over 0").sf(ratio.max(0.0))
}

/// The second derivative of the logarithm of the gamma function, for `x` over 0 (Abramowitz and Stegun,
/// 6.4.6 and 6.4.12).
#[must_use]
pub fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum += x.powi(-2);
        x += 1.0;
    }
    let square = x.powi(-2);
    sum + 1.0 / x + square / 2.0 + square / x * (1.0 / 6.0 - square * (1.0 / 30.0 - square / 42.0))
}

/// The `x` whose [`trigamma`] is `value` (over 0).
#[must_use]
pub fn trigamma_inverse(value: f64) -> f64 {
    let (mut low, mut high) = (1e-4_f64, 1e7_f64);
    // Trigamma falls throughout; 80 halvings of eleven decades leave nothing of the bracket.
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (df, table) in [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (40.0, 2.021), (1e9, 1.960)] {
            assert!((t_quantile(0.975, df) - table).abs() < 6e-4, "df {df}");
        }
        assert!((two_sided(2.776, 4.0) - 0.05).abs() < 1e-4);
        assert!((variance_ratio_by_chance(6.944, 2.0, 4.0) - 0.05).abs() < 1e-4);
    }

    #[test]
    fn trigamma_has_its_known_values_and_its_inverse() {
        assert!((trigamma(1.0) - 1.644_934_066_848).abs() < 1e-9);
        assert!((trigamma(0.5) - 4.934_802_200_544).abs() < 1e-9);
        for x in [0.01, 0.7, 3.0, 250.0] {
            assert!((trigamma_inverse(trigamma(x)) / x - 1.0).abs() < 1e-6, "x {x}");
        }
    }
}
