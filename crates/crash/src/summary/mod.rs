//! From the record of a crash run to its summary.
//!
//! [`summarize`] is a pure function: the same run gives the same summary, so that a report can be made again
//! from stored results. Cuts are counted ([`arms`]), canaries judged ([`canaries`]), throughputs held against
//! each other ([`gains`]), and all of it put into words ([`findings`], [`notes`]).

mod arms;
mod canaries;
mod claims;
mod findings;
mod gains;
mod model;
mod notes;
pub(crate) mod sentences;
#[cfg(test)]
mod tests;

pub(crate) use arms::{BAD, can_come};
pub(crate) use notes::PACE;

pub use canaries::catches;
pub use findings::gained;
pub use model::{
    ArmSummary, BinlogSummary, CanarySummary, Gain, InFlightSummary, LossSummary, MomentSummary, Pace,
    Quantiles, RecoverySummary, ResumedSummary, Summary, ThroughputSummary, TornSummary,
};
pub use sentences::{bound, kind as kind_name};

use ebbtide_analysis::claim::judge;
use ebbtide_lab::cost;
use ebbtide_lab::experiment::{Arm, Canary};
use ebbtide_lab::record::catalog_of;

use super::record::{CrashRun, Cut, VerdictKind};

/// What a cut comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Something is wrong with it, whatever else could not be looked at.
    Bad,
    /// Nothing bad was seen, and not everything could be looked at.
    Unverified,
    /// Everything was looked at, and nothing is wrong.
    Clean,
}

impl Standing {
    /// That of a cut. One without a verdict whose server never recovered was not looked at.
    #[must_use]
    pub fn of(cut: &Cut) -> Self {
        let bad = cut.verdicts.iter().any(|verdict| verdict.kind() != VerdictKind::Unverified);
        match (bad, cut.verdicts.is_empty() && cut.recovery.is_some()) {
            (true, _) => Self::Bad,
            (false, true) => Self::Clean,
            (false, false) => Self::Unverified,
        }
    }
}

/// Whether a cut has a verdict of this kind.
#[must_use]
pub fn has(cut: &Cut, kind: VerdictKind) -> bool {
    cut.verdicts.iter().any(|verdict| verdict.kind() == kind)
}

/// The summary of a crash run. Works on runs that were cut short too: an arm without cuts has no shares, and a run
/// whose canaries did not sing is void.
#[must_use]
pub fn summarize(run: &CrashRun) -> Summary {
    let place = run.experiment.arms.iter().enumerate();
    let (canaries, asked): (Vec<_>, Vec<_>) = place.partition(|(_, arm)| canary_of(arm).is_some());
    let mut arms: Vec<ArmSummary> = asked.iter().map(|(index, arm)| arms::arm(run, *index, arm)).collect();
    let canaries = canaries::canaries(run, &canaries);
    let void = canaries::void(run, &canaries);
    let baseline = gains::baseline(run, &arms);
    let comparisons = gains::gains(run, &mut arms, baseline);
    let mut summary = Summary {
        valid: void.is_empty(),
        void,
        findings: Vec::new(),
        arms,
        canaries,
        baseline,
        comparisons,
        pace: arms::pace(&run.cuts.iter().collect::<Vec<_>>(), &run.stints.iter().collect::<Vec<_>>()),
        monthly_cost: cost::of(&run.experiment, &catalog_of(run.overrides.as_deref())),
        claims: Vec::new(),
        notes: Vec::new(),
    };
    let judged = run.experiment.claims.iter().map(|claim| {
        let mut judged = judge(claim, &claims::OfCuts(&summary));
        judged.refer_to_full_form(|arms| run.experiment.full_form(arms));
        judged
    });
    summary.claims = judged.collect();
    summary.findings = findings::findings(run, &summary);
    summary.notes = notes::notes(run, &summary);
    summary
}

/// What an arm is to prove, where it is a canary.
fn canary_of(arm: &Arm) -> Option<Canary> {
    arm.crash.as_ref().and_then(|crash| crash.canary)
}
