//! Every row of `data/monitoring-errors.toml`: code, message and status, and that nothing has changed.

use std::sync::Arc;

use ebbtide_volume::Op;
use serde_json::{Value, json};

use crate::rows::Mismatches;
use crate::support::{ACCOUNT, Rig, START};
use crate::wire::{Protocol, Shapes, Wire};

const PROTOCOLS: [Protocol; 3] = [Protocol::Query, Protocol::Json, Protocol::Cbor];

#[derive(serde::Deserialize)]
struct Table {
    row: Vec<Row>,
}

#[derive(serde::Deserialize)]
struct Row {
    operation: String,
    parameters: Value,
    code: String,
    message: String,
    status: u16,
}

/// Times are seconds from the start of the test.
fn placed(mut value: Value) -> Value {
    for name in ["StartTime", "EndTime"] {
        if let Some(seconds) = value[name].as_i64() {
            value[name] = json!(i64::try_from(START).unwrap() + seconds);
        }
    }
    if let Some(object) = value.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
    value
}

/// A volume with a minute of values, and an alarm.
fn rig() -> Rig {
    let rig = Rig::new();
    rig.attach("vol-00000000000000001", "gp3:size=100GiB");
    rig.drive("vol-00000000000000001", 60, (Op::Read, 16, 1));
    rig.call(
        "PutMetricAlarm",
        json!({"AlarmName": "known", "Namespace": "AWS/EBS", "MetricName": "VolumeReadOps", "Statistic": "Sum",
            "Period": 60, "EvaluationPeriods": 1, "Threshold": 1.0, "ComparisonOperator": "GreaterThanThreshold",
            "Dimensions": [{"Name": "VolumeId", "Value": "vol-00000000000000001"}]}),
    );
    rig
}

#[test]
fn every_row_of_the_errors_is_answered_as_it_says_and_changes_nothing() {
    let table: Table = toml::from_str(include_str!("../../data/monitoring-errors.toml")).unwrap();
    assert!(table.row.len() >= 40, "{} rows", table.row.len());
    let rig = rig();
    let seen = || {
        let history = rig.call("DescribeAlarmHistory", json!({}));
        (rig.call("DescribeAlarms", json!({})), history, rig.call("ListMetrics", json!({})))
    };
    let before = seen();
    let mut wrong = Mismatches::default();
    for Row { operation, parameters, code, message, status } in table.row {
        let input = placed(parameters);
        let expected = (code, message, status);
        let found = rig.attempt(&operation, &input);
        let found = found.map_err(|error| (error.code.into_owned(), error.message, error.status));
        wrong.check(&format!("{operation} {input}"), found, &expected);
    }
    wrong.end();
    assert_eq!(seen(), before);
}

#[test]
fn every_row_of_the_errors_goes_over_the_wire_in_each_protocol_of_cloudwatch() {
    let table: Table = toml::from_str(include_str!("../../data/monitoring-errors.toml")).unwrap();
    let (rig, shapes) = (rig(), Shapes::of("monitoring"));
    let wire = Wire::open(vec![Arc::clone(&rig.service) as _], rig.now_ms(), ACCOUNT);
    let mut wrong = Mismatches::default();
    for row in &table.row {
        let input = placed(row.parameters.clone());
        let expected = (row.code.as_str(), row.message.as_str(), row.status);
        for protocol in PROTOCOLS {
            if !shapes.carries(protocol, &row.operation, &input) {
                continue;
            }
            let response = wire.call(&shapes, protocol, &row.operation, (&input, &[]));
            wrong.check_wire(&format!("{} {input}", row.operation), protocol, &response, expected);
        }
    }
    wrong.end();
}

#[test]
fn bad_signatures_are_refused_in_each_protocol_of_cloudwatch() {
    let (rig, shapes) = (rig(), Shapes::of("monitoring"));
    let wire = Wire::closed(vec![Arc::clone(&rig.service) as _], rig.now_ms());
    let delete = json!({"AlarmNames": ["known"]});
    let expected = [
        ("MissingAuthenticationToken", 403),
        ("SignatureDoesNotMatch", 403),
        ("SignatureDoesNotMatch", 403),
        ("SignatureDoesNotMatch", 403),
    ];
    for protocol in PROTOCOLS {
        wire.check_signatures(&shapes, protocol, ("DeleteAlarms", &delete), expected);
        assert_eq!(wire.call(&shapes, protocol, "DescribeAlarms", (&json!({}), &[])).status(), 200);
    }
    assert_eq!(rig.call("DescribeAlarms", json!({}))["MetricAlarms"].as_array().unwrap().len(), 1);
}
