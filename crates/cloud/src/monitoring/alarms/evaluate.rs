//! When an alarm is in which state (CloudWatch user guide, `alarms-and-missing-data`).

use serde_json::{Value, json};

use super::setup::{Setup, Treatment};
use super::{Alarm, NewState, State};
use crate::ApiError;
use crate::monitoring::data::Evaluation;
use crate::monitoring::span::TimeRange;
use crate::monitoring::{DbError, Monitoring, input};

/// Periods that are looked at beyond those that are evaluated, in case that some of these have no value. AWS's own number
/// is not documented; its examples have 2.
const MORE_PERIODS: u64 = 2;

/// Texts of points in a reason.
const POINTS_IN_REASON: usize = 5;

/// What an evaluation comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Becomes(State),
    Keeps,
}

/// Judges points, oldest first: whether each breaches the threshold, or none where it is missing.
fn judge(points: &[Option<bool>], periods: usize, to_alarm: usize, missing: Treatment) -> Verdict {
    let real: Vec<bool> = points.iter().copied().flatten().collect();
    let breaching = |points: &[bool]| points.iter().filter(|breaches| **breaches).count();
    let by = |count: usize| Verdict::Becomes(if count >= to_alarm { State::Alarm } else { State::Ok });
    if real.is_empty() {
        return match missing {
            Treatment::Missing => Verdict::Becomes(State::InsufficientData),
            Treatment::Ignore => Verdict::Keeps,
            Treatment::Breaching => Verdict::Becomes(State::Alarm),
            Treatment::NotBreaching => Verdict::Becomes(State::Ok),
        };
    }
    if real.len() >= periods {
        return by(breaching(&real[real.len() - periods..]));
    }
    let filled = if missing == Treatment::Breaching { periods - real.len() } else { 0 };
    let count = breaching(&real) + filled;
    // A breach that is old enough, with nothing but breaches and gaps since: the alarm does not wait for the gaps.
    let oldest = points.iter().position(Option::is_some).map_or(0, |at| points.len() - at);
    if count < to_alarm && real.iter().all(|breaches| *breaches) && oldest >= to_alarm {
        match missing {
            Treatment::Missing => return Verdict::Becomes(State::Alarm),
            Treatment::Ignore => return Verdict::Keeps,
            Treatment::Breaching | Treatment::NotBreaching => {}
        }
    }
    by(count)
}

impl Monitoring {
    /// Evaluates all alarms on the periods until a second.
    pub(in crate::monitoring) fn evaluate_alarms(&self, now_ms: u64, until: u64) -> Result<(), DbError> {
        let mut alarms = self.alarms.lock();
        let (mut changed, mut history, mut events) = (Vec::new(), Vec::new(), Vec::new());
        for alarm in alarms.0.values() {
            // What was set by hand holds for the rest of its minute.
            if alarm.set_minute == Some(now_ms / 60_000) {
                continue;
            }
            match self.evaluate(alarm, now_ms, until) {
                Ok(Some(to)) => {
                    let (mut after, consequences) = alarm.moved(to, now_ms);
                    after.set_minute = None;
                    history.extend(consequences.history);
                    events.extend(consequences.events);
                    changed.push(after);
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(alarm = alarm.name, %error, "an alarm cannot be evaluated"),
            }
        }
        if changed.is_empty() { Ok(()) } else { self.commit(&mut alarms, changed, &history, &events) }
    }

    /// The state that an alarm moves to; none where it stays.
    fn evaluate(&self, alarm: &Alarm, now_ms: u64, until: u64) -> Result<Option<NewState>, ApiError> {
        let setup = Setup::read(&alarm.config)?;
        let start = until.saturating_sub((setup.periods + MORE_PERIODS) * setup.period);
        let range = TimeRange::exact(start, until);
        let account = (alarm.owner.as_str(), alarm.region.as_str());
        let evaluation = Evaluation::new(self, account, &setup.queries, range);
        let mut found = evaluation.of(&setup.queries[setup.compared])?;
        let series = if found.len() == 1 { found.pop() } else { None };
        let value = |number: u64| {
            let at = start + number * setup.period;
            (at, series.as_ref().and_then(|series| series.points.get(&at).copied()))
        };
        let values: Vec<(u64, Option<f64>)> = (0..setup.periods + MORE_PERIODS).map(value).collect();
        let points: Vec<Option<bool>> =
            values.iter().map(|(_, value)| value.map(|value| setup.is_breaching(value))).collect();
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let verdict = judge(&points, size(setup.periods), size(setup.to_alarm), setup.missing);
        Ok(match verdict {
            Verdict::Becomes(state) if state != alarm.state => {
                Some(explained(alarm, &setup, state, &values, now_ms))
            }
            Verdict::Becomes(_) | Verdict::Keeps => None,
        })
    }
}

/// A new state with its reason.
fn explained(
    alarm: &Alarm,
    setup: &Setup,
    state: State,
    values: &[(u64, Option<f64>)],
    now_ms: u64,
) -> NewState {
    let periods = usize::try_from(setup.periods).unwrap_or(usize::MAX);
    let real = values.iter().filter_map(|(at, value)| Some((*at, (*value)?)));
    // Newest first.
    let evaluated: Vec<(u64, f64)> = real.rev().take(periods).collect();
    let missing = periods - evaluated.len();
    let reason = match state {
        State::InsufficientData => {
            format!(
                "Insufficient Data: {periods} {} unknown.",
                one_or_more(periods, "datapoint was", "datapoints were")
            )
        }
        _ if evaluated.is_empty() => format!(
            "Threshold Crossed: no datapoints were received for {periods} {} and {periods} missing {} treated as [{}].",
            one_or_more(periods, "period", "periods"),
            one_or_more(periods, "datapoint was", "datapoints were"),
            if setup.missing == Treatment::Breaching { "Breaching" } else { "NonBreaching" },
        ),
        _ => {
            let is_alarm = state == State::Alarm;
            let counted = evaluated.iter().filter(|(_, value)| setup.is_breaching(*value) == is_alarm);
            let counted: Vec<_> = counted.collect();
            let text = |(at, value): &&(u64, f64)| {
                format!("{value:?} ({})", input::stamp(at * 1_000, "%d/%m/%y %H:%M:%S"))
            };
            let mut shown: Vec<String> =
                counted.iter().copied().take(POINTS_IN_REASON).map(|one| text(&one)).collect();
            if counted.len() > shown.len() {
                shown.push("...".to_owned());
            }
            // As many as it takes to leave ALARM: one more than may breach.
            let least = if is_alarm { setup.to_alarm } else { setup.periods - setup.to_alarm + 1 };
            format!(
                "Threshold Crossed: {} out of the last {periods} datapoints [{}] {} {} the threshold ({:?}) (minimum \
                 {least} {} for {} -> {} transition){}.",
                counted.len(),
                shown.join(", "),
                match (counted.len(), is_alarm) {
                    (1, true) => "was",
                    (1, false) => "was not",
                    (_, true) => "were",
                    (_, false) => "were not",
                },
                setup.comparison.words,
                setup.threshold,
                one_or_more(usize::try_from(least).unwrap_or(usize::MAX), "datapoint", "datapoints"),
                if is_alarm { "OK" } else { "ALARM" },
                state.name(),
                if missing > 0 { format!("; {missing} of them had no value") } else { String::new() },
            )
        }
    };
    tracing::debug!(alarm = alarm.name, state = state.name(), "an alarm changes its state");
    let data = reason_data(setup, &evaluated, now_ms).to_string();
    // AWS's bound of the member.
    let reason_data = (data.len() <= 4_000).then_some(data);
    NewState { state, reason: reason.chars().take(1_023).collect(), reason_data }
}

/// The points of a reason, newest first, as data.
fn reason_data(setup: &Setup, evaluated: &[(u64, f64)], now_ms: u64) -> Value {
    json!({
        "version": "1.0",
        "queryDate": input::iso(now_ms),
        "startDate": evaluated.last().map(|(at, _)| input::iso(at * 1_000)),
        "statistic": setup.statistic,
        "period": setup.period,
        "recentDatapoints": evaluated.iter().rev().map(|(_, value)| *value).collect::<Vec<_>>(),
        "threshold": setup.threshold,
        "evaluatedDatapoints": evaluated
            .iter()
            .map(|(at, value)| json!({"timestamp": input::iso(at * 1_000), "value": value}))
            .collect::<Vec<_>>(),
    })
}

const fn one_or_more<'a>(count: usize, one: &'a str, more: &'a str) -> &'a str {
    if count == 1 { one } else { more }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Table {
        row: Vec<Row>,
    }

    #[derive(serde::Deserialize)]
    struct Row {
        points: String,
        periods: usize,
        to_alarm: usize,
        missing: String,
        ignore: String,
        breaching: String,
        not_breaching: String,
    }

    #[test]
    fn every_row_of_the_truth_table_is_judged_as_it_says() {
        let table: Table = toml::from_str(include_str!("../../../data/alarm-states.toml")).unwrap();
        assert!(table.row.len() >= 20);
        for row in table.row {
            let point = |sign: char| match sign {
                '-' => None,
                '0' => Some(false),
                'X' => Some(true),
                other => panic!("no point {other}"),
            };
            let points: Vec<Option<bool>> = row.points.chars().map(point).collect();
            let of = |missing: Treatment| match judge(&points, row.periods, row.to_alarm, missing) {
                Verdict::Becomes(state) => state.name(),
                Verdict::Keeps => "keeps",
            };
            let found =
                [Treatment::Missing, Treatment::Ignore, Treatment::Breaching, Treatment::NotBreaching]
                    .map(of);
            let expected = [&row.missing, &row.ignore, &row.breaching, &row.not_breaching];
            assert_eq!(
                found,
                expected.map(String::as_str),
                "{} of {} in {}",
                row.to_alarm,
                row.periods,
                row.points
            );
        }
    }
}
