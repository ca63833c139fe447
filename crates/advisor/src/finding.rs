//! What a check finds.

use ebbtide_observe::{Fact, Metric, NotSeen, Observation};
use serde::Serialize;

use crate::fix::Fix;

/// The answer of a check: None is fine.
pub type Judged = Result<Option<Found>, Gap>;

/// The answer where there is nothing to find.
pub(crate) const FINE: Judged = Ok(None);

/// Why a check has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// The question has no meaning for this server.
    DoesNotApply(String),
    /// Something that is needed was not observed.
    Missing(NotSeen),
    /// What was observed does not tell.
    Undecided(String),
}

/// A finding, before what its check knows is added.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    why: String,
    severity: Option<Severity>,
    confidence: Option<Confidence>,
    evidence: Vec<Evidence>,
    fix: Option<Fix>,
    at_most: Option<Benefit>,
}

impl Found {
    /// A finding with its reason, in sentences.
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            severity: None,
            confidence: None,
            evidence: Vec::new(),
            fix: None,
            at_most: None,
        }
    }

    /// Sets a severity other than that of the check.
    pub(crate) fn severity(self, severity: Severity) -> Self {
        Self { severity: Some(severity), ..self }
    }

    /// Sets a confidence below that of the observation.
    pub(crate) fn confidence(self, confidence: Confidence) -> Self {
        Self { confidence: Some(confidence), ..self }
    }

    /// Adds evidence that was not read through the view.
    pub(crate) fn evidence(self, evidence: Vec<Evidence>) -> Self {
        Self { evidence, ..self }
    }

    /// What to do.
    pub(crate) fn fix(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }

    /// What can be gained at most.
    pub(crate) fn at_most(self, at_most: Option<Benefit>) -> Self {
        Self { at_most, ..self }
    }

    /// This and what was found of another volume: the worse severity, the lower confidence, both texts.
    pub(crate) fn and(self, other: Self, severity: Severity) -> Self {
        let worse = self.severity.unwrap_or(severity).max(other.severity.unwrap_or(severity));
        let lower = [self.confidence, other.confidence].into_iter().flatten().min();
        let fix = match (self.fix, other.fix) {
            (Some(one), Some(two)) => Some(one.and(two)),
            (one, two) => one.or(two),
        };
        Self {
            why: format!("{} {}", self.why, other.why),
            severity: Some(worse),
            confidence: lower,
            evidence: [self.evidence, other.evidence].concat(),
            fix,
            at_most: self.at_most.or(other.at_most),
        }
    }

    /// The answer of a check.
    pub(crate) fn answer(self) -> Judged {
        Ok(Some(self))
    }

    /// The whole finding: what is true of each answer of the check, and this.
    pub(crate) fn finding(self, severity: Severity, rest: Finding) -> Finding {
        let mut evidence = rest.evidence;
        evidence.extend(self.evidence);
        Finding {
            verdict: Assessment::Found,
            severity: Some(self.severity.unwrap_or(severity)),
            confidence: self.confidence.map_or(rest.confidence, |one| one.min(rest.confidence)),
            why: self.why,
            evidence,
            fix: self.fix,
            at_most: self.at_most,
            ..rest
        }
    }
}

/// The answer of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub code: &'static str,
    /// What the check looks at.
    pub title: &'static str,
    /// The answer.
    pub verdict: Assessment,
    /// How bad it is; null where nothing was found.
    pub severity: Option<Severity>,
    /// How sure the answer is.
    pub confidence: Confidence,
    /// Why, in sentences; empty where nothing was found.
    pub why: String,
    /// What was seen that the answer rests on.
    pub evidence: Vec<Evidence>,
    /// What was needed and not observed, and what would allow it.
    pub missing: Vec<NotSeen>,
    /// What to do; null where nothing was found.
    pub fix: Option<Fix>,
    /// What the fix gains.
    pub gain: String,
    /// What can be gained at most; null where it was not counted.
    pub at_most: Option<Benefit>,
    /// What the fix gained in the lab; null where that was not measured.
    pub measured: Option<MeasuredGain>,
    /// What can go wrong with the fix.
    pub risk: String,
    /// What the fix costs: money, memory or speed.
    pub cost: String,
    /// Where the facts come from.
    pub sources: &'static [Source],
}

impl Finding {
    /// How many times as much the fix gives, where that was measured or counted: 1 where it was not.
    #[must_use]
    pub fn gain_factor(&self) -> f64 {
        let measured = self.measured.filter(|gain| gain.difference).map(|gain| gain.times);
        measured.or(self.at_most.map(|most| most.at_most)).unwrap_or(1.0)
    }
}

/// The answer of a check in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assessment {
    /// There is something to change.
    Found,
    /// Nothing to do.
    Fine,
    /// The observation does not report. This is never the same as fine.
    Unknown,
    /// The question has no meaning for this server.
    DoesNotApply,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A good habit, or a small gain.
    Low,
    /// The server is held back, or will be.
    Medium,
    /// The server is held back now, or commits can be lost.
    High,
    /// Data can be damaged or lost.
    Critical,
}

impl Severity {
    /// All, the lowest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// Its name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// How sure an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Something that decides is not known, or the interval is shorter than a minute.
    Low,
    /// The interval is shorter than a quarter of an hour.
    Medium,
    /// All that decides was seen, for long enough.
    High,
}

impl Confidence {
    /// The most that the length of an interval allows: a quarter of an hour shows more than the checkpoint of the moment.
    #[must_use]
    pub fn cap(observation: &Observation) -> Self {
        match observation.span {
            Some(span) if span.restarted => Self::Low,
            Some(span) if span.seconds >= 900.0 => Self::High,
            Some(span) if span.seconds >= 60.0 => Self::Medium,
            _ => Self::Low,
        }
    }

    /// Its name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A value that was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// Name of the variable, metric or fact.
    pub name: &'static str,
    /// Its value.
    pub value: Seen,
    /// What it means.
    pub meaning: &'static str,
    /// What it is true of, such as `redo log`; null for the data and for the server as a whole.
    pub of: Option<&'static str>,
}

/// A value, as a number or in the server's words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Seen {
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

impl Evidence {
    /// The metrics of these names that were seen.
    #[must_use]
    pub fn of_metrics(observation: &Observation, names: &[&str]) -> Vec<Self> {
        let values = observation.rates.map(|rates| rates.to_values()).unwrap_or_default();
        let seen = |(metric, value): (&'static Metric, Option<f64>)| {
            let value = Seen::Number(value.filter(|_| names.contains(&metric.name))?);
            Some(Self { name: metric.name, value, meaning: metric.meaning, of: None })
        };
        ebbtide_observe::METRICS.iter().zip(values).filter_map(seen).collect()
    }

    /// The variables of these facts as the server spells them.
    #[must_use]
    pub fn of_facts(observation: &Observation, names: &[&str]) -> Vec<Self> {
        let Some(variables) = &observation.variables else { return Vec::new() };
        let of = move |fact: &'static Fact| {
            fact.variables.iter().filter_map(move |variable| {
                let value = Seen::Text(variables.get(variable)?.to_owned());
                Some(Self { name: *variable, value, meaning: fact.meaning, of: None })
            })
        };
        ebbtide_observe::FACTS.iter().filter(|fact| names.contains(&fact.name)).flat_map(of).collect()
    }
}

/// What can be gained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Benefit {
    /// How many times as much, at most.
    pub at_most: f64,
    /// Of what.
    pub of: &'static str,
}

/// What a fix gained in the lab, on volumes and under a load like the server's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredGain {
    /// How many times as much with the fix: below 1 it costs.
    pub times: f64,
    /// The lower end of the 95% interval; null with one trial of either.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Of what.
    pub of: &'static str,
    /// Trials with the fix, and as many or more without.
    pub trials: u32,
    /// Whether it is a difference that noise does not explain.
    pub difference: bool,
}

/// A publication and its statement, in our words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Its summary.
    pub says: &'static str,
    /// Where.
    pub url: &'static str,
}
