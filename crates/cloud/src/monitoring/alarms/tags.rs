//! Tags of alarms.
//!
//! The three calls declare InvalidParameterValue and ResourceNotFoundException alone of what a caller can do wrong (AWS's
//! model of the service).

use serde_json::{Map, Value, json};

use super::Alarm;
use crate::ApiError;
use crate::monitoring::input::Input;
use crate::monitoring::{Ask, Monitoring, access, read, refuse};

/// Tags of an alarm.
const MOST_TAGS: usize = 50;

/// The tags that a call brings.
pub(super) fn given(input: Input<'_>) -> Vec<(String, String)> {
    let text = |tag: Input<'_>, name: &str| tag.text(name).unwrap_or_default().to_owned();
    input.structures("Tags").into_iter().map(|tag| (text(tag, "Key"), text(tag, "Value"))).collect()
}

impl Monitoring {
    pub(in crate::monitoring) fn list_tags_for_resource(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        let name = named(ask)?;
        access::demand_alarm(ask, name)?;
        let alarms = self.alarms.lock();
        let alarm = alarms.get(ask.account(), name).ok_or_else(|| unknown(name))?;
        let tags = alarm.tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
        Ok(read::answer("Tags", tags, None))
    }

    pub(in crate::monitoring) fn tag_resource(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let tags = given(ask.input);
        self.retag(ask, |alarm| alarm.tags.extend(tags))
    }

    pub(in crate::monitoring) fn untag_resource(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        let keys = ask.input.texts("TagKeys");
        self.retag(ask, |alarm| alarm.tags.retain(|key, _| !keys.contains(&key.as_str())))
    }

    fn retag(&self, ask: &Ask<'_>, change: impl FnOnce(&mut Alarm)) -> Result<Map<String, Value>, ApiError> {
        let name = named(ask)?;
        access::demand_alarm(ask, name)?;
        let mut alarms = self.alarms.lock();
        let mut alarm = alarms.get(ask.account(), name).ok_or_else(|| unknown(name))?.clone();
        change(&mut alarm);
        if alarm.tags.len() > MOST_TAGS {
            let message = format!("An alarm can have at most {MOST_TAGS} tags.");
            return Err(refuse::invalid_value(message));
        }
        self.commit(&mut alarms, vec![alarm], &[], &[]).map_err(|error| refuse::internal(&error))?;
        Ok(Map::new())
    }
}

/// The name of the alarm that a call names by its ARN.
fn named<'a>(ask: &Ask<'a>) -> Result<&'a str, ApiError> {
    let arn = ask.input.text("ResourceARN").unwrap_or_default();
    let prefix = access::alarm_arn(ask.account(), "");
    arn.strip_prefix(&prefix)
        .filter(|name| !name.is_empty())
        .ok_or_else(|| refuse::invalid_value(format!("Invalid arn syntax: {arn}")))
}

fn unknown(name: &str) -> ApiError {
    refuse::tagged_not_found(format!("Unknown alarm {name}"))
}
