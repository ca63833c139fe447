//! Curves over connections, on runs whose truth is known.

use std::cmp::Ordering;

use ebbtide_analysis::stats::Interval;

use super::*;
use crate::page::synthetic::{COUNTS, curve};

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
    let finding = summary.findings.iter().find(|text| text.starts_with("narrow: ")).unwrap();
    assert!(finding.contains("with too few trials to tell, ") && !finding.contains("carries"), "{finding}");
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
    let finding = summary.findings.iter().find(|text| text.starts_with("narrow: ")).unwrap();
    assert!(finding.contains("doublewrite off carries "), "{finding}");
    assert!(finding.contains("without 128, which lacks trials"), "{finding}");
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
fn points_of_curves_are_reported_in_one_sentence_each_curve() {
    let summary = summarize(&curve(3, 30, SEED));
    let findings = &summary.findings;
    let first = findings.iter().find(|text| text.starts_with("narrow: from 16 connections on")).unwrap();
    assert!(first.contains("doublewrite off carries ") && first.contains(" at 1,024"), "{first}");
    assert!(first.contains("At 128 connections, "), "why: {first}");
    let wide = findings.iter().find(|text| text.starts_with("wide: ")).unwrap();
    assert!(wide.contains("no difference seen between doublewrite off and on"), "{wide}");
    assert_eq!(findings.iter().filter(|text| text.contains("narrow")).count(), 1, "{findings:?}");
}
