//! Backups under load on a real server: each is restored and checked, and one that is damaged is found.

use ebbtide_lab::page::page;
use ebbtide_lab::record::{Outcome, Trial};
use ebbtide_lab::results::ResultsDatabase;
use ebbtide_lab::summary::summarize;
use ebbtide_mysql::backup::{check_dump, check_physical};

use crate::support::{Bench, TWO_ARMS, assert_results_are_documented, left_of, needs, server};

const ARMS: &str = r#"
[settings]
buffer_pool_size = "64MiB"
redo_capacity = "32MiB"

[backup]
start = "1s"

[arms.snapshot.backup]
method = "snapshot"

[arms.snapshot-damaged.backup]
method = "snapshot"
damage = true

[arms.dump.backup]
method = "dump"
[arms.dump.volumes]
backup = "gp3:size=2GiB"

[arms.dump-damaged.backup]
method = "dump"
damage = true
[arms.dump-damaged.volumes]
backup = "gp3:size=2GiB"

[arms.physical.backup]
method = "physical"
[arms.physical.volumes]
backup = "gp3:size=2GiB"
"#;

/// Whatever else a busy machine may say about a trial.
fn backup_is_good(trial: &Trial) {
    assert!(!matches!(trial.outcome, Outcome::Failed { .. }), "{}: {:?}", trial.arm, trial.outcome);
    let backup = trial.backup.as_ref().unwrap();
    assert_eq!(backup.restored.failed, None, "{}", trial.arm);
    // The second of the load ends a little before that of the measurement, which begins when the lab hears of it.
    assert!(backup.began_s >= 0.9 && backup.ended_s >= backup.began_s, "{backup:?}");
    assert!(backup.bytes > 1 << 20, "{}: {} bytes", trial.arm, backup.bytes);
    let checked = backup.restored.checked.join("; ");
    for words in
        ["a server runs on it", "when the backup began", "CHECK TABLE calls 2 tables whole", "10,000 rows"]
    {
        assert!(checked.contains(words), "{}: {words}: {checked}", trial.arm);
    }
    let whole = checked.contains("with all blocks of the snapshot there (initialization none)");
    assert_eq!(whole, trial.arm == "snapshot", "{}: {checked}", trial.arm);
}

fn is_found_damaged(trial: &Trial) {
    let backup = trial.backup.as_ref().unwrap_or_else(|| panic!("{}: {:?}", trial.arm, trial.outcome));
    let why = backup.restored.failed.as_ref().expect("the check finds the damage");
    let Outcome::Disqualified { why: outcome } = &trial.outcome else { panic!("{:?}", trial.outcome) };
    assert!(outcome.contains("its backup cannot be used") && outcome.contains(why.as_str()), "{outcome}");
    println!("{}: {why}", trial.arm);
}

/// That the arm says which tool is missing, in the system's own words.
fn names_the_tool(trial: &Trial, tool: &str) {
    let Outcome::Failed { why, .. } = &trial.outcome else { panic!("{:?}", trial.outcome) };
    assert!(why.contains(tool) && why.contains("No such file or directory (os error 2)"), "{why}");
    println!("SKIPPED: {why}");
}

#[test]
fn backups_under_load_are_restored_and_checked_and_a_damaged_one_is_found() {
    needs!();
    let bench = Bench::new();
    let from = TWO_ARMS.find("[arms.one.settings]").unwrap();
    let run = bench.run_all(&format!("{}{ARMS}", &TWO_ARMS[..from]));
    let of = |arm: &str| run.trials.iter().find(|trial| trial.arm == arm).unwrap();
    backup_is_good(of("snapshot"));
    is_found_damaged(of("snapshot-damaged"));
    let server = server().unwrap();
    if check_dump(&server).is_ok() {
        backup_is_good(of("dump"));
        is_found_damaged(of("dump-damaged"));
        let found = of("dump-damaged").backup.as_ref().unwrap().restored.failed.clone().unwrap();
        assert!(found.contains("has 9999 rows, and each transaction leaves 10000"), "{found}");
    } else {
        names_the_tool(of("dump"), "dump");
    }
    if check_physical(&server).is_ok() {
        backup_is_good(of("physical"));
    } else {
        names_the_tool(of("physical"), "mariadb-backup");
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
    let summary = summarize(&run);
    let mut store = ResultsDatabase::open(&bench.out()).unwrap();
    assert_eq!(store.run().unwrap().trials, run.trials, "the database has all of it");
    store.finish(&summary).unwrap();
    assert_results_are_documented("run", &bench.out());
    let page = page(&run, &summary);
    for words in ["Backups", "snapshot of the source", "0 of 1 backup", "(initialization none)"] {
        assert!(page.contains(words), "the report has no {words}");
    }
}
