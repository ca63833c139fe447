//! Curves over connections: arms that differ in nothing but their connections, and what an option gains along
//! them.

use std::collections::BTreeSet;

use super::model::{Compared, CurveGain, CurvePoint, Metric, Ratio};
use crate::experiment::{Arm, Experiment};
use crate::stats::Interval;

/// Fewer counts of connections than this are a comparison and no curve.
const POINTS: usize = 3;

/// From this many connections on an arm counts as loaded: below, mostly one connection waits for one I/O, and the
/// volume's latency decides and not what it carries.
pub const LOADED: u32 = 16;

/// Arms as curves over their connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curves {
    /// The axis whose options differ in connections alone.
    pub axis: String,
    /// The connections, rising.
    pub counts: Vec<u32>,
    /// The curves, in the order in which the experiment has their first arms.
    pub lines: Vec<Curve>,
}

/// Arms that differ in their connections alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// Axes and options that its arms share.
    pub options: Vec<(String, String)>,
    /// Its arms, as places in [`Experiment::arms`], one for each of [`Curves::counts`]; none where that was left
    /// out.
    pub arms: Vec<Option<usize>>,
}

impl Curve {
    /// Its name: the options that its arms share, without those of the axes in `but`.
    #[must_use]
    pub fn name(&self, but: &[&str]) -> String {
        let told = self.options.iter().filter(|(axis, _)| !but.contains(&axis.as_str()));
        told.map(|(_, option)| option.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The curves of an experiment: of the first axis all of whose options differ in connections alone. None where
/// there is no such axis, or where none of its curves has three counts.
#[must_use]
pub fn curves(experiment: &Experiment) -> Option<Curves> {
    let first = experiment.arms.first()?;
    first.options.iter().find_map(|(axis, _)| along(experiment, axis))
}

fn along(experiment: &Experiment, axis: &str) -> Option<Curves> {
    let arms = &experiment.arms;
    let groups = groups(arms, axis);
    let connections = |index: &usize| arms[*index].load.connections;
    let alike = |group: &Group| {
        let counts: BTreeSet<u32> = group.arms.iter().map(connections).collect();
        let first = &arms[group.arms[0]];
        counts.len() == group.arms.len() && group.arms.iter().all(|arm| only_connections(first, &arms[*arm]))
    };
    if !groups.iter().all(alike) || groups.iter().all(|group| group.arms.len() < POINTS) {
        return None;
    }
    let counts: BTreeSet<u32> = (0..arms.len()).map(|index| connections(&index)).collect();
    let counts: Vec<u32> = counts.into_iter().collect();
    let line = |Group { options, arms: members }| {
        let arm_of = |count: &u32| members.iter().copied().find(|member| connections(member) == *count);
        Curve { options: without_common(arms, options), arms: counts.iter().map(arm_of).collect() }
    };
    let lines = groups.into_iter().map(line).collect();
    Some(Curves { axis: axis.to_owned(), lines, counts })
}

/// Arms with the same options of all axes but one.
struct Group {
    options: Vec<(String, String)>,
    arms: Vec<usize>,
}

fn groups(arms: &[Arm], axis: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, arm) in arms.iter().enumerate() {
        let options: Vec<_> = arm.options.iter().filter(|(name, _)| name != axis).cloned().collect();
        match groups.iter_mut().find(|group| group.options == options) {
            Some(group) => group.arms.push(index),
            None => groups.push(Group { options, arms: vec![index] }),
        }
    }
    groups
}

/// Whether two arms are the same but for their connections and their names.
fn only_connections(a: &Arm, b: &Arm) -> bool {
    let mut a = a.conditions();
    a.load.connections = b.load.connections;
    a == b.conditions()
}

/// Options that not all arms have: what all share names nothing.
fn without_common(arms: &[Arm], options: Vec<(String, String)>) -> Vec<(String, String)> {
    let everywhere = |option: &(String, String)| arms.iter().all(|arm| arm.options.contains(option));
    options.into_iter().filter(|option| !everywhere(option)).collect()
}

/// What options gain along the curves, in the order of the experiment's comparisons.
pub(super) fn gains(experiment: &Experiment, comparisons: &[Compared]) -> Vec<CurveGain> {
    let Some(curves) = curves(experiment) else { return Vec::new() };
    let mut gains: Vec<CurveGain> = Vec::new();
    for (index, compared) in comparisons.iter().enumerate() {
        let Some(mut gain) = begun(experiment, &curves, compared) else { continue };
        let point =
            CurvePoint { connections: experiment.arms[compared.arm].load.connections, comparison: index };
        match gains.iter_mut().find(|known| known.is_of(&gain)) {
            Some(known) => known.points.push(point),
            None => {
                gain.points.push(point);
                gains.push(gain);
            }
        }
    }
    gains.retain(|gain| gain.points.len() >= POINTS);
    for gain in &mut gains {
        gain.points.sort_by_key(|point| point.connections);
        (gain.loaded, gain.left_out) = loaded(gain, comparisons);
    }
    gains
}

/// The gain that a comparison is a point of, still without points; none where it is of no curve: at a given rate, of
/// parts of trials, or along the curve itself.
fn begun(experiment: &Experiment, curves: &Curves, compared: &Compared) -> Option<CurveGain> {
    if compared.metric != Metric::Tps || compared.regimes.is_some() || compared.axis == curves.axis {
        return None;
    }
    let option = |arm: usize| {
        let options = &experiment.arms.get(arm)?.options;
        options.iter().find(|(axis, _)| *axis == compared.axis).map(|(_, option)| option.clone())
    };
    let line = curves.lines.iter().find(|line| line.arms.contains(&Some(compared.arm)))?;
    Some(CurveGain {
        axis: compared.axis.clone(),
        option: option(compared.arm)?,
        baseline: option(compared.baseline)?,
        place: line.name(&[&compared.axis]),
        points: Vec::new(),
        loaded: None,
        left_out: Vec::new(),
    })
}

/// The geometric mean of the ratios from [`LOADED`] connections on, with its interval. The arms of every count are
/// others, so that the errors of the ratios are independent; adding up half-widths instead of standard errors makes
/// the interval a little too wide, since each has fewer degrees of freedom than their mean. A point without an interval
/// would take it from all of them: where others have one, it is left out, and its connections are the second answer.
fn loaded(gain: &CurveGain, comparisons: &[Compared]) -> (Option<Ratio>, Vec<u32>) {
    let points: Vec<(u32, Option<Ratio>)> =
        gain.loaded_points().map(|point| (point.connections, comparisons[point.comparison].tps)).collect();
    let sure = |ratio: &Option<Ratio>| ratio.is_some_and(|ratio| ratio.interval.is_some());
    let any_sure = points.iter().any(|(_, ratio)| sure(ratio));
    let counts = |ratio: &Option<Ratio>| if any_sure { sure(ratio) } else { ratio.is_some() };
    let left_out = points.iter().filter(|(_, ratio)| !counts(ratio)).map(|(connections, _)| *connections);
    let left_out = left_out.collect();
    let ratios: Vec<Ratio> = points.into_iter().map(|(_, ratio)| ratio).filter(counts).flatten().collect();
    (mean(&ratios), left_out)
}

/// None of none.
fn mean(ratios: &[Ratio]) -> Option<Ratio> {
    if ratios.is_empty() {
        return None;
    }
    let count = ratios.len() as f64;
    let mid = ratios.iter().map(|ratio| ratio.ratio.ln()).sum::<f64>() / count;
    let half = |interval: Interval| (interval.high.ln() - interval.low.ln()) / 2.0;
    let halves: Option<Vec<f64>> = ratios.iter().map(|ratio| ratio.interval.map(half)).collect();
    let interval = halves.map(|halves| {
        let half = halves.iter().map(|half| half * half).sum::<f64>().sqrt() / count;
        Interval { mid: mid.exp(), low: (mid - half).exp(), high: (mid + half).exp() }
    });
    Some(Ratio { ratio: mid.exp(), interval, p_value: None, p_adjusted: None })
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::page::synthetic::{COUNTS, curve};
    use crate::summary::summarize;

    const SEED: u64 = 5;

    #[test]
    fn curves_go_through_the_arms_that_differ_in_connections_alone() {
        let run = curve(1, 10, SEED);
        let found = curves(&run.experiment).expect("there are curves");
        assert_eq!((found.axis.as_str(), found.counts.as_slice()), ("connections", COUNTS.as_slice()));
        let names: Vec<String> = found.lines.iter().map(|line| line.name(&[])).collect();
        assert_eq!(names, ["wide, on", "wide, off", "narrow, on", "narrow, off"]);
        assert_eq!(found.lines[3].arms, [9, 11, 13, 15].map(Some));
        assert_eq!(found.lines[3].name(&["doublewrite"]), "narrow");
    }

    #[test]
    fn an_arm_that_was_left_out_leaves_a_gap_and_too_few_make_no_curve() {
        let mut run = curve(1, 10, SEED);
        run.experiment.arms.remove(11);
        let found = curves(&run.experiment).unwrap();
        assert_eq!(found.lines[3].arms, [Some(9), None, Some(12), Some(14)]);
        run.experiment.arms.retain(|arm| arm.load.connections <= 16);
        assert_eq!(curves(&run.experiment), None, "two counts are a comparison");
        run.experiment.arms.clear();
        assert_eq!(curves(&run.experiment), None);
    }

    #[test]
    fn options_that_all_arms_share_name_no_curve() {
        let mut run = curve(1, 10, SEED);
        run.experiment.arms.retain(|arm| arm.options.contains(&("volume".into(), "wide".into())));
        let names: Vec<String> =
            curves(&run.experiment).unwrap().lines.iter().map(|line| line.name(&[])).collect();
        assert_eq!(names, ["on", "off"]);
    }

    #[test]
    fn the_gain_under_load_is_the_mean_of_its_points_with_a_narrower_interval() {
        println!("seed {SEED}");
        let summary = summarize(&curve(3, 30, SEED));
        let [wide, narrow] = summary.curves.as_slice() else { panic!("{:?}", summary.curves) };
        assert_eq!((wide.place.as_str(), narrow.place.as_str()), ("wide", "narrow"));
        assert_eq!(narrow.points.iter().map(|point| point.connections).collect::<Vec<_>>(), COUNTS);
        assert_eq!(narrow.typical().unwrap().connections, 128);
        let loaded = narrow.loaded.unwrap();
        let interval = loaded.interval.unwrap();
        assert!((loaded.ratio - 2.0).abs() < 0.1, "{loaded:?}");
        assert!(interval.low < 2.0 && 2.0 < interval.high, "{interval:?}");
        for point in narrow.loaded_points() {
            let one = summary.comparisons[point.comparison].tps.unwrap().interval.unwrap();
            assert!(one.high / one.low > interval.high / interval.low, "{one:?} is wider than {interval:?}");
        }
    }

    #[test]
    fn a_gain_without_all_intervals_has_none() {
        let summary = summarize(&curve(1, 10, SEED));
        let loaded = summary.curves[1].loaded.unwrap();
        assert!((loaded.ratio - 2.0).abs() < 0.2 && loaded.interval.is_none(), "{loaded:?}");
        assert_eq!(summary.curves[1].left_out, [0; 0]);
        let told = summary.findings.iter().find(|text| text.starts_with("narrow: ")).unwrap();
        assert!(told.contains("with too few trials to tell, ") && !told.contains("carries"), "{told}");
    }

    #[test]
    fn one_point_without_an_interval_is_left_out_and_named_and_the_others_keep_theirs() {
        println!("seed {SEED}");
        let mut run = curve(3, 30, SEED);
        run.trials.retain(|trial| trial.arm != "narrow / 128 / off" || trial.repeat == 0);
        let summary = summarize(&run);
        let narrow = &summary.curves[1];
        assert_eq!(narrow.left_out, [128]);
        let loaded: Vec<u32> = narrow.loaded_points().map(|point| point.connections).collect();
        assert_eq!(loaded, [16, 1024]);
        let interval = narrow.loaded.unwrap().interval.expect("of the other two");
        assert!(interval.low < 2.0 && 2.0 < interval.high, "{interval:?}");
        let told = summary.findings.iter().find(|text| text.starts_with("narrow: ")).unwrap();
        assert!(told.contains("doublewrite off carries "), "{told}");
        assert!(told.contains("without 128, which lacks trials"), "{told}");
        run.trials.retain(|trial| trial.arm != "narrow / 128 / off");
        assert_eq!(summarize(&run).curves[1].left_out, [128], "nor one that was not measured");
    }

    #[test]
    fn a_curve_is_judged_by_the_rule_of_its_points() {
        let summary = summarize(&curve(3, 30, SEED));
        let mut gain = summary.curves[1].clone();
        let mut direction = |low: f64, ratio: f64, high: f64| {
            let interval = Some(Interval { mid: ratio, low, high });
            gain.loaded = Some(Ratio { ratio, interval, p_value: None, p_adjusted: None });
            gain.direction(0.05).unwrap()
        };
        assert_eq!(direction(1.02, 1.1, 1.19), Ordering::Greater, "without 1, and beyond the floor");
        assert_eq!(direction(1.01, 1.04, 1.07), Ordering::Equal, "within the floor");
        assert_eq!(direction(0.99, 1.1, 1.22), Ordering::Equal, "with 1");
        assert_eq!(direction(0.84, 0.91, 0.98), Ordering::Less);
        gain.loaded = None;
        assert_eq!(gain.direction(0.05), None);
    }

    #[test]
    fn points_of_curves_are_told_in_one_sentence_each_curve() {
        let summary = summarize(&curve(3, 30, SEED));
        let told = &summary.findings;
        let first = told.iter().find(|text| text.starts_with("narrow: from 16 connections on")).unwrap();
        assert!(first.contains("doublewrite off carries ") && first.contains(" at 1,024"), "{first}");
        assert!(first.contains("At 128 connections, "), "why: {first}");
        let wide = told.iter().find(|text| text.starts_with("wide: ")).unwrap();
        assert!(wide.contains("no difference seen between doublewrite off and on"), "{wide}");
        assert_eq!(told.iter().filter(|text| text.contains("narrow")).count(), 1, "{told:?}");
    }
}
