//! Claims and backups on runs that are known: what a run says about them, and what the report shows.

use std::collections::BTreeMap;

use ebbtide_analysis::claim::{Claim, ClaimMetric, ClaimPhase, ClaimTest, ClaimVerdict, Document};

use super::fixture::{run, trial};
use super::{Around, summarize};
use crate::experiment::{BackedUp, BackupMethod, BackupPlan, LeftOut, Role};
use crate::page::page;
use crate::record::{BackupUse, BackupVolume, LabRun, Outcome, Restored, Trial};

/// 20 s before a backup, 15 s with it and 25 s after it.
fn rates(before: f64, during: f64, after: f64) -> Vec<f64> {
    // Never quite even, as no rate is.
    let wobble = |rate: f64, n: usize| (0..n).map(move |i| rate * if i % 2 == 0 { 1.01 } else { 0.99 });
    wobble(before, 20).chain(wobble(during, 15)).chain(wobble(after, 25)).collect()
}

fn backed_up(arm: &str, repeat: u32, during: f64, failed: Option<&str>) -> Trial {
    let volume = |before, after| BackupVolume {
        read_bytes: 200 << 20,
        written_bytes: 50 << 20,
        consumed_ops: 4_000,
        credits_before: before,
        credits_after: after,
    };
    let backup = BackupUse {
        method: BackupMethod::Physical,
        of: BackedUp::Source,
        began_s: 20.0,
        ended_s: 34.5,
        bytes: 120 << 20,
        volumes: BTreeMap::from([
            (Role::Data, volume(Some(0.5), Some(0.25))),
            (Role::Backup, volume(Some(1.0), Some(0.9))),
        ]),
        restored: Restored {
            took_s: 3.0,
            checked: vec!["CHECK TABLE calls 2 tables whole".into()],
            failed: failed.map(str::to_owned),
        },
    };
    Trial { backup: Some(backup), ..trial(arm, repeat, &rates(100.0, during, 100.0)) }
}

/// Two arms of three trials: during the backup `one` loses 40%, `two` nothing.
fn backups() -> LabRun {
    let mut run = run(&["one", "two"]);
    let plan =
        BackupPlan { method: BackupMethod::Physical, of: BackedUp::Source, start_s: 20, damage: false };
    run.experiment.arms.iter_mut().for_each(|arm| arm.backup = Some(plan));
    for repeat in 0..3 {
        run.trials.push(backed_up("one", repeat, 60.0, None));
        run.trials.push(backed_up("two", repeat, 100.0, None));
    }
    run
}

/// "A backup takes nothing from the load": at least 0.9 of the rate before it.
fn free(arm: &str) -> Claim {
    Claim {
        id: format!("free-{arm}"),
        document: Document::Whitepaper,
        place: "backups".into(),
        says: "A backup takes nothing from the load.".into(),
        printed: String::new(),
        figures: BTreeMap::new(),
        test: Some(ClaimTest {
            metric: ClaimMetric::Tps,
            arm: arm.into(),
            over: Some(arm.into()),
            during: vec![ClaimPhase::DuringBackup],
            over_during: vec![ClaimPhase::BeforeBackup],
            at_least: Some(0.9),
            at_most: None,
        }),
        contradicted: None,
        untestable: None,
    }
}

#[test]
fn the_parts_around_a_backup_have_their_own_rates_with_intervals() {
    let summary = summarize(&backups());
    let rate = |arm: usize, around: Around| {
        let part = summary.arms[arm].regimes.iter().find(|part| part.regime.backup == Some(around)).unwrap();
        assert!(part.figures.tps.interval.is_some());
        part.figures.tps.mean
    };
    for (around, expected) in [(Around::Before, 100.0), (Around::During, 60.0), (Around::After, 100.0)] {
        assert!((rate(0, around) / expected - 1.0).abs() < 0.02, "{around:?}: {}", rate(0, around));
    }
    assert!((rate(1, Around::During) / 100.0 - 1.0).abs() < 0.02);
    let backup = summary.arms[0].backup.unwrap();
    assert_eq!((backup.took_s.median, backup.bytes.median), (14.5, f64::from(120 << 20)));
    assert_eq!(backup.read_bytes.median, f64::from(200 << 20), "the target's are not among them");
    assert!((backup.credits_used.unwrap().median - 0.25).abs() < 1e-9);
    assert!((backup.target_credits_used.unwrap().median - 0.1).abs() < 1e-9);
}

#[test]
fn a_claim_that_the_planted_rates_deny_is_not_reproduced_and_its_twin_is() {
    let mut run = backups();
    run.experiment.claims = vec![free("one"), free("two")];
    let summary = summarize(&run);
    let ClaimVerdict::NotReproduced { why } = &summary.claims[0].verdict else {
        panic!("{:?}", summary.claims[0])
    };
    for words in
        ["measured 0.60", "0.90 at least", "during-backup", "waits for the volume's IOPS limit", "I/Os"]
    {
        assert!(why.contains(words), "{words}: {why}");
    }
    let ClaimVerdict::Reproduced { why } = &summary.claims[1].verdict else {
        panic!("{:?}", summary.claims[1])
    };
    assert!(why.contains("waits for") && why.contains("I/Os and"), "the reason has the measured I/O: {why}");
    let page = page(&run, &summary);
    for words in
        ["What the documents say", "A backup takes nothing from the load.", "not reproduced", "Backups"]
    {
        assert!(page.contains(words), "the report has no {words}");
    }
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<super::Summary>(&text).unwrap(), summary);
}

#[test]
fn an_arm_whose_tool_is_missing_is_a_hole_with_its_words_and_so_is_its_claim() {
    let mut run = backups();
    run.experiment.claims = vec![free("one")];
    let why = "the backup was not made: mariadb-backup: No such file or directory (os error 2)";
    for trial in run.trials.iter_mut().filter(|trial| trial.arm == "one") {
        trial.outcome = Outcome::Failed { why: why.into(), log: Vec::new() };
        trial.backup = None;
        trial.seconds.clear();
    }
    let summary = summarize(&run);
    let ClaimVerdict::NotMeasured { why: hole } = &summary.claims[0].verdict else {
        panic!("{:?}", summary.claims)
    };
    assert!(hole.contains("'one' was not measured: its trials failed"), "{hole}");
    let page = page(&run, &summary);
    assert!(
        page.contains("none was made") && page.contains("mariadb-backup: No such file"),
        "the hole is shown"
    );
}

#[test]
fn an_arm_that_was_left_out_is_named_in_the_report_and_is_why_its_claim_was_not_measured() {
    let mut run = backups();
    let absent = Claim { id: "absent".into(), ..free("three") };
    run.experiment.claims = vec![absent];
    let why = "unknown variable 'rpl_semi_sync_master_enabled=ON'".to_owned();
    run.experiment.left_out = vec![LeftOut { arm: "three".into(), why, optional: false }];
    let summary = summarize(&run);
    let words = "arm 'three' is left out: unknown variable 'rpl_semi_sync_master_enabled=ON'";
    assert_eq!(summary.claims[0].verdict, ClaimVerdict::NotMeasured { why: words.into() });
    assert!(
        summary.notes[0].text.contains("Arm 'three' is left out: unknown variable"),
        "{:?}",
        summary.notes
    );
    assert!(page(&run, &summary).contains("is left out: unknown variable"), "the report shows the hole");
    run.experiment.left_out.clear();
    run.experiment.left_to_full = vec!["three".into()];
    let verdict = &summarize(&run).claims[0].verdict;
    assert_eq!(*verdict, ClaimVerdict::OnlyInFull { why: "run ebbtide run test --arms three".into() });
}

#[test]
fn a_backup_that_fails_its_check_is_shown_with_the_reason() {
    let mut run = backups();
    let bad = backed_up("one", 0, 60.0, Some("sbtest1 has 9 rows"));
    run.trials[0] =
        Trial { outcome: Outcome::Disqualified { why: "its backup cannot be used".into() }, ..bad };
    let page = page(&run, &summarize(&run));
    assert!(page.contains("2 of 3 backups") && page.contains("sbtest1 has 9 rows"), "the reason is shown");
}

#[test]
fn a_figure_that_is_no_rate_has_the_range_of_the_trials() {
    let mut run = backups();
    let test = free("one").test.unwrap();
    let test = ClaimTest {
        metric: ClaimMetric::ReadMs,
        over: None,
        during: Vec::new(),
        over_during: Vec::new(),
        at_least: None,
        at_most: Some(1.0),
        ..test
    };
    run.experiment.claims = vec![Claim { test: Some(test), ..free("one") }];
    for second in run.trials.iter_mut().filter(|trial| trial.repeat == 2).flat_map(|trial| &mut trial.seconds)
    {
        second.volumes.get_mut(&Role::Data).unwrap().read_us = 1200.0;
    }
    let judged = summarize(&run).claims.remove(0);
    let ours = judged.ours.unwrap();
    assert!(ours.low.unwrap() < 0.95 && ours.high.unwrap() > 1.15, "{ours:?}");
    assert!(matches!(judged.verdict, ClaimVerdict::Undecided { .. }), "{:?}", judged.verdict);
}
