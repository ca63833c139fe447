//! The answer of a run as a terminal shows it.

use ebbtide_report::TextOptions;

use super::{document, page, synthetic};
use crate::record::LabRun;
use crate::summary::{Summary, Verdict, compare_runs, fixture, repetition, summarize};

fn text(run: &LabRun, summary: &Summary, columns: usize, details: bool) -> String {
    document(run, summary, "trials").to_text(TextOptions { columns, details, ..TextOptions::default() })
}

/// Runs of every form of answer: two arms, one whose credits end, many arms, curves, one arm, and none that was measured.
fn runs() -> Vec<(&'static str, LabRun, &'static str)> {
    let mut single = synthetic::run(&synthetic::TUNED[..1], 3, 30, 7);
    single.experiment.comparisons.clear();
    let mut unmeasured = synthetic::run(&synthetic::TUNED, 3, 30, 7);
    unmeasured.trials.clear();
    let once = synthetic::run(&synthetic::TUNED, 1, 30, 7);
    vec![
        ("tuned", synthetic::run(&synthetic::TUNED, 3, 30, 7), "tuned carries 12."),
        (
            "volumes",
            synthetic::run(&synthetic::VOLUMES, 3, 60, 7),
            "credits used up (baseline): io2 carries ",
        ),
        ("many", synthetic::run(&synthetic::many(), 3, 30, 7), "buffer pool=64MiB carries "),
        ("curve", synthetic::curve(3, 30, 7), "narrow: from 16 connections on, "),
        ("once", once, "tuned carries 1"),
        ("single", single, "default carries 3"),
        ("unmeasured", unmeasured, "tuned cannot be held against default: not both"),
    ]
}

#[test]
fn every_answer_is_one_screen_whose_first_line_is_the_answer() {
    for (name, run, begin) in runs() {
        let summary = summarize(&run);
        for columns in [60, 80, 120] {
            let shown = text(&run, &summary, columns, false);
            if columns == 80 {
                println!("== {name}\n{shown}");
            }
            let first = shown.lines().next().unwrap();
            let start: String = begin.chars().take(first.chars().count()).collect();
            assert!(first.starts_with(&start), "{name}: {first}");
            assert!(columns != 80 || shown.lines().count() <= 23, "{name}: {shown}");
            assert!(shown.lines().all(|line| line.chars().count() <= columns), "{name}, {columns}: {shown}");
            assert!(shown.contains("Next:\n") && shown.contains("ebbtide run synthetic --seed 7"), "{shown}");
        }
    }
}

#[test]
fn the_page_has_each_figure_of_the_screen_and_not_the_screen_itself() {
    let run = synthetic::run(&synthetic::TUNED, 3, 30, 7);
    let summary = summarize(&run);
    let (html, shown) = (page(&run, &summary), text(&run, &summary, 120, false));
    for line in shown.lines().filter(|line| line.starts_with("tuned  ") || line.starts_with("default  ")) {
        let tps = line.split_whitespace().nth(1).unwrap();
        assert!(html.contains(&format!(">{tps} <small>")), "{tps} of '{line}' is not in the page");
        assert!(line.contains("$12.50"), "{line}");
    }
    let command = "ebbtide predict --profile-from trials --out server.toml";
    assert!(shown.contains(command) && !html.contains(command));
    let details = text(&run, &summary, 120, true);
    assert!(details.starts_with(shown.lines().next().unwrap()), "{details}");
    for heading in ["The arms side by side", "How it was measured", "Trials and caveats"] {
        assert!(html.contains(heading) && details.contains(heading) && !shown.contains(heading), "{heading}");
    }
}

#[test]
fn more_remarks_than_one_are_counted() {
    let run = synthetic::run(&synthetic::TUNED, 3, 30, 7);
    let mut summary = summarize(&run);
    let note = crate::summary::Note { arm: Some("tuned".into()), text: "Trial 1 drifts. Measure on.".into() };
    summary.notes = vec![note; 5];
    let shown = text(&run, &summary, 80, false);
    assert!(shown.contains("caution: tuned: Trial 1 drifts. 4 further remarks: --details.\n"), "{shown}");
    assert!(shown.lines().count() <= 23, "{shown}");
}

#[test]
fn curves_that_nobody_measured_under_load_are_the_answer_and_not_an_arm_by_itself() {
    let run = synthetic::curve(3, 30, 7);
    let mut summary = summarize(&run);
    summary.curves.iter_mut().for_each(|gain| gain.loaded = None);
    let shown = text(&run, &summary, 400, false);
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with("wide: ") && first.contains("times "), "the first of the curves: {first}");
}

/// Runs of four arms, the second of which carries more and more of what the first does.
fn rising() -> impl Iterator<Item = LabRun> {
    (0..60).map(|step| {
        let times = [1.0, 1.0 + 0.01 * f64::from(step), 1.01, 0.99];
        let names = ["now", "more", "same", "other"];
        let mut run = fixture::run(&names);
        for repeat in 0..3 {
            for (name, times) in names.into_iter().zip(times) {
                let level = 400.0 * times * (1.0 + 0.05 * (f64::from(repeat) - 1.0));
                let rates: Vec<f64> = (0..30).map(|t| level * (1.0 + 0.01 * f64::from(t % 3))).collect();
                run.trials.push(fixture::trial(name, repeat, &rates));
            }
        }
        run
    })
}

#[test]
fn a_verdict_never_contradicts_the_interval_beside_it() {
    let mut corrected = 0;
    for run in rising() {
        let summary = summarize(&run);
        let more = &summary.comparisons[0];
        let interval = more.tps.unwrap().interval.unwrap();
        let sure = interval.low > 1.0 || interval.high < 1.0;
        let (html, shown) = (page(&run, &summary), text(&run, &summary, 400, true));
        let denied = |text: &str| text.to_lowercase().contains("no difference seen between more and now");
        assert!(!sure || !denied(&summary.findings.concat()), "{:?}", summary.findings);
        assert!(!sure || !denied(&shown) && !denied(&html), "{interval:?}: {shown}");
        if sure && more.verdict == Verdict::NoDifferenceSeen {
            corrected += 1;
            let probably = shown.contains("more is probably faster than now, ");
            let repeats = shown.contains("not certain after three comparisons; by an estimate, --repeats ");
            assert!(probably && repeats, "{shown}");
            assert!(shown.contains("ebbtide run test --seed 7 --repeats "), "{shown}");
        }
        assert!(sure || more.verdict == Verdict::NoDifferenceSeen, "{interval:?}");
    }
    assert!(corrected > 0, "no run whose own interval and corrected verdict part");
}

#[test]
fn an_interval_that_says_nothing_is_called_too_few_trials_with_the_repeats_to_run() {
    let mut run = fixture::run(&["now", "larger"]);
    for (name, levels) in [("now", [400.0, 420.0]), ("larger", [120.0, 460.0])] {
        for (repeat, level) in (0..).zip(levels) {
            let rates: Vec<f64> = (0..30).map(|t| level * (1.0 + 0.01 * f64::from(t % 3))).collect();
            run.trials.push(fixture::trial(name, repeat, &rates));
        }
    }
    run.host.load_before = 60.0;
    let summary = summarize(&run);
    let interval = summary.comparisons[0].tps.unwrap().interval.unwrap();
    assert!(interval.is_wide() && interval.contains(1.0), "{interval:?}");
    let (html, shown) = (page(&run, &summary), text(&run, &summary, 400, false));
    assert!(shown.starts_with("Too few trials to tell larger from now ("), "{shown}");
    assert!(shown.contains("Two trials only: the intervals are very wide."), "{shown}");
    assert!(shown.contains("ebbtide run test --seed 7 --repeats 5\n"), "{shown}");
    for document in [&html, &shown, &summary.findings.concat()] {
        assert!(!document.to_lowercase().contains("no difference seen"), "{document}");
    }
}

#[test]
fn runs_that_agree_and_runs_that_do_not_say_so_first() {
    let runs: Vec<LabRun> = rising().collect();
    let answer = |runs: &[&LabRun]| {
        let named: Vec<(&str, &LabRun)> = runs.iter().map(|run| ("/srv/results/first", *run)).collect();
        let repetition = repetition(&named);
        super::runs_compared(&runs[0].experiment, &repetition).to_text(TextOptions::default())
    };
    let agree = answer(&[&runs[0], &runs[1]]);
    assert!(agree.starts_with("The 2 runs of test agree: the intervals overlap.\n"), "{agree}");
    let apart = answer(&[&runs[0], &runs[59]]);
    assert!(apart.starts_with("The 2 runs of test do not agree: "), "{apart}");
    for shown in [agree, apart] {
        assert!(
            shown.lines().count() <= 24 && shown.lines().all(|line| line.chars().count() <= 80),
            "{shown}"
        );
    }
    assert_eq!(compare_runs(&runs[0].experiment, &[]), Vec::new());
}
