//! Limits of the past.

use crate::support::{refused, resolve};

#[test]
fn limits_are_those_of_the_day() {
    // (spec, IOPS, MiB/s)
    for (text, iops, mib_s) in [
        ("gp2@2016:size=4000GiB", 10_000, 160.0),
        ("gp2@2016:size=200GiB", 600, 150.0),
        ("gp2@2016:size=100GiB", 300, 128.0),
        ("gp2@2016:size=214GiB", 642, 160.0),
        ("gp2@2018-12-02:size=16384GiB", 10_000, 160.0),
        ("gp2@2018-12-03:size=16384GiB", 16_000, 250.0),
        ("gp2@2018-12:size=16384GiB", 10_000, 160.0),
        ("gp2@2019:size=16384GiB", 16_000, 250.0),
        ("io1@2017:size=2TiB,iops=20000", 20_000, 320.0),
        ("io1@2018:size=2TiB,iops=32000", 32_000, 500.0),
        ("io1@2019:size=2TiB,iops=64000", 64_000, 1_000.0),
        ("gp3@2021:size=500GiB,iops=16000,throughput=1000", 16_000, 1_000.0),
        ("gp3@2025-09-26:size=500GiB,iops=80000,throughput=2000", 80_000, 2_000.0),
        ("io2@2022:size=200GiB,iops=64000", 64_000, 1_000.0),
        ("io2@2025-05:size=256GiB,iops=256000", 256_000, 4_000.0),
    ] {
        let figures = resolve(text).figures;
        assert_eq!((figures.iops, figures.throughput_mib_s), (Some(iops), Some(mib_s)), "{text}");
    }
}

#[test]
fn what_came_later_is_refused_on_the_day_before() {
    for (text, message) in [
        ("gp2@2018-12-02:size=100GiB,iops=1", "The parameter iops is not supported for gp2 volumes."),
        ("io1@2017:size=2TiB,iops=20001", "Volume iops of 20001 is too high; maximum is 20000."),
        (
            "io1@2016:size=100GiB,iops=3001",
            "Iops to volume size ratio of 30.010000 is too high; maximum is 30",
        ),
        ("gp3@2025-09-25:size=500GiB,iops=16001", "Volume iops of 16001 is too high; maximum is 16000."),
        (
            "gp3@2021:size=16385GiB",
            "Volume of 16385GiB is too large for volume type gp3; maximum is 16384GiB",
        ),
        ("io2@2025-04-29:size=2TiB,iops=64001", "Volume iops of 64001 is too high; maximum is 64000."),
    ] {
        assert_eq!(refused(text).to_string(), message, "{text}");
    }
    let hdd = refused("st1@2020-11-29:size=499GiB").to_string();
    assert!(hdd.contains("st1 volumes must be at least 500 GiB"), "{hdd}");
    resolve("st1@2020-11-30:size=125GiB");
}

#[test]
fn a_type_that_did_not_exist_is_refused_with_its_launch() {
    for (text, message) in [
        ("gp3@2020:size=1GiB", "gp3 cannot be had as of 2020-01-01: it was launched on 2020-12-01"),
        ("gp3@2020-11-30:size=1GiB", "gp3 cannot be had as of 2020-11-30: it was launched on 2020-12-01"),
        ("st1@2015:size=500GiB", "st1 cannot be had as of 2015-01-01: it was launched on 2016-04-19"),
        (
            "io1@2013:size=10GiB,iops=100",
            "io1 cannot be had as of 2013-01-01: it was launched on 2012-07-31, but its limits are known from \
             2015-03-19 on",
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.to_string(), message);
        assert_eq!(error.aws_code(), Some("UnknownVolumeType"));
        assert!(error.hint().unwrap().contains("first day"), "{text}");
    }
    resolve("gp3@2020-12-01:size=1GiB");
}

#[test]
fn io2_was_slower_before_it_was_all_block_express() {
    let median = |text| resolve(text).members[0].service.read.quantile(500_000);
    assert!(median("io2@2022:size=10GiB,iops=100") > median("io2:size=10GiB,iops=100"));
}
