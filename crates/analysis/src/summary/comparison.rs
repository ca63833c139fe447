//! What comparisons hold: of two arms, along a curve of connections, and over several runs.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::regime::Regime;
use crate::stats::Interval;

/// From this many connections on an arm counts as loaded: below, mostly one connection waits for one I/O, and the
/// volume's latency decides and not what it carries.
pub const LOADED: u32 = 16;

/// An arm held against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The axis in which they differ.
    pub axis: String,
    /// The arm, as an index into the arms.
    pub arm: usize,
    /// What it is held against.
    pub baseline: usize,
    /// The regimes of both that are held against each other, where either was split.
    pub regimes: Option<(Regime, Regime)>,
    /// The same in words; empty where neither was split.
    pub label: String,
    /// Whether both arms are the same but for their names: an A/A comparison.
    pub equal: bool,
    /// Which figure the verdict is about.
    pub metric: Metric,
    /// Arm over baseline, transactions a second; none where either has no trial.
    pub tps: Option<Ratio>,
    /// Arm over baseline, 95th percentile of the response time.
    pub p95: Option<Ratio>,
    /// Arm over baseline, 99th percentile of the response time.
    pub p99: Option<Ratio>,
    /// Arm over baseline, I/Os per transaction; none where either is 0 or unknown.
    pub ios_per_transaction: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The smallest true difference that a run like this calls a difference 4 times of 5, as a share
    /// (0.1: a tenth more); none with fewer than two trials of either, and where it is a hundred times or more.
    pub smallest_effect: Option<f64>,
}

/// A ratio of two arms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Of the trials' (geometric) means.
    pub ratio: f64,
    /// 95% interval; none with fewer than two trials of either.
    pub interval: Option<Interval>,
    /// How likely so large a ratio is between equal arms; none like the interval.
    pub p_value: Option<f64>,
    /// The same, with all comparisons of the run in mind (Holm); none where no verdict hangs on it.
    pub p_adjusted: Option<f64>,
}

/// Which figure a verdict is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Transactions a second: in a closed loop.
    #[default]
    Tps,
    /// 95th percentile of the response time: in an open loop, whose rate is given.
    P95,
}

/// What the data show about a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Verdict {
    /// The arm is faster.
    Faster,
    /// The arm is slower.
    Slower,
    /// The data carry no difference; a smaller one than [`Compared::smallest_effect`] may be there.
    NoDifferenceSeen,
    /// They cannot be held against each other.
    NotComparable {
        /// Why.
        why: String,
    },
}

/// What an option gains over connections, all else equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveGain {
    /// The axis of the option.
    pub axis: String,
    /// The option.
    pub option: String,
    /// What it is held against.
    pub baseline: String,
    /// The other options, such as `io1, binlog`; empty where there are none.
    pub place: String,
    /// The comparisons, by rising connections.
    pub points: Vec<CurvePoint>,
    /// The geometric mean of their ratios from 16 connections on, of those that have an interval; of all of them where
    /// none has one, and none where there are none.
    pub loaded: Option<Ratio>,
    /// From 16 connections on, the connections of the points that [`Self::loaded`] is without: too few trials, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<u32>,
}

/// A comparison on a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The connections of both arms.
    pub connections: u32,
    /// Its place in `Summary::comparisons`.
    pub comparison: usize,
}

impl CurveGain {
    /// The points with many connections ([`LOADED`]) that [`Self::loaded`] is of.
    pub fn loaded_points(&self) -> impl Iterator<Item = &CurvePoint> {
        let counts =
            |point: &&CurvePoint| point.connections >= LOADED && !self.left_out.contains(&point.connections);
        self.points.iter().filter(counts)
    }

    /// What the data show about the gain under load, by the rule of single comparisons: more or less where the interval
    /// is without 1 and the ratio beyond `floor`, else equal; none without an interval.
    #[must_use]
    pub fn direction(&self, floor: f64) -> Option<Ordering> {
        let loaded = self.loaded?;
        let interval = loaded.interval?;
        let sure = interval.low > 1.0 || interval.high < 1.0;
        let large = loaded.ratio.ln().abs().exp_m1() > floor;
        Some(if sure && large { loaded.ratio.total_cmp(&1.0) } else { Ordering::Equal })
    }

    /// The point in the middle of those, which represents them where one must; none where there are none.
    #[must_use]
    pub fn typical(&self) -> Option<&CurvePoint> {
        let count = self.loaded_points().count();
        self.loaded_points().nth(count / 2)
    }

    /// Whether another one is of the same options: nothing but connections sets its points apart.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        (&self.axis, &self.option, &self.baseline, &self.place)
            == (&other.axis, &other.option, &other.baseline, &other.place)
    }
}

/// Several runs of one experiment, held against each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// The runs, the first one first.
    pub runs: Vec<RunFacts>,
    /// The comparisons of the experiment, each over all runs.
    pub comparisons: Vec<Repeated>,
    /// Whether the intervals of every comparison overlap; None: some comparison has no interval, or
    /// there is none.
    pub overlap: Option<bool>,
    /// What to know before believing it, in sentences. For people; the wording may change.
    pub notes: Vec<String>,
}

/// One of several runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Where its results are.
    pub directory: String,
    /// When it began, ns since 1970.
    pub started_ns: u64,
    /// Its seed.
    pub seed: u64,
    /// Trials that count.
    pub measured: usize,
    /// Trials that it was to have.
    pub trials: usize,
}

/// A comparison over several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeated {
    /// The axis.
    pub axis: String,
    /// The arm, as an index into the arms.
    pub arm: usize,
    /// What it is held against.
    pub baseline: usize,
    /// The conditions; empty where the arms were not split.
    pub label: String,
    /// Which figure the ratios are of.
    pub metric: Metric,
    /// The ratio, run by run; none where the run lacks the comparison.
    pub ratios: Vec<Option<Ratio>>,
    /// Whether every interval has a value in common with every other; none where a run has no interval.
    pub overlap: Option<bool>,
    /// The lowest and the highest value that all intervals hold; none where they do not overlap.
    pub common: Option<(f64, f64)>,
    /// The same in a sentence. For people; the wording may change.
    pub text: String,
}
