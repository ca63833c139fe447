//! Alarms over volumes whose load is known.

use ebbtide_volume::Op;
use serde_json::{Value, json};

use crate::support::{Rig, START};

const DB: &str = "vol-00000000000000001";

fn alarm(change: Value) -> Value {
    let mut alarm = json!({
        "AlarmName": "busy", "Namespace": "AWS/EBS", "MetricName": "VolumeWriteOps", "Statistic": "Sum", "Period": 60,
        "Dimensions": [{"Name": "VolumeId", "Value": DB}],
        "EvaluationPeriods": 3, "DatapointsToAlarm": 2, "Threshold": 100.0,
        "ComparisonOperator": "GreaterThanThreshold",
    });
    alarm.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    alarm
}

fn shown(rig: &Rig) -> Value {
    rig.call("DescribeAlarms", json!({"AlarmNames": ["busy"]}))["MetricAlarms"][0].clone()
}

fn state(rig: &Rig) -> String {
    shown(rig)["StateValue"].as_str().unwrap().to_owned()
}

fn minute(rig: &Rig, per_second: u64) -> String {
    rig.drive(DB, 60, (Op::Write, 16, per_second));
    state(rig)
}

#[test]
fn two_of_three_minutes_over_the_threshold_are_an_alarm() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    rig.call("PutMetricAlarm", alarm(json!({"AlarmDescription": "too many writes"})));
    assert_eq!(state(&rig), "INSUFFICIENT_DATA");
    let states = [1, 2, 1, 2, 1, 1].map(|per_second| minute(&rig, per_second));
    // 60 is below 100, 120 above: the second and the fourth minute are two of three.
    assert_eq!(states, ["OK", "OK", "OK", "ALARM", "OK", "OK"]);
    let shown = shown(&rig);
    assert_eq!(shown["AlarmArn"], "arn:aws:cloudwatch:us-east-1:123456789012:alarm:busy");
    assert_eq!(shown["StateTransitionedTimestamp"], START + 300);
    let history = rig.call("DescribeAlarmHistory", json!({"ScanBy": "TimestampAscending"}));
    let summaries: Vec<_> = history["AlarmHistoryItems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["HistorySummary"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        summaries,
        [
            "Alarm \"busy\" created",
            "Alarm updated from INSUFFICIENT_DATA to OK",
            "Alarm updated from OK to ALARM",
            "Alarm updated from ALARM to OK"
        ]
    );
    let events = rig.events.0.lock().unwrap().clone();
    let event = &events[1];
    assert_eq!(
        (&event["source"], &event["detail-type"], &event["account"], &event["region"], &event["time"]),
        (
            &json!("aws.cloudwatch"),
            &json!("CloudWatch Alarm State Change"),
            &json!("123456789012"),
            &json!("us-east-1"),
            &json!("2026-09-21T14:19:00Z")
        )
    );
    assert_eq!(event["resources"], json!(["arn:aws:cloudwatch:us-east-1:123456789012:alarm:busy"]));
    let detail = &event["detail"];
    assert_eq!((&detail["alarmName"], &detail["previousState"]["value"]), (&json!("busy"), &json!("OK")));
    assert_eq!(
        detail["state"]["reason"],
        "Threshold Crossed: 2 out of the last 3 datapoints [120.0 (21/09/26 14:18:00), 120.0 (21/09/26 14:16:00)] were \
         greater than the threshold (100.0) (minimum 2 datapoints for OK -> ALARM transition)."
    );
    let metric = &detail["configuration"]["metrics"][0]["metricStat"];
    assert_eq!(metric["metric"]["dimensions"], json!({"VolumeId": DB}));
    assert_eq!(detail["configuration"]["description"], "too many writes");
}

#[test]
fn a_restart_within_a_minute_does_not_change_a_state() {
    let rig = Rig::instant();
    rig.attach(DB, "gp3:size=100GiB");
    rig.call("PutMetricAlarm", alarm(json!({"EvaluationPeriods": 1, "DatapointsToAlarm": 1})));
    rig.pass(60);
    rig.drive(DB, 20, (Op::Write, 16, 10));
    assert_eq!(state(&rig), "ALARM");
    let rig = rig.restarted();
    rig.attach(DB, "gp3:size=100GiB");
    rig.drive(DB, 10, (Op::Write, 16, 0));
    assert_eq!(state(&rig), "ALARM");
    assert!(rig.events.0.lock().unwrap().is_empty());
}

#[test]
fn a_volume_that_is_detached_is_missing_data() {
    for (treatment, expected) in
        [("missing", "INSUFFICIENT_DATA"), ("ignore", "OK"), ("breaching", "ALARM"), ("notBreaching", "OK")]
    {
        let rig = Rig::new();
        rig.attach(DB, "gp3:size=100GiB");
        rig.call("PutMetricAlarm", alarm(json!({"TreatMissingData": treatment})));
        // Three minutes, so that nothing is missing yet.
        let states = [1, 1, 1].map(|per_second| minute(&rig, per_second));
        assert_eq!(states[2], "OK", "{treatment}");
        rig.detach(DB);
        rig.pass(360);
        assert_eq!(state(&rig), expected, "{treatment}");
    }
}

#[test]
fn an_alarm_on_an_expression_and_one_on_a_longer_period() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    let metric = |id: &str, name: &str| {
        json!({"Id": id, "ReturnData": false, "MetricStat": {"Period": 60, "Stat": "Sum", "Metric": {
            "Namespace": "AWS/EBS", "MetricName": name, "Dimensions": [{"Name": "VolumeId", "Value": DB}]}}})
    };
    let iops = json!({"Id": "iops", "Expression": "(r + w) / PERIOD(r)"});
    rig.call(
        "PutMetricAlarm",
        json!({"AlarmName": "math", "EvaluationPeriods": 1, "Threshold": 10.0,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "Metrics": [metric("r", "VolumeReadOps"), metric("w", "VolumeWriteOps"), iops]}),
    );
    rig.call(
        "PutMetricAlarm",
        alarm(json!({"Period": 300, "EvaluationPeriods": 1, "DatapointsToAlarm": 1,
        "Threshold": 1_000.0})),
    );
    let of = |name: &str| {
        rig.call("DescribeAlarms", json!({"AlarmNames": [name]}))["MetricAlarms"][0]["StateValue"].clone()
    };
    rig.drive(DB, 60, (Op::Write, 16, 9));
    assert_eq!((of("math"), of("busy")), (json!("OK"), json!("OK")));
    rig.drive(DB, 60, (Op::Write, 16, 10));
    // 540 and 600 are more than 1,000 in five minutes, which need not begin at a round time.
    assert_eq!((of("math"), of("busy")), (json!("ALARM"), json!("ALARM")));
    rig.drive(DB, 60, (Op::Write, 16, 0));
    assert_eq!((of("math"), of("busy")), (json!("OK"), json!("ALARM")));
}

#[test]
fn a_state_that_is_set_by_hand_holds_until_the_next_evaluation() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    rig.call("PutMetricAlarm", alarm(json!({})));
    assert_eq!(minute(&rig, 1), "OK");
    rig.call(
        "SetAlarmState",
        json!({"AlarmName": "busy", "StateValue": "ALARM", "StateReason": "a test", "StateReasonData": "{}"}),
    );
    assert_eq!((state(&rig), shown(&rig)["StateReason"].clone()), ("ALARM".to_owned(), json!("a test")));
    assert_eq!(rig.events.0.lock().unwrap().len(), 2);
    assert_eq!(minute(&rig, 1), "OK");
}

#[test]
fn alarms_are_kept_changed_found_and_deleted() {
    let rig = Rig::new();
    rig.attach(DB, "gp3:size=100GiB");
    rig.call(
        "PutMetricAlarm",
        alarm(json!({"AlarmActions": ["arn:aws:sns:us-east-1:123456789012:ops"],
        "Tags": [{"Key": "team", "Value": "db"}]})),
    );
    rig.call("PutMetricAlarm", alarm(json!({"AlarmName": "other", "MetricName": "VolumeReadOps"})));
    assert_eq!(minute(&rig, 2), "OK");
    assert_eq!(minute(&rig, 2), "ALARM");
    let before = shown(&rig);
    let rig = rig.restarted();
    assert_eq!(shown(&rig), before);
    let names = |action: &str, input: Value| {
        let found = rig.call(action, input)["MetricAlarms"].clone();
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|alarm| alarm["AlarmName"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("DescribeAlarms", json!({})), ["busy", "other"]);
    assert_eq!(names("DescribeAlarms", json!({"AlarmNamePrefix": "o"})), ["other"]);
    assert_eq!(names("DescribeAlarms", json!({"StateValue": "ALARM"})), ["busy"]);
    assert_eq!(names("DescribeAlarms", json!({"ActionPrefix": "arn:aws:sns"})), ["busy"]);
    assert!(names("DescribeAlarms", json!({"AlarmTypes": ["CompositeAlarm"]})).is_empty());
    assert!(names("DescribeAlarms", json!({"AlarmNames": ["unknown"]})).is_empty());
    let of_metric = json!({"Namespace": "AWS/EBS", "MetricName": "VolumeWriteOps",
        "Dimensions": [{"Name": "VolumeId", "Value": DB}]});
    assert_eq!(names("DescribeAlarmsForMetric", of_metric), ["busy"]);
    let page = rig.call("DescribeAlarms", json!({"MaxRecords": 1}));
    let next = rig.call("DescribeAlarms", json!({"MaxRecords": 1, "NextToken": page["NextToken"]}));
    assert_eq!((&next["MetricAlarms"][0]["AlarmName"], next.get("NextToken")), (&json!("other"), None));
    // An update replaces the configuration, and keeps state and tags.
    rig.call("PutMetricAlarm", alarm(json!({"Threshold": 5.0})));
    let after = shown(&rig);
    assert_eq!((&after["AlarmActions"], &after["StateValue"]), (&json!([]), &json!("ALARM")));
    let arn = json!({"ResourceARN": after["AlarmArn"]});
    assert_eq!(rig.call("ListTagsForResource", arn.clone())["Tags"], json!([{"Key": "team", "Value": "db"}]));
    rig.call("TagResource", json!({"ResourceARN": after["AlarmArn"], "Tags": [{"Key": "a", "Value": ""}]}));
    rig.call("UntagResource", json!({"ResourceARN": after["AlarmArn"], "TagKeys": ["team"]}));
    assert_eq!(rig.call("ListTagsForResource", arn)["Tags"], json!([{"Key": "a", "Value": ""}]));
    rig.call("DisableAlarmActions", json!({"AlarmNames": ["busy", "unknown"]}));
    assert_eq!(shown(&rig)["ActionsEnabled"], false);
    rig.call("EnableAlarmActions", json!({"AlarmNames": ["busy"]}));
    assert_eq!(shown(&rig)["ActionsEnabled"], true);
    rig.call("DeleteAlarms", json!({"AlarmNames": ["busy", "other"]}));
    assert!(names("DescribeAlarms", json!({})).is_empty());
    let history = rig.call("DescribeAlarmHistory", json!({"AlarmName": "busy", "MaxRecords": 1}));
    assert_eq!(history["AlarmHistoryItems"][0]["HistorySummary"], "Alarm \"busy\" deleted");
}

#[test]
fn actions_of_a_new_state_are_events_and_items_of_the_history() {
    let rig = Rig::new();
    let topic = "arn:aws:sns:us-east-1:123456789012:pager";
    let put = |enabled: bool| {
        alarm(json!({"AlarmActions": [topic, "arn:aws:automate:us-east-1:ec2:stop"], "OKActions": [topic],
            "ActionsEnabled": enabled}))
    };
    rig.call("PutMetricAlarm", put(true));
    let set = |state: &str| {
        rig.events.0.lock().unwrap().clear();
        rig.call(
            "SetAlarmState",
            json!({"AlarmName": "busy", "StateValue": state, "StateReason": "a drill"}),
        );
        rig.events.0.lock().unwrap().clone()
    };
    let events = set("ALARM");
    let kinds: Vec<_> =
        events.iter().map(|event| event["detail-type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        kinds,
        ["CloudWatch Alarm State Change", "CloudWatch Alarm Action", "CloudWatch Alarm Action"]
    );
    assert_eq!(
        (&events[1]["source"], &events[1]["resources"][0]),
        (&json!("ebbtide.cloudwatch"), &json!(topic))
    );
    let message = &events[1]["detail"]["message"];
    assert_eq!((&message["NewStateValue"], &message["NewStateReason"]), (&json!("ALARM"), &json!("a drill")));
    assert_eq!(message["Trigger"]["MetricName"], "VolumeWriteOps");
    assert_eq!(set("ALARM").len(), 0, "the state is the same");
    assert_eq!(set("OK").len(), 2);
    rig.call("PutMetricAlarm", put(false));
    assert_eq!(set("ALARM").len(), 1, "without actions");
    let history = json!({"HistoryItemType": "Action", "ScanBy": "TimestampAscending"});
    let history = rig.call("DescribeAlarmHistory", history)["AlarmHistoryItems"].clone();
    let summaries: Vec<_> =
        history.as_array().unwrap().iter().map(|item| item["HistorySummary"].as_str().unwrap()).collect();
    let of_topic = format!("Successfully executed action {topic}");
    assert_eq!(
        summaries,
        [&of_topic, "Successfully executed action arn:aws:automate:us-east-1:ec2:stop", &of_topic]
    );
}
