//! TPC-C as the load of the crash lab: its marks are a ledger, and its consistency conditions a verdict.

use ebbtide_crash::record::VerdictKind;
use ebbtide_crash::summary::summarize;
use ebbtide_load::Cancel;

use crate::cuts::run;
use crate::harm::unharmed;
use crate::support::{Bench, left_of, needs};
use ebbtide_testing::repeats;

const BASE: &str = r#"
title = "Cuts under TPC-C"

[data]
warehouses = 1

# Units of 16 KiB below pages that are aligned to them: on units of 4 KiB MariaDB may fail to restore a torn first page of a file
# (findings/torn-first-page.md), once in some hundred cuts, whatever its settings. Canaries have volumes of their own.
[volumes]
data = "gp3:size=4GiB,twp=on"

[instance]
memory = "768MiB"
fs = "ext4-bigalloc"

[settings]
flush_method = "O_DIRECT"
buffer_pool_size = "64MiB"
redo_capacity = "32MiB"
log_bin = true
sync_binlog = 1

[load]
workload = "tpcc"
connections = 8

[trial]
repeats = 1
measure = "10s"

[warmup]
settle = "1s"

[crash]
cuts = 4
keep = 1
"#;

#[test]
fn tpcc_is_whole_after_cuts_and_a_careless_server_loses_its_last_transactions() {
    needs!();
    let bench = Bench::new();
    let cuts = repeats(2, 4);
    let text = format!(
        "{BASE}
[arms.durable.settings]
flush_log_at_trx_commit = 1
[arms.durable.load]
statements = \"batched\"
[arms.durable.crash]
cuts = {cuts}
[arms.careless.settings]
flush_log_at_trx_commit = 2
sync_binlog = 0
"
    );
    let run = run(&bench, &text, &Cancel::default()).unwrap();
    for cut in &run.cuts {
        println!("{} {}: {:?} {:?} {:?}", cut.arm, cut.number, cut.verdicts, cut.loss, cut.took);
    }
    let summary = summarize(&run);
    assert!(summary.valid, "a canary was not caught: {:?}", summary.void);
    assert_eq!(unharmed(&bench, &run, "durable", &[]).len(), cuts as usize);
    // What is there of a lost end is whole.
    let careless = [VerdictKind::LostCommits, VerdictKind::BinlogDisagrees];
    let careless = unharmed(&bench, &run, "careless", &careless);
    let lost: Vec<_> = careless.into_iter().filter_map(|cut| cut.loss.as_ref()).collect();
    assert!(
        lost.iter().any(|loss| loss.transactions > 0),
        "flushed once a second, and nothing is lost: {lost:?}"
    );
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn a_replica_under_tpcc_goes_on_by_gtid_and_the_conditions_hold_on_it() {
    needs!();
    let bench = Bench::new();
    let cuts = repeats(2, 3);
    let moments = format!("cuts = {cuts}\nrole = \"replica\"\nmoments = [\"random\", \"redo\"]");
    let text = BASE.replace("cuts = 4", &moments);
    let text = format!(
        "{text}\n[arms.gtid.crash]\nreplication = \"gtid\"\n[arms.unsynced.settings]\nsync_relay_log_info = 0\n"
    );
    let run = run(&bench, &text, &Cancel::default()).unwrap();
    for cut in &run.cuts {
        println!("{} {}: {:?} {:?} {:?}", cut.arm, cut.number, cut.verdicts, cut.resumed, cut.took);
    }
    let summary = summarize(&run);
    assert!(summary.valid, "{:?}", summary.void);
    let cuts_of = |arm: &'static str| run.cuts.iter().filter(move |cut| cut.arm == arm);
    assert_eq!(["gtid", "unsynced"].map(|arm| cuts_of(arm).count()), [cuts as usize; 2]);
    for cut in unharmed(&bench, &run, "gtid", &[]) {
        assert!(cut.resumed.as_ref().unwrap().caught_up_s.is_some(), "{cut:?}");
    }
    for cut in cuts_of("unsynced") {
        assert_eq!(cut.kinds(), [VerdictKind::ReplicationBroken], "{cut:?}");
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}
