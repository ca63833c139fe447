//! A figure of a run is the same wherever it is shown: finding, page, line of a trial that ended, JSON and database.

use ebbtide_report::Block;
use rusqlite::Connection;

use crate::experiment::Role;
use crate::page;
use crate::record::{LabRun, Trial};
use crate::results::{DATABASE, ResultsDatabase, read_json};
use crate::run::{self, Event, Progress};
use crate::summary::fixture::{self, report};
use crate::summary::{Summary, summarize};

/// Twenty seconds at the pace of a warm-up, and sixty at `tps`; the load's own report has all of it. The guest submits
/// 3,000 I/Os a second, of which the limit counts 2,400.
fn trial(arm: &str, repeat: u32, tps: f64) -> Trial {
    let pace = |second: u32| {
        let wobble = f64::from((second * 7 + repeat * 3) % 11) - 5.0;
        if second < 20 { 3.0 * tps + wobble } else { tps + wobble }
    };
    let rates: Vec<f64> = (0..80).map(pace).collect();
    let mut trial = fixture::trial(arm, repeat, &rates);
    for second in &mut trial.seconds {
        second.volumes.get_mut(&Role::Data).unwrap().consumed_iops = 2_400.0;
    }
    let mut load = report(20_000.0, 40_000.0);
    // Its rate over 80 s is that of all seconds, the warm-up among them.
    load.totals.events = if arm == "small" { 48_000 } else { 70_320 };
    load.elapsed_s = 80.0;
    trial.load = Some(load.into());
    trial
}

fn run() -> LabRun {
    let mut run = fixture::run(&["small", "large"]);
    for repeat in 0..3 {
        run.trials.push(trial("small", repeat, 400.0 + f64::from(repeat)));
        run.trials.push(trial("large", repeat, 586.0 + f64::from(repeat)));
    }
    run
}

/// What is reported for a trial when it ends: transactions a second, and the 95th percentile, us.
fn reported(run: &LabRun, trial: &Trial) -> (f64, f64) {
    let arm = run.experiment.arms.iter().find(|arm| arm.name == trial.arm).unwrap();
    let progress = Progress { number: 1, of: 6, arm: arm.name.clone(), repeat: trial.repeat, eta_s: None };
    let Event::TrialEnded { figures: Some(figures), .. } = run::ended(trial, arm, progress) else {
        panic!("a trial with seconds has figures")
    };
    (figures.tps, figures.p95_us)
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

/// The cells of the table of arms: text and value of a column, by arm.
fn column(run: &LabRun, summary: &Summary, heading: &str) -> Vec<(String, f64)> {
    let report = page::report(run, summary);
    let blocks = report.sections.iter().flat_map(|section| &section.blocks);
    let table = blocks.filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    let table = table.into_iter().find(|table| table.columns.iter().any(|column| column == heading)).unwrap();
    let place = table.columns.iter().position(|column| column == heading).unwrap();
    table.rows.iter().map(|row| (row[place].text.clone(), row[place].value.unwrap())).collect()
}

#[test]
fn a_trial_has_one_throughput_without_its_warm_up_wherever_it_is_shown() {
    let run = run();
    let dir = tempfile::tempdir().unwrap();
    let summary = summarize(&run);
    ResultsDatabase::create(dir.path(), &run).unwrap().finish(&summary).unwrap();
    let database = Connection::open(dir.path().join(DATABASE)).unwrap();
    for (index, arm) in summary.arms.iter().enumerate() {
        let figures = arm.whole.as_ref().unwrap();
        let trials: Vec<&Trial> = run.trials.iter().filter(|trial| trial.arm == arm.name).collect();
        for trial in &trials {
            let window = arm.windows.iter().find(|window| window.repeat == trial.repeat).unwrap();
            assert!((15.0..=25.0).contains(&window.from_s), "the warm-up is cut: {window:?}");
            let (tps, p95_us) = reported(&run, trial);
            let raw = trial.load.as_ref().unwrap().tps();
            assert!(raw > 1.4 * tps, "the load's own figure is another: {raw} {tps}");
            assert!(close(tps, window.parts[0].tps), "{tps} {window:?}");
            let stored: (f64, f64) = database
                .query_row(
                    "SELECT tps, p95_us FROM trial WHERE arm = ? AND repeat = ?",
                    rusqlite::params![trial.arm, trial.repeat],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .unwrap();
            assert!(close(stored.0, tps) && close(stored.1, p95_us), "{stored:?} {tps} {p95_us}");
        }
        let all: Vec<f64> = trials.iter().map(|trial| reported(&run, trial).0).collect();
        assert!(close(figures.tps.min, all.iter().copied().fold(f64::MAX, f64::min)));
        assert!(close(figures.tps.max, all.iter().copied().fold(0.0, f64::max)));
        let (text, value) = column(&run, &summary, "TPS, 95% interval")[index].clone();
        assert!(close(value, figures.tps.mean), "{text}");
        let stored: f64 = database
            .query_row("SELECT tps FROM arm_result WHERE arm = ?", [&arm.name], |row| row.get(0))
            .unwrap();
        assert!(close(stored, figures.tps.mean));
    }
    let json = read_json(dir.path()).unwrap();
    assert_eq!(json.summary, summary);
}

#[test]
fn a_transaction_has_one_number_of_ios_and_it_is_the_one_that_the_limit_counts() {
    let run = run();
    let dir = tempfile::tempdir().unwrap();
    let summary = summarize(&run);
    ResultsDatabase::create(dir.path(), &run).unwrap().finish(&summary).unwrap();
    let database = Connection::open(dir.path().join(DATABASE)).unwrap();
    let cells = column(&run, &summary, "I/Os per transaction");
    let mut all = Vec::new();
    for (arm, (text, value)) in summary.arms.iter().zip(cells) {
        let cost = arm.whole.as_ref().unwrap().per_transaction.unwrap();
        let counted = cost.consumed_ios;
        assert!(close(cost.ios / counted, 3_000.0 / 2_400.0), "the guest's are another number: {cost:?}");
        assert!(close(value, counted), "{value} {counted}");
        let stored: f64 = database
            .query_row("SELECT ios_per_transaction FROM arm_result WHERE arm = ?", [&arm.name], |row| {
                row.get(0)
            })
            .unwrap();
        assert!(close(stored, counted));
        all.push((counted, text));
    }
    // Both arms are at the limit of IOPS, so that the finding gives the I/Os of both; it is the headline too.
    let expected = format!("{} I/Os a transaction against {}", all[1].1, all[0].1);
    assert!(summary.findings[0].contains(&expected), "{expected}: {:?}", summary.findings);
    let html = page::page(&run, &summary);
    assert!(html.contains(&format!("{} against {} I/Os per transaction", all[1].1, all[0].1)), "the card");
    assert!(html.contains(page::DEFINITIONS), "the definition is next to the table");
    let ratio = summary.comparisons[0].ios_per_transaction.unwrap();
    assert!(close(ratio, all[1].0 / all[0].0));
    assert_eq!(read_json(dir.path()).unwrap().summary, summary);
}
