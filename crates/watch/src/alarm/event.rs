//! Transitions of alarms, as events.

use ebbtide_text::printable;
use serde::Serialize;

use crate::alarm::rule::{AlarmSeverity, AlarmState, SubjectKind, Verdict};
use crate::reading::Moment;

/// What an alarm is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Subject {
    /// What it is.
    pub kind: SubjectKind,
    /// Its name. Of a replica it is that of the server, a slash and the channel; of a check that of the server, a slash and the code.
    pub name: String,
}

impl Subject {
    /// A subject.
    #[must_use]
    pub fn new(kind: SubjectKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }
}

/// Why there is an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventCause {
    /// The state has changed.
    Change,
    /// A silence has ended, and the alarm is still there.
    SilenceEnded,
}

/// A transition of an alarm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Name of the rule.
    pub rule: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// Why there is an event.
    pub cause: EventCause,
    /// The state before.
    pub from: AlarmState,
    /// The state now.
    pub to: AlarmState,
    /// How bad it is.
    pub severity: AlarmSeverity,
    /// When, seconds since 1970.
    pub unix_s: i64,
    /// The value that was compared; null where it is not known.
    pub value: Option<f64>,
    /// Why, with the figures. Names of servers and volumes are somebody else's: [`Event::line`] makes them printable.
    pub reason: String,
    /// Seconds until what is forecast happens; null where nothing is.
    pub in_s: Option<f64>,
    /// The doctor's check of the same trouble; null where there is none.
    pub check: Option<&'static str>,
    /// What to do.
    pub fix: String,
    /// Whether it is silenced: it is shown, and not announced.
    pub silenced: bool,
}

impl Event {
    /// Whether somebody is to be told: an alarm begins, ends or is no longer known, and is not silenced. That a healthy subject is seen
    /// for the first time is no news.
    #[must_use]
    pub fn is_news(&self) -> bool {
        !self.silenced && (self.to == AlarmState::Alarm || self.from == AlarmState::Alarm)
    }

    /// The event in a line, for terminals and logs: `2026-11-28T02:02:00Z ALARM credits_end shop-data: ...`.
    #[must_use]
    pub fn line(&self) -> String {
        let time = ebbtide_text::timestamp(self.unix_s);
        let line = format!("{time} {} {} {}: {}", self.to, self.rule, self.subject.name, self.reason);
        // A line stays one, whatever the name of a server has in it.
        printable(&line).replace(['\n', '\t'], " ")
    }
}

/// What one look says of a rule and a subject.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) value: Option<f64>,
    pub(crate) reason: String,
    pub(crate) in_s: Option<f64>,
}

/// An alarm as it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alarm {
    /// Name of the rule.
    pub rule: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// Its state.
    pub state: AlarmState,
    /// How bad it would be.
    pub severity: AlarmSeverity,
    /// Since when it has the state, seconds since 1970.
    pub since_unix_s: i64,
    /// The value at the last look; null where it is not known.
    pub value: Option<f64>,
    /// The figures of the last look that knew something.
    pub reason: String,
    /// Seconds until what is forecast happens; null where nothing is.
    pub in_s: Option<f64>,
    /// Whether it is silenced.
    pub silenced: bool,
}

/// A time of day ahead of a moment, by the wall clock: `02:40`, with the day where it is more than 20 hours ahead.
#[must_use]
pub(crate) fn time_of_day(moment: Moment, ahead_s: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a forecast is at most a year ahead")]
    let ahead = ahead_s.clamp(0.0, 3.2e7) as i64;
    let local = moment.unix_s + moment.utc_offset_s + ahead;
    let text = ebbtide_text::timestamp(local);
    // RFC 3339 in UTC: 2026-11-28T13:04:42Z.
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    let minutes = time.get(..5).unwrap_or(time);
    if ahead > 72_000 { format!("{minutes} on {day}") } else { minutes.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_local_and_has_its_day_where_that_is_not_clear() {
        let moment = Moment { unix_s: 1_795_831_320, utc_offset_s: 3_600, ..Moment::default() };
        assert_eq!(ebbtide_text::timestamp(1_795_831_320), "2026-11-28T02:02:00Z");
        assert_eq!(time_of_day(moment, 2_280.0), "03:40");
        assert_eq!(time_of_day(moment, 86_400.0), "03:02 on 2026-11-29");
    }

    #[test]
    fn a_hostile_name_stays_in_its_line() {
        let event = Event {
            rule: "server_down",
            subject: Subject::new(SubjectKind::Server, "db1\n\u{1b}[2J"),
            cause: EventCause::Change,
            from: AlarmState::Ok,
            to: AlarmState::Alarm,
            severity: AlarmSeverity::Critical,
            unix_s: 0,
            value: Some(1.0),
            reason: "no connection".to_owned(),
            in_s: None,
            check: None,
            fix: String::new(),
            silenced: false,
        };
        let line = event.line();
        assert!(!line.contains('\n') && !line.contains('\u{1b}'), "{line}");
        assert!(event.is_news() && !Event { silenced: true, ..event }.is_news());
    }
}
