//! The metrics of instances, `AWS/EC2`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use ebbtide_volume::{Instance, InstanceLimits, Op, RateLimit};
use serde_json::json;

use crate::support::{INSTANCE, Rig, START, assert_near};

const DB: &str = "vol-00000000000000001";
const LOG: &str = "vol-00000000000000002";

/// 20 operations a second for ever, 100 while 6,000 credits last; bytes are not limited.
fn bursting() -> Instance {
    let iops = RateLimit { rate: 20, ceiling: 100, allowance: 100, credits: 6_000 };
    Instance::new(InstanceLimits { iops, throughput: RateLimit::flat(1 << 40) })
}

/// A rig whose instance runs.
fn running(rig: Rig) -> Rig {
    *rig.volumes.instance.lock().unwrap() = Some(bursting());
    rig.volumes.is_running.store(true, Ordering::Relaxed);
    rig
}

/// A statistic of a metric of the instance by the second at which the minute begins.
#[track_caller]
fn points(rig: &Rig, metric: &str, statistic: &str) -> BTreeMap<u64, f64> {
    let answer = rig.call(
        "GetMetricStatistics",
        json!({
            "Namespace": "AWS/EC2", "MetricName": metric, "Period": 60, "Statistics": [statistic],
            "Dimensions": [{"Name": "InstanceId", "Value": INSTANCE}],
            "StartTime": START, "EndTime": START + 40_000,
        }),
    );
    let points = answer["Datapoints"].as_array().unwrap().iter();
    points.map(|point| (point["Timestamp"].as_u64().unwrap(), point[statistic].as_f64().unwrap())).collect()
}

/// The same by the minutes since the start of the test.
#[track_caller]
fn minutes<const N: usize>(rig: &Rig, metric: &str, statistic: &str) -> [Option<f64>; N] {
    let points = points(rig, metric, statistic);
    std::array::from_fn(|number| points.get(&(START + 60 * u64::try_from(number).unwrap())).copied())
}

/// The metrics of `AWS/EC2` that are listed.
fn listed(rig: &Rig) -> BTreeSet<String> {
    let listed = rig.call("ListMetrics", json!({"Namespace": "AWS/EC2"}))["Metrics"].clone();
    let rows = listed.as_array().unwrap();
    for row in rows {
        assert_eq!(row["Dimensions"], json!([{"Name": "InstanceId", "Value": INSTANCE}]));
    }
    let names: BTreeSet<String> =
        rows.iter().map(|row| row["MetricName"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), rows.len(), "there is one instance: {listed}");
    names
}

#[test]
fn an_instance_has_what_its_volumes_did_together_and_the_balances_of_its_own_buckets() {
    let rig = running(Rig::new());
    rig.attach(DB, "gp3:size=100GiB");
    rig.attach(LOG, "gp3:size=100GiB");
    rig.drive(DB, 30, (Op::Read, 16, 10));
    rig.drive(LOG, 30, (Op::Write, 4, 20));
    // 70 a second, of which 20 are earned meanwhile: 50 x 60 of the credits.
    rig.drive(DB, 60, (Op::Read, 16, 70));
    // More than the ceiling.
    rig.drive(DB, 60, (Op::Write, 16, 150));
    rig.pass(60);
    let sum = |metric: &str| minutes::<2>(&rig, metric, "Sum");
    assert_eq!(sum("EBSReadOps"), [Some(300.0), Some(4_200.0)]);
    assert_eq!(sum("EBSWriteOps"), [Some(600.0), Some(0.0)]);
    assert_eq!(sum("EBSReadBytes")[0], Some(300.0 * 16_384.0));
    assert_eq!(sum("EBSWriteBytes")[0], Some(600.0 * 4_096.0));
    let balance = minutes::<3>(&rig, "EBSIOBalance%", "Minimum");
    assert_near(balance[0], 100.0);
    assert!((49.0..=51.0).contains(&balance[1].unwrap()), "{balance:?}");
    assert!(balance[2].unwrap() < balance[1].unwrap(), "{balance:?}");
    assert_eq!(minutes::<1>(&rig, "EBSByteBalance%", "Minimum"), [None], "the size sustains its maximum");
    let check = minutes::<3>(&rig, "InstanceEBSIOPSExceededCheck", "Maximum");
    assert_eq!(check, [Some(0.0), Some(0.0), Some(1.0)]);
    let check = minutes::<3>(&rig, "InstanceEBSThroughputExceededCheck", "Maximum");
    assert_eq!(check, [Some(0.0); 3]);
    let names = listed(&rig);
    assert!(names.contains("EBSReadOps") && names.contains("EBSIOBalance%"), "{names:?}");
    assert!(!names.contains("EBSByteBalance%"), "{names:?}");
    let math = json!({"StartTime": START, "EndTime": START + 60, "MetricDataQueries": [
        {"Id": "r", "ReturnData": false, "MetricStat": {"Period": 60, "Stat": "Sum", "Metric": {
            "Namespace": "AWS/EC2", "MetricName": "EBSReadOps",
            "Dimensions": [{"Name": "InstanceId", "Value": INSTANCE}]}}},
        {"Id": "iops", "Expression": "r / PERIOD(r)"}]});
    assert_eq!(rig.call("GetMetricData", math)["MetricDataResults"][0]["Values"], json!([5.0]));
}

#[test]
fn a_running_instance_publishes_its_checks_without_volumes_and_a_stopped_one_nothing() {
    let rig = running(Rig::new());
    rig.pass(60);
    let names = ["StatusCheckFailed", "StatusCheckFailed_Instance", "StatusCheckFailed_System", "EBSReadOps"];
    for name in names {
        assert_eq!(minutes::<1>(&rig, name, "Maximum"), [Some(0.0)], "{name}");
    }
    assert_eq!(minutes::<1>(&rig, "EBSIOBalance%", "Minimum"), [None], "unknown without a volume");
    rig.volumes.is_running.store(false, Ordering::Relaxed);
    rig.pass(120);
    for name in names {
        assert_eq!(minutes::<3>(&rig, name, "Maximum"), [Some(0.0), None, None], "{name}");
    }
    assert!(listed(&rig).contains("StatusCheckFailed"));
    rig.pass(3 * 3_600);
    let recent = json!({"Namespace": "AWS/EC2", "RecentlyActive": "PT3H"});
    assert_eq!(rig.call("ListMetrics", recent)["Metrics"], json!([]));
}

#[test]
fn a_stopped_instance_publishes_nothing_of_the_volumes_that_stay_attached() {
    let rig = running(Rig::new());
    rig.attach(DB, "gp3:size=100GiB");
    rig.drive(DB, 60, (Op::Read, 16, 10));
    rig.volumes.is_running.store(false, Ordering::Relaxed);
    rig.drive(DB, 60, (Op::Read, 16, 10));
    rig.pass(60);
    assert_eq!(minutes::<2>(&rig, "EBSReadOps", "Sum"), [Some(600.0), None]);
    assert_eq!(rig.minutes::<2>(DB, "VolumeReadOps", "Sum"), [Some(600.0); 2]);
}

#[test]
fn io_that_does_not_complete_for_a_minute_fails_the_check_of_attached_volumes_alone() {
    let rig = running(Rig::new());
    rig.attach(DB, "gp3:size=100GiB");
    rig.attach(LOG, "gp3:size=100GiB");
    rig.drive(DB, 60, (Op::Read, 16, 10));
    // 256 KiB at 1 KiB a second.
    let slow = InstanceLimits { iops: RateLimit::flat(100), throughput: RateLimit::flat(1 << 10) };
    *rig.volumes.instance.lock().unwrap() = Some(Instance::new(slow));
    rig.drive(LOG, 1, (Op::Write, 256, 2));
    *rig.volumes.instance.lock().unwrap() = None;
    rig.drive(DB, 119, (Op::Read, 16, 10));
    let maximum = |metric: &str| minutes::<3>(&rig, metric, "Maximum").map(Option::unwrap);
    let failed = maximum("StatusCheckFailed_AttachedEBS");
    assert_eq!((failed[0], failed[2]), (0.0, 1.0));
    assert_eq!(maximum("StatusCheckFailed"), failed);
    assert_eq!(maximum("StatusCheckFailed_Instance"), [0.0; 3]);
    assert_eq!(maximum("StatusCheckFailed_System"), [0.0; 3]);
    let of_volume = |volume: &str| rig.minutes::<3>(volume, "VolumeStalledIOCheck", "Maximum");
    assert_eq!((of_volume(LOG)[2], of_volume(DB)[2]), (Some(1.0), Some(0.0)));
}

#[test]
fn packed_hours_of_an_instance_answer_as_before_and_after_a_kill() {
    let rig = running(Rig::new());
    rig.attach(DB, "gp2:size=100GiB");
    rig.attach(LOG, "gp3:size=100GiB");
    for number in 0..3_u64 {
        rig.drive(DB, 30, (Op::Read, 16, 40 + number));
        rig.drive(LOG, 30, (Op::Write, 16, 60 + number));
    }
    let names = listed(&rig);
    let all = |rig: &Rig| -> BTreeMap<String, BTreeMap<u64, f64>> {
        names.iter().map(|name| (name.clone(), points(rig, name, "Sum"))).collect()
    };
    rig.pass(600);
    let single = all(&rig);
    assert_eq!(rig.packed(), 0);
    assert_eq!((names.len(), single["EBSIOBalance%"].len()), (11, 13));
    // A kill loses the minute that has not ended alone.
    let rig = running(rig.restarted());
    assert_eq!(all(&rig), single);
    // The rest of the minute adds to it, whose volumes are attached again.
    rig.attach(DB, "gp2:size=100GiB");
    rig.pass(4 * 3_600);
    let (of_one, packed) = rig.stored();
    assert!(packed > 3 * 13 && of_one > 0, "{packed} packed, {of_one} are not");
    let after = all(&rig);
    for (name, points) in &single {
        assert!(points.iter().all(|(at, value)| after[name].get(at) == Some(value)), "{name}");
    }
    // Every minute has one value, and none is missing.
    assert_eq!(after["StatusCheckFailed"].len(), 13 + 4 * 60);
    assert_eq!(all(&rig.restarted()), after);
}
