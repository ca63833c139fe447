//! Reading metrics: which one a query names, and its values by period.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::Monitoring;
use super::db::DbError;
use super::input::Input;
use super::metrics::{self, By, Metric, NAMESPACES, Source};
use super::recorded;
use super::span::{Span, TimeRange};
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

/// A metric, as a query names it.
#[derive(Debug, Clone)]
pub(super) struct Selected {
    pub(super) metric: &'static Metric,
    /// The values of its dimensions, in the order of [`By::names`].
    values: Vec<String>,
}

impl Selected {
    /// What the metric is about: the id of the volume, instance or snapshot.
    pub(super) fn resource(&self) -> &str {
        self.values.last().map_or("", String::as_str)
    }
}

/// The metric that a query names exactly; none where nothing has these dimensions, or this unit.
pub(super) fn select(query: Input<'_>, unit: Option<&str>) -> Option<Selected> {
    let metric = metrics::named(query.text("Namespace")?, query.text("MetricName")?)?;
    if unit.is_some_and(|unit| unit != metric.unit) {
        return None;
    }
    let mut dimensions = query.dimensions();
    dimensions.sort_unstable();
    let values: Option<Vec<String>> = metric
        .by
        .names()
        .iter()
        .zip(&dimensions)
        .map(|(name, given)| (*name == given.0).then(|| given.1.map(str::to_owned))?)
        .collect();
    let values = values.filter(|values| values.len() == dimensions.len())?;
    (values.len() == metric.by.names().len()).then_some(Selected { metric, values })
}

impl Monitoring {
    /// The values of each period by its start; a value is a minute's. A period without values is absent. Minutes that begin
    /// before the span or at its end are in no period, also where the last one is longer than the span.
    pub(super) fn values(
        &self,
        account: (&str, &str),
        selected: &Selected,
        span: Span,
    ) -> Result<BTreeMap<u64, Vec<f64>>, DbError> {
        let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let minutes = span.start.div_ceil(60)..span.end.div_ceil(60);
        for (minute, value) in self.by_minute(account, selected, minutes)? {
            let number = (minute * 60 - span.start) / span.period;
            values.entry(span.start + number * span.period).or_default().push(value);
        }
        Ok(values)
    }

    /// The value of each minute that has one.
    fn by_minute(
        &self,
        account: (&str, &str),
        Selected { metric, values }: &Selected,
        minutes: Range<u64>,
    ) -> Result<Vec<(u64, f64)>, DbError> {
        let last = values.last().map_or("", String::as_str);
        // Before the history is taken. The type is that at the end of the minutes.
        let recorded = match metric.by {
            By::Volume => self.inventory.recorded(last, minutes.end.saturating_mul(60_000)),
            _ => None,
        };
        let store = self.history.store();
        let value = match &metric.source {
            Source::Counters(value) => value,
            Source::Instance(value) => {
                let found = recorded::instance_minutes(&store, account, last, minutes)?.into_iter();
                // A stopped instance keeps its volumes, and publishes nothing.
                let ran = found.filter(|(_, of_one)| of_one.balances.is_some());
                return Ok(ran.filter_map(|(minute, of_one)| Some((minute, value(&of_one)?))).collect());
            }
            Source::Gauge => return Ok(recorded::gauges(&store, account, metric.name, values, minutes)?),
        };
        let instance = (metric.by == By::VolumeAndInstance).then(|| values[0].as_str());
        let volume = (last, recorded.as_ref());
        let found = recorded::minutes(&store, account, volume, instance, minutes)?.into_iter();
        let found = found.filter(|(_, (kind, _))| metric.is_of(kind));
        Ok(found.filter_map(|(minute, (_, counters))| Some((minute, value(&counters.metrics())?))).collect())
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
        let mut rows = Vec::new();
        for (namespace, metrics) in NAMESPACES {
            if ask.input.text("Namespace").is_some_and(|wanted| wanted != namespace) {
                continue;
            }
            let now_ms = ask.call.now_ms;
            let all = self.published(ask.account(), metrics, ask.input.text("MetricName"), (since, now_ms));
            for (metric, values) in all.map_err(|error| refuse::internal(&error))? {
                let dimensions: Vec<_> = metric.by.names().iter().copied().zip(values).rev().collect();
                let is_there = |(name, value): &(&str, Option<&str>)| {
                    dimensions.iter().any(|(n, v)| n == name && value.is_none_or(|value| value == v))
                };
                if wanted.iter().all(is_there) {
                    let dimensions: Value = dimensions
                        .iter()
                        .map(|(name, value)| json!({"Name": name, "Value": value}))
                        .collect();
                    rows.push(
                        json!({"Namespace": namespace, "MetricName": metric.name, "Dimensions": dimensions}),
                    );
                }
            }
        }
        let (rows, token) = input::page("ListMetrics", ask.input.text("NextToken"), LIST_PAGE, rows)?;
        Ok(answer("Metrics", rows, token))
    }

    /// Those of metrics that have a value since a minute, all or those of a name, with the values of their dimensions.
    fn published(
        &self,
        account: (&str, &str),
        metrics: &'static [Metric],
        name: Option<&str>,
        (since, now_ms): (u64, u64),
    ) -> Result<Vec<(&'static Metric, Vec<String>)>, DbError> {
        // Before the history is taken.
        let volumes = self.inventory.all_recorded(account, now_ms);
        let store = self.history.store();
        let series = recorded::series(&store, account, &volumes)?;
        let mut found = Vec::new();
        for metric in metrics.iter().filter(|metric| name.is_none_or(|name| name == metric.name)) {
            if matches!(metric.source, Source::Gauge) {
                let all = recorded::gauge_series(&store, account, metric.name, since)?;
                found.extend(all.into_iter().map(|values| (metric, values)));
                continue;
            }
            let mut latest = None;
            for row in series.iter().filter(|row| recorded::is_active(row, metric.family, since)) {
                // None for an instance itself.
                let volume = row.key.label("volume");
                // None where a command has the volume, and empty with Multi-Attach.
                let instance = row.key.label("instance");
                let has_metric = match instance {
                    None => metric.by == By::Volume,
                    Some("") => metric.is_shared(),
                    Some(_) => true,
                };
                if volume.is_none() != (metric.by == By::Instance) || !has_metric {
                    continue;
                }
                let instance = instance.unwrap_or_default();
                let values = match (metric.by, volume) {
                    (By::VolumeAndInstance, Some(volume)) => vec![instance.to_owned(), volume.to_owned()],
                    // The same metric of the same volume on another instance.
                    (_, Some(volume)) if latest == Some(volume) => continue,
                    (_, Some(volume)) => {
                        latest = Some(volume);
                        vec![volume.to_owned()]
                    }
                    (_, None) => vec![instance.to_owned()],
                };
                found.push((metric, values));
            }
        }
        Ok(found)
    }

    pub(super) fn get_metric_statistics(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        let input = ask.input;
        let range = time_range(ask).map_err(refuse::invalid_value)?;
        let period = period(input.number("Period").unwrap_or_default())?;
        check_age(input.second("StartTime").unwrap_or_default(), period, ask.call.now_ms)?;
        let simple = input.texts("Statistics");
        let extended = input.texts("ExtendedStatistics");
        if simple.is_empty() && extended.is_empty() {
            return Err(refuse::invalid_combination("Must specify either Statistics or ExtendedStatistics"));
        }
        let percentiles = extended.iter().map(|name| statistic(name, Statistic::extended(name)));
        let percentiles = percentiles.collect::<Result<Vec<_>, _>>()?;
        let span = range.periods(period);
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

/// The start and the end that a call names; else what is wrong with them. They are compared as they were given: rounding
/// would let an end through that is the start itself, within a second.
pub(super) fn time_range(ask: &Ask<'_>) -> Result<TimeRange, &'static str> {
    let given = |name: &str| ask.input.0.get(name).and_then(Value::as_f64).unwrap_or_default();
    if given("StartTime") >= given("EndTime") {
        return Err("The parameter StartTime must be less than the parameter EndTime.");
    }
    let (start, end) = (ask.input.second("StartTime"), ask.input.second_from("EndTime"));
    Ok(TimeRange::of_call(start.unwrap_or_default(), end.unwrap_or_default(), ask.call.now_ms))
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
