//! From the record of a run to its summary.
//!
//! [`summarize`] is a pure function: the same run gives the same summary, so that a report can be made
//! again from stored results. Trials are looked at one by one ([`window`]), put into groups of like
//! conditions ([`group`]), summed up ([`figures`], [`limiter`]), held against each other ([`compare`]), and
//! put into words ([`findings`], [`notes`]); comparisons that differ in connections alone are curves ([`mod@curves`]).

mod answers;
mod backup;
mod claims;
mod compare;
mod comparison;
mod curves;
mod figures;
mod findings;
mod group;
mod lag;
mod limiter;
mod model;
mod notes;
mod percentiles;
mod regime;
mod repeat;
mod sentences;
mod tpcc;
mod undecided;
mod window;

pub use claims::OfRun;
pub use compare::LEAST;
pub use comparison::{
    Compared, CurveGain, CurvePoint, LOADED, Metric, Ratio, Repeated, Repetition, RunFacts, Verdict,
};
pub use curves::{Curve, Curves, curves};
pub use figures::trial_figures;
pub use findings::{Headline, headline, without};
pub use model::{
    Across, AnswerFigures, ArmSummary, BackupFigures, Bottleneck, Cause, ErrorFigures, Figures, HostFigures,
    LagFigures, Limiter, Measured, Noise, Note, Part, PerTransaction, RegimeSummary, ServerFigures, Summary,
    TpccFigures, TransactionFigures, TrialCounts, TrialFigures, TrialWindow, VolumeFigures, WindowChange,
};
pub use notes::TWO_TRIALS;
pub use regime::{Around, Regime};
pub use repeat::{compare_runs, repetition};
pub use undecided::{Undecided, too_few_trials};

use group::{Figure, Parted, Priors};

use crate::record::{RunRecord, Second};
use crate::stats::{Sample, expected_between_equals, spread};

/// The summary of a run, its costs apart. Works on runs that were cut short too: an arm without trials has no figures.
#[must_use]
pub fn summarize(run: &RunRecord<'_>) -> Summary {
    let arms: Vec<Parted<'_>> = (0..run.design.arms.len()).map(|arm| Parted::of(run, arm)).collect();
    let priors = Priors::learn(&arms);
    let mut noise = noise(run, &arms);
    let comparisons = compare::compare(run, &arms, &priors, &mut noise);
    let mut summary = Summary {
        arms: arms.iter().map(|arm| arm_summary(arm, &priors, run.cpus)).collect(),
        comparisons,
        noise,
        ..Summary::default()
    };
    for index in 0..summary.comparisons.len() {
        let compared = &summary.comparisons[index];
        let side = |arm: usize, regime: Option<Regime>| figures_under(&summary.arms[arm], regime);
        let (ours, theirs) = compared.regimes.unzip();
        let ratio = compare::ios_ratio(side(compared.arm, ours), side(compared.baseline, theirs));
        summary.comparisons[index].ios_per_transaction = ratio;
    }
    summary.curves = curves::gains(&run.design, &summary.comparisons);
    summary.findings = findings::findings(&run.design, &arms, &summary);
    summary.notes = notes::notes(run, &arms, &summary);
    summary
}

fn arm_summary(arm: &Parted<'_>, priors: &Priors, cpus: u32) -> ArmSummary {
    let figures = |group| figures::figures(group, &priors.tps, arm.arm.offered, cpus);
    let regimes = arm.regimes.iter().filter_map(|group| {
        let regime = group.regime?;
        let label = sentences::regime(regime, arm.arm.batch.is_some());
        Some(RegimeSummary { regime, label, figures: figures(group)? })
    });
    let whole = figures(&arm.whole);
    let tpcc = tpcc::figures(arm, whole.as_ref());
    ArmSummary {
        whole,
        tpcc,
        lag: lag::figures(&arm.whole),
        replica_volumes: figures::replica_volumes(&arm.whole),
        answers: answers::figures(arm),
        backup: backup::figures(arm),
        regimes: regimes.collect(),
        ..arm.summary()
    }
}

/// An arm's figures under a comparison's conditions.
fn figures_under(arm: &ArmSummary, regime: Option<Regime>) -> Option<&Figures> {
    match regime {
        Some(regime) if !arm.regimes.is_empty() => {
            arm.regimes.iter().find(|part| part.regime == regime).map(|part| &part.figures)
        }
        _ => arm.whole.as_ref(),
    }
}

fn noise(run: &RunRecord<'_>, arms: &[Parted<'_>]) -> Noise {
    let samples: Vec<Vec<Sample>> =
        arms.iter().flat_map(Parted::groups).map(|group| group.samples(Figure::Tps)).collect();
    let between = spread(&samples);
    let several: Vec<f64> =
        samples.iter().map(Vec::len).filter(|trials| *trials > 1).map(|trials| trials as f64).collect();
    let trials = crate::stats::series::median(&several);
    let members = || arms.iter().flat_map(|arm| &arm.whole.members);
    let seconds: Vec<&Second> = members().flat_map(|member| member.seconds.iter().copied()).collect();
    let host = figures::host(&seconds);
    Noise {
        between_trials: between.map(|(spread, _)| spread),
        expected_aa: between.map(|(spread, df)| expected_between_equals(spread, df, trials)),
        observed_aa: None,
        floor: LEAST,
        steal_cpus: host.steal_cpus,
        worst_steal_cpus: members()
            .map(|member| figures::host(&member.seconds).steal_cpus)
            .fold(0.0, f64::max),
        other_cpus: host.other_cpus,
        load_before: run.load_before,
    }
}
