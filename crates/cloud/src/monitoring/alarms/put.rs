//! PutMetricAlarm.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::setup::Setup;
use super::{Alarm, HistoryItem, State, tags};
use crate::ApiError;
use crate::monitoring::{Ask, Monitoring, access, refuse};

/// Alarms of an account and Region.
const MOST_ALARMS: usize = 5_000;

/// Parameters that describe an alarm.
const KEPT: [&str; 20] = [
    "ActionsEnabled",
    "AlarmActions",
    "AlarmDescription",
    "AlarmName",
    "ComparisonOperator",
    "DatapointsToAlarm",
    "Dimensions",
    "EvaluateLowSampleCountPercentile",
    "EvaluationPeriods",
    "ExtendedStatistic",
    "InsufficientDataActions",
    "MetricName",
    "Metrics",
    "Namespace",
    "OKActions",
    "Period",
    "Statistic",
    "Threshold",
    "TreatMissingData",
    "Unit",
];

/// The item of the history of a changed configuration.
pub(super) fn configured(alarm: &Alarm, how: &str, at_ms: u64) -> HistoryItem {
    let done = match how {
        "Create" => "created",
        "Delete" => "deleted",
        _ => "updated",
    };
    let data = json!({"version": "1.0", "type": how, format!("{done}Alarm"): alarm.shown()});
    alarm.history(at_ms, "ConfigurationUpdate", format!("Alarm \"{}\" {done}", alarm.name), &data)
}

impl Monitoring {
    pub(in crate::monitoring) fn put_metric_alarm(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        let input = ask.input;
        let name = input.text("AlarmName").unwrap_or_default();
        access::demand_alarm(ask, name)?;
        let config = config(ask)?;
        Setup::read(&config)?;
        let tags: BTreeMap<String, String> = tags::given(input).into_iter().collect();
        let (owner, region) = ask.account();
        let now_ms = ask.call.now_ms;
        let mut alarms = self.alarms.lock();
        let (alarm, how) = match alarms.get(ask.account(), name) {
            // An update keeps the state and the tags.
            Some(before) => (Alarm { config, configured_ms: now_ms, ..before.clone() }, "Update"),
            None => {
                if alarms.of_account(ask.account()).count() >= MOST_ALARMS {
                    let message = format!("The maximum number of alarms ({MOST_ALARMS}) was reached.");
                    return Err(ApiError::client("LimitExceeded", message));
                }
                let alarm = Alarm {
                    owner: owner.to_owned(),
                    region: region.to_owned(),
                    name: name.to_owned(),
                    config,
                    configured_ms: now_ms,
                    state: State::InsufficientData,
                    reason: "Unchecked: Initial alarm creation".to_owned(),
                    reason_data: None,
                    updated_ms: now_ms,
                    transitioned_ms: now_ms,
                    set_minute: None,
                    tags,
                };
                (alarm, "Create")
            }
        };
        let history = [configured(&alarm, how, now_ms)];
        self.commit(&mut alarms, vec![alarm], &history, &[]).map_err(|error| refuse::internal(&error))?;
        Ok(Map::new())
    }
}

/// The parameters that describe an alarm, with defaults.
fn config(ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
    let mut config = Map::new();
    for (name, value) in ask.input.0 {
        if KEPT.contains(&name.as_str()) {
            config.insert(name.clone(), value.clone());
        } else if name != "Tags" {
            return Err(refuse::unsupported(format!("The parameter {name}")));
        }
    }
    config.entry("ActionsEnabled").or_insert(Value::from(true));
    for list in ["AlarmActions", "InsufficientDataActions", "OKActions"] {
        let actions = ask.input.texts(list);
        if let Some(wrong) = actions.iter().find(|action| !action.starts_with("arn:")) {
            return Err(refuse::validation(format!("Invalid arn syntax: {wrong}")));
        }
        config.entry(list).or_insert_with(|| json!([]));
    }
    if !config.contains_key("Metrics") {
        config.entry("Dimensions").or_insert_with(|| json!([]));
    }
    Ok(config)
}
