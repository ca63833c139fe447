//! Several full runs of one experiment: do they agree?

use std::collections::BTreeSet;

use super::compare::{all_overlap, primary};
use super::comparison::{Compared, Metric, Ratio, Repeated, Repetition, RunFacts};
use super::findings::names;
use super::model::Summary;
use super::summarize;
use ebbtide_text::{figure, list};

use super::sentences::count;
use crate::record::{Design, Outcome, RunRecord};

/// Holds the runs of one experiment against each other, each with the directory of its results.
#[must_use]
pub fn repetition(runs: &[(&str, &RunRecord<'_>)]) -> Repetition {
    let mut runs = runs.to_vec();
    runs.sort_by_key(|(_, run)| run.started_ns);
    let summaries: Vec<Summary> = runs.iter().map(|(_, run)| summarize(run)).collect();
    let comparisons =
        runs.first().map_or_else(Vec::new, |(_, first)| compare_runs(&first.design, &summaries));
    let verdicts: Vec<Option<bool>> = comparisons.iter().map(|repeated| repeated.overlap).collect();
    let overlap = if verdicts.contains(&Some(false)) {
        Some(false)
    } else {
        (!verdicts.is_empty() && !verdicts.contains(&None)).then_some(true)
    };
    Repetition {
        runs: runs.iter().map(|(directory, run)| RunFacts::of(directory, run)).collect(),
        comparisons,
        overlap,
        notes: notes(&runs),
    }
}

impl RunFacts {
    fn of(directory: &str, run: &RunRecord<'_>) -> Self {
        let repeats = usize::try_from(run.design.repeats).unwrap_or(usize::MAX);
        Self {
            directory: directory.to_owned(),
            started_ns: run.started_ns,
            seed: run.seed,
            measured: run.trials.iter().filter(|trial| *trial.outcome == Outcome::Measured).count(),
            trials: run.design.arms.len().saturating_mul(repeats),
        }
    }
}

/// Runs that lack trials, and runs that differ in what measured them.
fn notes(runs: &[(&str, &RunRecord<'_>)]) -> Vec<String> {
    let facts = runs.iter().map(|(directory, run)| RunFacts::of(directory, run));
    let lacking = facts.filter(|facts| facts.measured < facts.trials).map(|facts| {
        format!("{}: only {} of {} trials count.", facts.directory, facts.measured, facts.trials)
    });
    let mut notes: Vec<String> = lacking.collect();
    let measured_by =
        |run: &RunRecord<'_>| format!("ebbtide {} on {} processors {}", run.ebbtide, run.cpus, run.cpu_model);
    let kinds: BTreeSet<String> = runs.iter().map(|(_, run)| measured_by(run)).collect();
    if kinds.len() > 1 {
        let kinds: Vec<String> = kinds.into_iter().collect();
        notes.push(format!("Not all runs were measured by the same: {}.", kinds.join("; ")));
    }
    notes
}

/// Holds the runs of one experiment against each other, comparison by comparison; empty for fewer than
/// two runs.
#[must_use]
pub fn compare_runs(design: &Design, runs: &[Summary]) -> Vec<Repeated> {
    if runs.len() < 2 {
        return Vec::new();
    }
    let mut kinds: Vec<&Compared> = Vec::new();
    for compared in runs.iter().flat_map(|run| &run.comparisons) {
        // Credits may have ended in one run and not in the other: each condition is reported.
        if !kinds.iter().any(|known| are_same(known, compared)) {
            kinds.push(compared);
        }
    }
    kinds.into_iter().map(|compared| repeated(design, compared, runs)).collect()
}

/// Whether two comparisons of different runs are about the same things.
fn are_same(one: &Compared, other: &Compared) -> bool {
    let about = |compared: &Compared| (compared.arm, compared.baseline, compared.regimes);
    one.axis == other.axis && about(one) == about(other)
}

fn repeated(design: &Design, compared: &Compared, runs: &[Summary]) -> Repeated {
    let same =
        |run: &Summary| run.comparisons.iter().find(|other| are_same(compared, other)).and_then(primary);
    let ratios: Vec<Option<Ratio>> = runs.iter().map(same).collect();
    let intervals: Vec<_> = ratios.iter().filter_map(|ratio| (*ratio)?.interval).collect();
    let overlap = (intervals.len() == runs.len()).then(|| all_overlap(&intervals));
    let common = (overlap == Some(true)).then(|| {
        let low = intervals.iter().map(|interval| interval.low).fold(f64::NEG_INFINITY, f64::max);
        let high = intervals.iter().map(|interval| interval.high).fold(f64::INFINITY, f64::min);
        (low, high)
    });
    let (place, arm, baseline) = names(design, compared);
    let what = match compared.metric {
        Metric::Tps => String::new(),
        Metric::P95 => " at the 95th percentile of the response time".to_owned(),
    };
    Repeated {
        axis: compared.axis.clone(),
        arm: compared.arm,
        baseline: compared.baseline,
        label: compared.label.clone(),
        metric: compared.metric,
        overlap,
        common,
        text: format!("{place}{arm} over {baseline}{what}: {}.", outcome(&ratios, overlap, common)),
        ratios,
    }
}

/// `three runs: 12.8 (11.6 to 14.1), 13.0 (12.1 to 14.0) and 12.5 (11.0 to 14.2); the intervals overlap
/// from 12.1 to 14.0`.
fn outcome(ratios: &[Option<Ratio>], overlap: Option<bool>, common: Option<(f64, f64)>) -> String {
    let each: Vec<String> = ratios
        .iter()
        .map(|ratio| match ratio.map(|ratio| (figure(ratio.ratio), ratio.interval)) {
            Some((ratio, Some(interval))) => {
                format!("{ratio} ({} to {})", figure(interval.low), figure(interval.high))
            }
            Some((ratio, None)) => format!("{ratio} (no interval)"),
            None => "none".to_owned(),
        })
        .collect();
    let verdict = match (overlap, common) {
        (Some(true), Some((low, high))) => {
            format!("the intervals overlap, from {} to {}", figure(low), figure(high))
        }
        (Some(_), _) => "the intervals do not all overlap".to_owned(),
        (None, _) => "not every run has an interval".to_owned(),
    };
    format!("{} runs: {}; {verdict}", count(ratios.len()), list(&each))
}
