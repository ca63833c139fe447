//! How sure a prediction is: from the residuals of its calibration and from the errors against published results.

use serde::Deserialize;

/// What a prediction is based on.
#[derive(Debug, Clone, Copy)]
pub struct Basis<'a> {
    /// Whether results of this kind of server and workload were compared with the model's.
    pub validated: bool,
    /// Whether the pages of a transaction were observed; else they follow from a description of the workload.
    pub observed: bool,
    /// Of each calibrated point, the model's throughput divided by the measured one. Empty without calibration.
    pub residuals: &'a [f64],
}

/// The interval of a prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Uncertainty {
    /// A factor: the interval is the value divided and multiplied by it.
    factor: f64,
    /// Where it comes from.
    words: String,
}

impl Uncertainty {
    /// The least and the most to expect of a value.
    #[must_use]
    pub fn around(&self, value: f64) -> (f64, f64) {
        (value / self.factor, value * self.factor)
    }

    /// Where it comes from, for people.
    #[must_use]
    pub fn words(&self) -> String {
        self.words.clone()
    }
}

/// Errors against published results, percent: `./dev bench twin --write`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Validation {
    /// With the miss curve of the workload on another machine, calibrated on one row; more data and less.
    observed: Vec<f64>,
    /// The same with the workload described by its tables.
    described: Vec<f64>,
    /// The same without factors on pages: of the points only the processor time.
    uncalibrated: Vec<f64>,
    /// The first, where each row in turn calibrates.
    in_turn: Vec<f64>,
}

const VALIDATION: &str = include_str!("../data/validation.toml");
/// Share of the errors that the interval holds.
const HELD: f64 = 0.9;
/// How much wider the interval is where no results were compared.
const UNVALIDATED: f64 = 2.0;

/// The interval of predictions on this basis.
///
/// # Panics
/// Where the data of this crate are damaged, which its tests exclude.
#[must_use]
pub fn uncertainty(basis: &Basis<'_>) -> Uncertainty {
    let validation: Validation = toml::from_str(VALIDATION).expect("the validation's errors are TOML");
    let (errors, from) = match (basis.residuals.is_empty(), basis.observed) {
        (true, _) => (validation.uncalibrated, "errors without calibration"),
        (false, false) => (validation.described, "errors of workloads that are described"),
        (false, true) => {
            ([validation.observed, validation.in_turn].concat(), "errors of workloads that are observed")
        }
    };
    let held = quantile(errors, HELD) / 100.0;
    let residual = basis.residuals.iter().map(|one| one.ln().abs()).fold(0.0, f64::max);
    let wider = if basis.validated { 1.0 } else { UNVALIDATED };
    let spread = held.ln_1p().max(residual) * wider;
    let factor = spread.exp();
    let mut words = format!(
        "divided and multiplied by {factor:.2}: 90% of the {from} against published results are within {:.0}%",
        held * 100.0
    );
    if residual > held.ln_1p() {
        words.push_str(&format!("; the calibration itself is off by {:.0}%", (residual.exp() - 1.0) * 100.0));
    }
    if !basis.validated {
        words.push_str("; twice as wide, since no results of this kind of server and workload were compared");
    }
    Uncertainty { factor, words }
}

fn quantile(mut errors: Vec<f64>, share: f64) -> f64 {
    errors.sort_by(f64::total_cmp);
    let last = errors.len().saturating_sub(1);
    let at = crate::innodb::whole((share * last as f64).ceil());
    usize::try_from(at).ok().and_then(|at| errors.get(at).copied()).unwrap_or(100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn width(validated: bool, residuals: &[f64]) -> f64 {
        uncertainty(&Basis { validated, observed: true, residuals }).around(100.0).1
    }

    #[test]
    fn an_interval_is_wider_where_nothing_was_compared_or_the_calibration_is_off() {
        let usual = width(true, &[1.0]);
        assert!(usual > 100.0 && usual < 150.0, "{usual}");
        assert!(width(false, &[1.0]) > usual);
        assert!(width(true, &[1.0, 1.4]) > 139.0);
        assert!(width(true, &[]) > usual);
        let described = uncertainty(&Basis { validated: true, observed: false, residuals: &[1.0] });
        assert!(described.around(100.0).1 > usual);
    }

    #[test]
    fn the_words_say_why_an_interval_is_wide() {
        let words = uncertainty(&Basis { validated: false, observed: true, residuals: &[1.6] }).words();
        assert!(words.contains("twice as wide") && words.contains("calibration"), "{words}");
    }

    #[test]
    fn a_quantile_is_one_of_the_errors() {
        assert_eq!(quantile(vec![3.0, 1.0, 2.0], 0.9), 3.0);
        assert_eq!(quantile(vec![5.0], 0.9), 5.0);
    }
}
