//! Metrics of known sequences of I/O against values computed by hand.

use std::collections::BTreeSet;

use ebbtide_cloud::monitoring::Recorded;
use ebbtide_volume::Op;
use serde_json::json;

use crate::support::{ACCOUNT, INSTANCE, REGION, Rig, START, assert_near};

const DB: &str = "vol-00000000000000001";

#[test]
fn a_known_sequence_of_io_has_the_values_counted_by_hand() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    // 30 s with 10 reads of 16 KiB a second, 30 s with 20 writes of 4 KiB a second, a minute without I/O.
    rig.drive(DB, 30, (Op::Read, 16, 10));
    rig.drive(DB, 30, (Op::Write, 4, 20));
    rig.pass(60);
    let sum = |metric: &str| rig.minutes::<2>(DB, metric, "Sum");
    assert_eq!(sum("VolumeReadOps"), [Some(300.0), Some(0.0)]);
    assert_eq!(sum("VolumeWriteOps"), [Some(600.0), Some(0.0)]);
    assert_eq!(sum("VolumeReadBytes"), [Some(300.0 * 16_384.0), Some(0.0)]);
    assert_eq!(sum("VolumeWriteBytes"), [Some(600.0 * 4_096.0), Some(0.0)]);
    assert_near(sum("VolumeAvgIOPS")[0], 15.0);
    // (300 x 16 KiB + 600 x 4 KiB) / 60 s
    assert_near(sum("VolumeAvgThroughput")[0], 120.0);
    assert_eq!(sum("VolumeIdleTime")[1], Some(60.0));
    assert_eq!(sum("VolumeAvgReadLatency")[1], Some(0.0));
    for check in ["VolumeIOPSExceededCheck", "VolumeThroughputExceededCheck", "VolumeStalledIOCheck"] {
        assert_eq!(sum(check), [Some(0.0), Some(0.0)], "{check}");
    }
    // One request at a time: the time of the requests is the time that is not idle, and the queue's integral.
    let (reads, writes) = (sum("VolumeTotalReadTime")[0].unwrap(), sum("VolumeTotalWriteTime")[0].unwrap());
    assert!(reads > 0.0 && writes > 0.0);
    assert_near(sum("VolumeIdleTime")[0], 60.0 - reads - writes);
    assert_near(rig.minutes::<1>(DB, "VolumeQueueLength", "Average")[0], (reads + writes) / 60.0);
    assert_near(sum("VolumeAvgReadLatency")[0], reads / 300.0 * 1e3);
    assert_near(sum("VolumeAvgWriteLatency")[0], writes / 600.0 * 1e3);
    // One data point a minute.
    assert_eq!(rig.minutes::<1>(DB, "VolumeReadOps", "SampleCount"), [Some(1.0)]);
    for statistic in ["Average", "Minimum", "Maximum"] {
        assert_eq!(rig.minutes::<1>(DB, "VolumeReadOps", statistic), [Some(300.0)]);
    }
    // What a gp3 does not have.
    for metric in ["BurstBalance", "VolumeThroughputPercentage", "VolumeConsumedReadWriteOps"] {
        assert_eq!(rig.minutes::<2>(DB, metric, "Average"), [None, None], "{metric}");
    }
}

#[test]
fn a_volume_that_a_command_has_attached_has_its_metrics_under_its_id() {
    let rig = Rig::new();
    let of_command = Recorded {
        volume: DB.to_owned(),
        name: "db".to_owned(),
        owner: ACCOUNT.to_owned(),
        region: REGION.to_owned(),
        kind: "gp2".to_owned(),
        since_ms: START * 1_000,
    };
    rig.volumes.of_commands.lock().unwrap().push(of_command);
    rig.attach("db", "gp2:size=100GiB");
    rig.drive("db", 60, (Op::Write, 4, 20));
    rig.pass(60);
    assert_eq!(rig.minutes::<2>(DB, "VolumeWriteOps", "Sum"), [Some(1_200.0), Some(0.0)]);
    assert!(rig.minutes::<1>(DB, "BurstBalance", "Average")[0].is_some());
    assert_eq!(rig.minutes::<1>(DB, "VolumeAvgIOPS", "Average"), [None], "no instance has it");
    let wanted = json!({"Dimensions": [{"Name": "VolumeId", "Value": DB}]});
    let listed = rig.call("ListMetrics", wanted.clone());
    let rows = listed["Metrics"].as_array().unwrap();
    let names: BTreeSet<&str> = rows.iter().map(|row| row["MetricName"].as_str().unwrap()).collect();
    assert_eq!(names.len(), rows.len(), "each once: {listed}");
    for (name, is_listed) in [("VolumeWriteOps", true), ("BurstBalance", true), ("VolumeAvgIOPS", false)] {
        assert_eq!(names.contains(name), is_listed, "{name}: {listed}");
    }
    let other = rig.attempt_as("210987654321", REGION, "ListMetrics", &wanted).unwrap();
    assert_eq!(other["Metrics"], json!([]));
    // What was recorded before the volume was created is that of another one of its name.
    rig.volumes.of_commands.lock().unwrap()[0].since_ms = (START + 60) * 1_000;
    assert_eq!(rig.minutes::<2>(DB, "VolumeWriteOps", "Sum"), [None, Some(0.0)]);
}

#[test]
fn longer_periods_combine_minutes() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    for per_second in [10, 20, 30, 0, 40] {
        rig.drive(DB, 60, (Op::Write, 16, per_second));
    }
    let five =
        |statistic: &str| rig.points(DB, "VolumeWriteOps", statistic, 300).into_iter().collect::<Vec<_>>();
    assert_eq!(five("Sum"), [(START, 6_000.0)]);
    assert_eq!(five("SampleCount"), [(START, 5.0)]);
    assert_eq!(five("Average"), [(START, 1_200.0)]);
    assert_eq!(five("Minimum"), [(START, 0.0)]);
    assert_eq!(five("Maximum"), [(START, 2_400.0)]);
    // The newest period is answered with what it has.
    rig.drive(DB, 60, (Op::Write, 16, 1));
    assert_eq!(five("Sum"), [(START, 6_000.0), (START + 300, 60.0)]);
}

#[test]
fn a_gp2_that_empties_shows_its_credits_and_the_throttling() {
    let rig = Rig::new();
    // 300 IOPS for ever, 3,000 with credits, of which there are 5.4 million.
    rig.attach(DB, "gp2:size=100GiB");
    rig.set_credits(DB, 0.5);
    rig.saturate(DB, 60, (Op::Read, 16, 64));
    // A minute at 3,000 costs 60 x (3,000 - 300) credits: 3% of all.
    let balance = |minute: usize| rig.minutes::<4>(DB, "BurstBalance", "Average")[minute];
    assert!((balance(0).unwrap() - 47.0).abs() < 0.01, "{:?}", balance(0));
    let ops = rig.minutes::<1>(DB, "VolumeReadOps", "Sum")[0].unwrap();
    assert!((ops - 180_000.0).abs() < 400.0, "{ops}");
    // 54,000 credits last 20 s; then 300 IOPS for 40 s.
    rig.set_credits(DB, 0.01);
    rig.saturate(DB, 60, (Op::Read, 16, 64));
    assert!(balance(1).unwrap() < 0.01, "{:?}", balance(1));
    let ops = rig.minutes::<2>(DB, "VolumeReadOps", "Sum")[1].unwrap();
    assert!((ops - 72_000.0).abs() < 400.0, "{ops}");
    // Idle, it earns 300 a second: a third of a percent a minute. What was in flight ends first.
    rig.pass(120);
    let gained = balance(3).unwrap() - balance(2).unwrap();
    assert!((gained - 60.0 * 300.0 / 5.4e6 * 100.0).abs() < 1e-6, "{gained}");
    let checks = rig.minutes::<4>(DB, "VolumeIOPSExceededCheck", "Maximum");
    assert_eq!((checks[1], checks[3]), (Some(1.0), Some(0.0)));
}

#[test]
fn the_exceeded_checks_are_set_in_minutes_of_throttling_alone() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=1000GiB,iops=3000,throughput=125");
    rig.drive(DB, 60, (Op::Read, 16, 1_000));
    rig.saturate(DB, 60, (Op::Read, 16, 64));
    rig.pass(60);
    rig.saturate(DB, 60, (Op::Read, 256, 16));
    rig.pass(60);
    let of = |metric: &str| rig.minutes::<5>(DB, metric, "Maximum").map(Option::unwrap);
    assert_eq!(of("VolumeIOPSExceededCheck"), [0.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(of("VolumeThroughputExceededCheck"), [0.0, 0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn provisioned_volumes_show_their_share_and_capacity_units() {
    let rig = Rig::new();
    rig.attach(DB, "io2:size=100GiB,iops=1000");
    rig.drive(DB, 60, (Op::Read, 16, 500));
    assert_near(rig.minutes::<1>(DB, "VolumeThroughputPercentage", "Average")[0], 50.0);
    assert_eq!(rig.minutes::<1>(DB, "VolumeConsumedReadWriteOps", "Sum"), [Some(30_000.0)]);
    assert_eq!(rig.minutes::<1>(DB, "BurstBalance", "Average"), [None]);
    // A request of 1,024 KiB is four units of 256 KiB.
    rig.drive(DB, 60, (Op::Read, 1_024, 50));
    assert_eq!(rig.minutes::<2>(DB, "VolumeConsumedReadWriteOps", "Sum")[1], Some(12_000.0));
    assert_near(rig.minutes::<2>(DB, "VolumeThroughputPercentage", "Average")[1], 20.0);
}

#[test]
fn a_volume_publishes_while_it_is_attached_alone() {
    let rig = Rig::new();
    rig.attach(DB, "st1:size=1TiB");
    rig.drive(DB, 60, (Op::Read, 1_024, 10));
    rig.drive(DB, 30, (Op::Read, 1_024, 10));
    rig.detach(DB);
    rig.pass(90);
    assert_eq!(rig.minutes::<3>(DB, "VolumeReadOps", "Sum"), [Some(600.0), Some(300.0), None]);
    // Attached again in the middle of a minute, with counters of zero.
    rig.pass(30);
    rig.attach(DB, "st1:size=1TiB");
    rig.drive(DB, 30, (Op::Read, 1_024, 20));
    rig.detach(DB);
    rig.attach(DB, "st1:size=1TiB");
    rig.pass(60);
    assert_eq!(rig.minutes::<5>(DB, "VolumeReadOps", "Sum")[3..], [Some(600.0), Some(0.0)]);
    assert!(rig.minutes::<1>(DB, "BurstBalance", "Average")[0].is_some());
}

#[test]
fn metrics_are_listed_by_what_their_volumes_published() {
    let rig = Rig::new();
    rig.attach(DB, "gp2:size=100GiB");
    rig.attach("vol-00000000000000002", "io1:size=100GiB,iops=1000");
    rig.attach("vol-00000000000000003", "standard:size=100GiB");
    rig.pass(60);
    let names = |input| {
        let listed = rig.call("ListMetrics", input);
        let all = listed["Metrics"].as_array().unwrap();
        all.iter().map(|row| row["MetricName"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let of = |volume: &str| names(json!({"Dimensions": [{"Name": "VolumeId", "Value": volume}]}));
    assert!(of(DB).contains("BurstBalance") && !of(DB).contains("VolumeThroughputPercentage"));
    let io1 = of("vol-00000000000000002");
    assert!(!io1.contains("BurstBalance") && io1.contains("VolumeThroughputPercentage"));
    let standard = of("vol-00000000000000003");
    assert!(!standard.contains("VolumeIOPSExceededCheck") && standard.contains("VolumeReadOps"));
    // A metric with both dimensions contains each of them.
    let by_instance = names(json!({"Dimensions": [{"Name": "InstanceId"}]}));
    assert!(by_instance.contains("VolumeAvgIOPS") && !by_instance.contains("VolumeReadOps"));
    let one = rig.call(
        "ListMetrics",
        json!({"Namespace": "AWS/EBS", "MetricName": "VolumeAvgIOPS",
        "Dimensions": [{"Name": "VolumeId", "Value": DB}]}),
    );
    let dimensions = json!([{"Name": "VolumeId", "Value": DB}, {"Name": "InstanceId", "Value": INSTANCE}]);
    assert_eq!(
        one["Metrics"],
        json!([{"Namespace": "AWS/EBS", "MetricName": "VolumeAvgIOPS", "Dimensions": dimensions}])
    );
    assert!(names(json!({"Namespace": "AWS/S3"})).is_empty());
    let other = |account: &str, region: &str| {
        let listed = rig.attempt_as(account, region, "ListMetrics", &json!({})).unwrap();
        listed["Metrics"].as_array().unwrap().len()
    };
    assert_eq!((other("210987654321", REGION), other(ACCOUNT, "eu-west-1")), (0, 0));
    // Three hours after the last value it is not recently active, and is listed still.
    rig.detach(DB);
    rig.pass(3 * 3_600 + 60);
    let recent = names(json!({"RecentlyActive": "PT3H", "Dimensions": [{"Name": "VolumeId", "Value": DB}]}));
    assert!(recent.is_empty() && !of(DB).is_empty());
}
