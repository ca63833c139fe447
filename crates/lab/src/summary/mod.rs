//! The summary of a run: the summaries of `ebbtide_analysis`, over the records of this crate, with what the volumes cost.

#[cfg(test)]
mod claim_tests;
#[cfg(test)]
mod curve_tests;
#[cfg(any(test, feature = "fixtures"))]
#[allow(clippy::unwrap_used, reason = "made up for tests alone")]
pub mod fixture;
#[cfg(test)]
mod tests;

use ebbtide_analysis::claim::judge;
pub use ebbtide_analysis::claim::{Claim, ClaimVerdict, Document, JudgedClaim, NoReading};
use ebbtide_analysis::record::RunRecord;
use ebbtide_analysis::summary as analysis;

pub use ebbtide_analysis::summary::{
    Across, AnswerFigures, ArmSummary, Around, BackupFigures, Bottleneck, Cause, Compared, Curve, CurveGain,
    CurvePoint, Curves, Figures, HostFigures, LEAST, LOADED, LagFigures, Limiter, Measured, Metric, Noise,
    Note, Part, PerTransaction, Ratio, Regime, RegimeSummary, Repeated, Repetition, RunFacts, ServerFigures,
    Summary, TpccFigures, TransactionFigures, TrialCounts, TrialFigures, TrialWindow, Verdict, VolumeFigures,
    WindowChange, without,
};

use crate::cost;
use crate::experiment::{Arm, Experiment};
use crate::record::{LabRun, Trial};

/// The summary of a run. Works on runs that were cut short too: an arm without trials has no figures.
#[must_use]
pub fn summarize(run: &LabRun) -> Summary {
    let monthly_cost = cost::of(&run.experiment, &run.catalog());
    let record = run.record();
    let summary = analysis::summarize(&record);
    let claims = claims(&run.experiment, &record, &summary);
    let left_out = run.experiment.left_out.iter();
    let mut notes: Vec<Note> = left_out
        .map(|one| Note { arm: None, text: format!("{}.", one.words().replacen("arm", "Arm", 1)) })
        .collect();
    notes.extend(summary.notes);
    Summary { monthly_cost, claims, notes, ..summary }
}

/// Whether every trial counts.
#[must_use]
pub fn all_measured(summary: &Summary) -> bool {
    summary.arms.iter().all(|arm| arm.trials.disqualified == 0 && arm.trials.failed == 0)
}

/// Claims held against a run.
fn claims(experiment: &Experiment, run: &RunRecord<'_>, summary: &Summary) -> Vec<JudgedClaim> {
    let claims = &experiment.claims;
    if claims.is_empty() {
        return Vec::new();
    }
    let evidence = analysis::OfRun::new(run, summary);
    let judged = claims.iter().map(|claim| {
        let mut judged = judge(claim, &evidence);
        judged.refer_to_full_form(|arms| experiment.full_form(arms));
        if let (ClaimVerdict::NotMeasured { why }, Some(test)) = (&mut judged.verdict, &claim.test)
            && let Some(missing) = experiment
                .left_out
                .iter()
                .find(|one| one.arm == test.arm || test.over.as_ref() == Some(&one.arm))
        {
            *why = missing.words();
        }
        judged
    });
    judged.collect()
}

/// The figures of a trial, as they go into those of its arm; none without seconds, or where one of them has a figure
/// that is no number.
#[must_use]
pub fn trial_figures(trial: &Trial, arm: &Arm) -> Option<TrialFigures> {
    analysis::trial_figures(&trial.record(), &arm.design())
}

/// The curves of an experiment; none where no axis makes them.
#[must_use]
pub fn curves(experiment: &Experiment) -> Option<Curves> {
    analysis::curves(&experiment.design())
}

/// Holds the runs of one experiment against each other, each with the directory of its results.
#[must_use]
pub fn repetition(runs: &[(&str, &LabRun)]) -> Repetition {
    let records: Vec<(&str, RunRecord<'_>)> = runs.iter().map(|(dir, run)| (*dir, run.record())).collect();
    analysis::repetition(&records.iter().map(|(dir, record)| (*dir, record)).collect::<Vec<_>>())
}

/// Holds the runs of one experiment against each other, comparison by comparison; empty for fewer than
/// two runs.
#[must_use]
pub fn compare_runs(experiment: &Experiment, runs: &[Summary]) -> Vec<Repeated> {
    analysis::compare_runs(&experiment.design(), runs)
}
