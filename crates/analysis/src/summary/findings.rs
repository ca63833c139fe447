//! What a run found, in sentences, the most useful first.

use std::cmp::Ordering;

use ebbtide_text::{figure, latency, list, percent, whole};

use super::compare::primary;
use super::comparison::LOADED;
use super::comparison::{Compared, CurveGain, Metric, Ratio, Verdict};
use super::figures_under;
use super::group::Parted;
use super::model::{ArmSummary, Bottleneck, Cause, Figures, Noise, Summary};
use super::sentences::limiter;
use crate::record::{Design, DesignArm};

/// From so many comparisons of one axis without a difference on they share a sentence.
const TOGETHER: usize = 3;

pub(super) fn findings(design: &Design, arms: &[Parted<'_>], summary: &Summary) -> Vec<String> {
    // A point of a curve is reported with its curve.
    let on_curve = |index: &usize| {
        let mut points = summary.curves.iter().flat_map(|gain| &gain.points);
        points.any(|point| point.comparison == *index)
    };
    let alone = (0..summary.comparisons.len()).filter(|index| !on_curve(index));
    let mut ordered: Vec<&Compared> = alone.map(|index| &summary.comparisons[index]).collect();
    ordered.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let mut sentences: Vec<String> = summary.curves.iter().map(|gain| curve(summary, gain)).collect();
    let quiet = |compared: &Compared| compared.verdict == Verdict::NoDifferenceSeen && !compared.equal;
    for compared in &ordered {
        let alike: Vec<&Compared> = ordered
            .iter()
            .copied()
            .filter(|other| {
                quiet(other) && other.axis == compared.axis && other.baseline == compared.baseline
            })
            .collect();
        let sentence = if quiet(compared) && alike.len() >= TOGETHER {
            no_differences(design, &alike)
        } else {
            sentence(design, summary, compared)
        };
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    let compared_arms: Vec<usize> =
        summary.comparisons.iter().flat_map(|compared| [compared.arm, compared.baseline]).collect();
    for (index, arm) in summary.arms.iter().enumerate() {
        sentences.extend(arms.get(index).and_then(|parted| course(parted, arm)));
        sentences
            .extend(arm.answers.as_ref().and_then(|answers| super::answers::finding(&arm.name, answers)));
        if !compared_arms.contains(&index) {
            sentences.extend(single(arm));
        }
    }
    sentences.extend(noise(&summary.noise));
    sentences
}

/// Differences before equal ones, large ones before small ones.
fn weight(compared: &Compared) -> f64 {
    let size = primary(compared).map_or(0.0, |ratio| ratio.ratio.ln().abs());
    match compared.verdict {
        Verdict::Faster | Verdict::Slower => 1e6 + size,
        Verdict::NotComparable { .. } if primary(compared).is_some() => 1e3 + size,
        Verdict::NoDifferenceSeen => 0.0,
        Verdict::NotComparable { .. } => -1.0,
    }
}

/// Names of both arms by what differs, and what they share in front of them.
pub(super) fn names(design: &Design, compared: &Compared) -> (String, String, String) {
    let (Some(arm), Some(baseline)) = (design.arms.get(compared.arm), design.arms.get(compared.baseline))
    else {
        return Default::default();
    };
    let option = |arm: &DesignArm| {
        arm.options.iter().find(|(axis, _)| *axis == compared.axis).map(|(_, option)| option.clone())
    };
    let (Some(ours), Some(theirs)) = (option(arm), option(baseline)) else {
        return (String::new(), arm.name.clone(), baseline.name.clone());
    };
    let shared =
        arm.options.iter().filter(|(axis, _)| *axis != compared.axis).map(|(_, option)| option.clone());
    let mut place: Vec<String> = shared.collect();
    if !compared.label.is_empty() {
        place.push(compared.label.clone());
    }
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) };
    (place, ours, theirs)
}

fn sentence(design: &Design, summary: &Summary, compared: &Compared) -> String {
    let (place, arm, baseline) = names(design, compared);
    let (ours, theirs) = compared.regimes.unzip();
    let side = |index: usize, regime| figures_under(summary.arms.get(index)?, regime);
    let both = side(compared.arm, ours).zip(side(compared.baseline, theirs));
    let cause = both.map_or_else(String::new, |(ours, theirs)| cause(&arm, ours, &baseline, theirs));
    match (&compared.verdict, primary(compared), both) {
        (Verdict::NotComparable { why }, None, _) | (Verdict::NotComparable { why }, _, None) => {
            format!("{place}{arm} cannot be held against {baseline}: {why}.")
        }
        (Verdict::NoDifferenceSeen, Some(ratio), _) => {
            let equal = if compared.equal { ", which are equal" } else { "" };
            let seen = effect(compared);
            format!(
                "{place}no difference seen between {arm} and {baseline}{equal} ({}){seen}{cause}.",
                range(ratio)
            )
        }
        (_, Some(ratio), Some((ours, theirs))) if compared.metric == Metric::P95 => {
            let faster = if ratio.ratio < 1.0 { "faster" } else { "slower" };
            let (p95, against) = (latency(ours.p95_us.median), latency(theirs.p95_us.median));
            format!(
                "{place}{arm} answers {faster} than {baseline}: 95% of the transactions within {p95} against \
                 {against}, {} times ({}){cause}.",
                figure(ratio.ratio),
                range(ratio)
            )
        }
        (_, Some(ratio), _) => {
            format!("{place}{arm} carries {} {baseline} ({}){cause}.", multiple(ratio.ratio), range(ratio))
        }
        (_, None, _) => format!("{place}{arm} and {baseline} were not measured."),
    }
}

/// What an option gains over connections: the mean where the load is high, its way there, and why.
fn curve(summary: &Summary, gain: &CurveGain) -> String {
    let CurveGain { axis, option, baseline, .. } = gain;
    let place = if gain.place.is_empty() { String::new() } else { format!("{}: ", gain.place) };
    let parts: Vec<String> = gain
        .points
        .iter()
        .filter_map(|point| {
            let ratio = summary.comparisons.get(point.comparison)?.tps?;
            Some(format!("{} at {}", figure(ratio.ratio), whole(f64::from(point.connections))))
        })
        .collect();
    let parts =
        if parts.is_empty() { "nothing was measured".to_owned() } else { format!("times {}", list(&parts)) };
    let Some(loaded) = gain.loaded else {
        return format!("{place}{axis} {option} over {baseline}, by connections: {parts}.");
    };
    let why = gain.typical().and_then(|point| {
        let compared = summary.comparisons.get(point.comparison)?;
        let side = |arm: usize| summary.arms.get(arm)?.whole.as_ref();
        let cause = cause(option, side(compared.arm)?, baseline, side(compared.baseline)?);
        let at = whole(f64::from(point.connections));
        (!cause.is_empty()).then(|| format!(" At {at} connections{}.", cause.replacen(';', ",", 1)))
    });
    let measured = match gain.direction(summary.noise.floor) {
        Some(Ordering::Equal) => {
            format!("no difference seen between {axis} {option} and {baseline} ({})", range(loaded))
        }
        Some(_) => {
            format!("{axis} {option} carries {} {baseline} ({})", multiple(loaded.ratio), range(loaded))
        }
        None => format!(
            "with too few trials to tell, {axis} {option} was measured with {} {baseline}",
            multiple(loaded.ratio)
        ),
    };
    let without = without(gain).map_or_else(String::new, |counts| format!(", {counts}"));
    let why = why.unwrap_or_default();
    format!("{place}from {LOADED} connections on{without}, {measured}; by connections: {parts}.{why}")
}

/// The connections that the mean of a curve is without, and why; none where it is of all of them.
#[must_use]
pub fn without(gain: &CurveGain) -> Option<String> {
    let counts: Vec<String> = gain.left_out.iter().map(|count| whole(f64::from(*count))).collect();
    let lack = if counts.len() == 1 { "lacks" } else { "lack" };
    (!counts.is_empty()).then(|| format!("without {}, which {lack} trials", list(&counts)))
}

/// How much more, as it goes between the names of the arms.
fn multiple(ratio: f64) -> String {
    if ratio >= 1.5 {
        format!("{} times the transactions of", figure(ratio))
    } else if ratio >= 1.0 {
        format!("{} more transactions than", percent(ratio - 1.0))
    } else if ratio > 0.5 {
        format!("{} fewer transactions than", percent(1.0 - ratio))
    } else {
        format!("{} of the transactions of", percent(ratio))
    }
}

/// The interval of a ratio in the words of [`multiple`].
fn range(ratio: Ratio) -> String {
    let Some(interval) = ratio.interval else { return "one trial: no interval".to_owned() };
    let (low, high) = (interval.low, interval.high);
    if ratio.ratio >= 1.5 {
        format!("{} to {}, 95%", figure(low), figure(high))
    } else if ratio.ratio <= 0.5 {
        format!("{} to {}, 95%", percent(low), percent(high))
    } else {
        format!("ratio {low:.3} to {high:.3}, 95%")
    }
}

fn effect(compared: &Compared) -> String {
    compared.smallest_effect.map_or_else(String::new, |effect| {
        format!("; a difference of {} would have been seen in 4 of 5 such runs", percent(effect))
    })
}

/// Why: what held each of them back, and what a transaction costs of it.
fn cause(arm: &str, ours: &Figures, baseline: &str, theirs: &Figures) -> String {
    let (a, b) = (ours.limiter, theirs.limiter);
    let same = (a.what, a.volume) == (b.what, b.volume);
    let close = (a.share - b.share).abs() < 0.1;
    let who = if same && close {
        let mean = super::model::Limiter { share: f64::midpoint(a.share, b.share), ..a };
        limiter(mean, true).map(|text| format!("both {text}"))
    } else {
        let each = [(arm, a), (baseline, b)]
            .map(|(name, held)| limiter(held, false).map(|text| format!("{name} {text}")));
        let parts: Vec<String> = each.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let cost = [a.what, b.what].into_iter().find_map(|what| cost(what, ours, theirs));
    match (who, cost) {
        (Some(who), Some(cost)) => format!("; {who}: {cost}"),
        (Some(who), None) => format!("; {who}"),
        (None, Some(cost)) => format!("; {cost}"),
        (None, None) => String::new(),
    }
}

/// What a transaction takes of what was short, on either side.
fn cost(what: Bottleneck, ours: &Figures, theirs: &Figures) -> Option<String> {
    let (a, b) = (ours.per_transaction?, theirs.per_transaction?);
    let text = match what {
        Bottleneck::VolumeIops | Bottleneck::InstanceIops => {
            format!("{} I/Os a transaction against {}", figure(a.consumed_ios), figure(b.consumed_ios))
        }
        Bottleneck::VolumeThroughput | Bottleneck::InstanceThroughput => format!(
            "{} KiB a transaction against {}",
            figure(a.read_kib + a.written_kib),
            figure(b.read_kib + b.written_kib)
        ),
        Bottleneck::Processors => format!(
            "{} of the server's processor time a transaction against {}",
            latency(a.server_cpu_us),
            latency(b.server_cpu_us)
        ),
        Bottleneck::Checkpoint => format!(
            "{} KiB of redo a transaction against {}",
            figure(a.redo_bytes? / 1024.0),
            figure(b.redo_bytes? / 1024.0)
        ),
        Bottleneck::RowLocks => {
            format!(
                "{} row lock waits a transaction against {}",
                figure(a.row_lock_waits?),
                figure(b.row_lock_waits?)
            )
        }
        Bottleneck::VolumeLatency => {
            format!("{} I/Os a transaction against {}", figure(a.consumed_ios), figure(b.consumed_ios))
        }
        Bottleneck::OfferedRate | Bottleneck::Unknown => return None,
    };
    Some(text)
}

fn no_differences(design: &Design, alike: &[&Compared]) -> String {
    let compared: Vec<(String, String, String)> =
        alike.iter().map(|compared| names(design, compared)).collect();
    let arms: Vec<String> = compared.iter().map(|(place, arm, _)| format!("{place}{arm}")).collect();
    let largest = alike.iter().filter_map(|compared| compared.smallest_effect).max_by(f64::total_cmp);
    let seen = largest.map_or_else(String::new, |effect| {
        format!("; a difference of {} would have been seen in 4 of 5 such runs", percent(effect))
    });
    format!("No difference from {} seen for {}{seen}.", compared[0].2, list(&arms))
}

/// An arm that goes through several regimes: when, and what became of it.
fn course(parted: &Parted<'_>, arm: &ArmSummary) -> Option<String> {
    if arm.regimes.len() < 2 {
        return None;
    }
    let ended: Vec<f64> = arm
        .windows
        .iter()
        .filter_map(|window| window.changes.iter().find(|change| change.cause == Cause::CreditsEnded))
        .map(|change| change.t_s)
        .collect();
    let when = match (ended.iter().copied().reduce(f64::min), ended.iter().copied().reduce(f64::max)) {
        (Some(first), Some(last)) if last - first < 1.5 => {
            format!("its credits end after {} s; ", figure(first))
        }
        (Some(first), Some(last)) => {
            format!("its credits end after {} to {} s; ", figure(first), figure(last))
        }
        _ => String::new(),
    };
    let open = parted.arm.offered.is_some();
    let parts: Vec<String> = arm
        .regimes
        .iter()
        .map(|regime| {
            let p95 = latency(regime.figures.p95_us.median);
            let held = limiter(regime.figures.limiter, false)
                .map_or_else(String::new, |text| format!(" and {text}"));
            if open {
                format!("{}: 95% within {p95}{held}", regime.label)
            } else {
                format!(
                    "{}: {} transactions a second, 95% within {p95}{held}",
                    regime.label,
                    figure(regime.figures.tps.mean)
                )
            }
        })
        .collect();
    Some(format!("{}: {when}{}.", arm.name, parts.join("; ")))
}

/// An arm that is held against no other.
fn single(arm: &ArmSummary) -> Option<String> {
    let figures = arm.whole.as_ref()?;
    let interval = figures.tps.interval.map_or_else(
        || "one trial: no interval".to_owned(),
        |interval| format!("{} to {}, 95%", figure(interval.low), figure(interval.high)),
    );
    let held = limiter(figures.limiter, false).map_or_else(String::new, |text| format!("; it {text}"));
    Some(format!(
        "{} carries {} transactions a second ({interval}){held}.",
        arm.name,
        figure(figures.tps.mean)
    ))
}

fn noise(noise: &Noise) -> Option<String> {
    let (spread, expected) = noise.between_trials.zip(noise.expected_aa)?;
    let observed = noise.observed_aa.map_or_else(String::new, |seen| {
        format!(", and the equal arms of this one differed by {}", percent(seen))
    });
    Some(format!(
        "Trials of the same arm spread by {} (standard deviation): two equal arms would differ by up to {} in 19 of \
         20 such runs{observed}.",
        percent(spread),
        percent(expected)
    ))
}
