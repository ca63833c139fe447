//! Alarms: what is stored of them, and the actions on them.

mod actions;
mod db;
mod describe;
mod evaluate;
mod put;
mod setup;
mod tags;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::events::Envelope;
use super::{Ask, Monitoring, access, input, refuse};
use crate::ApiError;

/// Account, Region and name.
type Key = (String, String, String);

/// All alarms.
#[derive(Debug, Default)]
pub(super) struct Alarms(BTreeMap<Key, Alarm>);

impl Alarms {
    pub(super) fn of(alarms: Vec<Alarm>) -> Self {
        Self(alarms.into_iter().map(|alarm| (alarm.key(), alarm)).collect())
    }

    fn get(&self, (owner, region): (&str, &str), name: &str) -> Option<&Alarm> {
        self.0.get(&(owner.to_owned(), region.to_owned(), name.to_owned()))
    }

    /// Those of an account and Region, by name.
    fn of_account<'a>(&'a self, (owner, region): (&'a str, &'a str)) -> impl Iterator<Item = &'a Alarm> {
        self.0.values().filter(move |alarm| alarm.owner == owner && alarm.region == region)
    }
}

/// The state of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    #[serde(rename = "OK")]
    Ok,
    #[serde(rename = "ALARM")]
    Alarm,
    #[serde(rename = "INSUFFICIENT_DATA")]
    InsufficientData,
}

impl State {
    const ALL: [Self; 3] = [Self::Ok, Self::Alarm, Self::InsufficientData];

    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Alarm => "ALARM",
            Self::InsufficientData => "INSUFFICIENT_DATA",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// An alarm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Alarm {
    pub(super) owner: String,
    pub(super) region: String,
    pub(super) name: String,
    /// The parameters of PutMetricAlarm that describe it, with defaults.
    config: Map<String, Value>,
    configured_ms: u64,
    state: State,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason_data: Option<String>,
    /// When the state, or the reason, was last set.
    updated_ms: u64,
    /// When the state last changed.
    transitioned_ms: u64,
    /// The minute in which SetAlarmState set the state, if nothing has evaluated it since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set_minute: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
}

/// An item of the history of alarms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HistoryItem {
    pub(super) owner: String,
    pub(super) region: String,
    pub(super) name: String,
    pub(super) at_ms: u64,
    pub(super) kind: String,
    pub(super) summary: String,
    pub(super) data: String,
}

/// What follows from a change of state: items of the history, and events.
#[derive(Debug, Default)]
struct Consequences {
    history: Vec<HistoryItem>,
    events: Vec<Value>,
}

/// Another state, and why.
#[derive(Debug, Clone, PartialEq)]
struct NewState {
    state: State,
    reason: String,
    reason_data: Option<String>,
}

impl Alarm {
    fn key(&self) -> Key {
        (self.owner.clone(), self.region.clone(), self.name.clone())
    }

    fn arn(&self) -> String {
        access::alarm_arn((&self.owner, &self.region), &self.name)
    }

    /// As the describing actions answer.
    fn shown(&self) -> Value {
        let mut shown = self.config.clone();
        let own = json!({
            "AlarmArn": self.arn(),
            "AlarmConfigurationUpdatedTimestamp": input::seconds(self.configured_ms),
            "StateValue": self.state.name(),
            "StateReason": self.reason,
            "StateUpdatedTimestamp": input::seconds(self.updated_ms),
            "StateTransitionedTimestamp": input::seconds(self.transitioned_ms),
        });
        shown.extend(own.as_object().cloned().unwrap_or_default());
        shown.extend(self.reason_data.clone().map(|data| ("StateReasonData".to_owned(), Value::from(data))));
        Value::Object(shown)
    }

    fn history(&self, at_ms: u64, kind: &str, summary: String, data: &Value) -> HistoryItem {
        let (owner, region, name) = self.key();
        // AWS's bound of the member, in bytes here.
        let mut data = data.to_string();
        while data.len() > 4_095 {
            data.pop();
        }
        HistoryItem { owner, region, name, at_ms, kind: kind.to_owned(), summary, data }
    }

    /// The alarm in another state, and what follows. Where the state is the same, nothing does.
    fn moved(&self, to: NewState, at_ms: u64) -> (Self, Consequences) {
        let to_same = to.state == self.state;
        let after = Self {
            state: to.state,
            reason: to.reason,
            reason_data: to.reason_data,
            updated_ms: at_ms,
            transitioned_ms: if to_same { self.transitioned_ms } else { at_ms },
            ..self.clone()
        };
        if to_same {
            return (after, Consequences::default());
        }
        let summary = format!("Alarm updated from {} to {}", self.state.name(), after.state.name());
        let data = json!({"version": "1.0", "oldState": self.in_history(), "newState": after.in_history()});
        let item = self.history(at_ms, "StateUpdate", summary, &data);
        let event = Envelope {
            source: "aws.cloudwatch",
            detail_type: "CloudWatch Alarm State Change",
            owner: &self.owner,
            region: &self.region,
            at_ms,
            resources: vec![self.arn()],
            detail: json!({
                "alarmName": self.name,
                "configuration": setup::of_event(&self.config),
                "previousState": self.in_event(),
                "state": after.in_event(),
            }),
        };
        let mut consequences = Consequences { history: vec![item], events: vec![event.event()] };
        self.execute(&after, at_ms, &mut consequences);
        (after, consequences)
    }

    fn in_history(&self) -> Value {
        let mut state = json!({"stateValue": self.state.name(), "stateReason": self.reason});
        if let Some(data) = &self.reason_data {
            state["stateReasonData"] = serde_json::from_str(data).unwrap_or_default();
        }
        state
    }

    fn in_event(&self) -> Value {
        let timestamp = input::iso(self.updated_ms);
        let mut state = json!({"value": self.state.name(), "reason": self.reason, "timestamp": timestamp});
        if let Some(data) = &self.reason_data {
            state["reasonData"] = Value::from(data.as_str());
        }
        state
    }
}

impl Monitoring {
    /// Stores changed alarms with their history, and publishes what happened.
    fn commit(
        &self,
        alarms: &mut Alarms,
        changed: Vec<Alarm>,
        history: &[HistoryItem],
        events: &[Value],
    ) -> Result<(), super::DbError> {
        self.db.lock().change_alarms(&changed, &[], history)?;
        alarms.0.extend(changed.into_iter().map(|alarm| (alarm.key(), alarm)));
        if let Some(sink) = &self.options.events {
            events.iter().for_each(|event| sink.publish(event));
        }
        Ok(())
    }

    pub(super) fn set_alarm_state(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let input = ask.input;
        let name = input.text("AlarmName").unwrap_or_default();
        access::demand_alarm(ask, name)?;
        let mut alarms = self.alarms.lock();
        let alarm = alarms.get(ask.account(), name);
        let alarm = alarm.ok_or_else(|| refuse::not_found(format!("Unknown alarm {name}")))?.clone();
        let state = input.text("StateValue").and_then(State::named);
        let state = state.ok_or_else(|| refuse::validation("The parameter StateValue is wrong."))?;
        let reason_data = input.text("StateReasonData").map(str::to_owned);
        if reason_data.as_ref().is_some_and(|data| serde_json::from_str::<Value>(data).is_err()) {
            return Err(ApiError::client("InvalidFormat", "StateReasonData is not valid JSON"));
        }
        let reason = input.text("StateReason").unwrap_or_default().to_owned();
        let now_ms = ask.call.now_ms;
        let (mut after, Consequences { history, events }) =
            alarm.moved(NewState { state, reason, reason_data }, now_ms);
        after.set_minute = Some(now_ms / 60_000);
        self.commit(&mut alarms, vec![after], &history, &events).map_err(|error| refuse::internal(&error))?;
        Ok(Map::new())
    }

    pub(super) fn enable_alarm_actions(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        self.switch_actions(ask, true)
    }

    pub(super) fn disable_alarm_actions(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        self.switch_actions(ask, false)
    }

    /// As in AWS, alarms that are not there are passed over.
    fn switch_actions(&self, ask: &Ask<'_>, enabled: bool) -> Result<Map<String, Value>, ApiError> {
        let names = ask.input.texts("AlarmNames");
        names.iter().try_for_each(|name| access::demand_alarm(ask, name))?;
        let mut alarms = self.alarms.lock();
        let (mut changed, mut history) = (Vec::new(), Vec::new());
        for alarm in names.iter().filter_map(|name| alarms.get(ask.account(), name)) {
            let mut after = alarm.clone();
            after.config.insert("ActionsEnabled".to_owned(), Value::from(enabled));
            if after != *alarm {
                after.configured_ms = ask.call.now_ms;
                history.push(put::configured(&after, "Update", ask.call.now_ms));
                changed.push(after);
            }
        }
        self.commit(&mut alarms, changed, &history, &[]).map_err(|error| refuse::internal(&error))?;
        Ok(Map::new())
    }

    pub(super) fn delete_alarms(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let names = ask.input.texts("AlarmNames");
        names.iter().try_for_each(|name| access::demand_alarm(ask, name))?;
        let mut alarms = self.alarms.lock();
        let missing: Vec<_> =
            names.iter().copied().filter(|name| alarms.get(ask.account(), name).is_none()).collect();
        if !missing.is_empty() {
            return Err(refuse::not_found(format!("Alarms [{}] not found", missing.join(", "))));
        }
        let dropped: Vec<Alarm> =
            names.iter().filter_map(|name| alarms.get(ask.account(), name)).cloned().collect();
        let history = dropped.iter().map(|alarm| put::configured(alarm, "Delete", ask.call.now_ms));
        let history: Vec<_> = history.collect();
        self.db.lock().change_alarms(&[], &dropped, &history).map_err(|error| refuse::internal(&error))?;
        for alarm in dropped {
            alarms.0.remove(&alarm.key());
        }
        Ok(Map::new())
    }
}
