//! The actions of an alarm: each is an event, which a command or a webhook carries out.

use serde_json::{Value, json};

use super::{Alarm, Consequences, State};
use crate::monitoring::events::Envelope;
use crate::monitoring::input::{self, Input};

/// Members of the configuration that a notification of AWS shows as the trigger.
const TRIGGER: [&str; 14] = [
    "ComparisonOperator",
    "DatapointsToAlarm",
    "Dimensions",
    "EvaluateLowSampleCountPercentile",
    "EvaluationPeriods",
    "ExtendedStatistic",
    "MetricName",
    "Metrics",
    "Namespace",
    "Period",
    "Statistic",
    "Threshold",
    "TreatMissingData",
    "Unit",
];

impl Alarm {
    /// Adds the actions of the state that the alarm has moved to, where its actions are enabled.
    pub(super) fn execute(&self, after: &Self, at_ms: u64, to: &mut Consequences) {
        let config = Input(&after.config);
        if config.flag("ActionsEnabled") == Some(false) {
            return;
        }
        let list = match after.state {
            State::Ok => "OKActions",
            State::Alarm => "AlarmActions",
            State::InsufficientData => "InsufficientDataActions",
        };
        for action in config.texts(list) {
            let data = json!({
                "version": "1.0",
                "publishedMessage": self.message(after, at_ms),
                "notificationResource": action,
                "actionState": "Succeeded",
                "stateUpdateTimestamp": at_ms,
            });
            let summary = format!("Successfully executed action {action}");
            to.history.push(after.history(at_ms, "Action", summary, &data));
            let event = Envelope {
                source: "ebbtide.cloudwatch",
                detail_type: "CloudWatch Alarm Action",
                owner: &self.owner,
                region: &self.region,
                at_ms,
                resources: vec![action.to_owned(), self.arn()],
                detail: json!({
                    "action": action,
                    "alarmName": self.name,
                    "state": after.state.name(),
                    "message": self.message(after, at_ms),
                }),
            };
            to.events.push(event.event());
        }
    }

    /// What a topic of SNS would send.
    fn message(&self, after: &Self, at_ms: u64) -> Value {
        let config = |name: &str| after.config.get(name).cloned().unwrap_or_default();
        let list = |name: &str| json!(Input(&after.config).texts(name));
        let trigger: serde_json::Map<String, Value> = TRIGGER
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), after.config.get(*name)?.clone())))
            .collect();
        json!({
            "AlarmName": self.name,
            "AlarmDescription": config("AlarmDescription"),
            "AlarmArn": self.arn(),
            "AWSAccountId": self.owner,
            "Region": self.region,
            "OldStateValue": self.state.name(),
            "NewStateValue": after.state.name(),
            "NewStateReason": after.reason,
            "StateChangeTime": input::iso(at_ms),
            "AlarmConfigurationUpdatedTimestamp": input::iso(self.configured_ms),
            "OKActions": list("OKActions"),
            "AlarmActions": list("AlarmActions"),
            "InsufficientDataActions": list("InsufficientDataActions"),
            "Trigger": trigger,
        })
    }
}
