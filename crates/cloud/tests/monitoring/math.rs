//! Metric math through GetMetricData.

use ebbtide_volume::Op;
use serde_json::{Value, json};

use crate::support::{Rig, START, assert_near, dimensions};

const DB: &str = "vol-00000000000000001";

fn stat(id: &str, metric: &str, stat: &str, period: u64) -> Value {
    json!({"Id": id, "ReturnData": false, "MetricStat": {"Period": period, "Stat": stat,
        "Metric": {"Namespace": "AWS/EBS", "MetricName": metric, "Dimensions": dimensions(DB, metric)}}})
}

/// Three minutes: 600 reads of 16 KiB, none, 1,200 reads of 16 KiB.
fn rig() -> Rig {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    for per_second in [10, 0, 20] {
        rig.drive(DB, 60, (Op::Read, 16, per_second));
    }
    rig
}

/// The values of an expression in the minutes of the test, of which `r` and `b` are reads and their bytes.
fn values(rig: &Rig, expression: &str) -> Vec<(u64, f64)> {
    let queries = json!([
        stat("r", "VolumeReadOps", "Sum", 60),
        stat("b", "VolumeReadBytes", "Sum", 60),
        stat("w", "BurstBalance", "Average", 60),
        {"Id": "e", "Expression": expression},
    ]);
    let answer = rig.call(
        "GetMetricData",
        json!({"StartTime": START, "EndTime": START + 180, "MetricDataQueries": queries,
            "ScanBy": "TimestampAscending"}),
    );
    let result = &answer["MetricDataResults"][0];
    assert_eq!((&result["Id"], &result["StatusCode"]), (&json!("e"), &json!("Complete")));
    let times = result["Timestamps"].as_array().unwrap().iter().map(|at| (at.as_u64().unwrap() - START) / 60);
    let values = result["Values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap());
    times.zip(values).collect()
}

#[test]
fn expressions_have_the_values_counted_by_hand() {
    let rig = rig();
    for (expression, expected) in [
        ("r", &[(0, 600.0), (1, 0.0), (2, 1_200.0)][..]),
        // The console's: IOPS, throughput, size.
        ("r/PERIOD(r)", &[(0, 10.0), (1, 0.0), (2, 20.0)]),
        ("(b/1024)/PERIOD(b)", &[(0, 160.0), (1, 0.0), (2, 320.0)]),
        ("(b/1024)/r", &[(0, 16.0), (2, 16.0)]),
        ("IF(r != 0, (b/1024)/r, 0)", &[(0, 16.0), (1, 0.0), (2, 16.0)]),
        ("IF(r > 0 AND r < 1000, 1, 2)", &[(0, 1.0), (1, 2.0), (2, 2.0)]),
        ("IF(r, r)", &[(0, 600.0), (2, 1_200.0)]),
        ("-r + 2 * (3 - 1)", &[(0, -596.0), (1, 4.0), (2, -1_196.0)]),
        ("r / SUM(r) * 100", &[(0, 100.0 / 3.0), (1, 0.0), (2, 200.0 / 3.0)]),
        ("r - AVG(r)", &[(0, 0.0), (1, -600.0), (2, 600.0)]),
        ("r * 0 + MAX(r) - MIN(r)", &[(0, 1_200.0), (1, 1_200.0), (2, 1_200.0)]),
        ("RATE(r)", &[(1, -10.0), (2, 20.0)]),
        ("SUM(METRICS()) - b", &[(0, 600.0), (1, 0.0), (2, 1_200.0)]),
        ("MAX(METRICS(\"r\"))", &[(0, 600.0), (1, 0.0), (2, 1_200.0)]),
        ("AVG([r, r*3])", &[(0, 1_200.0), (1, 0.0), (2, 2_400.0)]),
        // A gp3 has no BurstBalance.
        ("w", &[]),
        ("FILL(w, 7)", &[(0, 7.0), (1, 7.0), (2, 7.0)]),
        ("FILL(IF(r, r), 0)", &[(0, 600.0), (1, 0.0), (2, 1_200.0)]),
        ("FILL(IF(r, r), REPEAT)", &[(0, 600.0), (1, 600.0), (2, 1_200.0)]),
        ("CEIL(r/7)", &[(0, 86.0), (1, 0.0), (2, 172.0)]),
    ] {
        let found = values(&rig, expression);
        assert_eq!(found.len(), expected.len(), "{expression}: {found:?}");
        for ((at, value), (expected_at, expected)) in found.iter().zip(expected) {
            assert_eq!(at, expected_at, "{expression}");
            assert_near(Some(*value), *expected);
        }
    }
}

#[test]
fn the_console_s_latency_is_the_volume_s_own() {
    let rig = rig();
    let queries = json!([
        stat("t", "VolumeTotalReadTime", "Sum", 60),
        stat("r", "VolumeReadOps", "Sum", 60),
        stat("l", "VolumeAvgReadLatency", "Average", 60),
        {"Id": "ms", "Expression": "IF(r != 0, (t / r) * 1000, 0)", "Label": "Latency"},
        {"Id": "difference", "Expression": "ms - l"},
    ]);
    let answer = rig.call(
        "GetMetricData",
        json!({"StartTime": START, "EndTime": START + 180, "MetricDataQueries": queries}),
    );
    assert_eq!(answer["MetricDataResults"][0]["Label"], "Latency");
    let difference = answer["MetricDataResults"][1]["Values"].as_array().unwrap();
    assert_eq!(difference.len(), 3);
    assert!(difference.iter().all(|value| value.as_f64().unwrap().abs() < 1e-9), "{difference:?}");
}

#[test]
fn records_that_cannot_be_read_are_a_failure_of_the_service_and_not_of_the_expression() {
    let rig = rig();
    let records = rusqlite::Connection::open(rig.dir.path().join("history.db")).unwrap();
    records.execute_batch("DROP TABLE minutes; DROP TABLE minute_chunks").unwrap();
    let queries = json!([stat("r", "VolumeReadOps", "Sum", 60), {"Id": "e", "Expression": "FILL(r / 2, 0)"}]);
    let query = json!({"StartTime": START, "EndTime": START + 180, "MetricDataQueries": queries});
    let error = rig.attempt("GetMetricData", &query).unwrap_err();
    assert_eq!((&*error.code, error.status), ("InternalServiceError", 500));
    assert!(error.message.contains("history.db cannot be used: no such table"), "{error}");
}
