//! What AWS refuses, in its words and with its codes.

use ebbtide_catalog::{Catalog, CatalogError, Rejection};

use crate::support::{refused, resolve};

const IO2: &str =
    "io2 volumes configured with greater than 64 TiB or 256K IOPS or 1000:1 IOPS:GB ratio are not supported.";

/// (spec, AWS's code, AWS's words)
const REFUSALS: &[(&str, &str, &str)] = &[
    ("gp3", "MissingParameter", "The request must contain the parameter size/snapshot"),
    ("gp4:size=1GiB", "UnknownVolumeType", "Unsupported volume type 'gp4' for volume creation."),
    (
        "io1:size=100GiB",
        "InvalidParameterCombination",
        "The parameter iops must be specified for io1 volumes.",
    ),
    (
        "io2:size=100GiB",
        "InvalidParameterCombination",
        "The parameter iops must be specified for io2 volumes.",
    ),
    (
        "gp2:size=100GiB,iops=300",
        "InvalidParameterCombination",
        "The parameter iops is not supported for gp2 volumes.",
    ),
    (
        "st1:size=500GiB,iops=300",
        "InvalidParameterCombination",
        "The parameter iops is not supported for st1 volumes.",
    ),
    (
        "io1:size=100GiB,iops=100,throughput=500",
        "InvalidParameterCombination",
        "The throughput parameter is not supported for io1 volumes.",
    ),
    (
        "gp2:size=16385GiB",
        "InvalidParameterValue",
        "Volume of 16385GiB is too large for volume type gp2; maximum is 16384GiB",
    ),
    (
        "gp3:size=65537GiB",
        "InvalidParameterValue",
        "Volume of 65537GiB is too large for volume type gp3; maximum is 65536GiB",
    ),
    (
        "standard:size=1025GiB",
        "InvalidParameterValue",
        "Volume of 1025GiB is too large for volume type standard; maximum is 1024GiB",
    ),
    (
        "st1:size=124GiB",
        "InvalidParameterValue",
        "The volume size is invalid for st1 volumes: 124 GiB. st1 volumes must be at least 125 GiB in size. \
         Please specify a volume size above the minimum limit.",
    ),
    (
        "io1:size=3GiB,iops=100",
        "InvalidParameterValue",
        "The volume size is invalid for io1 volumes: 3 GiB. io1 volumes must be at least 4 GiB in size. \
         Please specify a volume size above the minimum limit.",
    ),
    (
        "gp3:size=500GiB,iops=80001",
        "InvalidParameterValue",
        "Volume iops of 80001 is too high; maximum is 80000.",
    ),
    (
        "io1:size=2TiB,iops=64001",
        "InvalidParameterValue",
        "Volume iops of 64001 is too high; maximum is 64000.",
    ),
    ("io1:size=4GiB,iops=99", "InvalidParameterValue", "Volume iops of 99 is too low; minimum is 100."),
    ("gp3:size=4GiB,iops=2999", "InvalidParameterValue", "Volume iops of 2999 is too low; minimum is 3000."),
    (
        "io1:size=100GiB,iops=5001",
        "InvalidParameterValue",
        "Iops to volume size ratio of 50.010000 is too high; maximum is 50",
    ),
    (
        "gp3:size=1GiB,iops=3001",
        "InvalidParameterValue",
        "Iops to volume size ratio of 3001.000000 is too high; maximum is 500",
    ),
    (
        "gp3:size=500GiB,iops=16000,throughput=2001",
        "InvalidParameterValue",
        "Volume throughput of 2001 is too high; maximum is 2000.",
    ),
    (
        "gp3:size=500GiB,throughput=124",
        "InvalidParameterValue",
        "Volume throughput of 124 is too low; minimum is 125.",
    ),
    (
        "gp3:size=500GiB,throughput=1000",
        "InvalidParameterValue",
        "Throughput (MiBps) to iops ratio of 0.333333 is too high; maximum is 0.250000 MiBps per iops",
    ),
    ("io2:size=65537GiB,iops=100", "InvalidParameterValue", IO2),
    ("io2:size=500GiB,iops=256001", "InvalidParameterValue", IO2),
    ("io2:size=4GiB,iops=4001", "InvalidParameterValue", IO2),
    (
        "io2@2022:size=4GiB,iops=2001",
        "InvalidParameterValue",
        "Iops to volume size ratio of 500.250000 is too high; maximum is 500",
    ),
];

#[test]
fn refusals_use_the_words_and_codes_of_aws() {
    for (text, code, message) in REFUSALS {
        let error = refused(text);
        assert_eq!(error.to_string(), *message, "{text}");
        assert_eq!(error.aws_code(), Some(*code), "{text}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{text} has no hint");
    }
}

#[test]
fn the_limits_themselves_are_accepted() {
    for text in [
        "gp2:size=1GiB",
        "gp2:size=16384GiB",
        "gp3:size=65536GiB",
        "gp3:size=1GiB,iops=3000",
        "gp3:size=7GiB,iops=3500",
        "gp3:size=1GiB,throughput=750",
        "gp3:size=160GiB,iops=80000,throughput=2000",
        "io1:size=4GiB,iops=200",
        "io1:size=1280GiB,iops=64000",
        "io2:size=4GiB,iops=4000",
        "io2:size=65536GiB,iops=256000",
        "st1:size=125GiB",
        "sc1:size=16384GiB",
        "standard:size=1024GiB",
    ] {
        resolve(text);
    }
}

#[test]
fn hints_report_what_would_be_accepted() {
    let hint = |text| refused(text).hint().unwrap();
    assert_eq!(
        hint("io1:size=100GiB,iops=5001"),
        "Give at most iops=5000 for 100 GiB, or at least size=101GiB for 5001 IOPS."
    );
    assert_eq!(
        hint("gp3:size=500GiB,throughput=1000"),
        "Give at most throughput=750 with 3000 IOPS, or at least iops=4000 for 1000 MiB/s."
    );
    assert_eq!(
        hint("io2:size=500GiB,iops=256001"),
        "Volume iops of 256001 is too high; maximum is 256000. Give at most iops=256000."
    );
    assert_eq!(
        hint("io2:size=4GiB,iops=4001"),
        "Iops to volume size ratio of 1000.250000 is too high; maximum is 1000. Give at most iops=4000 for 4 GiB, \
         or at least size=5GiB for 4001 IOPS."
    );
    for (text, iops) in
        [("io1:size=101GiB,iops=5001", 5_001), ("gp3:size=500GiB,iops=4000,throughput=1000", 4_000)]
    {
        assert_eq!(resolve(text).figures.iops, Some(iops), "the hint's own advice is accepted");
    }
}

#[test]
fn an_unknown_type_names_the_nearest_and_lists_all() {
    let error = refused("gp33:size=1GiB");
    let CatalogError::Rejected(Rejection::UnknownType { nearest, known, .. }) = &error else {
        panic!("{error}");
    };
    assert_eq!(nearest.as_deref(), Some("gp3"));
    for name in ["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard", "nvme", "sata-ssd", "sas-ssd", "ideal"]
    {
        assert!(known.iter().any(|known| known == name), "{name} is missing in {known:?}");
    }
    let hint = refused("instance-store:i3en.larg").hint().unwrap();
    assert!(hint.starts_with("Did you mean 'instance-store:i3en.large'?"), "{hint}");
    assert!(hint.contains("instance-store:i4i.32xlarge") && !hint.contains("gp3"), "{hint}");
}

#[test]
fn ebs_volumes_are_whole_gib_and_devices_are_not() {
    let error = refused("gp3:size=1536MiB");
    assert_eq!(error.to_string(), "Invalid value '1536MiB' for size: EBS volumes are whole GiB.");
    assert_eq!(resolve("nvme:size=1536MiB").size_bytes(), 1_536 << 20);
    assert_eq!(resolve("ideal:size=4096KiB").size_bytes(), 4 << 20);
}

#[test]
fn settings_that_a_type_does_not_have_are_refused() {
    for (text, part) in [
        ("nvme:iops=100", "nvme has no setting 'iops'"),
        ("ideal:throughput=100", "ideal has no setting 'throughput'"),
        ("gp3:size=1GiB,credits=5%", "gp3 has no setting 'credits'"),
        ("gp2:size=1000GiB,credits=5%", "at this size and on this day it has no burst credits"),
        ("st1:size=16384GiB,credits=5%", "no burst credits"),
        ("sas-hdd-15k:twp=on", "keeps 4 KiB whole"),
        ("gp2@2016:size=1GiB,twp=on", "EBS prevents torn writes since 2022-11-27"),
        ("raid0(2x ideal:size=64KiB; chunk=128KiB)", "a chunk of 128KiB is larger than the members of 64KiB"),
        ("instance-store:i3en.large:size=2TiB", "instance-store:i3en.large has"),
    ] {
        let message = refused(text).to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn an_unknown_instance_names_the_nearest() {
    let error = Catalog::builtin().instance("r5.lagre").unwrap_err();
    assert_eq!(error.to_string(), "unknown instance type 'r5.lagre' (did you mean 'r5.large'?)");
    let error = Catalog::builtin().instance("db.r5.3xlarge").unwrap_err();
    let hint = error.hint().unwrap();
    assert!(hint.contains("r5 has the sizes 12xlarge, ") && hint.contains(" 4xlarge"), "{hint}");
    let error = Catalog::builtin().instance("q1.tiny").unwrap_err();
    assert_eq!(error.hint().unwrap(), "An instance type that is missing can be added to the overrides file.");
}
