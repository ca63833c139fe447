//! Curves over connections: arms that differ in nothing but their connections, and what an option gains along
//! them.

use std::collections::BTreeSet;

use super::comparison::{Compared, CurveGain, CurvePoint, Metric, Ratio};
use crate::record::{Design, DesignArm};
use crate::stats::Interval;

/// Fewer counts of connections than this are a comparison and no curve.
const POINTS: usize = 3;

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
    /// Its arms, as places in [`Design::arms`](crate::record::Design::arms), one for each of [`Curves::counts`]; none where that was left
    /// out.
    pub arms: Vec<Option<usize>>,
}

impl Curve {
    /// Its name: the options that its arms share, without those of the axes in `but`.
    #[must_use]
    pub fn name(&self, but: &[&str]) -> String {
        let named = self.options.iter().filter(|(axis, _)| !but.contains(&axis.as_str()));
        named.map(|(_, option)| option.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The curves of an experiment: of the first axis all of whose options differ in connections alone. None where
/// there is no such axis, or where none of its curves has three counts.
#[must_use]
pub fn curves(design: &Design) -> Option<Curves> {
    let first = design.arms.first()?;
    first.options.iter().find_map(|(axis, _)| along(design, axis))
}

fn along(design: &Design, axis: &str) -> Option<Curves> {
    let arms = &design.arms;
    let groups = groups(arms, axis);
    let connections = |index: &usize| arms[*index].connections;
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

fn groups(arms: &[DesignArm], axis: &str) -> Vec<Group> {
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
fn only_connections(a: &DesignArm, b: &DesignArm) -> bool {
    a.conditions == b.conditions
}

/// Options that not all arms have: what all share names nothing.
fn without_common(arms: &[DesignArm], options: Vec<(String, String)>) -> Vec<(String, String)> {
    let everywhere = |option: &(String, String)| arms.iter().all(|arm| arm.options.contains(option));
    options.into_iter().filter(|option| !everywhere(option)).collect()
}

/// What options gain along the curves, in the order of the experiment's comparisons.
pub(super) fn gains(design: &Design, comparisons: &[Compared]) -> Vec<CurveGain> {
    let Some(curves) = curves(design) else { return Vec::new() };
    let mut gains: Vec<CurveGain> = Vec::new();
    for (index, compared) in comparisons.iter().enumerate() {
        let Some(mut gain) = begun(design, &curves, compared) else { continue };
        let point = CurvePoint { connections: design.arms[compared.arm].connections, comparison: index };
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
fn begun(design: &Design, curves: &Curves, compared: &Compared) -> Option<CurveGain> {
    if compared.metric != Metric::Tps || compared.regimes.is_some() || compared.axis == curves.axis {
        return None;
    }
    let option = |arm: usize| {
        let options = &design.arms.get(arm)?.options;
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

/// The geometric mean of the ratios from [`LOADED`](super::LOADED) connections on, with its interval. The arms of every count are
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
        Interval::of_logs(mid, half)
    });
    Some(Ratio { ratio: mid.exp(), interval, p_value: None, p_adjusted: None })
}
