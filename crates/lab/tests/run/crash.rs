//! The crash lab on a real server: power cuts under load, kills, canaries, and kept evidence.

use ebbtide_catalog::Catalog;
use ebbtide_lab::crash::record::{CrashRun, Cut, VerdictKind};
use ebbtide_lab::crash::results::Store;
use ebbtide_lab::crash::summary::summarize;
use ebbtide_lab::crash::{self, CrashOptions};
use ebbtide_lab::run::RunError;
use ebbtide_load::Cancel;

use crate::support::{Bench, left_of, needs, options, parse};

/// Small tables and a small redo log: pages are written all the time.
const BASE: &str = r#"
title = "Cuts"
question = "Does the tester see what there is to see?"

[data]
rows = 4_000

[volumes]
data = "gp3:size=2GiB,twp=off"

[instance]
memory = "512MiB"
fs = "ext4"

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

fn run(bench: &Bench, text: &str, cancel: &Cancel) -> Result<CrashRun, RunError> {
    let of = options(&bench.home(), &bench.out(), false);
    let options = CrashOptions {
        home: of.home,
        server: of.server,
        out: of.out,
        catalog: of.catalog,
        overrides: None,
        checkers: Some(2),
        command: "a test".into(),
        ebbtide: "test".into(),
    };
    crash::run(parse(text), options, cancel, &mut |event| println!("{event:?}"))
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

[arms.careless.settings]
flush_log_at_trx_commit = 0
"
    );
    let run = run(&bench, &text, &Cancel::default()).unwrap();
    let summary = summarize(&run);
    assert!(summary.valid, "{:?}", summary.void);
    for canary in ["answers-early", "ignores-flushes", "torn-pages"] {
        let cuts = of(&run, &format!("canary {canary}"));
        assert!(cuts.iter().any(|cut| cut.is_bad()), "{canary} was not caught: {cuts:?}");
    }
    let durable = of(&run, "durable");
    assert_eq!(durable.len(), 8);
    for cut in durable {
        assert!(cut.verdicts.is_empty(), "{cut:?}");
        assert!(cut.recovery.is_some(), "{cut:?}");
    }
    let careless = of(&run, "careless");
    let lost: Vec<_> = careless.iter().filter_map(|cut| cut.loss.as_ref()).collect();
    assert!(!lost.is_empty(), "{careless:?}");
    // The redo log goes out once a second, and a busy machine is late with it.
    assert!(lost.iter().all(|loss| loss.transactions > 0 && loss.seconds < 3.0), "{lost:?}");
    assert!(careless.iter().all(|cut| !cut.kinds().contains(&VerdictKind::Corrupt)), "{careless:?}");
    assert_eq!(Store::open(&bench.out()).unwrap().run().unwrap(), run, "the results are the run");
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
    replay_says_the_same(&bench, &run);
}

/// An image of a bad cut is kept, judged again to the same verdict, and deleted.
fn replay_says_the_same(bench: &Bench, run: &CrashRun) {
    let torn = of(run, "canary torn-pages").into_iter().find(|cut| cut.is_bad()).unwrap();
    assert!(torn.kept, "{torn:?}");
    let kept = crash::list_kept(&bench.home()).unwrap();
    assert!(kept.iter().any(|one| one.seed == torn.seed), "{kept:?}");
    let server = options(&bench.home(), &bench.out(), false).server;
    let (then, now) =
        crash::replay(&bench.home(), torn.seed, &server, &Catalog::builtin(), &Cancel::default()).unwrap();
    assert_eq!((then.seed, then.kinds()), (torn.seed, torn.kinds()));
    assert_eq!(then.kinds(), now.kinds(), "{now:?}");
    for one in kept {
        crash::delete_kept(&bench.home(), one.seed).unwrap();
    }
    let gone = crash::replay(&bench.home(), torn.seed, &server, &Catalog::builtin(), &Cancel::default())
        .unwrap_err();
    assert!(matches!(gone, RunError::NotKept { .. }), "{gone}");
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn a_killed_server_keeps_what_only_the_page_cache_has() {
    needs!();
    let bench = Bench::new();
    let text = format!(
        "{BASE}
[crash]
cuts = 3
end = \"kill\"
moments = [\"random\", \"page\"]

[arms.each-second.settings]
flush_log_at_trx_commit = 2
"
    );
    let run = run(&bench, &text, &Cancel::default()).unwrap();
    let cuts = of(&run, "each-second");
    assert_eq!(cuts.len(), 3);
    for cut in cuts {
        assert!(cut.verdicts.is_empty(), "{cut:?}");
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn a_crash_run_that_is_cancelled_leaves_nothing_behind() {
    needs!();
    let bench = Bench::new();
    let cancel = Cancel::default();
    let from_elsewhere = cancel.clone();
    let text = format!("{BASE}\n[crash]\ncuts = 500\n");
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&bench, &text, &cancel));
        // Into the first canary's cuts, or its preparation: either has to end in order.
        std::thread::sleep(std::time::Duration::from_secs(12));
        from_elsewhere.cancel();
        running.join().unwrap()
    });
    assert!(matches!(ended, Err(RunError::Cancelled { .. })), "{ended:?}");
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn an_experiment_without_cuts_is_refused_before_anything_runs() {
    let bench = Bench::new();
    let refused = run(&bench, BASE, &Cancel::default()).unwrap_err();
    assert!(refused.to_string().contains("give the file a section [crash]"), "{refused}");
    assert!(!bench.out().exists());
}
