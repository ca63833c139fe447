//! How metrics are asked for: dimensions, units, spans, pages.

use ebbtide_cloud::monitoring::Gauge;
use ebbtide_volume::Op;
use proptest::prelude::*;
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
    // The first period begins at the start, not at a multiple of five minutes.
    assert_eq!(times(at(130.0), at(200.0), 300), [120]);
}

/// The points of reads of GetMetricStatistics and of GetMetricData, as seconds from the start of the test and sums.
fn sums(rig: &Rig, start: f64, end: f64, period: u64) -> [Vec<(u64, f64)>; 2] {
    let statistics = rig.call(
        "GetMetricStatistics",
        json!({"Namespace": "AWS/EBS", "MetricName": "VolumeReadOps", "Dimensions": dimensions(DB, ""),
            "StartTime": start, "EndTime": end, "Period": period, "Statistics": ["Sum"]}),
    );
    let row = |point: &Value| (point["Timestamp"].as_u64().unwrap() - START, point["Sum"].as_f64().unwrap());
    let statistics = statistics["Datapoints"].as_array().unwrap().iter().map(row).collect();
    let data = rig.call(
        "GetMetricData",
        json!({"StartTime": start, "EndTime": end, "ScanBy": "TimestampAscending",
            "MetricDataQueries": [query("r", "VolumeReadOps", period)]}),
    );
    let result = &data["MetricDataResults"][0];
    let times = result["Timestamps"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap() - START);
    let values = result["Values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap());
    [statistics, times.zip(values).collect()]
}

#[test]
fn periods_begin_at_the_start_and_have_nothing_from_before_it_or_after_the_end() {
    // A minute of 60 reads each, for 25 minutes.
    let rig = rig(25);
    let at = |seconds: f64| START as f64 + seconds;
    let both = |start: f64, end: f64, period: u64| {
        let [statistics, data] = sums(&rig, at(start), at(end), period);
        assert_eq!(statistics, data, "{start} {end} {period}");
        statistics
    };
    // One window is one point with the time of its start, whatever the hour.
    assert_eq!(both(180.0, 3_780.0, 3_600), [(180, 22.0 * 60.0)]);
    assert_eq!(both(217.0, 3_817.0, 3_600), [(180, 22.0 * 60.0)], "the start is rounded down to the minute");
    assert_eq!(both(420.0, 1_320.0, 420), [(420, 420.0), (840, 420.0), (1_260, 60.0)]);
    assert_eq!(both(60.0, 240.0, 3_600), [(60, 180.0)], "the period is longer than the span");
    assert_eq!(both(60.0, 240.1, 3_600), [(60, 240.0)]);
    // Below a minute each point has the minute that begins in it.
    assert_eq!(both(55.0, 130.0, 10), [(60, 60.0), (120, 60.0)]);
    assert_eq!(both(55.0, 130.0, 30), [(60, 60.0), (120, 60.0)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn periods_of_any_length_add_up_to_the_minutes_of_the_span(
        start in 0_u32..1_500,
        length in 1_u32..2_000,
        minutes in 1_u64..70,
    ) {
        let first = START + u64::from(start) / 60 * 60;
        let (start, end) = (START as f64 + f64::from(start), START as f64 + f64::from(start + length));
        WITH_READS.with(|rig| {
            let [by_minute, _] = sums(rig, start, end, 60);
            let [statistics, data] = sums(rig, start, end, minutes * 60);
            let total = |points: &[(u64, f64)]| points.iter().map(|(_, sum)| sum).sum::<f64>();
            prop_assert_eq!(total(&statistics), total(&by_minute));
            prop_assert_eq!(&statistics, &data);
            for (time, _) in statistics {
                prop_assert!((START + time) as f64 > start - 60.0 && ((START + time) as f64) < end);
                prop_assert_eq!((START + time - first) % (minutes * 60), 0);
            }
            Ok(())
        })?;
    }
}

thread_local! {
    /// 25 minutes of 60 reads each, for all cases of a property.
    static WITH_READS: Rig = rig(25);
}

#[test]
fn metric_math_has_the_points_of_periods_that_begin_at_the_start() {
    let rig = rig(10);
    let mut reads = query("r", "VolumeReadOps", 300);
    reads["ReturnData"] = json!(false);
    let fill = json!({"Id": "f", "Expression": "FILL(r, 0) / PERIOD(r)"});
    let input = json!({"StartTime": START + 130, "EndTime": START + 1_330, "ScanBy": "TimestampAscending",
        "MetricDataQueries": [reads, fill]});
    let answer = rig.call("GetMetricData", input);
    let result = &answer["MetricDataResults"][0];
    assert_eq!(
        result["Timestamps"],
        json!([START + 120, START + 420, START + 720, START + 1_020, START + 1_320])
    );
    assert_eq!(result["Values"], json!([1.0, 0.6, 0.0, 0.0, 0.0]));
}

#[test]
fn a_start_that_is_not_before_the_end_is_refused_also_within_a_second() {
    let rig = rig(1);
    let (start, message) = (START as f64, "The parameter StartTime must be less than the parameter EndTime.");
    for (first, last) in [(0.0, 0.0), (30.25, 30.25), (30.5, 30.25), (60.0, 0.0)] {
        let (first, last) = (start + first, start + last);
        let statistics = json!({"Namespace": "AWS/EBS", "MetricName": "VolumeReadOps", "StartTime": first,
            "EndTime": last, "Period": 60, "Statistics": ["Sum"]});
        let data = json!({"StartTime": first, "EndTime": last,
            "MetricDataQueries": [query("r", "VolumeReadOps", 60)]});
        for (action, input, code) in [
            ("GetMetricStatistics", statistics, "InvalidParameterValue"),
            ("GetMetricData", data, "ValidationError"),
        ] {
            let error = rig.attempt(action, &input).unwrap_err();
            assert_eq!((&*error.code, &*error.message), (code, message), "{action} {first} {last}");
        }
    }
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
