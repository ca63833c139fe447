//! Several full runs of one experiment: do they agree?

use serde::{Deserialize, Serialize};

use super::compare::{all_overlap, primary};
use super::model::{Compared, Ratio, Summary};
use super::words::{figure, list};

/// A comparison over several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeated {
    /// The axis.
    pub axis: String,
    /// The arm's name.
    pub arm: String,
    /// Its baseline's name.
    pub baseline: String,
    /// The conditions; empty where the arms were not split.
    pub label: String,
    /// The ratio that the verdict is about, run by run.
    pub ratios: Vec<Ratio>,
    /// Whether every interval has a value in common with every other; none where a run has no interval, or
    /// lacks the comparison.
    pub overlap: Option<bool>,
    /// The same in a sentence.
    pub text: String,
}

/// Holds the runs of one experiment against each other, comparison by comparison of the first; empty for
/// fewer than two runs.
#[must_use]
pub fn compare_runs(runs: &[Summary]) -> Vec<Repeated> {
    let Some((first, others)) = runs.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let repeated = |compared: &Compared| {
        let name = |arm: usize| first.arms.get(arm).map_or_else(String::new, |arm| arm.name.clone());
        let same = others
            .iter()
            .map(|run| run.comparisons.iter().find(|other| are_same(first, compared, run, other)));
        let all: Vec<Option<&Compared>> = std::iter::once(Some(compared)).chain(same).collect();
        let ratios: Vec<Ratio> = all.iter().filter_map(|compared| primary((*compared)?)).collect();
        let intervals: Vec<_> = ratios.iter().filter_map(|ratio| ratio.interval).collect();
        let overlap = (intervals.len() == runs.len()).then(|| all_overlap(&intervals));
        let (arm, baseline) = (name(compared.arm), name(compared.baseline));
        let text = text(&arm, &baseline, &compared.label, &ratios, overlap);
        Repeated {
            axis: compared.axis.clone(),
            arm,
            baseline,
            label: compared.label.clone(),
            ratios,
            overlap,
            text,
        }
    };
    first.comparisons.iter().map(repeated).collect()
}

/// Whether two comparisons of different runs are about the same things.
fn are_same(run: &Summary, compared: &Compared, other_run: &Summary, other: &Compared) -> bool {
    let name = |run: &Summary, arm: usize| run.arms.get(arm).map(|arm| arm.name.clone());
    compared.axis == other.axis
        && compared.regimes == other.regimes
        && name(run, compared.arm) == name(other_run, other.arm)
        && name(run, compared.baseline) == name(other_run, other.baseline)
}

fn text(arm: &str, baseline: &str, label: &str, ratios: &[Ratio], overlap: Option<bool>) -> String {
    let place = if label.is_empty() { String::new() } else { format!(" ({label})") };
    let told: Vec<String> = ratios
        .iter()
        .map(|ratio| match ratio.interval {
            Some(interval) => {
                format!("{} ({} to {})", figure(ratio.ratio), figure(interval.low), figure(interval.high))
            }
            None => figure(ratio.ratio),
        })
        .collect();
    let verdict = match overlap {
        Some(true) => "the intervals of all runs overlap",
        Some(false) => "the intervals of the runs do not all overlap",
        None => "not every run has an interval",
    };
    format!("{arm} over {baseline}{place}: {}; {verdict}.", list(&told))
}
