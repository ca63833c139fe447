//! Whether a series drifts.
//!
//! A straight line is fitted by least squares; its slope is tested with the standard error for correlated
//! residuals of Santer et al. (2000): `n` values whose residuals have a correlation of `r` from one to the
//! next count as `n (1 - r) / (1 + r)`. Residuals that wave, as InnoDB's flushing makes them, have a large
//! `r` and leave few values, so that part of a wave is not taken for a trend.
//!
//! What counts as drift is the limit of SNIA's Solid State Storage Performance Test Specification for a
//! steady state: a fitted line that moves by more than 10% of the mean over the window.

use serde::{Deserialize, Serialize};

use super::ALPHA;
use super::series::{Noise, mean};
use super::student::two_sided;

/// A line that moves by more than this share of the mean over the window is a drift.
pub const DRIFT: f64 = 0.10;

/// The fitted line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// How far it moves over the series, as a share of the mean; negative: it falls.
    pub drift: f64,
    /// How likely so steep a line is in a series without a trend.
    pub p_value: f64,
    /// Whether it is too steep for a steady state, and not by chance.
    pub drifts: bool,
}

/// Fits the line; a series of fewer than ten values, or around 0, has none.
#[must_use]
pub fn trend(series: &[f64]) -> Trend {
    let level = mean(series);
    let flat = Trend { drift: 0.0, p_value: 1.0, drifts: false };
    if series.len() < 10 || level <= 0.0 {
        return flat;
    }
    let n = series.len() as f64;
    let line = Line::fit(series);
    let residuals: Vec<f64> = series.iter().enumerate().map(|(i, value)| value - line.at(i)).collect();
    let drift = line.slope * (n - 1.0) / level;
    let noise = Noise::of(&residuals, 2);
    let df = noise.effective(n) - 2.0;
    if df < 1.0 {
        return Trend { drift, ..flat };
    }
    let squares: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
    let error = (squares / df / line.spread).sqrt();
    let p_value =
        if error > 0.0 { two_sided(line.slope / error, df) } else { f64::from(u8::from(line.slope == 0.0)) };
    Trend { drift, p_value, drifts: drift.abs() > DRIFT && p_value < ALPHA }
}

/// A line by least squares over a series' places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    level: f64,
    middle: f64,
    slope: f64,
    /// Sum of the squared distances of the places from their middle.
    spread: f64,
}

impl Line {
    pub(super) fn fit(series: &[f64]) -> Self {
        let middle = (series.len() as f64 - 1.0) / 2.0;
        let level = mean(series);
        let (mut product, mut spread) = (0.0, 0.0);
        for (place, value) in series.iter().enumerate() {
            let distance = place as f64 - middle;
            product += distance * (value - level);
            spread += distance * distance;
        }
        Self { level, middle, slope: if spread > 0.0 { product / spread } else { 0.0 }, spread }
    }

    pub(super) fn at(&self, place: usize) -> f64 {
        self.level + self.slope * (place as f64 - self.middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_drifts_by_what_it_climbs() {
        let ramp: Vec<f64> = (0..61).map(|i| 900.0 + f64::from(i) * 200.0 / 60.0).collect();
        let trend = trend(&ramp);
        assert!(trend.drifts && (trend.drift - 0.2).abs() < 1e-9, "{trend:?}");
    }

    #[test]
    fn a_constant_and_a_short_series_do_not() {
        assert!(!trend(&[5.0; 60]).drifts);
        assert!(!trend(&[1.0, 2.0, 3.0]).drifts);
        assert!(!trend(&[0.0; 60]).drifts);
    }
}
