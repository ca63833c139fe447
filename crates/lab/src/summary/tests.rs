//! The summary of a run, on runs whose truth is known.

use ebbtide_load::Arrival;
use proptest::prelude::*;

use super::fixture::{report, run, trial};
use super::*;
use crate::experiment::{Batch, Comparison, Role};
use crate::record::{Outcome, ReplicaSecond, Second, Trial};

/// Rates that waver by 4% around a level, differently from trial to trial.
fn rates(level: f64, seconds: u32, turn: u32) -> Vec<f64> {
    (0..seconds).map(|i| level * (1.0 + 0.01 * f64::from((i * 7 + turn * 3) % 9) - 0.04)).collect()
}

/// Three trials at about a level.
fn three(arm: &str, level: f64) -> Vec<Trial> {
    (0..3)
        .map(|repeat| trial(arm, repeat, &rates(level * (1.0 + 0.01 * f64::from(repeat)), 60, repeat)))
        .collect()
}

fn set(trials: &mut [Trial], change: impl Fn(usize, &mut Second)) {
    for trial in trials {
        trial.seconds.iter_mut().enumerate().for_each(|(place, second)| change(place, second));
    }
}

fn notes_of<'a>(summary: &'a Summary, arm: &str) -> Vec<&'a str> {
    summary
        .notes
        .iter()
        .filter(|note| note.arm.as_deref() == Some(arm))
        .map(|note| note.text.as_str())
        .collect()
}

#[test]
fn a_large_difference_is_reported_with_its_interval_and_its_cause() {
    let mut run = run(&["default", "tuned"]);
    run.trials = [three("default", 350.0), three("tuned", 4300.0)].concat();
    let summary = summarize(&run);
    let compared = &summary.comparisons[0];
    assert_eq!(compared.verdict, Verdict::Faster);
    let interval = compared.tps.unwrap().interval.unwrap();
    assert!(interval.contains(4300.0 / 350.0) && interval.high / interval.low < 1.1, "{interval:?}");
    assert_eq!(
        summary.findings[0],
        "tuned carries 12.3 times the transactions of default (12.0 to 12.6, 95%); both wait for the volume's \
         IOPS limit 99% of the time: 0.69 I/Os a transaction against 8.49."
    );
    assert_eq!(summary.arms[0].whole.as_ref().unwrap().limiter.what, Bottleneck::VolumeIops);
    assert_eq!(summary.notes, []);
}

#[test]
fn equal_arms_are_called_so_and_set_the_floor() {
    let mut run = run(&["one", "two"]);
    let spec = run.experiment.arms[0].volumes[&Role::Data].clone();
    run.experiment.arms[1].volumes.insert(Role::Data, spec);
    run.trials = [three("one", 1000.0), three("two", 1012.0)].concat();
    let summary = summarize(&run);
    let compared = &summary.comparisons[0];
    assert!(compared.equal);
    assert_eq!(compared.verdict, Verdict::NoDifferenceSeen);
    assert!((summary.noise.observed_aa.unwrap() - 0.012).abs() < 1e-6);
    assert_eq!(summary.noise.floor, summary.noise.observed_aa.unwrap());
    assert!(summary.findings[0].starts_with("no difference seen between two and one, which are equal"));
}

#[test]
fn equal_arms_that_differ_discredit_the_run() {
    let mut run = run(&["one", "two"]);
    let spec = run.experiment.arms[0].volumes[&Role::Data].clone();
    run.experiment.arms[1].volumes.insert(Role::Data, spec);
    run.trials = [three("one", 1000.0), three("two", 1300.0)].concat();
    let summary = summarize(&run);
    assert_eq!(summary.comparisons[0].verdict, Verdict::Faster, "the floor does not hide it");
    assert!(summary.notes[0].text.starts_with("Equal arms differed by 30%"), "{:?}", summary.notes);
}

#[test]
fn a_difference_below_the_floor_is_none() {
    let mut run = run(&["one", "two"]);
    let same = |arm: &str, level: f64| (0..5).map(|n| trial(arm, n, &[level; 60])).collect::<Vec<_>>();
    run.trials = [same("one", 1000.0), same("two", 1008.0)].concat();
    let summary = summarize(&run);
    assert_eq!(summary.comparisons[0].verdict, Verdict::NoDifferenceSeen);
    assert_eq!(summary.comparisons[0].smallest_effect, Some(0.01));
}

#[test]
fn one_trial_has_a_ratio_and_no_verdict() {
    let mut run = run(&["one", "two"]);
    run.trials = vec![trial("one", 0, &rates(100.0, 60, 0)), trial("two", 0, &rates(900.0, 60, 0))];
    let summary = summarize(&run);
    let compared = &summary.comparisons[0];
    assert!(matches!(compared.verdict, Verdict::NotComparable { .. }));
    let ratio = compared.tps.unwrap();
    assert!((ratio.ratio - 9.0).abs() < 1e-9 && ratio.interval.is_none());
    assert!(
        summary.findings[0].contains("9.00 times") && summary.findings[0].contains("one trial: no interval")
    );
    assert!(notes_of(&summary, "one")[0].starts_with("One trial only"));
}

#[test]
fn trials_that_do_not_count_are_in_no_figure_and_are_reported() {
    let mut run = run(&["one"]);
    run.trials = three("one", 1000.0);
    let mut slow = trial("one", 3, &rates(10.0, 60, 0));
    slow.outcome = Outcome::Disqualified { why: "the generator lagged".into() };
    let mut dead = trial("one", 4, &[]);
    dead.outcome = Outcome::Failed { why: "the server died".into(), log: vec![] };
    run.trials.extend([slow, dead]);
    let summary = summarize(&run);
    let arm = &summary.arms[0];
    assert_eq!(arm.trials, TrialCounts { measured: 3, disqualified: 1, failed: 1 });
    assert!(arm.whole.as_ref().unwrap().tps.min > 900.0);
    let notes = notes_of(&summary, "one");
    assert!(notes[0].contains("Trial 4") && notes[0].contains("lagged"), "{notes:?}");
    assert!(notes[1].contains("Trial 5") && notes[1].contains("died"), "{notes:?}");
    assert!(
        summary.findings[0].starts_with("one carries 1,010 transactions a second"),
        "{:?}",
        summary.findings
    );
}

/// A volume whose credits end after 30 of 60 seconds, and the rate with them.
fn bursting(arm: &str) -> Vec<Trial> {
    let mut trials = three(arm, 900.0);
    set(&mut trials, |place, second| {
        let volume = second.volumes.get_mut(&Role::Data).unwrap();
        let left = 1.0 - f64::from(u32::try_from(place).unwrap()) / 30.0;
        volume.credits = Some(left.max(0.0));
        if place >= 30 {
            second.load.tps *= 0.1;
        } else {
            volume.limits = Default::default();
        }
    });
    trials
}

#[test]
fn an_arm_is_split_where_its_credits_end_and_compared_like_with_like() {
    let mut run = run(&["gp3", "gp2", "gp2 too"]);
    run.experiment.comparisons.push(Comparison { axis: "volume".into(), arm: 2, baseline: 1 });
    run.trials = [three("gp3", 900.0), bursting("gp2"), bursting("gp2 too")].concat();
    let summary = summarize(&run);
    let arm = &summary.arms[1];
    let labels: Vec<&str> = arm.regimes.iter().map(|regime| regime.label.as_str()).collect();
    assert_eq!(labels, ["credits left", "credits used up"]);
    let change = &arm.windows[0].changes;
    assert_eq!(change.len(), 1, "{change:?}");
    assert!(change[0].cause == Cause::CreditsEnded && (change[0].t_s - 30.0).abs() <= 1.0, "{change:?}");
    assert!(arm.windows[0].steady, "a known change is no unsteadiness: {:?}", arm.windows[0]);
    let verdicts: Vec<_> =
        summary.comparisons.iter().map(|c| (c.arm, c.baseline, c.label.as_str(), &c.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            (1, 0, "credits left", &Verdict::NoDifferenceSeen),
            (1, 0, "credits used up", &Verdict::Slower),
            (2, 0, "credits left", &Verdict::NoDifferenceSeen),
            (2, 0, "credits used up", &Verdict::Slower),
            (2, 1, "credits left", &Verdict::NoDifferenceSeen),
            (2, 1, "credits used up", &Verdict::NoDifferenceSeen),
        ]
    );
    let story = summary.findings.iter().find(|text| text.starts_with("gp2: its credits end")).unwrap();
    assert!(
        story.contains("after 30.0 s") && story.contains("credits used up: 90.9 transactions"),
        "{story}"
    );
}

#[test]
fn a_batch_job_makes_two_regimes() {
    let mut run = run(&["alone", "with"]);
    for arm in &mut run.experiment.arms {
        arm.batch = Some(Batch { start_s: 20, end_s: None, connections: 1, sql: "SELECT 1".into() });
    }
    let mut with = three("with", 900.0);
    set(&mut with, |place, second| second.load.tps *= if place >= 20 { 0.5 } else { 1.0 });
    run.trials = [three("alone", 900.0), with].concat();
    let summary = summarize(&run);
    let labels: Vec<_> = summary.comparisons.iter().map(|c| (c.label.as_str(), &c.verdict)).collect();
    assert_eq!(
        labels,
        [("without the batch job", &Verdict::NoDifferenceSeen), ("with the batch job", &Verdict::Slower)]
    );
    assert_eq!(summary.arms[1].windows[0].changes[0].cause, Cause::BatchJoined);
}

#[test]
fn a_change_that_nothing_explains_is_reported_and_splits_nothing() {
    let mut run = run(&["one"]);
    run.trials = three("one", 900.0);
    // The volume's own rates stay: no ceiling moved.
    set(&mut run.trials, |place, second| second.load.tps *= if place >= 35 { 0.4 } else { 1.0 });
    let summary = summarize(&run);
    let arm = &summary.arms[0];
    assert!(arm.windows.iter().all(|window| !window.steady && window.changes[0].cause == Cause::Unknown));
    assert!(arm.regimes.is_empty(), "{:?}", arm.windows);
    let note = notes_of(&summary, "one")[0];
    assert!(note.contains("its level changed after 35.0 s, for no cause that was recorded"), "{note}");
}

#[test]
fn what_flushing_explains_is_a_wave_even_if_the_window_holds_only_one() {
    let mut run = run(&["one"]);
    run.trials = three("one", 900.0);
    let half_wave = |run: &mut LabRun, reported: bool| {
        set(&mut run.trials, |place, second| {
            let heavy = (25..60).contains(&place);
            let level = second.load.tps;
            second.load.tps = level * if heavy { 0.5 } else { 1.0 };
            let server = second.server.as_mut().unwrap();
            // What is not spent on transactions goes into pages.
            server.page_writes = reported.then_some(if heavy { 2000.0 } else { 300.0 } - (level - 900.0));
        });
    };
    let mut without = run.clone();
    half_wave(&mut run, true);
    half_wave(&mut without, false);
    let (seen, unseen) = (summarize(&run), summarize(&without));
    assert!(seen.arms[0].windows.iter().all(|window| window.steady && window.from_s == 0.0));
    assert!(notes_of(&seen, "one")[0].contains("in waves"), "{:?}", seen.notes);
    assert!(
        unseen.arms[0].windows.iter().all(|window| !window.steady),
        "without page writes to explain it, it is a change"
    );
}

#[test]
fn a_ceiling_that_moves_explains_a_change() {
    let mut run = run(&["one"]);
    let mut trials = three("one", 900.0);
    set(&mut trials, |place, second| {
        if place >= 35 {
            second.load.tps *= 0.4;
            let volume = second.volumes.get_mut(&Role::Data).unwrap();
            (volume.consumed_iops, volume.read_mib, volume.write_mib) = (1200.0, 6.0, 12.0);
        }
    });
    run.trials = trials;
    let window = &summarize(&run).arms[0].windows[0];
    assert_eq!(window.changes[0].cause, Cause::CeilingChanged);
    assert!(window.steady);
}

#[test]
fn a_ramp_is_not_steady_and_waves_are() {
    let mut run = run(&["ramp", "waves"]);
    let ramp: Vec<f64> =
        rates(900.0, 60, 0).iter().zip(0..).map(|(tps, i)| tps * (1.0 + f64::from(i) / 100.0)).collect();
    let waves: Vec<f64> = rates(900.0, 90, 0)
        .iter()
        .zip(0..)
        .map(|(tps, i)| tps * if i / 20 % 2 == 0 { 1.0 } else { 0.5 })
        .collect();
    run.trials = vec![trial("ramp", 0, &ramp), trial("waves", 0, &waves)];
    let summary = summarize(&run);
    assert!(!summary.arms[0].windows[0].steady && summary.arms[0].windows[0].drift > 0.3);
    assert!(notes_of(&summary, "ramp").iter().any(|note| note.contains("rose by")), "{:?}", summary.notes);
    assert!(summary.arms[1].windows[0].steady && summary.arms[1].regimes.is_empty());
    assert!(notes_of(&summary, "waves").iter().any(|note| note.contains("in waves")), "{:?}", summary.notes);
}

#[test]
fn a_warm_up_is_in_no_figure() {
    let mut run = run(&["one"]);
    run.trials = three("one", 900.0);
    set(&mut run.trials, |place, second| second.load.tps *= if place < 10 { 0.2 } else { 1.0 });
    let summary = summarize(&run);
    assert_eq!(summary.arms[0].windows[0].from_s, 10.0);
    assert!(summary.arms[0].whole.as_ref().unwrap().tps.mean > 890.0);
    assert!(summary.arms[0].regimes.is_empty());
}

#[test]
fn processors_that_others_keep_busy_do_not_limit_who_waits_for_the_volume() {
    let mut run = run(&["one"]);
    run.trials = three("one", 900.0);
    set(&mut run.trials, |_, second| {
        second.host.busy_cpus = 1.97;
        (second.host.server_cpus, second.host.load_cpus) = (0.2, 0.1);
        second.volumes.get_mut(&Role::Data).unwrap().limits.volume_iops = 0.88;
    });
    assert_eq!(summarize(&run).arms[0].whole.as_ref().unwrap().limiter.what, Bottleneck::VolumeIops);
    set(&mut run.trials, |_, second| (second.host.server_cpus, second.host.load_cpus) = (1.5, 0.3));
    assert_eq!(summarize(&run).arms[0].whole.as_ref().unwrap().limiter.what, Bottleneck::Processors);
}

#[test]
fn processors_that_limit_are_reported() {
    let mut run = run(&["one"]);
    run.trials = three("one", 900.0);
    set(&mut run.trials, |_, second| {
        second.host.busy_cpus = 1.97;
        second.volumes.get_mut(&Role::Data).unwrap().limits = Default::default();
    });
    let summary = summarize(&run);
    assert_eq!(summary.arms[0].whole.as_ref().unwrap().limiter.what, Bottleneck::Processors);
    assert!(
        notes_of(&summary, "one")[0].contains("of processors, and not of volumes"),
        "{:?}",
        summary.notes
    );
}

#[test]
fn a_full_redo_log_below_the_volumes_limits_is_named() {
    let mut run = run(&["one"]);
    run.trials = three("one", 900.0);
    set(&mut run.trials, |_, second| {
        second.volumes.get_mut(&Role::Data).unwrap().limits = Default::default();
        second.server.as_mut().unwrap().checkpoint_age = Some(7.6e7);
    });
    let summary = summarize(&run);
    assert_eq!(summary.arms[0].whole.as_ref().unwrap().limiter.what, Bottleneck::Checkpoint);
    assert!(summary.findings[0].contains("the redo log being 95% full"), "{:?}", summary.findings);
}

#[test]
fn an_open_loop_is_judged_by_its_response_time() {
    let mut run = run(&["gp2", "gp3"]);
    for arm in &mut run.experiment.arms {
        arm.load.arrival = Arrival::Poisson { per_second: 100.0 };
    }
    run.trials = [three("gp2", 100.0), three("gp3", 100.0)].concat();
    for (index, trial) in run.trials.iter_mut().enumerate() {
        let slow = if trial.arm == "gp2" { 120_000.0 } else { 12_000.0 };
        trial.load = Some(
            report(slow * (1.0 + 0.01 * f64::from(u32::try_from(index % 3).unwrap())), 2.0 * slow).into(),
        );
        trial.seconds.iter_mut().for_each(|second| second.volumes.clear());
    }
    let summary = summarize(&run);
    let compared = &summary.comparisons[0];
    assert_eq!((compared.metric, &compared.verdict), (Metric::P95, &Verdict::Faster));
    assert_eq!(summary.arms[0].whole.as_ref().unwrap().limiter.what, Bottleneck::OfferedRate);
    let text = &summary.findings[0];
    assert!(
        text.starts_with(
            "gp3 answers faster than gp2: 95% of the transactions within 12.1 ms against 121 ms"
        ),
        "{text}"
    );
}

#[test]
fn an_open_loop_that_was_overloaded_reports_it_and_its_percentiles_are_lower_bounds() {
    let mut run = run(&["gp2", "gp3"]);
    for arm in &mut run.experiment.arms {
        arm.load.arrival = Arrival::Poisson { per_second: 100.0 };
    }
    run.trials = [three("gp2", 100.0), three("gp3", 100.0)].concat();
    let offer = |trials: &mut [Trial], arm: &str, shed, unfinished| {
        for trial in trials.iter_mut().filter(|trial| trial.arm == arm) {
            let open = ebbtide_load::OpenLoop {
                due: 6_000,
                shed,
                unfinished,
                oldest_unfinished_ms: 2_500.0,
                ..Default::default()
            };
            trial.load = Some(ebbtide_load::RunReport { open_loop: Some(open), ..report(12e3, 24e3) }.into());
        }
    };
    offer(&mut run.trials, "gp2", 50, 40);
    offer(&mut run.trials, "gp3", 0, 3);
    let summary = summarize(&run);
    let overloaded = "It could not carry the rate that was offered: of 18000 arrivals 150 were shed, because the \
        backlog was full, and 120 were unfinished when the time was over; the longest wait of these was 2.50 s.";
    assert!(notes_of(&summary, "gp2").contains(&overloaded), "{:?}", summary.notes);
    assert_eq!(notes_of(&summary, "gp3"), [""; 0], "transactions in progress at the end are usual");
    let bound =
        "In comparisons with gp2 the 95th percentile is a lower bound: more than 1.0% of the arrivals";
    assert!(summary.notes.iter().any(|note| note.text.starts_with(bound)), "{:?}", summary.notes);
    offer(&mut run.trials, "gp2", 0, 3);
    assert_eq!(summarize(&run).notes, []);
}

#[test]
fn many_arms_without_a_difference_share_a_sentence() {
    let names = ["base", "a", "b", "c", "d"];
    let mut run = run(&names);
    run.trials = names.iter().flat_map(|arm| three(arm, 500.0)).collect();
    let summary = summarize(&run);
    assert!(
        summary.findings[0].starts_with("No difference from base seen for a, b, c and d; a difference of")
    );
    assert_eq!(summary.findings.len(), 2, "{:?}", summary.findings);
}

#[test]
fn runs_that_agree_overlap_and_others_do_not() {
    let full = |level: f64| {
        let mut run = run(&["default", "tuned"]);
        run.trials = [three("default", 100.0), three("tuned", level)].concat();
        summarize(&run)
    };
    let experiment = run(&["default", "tuned"]).experiment;
    let compare = |runs: &[Summary]| compare_runs(&experiment, runs);
    let agreed = compare(&[full(1200.0), full(1203.0), full(1198.0)]);
    assert_eq!((agreed.len(), agreed[0].overlap, agreed[0].ratios.len()), (1, Some(true), 3));
    let (low, high) = agreed[0].common.unwrap();
    for ratio in agreed[0].ratios.iter().flatten() {
        let interval = ratio.interval.unwrap();
        assert!(interval.low <= low && low <= high && high <= interval.high, "{:?}", agreed[0]);
    }
    let text = &agreed[0].text;
    assert!(text.starts_with("tuned over default: three runs: 12.0 ("), "{text}");
    assert!(text.contains("; the intervals overlap, from "), "{text}");
    let other = &compare(&[full(1200.0), full(1500.0)])[0];
    assert_eq!((other.overlap, other.common), (Some(false), None));
    assert!(other.text.ends_with("the intervals do not all overlap."), "{}", other.text);
    assert!(compare(&[full(1200.0)]).is_empty());
}

#[test]
fn a_run_without_an_interval_leaves_the_agreement_open() {
    let full = |started_ns: u64, trials: usize| {
        let mut run = run(&["default", "tuned"]);
        run.started_ns = started_ns;
        run.trials = [&three("default", 100.0)[..], &three("tuned", 1200.0)[..trials]].concat();
        run
    };
    let (second, first, short) = (full(2, 3), full(1, 3), full(3, 1));
    let agreed = repetition(&[("b", &second), ("a", &first)]);
    assert_eq!((agreed.overlap, agreed.notes.len()), (Some(true), 0));
    assert_eq!(agreed.runs.iter().map(|run| run.directory.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let open = repetition(&[("a", &first), ("b", &second), ("c", &short)]);
    assert_eq!((open.overlap, open.comparisons[0].common), (None, None));
    assert!(
        open.comparisons[0].text.contains("(no interval); not every run"),
        "{}",
        open.comparisons[0].text
    );
    assert_eq!(open.notes, ["c: only 4 of 6 trials count."]);
    let mut elsewhere = second.clone();
    elsewhere.host.cpus = 16;
    assert!(repetition(&[("a", &first), ("b", &elsewhere)]).notes[0].contains("on 16 processors"));
}

#[test]
fn transactions_that_take_much_of_their_trial_are_named() {
    let mut run = run(&["short", "long"]);
    run.trials = [three("short", 100.0), three("long", 100.0)].concat();
    for (trial, p95_s) in run.trials.iter_mut().zip([19.0, 19.0, 19.0, 21.0, 21.0, 21.0]) {
        trial.load = Some(report(p95_s * 1e6, 30e6).into());
    }
    let summary = summarize(&run);
    let count =
        |arm| notes_of(&summary, arm).iter().filter(|text| text.contains("each client ends few")).count();
    assert_eq!((count("short"), count("long")), (0, 1), "{:?}", summary.notes);
    assert!(notes_of(&summary, "long")[0].contains("of trials that count 60 s"), "{:?}", summary.notes);
}

#[test]
fn a_trial_that_sees_a_part_of_a_wave_reports_it() {
    // 76 MB of redo at 0.5 MB a second: a turn takes 152 s at 100 transactions a second, 15 s at 1,000.
    let notes = |tps: f64, age: f64| {
        let mut run = run(&["one", "two"]);
        run.trials = [three("one", tps), three("two", tps)].concat();
        for second in run.trials.iter_mut().flat_map(|trial| &mut trial.seconds) {
            second.server.as_mut().unwrap().checkpoint_age = Some(age);
        }
        let notes = summarize(&run).notes;
        notes.into_iter().filter(|note| note.text.contains("turns over")).collect::<Vec<_>>()
    };
    let found = notes(100.0, 7.6e7);
    assert_eq!(found.len(), 2);
    assert!(found[0].text.starts_with("Its trials of 60 s are shorter than the 15"), "{}", found[0].text);
    assert_eq!(notes(1000.0, 7.6e7), [], "several turns in a trial");
    assert_eq!(notes(100.0, 4e7), [], "a log that is half empty forces no flushing");
}

#[test]
fn a_run_that_was_cut_short_is_summed_up() {
    let mut run = run(&["one", "two"]);
    assert_eq!(summarize(&run).arms.len(), 2);
    run.trials = vec![trial("one", 0, &[0.0; 30])];
    let summary = summarize(&run);
    assert!(matches!(summary.comparisons[0].verdict, Verdict::NotComparable { .. }));
    assert_eq!(summary.arms[0].whole.as_ref().unwrap().per_transaction, None);
    assert!(summary.notes.iter().any(|note| note.text.starts_with("The run is not complete: 1 of 6")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_run_is_summed_up_in_finite_figures(
        trials in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0.0), 0.01..1e6_f64], 0..70), 0..6),
        credits in prop::option::of(0.0..1.0_f64),
        open in any::<bool>(),
    ) {
        let mut run = run(&["one", "two", "three"]);
        if open {
            run.experiment.arms[1].load.arrival = Arrival::Fixed { per_second: 10.0 };
        }
        run.trials = trials
            .iter()
            .zip(0_u32..)
            .map(|(rates, n)| trial(["one", "two", "three"][usize::try_from(n % 3).unwrap()], n / 3, rates))
            .collect();
        for second in run.trials.iter_mut().flat_map(|trial| &mut trial.seconds) {
            if second.load.tps == 0.0 {
                second.load = Default::default();
            }
            second.volumes.entry(Role::Redo).or_default().credits = credits;
        }
        let summary = summarize(&run);
        let text = serde_json::to_string(&summary).unwrap();
        let back: Summary = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back, summary);
    }
}

#[test]
fn the_lag_of_replicas_is_summed_up_over_the_seconds_that_have_one() {
    let mut run = run(&["alone", "followed"]);
    let mut followed = three("followed", 100.0);
    // It falls behind by a tenth of a second in each second; the first of a trial is not known.
    set(&mut followed, |place, second| {
        let lag_s = 0.1 * place as f64;
        let (lag_transactions, behind_s) = (Some(10.0 * place as f64), None);
        second.replica = (place > 0).then_some(ReplicaSecond { lag_s, lag_transactions, behind_s });
    });
    for second in &mut followed[2].seconds {
        if let Some(replica) = &mut second.replica {
            replica.lag_transactions = None;
        }
    }
    run.trials = [three("alone", 100.0), followed].concat();
    let summary = summarize(&run);
    assert_eq!(summary.arms[0].lag, None);
    let lag = summary.arms[1].lag.unwrap();
    assert!((lag.end_s.median - 5.9).abs() < 1e-9, "{lag:?}");
    assert!(
        lag.mean_s.median > 2.5 && lag.mean_s.median < lag.p95_s.median && lag.p95_s.max < 5.9,
        "{lag:?}"
    );
    assert!(
        (lag.end_transactions.unwrap().median - 590.0).abs() < 1e-9,
        "of the trials that number them: {lag:?}"
    );
}
