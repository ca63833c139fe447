//! Counting, bounds, canaries and words on runs that are known.

use ebbtide_lab::experiment::Moment;

use ebbtide_analysis::claim::{Claim, ClaimMetric, ClaimTest, ClaimVerdict, Document};

use super::*;
use crate::fixture::{self, PLAUSIBLE, Shape, clean, corrupt, header, plausible};
use crate::record::{Corruption, Failure, Loss, PageFound, Verdict};

const SEED: u64 = 11;

/// Two arms and the canaries, each of which is caught by its third cut.
fn caught() -> CrashRun {
    let shapes: Vec<Shape> = PLAUSIBLE[..2].iter().chain(&PLAUSIBLE[6..]).copied().collect();
    let mut run = header(&shapes, 10);
    for (index, arm) in shapes[2..].iter().enumerate() {
        for number in 0..2 {
            run.cuts.push(clean(arm.name, number));
        }
        let mut third = clean(arm.name, 2);
        third.verdicts = vec![if index == 2 { corrupt() } else { Verdict::LostCommits }];
        run.cuts.push(third);
    }
    run
}

/// The name of the first arm that is asked about.
fn first() -> &'static str {
    PLAUSIBLE[0].name
}

fn unverified() -> Verdict {
    Verdict::Unverified { why: "no tool".into(), log: Vec::new() }
}

#[test]
fn a_run_whose_canaries_were_caught_is_valid() {
    let summary = summarize(&caught());
    assert!(summary.valid, "{:?}", summary.void);
    let caught: Vec<_> = summary.canaries.iter().map(|canary| canary.caught).collect();
    assert_eq!(caught, [Some(3); 3]);
    assert_eq!(summary.arms.len(), 2, "canaries are apart");
}

#[test]
fn a_canary_that_is_not_caught_voids_everything_and_reports_it_first() {
    for canary in 0..3 {
        let mut run = caught();
        let name = PLAUSIBLE[6 + canary].name;
        run.cuts.iter_mut().filter(|cut| cut.arm == name).for_each(|cut| cut.verdicts.clear());
        let summary = summarize(&run);
        assert!(!summary.valid);
        assert_eq!(summary.void.len(), 1, "{:?}", summary.void);
        assert!(
            summary.void[0].contains(&format!("'{name}' was not caught in 3 power cuts")),
            "{:?}",
            summary.void
        );
        assert!(summary.findings[0].starts_with("This result is void: "), "{:?}", summary.findings);
    }
}

#[test]
fn another_damage_than_the_one_to_be_proven_does_not_catch_a_canary() {
    let mut run = caught();
    let torn = PLAUSIBLE[8].name;
    for cut in run.cuts.iter_mut().filter(|cut| cut.arm == torn && !cut.verdicts.is_empty()) {
        cut.verdicts = vec![Verdict::LostCommits, unverified()];
    }
    assert!(!summarize(&run).valid);
}

#[test]
fn a_cache_that_ignores_flushes_is_caught_by_a_server_that_does_not_start_and_an_early_answer_is_not() {
    let mut dead = clean("canary", 0);
    (dead.verdicts, dead.recovery) = (vec![corrupt()], None);
    assert!(catches(Canary::IgnoresFlushes, &dead) && catches(Canary::TornPages, &dead));
    assert!(!catches(Canary::AnswersEarly, &dead));
    dead.verdicts = vec![unverified()];
    assert!(
        [Canary::AnswersEarly, Canary::IgnoresFlushes, Canary::TornPages]
            .iter()
            .all(|one| !catches(*one, &dead))
    );
}

#[test]
fn a_canary_that_is_missing_or_never_ran_voids_everything() {
    let mut run = caught();
    run.experiment.arms.pop();
    let summary = summarize(&run);
    assert_eq!(
        summary.void,
        ["no arm proves that the tester sees pages that are torn while nothing guards them"]
    );

    let mut run = caught();
    let name = PLAUSIBLE[7].name;
    run.cuts.retain(|cut| cut.arm != name);
    assert!(summarize(&run).void[0].contains("never ran: nothing proves"));
    let mut stint = plausible(&PLAUSIBLE[7..8], 3, SEED).stints.remove(0);
    stint.failed = Some(Failure { why: "no room".into(), log: Vec::new() });
    run.stints.push(stint);
    assert!(summarize(&run).void[0].contains("never ran (no room)"));
}

#[test]
fn no_cuts_at_all_are_void_and_have_no_shares() {
    let summary = summarize(&header(&PLAUSIBLE, 100));
    assert!(!summary.valid && summary.void.len() == 3);
    assert!(summary.arms.iter().all(|arm| arm.bad.share.is_none() && arm.recovery.is_none()));
    assert_eq!(summary.pace, Pace::default());
    assert!(summary.findings.last().unwrap().starts_with("No cut was made"), "{:?}", summary.findings);
    assert!(summary.notes.iter().any(|note| note.text == "None of 100 power cuts was made."));
}

#[test]
fn three_thousand_clean_cuts_are_at_most_a_thousandth() {
    let mut run = caught();
    run.cuts.extend((0..3000).map(|number| clean(first(), number)));
    let summary = summarize(&run);
    let arm = &summary.arms[0];
    assert_eq!((arm.cuts, arm.clean, arm.bad.count, arm.unverified), (3000, 3000, 0, 0));
    assert!((arm.bad.high.unwrap() - 0.000_998).abs() < 1e-6);
    let expected =
        "0 of 3,000 power cuts had a bad verdict, so that at most 0.1% have one, with 95% confidence.";
    assert!(summary.findings.iter().any(|text| text.ends_with(expected)), "{:?}", summary.findings);
}

#[test]
fn unverified_is_neither_clean_nor_bad_and_in_no_bound() {
    let mut run = caught();
    let mut looked_at_in_part = clean(first(), 0);
    looked_at_in_part.verdicts = vec![unverified()];
    let mut never_recovered = clean(first(), 1);
    never_recovered.recovery = None;
    run.cuts.extend([looked_at_in_part, never_recovered, clean(first(), 2)]);
    let arm = &summarize(&run).arms[0];
    assert_eq!((arm.clean, arm.unverified, arm.bad.of), (1, 2, 1));
    assert!(arm.verdicts.values().all(|share| share.of == 1), "{:?}", arm.verdicts);
}

#[test]
fn lost_commits_are_a_share_of_the_cuts_that_could_show_them() {
    let mut run = caught();
    let mut dead = clean(first(), 0);
    (dead.verdicts, dead.recovery) = (vec![corrupt()], None);
    let mut lost = clean(first(), 1);
    lost.verdicts = vec![Verdict::LostCommits];
    let mut half_seen = clean(first(), 2);
    half_seen.verdicts = vec![Verdict::LostCommits, unverified()];
    run.cuts.extend([dead, lost, half_seen, clean(first(), 3)]);
    let arm = &summarize(&run).arms[0];
    let of = |kind| (arm.verdicts[&kind].count, arm.verdicts[&kind].of);
    assert_eq!(of(VerdictKind::Corrupt), (1, 3), "one cut with an open question is left out");
    assert_eq!(of(VerdictKind::LostCommits), (2, 3), "the server that does not start is left out");
    assert_eq!(of(VerdictKind::Partial), (0, 2));
    assert_eq!((arm.bad.count, arm.bad.of, arm.unverified, arm.bad_in_part), (3, 4, 0, 1));
    assert_eq!(arm.corruption, [(Corruption::NoStart, 1)].into());
}

#[test]
fn losses_are_reported_over_the_cuts_that_lost_something() {
    let mut run = caught();
    run.cuts.push(clean(first(), 0));
    for number in 1..=100_u32 {
        let mut cut = clean(first(), number);
        cut.verdicts = vec![Verdict::LostCommits];
        let (transactions, seconds) = (u64::from(number), f64::from(number) / 100.0);
        cut.loss = Some(Loss { transactions, seconds, clients: Vec::new() });
        run.cuts.push(cut);
    }
    let summary = summarize(&run);
    let loss = summary.arms[0].loss.unwrap();
    assert_eq!((loss.seconds.count, loss.seconds.min, loss.seconds.max), (100, 0.01, 1.0));
    assert_eq!((loss.transactions.p5, loss.transactions.p50, loss.transactions.p95), (5.0, 50.0, 95.0));
    let finding = &summary.findings[0];
    assert_eq!(
        finding.replace('\u{a0}', " "),
        "doublewrite on, 4 KiB tearing: 100 of 101 power cuts lost transactions that had been acknowledged: at the \
         median 50 of them from the last 500 ms, at most 100 from the last 1.00 s (95% interval: 95% to 100%)."
    );
}

#[test]
fn a_server_that_does_not_start_is_reported_in_those_words() {
    let mut run = caught();
    for number in 0..100 {
        let mut cut = clean(first(), number);
        if number < 61 {
            (cut.verdicts, cut.recovery) = (vec![corrupt()], None);
        }
        run.cuts.push(cut);
    }
    let finding = &summarize(&run).findings[0];
    assert_eq!(
        finding,
        "doublewrite on, 4 KiB tearing: 61 of 100 power cuts left a server that does not start (95% interval: 51% to 71%)."
    );
}

#[test]
fn torn_pages_that_recovery_mends_are_counted_as_that() {
    let mut run = caught();
    let mut mended = clean(first(), 0);
    mended.torn_before = vec![fixture::page_found()];
    mended.recovery.as_mut().unwrap().doublewrite_pages = 1;
    run.cuts.push(mended);
    let torn = summarize(&run).arms[0].torn;
    assert_eq!((torn.images, torn.pages, torn.given_back, torn.mended), (1, 1, 1, 1));
}

#[test]
fn a_torn_page_that_has_a_copy_and_is_not_restored_is_reported_as_the_servers_doing() {
    let mut run = caught();
    let torn = PageFound { copy: Some(4711), ..fixture::page_found() };
    let verdict = |page: PageFound| {
        vec![Verdict::Corrupt { how: Corruption::Pages, messages: Vec::new(), pages: vec![page] }]
    };
    let cuts = [
        (torn.clone(), verdict(fixture::page_found())),
        (torn.clone(), Vec::new()),
        (fixture::page_found(), verdict(fixture::page_found())),
        (torn, verdict(PageFound { page: 1, ..fixture::page_found() })),
    ];
    for (number, (before, verdicts)) in (0..).zip(cuts) {
        run.cuts.push(Cut { torn_before: vec![before], verdicts, ..clean(first(), number) });
    }
    let summary = summarize(&run);
    assert_eq!(summary.arms[0].torn.not_restored, 1);
    let expected =
        format!("{}: in 1 of its images a page stayed torn of which the doublewrite buffer held", first());
    assert!(summary.findings.iter().any(|text| text.starts_with(&expected)), "{:?}", summary.findings);
}

#[test]
fn a_binary_log_that_is_not_written_is_not_found_to_agree() {
    let mut run = caught();
    run.cuts.push(clean(first(), 0));
    assert_eq!(summarize(&run).arms[0].verdicts[&VerdictKind::BinlogDisagrees].of, 1);
    let lines = run.server.options.get_mut(first()).unwrap();
    lines.retain(|line| !line.starts_with("log_bin="));
    assert!(!summarize(&run).arms[0].verdicts.contains_key(&VerdictKind::BinlogDisagrees));
}

#[test]
fn a_crash_at_the_first_start_that_a_second_start_mends_is_clean_and_has_a_note() {
    let mut run = caught();
    for number in 0..3 {
        let mut cut = clean(first(), number);
        let why = "the server did not start: it was ended by signal 11".to_owned();
        let recovery = cut.recovery.as_mut().unwrap();
        recovery.failed_start = (number > 0).then(|| Failure { why, log: Vec::new() });
        run.cuts.push(cut);
    }
    let summary = summarize(&run);
    assert_eq!((summary.arms[0].clean, summary.arms[0].bad.count), (3, 0));
    let notes: Vec<_> = summary.notes.iter().filter(|note| note.text.contains("first start")).collect();
    let expected = "After 2 power cuts the server crashed at its first start, and recovered at a second: the server did \
                    not start: it was ended by signal 11.";
    assert!(notes.len() == 1 && notes[0].text == expected, "{notes:?}");
    assert_eq!(notes[0].arm.as_deref(), Some(first()));
}

#[test]
fn moments_count_cuts_and_whether_they_were_met() {
    let mut run = caught();
    for number in 0..4 {
        let mut cut = clean(first(), number);
        (cut.moment, cut.met) = (Moment::Checkpoint, number == 0);
        run.cuts.push(cut);
    }
    let summary = summarize(&run);
    let moment = summary.arms[0].moments.iter().find(|one| one.moment == Moment::Checkpoint).unwrap();
    assert_eq!((moment.cuts, moment.met, moment.clean), (4, 1, 4));
    assert_eq!(summary.arms[0].moments.len(), 8, "every planned moment is there");
    let note = "Moments that were seldom met: while a checkpoint was written (1 of 4).";
    assert!(summary.notes.iter().any(|one| one.text == note), "{:?}", summary.notes);
}

#[test]
fn a_moment_that_cannot_come_with_an_arm_is_no_moment_that_was_seldom_met() {
    let of = |doublewrite: &str, log_bin: bool| {
        let mut run = caught();
        let arm = run.experiment.arms.iter_mut().find(|arm| arm.name == first()).unwrap();
        arm.settings.set("doublewrite", doublewrite).unwrap();
        if !log_bin {
            run.server.options.get_mut(first()).unwrap().retain(|line| !line.starts_with("log_bin="));
        }
        for (number, moment) in (0..8).zip([Moment::Doublewrite, Moment::BinlogRotation].into_iter().cycle())
        {
            let mut cut = clean(first(), number);
            (cut.moment, cut.met) = (moment, false);
            run.cuts.push(cut);
        }
        let summary = summarize(&run);
        let seldom = summary.notes.iter().find(|note| note.text.starts_with("Moments that were seldom met"));
        let possible = |moment| {
            let moments = &summary.arms[0].moments;
            moments.iter().find(|one| one.moment == moment).map(|one| (one.cuts, one.possible)).unwrap()
        };
        (
            seldom.map(|note| note.text.clone()).unwrap_or_default(),
            possible(Moment::Doublewrite),
            possible(Moment::BinlogRotation),
        )
    };
    let (both, batch, rotation) = of("on", true);
    assert!(
        both.contains("during a doublewrite batch (0 of 4)") && both.contains("rotated (0 of 4)"),
        "{both}"
    );
    assert_eq!((batch, rotation), ((4, 4), (4, 4)));
    let (rotation, batch, _) = of("off", true);
    assert!(!rotation.contains("doublewrite") && rotation.contains("rotated"), "{rotation}");
    assert_eq!(batch, (4, 0));
    assert_eq!(of("OFF", false).0, "", "nothing is said of either");
}

#[test]
fn one_stint_has_no_ratio_in_any_figure_and_in_no_sentence() {
    println!("seed {SEED}");
    let mut run = plausible(&PLAUSIBLE, 30, SEED);
    run.stints.retain(|stint| stint.repeat == 0);
    // Twenty times as much, as a busy machine may show it.
    run.stints.iter_mut().filter(|stint| stint.arm == first()).for_each(|stint| {
        stint.throughput.as_mut().unwrap().tps /= 20.0;
    });
    let summary = summarize(&run);
    assert!(summary.arms.iter().all(|arm| arm.gain.is_none() && arm.throughput.is_some()));
    for gain in &summary.comparisons {
        assert_eq!(gain.tps, None);
        let ebbtide_lab::summary::Verdict::NotComparable { why } = &gain.verdict else { panic!("{gain:?}") };
        assert!(why.contains("one stint shows no spread"), "{why}");
    }
    assert!(!serde_json::to_string(&summary).unwrap().contains(r#""ratio""#));
    assert!(summary.findings.iter().all(|text| !text.contains("transactions of")), "{:?}", summary.findings);
}

#[test]
fn what_canaries_stints_met_is_reported_after_what_those_of_the_arms_met() {
    println!("seed {SEED}");
    let mut run = plausible(&PLAUSIBLE, 30, SEED);
    let is_canary = |name: &str| PLAUSIBLE.iter().any(|shape| shape.name == name && shape.canary.is_some());
    // Canaries run first.
    run.stints.sort_by_key(|stint| !is_canary(&stint.arm));
    run.stints.iter_mut().for_each(|stint| stint.notes = vec!["a slow host".into()]);
    let notes = summarize(&run).notes;
    let of_stints = notes.iter().filter(|note| note.text.contains("a slow host"));
    let told: Vec<bool> = of_stints.map(|note| is_canary(note.arm.as_deref().unwrap())).collect();
    assert!(told.contains(&true) && told.contains(&false) && told.is_sorted(), "{told:?}");
}

#[test]
fn a_stint_whose_host_could_not_keep_up_is_in_no_figure_and_is_named() {
    println!("seed {SEED}");
    let mut run = plausible(&PLAUSIBLE, 30, SEED);
    let noisy = run.stints.iter_mut().find(|stint| stint.arm == PLAUSIBLE[3].name).unwrap();
    let throughput = noisy.throughput.as_mut().unwrap();
    throughput.tps *= 20.0;
    throughput.disqualified = Some("the load's threads waited for a processor".into());
    let (number, arm) = (noisy.repeat + 1, noisy.arm.clone());
    let summary = summarize(&run);
    let throughput = summary.arms[3].throughput.unwrap();
    assert_eq!((throughput.stints, summary.arms[3].disqualified), (2, 1));
    assert!(throughput.tps.max < 2_300.0, "{throughput:?}");
    assert!(summary.arms[3].gain.unwrap().ratio < 2.1, "{:?}", summary.arms[3].gain);
    let text =
        format!("Stint {number}: its throughput is not counted: the load's threads waited for a processor.");
    assert!(
        summary.notes.contains(&ebbtide_lab::summary::Note { arm: Some(arm), text }),
        "{:?}",
        summary.notes
    );
    for stint in run.stints.iter_mut().filter(|stint| stint.arm == PLAUSIBLE[3].name) {
        stint.throughput.as_mut().unwrap().disqualified = Some("busy".into());
    }
    let summary = summarize(&run);
    assert!(summary.arms[3].throughput.is_none() && summary.arms[3].gain.is_none());
    let compared = summary.comparisons.iter().find(|gain| gain.arm == 3).unwrap();
    assert!(
        matches!(&compared.verdict, ebbtide_lab::summary::Verdict::NotComparable { why } if why.contains("counts"))
    );
}

#[test]
fn throughput_is_held_against_the_first_arm_with_its_interval() {
    println!("seed {SEED}");
    let run = plausible(&PLAUSIBLE, 30, SEED);
    let summary = summarize(&run);
    assert_eq!(summary.baseline, Some(0));
    assert_eq!(summary.arms[0].gain, None);
    let gain = summary.arms[3].gain.unwrap();
    let interval = gain.interval.unwrap();
    assert!((gain.ratio - 2210.0 / 1140.0).abs() < 0.05 && interval.contains(gain.ratio), "{gain:?}");
    assert_eq!(summary.comparisons.len(), 5, "canaries are not compared");
    assert_eq!(summary.comparisons[2].verdict, ebbtide_lab::summary::Verdict::Faster);
    assert_eq!(summary.comparisons[4].verdict, ebbtide_lab::summary::Verdict::NoDifferenceSeen);
    let throughput = summary.arms[1].throughput.unwrap();
    assert!(throughput.stints == 3 && throughput.tps.interval.is_some() && throughput.tps.spread.is_some());
    assert!(
        summary.findings.iter().any(|text| text.starts_with("flush at commit 0 carries 2.")),
        "{:?}",
        summary.findings
    );
}

#[test]
fn a_doublewrite_batch_cannot_come_where_the_buffer_is_off_nor_a_rotation_without_a_binary_log() {
    let mut arm = header(&PLAUSIBLE[..1], 1).experiment.arms.remove(0);
    for (value, comes) in [("on", true), ("off", false)] {
        arm.settings.set("doublewrite", value).unwrap();
        assert_eq!(can_come(Moment::Doublewrite, &arm, true), comes, "{value}");
        assert!(can_come(Moment::Page, &arm, false) && can_come(Moment::BinlogRotation, &arm, true));
        assert!(!can_come(Moment::BinlogRotation, &arm, false));
    }
}

#[test]
fn the_pace_counts_what_was_verified_in_the_time_that_is_known() {
    println!("seed {SEED}");
    let mut run = plausible(&PLAUSIBLE[..1], 30, SEED);
    run.stints[0].verified -= 1;
    let pace = summarize(&run).pace;
    assert_eq!(pace.cuts, 30);
    assert!((pace.cuts_a_minute.unwrap() - 29.0 / (0.81 * 30.0) * 60.0).abs() < 1e-9, "{pace:?}");
    assert!((pace.took.total - 0.981).abs() < 1e-12);
    assert!((pace.took.cpu.unwrap().ask - 0.125).abs() < 1e-12);
    assert!((pace.took.awaited.unwrap() - 0.03125).abs() < 1e-12);
    run.cuts.iter_mut().for_each(|cut| cut.took.cpu = None);
    assert_eq!(summarize(&run).pace.took.cpu, None, "results of an earlier version");
}

#[test]
fn many_clean_arms_share_a_sentence_with_the_weakest_bound() {
    let names = ["a", "b", "c", "d"];
    let shapes: Vec<Shape> = names.map(|name| Shape { name, ..PLAUSIBLE[0] }).to_vec();
    let mut run = header(&shapes, 100);
    for (name, cuts) in names.iter().zip([100, 200, 100, 300]) {
        run.cuts.extend((0..cuts).map(|number| clean(name, number)));
    }
    let findings = summarize(&run).findings;
    let shared = "No bad verdict in any of 100 to 300 cuts each, so that at most 3.0% have one, arm by arm and with 95% \
                  confidence: a; b; c; d.";
    assert!(findings.iter().any(|text| text == shared), "{findings:?}");
}

#[test]
fn a_summary_is_read_back_from_its_json() {
    println!("seed {SEED}");
    let summary = summarize(&plausible(&PLAUSIBLE, 60, SEED));
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
}

#[test]
fn claims_are_judged_by_the_cuts_and_never_by_a_void_run() {
    let mut run = caught();
    run.cuts.extend((0..9).map(|number| clean(first(), number)));
    let mut bad = clean(first(), 9);
    bad.verdicts = vec![corrupt()];
    run.cuts.push(bad);
    let test = ClaimTest {
        metric: ClaimMetric::BadPct,
        arm: first().to_owned(),
        over: None,
        during: Vec::new(),
        over_during: Vec::new(),
        at_least: None,
        at_most: Some(60.0),
    };
    let claim = |id: &str, at_most: f64| Claim {
        id: id.to_owned(),
        document: Document::Whitepaper,
        place: "a page".to_owned(),
        says: "few cuts are bad".to_owned(),
        printed: String::new(),
        figures: std::collections::BTreeMap::new(),
        test: Some(ClaimTest { at_most: Some(at_most), ..test.clone() }),
        contradicted: None,
        untestable: None,
    };
    run.experiment.claims = vec![claim("wide", 100.0), claim("none", 0.0)];
    let summary = summarize(&run);
    assert!(summary.valid);
    let bad = &summary.arms[0].bad;
    assert!(bad.count > 0, "the fixture's first arm has bad cuts: {bad:?}");
    assert!(matches!(&summary.claims[0].verdict, ClaimVerdict::Reproduced { .. }), "{:?}", summary.claims[0]);
    assert!(
        matches!(&summary.claims[1].verdict, ClaimVerdict::NotReproduced { .. }),
        "{:?}",
        summary.claims[1]
    );
    run.cuts.clear();
    let void = summarize(&run);
    assert!(!void.valid);
    assert!(matches!(&void.claims[0].verdict, ClaimVerdict::NotMeasured { .. }), "{:?}", void.claims[0]);
}
