//! How metrics are asked for: dimensions, units, spans, pages.

use ebbtide_cloud::monitoring::Gauge;
use ebbtide_volume::Op;
use serde_json::{Value, json};

use crate::support::{ACCOUNT, INSTANCE, REGION, Rig, START, dimensions};

const DB: &str = "vol-00000000000000001";

fn rig(minutes: u64) -> Rig {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    rig.drive(DB, minutes * 60, (Op::Read, 16, 1));
    rig
}

fn query(id: &str, metric: &str, period: u64) -> Value {
    json!({"Id": id, "MetricStat": {"Period": period, "Stat": "Sum",
        "Metric": {"Namespace": "AWS/EBS", "MetricName": metric, "Dimensions": dimensions(DB, metric)}}})
}

#[test]
fn only_the_exact_dimensions_and_the_unit_find_a_metric() {
    let rig = rig(1);
    let count = |metric: &str, dimensions: Value, unit: Option<&str>| {
        let mut input = json!({"Namespace": "AWS/EBS", "MetricName": metric, "Dimensions": dimensions,
            "StartTime": START, "EndTime": START + 60, "Period": 60, "Statistics": ["Sum"]});
        if let Some(unit) = unit {
            input["Unit"] = json!(unit);
        }
        rig.call("GetMetricStatistics", input)["Datapoints"].as_array().unwrap().len()
    };
    let (volume, instance) =
        (json!({"Name": "VolumeId", "Value": DB}), json!({"Name": "InstanceId", "Value": INSTANCE}));
    assert_eq!(count("VolumeReadOps", json!([volume]), None), 1);
    assert_eq!(count("VolumeReadOps", json!([volume]), Some("Count")), 1);
    assert_eq!(count("VolumeReadOps", json!([volume]), Some("Bytes")), 0);
    assert_eq!(count("VolumeReadOps", json!([volume, instance]), None), 0);
    assert_eq!(count("VolumeReadOps", json!([]), None), 0);
    assert_eq!(count("VolumeAvgIOPS", json!([volume]), None), 0, "a newer metric has two dimensions");
    assert_eq!(count("VolumeAvgIOPS", json!([instance, volume]), None), 1);
    assert_eq!(count("NoSuchMetric", json!([volume]), None), 0);
}

#[test]
fn statistics_and_percentiles_are_answered_together() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    for per_second in [1, 2, 3, 4, 5] {
        rig.drive(DB, 60, (Op::Read, 16, per_second));
    }
    let answer = rig.call(
        "GetMetricStatistics",
        json!({"Namespace": "AWS/EBS", "MetricName": "VolumeReadOps", "Dimensions": dimensions(DB, ""),
            "StartTime": START, "EndTime": START + 300, "Period": 300, "Statistics": ["Sum", "Maximum"],
            "ExtendedStatistics": ["p50", "p99.9"]}),
    );
    let point = json!({"Timestamp": START, "Unit": "Count", "Sum": 900.0, "Maximum": 300.0,
        "ExtendedStatistics": {"p50": 180.0, "p99.9": 300.0}});
    assert_eq!(answer, json!({"Label": "VolumeReadOps", "Datapoints": [point]}));
}

#[test]
fn no_operation_is_larger_than_the_device_of_an_ebs_volume_takes() {
    for (kind, kib, pieces) in
        [("gp3:size=100GiB", 411, 2.0), ("gp3:size=100GiB", 1_024, 4.0), ("st1:size=500GiB", 1_024, 1.0)]
    {
        let rig = Rig::new();
        rig.attach(DB, kind);
        rig.drive(DB, 120, (Op::Write, kib, 10));
        let sum = |metric: &str| {
            let answer = rig.call(
                "GetMetricData",
                json!({"StartTime": START, "EndTime": START + 60, "MetricDataQueries": [query("m", metric, 60)]}),
            );
            answer["MetricDataResults"][0]["Values"][0].as_f64().unwrap()
        };
        let (ops, bytes) = (sum("VolumeWriteOps"), sum("VolumeWriteBytes"));
        assert!(
            (bytes / ops - f64::from(kib) * 1_024.0 / pieces).abs() < 1.0,
            "{kind}, {kib} KiB: {ops}, {bytes}"
        );
    }
}

#[test]
fn the_end_is_exclusive_and_the_start_is_rounded_down() {
    let rig = rig(4);
    let times = |start: f64, end: f64, period: u64| {
        let answer = rig.call(
            "GetMetricData",
            json!({"StartTime": start, "EndTime": end, "MetricDataQueries": [query("r", "VolumeReadOps", period)],
                "ScanBy": "TimestampAscending"}),
        );
        let times = answer["MetricDataResults"][0]["Timestamps"].as_array().unwrap().clone();
        times.iter().map(|at| at.as_u64().unwrap() - START).collect::<Vec<_>>()
    };
    let at = |seconds: f64| START as f64 + seconds;
    assert_eq!(times(at(0.0), at(120.0), 60), [0, 60]);
    assert_eq!(times(at(59.9), at(120.5), 60), [0, 60, 120]);
    assert_eq!(times(at(60.0), at(61.0), 60), [60]);
    // Whole periods of five minutes, although the start is within one.
    assert_eq!(times(at(130.0), at(200.0), 300), [0]);
}

#[test]
fn pages_together_are_the_whole_answer() {
    let rig = rig(10);
    let input = json!({"StartTime": START, "EndTime": START + 600,
        "MetricDataQueries": [query("r", "VolumeReadOps", 60), query("i", "VolumeIdleTime", 60),
            query("n", "BurstBalance", 60)]});
    let whole = rig.call("GetMetricData", input.clone());
    let results = whole["MetricDataResults"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert_eq!(results[0]["Timestamps"][0], START + 540, "the newest first");
    let mut pages: [Vec<Value>; 2] = [Vec::new(), Vec::new()];
    let (mut token, mut states) = (None, Vec::new());
    loop {
        let mut input = input.clone();
        input["MaxDatapoints"] = json!(7);
        if let Some(token) = &token {
            input["NextToken"] = json!(token);
        }
        let page = rig.call("GetMetricData", input);
        for result in page["MetricDataResults"].as_array().unwrap() {
            states.push(result["StatusCode"].as_str().unwrap().to_owned());
            let own = match result["Id"].as_str().unwrap() {
                "r" => &mut pages[0],
                "i" => &mut pages[1],
                _ => continue,
            };
            own.extend(result["Values"].as_array().unwrap().clone());
        }
        match page.get("NextToken") {
            Some(next) => token = Some(next.as_str().unwrap().to_owned()),
            None => break,
        }
    }
    assert_eq!(states, ["PartialData", "Complete", "Complete", "PartialData", "Complete"]);
    assert_eq!(json!(pages[0]), results[0]["Values"]);
    assert_eq!(json!(pages[1]), results[1]["Values"]);
}

#[test]
fn minutes_are_kept_for_fifteen_days() {
    let rig = rig(2);
    assert_eq!(rig.minutes::<2>(DB, "VolumeReadOps", "Sum"), [Some(60.0), Some(60.0)]);
    rig.detach(DB);
    let after = |days: u64| (START + days * 86_400 + 120) * 1_000;
    rig.service.tick(after(14)).unwrap();
    assert_eq!(rig.minutes::<1>(DB, "VolumeReadOps", "Sum"), [Some(60.0)]);
    rig.service.tick(after(16)).unwrap();
    assert_eq!(rig.minutes::<2>(DB, "VolumeReadOps", "Sum"), [None, None]);
}

#[test]
fn every_action_asks_for_its_right_before_it_does_anything() {
    use ebbtide_cloud::Service as _;
    let mut rig = Rig::new();
    rig.rights.denies = true;
    let input = json!({"AlarmName": "a", "AlarmNames": ["a"], "StateValue": "OK", "StateReason": "r",
        "ResourceARN": "arn:aws:cloudwatch:us-east-1:123456789012:alarm:a", "MetricName": "m", "Namespace": "n"});
    for action in rig.service.actions() {
        let error = rig.attempt(action, &input).unwrap_err();
        assert_eq!((&*error.code, error.status), ("AccessDenied", 403), "{action}");
        let asked = rig.rights.asked.lock().unwrap().pop().unwrap();
        assert_eq!(asked.action, format!("cloudwatch:{action}"));
        let is_of_alarm = asked.resource.starts_with("arn:aws:cloudwatch:us-east-1:123456789012:alarm:");
        assert!(is_of_alarm || asked.resource == "*", "{asked:?}");
    }
}

#[test]
fn metrics_of_snapshots_are_found_by_their_dimensions_and_survive_a_restart() {
    let rig = Rig::new();
    let metric = "FastSnapshotRestoreCreditsBalance";
    let gauge = |value: f64| Gauge {
        owner: ACCOUNT.to_owned(),
        region: REGION.to_owned(),
        metric,
        dimensions: vec![
            ("AvailabilityZone", "us-east-1a".to_owned()),
            ("SnapshotId", "snap-00000000000000001".to_owned()),
        ],
        value,
    };
    for value in [0.5, 1.0] {
        *rig.volumes.gauges.lock().unwrap() = vec![gauge(value)];
        rig.pass(60);
    }
    rig.volumes.gauges.lock().unwrap().clear();
    rig.pass(60);
    let rig = rig.restarted();
    let snapshot = json!({"Name": "SnapshotId", "Value": "snap-00000000000000001"});
    let zone = json!({"Name": "AvailabilityZone", "Value": "us-east-1a"});
    let points = |dimensions: Value| {
        let input = json!({"Namespace": "AWS/EBS", "MetricName": metric, "Dimensions": dimensions,
            "StartTime": START, "EndTime": START + 600, "Period": 60, "Statistics": ["Average", "Maximum"]});
        rig.call("GetMetricStatistics", input)["Datapoints"].clone()
    };
    let found = points(json!([snapshot, zone]));
    let point = |at, value| json!({"Timestamp": at, "Unit": "None", "Average": value, "Maximum": value});
    assert_eq!(found, json!([point(START, 0.5), point(START + 60, 1.0)]));
    assert_eq!(points(json!([snapshot])), json!([]), "both dimensions are needed");
    let listed = rig.call("ListMetrics", json!({"Dimensions": [{"Name": "SnapshotId"}]}));
    let row = json!({"Namespace": "AWS/EBS", "MetricName": metric, "Dimensions": [snapshot, zone]});
    assert_eq!(listed["Metrics"], json!([row]));
}
