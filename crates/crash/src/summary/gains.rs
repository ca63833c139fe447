//! Throughputs held against each other: what the risk buys.

use ebbtide_analysis::stats::series::mean;
use ebbtide_analysis::stats::{ALPHA, Prior, Sample, holm, ratio, smallest_effect};
use ebbtide_lab::summary::{LEAST, Ratio, Verdict};

use super::arms::{samples, with_intervals};
use super::model::{ArmSummary, Gain};
use crate::record::CrashRun;

/// The arm that the experiment's first comparison is held against, or the first one; none with fewer than two.
pub(super) fn baseline(run: &CrashRun, arms: &[ArmSummary]) -> Option<usize> {
    if arms.len() < 2 {
        return None;
    }
    let asked = run.experiment.comparisons.iter();
    asked.filter_map(|comparison| place(arms, comparison.baseline)).next().or(Some(0))
}

/// Where an arm of the experiment is among those that are asked about; none for a canary.
fn place(arms: &[ArmSummary], index: usize) -> Option<usize> {
    arms.iter().position(|arm| arm.index == index)
}

/// The experiment's comparisons; throughputs get their intervals, and arms their gain over the baseline.
pub(super) fn gains(run: &CrashRun, arms: &mut [ArmSummary], baseline: Option<usize>) -> Vec<Gain> {
    let samples: Vec<Vec<Sample>> = arms.iter().map(|arm| samples(run, &arm.name)).collect();
    let prior = Prior::learn(&samples);
    with_intervals(arms, &samples, &prior);
    let pairs = run.experiment.comparisons.iter().filter_map(|comparison| {
        let (arm, baseline) = (place(arms, comparison.arm)?, place(arms, comparison.baseline)?);
        Some((comparison.axis.clone(), arm, baseline))
    });
    let pairs: Vec<(String, usize, usize)> = pairs.collect();
    for index in 0..arms.len() {
        // What a replica applies and what a primary commits are two figures.
        let alike = baseline.filter(|baseline| arms[*baseline].role == arms[index].role);
        let asked = || pairs.iter().find(|(_, arm, _)| *arm == index).map(|(.., baseline)| *baseline);
        let over = alike.or_else(asked).filter(|baseline| *baseline != index);
        arms[index].gain_over = over;
        arms[index].gain = over.and_then(|over| over_each_other(&samples[index], &samples[over], &prior));
    }
    let mut gains: Vec<Gain> = pairs
        .into_iter()
        .map(|(axis, arm, baseline)| Gain {
            axis,
            arm,
            baseline,
            tps: over_each_other(&samples[arm], &samples[baseline], &prior),
            verdict: Verdict::NoDifferenceSeen,
            smallest_effect: None,
        })
        .collect();
    let adjusted = holm(&gains.iter().map(|gain| gain.tps?.p_value).collect::<Vec<_>>());
    let family = adjusted.iter().flatten().count().max(1);
    for (gain, p) in gains.iter_mut().zip(adjusted) {
        if let Some(tps) = &mut gain.tps {
            tps.p_adjusted = p;
        }
        let (ours, theirs) = (&samples[gain.arm], &samples[gain.baseline]);
        gain.verdict = judge(gain.tps.as_ref(), ours.len().min(theirs.len()));
        let effect = smallest_effect(ours, theirs, &prior, ALPHA / family as f64);
        gain.smallest_effect = effect.map(|effect| effect.max(LEAST)).filter(|effect| effect.is_finite());
    }
    gains
}

/// One over the other; none where there is no interval, since one stint is no more than a guess.
fn over_each_other(arm: &[Sample], baseline: &[Sample], prior: &Prior) -> Option<Ratio> {
    let mid = |samples: &[Sample]| mean(&samples.iter().map(|sample| sample.log).collect::<Vec<_>>());
    let tested = ratio(arm, baseline, prior)?;
    Some(Ratio {
        ratio: (mid(arm) - mid(baseline)).exp(),
        interval: Some(tested.interval),
        p_value: Some(tested.p_value),
        p_adjusted: None,
    })
}

/// `fewest`: stints that count, of the side that has fewer.
fn judge(tps: Option<&Ratio>, fewest: usize) -> Verdict {
    let Some((tps, p)) = tps.and_then(|tps| Some((tps, tps.p_adjusted?))) else {
        let why = match fewest {
            0 => "not both have a throughput that counts",
            _ => "one stint shows no spread: repeat it to know what a ratio is worth",
        };
        return Verdict::NotComparable { why: why.to_owned() };
    };
    let large = tps.ratio.ln().abs().exp_m1() > LEAST;
    match (p < ALPHA && large, tps.ratio > 1.0) {
        (false, _) => Verdict::NoDifferenceSeen,
        (true, true) => Verdict::Faster,
        (true, false) => Verdict::Slower,
    }
}
