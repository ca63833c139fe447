//! From what a run recorded to what it says.
//!
//! [`summarize`] is a pure function: the same run gives the same summary, so that a report can be made
//! again from stored results.

#[cfg(test)]
pub(crate) mod fixture;
mod model;

pub use model::{
    Across, ArmSummary, Bottleneck, Cause, Change, Compared, Figures, HostFigures, Limiter, Measured, Metric,
    Noise, Note, Part, PerTransaction, Ratio, Regime, RegimeSummary, ServerFigures, Summary, TrialCounts,
    TrialWindow, Verdict, VolumeFigures,
};

use crate::record::{Outcome, Run};

/// What a run says. Works on runs that were cut short too: an arm without trials has no figures.
#[must_use]
pub fn summarize(run: &Run) -> Summary {
    let arms = run.experiment.arms.iter().map(|arm| {
        let mut trials = TrialCounts::default();
        for trial in run.trials.iter().filter(|trial| trial.arm == arm.name) {
            match trial.outcome {
                Outcome::Measured => trials.measured += 1,
                Outcome::Disqualified { .. } => trials.disqualified += 1,
                Outcome::Failed { .. } => trials.failed += 1,
            }
        }
        ArmSummary { name: arm.name.clone(), trials, ..ArmSummary::default() }
    });
    Summary { arms: arms.collect(), ..Summary::default() }
}
