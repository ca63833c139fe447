//! The results as sentences that can be understood without a figure.

use ebbtide_analysis::stats::Share;
use ebbtide_analysis::summary::Undecided;
use ebbtide_lab::experiment::End;
use ebbtide_lab::page::text as print;
use ebbtide_lab::summary::{LEAST, Verdict};

use super::arms::BAD;
use super::model::{ArmSummary, Gain, Summary};
use super::sentences;
use crate::record::{CrashRun, VerdictKind};

/// More arms than this without a bad verdict share a sentence.
const TOGETHER: usize = 3;
/// At most so many gains are reported.
const GAINS: usize = 3;

pub(super) fn findings(run: &CrashRun, summary: &Summary) -> Vec<String> {
    let mut findings = Vec::new();
    if !summary.valid {
        findings.push(format!("This result is void: {}.", summary.void.join("; ")));
    }
    for arm in worst_first(summary) {
        findings.extend(bad_verdicts(arm));
    }
    findings.extend(clean_arms(summary));
    findings.extend(gains(summary));
    findings.extend(gained(run));
    findings.extend(unverified(summary));
    if summary.arms.iter().all(|arm| arm.cuts == 0) {
        findings.push("No cut was made of any arm, so that nothing can be said about them.".to_owned());
    }
    findings
}

/// The arms with bad verdicts, the worst kind and the largest share of it first.
fn worst_first(summary: &Summary) -> Vec<&ArmSummary> {
    let mut arms: Vec<&ArmSummary> = summary.arms.iter().filter(|arm| arm.bad.count > 0).collect();
    let shares = |arm: &ArmSummary| {
        BAD.map(|kind| arm.verdicts.get(&kind).and_then(|share| share.share).unwrap_or(0.0))
    };
    arms.sort_by(|a, b| shares(b).partial_cmp(&shares(a)).unwrap_or(std::cmp::Ordering::Equal));
    arms
}

/// What an arm's cuts did, one sentence for each kind of verdict.
fn bad_verdicts(arm: &ArmSummary) -> Vec<String> {
    let found = BAD.iter().filter_map(|kind| Some((*kind, arm.verdicts.get(kind)?)));
    let sentences =
        found.filter(|(_, share)| share.count > 0).map(|(kind, share)| sentence(arm, kind, share));
    sentences.chain(not_restored(arm)).collect()
}

/// Whose fault it is that a torn page stayed one.
fn not_restored(arm: &ArmSummary) -> Option<String> {
    let count = arm.torn.not_restored;
    (count > 0).then(|| {
        format!(
            "{}: in {} of its images a page stayed torn of which the doublewrite buffer held a valid copy: the \
             server did not restore it.",
            arm.name,
            print::whole(count as f64)
        )
    })
}

fn sentence(arm: &ArmSummary, kind: VerdictKind, share: &Share) -> String {
    let detail = match kind {
        VerdictKind::Corrupt => corruption(arm),
        VerdictKind::LostCommits => loss(arm),
        VerdictKind::BinlogDisagrees => binlog(arm),
        _ => String::new(),
    };
    // Where damage showed in one way alone, that way is more exact than the kind.
    let did = match arm.corruption.first_key_value() {
        Some((how, _)) if kind == VerdictKind::Corrupt && arm.corruption.len() == 1 => {
            sentences::showed(*how)
        }
        _ => sentences::did(kind),
    };
    format!(
        "{}: {} {did}{detail} (95% interval: {}).",
        arm.name,
        sentences::share_of(share, arm.end),
        sentences::bound(share)
    )
}

/// How it showed, where that was in several ways: `: 58 a server that ...`.
fn corruption(arm: &ArmSummary) -> String {
    if arm.corruption.len() < 2 {
        return String::new();
    }
    let ways: Vec<String> = arm
        .corruption
        .iter()
        .map(|(how, count)| format!("{} {}", print::whole(*count as f64), sentences::showed(*how)))
        .collect();
    format!(": {}", print::list(&ways))
}

fn loss(arm: &ArmSummary) -> String {
    let Some(loss) = &arm.loss else { return String::new() };
    format!(
        ": at the median {} of them from the last {}, at most {} from the last {}",
        print::whole(loss.transactions.p50),
        sentences::seconds(loss.seconds.p50),
        print::whole(loss.transactions.max),
        sentences::seconds(loss.seconds.max)
    )
}

fn binlog(arm: &ArmSummary) -> String {
    let Some(binlog) = &arm.binlog else { return String::new() };
    let mut sides = Vec::new();
    if binlog.missing_in_binlog > 0 {
        sides.push(format!("a replica would lack up to {}", print::whole(binlog.missing_in_binlog as f64)));
    }
    if binlog.missing_in_tables > 0 {
        sides.push(format!(
            "a replica would have up to {} too many",
            print::whole(binlog.missing_in_tables as f64)
        ));
    }
    if sides.is_empty() { String::new() } else { format!(": {}", print::list(&sides)) }
}

/// The arms that nothing bad was seen with.
fn clean_arms(summary: &Summary) -> Vec<String> {
    let good: Vec<&ArmSummary> =
        summary.arms.iter().filter(|arm| arm.bad.of > 0 && arm.bad.count == 0).collect();
    if good.len() <= TOGETHER {
        let line = |arm: &&ArmSummary| {
            format!(
                "{}: {} had a bad verdict, so that {} have one, with 95% confidence.",
                arm.name,
                sentences::share_of(&arm.bad, arm.end),
                sentences::bound(&arm.bad)
            )
        };
        return good.iter().map(line).collect();
    }
    let weakest = good.iter().min_by_key(|arm| arm.bad.of);
    let names: Vec<String> = good.iter().map(|arm| arm.name.clone()).collect();
    let (fewest, most) = (good.iter().map(|arm| arm.bad.of).min(), good.iter().map(|arm| arm.bad.of).max());
    let (fewest, most) = (fewest.unwrap_or(0), most.unwrap_or(0));
    let what = if good.iter().all(|arm| arm.end == End::Kill) { "kills of the server" } else { "cuts" };
    let range = if fewest == most {
        format!("{} {what} each", print::whole(most as f64))
    } else {
        format!("{} to {} {what} each", print::whole(fewest as f64), print::whole(most as f64))
    };
    let bound = weakest.map_or_else(String::new, |arm| sentences::bound(&arm.bad));
    vec![format!(
        "No bad verdict in any of {range}, so that {bound} have one, arm by arm and with 95% confidence: {}.",
        names.join("; ")
    )]
}

/// What arms carry more or less than the ones that they are held against, the largest differences first.
fn gains(summary: &Summary) -> Vec<String> {
    let is_difference = |gain: &&Gain| matches!(gain.verdict, Verdict::Faster | Verdict::Slower);
    let mut gains: Vec<&Gain> = summary.comparisons.iter().filter(is_difference).collect();
    let size = |gain: &Gain| gain.tps.map_or(0.0, |tps| tps.ratio.ln().abs());
    gains.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut sentences: Vec<String> =
        gains.iter().take(GAINS).filter_map(|gain| Some(carries(summary, gain, "carries")? + ".")).collect();
    let undecided: Vec<String> =
        summary.comparisons.iter().filter_map(|gain| probably(summary, gain)).collect();
    if gains.is_empty() && !summary.comparisons.is_empty() && undecided.is_empty() {
        let effects = summary.comparisons.iter().filter_map(|gain| gain.smallest_effect);
        let seen = effects.max_by(f64::total_cmp).map_or(String::new(), |effect| {
            format!(
                " A true difference of {} would have been seen in four of five such runs.",
                print::percent(effect)
            )
        });
        let compared = summary.comparisons.iter().any(|gain| gain.verdict == Verdict::NoDifferenceSeen);
        sentences.extend(compared.then(|| {
            format!("No arm was seen to carry more or less than the one that it is held against.{seen}")
        }));
    }
    sentences.extend(undecided.into_iter().take(GAINS));
    sentences
}

/// A gain whose interval is without 1 and that has no verdict: what stands against one.
fn probably(summary: &Summary, gain: &Gain) -> Option<String> {
    let (tps, stints) =
        (gain.tps?, |arm: usize| summary.arms.get(arm)?.throughput.map(|carried| carried.stints));
    if gain.verdict != Verdict::NoDifferenceSeen {
        return None;
    }
    let fewest = stints(gain.arm)?.min(stints(gain.baseline)?);
    let tested = summary.comparisons.iter().filter(|gain| gain.tps.is_some()).count();
    let undecided = Undecided::of_ratio(&tps, tested, u32::try_from(fewest).unwrap_or(u32::MAX), LEAST)?;
    let (verb, joint) = match undecided {
        Undecided::Corrected { .. } => ("probably carries", ", "),
        Undecided::Small(_) => ("carries", ", by "),
    };
    let words = undecided.words("--set trial.repeats=");
    Some(format!("{}{joint}{words}.", carries(summary, gain, verb)?))
}

/// What the lab measured of what the risk buys, in sentences: all curves, or the largest differences.
#[must_use]
pub fn gained(run: &CrashRun) -> Vec<String> {
    let Some(measured) = run.gain.as_ref().and_then(|gain| gain.measured.as_ref()) else { return Vec::new() };
    let most = match measured.summary.curves.len() {
        0 => GAINS,
        curves => curves,
    };
    let name = &measured.run.experiment.name;
    let first = measured.summary.findings.iter().take(most);
    first.map(|text| format!("{name}: {text}")).collect()
}

/// What an arm carries beside the one that it is held against, without an end.
fn carries(summary: &Summary, gain: &Gain, verb: &str) -> Option<String> {
    let (arm, baseline, tps) = (summary.arms.get(gain.arm)?, summary.arms.get(gain.baseline)?, gain.tps?);
    let more = match tps.ratio {
        times if times >= 2.0 => format!("{} times the transactions of", print::short(times)),
        more if more >= 1.0 => format!("{} more transactions than", print::percent(more - 1.0)),
        less => format!("{} fewer transactions than", print::percent(1.0 - less)),
    };
    let interval = tps
        .interval
        .map_or(String::new(), |interval| format!(" (95% interval: {})", print::change_interval(&interval)));
    Some(format!("{} {verb} {more} {}{interval}", arm.name, baseline.name))
}

fn unverified(summary: &Summary) -> Option<String> {
    let unverified: u64 = summary.arms.iter().map(|arm| arm.unverified).sum();
    let cuts: u64 = summary.arms.iter().map(|arm| arm.cuts).sum();
    (unverified > 0).then(|| {
        format!(
            "{} of {} cuts could not be verified: they count neither as clean nor as bad.",
            print::whole(unverified as f64),
            print::whole(cuts as f64)
        )
    })
}
