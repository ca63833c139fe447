//! Trials from their data to their record.

use std::sync::Mutex;

use ebbtide_lab::experiment::Role;
use ebbtide_lab::record::{Outcome, Trial};
use ebbtide_lab::results::ResultsDatabase;
use ebbtide_lab::run::{self, Event, Phase};
use ebbtide_lab::summary::summarize;
use ebbtide_load::Cancel;

use crate::support::{Bench, TWO_ARMS, assert_results_are_documented, left_of, needs};
use ebbtide_testing::schema::assert_documented;

fn show(trial: &Trial) {
    println!("{}: {:?} {:?} took {:.1} s", trial.arm, trial.outcome, trial.notes, trial.took_s);
    for second in &trial.seconds {
        println!("{second:?}");
    }
    assert!(!matches!(trial.outcome, Outcome::Failed { .. }), "{:?}", trial.outcome);
}

#[test]
fn two_arms_are_measured_second_by_second_and_nothing_is_left() {
    needs!();
    let bench = Bench::new();
    let run = bench.run_all(TWO_ARMS);
    assert_eq!(run.trials.len(), 2);
    let round_trip_us = run.host.local_round_trip_us.unwrap();
    assert!((0.5..1e6).contains(&round_trip_us), "{round_trip_us} us");
    for trial in &run.trials {
        show(trial);
        let ends: Vec<f64> = trial.seconds.iter().map(|second| second.t_s.round()).collect();
        assert_eq!(ends, [1.0, 2.0, 3.0, 4.0]);
        let load = trial.load.as_ref().unwrap();
        assert!(load.tps() > 1.0 && load.samples().is_empty(), "{}", load.tps());
        let events: f64 = trial.seconds.iter().map(|second| second.load.tps).sum();
        assert!((events / load.totals().events as f64 - 1.0).abs() < 0.02, "{events} of {:?}", load.totals());
        for second in &trial.seconds {
            let host = &second.host;
            assert!(host.server_cpus > 0.0 && host.load_cpus > 0.0, "{host:?}");
            assert!(host.busy_cpus + 0.1 > host.server_cpus, "{host:?}");
            assert!(host.memory_bytes > 1e6 && host.memory_bytes < f64::from(512 << 20), "{host:?}");
        }
        // A server that writes its log once a second can do so just before and just after one of ours.
        let written =
            trial.seconds.iter().filter(|second| second.volumes[&Role::Data].write_iops > 0.0).count();
        assert!(written >= 3, "the volume was written in {written} of 4 seconds");
        let asked = trial.seconds.iter().filter(|second| second.server.is_some()).count();
        assert!(asked >= 3, "the server answered in {asked} of 4 seconds");
        let cost: f64 = trial.seconds.iter().map(|second| second.host.sampler_cpus).sum::<f64>() / 4.0;
        let busy: f64 = trial.seconds.iter().map(|second| second.host.busy_cpus).sum::<f64>() / 4.0;
        assert!(cost > 0.0 && cost < 0.05 * busy, "sampling took {cost:.4} of {busy:.2} busy processors");
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
    ResultsDatabase::open(&bench.out()).unwrap().finish(&summarize(&run)).unwrap();
    assert_results_are_documented("run", &bench.out());
    let written = std::fs::read_to_string(bench.out().join("results.json")).unwrap();
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["run"]["host"]["local_round_trip_us"], round_trip_us);
    let kept = run::list_prepared(&bench.home()).unwrap();
    assert_documented(&["run", "--prepared"], &serde_json::json!(kept));
    assert!(
        kept.iter().any(|kept| kept.tables == 2 && kept.rows == 10_000 && kept.damage.is_none()),
        "{kept:?}"
    );
}

#[test]
fn limits_hold_from_the_settling_on_and_logs_and_a_batch_job_have_their_places() {
    needs!();
    let bench = Bench::new();
    let text = TWO_ARMS
        .replace(
            "data = \"gp3:size=2GiB\"",
            "data = \"gp2:size=4GiB,credits=0%\"\nredo = \"gp3:size=1GiB\"\nbinlog = \"gp3:size=1GiB\"",
        )
        .replace(
            "[trial]",
            "[batch]\nstart = \"1s\"\nsql = \"SELECT SUM(LENGTH(c)) FROM {table}\"\n\n[trial]",
        )
        .replace(
            "[arms.one.settings]",
            "[arms.one.settings]\nlog_bin = true\nsync_binlog = 1\nflush_method = \"O_DIRECT\"",
        )
        .replace(
            "[arms.two.settings]",
            "[arms.two.volumes]\nredo = \"none\"\nbinlog = \"none\"\n\"redo+binlog\" = \"gp3:size=1GiB\"\n\
             [arms.two.settings]\nlog_bin = true\nsync_binlog = 1",
        );
    let ticks = Mutex::new(Vec::new());
    let mut on_event = |event: Event| {
        if let Event::Tick { trial, tick } = event {
            ticks.lock().unwrap().push((trial.arm, tick));
        }
    };
    let run = bench.run(&text, false, &Cancel::default(), &mut on_event).unwrap();
    let ticks = ticks.into_inner().unwrap();
    let phases: Vec<Phase> = ticks.iter().take(6).map(|(_, tick)| tick.phase).collect();
    use Phase::{LeadIn, Measuring, Settling};
    assert_eq!(phases, [LeadIn, Settling, Measuring, Measuring, Measuring, Measuring]);
    let credits = |tick: usize| ticks[tick].1.credits.unwrap();
    assert!(credits(0) > 0.5 && credits(1) < 0.01, "full while leading in, and then the spec's: {ticks:?}");
    for trial in &run.trials {
        show(trial);
        for second in &trial.seconds {
            // 100 IOPS for a volume of 4 GiB whose credits are spent; a second holds what came before it.
            let data = second.volumes[&Role::Data];
            assert!(data.consumed_iops < 130.0, "{data:?}");
        }
        let roles: Vec<Role> = trial.seconds[0].volumes.keys().copied().collect();
        let logs: &[Role] = if trial.arm == "one" { &[Role::Redo, Role::Binlog] } else { &[Role::Logs] };
        assert_eq!(roles[1..], *logs, "{}", trial.arm);
        let written = |role| trial.seconds.iter().map(|second| second.volumes[role].write_iops).sum::<f64>();
        assert!(logs.iter().all(|role| written(role) > 0.0), "{}", trial.arm);
        let batch = trial.batch.as_ref().unwrap();
        assert!(batch.began_s.is_some_and(|began| (0.9..4.0).contains(&began)), "{batch:?}");
        assert!(batch.statements > 0 && batch.errors == 0 && batch.max_s >= batch.mean_s, "{batch:?}");
    }
}

#[test]
fn a_volume_that_runs_full_fails_its_trial_as_what_it_is() {
    needs!();
    let bench = Bench::new();
    // A statement that adds two million rows, on a volume that redo log and temporary files almost fill.
    // Its rows come from nowhere that the load holds locks on.
    let rows = "information_schema.collations";
    let more = format!(
        "INSERT INTO {{table}} (k, c, pad) SELECT 1, REPEAT('c', 120), REPEAT('p', 60) FROM {rows} a, {rows} b, {rows} d \
         LIMIT 2000000"
    );
    let text = TWO_ARMS
        .replace("gp3:size=2GiB", "gp3:size=1GiB,throughput=750")
        .replace("memory = \"512MiB\"", "memory = \"512MiB\"\ndivided_by = 2")
        .replace("measure = \"10s\"", "measure = \"40s\"")
        .replace("[trial]", &format!("[batch]\nstart = \"0s\"\nsql = \"{more}\"\n\n[trial]"))
        .replace("redo_capacity = \"64MiB\"", "redo_capacity = \"200MiB\"")
        .replace("redo_capacity = \"16MiB\"", "redo_capacity = \"200MiB\"")
        .replace("flush_log", "\"raw.innodb_temp_data_file_path\" = \"ibtmp1:160M:autoextend\"\nflush_log");
    let run = bench.run_all(&text);
    for trial in &run.trials {
        let Outcome::Failed { why, .. } = &trial.outcome else { panic!("{:?}", trial.outcome) };
        assert!(why.starts_with("volume full: the data volume of 512 MiB"), "{why}");
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}
