//! Statistics of trials: pure functions of series of seconds, without a clock and without random draws.
//!
//! [`series`] describes one series, [`warmup`], [`trend`] and [`level`] find what is not steady in it,
//! [`interval`] carries the trials of arms to intervals, p-values and the smallest effect that could have
//! been seen, [`family`] keeps many comparisons honest, and [`proportion`] counts cases. `docs/decisions/statistics.md` describes which
//! published methods these are, what they assume, and how often they are right on data whose truth is known.

pub mod family;
pub mod interval;
pub mod level;
pub mod proportion;
pub mod series;
pub mod student;
pub mod trend;
pub mod warmup;

use serde::{Deserialize, Serialize};

pub use family::holm;
pub use interval::{
    Prior, Sample, Tested, expected_between_equals, mean_interval, ratio, smallest_effect, spread,
};
pub use level::level_changes;
pub use proportion::Share;
pub use trend::{Trend, trend};
pub use warmup::warm_up;

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

/// A ratio whose ends are farther apart than this is not known: equal sides, and one that is twice the other, both are inside.
const WIDE: f64 = 4.0;

/// The farthest that the logarithm of an end may be from 0: beyond, the end would be no number.
const FARTHEST: f64 = 700.0;

impl Interval {
    /// The interval whose logarithms lie so far on both sides of a logarithm. Ends that no number holds are the farthest
    /// that one does: those of trials of which some stood still.
    pub(crate) fn of_logs(mid: f64, half: f64) -> Self {
        let end = |log: f64| log.clamp(-FARTHEST, FARTHEST).exp();
        Self { mid: end(mid), low: end(mid - half), high: end(mid + half) }
    }

    /// Whether two intervals have a value in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Whether the ends of a ratio's interval are so far apart, more than 4 times, that it tells nothing.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.high > WIDE * self.low
    }

    /// Whether the value is inside.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The share of cases in which an interval may miss and equal arms may be called different: 5%.
pub const ALPHA: f64 = 0.05;
