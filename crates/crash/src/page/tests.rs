//! The whole page on synthetic runs.

use ebbtide_report::Block;
use ebbtide_text::seed;

use super::*;
use crate::fixture::{PLAUSIBLE, REPLICAS, Shape, header, plausible};
use crate::record::{Failure, GainRun, Gained, VerdictKind};
use crate::sections::{self, keep, text};
use crate::summary::{BAD, sentences::kind, summarize};
use ebbtide_testing::browser::{browse, without_scripts};

const SEED: u64 = 11;

fn synthetic(shapes: &[Shape], cuts: u32) -> (CrashRun, Summary) {
    println!("seed {SEED}");
    let run = plausible(shapes, cuts, SEED);
    let summary = summarize(&run);
    (run, summary)
}

fn section_text(run: &CrashRun, summary: &Summary, heading: &str) -> String {
    sections::section_text(&report(run, summary), heading).replace('\u{a0}', " ")
}

#[test]
fn a_browser_draws_the_page_without_a_complaint_and_without_a_network() {
    let (run, summary) = synthetic(&PLAUSIBLE, 100);
    let html = page(&run, &summary);
    keep("crash", &html);
    let (_, plain) = without_scripts(&html);
    for part in [
        "power cuts left a server that does not start",
        "Cost",
        "a month",
        "list prices of us-east-1",
        "When the power was cut",
    ] {
        assert!(plain.contains(part), "without JavaScript there is no '{part}': {plain}");
    }
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    let main = dom.split_once("<main").unwrap().1.split_once("</main>").unwrap().0;
    assert!(!main.contains("NaN") && !main.contains("undefined"), "a value went wrong");
    assert!(main.contains("power cuts left a server that does not start"), "the verdict in words");
    for heading in [
        "Risk and gain",
        "What is lost",
        "How it recovers",
        "When the power was cut",
        "What happened",
        "What could not be verified",
        "Canaries",
        "The tester's own time",
        "What differs between the arms",
        "How it was measured",
        "Stints and caveats",
        "Run it again",
    ] {
        assert!(main.contains(&format!("<h2>{heading}</h2>")), "no section '{heading}'");
    }
    assert!(main.contains("Page 311 of bank/ballast.ibd"), "the torn page");
    assert!(main.contains(r#"aria-label="new, new, old, old""#), "its units");
    assert!(main.contains("LSN 5902118") && main.contains("LSN …5731204"), "both ends of it");
    assert!(main.contains("Unable to apply log to corrupted page 311"), "the server's message");
    assert!(main.contains("ebbtide crash durability --seed 7"), "the command");
    assert!(main.contains("10.11.19-MariaDB"), "the exact version");
}

#[test]
fn every_kind_of_bad_verdict_has_its_story_and_its_seed() {
    let (run, summary) = synthetic(&PLAUSIBLE, 100);
    let shown = section_text(&run, &summary, "What happened");
    for one in BAD.into_iter().filter(|kind| *kind != VerdictKind::ReplicationBroken) {
        assert!(
            shown.contains(&format!(r#""kind":"heading","value":"{}: "#, kind(one))),
            "no story of {one:?}"
        );
    }
    assert_eq!(VerdictKind::ALL.len(), BAD.len() + 1, "the other kind has a section of its own");
    let seed = shown.split("ebbtide crash --replay ").nth(1).unwrap().split('"').next().unwrap();
    let cut = run.cuts.iter().find(|cut| seed::hex(cut.seed) == seed).expect("the seed is a cut's");
    assert!(cut.verdicts.iter().any(|verdict| verdict.kind() == VerdictKind::Corrupt));
    assert!(
        section_text(&run, &summary, "What could not be verified").contains("innochecksum ended by signal 9")
    );
}

#[test]
fn replicas_are_judged_by_whether_they_go_on_and_never_held_against_a_primary() {
    let (run, summary) = synthetic(&REPLICAS, 100);
    assert!(summary.valid, "{:?}", summary.void);
    let html = page(&run, &summary);
    keep("crash-replicas", &html);
    let report = report(&run, &summary);
    let section = report.sections.iter().find(|section| section.heading == "Risk and gain").unwrap();
    let Block::Table(table) = &section.blocks[0] else { panic!("a table") };
    let place = |heading: &str| table.columns.iter().position(|column| column == heading).unwrap();
    let (lost, broken) = (place("Lost commits"), place("Replication broken"));
    let texts = |column: usize| table.rows.iter().map(|row| row[column].text.as_str()).collect::<Vec<_>>();
    assert_eq!(texts(lost), ["0 of 100", "\u{2013}", "\u{2013}"], "a replica acknowledges no commit");
    assert_eq!(texts(broken)[0], "\u{2013}", "a primary follows nobody");
    assert_eq!(texts(broken)[2], "0 of 100");
    assert!(summary.arms[1].gain.is_none() && summary.arms[2].gain_over == Some(1), "{:?}", summary.arms[2]);
    let shown = section_text(&run, &summary, "What happened");
    assert!(shown.contains("Duplicate entry '3-881'") && shown.contains("binlog.000001:4711"), "{shown}");
    let primaries =
        section_text(&synthetic(&PLAUSIBLE, 10).0, &summarize(&synthetic(&PLAUSIBLE, 10).0), "Risk and gain");
    assert!(!primaries.contains("Replication broken"), "there is nothing to ask");
}

/// The cards at the top.
fn cards(run: &CrashRun, summary: &Summary) -> Vec<ebbtide_report::Verdict> {
    let report = report(run, summary);
    let cards = report.sections[0].blocks.iter().filter_map(|block| match block {
        Block::Verdicts(cards) => Some(cards.clone()),
        _ => None,
    });
    cards.flatten().collect()
}

#[test]
fn other_arms_with_the_same_damage_stand_with_their_own_counts() {
    let (run, summary) = synthetic(&PLAUSIBLE, 100);
    let lost = |summary: &Summary| {
        let all = cards(&run, summary);
        all.into_iter().find(|card| card.headline.contains("lost transactions")).unwrap().details.join(" ")
    };
    let count = |arm: usize| summary.arms[arm].verdicts[&VerdictKind::LostCommits];
    let shown = lost(&summary);
    let other =
        format!("The same with flush at commit 2 ({} of {} power cuts).", count(3).count, count(3).of);
    assert!(shown.contains(&other) && !shown.contains("less often"), "{shown}");
    // As many in another arm are not fewer.
    let mut even = summary.clone();
    even.arms[3].verdicts.insert(VerdictKind::LostCommits, count(4));
    let shown = lost(&even);
    assert!(shown.contains(&format!("({} of {} power cuts)", count(4).count, count(4).of)), "{shown}");
    let mut all = summary.clone();
    for arm in &mut all.arms {
        arm.verdicts.insert(VerdictKind::LostCommits, count(4));
    }
    let share = ebbtide_text::percent(count(4).share.unwrap());
    assert!(
        lost(&all).contains(&format!("5 other arms, in {share} to {share} of their cuts.")),
        "{}",
        lost(&all)
    );
}

#[test]
fn no_headline_has_a_ratio_of_throughput_and_one_stint_has_none_anywhere() {
    let (mut run, _) = synthetic(&PLAUSIBLE, 100);
    let all = cards(&run, &summarize(&run));
    let ratio = |text: &str| text.contains("Throughput") || text.contains('\u{d7}') || text.contains("times");
    for card in &all {
        let texts = card.details.iter().chain([&card.figure, &card.headline, &card.context]);
        assert!(texts.into_iter().all(|text| !ratio(text)), "{card:?}");
    }
    run.stints.retain(|stint| stint.repeat == 0);
    let summary = summarize(&run);
    let matrix = section_text(&run, &summary, "Risk and gain");
    assert!(!matrix.contains('\u{d7}') && !matrix.contains("estimates"), "{matrix}");
    assert!(matrix.contains("1 stint: no interval"), "{matrix}");
    let report = report(&run, &summary);
    let section = report.sections.iter().find(|section| section.heading == "Risk and gain").unwrap();
    let Block::Table(table) = &section.blocks[0] else { panic!("a table") };
    let against = table.columns.iter().position(|column| column.starts_with("TPS against")).unwrap();
    assert!(table.rows.iter().skip(1).all(|row| row[against].text == "\u{2013}"), "{table:?}");
}

#[test]
fn a_moment_that_no_arm_can_meet_is_not_called_missed() {
    let shapes = [PLAUSIBLE[1], PLAUSIBLE[2], PLAUSIBLE[6], PLAUSIBLE[7], PLAUSIBLE[8]];
    let (mut run, _) = synthetic(&shapes, 80);
    for arm in &mut run.experiment.arms {
        arm.settings.set("doublewrite", "off").unwrap();
    }
    for cut in run.cuts.iter_mut().filter(|cut| cut.moment == ebbtide_lab::experiment::Moment::Doublewrite) {
        cut.met = false;
    }
    let summary = summarize(&run);
    let report = report(&run, &summary);
    let section = report.sections.iter().find(|one| one.heading == "When the power was cut").unwrap();
    let Block::Table(table) = &section.blocks[0] else { panic!("a table") };
    let row = table.rows.iter().find(|row| row[0].text == "during a doublewrite batch").unwrap();
    assert_eq!((row[2].text.as_str(), row[2].tone), ("\u{2013}", ebbtide_report::Tone::Plain));
    let redo = table.rows.iter().find(|row| row[0].text == "while redo was written").unwrap();
    assert!(redo[2].detail.contains(" of "), "{redo:?}");
}

#[test]
fn risk_and_gain_stand_in_one_table() {
    let (run, summary) = synthetic(&PLAUSIBLE, 100);
    let report = report(&run, &summary);
    let section = report.sections.iter().find(|section| section.heading == "Risk and gain").unwrap();
    let Block::Table(table) = &section.blocks[0] else { panic!("a table") };
    assert_eq!(table.rows.len(), 6, "canaries are apart");
    let width = table.columns.len();
    assert!(table.rows.iter().all(|row| row.len() == width));
    let place = |heading: &str| table.columns.iter().position(|column| column == heading).unwrap();
    let (bad, corrupt) = (place("Any bad verdict"), place("Corrupt"));
    assert_eq!(table.rows[0][bad].text, "0 of 100");
    assert_eq!(table.rows[0][bad].detail, "at most 3.0%");
    let torn = &table.rows[2][corrupt];
    assert!(torn.text.ends_with(" of 100") && torn.detail.contains(" to "), "{torn:?}");
    let against = place("TPS against doublewrite on, 4 KiB tearing");
    assert_eq!(table.rows[0][against].text, "baseline");
    assert!(table.rows[2][against].text.starts_with("+2"), "{:?}", table.rows[2][against]);
    assert_eq!(table.rows[3][place("Unverified")].text, summary.arms[3].unverified.to_string());
}

/// A crash run with what the lab measured of its risk.
fn with_gain(measured: &ebbtide_lab::record::LabRun, failed: Option<&str>) -> (CrashRun, Summary) {
    let (mut run, _) = synthetic(&PLAUSIBLE, 40);
    let analysed = ebbtide_lab::summary::summarize(measured);
    let (measured, failed) = (Some(GainRun::of(measured, &analysed)), failed.map(str::to_owned));
    run.gain = Some(Gained { measured, failed });
    let summary = summarize(&run);
    (run, summary)
}

#[test]
fn what_the_risk_buys_is_next_to_it_with_curves_and_a_link_to_all_of_it() {
    let (run, summary) = with_gain(&ebbtide_lab::page::synthetic::curve(3, 30, SEED), None);
    let html = page(&run, &summary);
    keep("crash-gain", &html);
    let shown = section_text(&run, &summary, "What it gains");
    assert!(shown.contains("From 16 connections on, doublewrite off carries "), "{shown}");
    assert!(
        shown.contains(r#""axis":"count""#) && shown.contains("narrow: off over on"),
        "the curves: {shown}"
    );
    assert!(shown.contains(r#""file":"gain/report.html""#), "the link: {shown}");
    let sentence = |text: &String| text.starts_with("synthetic: narrow: from 16 connections on");
    assert!(summary.findings.iter().any(sentence), "{:?}", summary.findings);
    let headings: Vec<String> =
        report(&run, &summary).sections.into_iter().map(|section| section.heading).collect();
    assert_eq!(headings[1..3], ["Risk and gain", "What it gains"]);
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    let main = dom.split_once("<main").unwrap().1.split_once("</main>").unwrap().0;
    assert!(!main.contains("NaN") && !main.contains("undefined"), "a value went wrong");
    assert!(main.contains(r#"href="gain/report.html""#));
}

#[test]
fn a_gain_without_curves_is_shown_by_its_comparisons_in_no_arms_colour() {
    let measured = ebbtide_lab::page::synthetic::run(&ebbtide_lab::page::synthetic::TUNED, 3, 30, SEED);
    let (run, summary) = with_gain(&measured, Some("ended after 6 of 10 trials"));
    let shown = section_text(&run, &summary, "What it gains");
    assert!(shown.contains("Throughput against default"), "{shown}");
    assert!(shown.contains("Not all of it counts: ended after 6 of 10 trials"), "{shown}");
    assert!(shown.contains(r#""group":null"#) && !shown.contains(r#""group":1"#), "{shown}");
}

#[test]
fn a_gain_that_was_not_measured_gives_the_reason_and_one_that_was_not_requested_is_not_there() {
    let (mut run, summary) = synthetic(&PLAUSIBLE, 20);
    assert!(report(&run, &summary).sections.iter().all(|section| section.heading != "What it gains"));
    run.gain = Some(Gained { measured: None, failed: Some("no room on the disk".into()) });
    let summary = summarize(&run);
    assert!(
        section_text(&run, &summary, "What it gains").contains("Nothing was measured: no room on the disk")
    );
}

#[test]
fn a_void_run_reports_it_before_everything_else() {
    let (mut run, _) = synthetic(&PLAUSIBLE, 100);
    let name = PLAUSIBLE[8].name;
    run.cuts.iter_mut().filter(|cut| cut.arm == name).for_each(|cut| cut.verdicts.clear());
    let summary = summarize(&run);
    let html = page(&run, &summary);
    keep("crash-void", &html);
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    let main = dom.split_once("<main").unwrap().1;
    let void = main.find("Nothing on this page may be believed").expect("the banner");
    assert!(void < main.find("power cuts").unwrap(), "it is first");
    let first = text(&report(&run, &summary).sections[0].blocks);
    assert!(first.contains("was not caught in 10"), "why: {first}");
    assert!(!first.contains(r#""tone":"good""#), "nothing is praised: {first}");
}

#[test]
fn many_arms_make_a_page_that_can_still_be_mailed() {
    let names: Vec<&'static str> =
        (0..36).map(|number| &*Box::leak(format!("arm {number}").into_boxed_str())).collect();
    let shapes: Vec<Shape> = names
        .iter()
        .zip(PLAUSIBLE[..5].iter().cycle())
        .map(|(name, shape)| Shape { name, ..*shape })
        .chain(PLAUSIBLE[6..].iter().copied())
        .collect();
    let (run, summary) = synthetic(&shapes, 100);
    let html = page(&run, &summary);
    keep("crash-36-arms", &html);
    assert!(html.len() < 2_500_000, "{} bytes", html.len());
    let Some((_, console)) = browse(&html) else { return };
    assert_eq!(console, "");
}

#[test]
fn a_run_without_a_cut_reports_that_and_not_that_it_is_clean() {
    let mut run = header(&PLAUSIBLE, 100);
    let mut stint = plausible(&PLAUSIBLE[..1], 3, SEED).stints.remove(0);
    (stint.throughput, stint.failed) =
        (None, Some(Failure { why: "the server ended".into(), log: vec!["got signal 6".into()] }));
    run.stints.push(stint);
    let summary = summarize(&run);
    let html = page(&run, &summary);
    keep("crash-nothing", &html);
    let Some((dom, console)) = browse(&html) else { return };
    assert_eq!(console, "");
    let main = dom.split_once("<main").unwrap().1;
    assert!(main.contains("No cut was made of any arm") && main.contains("got signal 6"));
    assert!(!main.contains("had a bad verdict"), "nothing was proven");
}

#[test]
fn an_unverified_cut_is_never_shown_as_clean() {
    let (mut run, _) = synthetic(&PLAUSIBLE[..1], 12);
    for cut in &mut run.cuts {
        cut.recovery = None;
    }
    let summary = summarize(&run);
    let matrix = section_text(&run, &summary, "Risk and gain");
    assert!(!matrix.contains("0 of 12"), "{matrix}");
    let why = section_text(&run, &summary, "What could not be verified");
    assert!(why.contains("the server was not seen to recover"), "{why}");
}

#[test]
fn a_name_cannot_become_markup() {
    let (mut run, _) = synthetic(&PLAUSIBLE, 10);
    let nasty = "</script><img src=x onerror=document.title='gone'>";
    let name = run.experiment.arms[2].name.clone();
    run.cuts.iter_mut().filter(|cut| cut.arm == name).for_each(|cut| cut.arm = nasty.into());
    run.experiment.arms[2].name = nasty.into();
    let html = page(&run, &summarize(&run));
    assert!(!html.contains("<img"));
}
