//! The crash lab on a real server: power cuts under load, kills, canaries, and kept evidence.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ebbtide_catalog::Catalog;
use ebbtide_crash::record::{CrashRun, Cut, VerdictKind};
use ebbtide_crash::results::CrashDatabase;
use ebbtide_crash::summary::summarize;
use ebbtide_crash::{self as crash, CrashOptions, CutPlan, Event, KeptError};
use ebbtide_lab::experiment::Experiment;
use ebbtide_lab::run::RunError;
use ebbtide_load::Cancel;
use ebbtide_mysql::{Binary, Version};
use ebbtide_text::seed;
use serde_json::json;

use crate::harm::{self, Harm, unharmed};
use crate::support::{self, Bench, assert_results_are_documented, left_of, needs, options, server};
use ebbtide_testing::{repeats, schema::assert_documented};

/// Small tables and a small redo log: pages are written all the time.
const BASE: &str = r#"
title = "Cuts"
question = "Does the tester see what there is to see?"

[data]
rows = 4_000

# Units of 16 KiB below pages that are aligned to them: on units of 4 KiB MariaDB may fail to restore a torn first page of a file
# (findings/torn-first-page.md), once in some hundred cuts, whatever its settings. Canaries have volumes of their own.
[volumes]
data = "gp3:size=2GiB,twp=on"

[instance]
memory = "512MiB"
fs = "ext4-bigalloc"

[settings]
flush_method = "O_DIRECT"
buffer_pool_size = "32MiB"
redo_capacity = "8MiB"
log_bin = true
sync_binlog = 1

[load]
connections = 4

[trial]
repeats = 1
measure = "10s"

[warmup]
settle = "1s"
"#;

/// What a server may do that flushes its redo log once a second.
const CARELESS: [VerdictKind; 2] = [VerdictKind::LostCommits, VerdictKind::BinlogDisagrees];

fn crash_options(bench: &Bench) -> CrashOptions {
    let of = options(&bench.home(), &bench.out(), false);
    CrashOptions {
        home: of.home,
        server_named: None,
        out: of.out,
        resume: false,
        overrides: None,
        checkers: Some(2),
        command: "a test".into(),
        ebbtide: "test".into(),
    }
}

/// Its throughput is measured for as long as it takes to see that there is some.
fn parse(text: &str) -> Experiment {
    let mut experiment = support::parse(text);
    for arm in &mut experiment.arms {
        arm.measure_s = 2;
    }
    experiment
}

/// What is cut of an experiment on the server of these tests.
fn plan(text: &str) -> Result<CutPlan, RunError> {
    Ok(crash::plan(parse(text), &Catalog::builtin(), &server().unwrap())?)
}

pub(crate) fn run(bench: &Bench, text: &str, cancel: &Cancel) -> Result<CrashRun, RunError> {
    crash::run(plan(text)?, crash_options(bench), cancel, &mut |event| println!("{event:?}"))
}

fn of<'a>(run: &'a CrashRun, arm: &str) -> Vec<&'a Cut> {
    run.cuts.iter().filter(|cut| cut.arm == arm).collect()
}

#[test]
fn canaries_are_caught_a_durable_server_loses_nothing_and_a_careless_one_its_last_commits() {
    needs!();
    let bench = Bench::new();
    let text = format!(
        "{BASE}
[crash]
cuts = 8

[arms.durable.settings]
flush_log_at_trx_commit = 1

[arms.binlog-apart.settings]
flush_log_at_trx_commit = 1
[arms.binlog-apart.volumes]
binlog = \"gp3:size=1GiB,twp=on\"
# Without ddl, which MariaDB does not survive here: findings/unsynced-rename.md.
[arms.binlog-apart.crash]
moments = [\"random\", \"checkpoint\", \"doublewrite\", \"page\", \"redo\", \"binlog-rotation\", \"extension\"]

[arms.careless.settings]
flush_log_at_trx_commit = 0
[arms.careless.crash]
cuts = {careless}
",
        careless = repeats(4, 8)
    );
    let run = run(&bench, &text, &Cancel::default()).unwrap();
    let summary = summarize(&run);
    assert!(summary.valid, "{:?}", summary.void);
    for canary in ["answers-early", "ignores-flushes", "torn-pages"] {
        let cuts = of(&run, &format!("canary {canary}"));
        assert!(cuts.iter().any(|cut| cut.is_bad()), "{canary} was not caught: {cuts:?}");
    }
    let durable = unharmed(&bench, &run, "durable", &[]);
    assert_eq!(durable.len(), 8);
    for took in durable.iter().map(|cut| cut.took) {
        let cpu = took.cpu.unwrap();
        assert!(cpu.start > 0.0 && cpu.checker > 0.0, "a server's start takes tens of milliseconds: {cpu:?}");
        assert!(took.awaited.is_some(), "{took:?}");
    }
    for stint in &run.stints {
        let cpu = stint.cutting_cpu.unwrap();
        assert!(cpu.busy_s > 0.0 && cpu.tester_s > 0.0 && cpu.seconds <= stint.cutting_s, "{cpu:?}");
    }
    // By the binary log of the server that goes on, a copy would be called damaged in most cuts.
    assert_eq!(unharmed(&bench, &run, "binlog-apart", &[]).len(), 8);
    let careless = unharmed(&bench, &run, "careless", &CARELESS);
    let lost: Vec<_> = careless.iter().filter_map(|cut| cut.loss.as_ref()).collect();
    assert!(!lost.is_empty(), "{careless:?}");
    // The redo log goes out once a second, and a busy machine is seconds late with it.
    assert!(lost.iter().all(|loss| loss.transactions > 0 && loss.seconds < 30.0), "{lost:?}");
    assert_eq!(CrashDatabase::open(&bench.out()).unwrap().run().unwrap(), run, "the results are the run");
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
    CrashDatabase::open(&bench.out()).unwrap().finish(&summary).unwrap();
    assert_results_are_documented("crash", &bench.out());
    let home = harm_where_none_may_be_is_kept_and_named(&bench, &run);
    replay_finds_the_same(&home, &run);
    fs::rename(home, bench.home()).unwrap();
}

/// A canary's damage, as if nothing might be damaged: where its images are.
fn harm_where_none_may_be_is_kept_and_named(bench: &Bench, run: &CrashRun) -> PathBuf {
    let torn = of(run, "canary torn-pages");
    let Harm { home, text } = harm::find(bench, &torn, &[]).unwrap();
    let bad = torn.into_iter().find(|cut| cut.is_bad()).unwrap();
    let again = format!("ebbtide crash --replay {} --home {}", seed::hex(bad.seed), home.display());
    // Which file the page is in is chance: a table, or the system tablespace.
    for words in ["corrupt: ", "data/", " page ", &again] {
        assert!(text.contains(words), "{words} is missing: {text}");
    }
    assert!(!bench.home().exists(), "the next test would write over the images");
    home
}

/// An image of a bad cut is kept, judged again to the same verdict, and deleted.
fn replay_finds_the_same(home: &Path, run: &CrashRun) {
    let torn = of(run, "canary torn-pages").into_iter().find(|cut| cut.is_bad()).unwrap();
    assert!(torn.kept, "{torn:?}");
    let kept = crash::list_kept(home).unwrap();
    assert!(kept.iter().any(|one| one.seed == torn.seed), "{kept:?}");
    let replay = |given: Option<&Binary>| {
        crash::replay(home, torn.seed, given, &Catalog::builtin(), &Cancel::default())
    };
    let server = server().unwrap();
    assert_documented(&["crash", "--kept"], &json!(kept));
    for given in [None, Some(&server)] {
        let replayed = replay(given).unwrap();
        assert_eq!((replayed.then.seed, replayed.then.kinds()), (torn.seed, torn.kinds()));
        assert_eq!((replayed.recovered, replayed.same), (true, Some(true)), "{:?}", replayed.now);
        assert_eq!(replayed.server, server);
        assert_documented(&["crash", "--replay"], &json!(replayed));
    }
    a_recovered_server_is_left_up_until_it_is_ended(home, run);
    let version = Version { major: server.version.major + 1, ..server.version };
    let refused = replay(Some(&Binary { version, ..server.clone() })).unwrap_err();
    assert!(matches!(refused, KeptError::OtherServer { .. }) && !refused.is_environment(), "{refused}");
    for one in kept {
        crash::delete_kept(home, one.seed).unwrap();
    }
    let gone = replay(None).unwrap_err();
    assert!(matches!(gone, KeptError::NotKept { .. }), "{gone}");
    assert_eq!(left_of(home), Vec::<String>::new());
}

/// The loss of a kept cut is named by client and row, and its recovered server answers until it is ended.
fn a_recovered_server_is_left_up_until_it_is_ended(home: &Path, run: &CrashRun) {
    let early = of(run, "canary answers-early");
    let early = early.into_iter().find(|cut| cut.kept && cut.kinds() == [VerdictKind::LostCommits]);
    let Some(early) = early else { return println!("no kept image has lost commits alone") };
    let replayed = crash::replay(home, early.seed, None, &Catalog::builtin(), &Cancel::default()).unwrap();
    assert!(replayed.log.iter().any(|line| line.contains("ready for connections")), "{:?}", replayed.log);
    let shown = crash::page::replayed(&replayed, None).to_text(ebbtide_report::TextOptions::default());
    let lost = early.loss.as_ref().unwrap();
    let (client, acknowledged, recovered) = lost.clients[0];
    let row = shown.lines().find(|line| line.split_whitespace().next() == Some(&client.to_string())).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..3], [acknowledged.to_string(), recovered.to_string()], "{shown}");
    assert!(shown.contains("sbtest.ebbtide_history"), "{shown}");
    let (cancel, mut mounted) = (Cancel::default(), PathBuf::new());
    crash::keep_running(home, early.seed, None, &Catalog::builtin(), &cancel, &mut |left| {
        assert_eq!(left.server.session().unwrap().rows("SELECT 1").unwrap().len(), 1);
        assert!(left.data.join("ibdata1").exists(), "{}", left.data.display());
        mounted.clone_from(&left.data);
        cancel.cancel();
    })
    .unwrap();
    assert!(mounted.is_absolute() && !mounted.exists(), "{}", mounted.display());
}

#[test]
fn an_image_of_a_fetched_server_is_judged_again_by_that_server_and_by_no_other_version() {
    needs!();
    let Ok(fetched) = Binary::detect(Some(Path::new("mariadb-11.8"))) else {
        println!("SKIPPED: mariadb-11.8 is not here: ./dev servers mariadb-11.8");
        return;
    };
    let bench = Bench::new();
    let options = CrashOptions { server_named: Some("mariadb-11.8".into()), ..crash_options(&bench) };
    let text = format!("{BASE}\n[crash]\ncuts = 1\n");
    let plan = crash::plan(parse(&text), &Catalog::builtin(), &fetched).unwrap();
    let run = crash::run(plan, options, &Cancel::default(), &mut |event| println!("{event:?}")).unwrap();
    let kept = run.cuts.iter().find(|cut| cut.kept).unwrap();
    let replay = |given: Option<&Binary>| {
        crash::replay(&bench.home(), kept.seed, given, &Catalog::builtin(), &Cancel::default())
    };
    let replayed = replay(None).unwrap();
    assert_eq!(
        (replayed.recovered, replayed.same, &replayed.server.version),
        (true, Some(true), &fetched.version)
    );
    let own = server().unwrap();
    if (own.version.major, own.version.minor) != (fetched.version.major, fetched.version.minor) {
        let refused = replay(Some(&own)).unwrap_err();
        assert!(matches!(refused, KeptError::OtherServer { .. }), "{refused}");
    }
    for one in crash::list_kept(&bench.home()).unwrap() {
        assert!(one.program.is_some(), "{one:?}");
        crash::delete_kept(&bench.home(), one.seed).unwrap();
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn a_killed_server_keeps_what_only_the_page_cache_has() {
    needs!();
    let bench = Bench::new();
    let text = format!(
        "{BASE}
[crash]
cuts = 2
end = \"kill\"
moments = [\"random\", \"page\"]

[arms.each-second.settings]
flush_log_at_trx_commit = 2
"
    );
    let run = run(&bench, &text, &Cancel::default()).unwrap();
    assert_eq!(unharmed(&bench, &run, "each-second", &[]).len(), 2);
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn a_replica_by_gtid_goes_on_where_it_was_and_one_whose_position_is_not_synced_does_not() {
    needs!();
    let bench = Bench::new();
    let text = format!(
        "{BASE}
[crash]
cuts = {cuts}
role = \"replica\"
moments = [\"random\", \"redo\"]

[arms.gtid.crash]
replication = \"gtid\"

[arms.unsynced.settings]
sync_relay_log_info = 0
",
        cuts = repeats(2, 4)
    );
    let run = run(&bench, &text, &Cancel::default()).unwrap();
    let summary = summarize(&run);
    assert!(summary.valid, "{:?}", summary.void);
    assert_eq!(summary.canaries.len(), 4, "one of them is a replica");
    for cut in unharmed(&bench, &run, "gtid", &[]) {
        assert!(cut.resumed.as_ref().unwrap().caught_up_s.is_some(), "{cut:?}");
    }
    for cut in of(&run, "unsynced") {
        assert_eq!(cut.kinds(), [VerdictKind::ReplicationBroken], "{cut:?}");
        assert!(!cut.kept, "nobody could judge it again");
    }
    for stint in run.stints.iter().filter(|stint| ["gtid", "unsynced"].contains(&stint.arm.as_str())) {
        let throughput = stint.throughput.as_ref().unwrap();
        assert!(throughput.tps > 0.0 && throughput.p95_us.is_none(), "{throughput:?}");
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn a_replica_of_mysql_by_gtid_goes_on_and_one_that_needs_its_lost_relay_log_does_not() {
    needs!();
    let found = |name: &str| Binary::detect(Some(Path::new(name)));
    let (Ok(mysql), Ok(older)) = (found("mysql-9.7"), found("mysql-8.0")) else {
        println!("SKIPPED: mysql-9.7 or mysql-8.0 is not here: ./dev servers mysql-9.7 mysql-8.0");
        return;
    };
    let bench = Bench::new();
    let (cuts, older_cuts) = (repeats(2, 4), repeats(1, 2));
    // A MySQL 9.7 that feeds a replica needs more than 512 MiB.
    let text = format!(
        "{}
[crash]
cuts = {cuts}
role = \"replica\"
moments = [\"random\", \"redo\"]

[arms.gtid.crash]
replication = \"gtid\"

[arms.gtid.settings]
relay_log_recovery = true

[arms.older-source.crash]
replication = \"gtid\"
source = \"mysql-8.0\"
cuts = {older_cuts}

[arms.older-source.settings]
relay_log_recovery = true

[arms.position.settings]
relay_log_recovery = true
replica_parallel_workers = 1

[arms.unsynced.settings]
sync_relay_log = 0
",
        BASE.replace("512MiB", "1GiB")
    );
    let plan = crash::plan(parse(&text), &Catalog::builtin(), &mysql).unwrap();
    let options = CrashOptions { server_named: Some("mysql-9.7".into()), ..crash_options(&bench) };
    let run = crash::run(plan, options, &Cancel::default(), &mut |event| println!("{event:?}")).unwrap();
    for cut in &run.cuts {
        println!("{} {}: {:?} {:?}", cut.arm, cut.number, cut.verdicts, cut.resumed);
    }
    let summary = summarize(&run);
    assert!(summary.valid, "{:?}", summary.void);
    assert_eq!(summary.canaries.len(), 4, "one of them is a replica");
    let counts = ["gtid", "position", "older-source"].map(|arm| of(&run, arm).len());
    assert_eq!(counts, [cuts, cuts, older_cuts].map(|count| count as usize));
    let sources: Vec<_> =
        run.server.sources.iter().map(|(arm, source)| (arm.as_str(), &source.version)).collect();
    assert_eq!(sources, [("older-source", &older.text)], "the others have the replica's own version");
    let gtid = ["gtid", "older-source"].map(|arm| unharmed(&bench, &run, arm, &[]));
    for cut in gtid.concat() {
        assert!(cut.resumed.as_ref().unwrap().caught_up_s.is_some(), "{cut:?}");
    }
    // Without GTIDs the server may fail to recover its applier (error 1872), which is what the verdict says then.
    unharmed(&bench, &run, "position", &[VerdictKind::ReplicationBroken]);
    for cut in of(&run, "unsynced") {
        assert_eq!(cut.kinds(), [VerdictKind::ReplicationBroken], "{cut:?}");
    }
    for stint in run.stints.iter().filter(|stint| ["gtid", "unsynced"].contains(&stint.arm.as_str())) {
        let throughput = stint.throughput.as_ref().unwrap();
        assert!(throughput.tps > 0.0 && throughput.p95_us.is_none(), "{throughput:?}");
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

/// The server of these tests behind a program that crashes at each first start on an image.
fn crashes_at_each_first_start(bench: &Bench) -> Binary {
    let server = server().unwrap();
    let base = server.path.parent().and_then(Path::parent).unwrap();
    let own = bench.out().with_file_name("crashes");
    fs::create_dir_all(own.join("sbin")).unwrap();
    for files in ["share", "lib"] {
        symlink(base.join(files), own.join(files)).unwrap();
    }
    let path = own.join("sbin/server");
    let words = format!(
        "#!/bin/sh
checker=$(printf '%s' \"$*\" | grep -o 'check-[0-9]*' | head -n 1)
if [ -n \"$checker\" ] && ! rm \"$0.$checker\" 2>/dev/null; then
    : >\"$0.$checker\"
    kill -s SEGV $$
fi
exec {} \"$@\"
",
        server.path.display()
    );
    fs::write(&path, words).unwrap();
    // The server's own account runs it.
    for path in [&path, path.parent().unwrap(), own.parent().unwrap()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    Binary { path, ..server }
}

#[test]
fn a_server_that_crashes_at_its_first_start_is_judged_after_a_second_one() {
    needs!();
    let bench = Bench::new();
    let text = format!("{BASE}\n[crash]\ncuts = 2\n");
    let binary = crashes_at_each_first_start(&bench);
    let plan = crash::plan(parse(&text), &Catalog::builtin(), &binary).unwrap();
    let options = crash_options(&bench);
    let run = crash::run(plan, options, &Cancel::default(), &mut |event| println!("{event:?}")).unwrap();
    let cuts = unharmed(&bench, &run, "base", &[]);
    assert_eq!(cuts.len(), 2);
    for cut in cuts {
        let recovery = cut.recovery.as_ref().unwrap();
        let first = recovery.failed_start.as_ref().unwrap();
        assert!(first.why.contains("signal 11"), "{first:?}");
        assert!((recovery.seconds - cut.took.start).abs() < 1e-9, "the time of both starts: {cut:?}");
    }
    let summary = summarize(&run);
    assert!(summary.valid, "canaries are caught at a second start as well: {:?}", summary.void);
    assert!(summary.notes.iter().any(|note| note.text.contains("crashed at its first start")));
    assert_eq!(CrashDatabase::open(&bench.out()).unwrap().run().unwrap(), run, "the results are the run");
    CrashDatabase::open(&bench.out()).unwrap().finish(&summary).unwrap();
    assert_results_are_documented("crash", &bench.out());
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn a_run_that_is_cancelled_leaves_nothing_behind_and_is_gone_on_with() {
    needs!();
    let bench = Bench::new();
    let text = format!("{BASE}\n[crash]\ncuts = 6\n");
    let cancel = Cancel::default();
    let options = crash_options(&bench);
    let ended = crash::run(plan(&text).unwrap(), options.clone(), &cancel, &mut |event| {
        println!("{event:?}");
        if matches!(&event, Event::Judged { stint, judged: 3, .. } if stint.number == 4) {
            cancel.cancel();
        }
    });
    assert!(matches!(ended, Err(RunError::Cancelled { done: 3, of: 4 })), "{ended:?}");
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
    let before = CrashDatabase::open(&bench.out()).unwrap().run().unwrap();
    let known = of(&before, "base").len();
    assert!((3..6).contains(&known), "{known} cuts were judged before the end");

    let again = CrashOptions { resume: true, ..options };
    let mut planned = None;
    let run = crash::run(plan(&text).unwrap(), again.clone(), &Cancel::default(), &mut |event| {
        if let Event::Planned { stints, cuts, already } = event {
            planned = Some((stints, cuts, already));
        }
    })
    .unwrap();
    assert_eq!(planned, Some((1, 6 - u32::try_from(known).unwrap(), 3)));
    assert_eq!(run.cuts[..before.cuts.len()], before.cuts, "what was judged is not judged again");
    let mut numbers: Vec<u32> = of(&run, "base").iter().map(|cut| cut.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..6).collect::<Vec<_>>());
    let other = plan(&text.replace("cuts = 6", "cuts = 7")).unwrap();
    let refused = crash::run(other, again, &Cancel::default(), &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("cuts"), "{refused}");
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn an_experiment_without_cuts_is_refused_before_anything_runs() {
    let bench = Bench::new();
    let refused = run(&bench, BASE, &Cancel::default()).unwrap_err();
    assert!(refused.to_string().contains("give the file a section [crash]"), "{refused}");
    assert!(!bench.out().exists());
}
