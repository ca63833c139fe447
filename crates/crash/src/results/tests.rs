//! What goes in comes out, and a kill leaves whole cuts.

use super::*;
use crate::documented;
use crate::fixture::{PLAUSIBLE, clean, corrupt, header, page_found, plausible};
use crate::record::{Corruption, GainRun, Recovery, Verdict, VerdictKind};
use crate::summary::{Standing, has, summarize};

const SEED: u64 = 11;

fn filled() -> CrashRun {
    println!("seed {SEED}");
    plausible(&PLAUSIBLE, 40, SEED)
}

#[test]
fn a_run_is_read_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let run = filled();
    CrashDatabase::create(dir.path(), &run).unwrap();
    assert_eq!(CrashDatabase::open(dir.path()).unwrap().run().unwrap(), run);
}

#[test]
fn cuts_and_stints_go_in_one_by_one_and_are_there_without_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let run = filled();
    let mut store = CrashDatabase::create(dir.path(), &header(&PLAUSIBLE, 40)).unwrap();
    for (stint, cut) in run.stints.iter().zip(&run.cuts) {
        store.add_cut(cut).unwrap();
        store.add_stint(stint).unwrap();
    }
    drop(store);
    let found = CrashDatabase::open(dir.path()).unwrap().run().unwrap();
    assert_eq!(found.cuts, run.cuts[..run.stints.len()]);
    assert_eq!(found.stints, run.stints);
}

#[test]
fn a_cut_that_is_judged_again_takes_its_own_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = CrashDatabase::create(dir.path(), &header(&PLAUSIBLE, 40)).unwrap();
    for number in [0, 1, 0] {
        store.add_cut(&clean(PLAUSIBLE[0].name, number)).unwrap();
    }
    let numbers: Vec<u32> = store.run().unwrap().cuts.iter().map(|cut| cut.number).collect();
    assert_eq!(numbers, [1, 0]);
}

#[test]
fn a_cut_that_cannot_be_read_back_leaves_nothing_of_itself() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = CrashDatabase::create(dir.path(), &header(&PLAUSIBLE, 40)).unwrap();
    let mut bad = clean(PLAUSIBLE[0].name, 0);
    bad.recovery = bad.recovery.map(|recovery| Recovery { seconds: f64::NAN, ..recovery });
    assert!(matches!(store.add_cut(&bad), Err(ResultsError::Database { .. })));
    assert_eq!(store.run().unwrap().cuts, []);
}

#[test]
fn a_cut_is_found_by_its_seed() {
    let dir = tempfile::tempdir().unwrap();
    let run = filled();
    let store = CrashDatabase::create(dir.path(), &run).unwrap();
    let wanted =
        run.cuts.iter().find(|cut| cut.seed > u64::MAX / 2).expect("half of all seeds are that large");
    assert_eq!(store.cuts_of(wanted.seed).unwrap(), std::slice::from_ref(wanted));
    assert_eq!(store.cuts_of(1).unwrap(), []);
}

#[test]
fn columns_have_what_the_summary_has() {
    let dir = tempfile::tempdir().unwrap();
    let run = filled();
    let mut store = CrashDatabase::create(dir.path(), &run).unwrap();
    let summary = summarize(&run);
    store.finish(&summary).unwrap();
    let count = |sql: &str| store.database.query_row(sql, [], |row| row.get::<_, usize>(0)).unwrap();
    let lost = run.cuts.iter().filter(|cut| has(cut, VerdictKind::LostCommits)).count();
    assert_eq!(count("SELECT sum(lost_commits) FROM cut"), lost);
    let clean = run.cuts.iter().filter(|cut| Standing::of(cut) == Standing::Clean).count();
    assert_eq!(count("SELECT sum(clean) FROM cut"), clean);
    assert_eq!(count("SELECT sum(clean) FROM arm_result"), clean);
    let caught = summary.canaries.iter().filter(|canary| canary.caught.is_some()).count();
    assert_eq!(count("SELECT count(*) FROM arm_result WHERE canary IS NOT NULL AND caught"), caught);
    assert_eq!(count("SELECT count(*) FROM arm_result WHERE canary IS NOT NULL"), 3);
    assert_eq!(count("SELECT count(*) FROM verdict_share"), 4 * PLAUSIBLE.len());
}

#[test]
fn results_are_not_overwritten_nor_taken_for_another_commands() {
    let dir = tempfile::tempdir().unwrap();
    CrashDatabase::create(dir.path(), &filled()).unwrap();
    assert!(matches!(CrashDatabase::create(dir.path(), &filled()), Err(ResultsError::Exists { .. })));
    assert!(matches!(CrashDatabase::open(&dir.path().join("none")), Err(ResultsError::Missing { .. })));
    let other = tempfile::tempdir().unwrap();
    let lab = ebbtide_lab::summary::fixture::run(&["one"]);
    results::ResultsDatabase::create(other.path(), &lab).unwrap();
    assert!(matches!(CrashDatabase::open(other.path()), Err(ResultsError::OtherKind { .. })));
}

#[test]
fn the_same_run_goes_on_and_another_is_refused_with_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let before = filled();
    CrashDatabase::create(dir.path(), &before).unwrap();
    let mut now = header(&PLAUSIBLE, 40);
    now.command.push_str(" --resume");
    assert_eq!(CrashDatabase::resume(dir.path(), &now).unwrap().run().unwrap(), before);
    now.experiment.arms[1].crash.as_mut().unwrap().cuts = 41;
    let Err(ResultsError::Different { differences, .. }) = CrashDatabase::resume(dir.path(), &now) else {
        panic!("another run went on");
    };
    assert_eq!(differences, [format!("experiment.arms[{}].crash.cuts was 40, is 41", PLAUSIBLE[1].name)]);
}

/// What the lab would have measured.
fn gained() -> Gained {
    let run = ebbtide_lab::page::synthetic::curve(2, 10, SEED);
    let summary = ebbtide_lab::summary::summarize(&run);
    Gained { measured: Some(GainRun::of(&run, &summary)), failed: None }
}

#[test]
fn what_the_risk_buys_is_read_back_without_its_trials_and_the_last_one_counts() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = CrashDatabase::create(dir.path(), &filled()).unwrap();
    assert_eq!(store.run().unwrap().gain, None);
    store.set_gain(&Gained { measured: None, failed: Some("too early".into()) }).unwrap();
    store.set_gain(&gained()).unwrap();
    let found = store.run().unwrap().gain.unwrap();
    assert_eq!(found, gained());
    let measured = found.measured.unwrap();
    assert!(measured.run.trials.is_empty() && measured.summary.arms.len() == 16);
    let copy = tempfile::tempdir().unwrap();
    let whole = CrashRun { gain: Some(gained()), ..filled() };
    assert_eq!(CrashDatabase::create(copy.path(), &whole).unwrap().run().unwrap(), whole);
}

#[test]
fn another_schema_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = CrashDatabase::create(dir.path(), &filled()).unwrap();
    store.database.execute("UPDATE crash_run SET schema_version = 99", []).unwrap();
    assert!(matches!(CrashDatabase::open(dir.path()), Err(ResultsError::Schema { found: 99, .. })));
}

#[test]
fn messages_in_an_image_of_an_earlier_build_are_read() {
    let pages = Verdict::Corrupt { how: Corruption::Pages, messages: Vec::new(), pages: vec![page_found()] };
    let verdicts = [corrupt(), pages];
    let old = serde_json::to_string(&verdicts)
        .unwrap()
        .replace("\"messages\":", "\"said\":")
        .replace("\"message\":", "\"said\":");
    assert!(old.contains("\"said\":[\"[ERROR]") && old.contains("\"said\":\"Fail"), "{old}");
    assert_eq!(serde_json::from_str::<Vec<Verdict>>(&old).unwrap(), verdicts);
}

#[test]
fn the_json_holds_run_and_summary_and_replaces_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let run = filled();
    let mut store = CrashDatabase::create(dir.path(), &run).unwrap();
    let summary = summarize(&run);
    store.finish(&summary).unwrap();
    let second = Summary { findings: vec!["Looked at again.".into()], ..summary };
    store.finish(&second).unwrap();
    let results = read_json(dir.path()).unwrap();
    assert_eq!((results.run, results.summary), (run, second));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn the_queries_of_the_documentation_answer() {
    let dir = tempfile::tempdir().unwrap();
    let run = filled();
    let mut store = CrashDatabase::create(dir.path(), &run).unwrap();
    store.finish(&summarize(&run)).unwrap();
    let page = documented::page("crash.md");
    let queries = documented::queries(&page, &store.database);
    assert_eq!(queries.len(), 4);
    for (query, rows) in queries {
        assert!(rows > 1, "{rows} rows: {query}");
    }
}

#[test]
fn every_column_is_documented() {
    let dir = tempfile::tempdir().unwrap();
    let store = CrashDatabase::create(dir.path(), &header(&PLAUSIBLE, 40)).unwrap();
    let missing = documented::missing_columns(&documented::page("crash.md"), &store.database);
    assert!(missing.is_empty(), "not in docs/json/crash.md: {missing:?}");
}
