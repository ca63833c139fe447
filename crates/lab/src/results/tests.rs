//! What goes in comes out, and a kill leaves whole trials.

use proptest::prelude::*;

use super::*;
use crate::documented;
use crate::experiment::Role;
use crate::record::{BatchUse, HostFacts, Outcome, Promotion, ReplicaSecond, ServerSecond, VolumeSecond};
use crate::summary::fixture::{report, run, second, trial};
use crate::summary::summarize;

fn filled() -> LabRun {
    let mut run = run(&["small", "large"]);
    let mut first = trial("small", 0, &[100.0, 0.1 + 0.2, 120.5]);
    first.load = Some(report(1234.5678, 9999.0).into());
    first.seconds[1].server = None;
    first.seconds[2].server = Some(ServerSecond::default());
    first.seconds[2].volumes.insert(Role::Redo, Default::default());
    first.seconds[0].replica =
        Some(ReplicaSecond { lag_s: 0.25, lag_transactions: Some(17.0), behind_s: None });
    let slow = VolumeSecond { consumed_iops: 300.0, limited: 0.5, ..VolumeSecond::default() };
    first.seconds[0].replica_volumes = vec![
        [(Role::Data, slow), (Role::Relay, VolumeSecond::default())].into(),
        [(Role::Data, VolumeSecond { queue: 2.0, ..slow })].into(),
    ];
    first.batch = Some(BatchUse { began_s: Some(1.5), mean_s: 0.1, ..BatchUse::default() });
    first.promotion = Some(Promotion { took_s: 1.25, acknowledged: 9, lost: 2, ..Promotion::default() });
    let mut second = trial("large", 0, &[]);
    second.outcome = Outcome::Failed { why: "it died".into(), log: vec!["a".into(), "b".into()] };
    let mut third = trial("large", 1, &[5.0]);
    third.outcome = Outcome::Disqualified { why: "the generator lagged".into() };
    third.notes = vec!["busy".into()];
    run.trials = vec![first, second, third];
    run.overrides = Some(overrides(3_500));
    run
}

fn overrides(iops: u32) -> String {
    format!(
        "[[override]]\ntype = \"standard\"\nreason = \"why not\"\nsource = \"a test\"\ndate = \"2026-11-20\"\n\
         set.iops = {{ kind = \"fixed\", iops = {iops} }}\n"
    )
}

#[test]
fn a_run_is_read_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let run = filled();
    ResultsDatabase::create(dir.path(), &run).unwrap();
    assert_eq!(ResultsDatabase::open(dir.path()).unwrap().run().unwrap(), run);
}

fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), any::<f64>().prop_filter("a figure", |value| value.is_finite())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_figures_are_read_back_exactly(
        rates in prop::collection::vec(figure(), 1..4),
        credits in prop::option::of(figure()),
        server in prop::option::of(prop::option::of(figure())),
        errors in 0..u64::try_from(i64::MAX).unwrap(),
        words in ".*",
        took_s in figure(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut stored = trial("small", 3, &rates);
        stored.took_s = took_s;
        stored.notes = vec![words];
        let second = &mut stored.seconds[0];
        second.load.errors = errors;
        second.volumes.entry(Role::Data).or_default().credits = credits;
        second.server = server.map(|redo_wait| ServerSecond { redo_wait, ..ServerSecond::default() });
        let mut store = ResultsDatabase::create(dir.path(), &run(&["small"])).unwrap();
        store.add_trial(&stored).unwrap();
        prop_assert_eq!(&store.run().unwrap().trials, &[stored]);
    }
}

#[test]
fn a_trial_that_runs_again_takes_its_own_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = ResultsDatabase::create(dir.path(), &filled()).unwrap();
    store.add_trial(&trial("large", 0, &[7.0])).unwrap();
    let trials = store.run().unwrap().trials;
    assert_eq!(trials.len(), 3);
    assert_eq!(trials[2].seconds[0].load.tps, 7.0, "it ran last");
    let left: u32 = store.database.query_row("SELECT count(*) FROM second", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 5, "no second is left of the trial that it replaces");
}

#[test]
fn a_trial_that_cannot_be_stored_leaves_nothing_of_itself() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = ResultsDatabase::create(dir.path(), &filled()).unwrap();
    let mut bad = trial("small", 1, &[1.0, 2.0]);
    bad.seconds[1].load.tps = f64::NAN;
    assert!(matches!(store.add_trial(&bad), Err(ResultsError::Database { .. })));
    assert_eq!(store.run().unwrap(), filled());
}

#[test]
fn results_are_not_overwritten_by_another_run() {
    let dir = tempfile::tempdir().unwrap();
    ResultsDatabase::create(dir.path(), &filled()).unwrap();
    assert!(matches!(ResultsDatabase::create(dir.path(), &filled()), Err(ResultsError::Exists { .. })));
    assert!(matches!(ResultsDatabase::open(&dir.path().join("none")), Err(ResultsError::Missing { .. })));
}

#[test]
fn a_file_without_a_header_is_no_result() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(DATABASE), "").unwrap();
    assert!(matches!(ResultsDatabase::open(dir.path()), Err(ResultsError::Missing { .. })));
    ResultsDatabase::create(dir.path(), &filled()).unwrap();
}

#[test]
fn a_file_that_is_no_database_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(DATABASE), "not a database, but long enough to be looked at".repeat(40))
        .unwrap();
    assert!(matches!(ResultsDatabase::open(dir.path()), Err(ResultsError::Database { .. })));
}

#[test]
fn the_same_run_goes_on_and_another_is_refused_with_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let before = filled();
    ResultsDatabase::create(dir.path(), &before).unwrap();
    let mut now = LabRun { trials: Vec::new(), ..filled() };
    now.started_ns += 1;
    now.command.push_str(" --resume");
    now.host = HostFacts { load_before: 3.0, ..now.host };
    assert_eq!(ResultsDatabase::resume(dir.path(), &now).unwrap().run().unwrap(), before);

    now.experiment.region = Some("eu-west-1".into());
    now.experiment.arms[1].load.connections = 17;
    now.experiment.arms[0].volumes.insert(Role::Redo, "gp3:size=1GiB".into());
    now.server.version = "11.8".into();
    now.overrides = Some(overrides(4_000));
    let Err(ResultsError::Different { differences, .. }) = ResultsDatabase::resume(dir.path(), &now) else {
        panic!("another run went on");
    };
    let expected = [
        "experiment.arms[small].volumes.redo was absent, is 'gp3:size=1GiB'",
        "experiment.arms[large].load.connections was 16, is 17",
        "experiment.region was absent, is 'eu-west-1'",
        "server.version was '', is '11.8'",
        "catalogue.override[0].set.iops.iops was 3500, is 4000",
    ];
    assert_eq!(differences, expected);
}

#[test]
fn a_run_goes_on_with_the_same_overrides_however_they_are_written() {
    let dir = tempfile::tempdir().unwrap();
    ResultsDatabase::create(dir.path(), &filled()).unwrap();
    let resume =
        |overrides: Option<String>| ResultsDatabase::resume(dir.path(), &LabRun { overrides, ..filled() });
    resume(Some(format!("# the same\n{}", overrides(3_500).replace("why not", "why")))).unwrap();
    let Err(ResultsError::Different { differences, .. }) = resume(None) else {
        panic!("without its overrides it is another run");
    };
    assert_eq!(differences, ["catalogue.override was a list of 1, is absent"]);
}

#[test]
fn results_from_before_overrides_were_kept_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let run = LabRun { overrides: None, ..filled() };
    let store = ResultsDatabase::create(dir.path(), &run).unwrap();
    store.database.execute("ALTER TABLE run DROP COLUMN overrides", []).unwrap();
    assert_eq!(ResultsDatabase::open(dir.path()).unwrap().run().unwrap(), run);
}

#[test]
fn results_from_before_a_figure_of_the_server_was_read_are_read_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = filled();
    let reported = ServerSecond { doublewrite_batches: Some(2.5), ..ServerSecond::default() };
    run.trials[0].seconds[0].server = Some(reported);
    let store = ResultsDatabase::create(dir.path(), &run).unwrap();
    store.database.execute("ALTER TABLE second DROP COLUMN doublewrite_batches", []).unwrap();
    let read = ResultsDatabase::open(dir.path()).unwrap().run().unwrap();
    let batches = |run: &LabRun| -> Vec<Option<f64>> {
        let seconds = run.trials.iter().flat_map(|trial| &trial.seconds);
        seconds.filter_map(|second| Some(second.server?.doublewrite_batches)).collect()
    };
    assert!(batches(&run).iter().any(Option::is_some));
    assert!(batches(&read).iter().all(Option::is_none));
    assert_eq!(read.trials[0].seconds[0].load, run.trials[0].seconds[0].load);
}

#[test]
fn another_schema_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = ResultsDatabase::create(dir.path(), &filled()).unwrap();
    store.database.execute("UPDATE run SET schema_version = 99", []).unwrap();
    assert!(matches!(ResultsDatabase::open(dir.path()), Err(ResultsError::Schema { found: 99, .. })));
}

#[test]
fn the_json_holds_run_and_summary_and_replaces_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let run = filled();
    let mut store = ResultsDatabase::create(dir.path(), &run).unwrap();
    let summary = summarize(&run);
    store.finish(&summary).unwrap();
    let second = Summary { findings: vec!["Looked at again.".into()], ..summary };
    store.finish(&second).unwrap();
    let results = read_json(dir.path()).unwrap();
    assert_eq!((results.run, results.summary), (run, second));
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(files, 2, "nothing but the database and the JSON is left");
}

/// A finished run in a directory of its own.
fn ended(run: &LabRun) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    ResultsDatabase::create(dir.path(), run).unwrap().finish(&summarize(run)).unwrap();
    dir
}

#[test]
fn an_earlier_run_is_read_and_what_is_none_or_has_not_ended_is_refused() {
    let dir = ended(&filled());
    let earlier = Earlier::read(dir.path()).unwrap();
    assert_eq!((earlier.run, earlier.dir.as_path()), (filled(), dir.path()));
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Earlier::read(empty.path()), Err(ResultsError::Missing { .. })));
    let file = dir.path().join(JSON);
    assert!(matches!(Earlier::read(&file), Err(ResultsError::Missing { .. })), "a file is no directory");
    ResultsDatabase::create(empty.path(), &filled()).unwrap();
    assert!(matches!(Earlier::read(empty.path()), Err(ResultsError::Unended { .. })));
}

#[test]
fn only_a_repeat_of_a_run_may_be_held_against_it() {
    type Change = fn(&mut LabRun);
    let dir = ended(&filled());
    let earlier = Earlier::read(dir.path()).unwrap();
    let refused = |change: Change| {
        let mut now = filled();
        change(&mut now);
        earlier.refuse_other(&now.experiment, &now.server).map_err(|error| error.to_string())
    };
    assert_eq!(refused(|_| ()), Ok(()));
    let repeat = |now: &mut LabRun| {
        now.experiment.seed += 1;
        now.experiment.trial.repeats += 2;
        now.experiment.title = "The same in other words".into();
        now.host.cpus += 1;
        now.server.path = "/opt/mariadbd".into();
    };
    assert_eq!(refused(repeat), Ok(()));
    let program = |now: &mut LabRun| now.server.version = "/opt/mariadbd  Ver 11.8.3".into();
    assert!(refused(program).unwrap_err().contains("server.version was '', is '11.8.3'"));
    let others: [(&str, Change); 5] = [
        ("experiment.name was 'test', is 'mine'", |now| now.experiment.name = "mine".into()),
        ("experiment.data.rows was 1000, is 9", |now| now.experiment.data.rows = 9),
        ("experiment.arms[large].measure_s was 60, is 9", |now| now.experiment.arms[1].measure_s = 9),
        ("experiment.arms[large].instance.divided_by was 1, is 8", |now| {
            now.experiment.arms[1].instance.divided_by = 8;
        }),
        ("experiment.arms was a list of 2, is a list of 1", |now| now.experiment.arms.truncate(1)),
    ];
    for (text, change) in others {
        let error = refused(change).unwrap_err();
        assert!(error.contains(text), "'{text}' is not in: {error}");
    }
}

#[test]
fn a_run_is_not_held_against_itself_nor_against_a_copy() {
    let mut later = filled();
    later.started_ns += 1;
    let dirs = [ended(&filled()), ended(&later), ended(&filled())];
    let runs: Vec<_> = dirs.iter().map(|dir| Earlier::read(dir.path()).unwrap()).collect();
    Earlier::refuse_repeated(&runs[..2]).unwrap();
    let error = Earlier::refuse_repeated(&runs).unwrap_err();
    assert!(
        matches!(&error, ResultsError::SameRun { dir, other } if dir == dirs[0].path() && other == dirs[2].path())
    );
}

#[test]
fn the_queries_of_the_documentation_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = run(&["small", "large"]);
    let rates = [100.0, 110.0, 10.0, 105.0];
    run.trials = vec![trial("small", 0, &rates), trial("large", 0, &rates)];
    let mut store = ResultsDatabase::create(dir.path(), &run).unwrap();
    store.finish(&summarize(&run)).unwrap();
    let page = documented::page("run.md");
    let queries = documented::queries(&page, &store.database);
    assert_eq!(queries.len(), 3);
    for (query, rows) in queries {
        assert_eq!(rows, 2, "{query}");
    }
}

#[test]
fn every_column_is_documented() {
    let dir = tempfile::tempdir().unwrap();
    let store = ResultsDatabase::create(dir.path(), &filled()).unwrap();
    let mut missing = documented::missing_columns(&documented::page("run.md"), &store.database);
    let inside_a_range = [".p95_us", ".p99_us"];
    missing.retain(|column| !inside_a_range.iter().any(|inside| column.ends_with(inside)));
    assert!(missing.is_empty(), "not in docs/json/run.md: {missing:?}");
}

#[test]
fn a_second_is_found_by_plain_sql() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = run(&["small"]);
    run.trials = vec![trial("small", 0, &[100.0, 200.0])];
    run.trials[0].seconds.push(second(3, 300.0));
    let store = ResultsDatabase::create(dir.path(), &run).unwrap();
    let mean: f64 = store
        .database
        .query_row("SELECT avg(tps) FROM trial_second WHERE arm = 'small' AND t_s > 1", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mean, 250.0);
}
