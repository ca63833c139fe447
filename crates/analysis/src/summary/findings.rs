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
use super::undecided::{Undecided, too_few_trials};
use crate::record::{Design, DesignArm};
use crate::stats::Interval;

/// From so many comparisons of one axis without a difference on they share a sentence.
const TOGETHER: usize = 3;

pub(super) fn findings(design: &Design, arms: &[Parted<'_>], summary: &Summary) -> Vec<String> {
    let ordered = ordered(summary);
    let mut sentences: Vec<String> = summary.curves.iter().map(|gain| curve(summary, gain)).collect();
    for compared in &ordered {
        let alike = alike(summary, &ordered, compared);
        let sentence = if alike.len() >= TOGETHER {
            no_differences(design, summary, &alike)
        } else {
            let (verdict, cause) = sentence(design, summary, compared);
            format!("{verdict}{cause}.")
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
            sentences.extend(single(arm).map(|(verdict, cause)| format!("{verdict}{cause}.")));
        }
    }
    sentences.extend(noise(&summary.noise));
    sentences
}

/// The finding that a reader asks for first, in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The answer with its figure and interval, without its end.
    pub verdict: String,
    /// Why, as a sentence; None where nothing was found.
    pub why: Option<String>,
    /// The arm that it is about and what that is held against; None where nothing is compared.
    pub sides: Option<(usize, usize)>,
}

/// The strongest finding of a run: of a curve, of a comparison, or of an arm by itself; None where nothing was measured.
#[must_use]
pub fn headline(design: &Design, summary: &Summary) -> Option<Headline> {
    let why = |cause: &str| {
        let cause = cause.strip_prefix("; ")?;
        let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
        // A name of an arm stays as it is.
        let begin = ["both ", "it "].into_iter().find(|begin| cause.starts_with(begin));
        let begun = begin.map(|begin| format!("{}{}", upper(begin), &cause[begin.len()..]));
        Some(format!("{}.", begun.unwrap_or_else(|| cause.to_owned())))
    };
    let size = |gain: &CurveGain| gain.loaded.map_or(0.0, |loaded| loaded.ratio.ln().abs());
    let measured = summary.curves.iter().filter(|gain| gain.loaded.is_some());
    if let Some(gain) = measured.max_by(|a, b| size(a).total_cmp(&size(b))) {
        let compared = gain.typical().and_then(|point| summary.comparisons.get(point.comparison));
        return Some(Headline {
            verdict: curve_under_load(summary, gain),
            why: curve_cause(summary, gain).map(|cause| cause.trim_start().to_owned()),
            sides: compared.map(|compared| (compared.arm, compared.baseline)),
        });
    }
    let ordered = ordered(summary);
    if let Some(compared) = ordered.first() {
        let alike = alike(summary, &ordered, compared);
        if alike.len() >= TOGETHER {
            let verdict = no_differences(design, summary, &alike).trim_end_matches('.').to_owned();
            return Some(Headline { verdict, why: None, sides: None });
        }
        let (verdict, cause) = sentence(design, summary, compared);
        let sides = Some((compared.arm, compared.baseline));
        return Some(Headline { verdict, why: why(&cause), sides });
    }
    // Curves without a point under load, and nothing beside them.
    if let Some(gain) = summary.curves.first() {
        let verdict = curve(summary, gain).trim_end_matches('.').to_owned();
        return Some(Headline { verdict, why: None, sides: None });
    }
    let (verdict, cause) = summary.arms.iter().find_map(single)?;
    Some(Headline { verdict, why: why(&cause), sides: None })
}

/// The comparisons that are reported by themselves, the strongest first. A point of a curve is reported with its curve.
fn ordered(summary: &Summary) -> Vec<&Compared> {
    let on_curve = |index: &usize| {
        let mut points = summary.curves.iter().flat_map(|gain| &gain.points);
        points.any(|point| point.comparison == *index)
    };
    let alone = (0..summary.comparisons.len()).filter(|index| !on_curve(index));
    let mut ordered: Vec<&Compared> = alone.map(|index| &summary.comparisons[index]).collect();
    ordered.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    ordered
}

/// The comparisons of one axis and baseline that show as little as this one; empty where this one shows something.
fn alike<'a>(summary: &Summary, ordered: &[&'a Compared], compared: &Compared) -> Vec<&'a Compared> {
    let quiet = |compared: &Compared| {
        compared.verdict == Verdict::NoDifferenceSeen
            && !compared.equal
            && Undecided::of_comparison(summary, compared).is_none()
    };
    if !quiet(compared) {
        return Vec::new();
    }
    let few = |compared: &Compared| too_few_trials(summary, compared).is_some();
    let same = |other: &&Compared| {
        other.axis == compared.axis
            && other.baseline == compared.baseline
            && quiet(other)
            && few(other) == few(compared)
    };
    ordered.iter().copied().filter(same).collect()
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

/// The verdict on a comparison without its end, and its cause, which begins with a semicolon.
fn sentence(design: &Design, summary: &Summary, compared: &Compared) -> (String, String) {
    let (place, arm, baseline) = names(design, compared);
    let (ours, theirs) = compared.regimes.unzip();
    let side = |index: usize, regime| figures_under(summary.arms.get(index)?, regime);
    let both = side(compared.arm, ours).zip(side(compared.baseline, theirs));
    let cause = both.map_or_else(String::new, |(ours, theirs)| cause(&arm, ours, &baseline, theirs));
    let verdict = match (&compared.verdict, primary(compared), both) {
        (Verdict::NotComparable { why }, None, _) | (Verdict::NotComparable { why }, _, None) => {
            return (format!("{place}{arm} cannot be held against {baseline}: {why}"), String::new());
        }
        (Verdict::NoDifferenceSeen, Some(ratio), _) => {
            if let Some(undecided) = Undecided::of_comparison(summary, compared) {
                (without_verdict(compared, ratio, undecided, (&arm, &baseline)), cause)
            } else {
                let equal = if compared.equal { ", which are equal" } else { "" };
                let seen = effect(compared);
                let range = range(ratio);
                let few = too_few_trials(summary, compared).is_some();
                let verdict = if few {
                    format!("too few trials to tell {arm} from {baseline}{equal} ({range})")
                } else {
                    format!("no difference seen between {arm} and {baseline}{equal} ({range}){seen}")
                };
                (verdict, cause)
            }
        }
        (_, Some(ratio), Some((ours, theirs))) if compared.metric == Metric::P95 => {
            let faster = if ratio.ratio < 1.0 { "faster" } else { "slower" };
            let (p95, against) = (latency(ours.p95_us.median), latency(theirs.p95_us.median));
            let verdict = format!(
                "{arm} answers {faster} than {baseline}: 95% of the transactions within {p95} against \
                 {against}, {} times ({})",
                figure(ratio.ratio),
                range(ratio)
            );
            (verdict, cause)
        }
        (_, Some(ratio), _) => {
            (format!("{arm} carries {} {baseline} ({})", multiple(ratio.ratio), range(ratio)), cause)
        }
        (_, None, _) => (format!("{arm} and {baseline} were not measured"), String::new()),
    };
    (format!("{place}{}", verdict.0), verdict.1)
}

/// What is said of a comparison whose interval shows a difference and which has no verdict.
fn without_verdict(
    compared: &Compared,
    ratio: Ratio,
    undecided: Undecided,
    (arm, baseline): (&str, &str),
) -> String {
    let more = ratio.ratio > 1.0;
    let better = if more == (compared.metric == Metric::Tps) { "faster" } else { "slower" };
    let measured = match compared.metric {
        Metric::Tps => format!("{} it ({})", multiple(ratio.ratio), range(ratio)),
        Metric::P95 => {
            format!(
                "{} times its response time at the 95th percentile ({})",
                figure(ratio.ratio),
                range(ratio)
            )
        }
    };
    let words = undecided.words("--repeats ");
    match undecided {
        Undecided::Corrected { .. } => {
            format!("{arm} is probably {better} than {baseline}, {measured}, {words}")
        }
        Undecided::Small(_) => {
            format!("{arm} is {better} than {baseline}, {measured}, by {words}")
        }
    }
}

/// What an option gains over connections: the mean where the load is high, its way there, and why.
fn curve(summary: &Summary, gain: &CurveGain) -> String {
    let CurveGain { axis, option, baseline, .. } = gain;
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
    if gain.loaded.is_none() {
        return format!("{}{axis} {option} over {baseline}, by connections: {parts}.", place_of(gain));
    }
    let why = curve_cause(summary, gain).unwrap_or_default();
    format!("{}; by connections: {parts}.{why}", curve_under_load(summary, gain))
}

/// The other options of a curve, to go before a sentence.
fn place_of(gain: &CurveGain) -> String {
    if gain.place.is_empty() { String::new() } else { format!("{}: ", gain.place) }
}

/// What an option gains in the mean of many connections, without its end; empty where that was not measured.
fn curve_under_load(summary: &Summary, gain: &CurveGain) -> String {
    let CurveGain { axis, option, baseline, .. } = gain;
    let Some(loaded) = gain.loaded else { return String::new() };
    let floor = summary.noise.floor;
    let sure = |interval: Interval| interval.low > 1.0 || interval.high < 1.0;
    let measured = match gain.direction(floor) {
        Some(Ordering::Equal) if loaded.interval.is_some_and(sure) => format!(
            "{axis} {option} carries {} {baseline} ({}), by {}",
            multiple(loaded.ratio),
            range(loaded),
            Undecided::Small(floor).words("")
        ),
        Some(Ordering::Equal) if loaded.interval.is_some_and(|interval| interval.is_wide()) => {
            format!("too few trials to tell {axis} {option} from {baseline} ({})", range(loaded))
        }
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
    format!("{}from {LOADED} connections on{without}, {measured}", place_of(gain))
}

/// Why, at the connections that represent a curve: a sentence with a blank before it.
fn curve_cause(summary: &Summary, gain: &CurveGain) -> Option<String> {
    let CurveGain { option, baseline, .. } = gain;
    let point = gain.typical()?;
    let compared = summary.comparisons.get(point.comparison)?;
    let side = |arm: usize| summary.arms.get(arm)?.whole.as_ref();
    let cause = cause(option, side(compared.arm)?, baseline, side(compared.baseline)?);
    let connections = whole(f64::from(point.connections));
    (!cause.is_empty()).then(|| format!(" At {connections} connections{}.", cause.replacen(';', ",", 1)))
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

fn no_differences(design: &Design, summary: &Summary, alike: &[&Compared]) -> String {
    let compared: Vec<(String, String, String)> =
        alike.iter().map(|compared| names(design, compared)).collect();
    let arms: Vec<String> = compared.iter().map(|(place, arm, _)| format!("{place}{arm}")).collect();
    if alike.first().and_then(|compared| too_few_trials(summary, compared)).is_some() {
        return format!("Too few trials to tell {} from {}.", list(&arms), compared[0].2);
    }
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

/// What an arm carries that is held against no other, without its end, and its cause.
fn single(arm: &ArmSummary) -> Option<(String, String)> {
    let figures = arm.whole.as_ref()?;
    let interval = figures.tps.interval.map_or_else(
        || "one trial: no interval".to_owned(),
        |interval| format!("{} to {}, 95%", figure(interval.low), figure(interval.high)),
    );
    let held = limiter(figures.limiter, false).map_or_else(String::new, |text| format!("; it {text}"));
    let carries = figure(figures.tps.mean);
    Some((format!("{} carries {carries} transactions a second ({interval})", arm.name), held))
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
