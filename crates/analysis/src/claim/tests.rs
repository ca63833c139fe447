//! Verdicts about claims on planted results.

use super::*;

/// Results that are known: figures by arm, and what an arm waits for.
#[derive(Default)]
struct Planted {
    figures: BTreeMap<&'static str, Reading>,
    ratio: Option<Reading>,
}

impl Planted {
    fn of(figures: &[(&'static str, Reading)]) -> Self {
        Self { figures: figures.iter().copied().collect(), ratio: None }
    }
}

impl Evidence for Planted {
    fn reading(&self, arm: &str, _: ClaimMetric, _: &[ClaimPhase]) -> Result<Reading, NoReading> {
        self.figures.get(arm).copied().ok_or(NoReading::NotMeasured)
    }

    fn ratio(&self, _: &ClaimTest, _: &str) -> Option<Reading> {
        self.ratio
    }

    fn io(&self, arm: &str, _: &[ClaimPhase]) -> ArmIo {
        ArmIo { waits: format!("waits for the IOPS limit of {arm}"), ..ArmIo::default() }
    }
}

/// "tuned is 12.8 times the default", reproduced from 6 to 25.
fn tuned() -> Claim {
    Claim {
        id: "tuned".into(),
        document: Document::Whitepaper,
        place: "table 4".into(),
        says: "It is faster.".into(),
        printed: String::new(),
        figures: BTreeMap::from([("tuned".to_owned(), 4434.57), ("default".to_owned(), 347.37)]),
        test: Some(ClaimTest {
            metric: ClaimMetric::Tps,
            arm: "tuned".into(),
            over: Some("default".into()),
            during: Vec::new(),
            over_during: Vec::new(),
            at_least: Some(6.0),
            at_most: Some(25.0),
        }),
        contradicted: None,
        untestable: None,
    }
}

fn measured(tuned: Reading, default: Reading) -> Planted {
    Planted::of(&[("tuned", tuned), ("default", default)])
}

#[test]
fn a_ratio_in_the_range_with_all_of_its_interval_is_reproduced_beside_the_documents_own() {
    let evidence = measured(Reading::between(5000.0, 4900.0, 5100.0), Reading::between(500.0, 480.0, 520.0));
    let judged = judge(&tuned(), &evidence);
    let ClaimVerdict::Reproduced { why } = &judged.verdict else { panic!("{:?}", judged.verdict) };
    for text in
        ["measured 10", "claimed 6.00 to 25", "'tuned' waits for the IOPS limit of tuned", "'default' waits"]
    {
        assert!(why.contains(text), "{text}: {why}");
    }
    assert!((judged.theirs.unwrap() - 12.766).abs() < 0.01, "{:?}", judged.theirs);
    let ours = judged.ours.unwrap();
    assert!((ours.mid - 10.0).abs() < 1e-9);
    assert!(
        (ours.low.unwrap() - 4900.0 / 520.0).abs() < 1e-9
            && (ours.high.unwrap() - 5100.0 / 480.0).abs() < 1e-9
    );
    assert_eq!(judged.arms.iter().map(|arm| arm.arm.as_str()).collect::<Vec<_>>(), ["tuned", "default"]);
}

#[test]
fn planted_results_that_deny_a_claim_are_not_reproduced_and_the_reason_has_the_io() {
    let evidence = measured(Reading::between(1000.0, 990.0, 1010.0), Reading::between(500.0, 490.0, 510.0));
    let judged = judge(&tuned(), &evidence);
    let ClaimVerdict::NotReproduced { why } = &judged.verdict else { panic!("{:?}", judged.verdict) };
    for text in [
        "2.00 times (1.94 to 2.06)",
        "6.00 to 25",
        "'tuned' waits for the IOPS limit of tuned",
        "'default' waits",
    ] {
        assert!(why.contains(text), "{text}: {why}");
    }
    // Above the range is no more in it than below.
    let evidence = measured(Reading::between(9000.0, 8990.0, 9010.0), Reading::between(100.0, 99.0, 101.0));
    assert!(matches!(judge(&tuned(), &evidence).verdict, ClaimVerdict::NotReproduced { .. }));
}

#[test]
fn an_interval_over_a_bound_and_a_single_trial_decide_nothing() {
    let wide = measured(Reading::between(3500.0, 2000.0, 5000.0), Reading::between(500.0, 450.0, 550.0));
    let judged = judge(&tuned(), &wide);
    let ClaimVerdict::Undecided { why } = &judged.verdict else { panic!("{:?}", judged.verdict) };
    assert!(why.contains("the interval reaches over the bound. 'tuned' waits"), "{why}");
    let single = measured(Reading::alone(5000.0), Reading::alone(500.0));
    let ClaimVerdict::Undecided { why } = judge(&tuned(), &single).verdict else { panic!() };
    assert!(why.contains("one trial shows no interval. 'tuned' waits"), "{why}");
}

#[test]
fn the_ratio_that_the_run_compares_goes_before_that_of_the_figures() {
    let mut evidence =
        measured(Reading::between(5000.0, 4000.0, 6000.0), Reading::between(500.0, 100.0, 900.0));
    assert!(matches!(judge(&tuned(), &evidence).verdict, ClaimVerdict::Undecided { .. }));
    evidence.ratio = Some(Reading::between(10.0, 9.0, 11.0));
    assert!(matches!(judge(&tuned(), &evidence).verdict, ClaimVerdict::Reproduced { .. }));
}

#[test]
fn an_arm_that_is_missing_leaves_a_hole_with_its_reason_and_the_others_figures() {
    let evidence = Planted::of(&[("tuned", Reading::between(5000.0, 4900.0, 5100.0))]);
    let judged = judge(&tuned(), &evidence);
    assert_eq!(judged.verdict, ClaimVerdict::NotMeasured { why: "'default' was not measured".into() });
    assert_eq!(judged.ours, None);
    assert!(judged.arms[0].ours.is_some() && judged.arms[1].ours.is_none());
    let zero = measured(Reading::between(5.0, 4.0, 6.0), Reading::between(0.0, 0.0, 0.0));
    assert!(matches!(judge(&tuned(), &zero).verdict, ClaimVerdict::NotMeasured { .. }));
}

#[test]
fn what_its_own_tables_contradict_stays_contradicted_whatever_was_measured() {
    let claim = Claim { contradicted: Some("a zero slipped in".into()), ..tuned() };
    let evidence = measured(Reading::between(5000.0, 4900.0, 5100.0), Reading::between(500.0, 480.0, 520.0));
    let judged = judge(&claim, &evidence);
    assert_eq!(judged.verdict, ClaimVerdict::Contradicted { why: "a zero slipped in".into() });
    assert!(judged.ours.is_some(), "what was measured is shown beside it");
}

#[test]
fn what_cannot_be_tested_says_why() {
    let claim = Claim { test: None, untestable: Some("there is no network".into()), ..tuned() };
    let judged = judge(&claim, &Planted::default());
    assert_eq!(judged.verdict, ClaimVerdict::NotTestable { why: "there is no network".into() });
}

#[test]
fn a_figure_without_another_arm_is_held_against_its_range() {
    let test = ClaimTest {
        over: None,
        metric: ClaimMetric::ReadMs,
        at_least: None,
        at_most: Some(10.0),
        ..tuned().test.unwrap()
    };
    let claim =
        |at_most| Claim { test: Some(ClaimTest { at_most: Some(at_most), ..test.clone() }), ..tuned() };
    let evidence = Planted::of(&[("tuned", Reading::between(8.0, 7.0, 9.0))]);
    assert!(matches!(judge(&claim(10.0), &evidence).verdict, ClaimVerdict::Reproduced { .. }));
    let ClaimVerdict::NotReproduced { why } = judge(&claim(5.0), &evidence).verdict else { panic!() };
    assert!(why.starts_with("measured 8.00 ms (7.00 to 9.00), claimed 5.00 at most"), "{why}");
}

#[test]
fn only_a_claim_that_was_not_measured_is_referred_to_the_full_form_and_only_for_its_own_arms() {
    let command = |arms: &[&str]| arms.contains(&"default").then(|| "ebbtide run x".to_owned());
    let evidence = Planted::of(&[("tuned", Reading::between(5000.0, 4900.0, 5100.0))]);
    let mut judged = judge(&tuned(), &evidence);
    judged.refer_to_full_form(|_| None);
    assert!(
        matches!(judged.verdict, ClaimVerdict::NotMeasured { .. }),
        "another run lacks it for another reason"
    );
    judged.refer_to_full_form(command);
    assert_eq!(judged.verdict, ClaimVerdict::OnlyInFull { why: "run ebbtide run x".into() });
    assert_eq!(judged.verdict.words(), "not in the short form");
    let whole = measured(Reading::between(5000.0, 4900.0, 5100.0), Reading::between(500.0, 480.0, 520.0));
    let mut judged = judge(&tuned(), &whole);
    judged.refer_to_full_form(command);
    assert!(matches!(judged.verdict, ClaimVerdict::Reproduced { .. }), "what was measured stays");
}
