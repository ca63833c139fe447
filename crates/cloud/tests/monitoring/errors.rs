//! Every row of `data/monitoring-errors.toml`: code, message and status, and that nothing has changed.

use ebbtide_volume::Op;
use serde_json::{Value, json};

use crate::support::{Rig, START};

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

#[test]
fn every_row_of_the_errors_is_answered_as_it_says_and_changes_nothing() {
    let table: Table = toml::from_str(include_str!("../../data/monitoring-errors.toml")).unwrap();
    assert!(table.row.len() >= 40, "{} rows", table.row.len());
    let rig = Rig::new();
    rig.attach("vol-00000000000000001", "gp3:size=100GiB");
    rig.drive("vol-00000000000000001", 60, (Op::Read, 16, 1));
    rig.call(
        "PutMetricAlarm",
        json!({"AlarmName": "known", "Namespace": "AWS/EBS", "MetricName": "VolumeReadOps", "Statistic": "Sum",
            "Period": 60, "EvaluationPeriods": 1, "Threshold": 1.0, "ComparisonOperator": "GreaterThanThreshold",
            "Dimensions": [{"Name": "VolumeId", "Value": "vol-00000000000000001"}]}),
    );
    let seen = || {
        let history = rig.call("DescribeAlarmHistory", json!({}));
        (rig.call("DescribeAlarms", json!({})), history, rig.call("ListMetrics", json!({})))
    };
    let before = seen();
    let mut wrong = Vec::new();
    for Row { operation, parameters, code, message, status } in table.row {
        let input = placed(parameters);
        let expected = (code, message, status);
        match rig.attempt(&operation, &input) {
            Ok(output) => {
                wrong.push(format!("{operation} {input}\n  answers {output:?}\n  not {expected:?}"))
            }
            Err(error) => {
                let found = (error.code.into_owned(), error.message, error.status);
                if found != expected {
                    wrong.push(format!("{operation} {input}\n  is {found:?}\n  not {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(seen(), before);
}
