//! What an alarm compares with what.

use serde_json::{Map, Value, json};

use crate::ApiError;
use crate::monitoring::data::{self, Query, Source};
use crate::monitoring::events;
use crate::monitoring::input::Input;
use crate::monitoring::refuse;
use crate::monitoring::statistic::Statistic;

/// How long an alarm may look back with periods shorter than an hour, and with others, in seconds.
const LONGEST: (u64, u64) = (86_400, 604_800);

/// What a missing point counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    Missing,
    Ignore,
    Breaching,
    NotBreaching,
}

impl Treatment {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "missing" => Self::Missing,
            "ignore" => Self::Ignore,
            "breaching" => Self::Breaching,
            "notBreaching" => Self::NotBreaching,
            _ => return None,
        })
    }
}

/// Between a value and the threshold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison {
    /// In reasons.
    pub(super) words: &'static str,
    breaches: fn(&f64, &f64) -> bool,
}

impl Comparison {
    fn named(name: &str) -> Option<Self> {
        let (words, breaches): (_, fn(&f64, &f64) -> bool) = match name {
            "GreaterThanOrEqualToThreshold" => ("greater than or equal to", f64::ge),
            "GreaterThanThreshold" => ("greater than", f64::gt),
            "LessThanOrEqualToThreshold" => ("less than or equal to", f64::le),
            "LessThanThreshold" => ("less than", f64::lt),
            _ => return None,
        };
        Some(Self { words, breaches })
    }
}

/// An alarm's configuration, as evaluation needs it.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) queries: Vec<Query>,
    /// The place of the query whose value is compared.
    pub(super) compared: usize,
    pub(super) period: u64,
    /// N.
    pub(super) periods: u64,
    /// M.
    pub(super) to_alarm: u64,
    pub(super) threshold: f64,
    pub(super) comparison: Comparison,
    pub(super) missing: Treatment,
    /// The statistic of an alarm on one metric, as it was named.
    pub(super) statistic: Option<String>,
}

impl Setup {
    pub(super) fn is_breaching(&self, value: f64) -> bool {
        (self.comparison.breaches)(&value, &self.threshold)
    }

    /// Reads a configuration, and refuses one that cannot be.
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self, ApiError> {
        let input = Input(config);
        let periods =
            input.number("EvaluationPeriods").ok_or_else(|| refuse::missing("EvaluationPeriods"))?;
        let operator =
            input.text("ComparisonOperator").ok_or_else(|| refuse::missing("ComparisonOperator"))?;
        let comparison = Comparison::named(operator)
            .ok_or_else(|| refuse::unsupported(format!("The comparison operator {operator}")))?;
        let threshold = config.get("Threshold").and_then(Value::as_f64);
        let threshold = threshold.ok_or_else(|| refuse::missing("Threshold"))?;
        let to_alarm = input.number("DatapointsToAlarm").unwrap_or(periods);
        if to_alarm > periods {
            let message = "DatapointsToAlarm must be less than or equal to EvaluationPeriods.";
            return Err(refuse::validation(message));
        }
        let missing = input.text("TreatMissingData").unwrap_or("missing");
        let missing = Treatment::named(missing).ok_or_else(|| {
            refuse::validation(format!(
                "The value {missing} for parameter TreatMissingData is not one of breaching, notBreaching, ignore and \
                 missing."
            ))
        })?;
        let metrics = input.structures("Metrics");
        let is_math = config.contains_key("Metrics");
        let queries = if is_math { many(config, &metrics)? } else { one(input)? };
        let compared = returned(&queries)?;
        let period = period(&queries)?;
        let longest = if period < 3_600 { LONGEST.0 } else { LONGEST.1 };
        if period.saturating_mul(periods) > longest {
            let days = if longest == LONGEST.0 { "a day" } else { "seven days" };
            return Err(refuse::validation(format!(
                "Metrics cannot be checked across more than {days} (EvaluationPeriods * Period must be <= {longest})."
            )));
        }
        let statistic = input.text("Statistic").or_else(|| input.text("ExtendedStatistic"));
        let statistic = statistic.map(str::to_owned);
        Ok(Self { queries, compared, period, periods, to_alarm, threshold, comparison, missing, statistic })
    }
}

/// The queries of an alarm on several metrics.
fn many(config: &Map<String, Value>, metrics: &[Input<'_>]) -> Result<Vec<Query>, ApiError> {
    let of_one =
        ["MetricName", "Namespace", "Dimensions", "Period", "Statistic", "ExtendedStatistic", "Unit"];
    if let Some(other) = of_one.iter().find(|name| config.contains_key(**name)) {
        let message = format!("The parameters Metrics and {other} cannot be used together.");
        return Err(refuse::invalid_combination(message));
    }
    data::queries(metrics, "Metrics")
}

/// The query of an alarm on one metric.
fn one(input: Input<'_>) -> Result<Vec<Query>, ApiError> {
    for name in ["MetricName", "Namespace", "Period"] {
        if !input.0.contains_key(name) {
            return Err(refuse::missing(name));
        }
    }
    match (input.text("Statistic"), input.text("ExtendedStatistic")) {
        (Some(_), Some(_)) => {
            let message = "The parameters Statistic and ExtendedStatistic cannot be used together.";
            return Err(refuse::invalid_combination(message));
        }
        (None, None) => return Err(refuse::missing("Statistic")),
        (None, Some(name)) => _ = crate::monitoring::read::statistic(name, Statistic::extended(name))?,
        (Some(_), None) => {}
    }
    let query = as_query(input);
    data::queries(&[Input(query.as_object().unwrap_or(&Map::new()))], "Metrics")
}

/// An alarm on one metric, as a query has it.
fn as_query(input: Input<'_>) -> Value {
    let member = |name: &str| input.0.get(name).cloned().unwrap_or_default();
    let stat = input.text("Statistic").or_else(|| input.text("ExtendedStatistic"));
    let metric = ["Namespace", "MetricName", "Dimensions"].map(|name| (name.to_owned(), member(name)));
    let metric: Map<String, Value> = metric.into_iter().collect();
    let mut query =
        json!({"Id": "m1", "MetricStat": {"Metric": metric, "Period": member("Period"), "Stat": stat}});
    if let Some(unit) = input.text("Unit") {
        query["MetricStat"]["Unit"] = Value::from(unit);
    }
    query
}

fn returned(queries: &[Query]) -> Result<usize, ApiError> {
    let mut returned = (0..).zip(queries).filter(|(_, query)| query.is_returned).map(|(at, _)| at);
    match (returned.next(), returned.next()) {
        (Some(at), None) => Ok(at),
        _ => Err(refuse::validation("Exactly one element of the metrics list should return data.")),
    }
}

fn period(queries: &[Query]) -> Result<u64, ApiError> {
    let mut periods = queries.iter().filter_map(|query| match query.source {
        Source::Metric { period, .. } => Some(period),
        Source::Expression(_) => None,
    });
    let period = periods.next();
    let period = period.ok_or_else(|| refuse::validation("The metrics list must contain a metric."))?;
    if periods.any(|other| other != period) {
        return Err(refuse::validation("The period of all metrics must be the same."));
    }
    match period {
        1 | 5 => Err(refuse::validation("Period must be 10, 20, 30 or a multiple of 60.")),
        _ => Ok(period),
    }
}

/// A configuration as events have it.
pub(super) fn of_event(config: &Map<String, Value>) -> Value {
    let input = Input(config);
    let mut queries: Vec<Value> = match config.get("Metrics").and_then(Value::as_array) {
        Some(metrics) => metrics.clone(),
        None => vec![as_query(input)],
    };
    if !config.contains_key("Metrics") {
        queries[0]["Id"] = Value::from(events::uuid(&format!("{config:?}")));
    }
    let metrics: Vec<Value> = queries.iter().map(one_of_event).collect();
    let mut configuration = json!({"metrics": metrics});
    if let Some(text) = input.text("AlarmDescription") {
        configuration["description"] = Value::from(text);
    }
    configuration
}

fn one_of_event(query: &Value) -> Value {
    let mut shown = json!({"id": query["Id"], "returnData": query["ReturnData"].as_bool().unwrap_or(true)});
    if let Some(expression) = query["Expression"].as_str() {
        shown["expression"] = Value::from(expression);
    }
    let stat = &query["MetricStat"];
    if stat.is_object() {
        let metric = &stat["Metric"];
        let dimensions = metric["Dimensions"].as_array().into_iter().flatten();
        let pair = |pair: &Value| Some((pair["Name"].as_str()?.to_owned(), pair["Value"].clone()));
        let dimensions: Map<String, Value> = dimensions.filter_map(pair).collect();
        shown["metricStat"] = json!({
            "metric": {
                "namespace": metric["Namespace"],
                "name": metric["MetricName"],
                "dimensions": dimensions,
            },
            "period": stat["Period"],
            "stat": stat["Stat"],
        });
    }
    shown
}
