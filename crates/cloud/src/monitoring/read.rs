//! Reading metrics: which one a query names, and its values by period.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Monitoring;
use super::db::DbError;
use super::input::Input;
use super::metrics::{self, By, METRICS, Metric, NAMESPACE};
use super::statistic::Statistic;
use super::{Ask, access, input, refuse};
use crate::ApiError;

/// Points in an answer of GetMetricStatistics.
const MOST_POINTS: u64 = 1_440;
/// Rows of a page of ListMetrics.
const LIST_PAGE: usize = 500;
/// How long a metric is listed after its last value, in minutes: two weeks.
const LISTED_MINUTES: u64 = 14 * 24 * 60;
/// The same with `RecentlyActive`.
const RECENT_MINUTES: u64 = 3 * 60;

/// A metric of a volume, as a query names it.
#[derive(Debug, Clone)]
pub(super) struct Selected {
    pub(super) metric: &'static Metric,
    volume: String,
    instance: Option<String>,
}

impl Selected {
    /// The volume's id.
    pub(super) fn volume(&self) -> &str {
        &self.volume
    }
}

/// A span that is cut into periods, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    /// Exclusive: no period begins at it or later.
    pub(super) end: u64,
    pub(super) period: u64,
}

impl Span {
    /// Whole periods from before a start until an end; those of a day begin at midnight.
    pub(super) const fn aligned(start: u64, end: u64, period: u64) -> Self {
        Self { start: start / period * period, end, period }
    }

    /// Where each period begins.
    pub(super) fn starts(self) -> impl DoubleEndedIterator<Item = u64> {
        let count = self.end.saturating_sub(self.start).div_ceil(self.period);
        (0..count).map(move |number| self.start + number * self.period)
    }
}

/// The metric that a query names exactly; none where nothing has these dimensions, or this unit.
pub(super) fn select(query: Input<'_>, unit: Option<&str>) -> Option<Selected> {
    if query.text("Namespace") != Some(NAMESPACE) {
        return None;
    }
    let metric = metrics::named(query.text("MetricName")?)?;
    if unit.is_some_and(|unit| unit != metric.unit) {
        return None;
    }
    let mut dimensions = query.dimensions();
    dimensions.sort_unstable();
    match (metric.by, dimensions.as_slice()) {
        (By::Volume, [("VolumeId", Some(volume))]) => {
            Some(Selected { metric, volume: (*volume).to_owned(), instance: None })
        }
        (By::VolumeAndInstance, [("InstanceId", Some(instance)), ("VolumeId", Some(volume))]) => {
            let (volume, instance) = ((*volume).to_owned(), Some((*instance).to_owned()));
            Some(Selected { metric, volume, instance })
        }
        _ => None,
    }
}

impl Monitoring {
    /// The values of each period by its start; a value is a minute's. A period without values is absent.
    pub(super) fn values(
        &self,
        account: (&str, &str),
        selected: &Selected,
        span: Span,
    ) -> Result<BTreeMap<u64, Vec<f64>>, DbError> {
        let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let Some(last) = span.starts().next_back() else { return Ok(values) };
        let minutes = span.start.div_ceil(60)..(last + span.period).div_ceil(60);
        let Selected { metric, volume, instance } = selected;
        let found = self.db.lock().minutes(account, volume, instance.as_deref(), minutes)?;
        for (minute, (kind, counters)) in found {
            if !metric.family.has(&kind) {
                continue;
            }
            if let Some(value) = (metric.value)(&counters.metrics()) {
                let number = (minute * 60 - span.start) / span.period;
                values.entry(span.start + number * span.period).or_default().push(value);
            }
        }
        Ok(values)
    }

    /// A statistic of each period by its start.
    pub(super) fn points(
        &self,
        account: (&str, &str),
        selected: &Selected,
        statistic: Statistic,
        span: Span,
    ) -> Result<BTreeMap<u64, f64>, DbError> {
        let values = self.values(account, selected, span)?;
        Ok(values.into_iter().filter_map(|(at, values)| Some((at, statistic.of(&values)?))).collect())
    }

    pub(super) fn list_metrics(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        if ask.input.flag("IncludeLinkedAccounts") == Some(true) || ask.input.text("OwningAccount").is_some()
        {
            return Err(refuse::unsupported("Cross-account observability"));
        }
        let wanted = ask.input.dimensions();
        let kept = if ask.input.text("RecentlyActive").is_some() { RECENT_MINUTES } else { LISTED_MINUTES };
        let since = (ask.call.now_ms / 60_000).saturating_sub(kept);
        let mut listed = Vec::new();
        if ask.input.text("Namespace").is_none_or(|namespace| namespace == NAMESPACE) {
            let series = self.db.lock().series(ask.account()).map_err(|error| refuse::internal(&error))?;
            for metric in &METRICS {
                if ask.input.text("MetricName").is_some_and(|name| name != metric.name) {
                    continue;
                }
                let mut latest = None;
                for row in series.iter().filter(|row| row.is_active(metric.family, since)) {
                    let mut dimensions = vec![("VolumeId", row.volume.as_str())];
                    match metric.by {
                        By::VolumeAndInstance => dimensions.push(("InstanceId", &row.instance)),
                        // The same metric of the same volume on another instance.
                        By::Volume if latest == Some(&row.volume) => continue,
                        By::Volume => latest = Some(&row.volume),
                    }
                    let is_there = |(name, value): &(&str, Option<&str>)| {
                        let same = |(n, v): &(&str, &str)| n == name && value.is_none_or(|value| value == *v);
                        dimensions.iter().any(same)
                    };
                    if wanted.iter().all(is_there) {
                        listed.push((metric, dimensions.clone()));
                    }
                }
            }
            let row = |(metric, dimensions): (&Metric, Vec<(&str, &str)>)| {
                let dimensions: Value =
                    dimensions.iter().map(|(name, value)| json!({"Name": name, "Value": value})).collect();
                json!({"Namespace": NAMESPACE, "MetricName": metric.name, "Dimensions": dimensions})
            };
            let rows: Vec<Value> = listed.into_iter().map(row).collect();
            let (rows, token) = input::page("ListMetrics", ask.input.text("NextToken"), LIST_PAGE, rows)?;
            return Ok(answer("Metrics", rows, token));
        }
        Ok(answer("Metrics", Vec::new(), None))
    }

    pub(super) fn get_metric_statistics(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        let input = ask.input;
        let (start, end) = (input.second("StartTime"), input.second_from("EndTime"));
        let (start, end) = (start.unwrap_or_default(), end.unwrap_or_default());
        if start >= end {
            let message = "The parameter StartTime must be less than the parameter EndTime.";
            return Err(refuse::invalid_value(message));
        }
        let period = period(input.number("Period").unwrap_or_default())?;
        check_age(start, period, ask.call.now_ms)?;
        let simple = input.texts("Statistics");
        let extended = input.texts("ExtendedStatistics");
        if simple.is_empty() && extended.is_empty() {
            return Err(refuse::invalid_combination("Must specify either Statistics or ExtendedStatistics"));
        }
        let percentiles = extended.iter().map(|name| statistic(name, Statistic::extended(name)));
        let percentiles = percentiles.collect::<Result<Vec<_>, _>>()?;
        let span = Span::aligned(start / 60 * 60, end, period);
        let count = span.starts().count();
        if u64::try_from(count).unwrap_or(u64::MAX) > MOST_POINTS {
            let message = format!(
                "You have requested up to {count} datapoints, which exceeds the limit of {MOST_POINTS}. You may reduce \
                 the datapoints requested by increasing Period, or decreasing the time range."
            );
            return Err(refuse::invalid_combination(message));
        }
        let mut points = Vec::new();
        if let Some(selected) = select(input, input.text("Unit")) {
            let values = self.values(ask.account(), &selected, span);
            for (at, values) in values.map_err(|error| refuse::internal(&error))? {
                let mut point = json!({"Timestamp": at, "Unit": selected.metric.unit});
                for name in &simple {
                    point[*name] = json!(Statistic::simple(name).and_then(|one| one.of(&values)));
                }
                for (name, one) in extended.iter().zip(&percentiles) {
                    point["ExtendedStatistics"][*name] = json!(one.of(&values));
                }
                points.push(point);
            }
        }
        let label = json!(input.text("MetricName").unwrap_or_default());
        let mut answer = answer("Datapoints", points, None);
        answer.insert("Label".to_owned(), label);
        Ok(answer)
    }
}

/// An answer with rows, and perhaps more of them behind a token.
pub(super) fn answer(member: &str, rows: Vec<Value>, token: Option<String>) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert(member.to_owned(), Value::Array(rows));
    answer.extend(token.map(|token| ("NextToken".to_owned(), Value::from(token))));
    answer
}

/// A period that AWS takes.
pub(super) fn period(seconds: u64) -> Result<u64, ApiError> {
    match seconds {
        1 | 5 | 10 | 20 | 30 => Ok(seconds),
        _ if seconds > 0 && seconds.is_multiple_of(60) => Ok(seconds),
        _ => Err(refuse::invalid_value("The parameter Period must be 1, 5, 10, 20, 30 or a multiple of 60.")),
    }
}

/// What lies long ago has longer periods.
fn check_age(start: u64, period: u64, now_ms: u64) -> Result<(), ApiError> {
    let days = (now_ms / 1_000).saturating_sub(start) / 86_400;
    let least = if days >= 63 {
        3_600
    } else if days >= 15 {
        300
    } else {
        return Ok(());
    };
    if period.is_multiple_of(least) {
        return Ok(());
    }
    let message =
        format!("The parameter Period must be a multiple of {least} for a start time {days} days ago.");
    Err(refuse::invalid_value(message))
}

/// A statistic that was found by its name, or why it was not.
pub(super) fn statistic(name: &str, found: Option<Statistic>) -> Result<Statistic, ApiError> {
    match found {
        Some(statistic) => Ok(statistic),
        None if super::statistic::is_of_aws(name) => {
            Err(refuse::unsupported(format!("The statistic {name}")))
        }
        None => {
            Err(refuse::invalid_value(format!("The value {name} for parameter Statistic is not supported.")))
        }
    }
}
