//! Statistics of trials: pure functions of series of seconds, without a clock and without random draws.
//!
//! `docs/decisions/statistics.md` says which methods these are, what they assume, and how often they are
//! right on data whose truth is known.

use serde::{Deserialize, Serialize};

/// A figure with the 95% confidence interval around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub mid: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether two intervals have a value in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Whether the value is inside.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}
