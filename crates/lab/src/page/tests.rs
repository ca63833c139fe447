//! The whole page on synthetic runs.

use super::synthetic::{self, Shape};
use super::{synthetic_summary, *};
use crate::record::BatchUse;
use crate::sections::{self, keep, text};
use crate::summary::{Bottleneck, Limiter, Note, Verdict, repetition, summarize};
use ebbtide_analysis::stats::Interval;
use ebbtide_testing::browser::{browse, without_scripts};

const SEED: u64 = 11;

fn synthetic(shapes: &[Shape], repeats: u32, seconds: u32) -> (LabRun, Summary) {
    println!("seed {SEED}");
    let run = synthetic::run(shapes, repeats, seconds, SEED);
    let summary = synthetic_summary::summary(&run);
    (run, summary)
}

fn section_text(run: &LabRun, summary: &Summary, heading: &str) -> String {
    sections::section_text(&report(run, summary), heading)
}

#[test]
fn a_browser_draws_the_page_without_a_complaint_and_without_a_network() {
    let (run, summary) = synthetic(&synthetic::TUNED, 5, 60);
    let html = page(&run, &summary);
    keep("2-arms", &html);
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    assert!(dom.contains(r#"<div class="figure">12.7×</div>"#), "the verdict's figure");
    assert!(dom.contains("tuned carries 12.7 times the transactions of default"), "the verdict's sentence");
    assert!(dom.contains("95% interval: 12.4 to 12.9 times"), "its interval");
    for title in ["Response time by percentile", "Throughput", "Read latency", "Checkpoint age", "Processors"]
    {
        assert!(dom.contains(&format!("<figcaption>{title} ")), "no chart '{title}'");
    }
    let charts = dom.matches("<canvas").count();
    assert!(charts >= 20, "{charts} charts");
    assert!(dom.contains("ebbtide run synthetic --seed 11"), "the command");
}

#[test]
fn without_javascript_the_page_still_has_its_verdict_and_its_figures() {
    let (run, summary) = synthetic(&synthetic::TUNED, 5, 60);
    let (page, text) = without_scripts(&page(&run, &summary));
    keep("2-plain", &page);
    for part in [
        "12.7\u{d7}",
        "tuned carries 12.7 times the transactions of default",
        "95% interval: 12.4 to 12.9 times",
        "The arms side by side",
        "Throughput against default",
        "Lowest Mean Highest Last",
        "p50 p95 p99 p99.9",
        "innodb_flush_method",
        "ebbtide run synthetic --seed 11",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    assert!(!text.contains("NaN") && !text.contains("undefined"));
    let tps = summary.arms[1].whole.as_ref().unwrap().tps.mean;
    assert!(text.contains(&text::short(tps)), "the throughput of the second arm");
}

#[test]
fn the_local_round_trip_is_with_the_machine_where_it_was_measured() {
    let (mut run, _) = synthetic(&synthetic::TUNED, 1, 10);
    let shown = |run: &LabRun| {
        let facts = setup::machine(&run.host, &run.server, &run.ebbtide, run.started_ns);
        facts.into_iter().find(|(label, _)| *label == "Local round trip").unwrap().1
    };
    assert_eq!(shown(&run), "41\u{a0}\u{b5}s, a message and its answer");
    run.host.local_round_trip_us = None;
    assert_eq!(shown(&run), "", "left out of the page");
}

#[test]
fn the_cost_of_the_volumes_is_next_to_the_arms_and_is_of_the_volumes_that_are_named() {
    let (mut run, _) = synthetic(&synthetic::VOLUMES, 2, 30);
    let shown = |run: &LabRun| {
        let (_, text) = without_scripts(&page(run, &summarize(run)));
        text
    };
    let whole = shown(&run);
    for part in [
        "list prices of us-east-1, published 2026-10-06, on demand, without I/O requests, snapshots and the instance",
        "data gp2:size=100GiB, credits=2% gp2 $10.00 a month 100 GiB $10.00",
        "data io1:size=100GiB, iops=3000 io1 $207.50 a month 100 GiB $12.50, 3000 IOPS $195.00",
        "Volumes, cost a month",
    ] {
        assert!(whole.contains(part), "no '{part}' in {whole}");
    }
    assert!(!whole.contains("of each was emulated"), "nothing was divided");
    run.experiment.arms.iter_mut().for_each(|arm| arm.instance.divided_by = 8);
    run.experiment.region = Some("eu-west-1".into());
    let share = shown(&run);
    for part in [
        "list prices of eu-west-1",
        "The cost is that of the volumes as they are named here; 1/8 of each was emulated",
        "gp2 $11.00 a month 100 GiB $11.00",
        "$11.00 as named; 1/8 emulated",
    ] {
        assert!(share.contains(part), "no '{part}' in {share}");
    }
    run.experiment.arms[0].volumes.insert(crate::experiment::Role::Redo, "nvme".into());
    let costs = summarize(&run).monthly_cost.unwrap();
    assert_eq!(costs.arms[0].usd, None, "one of its volumes has no price");
    assert_eq!(costs.arms[0].volumes[&crate::experiment::Role::Redo], None);
    assert_eq!(costs.arms[1].usd.unwrap().to_string(), "$8.80");
    let text = shown(&run);
    assert!(text.contains("redo log nvme gp2 - no price"), "{text}");
    let json = serde_json::to_value(&costs).unwrap();
    assert_eq!(json["arms"][1]["volumes"]["data"]["usd"], 8.8);
    assert_eq!(serde_json::from_value::<crate::cost::Costs>(json).unwrap(), costs);
}

#[test]
fn a_trial_that_lost_its_credits_is_shown_before_and_after() {
    let (run, summary) = synthetic(&synthetic::VOLUMES, 3, 90);
    let html = page(&run, &summary);
    keep("4-arms", &html);
    let arms = section_text(&run, &summary, "The arms side by side");
    assert!(arms.contains("after the credits"), "{arms}");
    let volume = section_text(&run, &summary, "What the volume did");
    assert!(volume.contains("gp2: burst credits gone"), "no mark where the credits end");
    assert!(volume.contains("IOPS; dotted: the limit"), "no limit next to the operations");
}

#[test]
fn a_limit_that_only_the_runs_own_catalogue_knows_is_drawn_and_the_catalogue_shown() {
    let (mut run, _) = synthetic(&synthetic::VOLUMES, 1, 30);
    run.experiment
        .arms
        .iter_mut()
        .for_each(|arm| *arm.volumes.values_mut().next().unwrap() = "mine:size=200GiB".into());
    let overrides = "[[override]]\ntype = \"mine\"\nlike = \"gp3\"\nreason = \"a test\"\nsource = \"s\"\n\
                     date = \"2026-11-20\"\n";
    let volume = |run: &LabRun| {
        let summary = synthetic_summary::summary(run);
        section_text(run, &summary, "What the volume did")
    };
    assert!(!volume(&run).contains("dotted: the limit"), "nobody knows this volume");
    run.overrides = Some(overrides.to_owned());
    assert!(volume(&run).contains("IOPS; dotted: the limit"), "no limit next to the operations");
    let summary = synthetic_summary::summary(&run);
    let shown = section_text(&run, &summary, "How it was measured");
    assert!(shown.contains("Overrides of the built-in catalogue") && shown.contains("like = "), "{shown}");
}

#[test]
fn twenty_arms_begin_with_a_few_and_let_the_reader_choose() {
    let (run, summary) = synthetic(&synthetic::many(), 3, 60);
    let html = page(&run, &summary);
    keep("20-arms", &html);
    let report = report(&run, &summary);
    assert_eq!(report.groups.len(), 20);
    assert_eq!(report.groups.iter().filter(|group| group.shown).count(), SHOWN);
    let first: Vec<usize> =
        report.groups.iter().filter(|group| group.shown).map(|group| group.style).collect();
    assert!(first.iter().all(|style| *style < SHOWN), "the shown ones have colours of their own: {first:?}");
    let verdict = text(&report.sections[0].blocks);
    assert!(verdict.contains("13 of 19 comparisons show a difference"), "{verdict}");
    assert!(verdict.contains("Further differences: redo=1GiB +34%; "), "{verdict}");
    assert!(verdict.contains("flush_neighbors=2 \u{2212}12%"), "{verdict}");
    assert!(
        verdict.contains("A true difference of 2.4% or more would have been seen in four of five"),
        "{verdict}"
    );
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    assert!(dom.contains("4 of 20 shown"), "the chooser");
}

#[test]
fn eight_arms_of_five_trials_of_a_minute_stay_small_enough_for_a_mail() {
    let shapes: Vec<Shape> = synthetic::many().into_iter().take(8).collect();
    let (run, summary) = synthetic(&shapes, 5, 60);
    let html = page(&run, &summary);
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
}

#[test]
fn an_hour_of_seconds_is_averaged_and_reports_it() {
    let (run, summary) = synthetic(&synthetic::TUNED, 1, 3_600);
    let html = page(&run, &summary);
    assert!(html.contains("Each point is the mean of 6 seconds"));
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
}

#[test]
fn no_difference_is_reported_with_what_could_have_been_seen() {
    let (run, mut summary) = synthetic(&synthetic::TUNED, 5, 30);
    let compared = &mut summary.comparisons[0];
    compared.verdict = Verdict::NoDifferenceSeen;
    let ratio = compared.tps.as_mut().unwrap();
    ratio.ratio = 1.004;
    ratio.interval = Some(Interval { mid: 1.004, low: 0.981, high: 1.028 });
    compared.smallest_effect = Some(0.031);
    let verdict = text(&verdict::blocks(&PageContext::new(&run, &summary), CAVEATS));
    assert!(verdict.contains("No difference seen between tuned and default."), "{verdict}");
    assert!(
        verdict.contains("A true difference of 3.1% or more would have been seen in four of five"),
        "{verdict}"
    );
    assert!(!verdict.contains("carries"), "{verdict}");
}

#[test]
fn a_comparison_that_cannot_be_made_gives_the_reason() {
    let (run, mut summary) = synthetic(&synthetic::TUNED, 5, 30);
    summary.comparisons[0].verdict = Verdict::NotComparable { why: "the default arm has no trial".into() };
    summary.comparisons[0].tps = None;
    let verdict = text(&verdict::blocks(&PageContext::new(&run, &summary), CAVEATS));
    assert!(
        verdict.contains("cannot be compared") && verdict.contains("The default arm has no trial."),
        "{verdict}"
    );
    assert!(!verdict.contains("12."), "no figure next to it: {verdict}");
}

#[test]
fn each_side_has_the_reason_that_limits_it() {
    let (run, mut summary) = synthetic(&synthetic::TUNED, 5, 30);
    let figures = summary.arms[1].whole.as_mut().unwrap();
    figures.limiter = Limiter { what: Bottleneck::Processors, volume: None, share: 0.9 };
    let verdict = text(&verdict::blocks(&PageContext::new(&run, &summary), CAVEATS));
    assert!(verdict.contains("tuned: held back by the processors of this machine"), "{verdict}");
    assert!(verdict.contains("default: held back by the IOPS limit of the volume for 97%"), "{verdict}");
}

#[test]
fn what_went_wrong_is_next_to_the_verdict_and_in_full_below() {
    let (mut run, mut summary) = synthetic(&synthetic::TUNED, 5, 30);
    run.trials[3].outcome = Outcome::Failed {
        why: "the server ended by itself".into(),
        log: vec!["InnoDB: Assertion failure".into(), "mysqld got signal 6".into()],
    };
    run.trials[4].outcome = Outcome::Disqualified { why: "the generator was 40 ms late".into() };
    summary.notes.push(Note { arm: Some("tuned".into()), text: "1 of 5 trials failed.".into() });
    let html = page(&run, &summary);
    keep("failed", &html);
    let report = report(&run, &summary);
    assert!(text(&report.sections[0].blocks).contains("tuned: 1 of 5 trials failed."), "next to the verdict");
    let caveats = section_text(&run, &summary, "Trials and caveats");
    assert!(caveats.contains("mysqld got signal 6"), "the log's tail");
    assert!(caveats.contains("disqualified: the generator was 40 ms late"), "{caveats}");
    let series = section_text(&run, &summary, "Throughput and response time over time");
    let tps = series.split(r#""title""#).nth(1).unwrap();
    assert_eq!(tps.matches(r#""layer":{"#).count(), 8, "trials that do not count are not drawn");
}

#[test]
fn settings_are_shown_with_the_servers_names_and_only_where_they_differ() {
    let (run, summary) = synthetic(&synthetic::TUNED, 2, 10);
    let differs = report(&run, &summary);
    let section =
        differs.sections.iter().find(|section| section.heading == "What differs between the arms").unwrap();
    let Block::Table(table) = &section.blocks[0] else { panic!("a table") };
    let names: Vec<&str> = table.rows.iter().map(|row| row[0].text.as_str()).collect();
    assert_eq!(names, ["innodb_buffer_pool_size", "innodb_flush_method", "innodb_log_file_size"]);
    assert_eq!(table.rows[1][1].text, "fsync");
    let whole = text(&section.blocks[1..]);
    assert!(whole.contains("innodb_flush_neighbors=0"), "all options are in the fold");
}

#[test]
fn a_run_that_measured_nothing_still_gives_the_reason() {
    let (mut run, _) = synthetic(&synthetic::TUNED, 1, 10);
    for trial in &mut run.trials {
        trial.outcome = Outcome::Failed { why: "no room".into(), log: Vec::new() };
        trial.seconds.clear();
        trial.load = None;
    }
    let html = page(&run, &summarize(&run));
    keep("nothing", &html);
    assert!(html.contains("failed: no room"));
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    assert!(dom.contains("Trials and caveats"));
}

#[test]
fn runs_that_are_compared_are_in_the_verdict_and_next_to_each_other() {
    let (run, mut summary) = synthetic(&synthetic::TUNED, 3, 60);
    let again = |seed: u64| {
        println!("seed {seed}");
        let mut again = synthetic::run(&synthetic::TUNED, 3, 60, seed);
        again.started_ns += seed;
        again
    };
    let earlier = [again(SEED + 1), again(SEED + 2)];
    let runs = [("/tmp/this", &run), ("/tmp/second", &earlier[0]), ("/tmp/third", &earlier[1])];
    summary.repeated = Some(repetition(&runs));
    let html = page(&run, &summary);
    keep("2-again", &html);
    let verdict = text(&verdict::blocks(&PageContext::new(&run, &summary), CAVEATS));
    assert!(verdict.contains("3 runs: 12."), "{verdict}");
    assert!(verdict.contains("; the intervals overlap."), "{verdict}");
    let section = section_text(&run, &summary, "The same experiment, run again");
    assert!(section.contains("Tuned over default: three runs: 12."), "{section}");
    for place in ["this run, ", "/tmp/second, ", "/tmp/third, "] {
        assert!(section.contains(place), "no row of {place}: {section}");
    }
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    assert!(dom.contains("Throughput against the baseline, run by run"), "the chart");
}

#[test]
fn a_name_cannot_become_markup() {
    let (mut run, _) = synthetic(&synthetic::TUNED, 2, 10);
    let nasty = "</script><img src=x onerror=document.title='gone'>";
    for trial in run.trials.iter_mut().filter(|trial| trial.arm == "tuned") {
        trial.arm = nasty.into();
    }
    run.experiment.arms[1].name = nasty.into();
    run.experiment.title = nasty.into();
    let summary = synthetic_summary::summary(&run);
    let html = page(&run, &summary);
    assert!(!html.contains("<img"));
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    assert!(!dom.contains("<img") && dom.contains("&lt;img"), "it is text");
}

#[test]
fn the_runs_own_summary_fills_the_page() {
    for (name, shapes) in [
        ("2-own", &synthetic::TUNED[..]),
        ("4-own", &synthetic::VOLUMES[..]),
        ("20-own", &synthetic::many()[..]),
    ] {
        let (run, _) = synthetic(shapes, 3, 60);
        let summary = summarize(&run);
        let html = page(&run, &summary);
        keep(name, &html);
        let verdict = text(&verdict::blocks(&PageContext::new(&run, &summary), CAVEATS));
        assert!(
            verdict.contains(" times the transactions of ") || verdict.contains(" fewer transactions than ")
        );
        assert!(verdict.contains("95% interval: "), "{verdict}");
        assert!(verdict.contains("held back by the IOPS limit of the volume"), "{verdict}");
        assert!(!html.contains("not measured"));
    }
}

#[test]
fn arms_of_two_axes_are_named_by_their_differences() {
    let (mut run, _) = synthetic(&synthetic::TUNED, 3, 30);
    for (arm, option) in run.experiment.arms.iter_mut().zip(["default", "tuned"]) {
        arm.options = vec![("arm".into(), option.into()), ("volume".into(), "gp2".into())];
    }
    run.experiment.comparisons[0].axis = "arm".into();
    for (arm, name) in run.experiment.arms.iter_mut().zip(["default / gp2", "tuned / gp2"]) {
        arm.name = name.into();
    }
    for trial in &mut run.trials {
        trial.arm += " / gp2";
    }
    assert_eq!(report(&run, &summarize(&run)).groups[1].label, "tuned", "what all arms share is left out");
    let summary = summarize(&run);
    let blocks = verdict::blocks(&PageContext::new(&run, &summary), CAVEATS);
    let Some(Block::Verdicts(cards)) = blocks.first() else { panic!("verdicts") };
    assert_eq!(cards[0].context, "gp2");
    assert!(cards[0].headline.starts_with("tuned carries 12."), "{}", cards[0].headline);
}

#[test]
fn a_batch_job_is_shown_with_what_it_completed() {
    let (mut run, summary) = synthetic(&synthetic::TUNED, 2, 10);
    for (trial, statements) in run.trials.iter_mut().zip([3, 9, 5, 11]) {
        let (mean_s, max_s) = (2.5, 4.0);
        trial.batch = Some(BatchUse { statements, mean_s, max_s, ..BatchUse::default() });
    }
    let arms = report(&run, &summary).sections.remove(1);
    let Some(Block::Table(table)) = arms.blocks.last() else { panic!("a table") };
    let shown: Vec<[&str; 3]> =
        table.rows.iter().map(|row| [0, 1, 2].map(|column| row[column].text.as_str())).collect();
    assert_eq!(shown, [["default", "4.00", "2.50\u{a0}s"], ["tuned", "10.0", "2.50\u{a0}s"]]);
}

#[test]
fn the_cut_of_a_warm_up_is_marked_where_it_happened() {
    let (run, mut summary) = synthetic(&synthetic::TUNED, 2, 30);
    for window in &mut summary.arms[1].windows {
        window.from_s = 8.0;
    }
    let text = section_text(&run, &summary, "Throughput and response time over time");
    assert!(text.contains(r#"{"x":8.0,"label":"tuned: counted from here","group":1}"#), "{text}");
    assert!(!text.contains("default: counted from here"), "{text}");
}

/// The curves of [`synthetic::curve`] with the summary that a real run would have.
fn curve(repeats: u32) -> (LabRun, Summary) {
    println!("seed {SEED}");
    let run = synthetic::curve(repeats, 30, SEED);
    let summary = summarize(&run);
    (run, summary)
}

#[test]
fn arms_that_differ_in_connections_alone_are_curves_and_shown_as_such_first() {
    let (run, summary) = curve(3);
    let html = page(&run, &summary);
    keep("curve", &html);
    let report = report(&run, &summary);
    let Some(Block::Verdicts(cards)) = report.sections[0].blocks.first() else { panic!("verdicts") };
    let shown: Vec<(&str, &str)> =
        cards.iter().map(|card| (card.context.as_str(), card.figure.as_str())).collect();
    assert_eq!(shown.len(), 2, "one for each volume: {shown:?}");
    assert_eq!(shown[0], ("wide", "\u{2248}"));
    assert!(shown[1].0 == "narrow" && shown[1].1.starts_with(['1', '2', '+']), "{shown:?}");
    let narrow = text(&report.sections[0].blocks[..1]);
    assert!(narrow.contains("From 16 connections on, doublewrite off carries "), "{narrow}");
    assert!(narrow.contains("in the mean of 16, 128 and 1,024 connections (95% interval: "), "{narrow}");
    assert!(!text(&report.sections[0].blocks).contains("comparisons show a difference"), "shown once");
    let headings: Vec<&str> = report.sections.iter().map(|section| section.heading.as_str()).collect();
    assert_eq!(headings[1], "Over connections");
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    let main = dom.split_once("<main").unwrap().1.split_once("</main>").unwrap().0;
    assert!(!main.contains("NaN") && !main.contains("undefined"), "a value went wrong");
    assert!(main.contains("All 8 comparisons one under the other"), "the single ones can still be seen");
}

#[test]
fn the_curves_have_a_line_for_each_combination_with_its_intervals() {
    let (run, summary) = curve(3);
    let Block::Plots(plots) = curves::blocks(&run.experiment, &summary).unwrap().remove(0) else {
        panic!("charts")
    };
    assert_eq!(plots.x, [1.0, 16.0, 128.0, 1024.0]);
    let titled = |title: &str| plots.charts.iter().find(|chart| chart.title == title).unwrap();
    let lines = &titled("Throughput").series;
    let names: Vec<&str> = lines.iter().map(|line| line.label.as_str()).collect();
    assert_eq!(names, ["wide, on", "wide, off", "narrow, on", "narrow, off"]);
    assert_eq!(lines.iter().map(|line| line.color).collect::<Vec<_>>(), [0, 0, 1, 1], "pairs share a colour");
    assert_eq!(lines[2].line, ebbtide_report::Line::Dashed, "the baseline");
    assert!(lines.iter().all(|line| line.intervals.iter().all(Option::is_some)));
    let gains = &titled("What it gains").series;
    assert_eq!(gains[1].label, "narrow: off over on");
    let at = |count: usize| gains[1].values[count].unwrap();
    assert!((at(0) - 1.0).abs() < 0.1 && (at(3) - 2.0).abs() < 0.2, "{:?}", gains[1].values);
    let (low, high) = gains[1].intervals[3].unwrap();
    assert!(low < at(3) && at(3) < high);
    for title in ["Writes", "Reads", "Written", "Response time, 95th percentile", "Doublewrite"] {
        assert_eq!(titled(title).series.len(), 4, "{title}");
    }
}

#[test]
fn one_trial_of_each_arm_makes_curves_without_intervals_and_reports_it() {
    let (run, summary) = curve(1);
    let first = text(&report(&run, &summary).sections[0].blocks);
    assert!(first.contains("(no interval: that takes two trials of either side)"), "{first}");
    assert!(first.contains("in too few trials to tell"), "{first}");
    assert!(!first.contains("carries"), "one trial carries nothing: {first}");
    let Block::Plots(plots) = curves::blocks(&run.experiment, &summary).unwrap().remove(0) else {
        panic!("charts")
    };
    assert!(plots.charts[0].series.iter().all(|line| line.intervals.iter().all(Option::is_none)));
}

#[test]
fn the_verdict_of_a_curve_names_the_point_that_it_is_without() {
    let mut run = curve(3).0;
    run.trials.retain(|trial| trial.arm != "narrow / 128 / off" || trial.repeat == 0);
    let first = text(&report(&run, &summarize(&run)).sections[0].blocks);
    let shown = "in the mean of 16 and 1,024 connections, without 128, which lacks trials (95% interval: ";
    assert!(first.contains(shown), "{first}");
}

#[test]
fn curves_show_nothing_of_volumes_that_were_not_measured_nor_of_writes_that_were_not_made() {
    let (run, mut summary) = curve(3);
    let first = |summary: &Summary| text(&report(&run, summary).sections[0].blocks);
    assert!(first(&summary).contains("KiB a write"));
    for figures in summary.arms.iter_mut().filter_map(|arm| arm.whole.as_mut()) {
        figures.volumes.clear();
        let cost = figures.per_transaction.as_mut().unwrap();
        (cost.writes, cost.written_kib) = (0.0, 0.0);
    }
    assert!(!first(&summary).contains("KiB a write"), "{}", first(&summary));
    let Block::Plots(plots) = curves::blocks(&run.experiment, &summary).unwrap().remove(0) else {
        panic!("charts")
    };
    assert!(plots.charts.iter().all(|chart| chart.title != "Writes"));
    assert!(!plots.foot.contains("writes"), "not measured is not zero: {}", plots.foot);
}

#[test]
fn gains_of_two_axes_are_distinguished_in_the_table() {
    let (run, mut summary) = curve(3);
    summary.curves[1].axis = "another".into();
    let shown = curves::blocks(&run.experiment, &summary).unwrap().remove(1);
    let shown = text(&[shown]);
    assert!(shown.contains("narrow another off over on"), "{shown}");
    assert!(shown.contains("TPS, baseline"), "{shown}");
}

#[test]
fn a_run_without_such_arms_has_no_curves() {
    let (run, summary) = synthetic(&synthetic::TUNED, 2, 10);
    assert!(curves::blocks(&run.experiment, &summary).is_none());
    let (mut run, _) = curve(1);
    run.experiment.arms[0].settings.set("io_capacity", "123").unwrap();
    let summary = summarize(&run);
    assert!(summary.curves.is_empty(), "one of its arms differs in more");
    assert!(curves::blocks(&run.experiment, &summary).is_none());
}

#[test]
fn a_run_of_hundreds_of_trials_makes_a_page_that_can_still_be_mailed() {
    let names: Vec<&'static str> =
        (0..132).map(|number| &*Box::leak(format!("arm {number}").into_boxed_str())).collect();
    let many: Vec<Shape> = names
        .into_iter()
        .map(|name| Shape {
            name,
            volume: "gp3:size=100GiB",
            options: &[],
            tps: 300.0,
            after: None,
            ios: 8.0,
        })
        .collect();
    let (run, summary) = synthetic(&many, 3, 60);
    let html = page(&run, &summary);
    assert!(html.len() < 6_000_000, "{} bytes", html.len());
    assert!(html.contains("Each point is the mean of 2 seconds"));
}
