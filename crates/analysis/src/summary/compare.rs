//! Arms held against each other.

use super::comparison::{Compared, Metric, Ratio, Verdict};
use super::group::{Figure, Group, Parted, Priors};
use super::model::{Figures, Noise};
use super::regime::Regime;
use super::sentences;
use crate::record::{Comparison, DesignArm, RunRecord};
use crate::stats::{ALPHA, Interval, Prior, holm, ratio, series, smallest_effect};

/// No difference below this is called one. Where a program's data happen to be in memory, the order of its
/// files and the like move a rate by about as much, repeat after repeat alike.
pub const LEAST: f64 = 0.01;

/// A run that sees nothing smaller than this, as a share, sees nothing: that is not reported with a figure.
const LARGEST_EFFECT: f64 = 100.0;

/// Two groups that are held against each other.
#[derive(Debug, Clone, Copy)]
struct Pair<'p, 'a> {
    comparison: &'p Comparison,
    arm: &'p Group<'a>,
    baseline: &'p Group<'a>,
    regimes: Option<(Regime, Regime)>,
}

/// All comparisons, and the difference that was seen between equal arms.
pub(super) fn compare(
    run: &RunRecord<'_>,
    arms: &[Parted<'_>],
    priors: &Priors,
    noise: &mut Noise,
) -> Vec<Compared> {
    let mut done: Vec<Compared> = Vec::new();
    let mut pairs = Vec::new();
    for comparison in &run.design.comparisons {
        let (Some(arm), Some(baseline)) = (arms.get(comparison.arm), arms.get(comparison.baseline)) else {
            continue;
        };
        let matched = pairs_of(comparison, arm, baseline);
        for pair in matched {
            done.push(measure(&pair, arm.arm, baseline.arm, priors));
            pairs.push(pair);
        }
    }
    adjust(&mut done);
    let equal = done.iter().filter(|compared| compared.equal).filter_map(|compared| compared.tps);
    noise.observed_aa = equal.map(|tps| tps.ratio.ln().abs().exp_m1()).max_by(f64::total_cmp);
    noise.floor = noise.observed_aa.unwrap_or(0.0).max(LEAST);
    let family =
        done.iter().filter(|compared| primary(compared).is_some_and(|r| r.p_value.is_some())).count();
    let alpha = ALPHA / family.max(1) as f64;
    for (compared, pair) in done.iter_mut().zip(&pairs) {
        // Equal arms are what the floor is taken from: they must not hide behind it.
        let floor = if compared.equal { LEAST } else { noise.floor };
        judge(compared, pair, floor);
        let (figure, prior) = figure_of(compared.metric, priors);
        compared.smallest_effect =
            smallest_effect(&pair.arm.samples(figure), &pair.baseline.samples(figure), prior, alpha)
                .map(|effect| effect.max(floor))
                .filter(|effect| *effect <= LARGEST_EFFECT);
    }
    done
}

fn figure_of(metric: Metric, priors: &Priors) -> (Figure, &Prior) {
    match metric {
        Metric::Tps => (Figure::Tps, &priors.tps),
        Metric::P95 => (Figure::P95, &priors.p95),
    }
}

/// What is held against what: like with like. A regime of one arm meets that of the other with the same
/// conditions, or the only one with the same batch job; arms that were never split meet whole.
fn pairs_of<'p, 'a>(
    comparison: &'p Comparison,
    arm: &'p Parted<'a>,
    baseline: &'p Parted<'a>,
) -> Vec<Pair<'p, 'a>> {
    if arm.regimes.is_empty() && baseline.regimes.is_empty() {
        return vec![Pair { comparison, arm: &arm.whole, baseline: &baseline.whole, regimes: None }];
    }
    let (ours, theirs) = (conditions(arm), conditions(baseline));
    let mut pairs = Vec::new();
    for (regime, group) in &ours {
        for (other, against) in &theirs {
            if meet(*regime, *other, &ours, &theirs) {
                pairs.push(Pair {
                    comparison,
                    arm: group,
                    baseline: against,
                    regimes: Some((*regime, *other)),
                });
            }
        }
    }
    pairs
}

fn conditions<'p, 'a>(arm: &'p Parted<'a>) -> Vec<(Regime, &'p Group<'a>)> {
    let named = arm.groups().iter();
    named.map(|group| (group.regime.unwrap_or_else(|| arm.only_regime()), group)).collect()
}

fn meet(a: Regime, b: Regime, ours: &[(Regime, &Group<'_>)], theirs: &[(Regime, &Group<'_>)]) -> bool {
    let alone = |regime: Regime, among: &[(Regime, &Group<'_>)]| {
        let alike = |other: &Regime| (other.batch, other.backup) == (regime.batch, regime.backup);
        among.iter().filter(|(other, _)| alike(other)).count() == 1
    };
    // An arm without a backup meets every part of one that has one.
    let around = a.backup == b.backup || a.backup.is_none() || b.backup.is_none();
    let same = |x: Regime, y: Regime| (x.credits_gone, x.phase) == (y.credits_gone, y.phase);
    // Whoever has only one regime with this batch job meets all of the other's.
    a.batch == b.batch && around && (same(a, b) || alone(b, theirs) || alone(a, ours))
}

fn measure(pair: &Pair<'_, '_>, arm: &DesignArm, baseline: &DesignArm, priors: &Priors) -> Compared {
    let open = [arm, baseline].iter().all(|arm| arm.offered.is_some());
    let batch = [arm, baseline].iter().any(|arm| arm.batch.is_some());
    let of = |figure, prior| ratio_of(pair, figure, prior);
    Compared {
        axis: pair.comparison.axis.clone(),
        arm: pair.comparison.arm,
        baseline: pair.comparison.baseline,
        regimes: pair.regimes,
        label: pair.regimes.map_or_else(String::new, |(a, b)| sentences::both(a, b, batch)),
        equal: are_equal(arm, baseline),
        metric: if open { Metric::P95 } else { Metric::Tps },
        tps: of(Figure::Tps, &priors.tps),
        p95: of(Figure::P95, &priors.p95),
        p99: of(Figure::P99, &priors.p99),
        ios_per_transaction: None,
        verdict: Verdict::NoDifferenceSeen,
        smallest_effect: None,
    }
}

fn are_equal(a: &DesignArm, b: &DesignArm) -> bool {
    a.connections == b.connections && a.conditions == b.conditions
}

fn ratio_of(pair: &Pair<'_, '_>, figure: Figure, prior: &Prior) -> Option<Ratio> {
    let (arm, baseline) = (pair.arm.samples(figure), pair.baseline.samples(figure));
    if arm.is_empty() || baseline.is_empty() {
        return None;
    }
    let mid = |samples: &[crate::stats::Sample]| {
        series::mean(&samples.iter().map(|sample| sample.log).collect::<Vec<_>>())
    };
    let tested = ratio(&arm, &baseline, prior);
    Some(Ratio {
        ratio: (mid(&arm) - mid(&baseline)).exp(),
        interval: tested.map(|tested| tested.interval),
        p_value: tested.map(|tested| tested.p_value),
        p_adjusted: None,
    })
}

/// The ratio that the verdict hangs on.
pub(super) fn primary(compared: &Compared) -> Option<Ratio> {
    match compared.metric {
        Metric::Tps => compared.tps,
        Metric::P95 => compared.p95,
    }
}

fn adjust(done: &mut [Compared]) {
    let adjusted = holm(&done.iter().map(|compared| primary(compared)?.p_value).collect::<Vec<_>>());
    for (compared, p) in done.iter_mut().zip(adjusted) {
        let ratio = match compared.metric {
            Metric::Tps => &mut compared.tps,
            Metric::P95 => &mut compared.p95,
        };
        if let Some(ratio) = ratio {
            ratio.p_adjusted = p;
        }
    }
}

fn judge(compared: &mut Compared, pair: &Pair<'_, '_>, floor: f64) {
    let fewest = pair.arm.members.len().min(pair.baseline.members.len());
    let why = match (fewest, primary(compared)) {
        (0, _) => Some("not both have a measured trial under these conditions".to_owned()),
        (_, None) => Some("a trial finished no transaction".to_owned()),
        (1, _) => Some("one trial shows no spread: repeat it to know what the ratio is worth".to_owned()),
        _ => None,
    };
    if let Some(why) = why {
        compared.verdict = Verdict::NotComparable { why };
        return;
    }
    let Some(ratio) = primary(compared) else { return };
    let sure = ratio.p_adjusted.is_some_and(|p| p < ALPHA);
    let large = ratio.ratio.ln().abs().exp_m1() > floor;
    let more = ratio.ratio > 1.0;
    compared.verdict = match (sure && large, more == (compared.metric == Metric::Tps)) {
        (false, _) => Verdict::NoDifferenceSeen,
        (true, true) => Verdict::Faster,
        (true, false) => Verdict::Slower,
    };
}

/// I/Os per transaction of one over the other, as the limits count them.
pub(super) fn ios_ratio(arm: Option<&Figures>, baseline: Option<&Figures>) -> Option<f64> {
    let ios = |figures: Option<&Figures>| {
        figures?.per_transaction.map(|cost| cost.consumed_ios).filter(|ios| *ios > 0.0)
    };
    Some(ios(arm)? / ios(baseline)?)
}

/// Whether two intervals leave anything in common, for repeats of a whole run.
pub(super) fn all_overlap(intervals: &[Interval]) -> bool {
    intervals.iter().all(|a| intervals.iter().all(|b| a.overlaps(b)))
}
