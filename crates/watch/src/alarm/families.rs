//! What alarms add to a scrape: their states, and the forecasts that no exporter has. Queries of [`RULES`](crate::alarm::RULES) use them.

use crate::alarm::alarms::Alarms;
use crate::alarm::rule::{AlarmState, SubjectKind};
use crate::exposition::{Exposition, Label, Number};
use crate::family::{Family, FamilyKind};
use crate::reading::ReadingSet;

/// State of an alarm.
const ALARM_STATE: Family = Family {
    name: "ebbtide_alarm_state",
    kind: FamilyKind::Gauge,
    unit: "-1, 0 or 1",
    labels: &["rule", "subject", "kind", "severity"],
    help: "State of an alarm: 1 for ALARM, 0 for OK, -1 for INSUFFICIENT_DATA.",
    source: "the alarms of `watch`",
};

/// Value of an alarm.
const ALARM_VALUE: Family = Family {
    name: "ebbtide_alarm_value",
    kind: FamilyKind::Gauge,
    unit: "as the rule counts",
    labels: &["rule", "subject", "kind"],
    help: "The value that is compared with the thresholds of an alarm's rule; absent where it is not known.",
    source: "the alarms of `watch`",
};

/// When the credits end at yesterday's load.
const CREDITS_END_YESTERDAY: Family = Family {
    name: "ebbtide_volume_credits_end_yesterday_seconds",
    kind: FamilyKind::Gauge,
    unit: "seconds",
    labels: &["volume"],
    help: "Time until the burst credits end if the load goes on as yesterday from this hour on; absent where they last for a week of such days.",
    source: "the load of the last 24 hours on the volume's bucket",
};

/// When the credits of an instance end.
const INSTANCE_CREDITS_END: Family = Family {
    name: "ebbtide_instance_credits_end_seconds",
    kind: FamilyKind::Gauge,
    unit: "seconds",
    labels: &["instance", "credits"],
    help: "Time until the instance's burst credits end at the load of the last 5 minutes: of operations and of bytes.",
    source: "the instance's buckets",
};

/// The floor of the latency.
const LATENCY_FLOOR: Family = Family {
    name: "ebbtide_volume_latency_floor_seconds",
    kind: FamilyKind::Gauge,
    unit: "seconds",
    labels: &["volume", "operation"],
    help: "Time of an operation that nothing holds back: the median of the type, or the quietest minute of the last day.",
    source: "the volume's model, or its counters",
};

/// When a file system is full.
const FILE_SYSTEM_FULL: Family = Family {
    name: "ebbtide_file_system_full_seconds",
    kind: FamilyKind::Gauge,
    unit: "seconds",
    labels: &["mountpoint"],
    help: "Time until a file system is full at its growth, purges taken out; absent where it does not grow.",
    source: "the space of the last three days",
};

/// All of them, in the order of the text.
pub const ALARM_FAMILIES: &[Family] =
    &[ALARM_STATE, ALARM_VALUE, CREDITS_END_YESTERDAY, INSTANCE_CREDITS_END, LATENCY_FLOOR, FILE_SYSTEM_FULL];

/// The text of these families, in the format of [`CONTENT_TYPE`](crate::CONTENT_TYPE), after [`Alarms::observe`] has taken a reading.
#[must_use]
pub fn alarm_text(alarms: &mut Alarms, reading: &ReadingSet) -> String {
    let mut text = Exposition::default();
    for alarm in alarms.all() {
        let state = match alarm.state {
            AlarmState::Alarm => 1.0,
            AlarmState::Ok => 0.0,
            AlarmState::InsufficientData => -1.0,
        };
        let labels: [Label<'_>; 4] = [
            ("rule", alarm.rule),
            ("subject", alarm.subject.name.as_str()),
            ("kind", kind_word(alarm.subject.kind)),
            ("severity", alarm.severity.name()),
        ];
        text.add(&ALARM_STATE, &labels, Number::Real(state));
    }
    // The last value of an alarm that knows nothing any more is old.
    for alarm in alarms.all().filter(|alarm| alarm.state != AlarmState::InsufficientData) {
        let Some(value) = alarm.value else { continue };
        let labels: [Label<'_>; 3] = [
            ("rule", alarm.rule),
            ("subject", alarm.subject.name.as_str()),
            ("kind", kind_word(alarm.subject.kind)),
        ];
        text.add(&ALARM_VALUE, &labels, Number::Real(value));
    }
    add_credits(&mut text, alarms, reading);
    add_floors(&mut text, alarms, reading);
    for file_system in &reading.file_systems {
        let forecast = alarms.space_forecast(file_system);
        if let Some(seconds) = forecast.and_then(|forecast| forecast.full_in_s) {
            text.add(
                &FILE_SYSTEM_FULL,
                &[("mountpoint", file_system.mount_point.as_str())],
                Number::Real(seconds),
            );
        }
    }
    text.into_text()
}

fn add_credits(text: &mut Exposition, alarms: &mut Alarms, reading: &ReadingSet) {
    for volume in &reading.volumes {
        let forecast = alarms.credit_forecast(&volume.name);
        if let Some(seconds) = forecast.and_then(|forecast| forecast.yesterday_ends_s) {
            text.add(&CREDITS_END_YESTERDAY, &[("volume", volume.name.as_str())], Number::Real(seconds));
        }
    }
    for instance in &reading.instances {
        let forecasts = alarms.instance_forecasts(&instance.name);
        for (forecast, credits) in forecasts.iter().zip(["operations", "bytes"]) {
            if let Some(seconds) = forecast.as_ref().and_then(|forecast| forecast.ends_s) {
                let labels = [("instance", instance.name.as_str()), ("credits", credits)];
                text.add(&INSTANCE_CREDITS_END, &labels, Number::Real(seconds));
            }
        }
    }
}

fn add_floors(text: &mut Exposition, alarms: &Alarms, reading: &ReadingSet) {
    for volume in &reading.volumes {
        let Some(floor) = alarms.floor(volume) else { continue };
        for (operation, seconds) in [("read", floor.read_s), ("write", floor.write_s)] {
            let labels = [("volume", volume.name.as_str()), ("operation", operation)];
            text.add(&LATENCY_FLOOR, &labels, Number::Real(seconds));
        }
    }
}

const fn kind_word(kind: SubjectKind) -> &'static str {
    match kind {
        SubjectKind::Volume => "volume",
        SubjectKind::Instance => "instance",
        SubjectKind::Server => "server",
        SubjectKind::Replica => "replica",
        SubjectKind::FileSystem => "file-system",
        SubjectKind::Check => "check",
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::Nanos;

    use crate::reading::{Answer, Moment, ServerReading};

    use super::*;

    #[test]
    fn each_state_is_a_sample() {
        let mut alarms = Alarms::new();
        let mut reading = ReadingSet {
            servers: vec![ServerReading {
                name: "db \"1\"".to_owned(),
                answer: Answer::Down("Connection refused".to_owned()),
            }],
            ..ReadingSet::default()
        };
        for second in 1..60 {
            reading.moment = Moment { elapsed: Nanos::from_secs(second), ..Moment::default() };
            alarms.observe(&reading);
        }
        let text = alarm_text(&mut alarms, &reading);
        let line = "ebbtide_alarm_state{rule=\"server_down\",subject=\"db \\\"1\\\"\",kind=\"server\",severity=\"critical\"} 1\n";
        assert!(text.contains(line), "{text}");
        let line = "ebbtide_alarm_value{rule=\"server_down\",subject=\"db \\\"1\\\"\",kind=\"server\"} 1\n";
        assert!(text.contains(line), "{text}");
        assert!(
            !text.contains("ebbtide_alarm_value{rule=\"server_restarted\""),
            "its state is not known: {text}"
        );
        assert!(
            text.contains("rule=\"server_restarted\"") && text.contains("severity=\"warning\"} -1"),
            "{text}"
        );
    }
}
