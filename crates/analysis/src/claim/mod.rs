//! What documents claim, held against what was measured.
//!
//! A [`Claim`] is part of an experiment: a sentence of a public document, its figures, and the condition over measured
//! figures under which it counts as reproduced. [`judge`](judge()) is a pure function of a claim and of [`Evidence`], which the
//! summaries of both labs give.

mod document;
mod judge;
mod metric;
mod no_reading;
mod reason;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use document::{About, Document};
pub use judge::judge;
pub use metric::{ClaimMetric, ClaimPhase, Of};
pub use no_reading::NoReading;

/// What a document claims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name, unique in its experiment.
    pub id: String,
    /// The document.
    pub document: Document,
    /// Where in the document, such as `table 6`.
    pub place: String,
    /// What it claims, in a sentence that is not the document's.
    pub says: String,
    /// What the document prints where that is no figure of an arm, such as a range; empty where there is nothing more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub printed: String,
    /// The document's figures by arm, in the unit of the claim's metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// The condition over measured figures; none where the claim cannot be tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<ClaimTest>,
    /// Why the document's own tables contradict it; none where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradicted: Option<String>,
    /// Why it cannot be tested with emulated volumes on one machine; none where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
}

/// The condition under which a claim is reproduced: a figure of an arm, or its ratio to that of another, is in a range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimTest {
    /// The figure.
    pub metric: ClaimMetric,
    /// The arm.
    pub arm: String,
    /// The arm whose figure it is divided by; none where the figure itself is held against the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// The part of the arm's trials that is looked at; empty: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub during: Vec<ClaimPhase>,
    /// The same of the trials of `over`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_during: Vec<ClaimPhase>,
    /// The least that the figure or ratio may be; none: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The most; none: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

/// A claim with what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedClaim {
    /// The claim.
    pub claim: Claim,
    /// What the measurement says about it.
    pub verdict: ClaimVerdict,
    /// The document's figure or ratio, from its figures by arm; none where it prints none.
    pub theirs: Option<f64>,
    /// The same as measured; none where it was not.
    pub ours: Option<Reading>,
    /// The arms that it is about, with their own figures.
    pub arms: Vec<ClaimArm>,
}

/// An arm of a claim as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimArm {
    /// Its name.
    pub arm: String,
    /// The part of its trials that was looked at; empty: all of them.
    pub during: Vec<ClaimPhase>,
    /// Its figure, in the unit of the claim's metric; none where it was not measured.
    pub ours: Option<Reading>,
    /// What held it back, and its I/O, in words; empty where that is not known.
    pub io: String,
}

/// What a measurement says about a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum ClaimVerdict {
    /// The measured figure is in the claim's range, with all of its interval.
    Reproduced {
        /// Where in the range, and what the I/O of the arms was.
        why: String,
    },
    /// It is out of the range, with all of its interval.
    NotReproduced {
        /// By how much, and what the I/O of the arms was.
        why: String,
    },
    /// Its interval has a bound of the range inside, or it has none.
    Undecided {
        /// Which, and what the I/O of the arms was.
        why: String,
    },
    /// The document's own tables contradict the claim.
    Contradicted {
        /// How.
        why: String,
    },
    /// It cannot be tested here.
    NotTestable {
        /// Why.
        why: String,
    },
    /// An arm that it needs has no figure in this run.
    NotMeasured {
        /// Which, and why.
        why: String,
    },
    /// An arm that it needs is part of the full form of the experiment alone.
    OnlyInFull {
        /// The command that measures it.
        why: String,
    },
}

impl ClaimVerdict {
    /// In words, such as `not reproduced`.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Reproduced { .. } => "reproduced",
            Self::NotReproduced { .. } => "not reproduced",
            Self::Undecided { .. } => "undecided",
            Self::Contradicted { .. } => "contradicted by its own tables",
            Self::NotTestable { .. } => "not testable here",
            Self::NotMeasured { .. } => "not measured",
            Self::OnlyInFull { .. } => "not in the short form",
        }
    }

    /// Why, in a sentence or more without a full stop at the end.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Reproduced { why }
            | Self::NotReproduced { why }
            | Self::Undecided { why }
            | Self::Contradicted { why }
            | Self::NotTestable { why }
            | Self::OnlyInFull { why }
            | Self::NotMeasured { why } => why,
        }
    }
}

impl JudgedClaim {
    /// Says of a claim that was not measured that the full form measures it, where `command` is given for one of its
    /// arms: the arms that the short form leaves out have one.
    pub fn refer_to_full_form(&mut self, command: impl Fn(&[&str]) -> Option<String>) {
        let Some(test) = &self.claim.test else { return };
        let over = test.over.as_ref().filter(|over| **over != test.arm);
        let arms: Vec<&str> = std::iter::once(&test.arm).chain(over).map(String::as_str).collect();
        if matches!(self.verdict, ClaimVerdict::NotMeasured { .. })
            && let Some(command) = command(&arms)
        {
            self.verdict = ClaimVerdict::OnlyInFull { why: format!("run {command}") };
        }
    }
}

/// What held an arm back, and its I/O. Nothing is known by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArmIo {
    /// What it waits for, to follow its name, such as `waits for the volume's IOPS limit 97% of the time`; empty where
    /// nothing that was measured holds it back.
    pub waits: String,
    /// Other figures of its I/O, in words; empty where there are none.
    pub figures: String,
    /// Operations by transaction as the limits of the volumes count them; None where no transaction was finished.
    pub ios_per_transaction: Option<f64>,
    /// Operations a second as the limits of the volumes count them.
    pub iops: Option<f64>,
}

impl ArmIo {
    /// All of it in words, to follow the name of the arm and a colon; empty where nothing is known.
    #[must_use]
    pub fn words(&self) -> String {
        let parts = [self.waits.as_str(), self.figures.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// A measured figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The figure: a mean or a median over trials, or a ratio of two.
    pub mid: f64,
    /// The lower end: of the 95% interval of a rate, of the range of the trials for other figures; none with one trial.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Reading {
    /// A figure without an interval.
    #[must_use]
    pub const fn alone(mid: f64) -> Self {
        Self { mid, low: None, high: None }
    }

    /// A figure with both ends of its interval.
    #[must_use]
    pub const fn between(mid: f64, low: f64, high: f64) -> Self {
        Self { mid, low: Some(low), high: Some(high) }
    }

    /// One over another; both ends are those that the ends of both allow. None where the other is not above 0.
    #[must_use]
    pub fn over(&self, other: &Self) -> Option<Self> {
        let ratio = |a: f64, b: f64| (b > 0.0).then(|| a / b).filter(|ratio| ratio.is_finite());
        let ends = |a: Option<f64>, b: Option<f64>| a.zip(b).and_then(|(a, b)| ratio(a, b));
        let (low, high) = (ends(self.low, other.high), ends(self.high, other.low));
        let both = low.is_some() && high.is_some();
        Some(Self {
            mid: ratio(self.mid, other.mid)?,
            low: low.filter(|_| both),
            high: high.filter(|_| both),
        })
    }
}

/// What a run measured, for claims.
pub trait Evidence {
    /// The figure of an arm under conditions.
    ///
    /// # Errors
    /// Why there is none, in words that follow the name of the arm.
    fn reading(&self, arm: &str, metric: ClaimMetric, during: &[ClaimPhase]) -> Result<Reading, NoReading>;

    /// One arm over another as the run compares them; none where it does not compare them under these conditions.
    fn ratio(&self, test: &ClaimTest, over: &str) -> Option<Reading>;

    /// What held an arm back under conditions, and its I/O.
    fn io(&self, arm: &str, during: &[ClaimPhase]) -> ArmIo;
}

impl ClaimTest {
    /// The document's figure or ratio; none where the claim has not all figures for it.
    #[must_use]
    pub fn theirs(&self, figures: &BTreeMap<String, f64>) -> Option<f64> {
        let own = *figures.get(&self.arm)?;
        match &self.over {
            None => Some(own),
            // The figures of an arm under two conditions are not told apart.
            Some(over) if *over == self.arm => None,
            Some(over) => figures.get(over).filter(|figure| **figure > 0.0).map(|figure| own / figure),
        }
    }

    /// Whether a value is in the range.
    #[must_use]
    pub fn allows(&self, value: f64) -> bool {
        self.at_least.is_none_or(|least| value >= least) && self.at_most.is_none_or(|most| value <= most)
    }
}
