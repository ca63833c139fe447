//! Trials under TPC-C, and the check of its tables after each.

use std::path::Path;

use ebbtide_catalog::Catalog;
use ebbtide_lab::page::page;
use ebbtide_lab::record::{LabRun, Outcome};
use ebbtide_lab::results::ResultsDatabase;
use ebbtide_lab::run::{self, Event, Phase};
use ebbtide_lab::summary::summarize;
use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;

use crate::support::{Bench, assert_results_are_documented, left_of, needs, options, parse};
use ebbtide_testing::schema::assert_documented;

const ONE: &str = r#"
title = "TPC-C"

[data]
warehouses = 1

[volumes]
data = "gp3:size=4GiB"

[instance]
memory = "1GiB"

[settings]
buffer_pool_size = "256MiB"
redo_capacity = "64MiB"

[load]
workload = "tpcc"
connections = 4

[trial]
repeats = 2
measure = "10s"

[warmup]
read_tables = true
lead_in = "1s"
settle = "1s"
"#;

fn measured(bench: &Bench, text: &str, server: &Binary) -> (LabRun, Vec<Phase>) {
    let mut phases = Vec::new();
    let mut on_event = |event: Event| {
        if let Event::Phase { phase, .. } = &event {
            phases.push(*phase);
        }
        println!("{event:?}");
    };
    let plan = run::plan(parse(text), &Catalog::builtin(), server).unwrap();
    let options = options(&bench.home(), &bench.out(), false);
    let run = run::run(plan, options, &Cancel::default(), &mut on_event).unwrap();
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
    (run, phases)
}

/// Runs `check` on the system's server, or on one that `./dev servers` fetches.
fn on(name: Option<&str>, check: impl FnOnce(&Bench, &Binary)) {
    match Binary::detect(name.map(Path::new)) {
        Ok(server) => check(&Bench::new(), &server),
        Err(error) => println!("SKIPPED: the server {} ({error})", name.unwrap_or("of the system")),
    }
}

fn is_measured_and_consistent(bench: &Bench, server: &Binary) {
    let (run, phases) = measured(bench, ONE, server);
    assert_eq!(phases.iter().filter(|phase| **phase == Phase::Checking).count(), 2, "{phases:?}");
    for trial in &run.trials {
        assert!(!matches!(trial.outcome, Outcome::Failed { .. }), "{:?}", trial.outcome);
        assert_eq!(trial.seconds.len(), 4);
        let load = trial.load.as_ref().unwrap();
        assert!(load.samples().is_empty(), "the seconds have them");
        let load = load.tpcc().unwrap();
        let found = load.consistency.as_ref().unwrap();
        assert!(found.consistent && !found.cancelled && found.conditions.len() == 12, "{found:?}");
        assert_eq!(found.tables.warehouses, 1);
        // On a busy machine four seconds may be too few for the rare ones.
        assert!(load.tpcc.by_transaction[..2].iter().all(|of| of.response.count > 0), "{:?}", load.tpcc);
        assert!((20.0..50.0).contains(&load.tpcc.statements_per_transaction));
    }
    let mut run = run;
    // A machine that is busy with other tests disqualifies; what is summed up is the same.
    run.trials.iter_mut().for_each(|trial| trial.outcome = Outcome::Measured);
    let summary = summarize(&run);
    let arm = &summary.arms[0];
    let (tpcc, tps) = (arm.tpcc.as_ref().unwrap(), arm.whole.as_ref().unwrap().tps.mean);
    // New-Orders are 45% of the mix.
    let share = tpcc.tpmc.mean / 60.0 / tps;
    assert!((0.3..0.6).contains(&share), "{share}");
    assert!((share - tpcc.transactions[0].share_pct / 100.0).abs() < 1e-9);
    assert!((tpcc.ceiling_pct - 100.0 * tpcc.tpmc.mean / 12.86).abs() < 1e-6 && tpcc.tpmc.interval.is_some());
    let names: Vec<&str> = tpcc.transactions.iter().map(|of| of.transaction.as_str()).collect();
    assert_eq!(names, ["new_order", "payment", "order_status", "delivery", "stock_level"]);
    for of in tpcc.transactions.iter().filter(|of| of.count > 0) {
        assert!(0.0 < of.p50_us.median && of.p50_us.median <= of.p95_us.median, "{of:?}");
        assert!(of.p95_us.median <= of.p99_us.median, "{of:?}");
    }
    let mut store = ResultsDatabase::open(&bench.out()).unwrap();
    assert_eq!(store.run().unwrap().trials[0].load, run.trials[0].load, "the database has all of it");
    store.finish(&summary).unwrap();
    assert_results_are_documented("run", &bench.out());
    let kept = run::list_prepared(&bench.home()).unwrap();
    assert_documented(&["run", "--prepared"], &serde_json::json!(kept));
    assert!(kept.iter().any(|kept| kept.warehouses == Some(1) && kept.damage.is_none()), "{kept:?}");
    let page = page(&run, &summary);
    for words in ["tpmC", "new order", "stock level", "Of the ceiling"] {
        assert!(page.contains(words), "the report has no {words}");
    }
}

#[test]
fn tpcc_is_measured_and_consistent_after_every_trial_on_the_systems_server() {
    needs!();
    on(None, is_measured_and_consistent);
}

#[test]
fn tpcc_is_measured_and_consistent_after_every_trial_on_mysql_8_0() {
    needs!();
    on(Some("mysql-8.0"), is_measured_and_consistent);
}

#[test]
fn a_replica_that_is_promoted_under_tpcc_is_checked_in_place_of_its_source() {
    needs!();
    on(None, |bench, server| {
        let settings = "[settings]\nlog_bin = true\nsync_binlog = 1\n";
        let topology = "[topology]\nreplicas = 1\npromote = true\n\n[trial]";
        let text = ONE.replace("[settings]\n", settings).replace("[trial]", topology);
        let (run, phases) = measured(bench, &text.replace("repeats = 2", "repeats = 1"), server);
        assert_eq!(phases.iter().filter(|phase| **phase == Phase::Checking).count(), 1, "{phases:?}");
        let trial = &run.trials[0];
        assert!(!matches!(trial.outcome, Outcome::Failed { .. }), "{:?}", trial.outcome);
        let promotion = trial.promotion.unwrap();
        println!("{promotion:?}");
        assert!(promotion.acknowledged > 0 && promotion.lost < promotion.acknowledged, "{promotion:?}");
        let load = trial.load.as_ref().unwrap().tpcc().unwrap();
        assert!(load.tpcc.ledger_records >= promotion.acknowledged);
        // The source is gone: whoever was asked is the replica.
        assert!(load.consistency.as_ref().unwrap().consistent, "{:?}", load.consistency);
    });
}

#[test]
fn a_row_that_breaks_a_condition_disqualifies_the_trial_and_names_the_condition() {
    needs!();
    on(None, |bench, server| {
        let breaks =
            "[batch]\nsql = \"UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1\"\nend = \"1s\"\n[trial]";
        let text = ONE.replace("[trial]", breaks).replace("repeats = 2", "repeats = 1");
        let (run, _) = measured(bench, &text, server);
        let Outcome::Disqualified { why } = &run.trials[0].outcome else {
            panic!("{:?}", run.trials[0].outcome)
        };
        assert!(why.contains("consistency condition 1 of TPC-C does not hold"), "{why}");
        assert!(why.contains("w_id 1: w_ytd is "), "{why}");
        assert!(!why.contains("condition 3"), "{why}");
        let found = run.trials[0].load.as_ref().unwrap().tpcc().unwrap().consistency.clone().unwrap();
        let broken: Vec<u8> = found.conditions.iter().filter(|of| !of.holds).map(|of| of.condition).collect();
        assert!(broken.contains(&1) && broken.contains(&8), "{broken:?}");
        let summary = summarize(&run);
        assert!(summary.arms[0].whole.is_none() && summary.arms[0].tpcc.is_none(), "it is in no figure");
        let again = ResultsDatabase::open(&bench.out()).unwrap().run().unwrap();
        assert_eq!(again.trials[0].outcome, run.trials[0].outcome);
    });
}
