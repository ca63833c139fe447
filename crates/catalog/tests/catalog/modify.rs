//! Elastic Volumes: what may become what, when, and how long it takes.

use ebbtide_catalog::{
    Catalog, CatalogError,
    modify::{ModificationRecord, ModifyPlan, check_modify},
};

use crate::support::spec;

/// 2026-11-20 00:00 UTC.
const NOW: i64 = 1_795_132_800;
/// 2025-11-20 00:00 UTC: before the rule of 2026-01-15.
const BEFORE: i64 = 1_763_596_800;
const HOUR: i64 = 3_600;

fn modify(from: &str, to: &str, past: &[ModificationRecord], now: i64) -> Result<ModifyPlan, CatalogError> {
    check_modify(&Catalog::builtin(), &spec(from), &spec(to), past, now)
}

fn becomes(from: &str, to: &str) -> String {
    let plan = modify(from, to, &[], NOW).unwrap_or_else(|error| panic!("{from} -> {to}: {error}"));
    plan.target.spec.to_string()
}

fn refusal(from: &str, to: &str) -> (String, &'static str) {
    let error = modify(from, to, &[], NOW).expect_err(to);
    (error.to_string(), error.aws_code().unwrap())
}

fn done(started: i64) -> ModificationRecord {
    ModificationRecord {
        started_unix_s: started,
        optimizing_unix_s: started + 5,
        completes_unix_s: started + 60,
    }
}

#[test]
fn what_is_left_out_is_kept_within_a_type() {
    let from = "gp3:size=500GiB,iops=6000,throughput=250";
    assert_eq!(becomes(from, "gp3:size=600GiB"), "gp3:size=600GiB,iops=6000,throughput=250,twp=on");
    assert_eq!(becomes(from, "gp3:iops=7000"), "gp3:size=500GiB,iops=7000,throughput=250,twp=on");
    assert_eq!(becomes("gp2@2016:size=100GiB", "gp2:size=200GiB"), "gp2@2016:size=200GiB,twp=off");
    assert_eq!(
        becomes("gp3:size=1GiB,twp=off", "gp3:size=2GiB"),
        "gp3:size=2GiB,iops=3000,throughput=125,twp=off"
    );
}

#[test]
fn a_gp2_that_becomes_gp3_keeps_at_least_what_it_had() {
    assert_eq!(becomes("gp2:size=500GiB", "gp3"), "gp3:size=500GiB,iops=3000,throughput=250,twp=on");
    assert_eq!(becomes("gp2:size=100GiB", "gp3"), "gp3:size=100GiB,iops=3000,throughput=128,twp=on");
    assert_eq!(becomes("gp2:size=5334GiB", "gp3"), "gp3:size=5334GiB,iops=16000,throughput=250,twp=on");
    assert_eq!(
        becomes("gp2:size=100GiB,credits=2%", "gp3:throughput=125"),
        "gp3:size=100GiB,iops=3000,throughput=125,twp=on"
    );
}

#[test]
fn other_changes_of_type_take_the_defaults_of_the_api() {
    assert_eq!(becomes("gp3:size=10GiB,iops=4000,throughput=500", "gp2"), "gp2:size=10GiB,twp=on");
    assert_eq!(becomes("gp2:size=100GiB", "io2"), "io2:size=100GiB,iops=3000,twp=on");
    assert_eq!(becomes("io1:size=500GiB,iops=8000", "io2:iops=9000"), "io2:size=500GiB,iops=9000,twp=on");
    assert_eq!(becomes("gp2:size=500GiB", "st1"), "st1:size=500GiB,twp=on");
    let (message, _) = refusal("gp2:size=10GiB", "io1");
    assert_eq!(message, "Iops to volume size ratio of 300.000000 is too high; maximum is 50");
}

#[test]
fn an_array_is_modified_member_by_member() {
    let from = "raid0(2x gp3:size=250GiB; chunk=64KiB)";
    let to = "raid0(2x gp3:size=300GiB,iops=3000,throughput=125,twp=on; chunk=64KiB)";
    assert_eq!(becomes(from, "gp3:size=300GiB"), to);
    assert_eq!(becomes(from, "raid0(2x gp3:size=300GiB)"), to);
    let (message, code) = refusal(from, "raid0(3x gp3:size=300GiB)");
    assert_eq!(message, "The array has 2 volumes, chunk 64KiB and cannot be striped anew as 3 volumes.");
    assert_eq!(code, "InvalidParameterValue");
}

#[test]
fn what_cannot_be_modified_is_refused() {
    for (from, to, message, code) in [
        (
            "gp3:size=500GiB",
            "gp3:size=499GiB",
            "New size cannot be smaller than existing size",
            "InvalidParameterValue",
        ),
        (
            "nvme",
            "gp3:size=200GiB",
            "Volume of type nvme cannot be modified to gp3.",
            "InvalidParameterValue",
        ),
        (
            "gp3:size=100GiB",
            "ideal",
            "Volume of type gp3 cannot be modified to ideal.",
            "InvalidParameterValue",
        ),
        (
            "gp3:size=100GiB",
            "gp3:size=100GiB,iops=3000",
            "The volume already has the requested size, type, iops and throughput.",
            "InvalidParameterValue",
        ),
        (
            "gp2:size=100GiB",
            "gp2:size=200GiB,credits=100%",
            "The parameter credits cannot be modified; it belongs to the creation of a volume.",
            "InvalidParameterCombination",
        ),
        (
            "gp3:size=100GiB",
            "gp3:iops=80001",
            "Volume iops of 80001 is too high; maximum is 80000.",
            "InvalidParameterValue",
        ),
        (
            "gp3:size=100GiB",
            "st1",
            "The volume size is invalid for st1 volumes: 100 GiB. st1 volumes must be at \
          least 125 GiB in size. Please specify a volume size above the minimum limit.",
            "InvalidParameterValue",
        ),
    ] {
        assert_eq!(refusal(from, to), (message.to_owned(), code), "{from} -> {to}");
    }
}

#[test]
fn one_at_a_time() {
    let plan = modify("gp3:size=1TiB", "gp3:size=2TiB", &[], NOW).unwrap();
    let record = plan.record(NOW);
    for (after, state) in [(0, "MODIFYING"), (4, "MODIFYING"), (5, "OPTIMIZING"), (12 * HOUR, "OPTIMIZING")] {
        let error = modify("gp3:size=2TiB", "gp3:iops=4000", &[record], NOW + after).unwrap_err();
        assert_eq!(error.aws_code(), Some("IncorrectModificationState"));
        assert_eq!(error.to_string(), format!("The volume cannot be modified in modification state {state}"));
        assert_eq!(error.hint().unwrap(), "Try again after 2026-11-20T12:00:05Z.");
    }
    modify("gp3:size=2TiB", "gp3:iops=4000", &[record], NOW + 12 * HOUR + 5).unwrap();
}

#[test]
fn optimizing_takes_six_hours_per_tib_and_at_least_a_minute() {
    let seconds = |to| {
        let plan = modify("gp3:size=1GiB", to, &[], NOW).unwrap();
        (plan.optimizing_after_s, plan.completes_after_s - plan.optimizing_after_s)
    };
    assert_eq!(seconds("gp3:size=1TiB"), (5, 6 * 3_600));
    assert_eq!(seconds("gp3:size=4TiB"), (5, 24 * 3_600));
    assert_eq!(seconds("gp3:size=2GiB"), (5, 60));
}

#[test]
fn four_modifications_fit_into_any_24_hours() {
    let four: Vec<_> = [1, 7, 3, 5].map(|hours| done(NOW - hours * HOUR)).into();
    let error = modify("gp3:size=1GiB", "gp3:size=2GiB", &four, NOW).unwrap_err();
    assert_eq!(error.aws_code(), Some("VolumeModificationRateExceeded"));
    assert!(
        error.to_string().ends_with("The next modification is allowed after 2026-11-20T17:00:00Z."),
        "{error}"
    );
    let next = NOW + 17 * HOUR;
    assert!(modify("gp3:size=1GiB", "gp3:size=2GiB", &four, next - 1).is_err());
    modify("gp3:size=1GiB", "gp3:size=2GiB", &four, next).unwrap();
    modify("gp3:size=1GiB", "gp3:size=2GiB", &four[1..], NOW).unwrap();
}

#[test]
fn before_2026_there_were_six_hours_between_modifications() {
    let error = modify("gp3:size=1GiB", "gp3:size=2GiB", &[done(BEFORE - HOUR)], BEFORE).unwrap_err();
    assert_eq!(error.aws_code(), Some("VolumeModificationRateExceeded"));
    assert_eq!(
        error.to_string(),
        "You've reached the maximum modification rate per volume limit. Wait at least 6 hours between \
         modifications per EBS volume."
    );
    assert_eq!(error.hint().unwrap(), "Try again after 2025-11-20T05:00:00Z.");
    let many: Vec<_> = (6..20).map(|hours| done(BEFORE - hours * HOUR)).collect();
    modify("gp3:size=1GiB", "gp3:size=2GiB", &many, BEFORE).unwrap();
}

#[test]
fn the_parameters_are_judged_before_the_rate() {
    let four: Vec<_> = (1..=4).map(|hours| done(NOW - hours * HOUR)).collect();
    let error = modify("gp3:size=2GiB", "gp3:size=1GiB", &four, NOW).unwrap_err();
    assert_eq!(error.to_string(), "New size cannot be smaller than existing size");
}
