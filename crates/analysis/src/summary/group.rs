//! Trials of an arm under one set of conditions: what is summed up and held against others.

use super::model::{ArmSummary, TrialCounts};
use super::percentiles::{self, Percentiles};
use super::regime::Regime;
use super::window::{Looked, look};
use crate::record::{DesignArm, Outcome, RunRecord, Second, TrialRecord};
use crate::stats::{Prior, Sample};

/// The part of a trial that belongs to a group.
#[derive(Debug, Clone)]
pub(super) struct Member<'a> {
    pub(super) seconds: Vec<&'a Second>,
    pub(super) percentiles: Percentiles,
}

/// Trials of an arm: all of them, or the parts of them in one regime.
#[derive(Debug, Clone)]
pub(super) struct Group<'a> {
    /// None: all measured seconds.
    pub(super) regime: Option<Regime>,
    pub(super) members: Vec<Member<'a>>,
}

/// Which figure of a trial is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Tps,
    P95,
    P99,
}

impl Group<'_> {
    /// One sample for each trial; empty where a trial has nothing that a logarithm could be taken of.
    pub(super) fn samples(&self, figure: Figure) -> Vec<Sample> {
        let samples: Option<Vec<Sample>> = self.members.iter().map(|member| member.sample(figure)).collect();
        samples.unwrap_or_default()
    }
}

impl Member<'_> {
    fn sample(&self, figure: Figure) -> Option<Sample> {
        let course = |of: fn(&Second) -> f64| -> Vec<f64> { self.seconds.iter().map(|s| of(s)).collect() };
        match figure {
            Figure::Tps => Sample::of_mean(&course(|second| second.load.tps)),
            Figure::P95 => Sample::new(self.percentiles.p95, &course(|second| second.load.p95_us)),
            Figure::P99 => Sample::new(self.percentiles.p99, &course(|second| second.load.p99_us)),
        }
    }
}

/// An arm, taken apart.
#[derive(Debug)]
pub(super) struct Parted<'a> {
    pub(super) arm: &'a DesignArm,
    pub(super) counts: TrialCounts,
    /// The trials that count.
    pub(super) looked: Vec<Looked<'a>>,
    /// All that counts; without members where no trial does.
    pub(super) whole: Group<'a>,
    /// Empty where all of it is one regime.
    pub(super) regimes: Vec<Group<'a>>,
}

impl<'a> Parted<'a> {
    pub(super) fn of(run: &'a RunRecord<'_>, index: usize) -> Self {
        let arm = &run.design.arms[index];
        let mut counts = TrialCounts::default();
        let mut looked = Vec::new();
        for trial in run.trials.iter().filter(|trial| trial.arm == arm.name) {
            match trial.outcome {
                Outcome::Measured => counts.measured += 1,
                Outcome::Disqualified { .. } => counts.disqualified += 1,
                Outcome::Failed { .. } => counts.failed += 1,
            }
            if *trial.outcome == Outcome::Measured && !trial.seconds.is_empty() {
                looked.push(look(trial, arm));
            }
        }
        agree(&mut looked);
        let whole = group(None, &looked);
        let mut kinds: Vec<Regime> = looked.iter().flat_map(Looked::shape).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let regimes = if kinds.len() > 1 {
            kinds.iter().map(|regime| group(Some(*regime), &looked)).collect()
        } else {
            Vec::new()
        };
        Self { arm, counts, looked, whole, regimes }
    }

    /// What is held against other arms: the regimes, or all of it.
    pub(super) fn groups(&self) -> &[Group<'a>] {
        if self.regimes.is_empty() { std::slice::from_ref(&self.whole) } else { &self.regimes }
    }

    /// The conditions of an arm that was never split.
    pub(super) fn only_regime(&self) -> Regime {
        self.looked
            .first()
            .and_then(|looked| looked.window.parts.first())
            .map_or_else(Regime::default, |p| p.regime)
    }

    pub(super) fn summary(&self) -> ArmSummary {
        ArmSummary {
            name: self.arm.name.clone(),
            trials: self.counts,
            windows: self.looked.iter().map(|looked| looked.window.clone()).collect(),
            ..ArmSummary::default()
        }
    }
}

/// A trial by itself: the same seconds as among the others of its arm, which only decide on the names of their
/// conditions. None without seconds.
pub(super) fn alone<'a>(trial: &'a TrialRecord<'a>, arm: &DesignArm) -> Option<Member<'a>> {
    if trial.seconds.is_empty() {
        return None;
    }
    group(None, &[look(trial, arm)]).members.pop()
}

/// Trials that disagree on where their level changed are not split there.
fn agree(looked: &mut [Looked<'_>]) {
    let shapes: Vec<_> = looked.iter().map(Looked::shape).collect();
    if shapes.windows(2).any(|pair| pair[0] != pair[1]) {
        looked.iter_mut().for_each(Looked::forget_phases);
    }
}

fn group<'a>(regime: Option<Regime>, looked: &[Looked<'a>]) -> Group<'a> {
    let members = looked.iter().filter_map(|looked| {
        let parts = looked.window.parts.iter().zip(&looked.picks);
        let picked = parts.filter(|(part, _)| regime.is_none_or(|regime| part.regime == regime));
        let seconds: Vec<&Second> =
            picked.flat_map(|(_, places)| places).map(|place| &looked.trial.seconds[*place]).collect();
        let percentiles = percentiles::of(looked.trial, &seconds);
        (!seconds.is_empty()).then_some(Member { seconds, percentiles })
    });
    Group { regime, members: members.collect() }
}

/// What the arms together show about each figure's spread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Priors {
    pub(super) tps: Prior,
    pub(super) p95: Prior,
    pub(super) p99: Prior,
}

impl Priors {
    pub(super) fn learn(arms: &[Parted<'_>]) -> Self {
        let learn = |figure| {
            let samples: Vec<Vec<Sample>> =
                arms.iter().flat_map(Parted::groups).map(|group| group.samples(figure)).collect();
            Prior::learn(&samples)
        };
        Self { tps: learn(Figure::Tps), p95: learn(Figure::P95), p99: learn(Figure::P99) }
    }
}
