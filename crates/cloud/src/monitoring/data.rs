//! GetMetricData: metrics and expressions over them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::input::{self, Input};
use super::math::{self, EvaluateError, Expression, Lookup, Outcome, Series};
use super::read::{self, Selected};
use super::span::{Span, TimeRange};
use super::statistic::Statistic;
use super::{Ask, Monitoring, access, refuse};
use crate::ApiError;

/// Queries of a call.
const MOST_QUERIES: usize = 500;
/// Points of an answer.
const MOST_POINTS: u64 = 100_800;

/// A query.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) id: String,
    label: Option<String>,
    pub(super) is_returned: bool,
    pub(super) source: Source,
}

/// Where a query has its values from.
#[derive(Debug)]
pub(super) enum Source {
    Metric { name: String, selected: Option<Selected>, period: u64, statistic: Statistic },
    Expression(Expression),
}

/// Reads the queries of a call or of an alarm; `place` is their member.
pub(super) fn queries(given: &[Input<'_>], place: &str) -> Result<Vec<Query>, ApiError> {
    if given.is_empty() || given.len() > MOST_QUERIES {
        return Err(refuse::validation(format!("{place} must have 1 to {MOST_QUERIES} members.")));
    }
    let mut queries: Vec<Query> = Vec::new();
    for (number, input) in (1..).zip(given) {
        let query = query(*input, &format!("{place}.member.{number}"))?;
        if queries.iter().any(|earlier| earlier.id == query.id) {
            let message = format!("The values for parameter id in {place} are not unique.");
            return Err(refuse::validation(message));
        }
        queries.push(query);
    }
    Ok(queries)
}

fn query(input: Input<'_>, place: &str) -> Result<Query, ApiError> {
    let id = input.text("Id").unwrap_or_default().to_owned();
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if !id.starts_with(|letter: char| letter.is_ascii_lowercase()) || !id.chars().all(is_word) {
        let message = format!(
            "The value {id} for parameter {place}.Id is not matching the expected pattern ^[a-z][a-zA-Z0-9_]*$."
        );
        return Err(refuse::validation(message));
    }
    if input.text("AccountId").is_some() {
        return Err(refuse::unsupported(format!("{place}.AccountId")));
    }
    let label = input.text("Label").map(str::to_owned);
    if label.as_ref().is_some_and(|label| label.contains("${")) {
        return Err(refuse::unsupported(format!("A dynamic label in {place}.Label")));
    }
    let source = match (input.structure("MetricStat"), input.text("Expression")) {
        (Some(stat), None) => metric(stat)?,
        (None, Some(text)) => {
            let expression = math::parse(text);
            Source::Expression(expression.map_err(|why| in_expression(&id, &why))?)
        }
        (Some(_), Some(_)) => {
            return Err(refuse::validation(format!(
                "The parameters {place}.Expression and {place}.MetricStat are mutually exclusive and you have \
                 specified both."
            )));
        }
        (None, None) => {
            return Err(refuse::validation(format!(
                "Either {place}.Expression or {place}.MetricStat must be specified."
            )));
        }
    };
    Ok(Query { id, label, is_returned: input.flag("ReturnData").unwrap_or(true), source })
}

fn metric(stat: Input<'_>) -> Result<Source, ApiError> {
    let name = stat.text("Stat").unwrap_or_default();
    let statistic = read::statistic(name, Statistic::named(name))?;
    let period = read::period(stat.number("Period").unwrap_or_default())?;
    let metric = stat.structure("Metric");
    let name = metric.and_then(|metric| metric.text("MetricName")).unwrap_or_default().to_owned();
    let selected = metric.and_then(|metric| read::select(metric, stat.text("Unit")));
    Ok(Source::Metric { name, selected, period, statistic })
}

fn in_expression(id: &str, why: &dyn Display) -> ApiError {
    refuse::validation(format!("Error in expression '{id}': {why}"))
}

/// Evaluates queries that can name each other.
#[derive(Debug)]
pub(super) struct Evaluation<'a> {
    monitoring: &'a Monitoring,
    account: (&'a str, &'a str),
    queries: &'a [Query],
    range: TimeRange,
    /// What was evaluated already.
    known: RefCell<BTreeMap<String, Outcome>>,
    /// Expressions that are being evaluated.
    visiting: RefCell<Vec<String>>,
}

impl<'a> Evaluation<'a> {
    pub(super) const fn new(
        monitoring: &'a Monitoring,
        account: (&'a str, &'a str),
        queries: &'a [Query],
        range: TimeRange,
    ) -> Self {
        Self {
            monitoring,
            account,
            queries,
            range,
            known: RefCell::new(BTreeMap::new()),
            visiting: RefCell::new(Vec::new()),
        }
    }

    /// The metrics that a query stands for.
    pub(super) fn of(&self, query: &Query) -> Result<Vec<Series>, ApiError> {
        match self.outcome(&query.id) {
            Ok(Outcome::Series(series)) => Ok(vec![series]),
            Ok(Outcome::Many(many)) => Ok(many),
            Ok(Outcome::Scalar(_)) => {
                Err(in_expression(&query.id, &"it must return a time series, not a number"))
            }
            // This program failed, not the expression.
            Err(EvaluateError::Records(error)) => Err(refuse::internal(&error)),
            Err(why) => Err(in_expression(&query.id, &why)),
        }
    }

    fn label(&self, query: &Query, name: &str, selected: Option<&Selected>) -> String {
        if let Some(label) = &query.label {
            return label.clone();
        }
        let has_name = |other: &&Query| matches!(&other.source, Source::Metric { name: n, .. } if n == name);
        match selected {
            Some(selected) if self.queries.iter().filter(has_name).count() > 1 => {
                format!("{} {name}", selected.resource())
            }
            _ => name.to_owned(),
        }
    }

    fn compute(&self, query: &Query) -> Result<Outcome, EvaluateError> {
        match &query.source {
            Source::Metric { name, selected, period, statistic } => {
                let span = self.range.periods(*period);
                let points = selected
                    .as_ref()
                    .map(|selected| self.monitoring.points(self.account, selected, *statistic, span))
                    .transpose()?
                    .unwrap_or_default();
                let label = self.label(query, name, selected.as_ref());
                Ok(Outcome::Series(Series { label, period: *period, points }))
            }
            Source::Expression(expression) => {
                if self.visiting.borrow().contains(&query.id) {
                    return Err(EvaluateError::Circular(query.id.clone()));
                }
                self.visiting.borrow_mut().push(query.id.clone());
                let found = math::evaluate(expression, self);
                self.visiting.borrow_mut().pop();
                let label = query.label.clone().unwrap_or_else(|| query.id.clone());
                found.map(|outcome| match outcome {
                    Outcome::Series(series) => Outcome::Series(Series { label, ..series }),
                    other => other,
                })
            }
        }
    }
}

impl Lookup for Evaluation<'_> {
    fn outcome(&self, id: &str) -> Result<Outcome, EvaluateError> {
        if let Some(known) = self.known.borrow().get(id) {
            return Ok(known.clone());
        }
        let query = self.queries.iter().find(|query| query.id == id);
        let outcome = self.compute(query.ok_or_else(|| EvaluateError::Undefined(id.to_owned()))?)?;
        self.known.borrow_mut().insert(id.to_owned(), outcome.clone());
        Ok(outcome)
    }

    fn metrics(&self, containing: &str) -> Result<Vec<Series>, EvaluateError> {
        let is_wanted =
            |query: &&Query| matches!(query.source, Source::Metric { .. }) && query.id.contains(containing);
        let mut all = Vec::new();
        for query in self.queries.iter().filter(is_wanted) {
            if let Outcome::Series(series) = self.outcome(&query.id)? {
                all.push(series);
            }
        }
        Ok(all)
    }

    fn span(&self, period: u64) -> Span {
        self.range.periods(period)
    }
}

impl Monitoring {
    pub(super) fn get_metric_data(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        let input = ask.input;
        let range = read::time_range(ask).map_err(refuse::validation)?;
        let queries = queries(&input.structures("MetricDataQueries"), "MetricDataQueries")?;
        let most = match input.0.get("MaxDatapoints").and_then(Value::as_i64).map(u64::try_from) {
            None => MOST_POINTS,
            Some(Ok(most)) if (1..=MOST_POINTS).contains(&most) => most,
            Some(_) => {
                let message = format!("The parameter MaxDatapoints must be from 1 to {MOST_POINTS}.");
                return Err(refuse::validation(message));
            }
        };
        let evaluation = Evaluation::new(self, ask.account(), &queries, range);
        let mut found = Vec::new();
        for query in &queries {
            let all = evaluation.of(query)?;
            if query.is_returned {
                found.extend(all.into_iter().map(|series| (query.id.as_str(), series)));
            }
        }
        let is_ascending = input.text("ScanBy") == Some("TimestampAscending");
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        results(found, is_ascending, most, input.text("NextToken"))
    }
}

/// A page of points of all results together.
fn results(
    found: Vec<(&str, Series)>,
    is_ascending: bool,
    most: usize,
    token: Option<&str>,
) -> Result<Map<String, Value>, ApiError> {
    let is_first = token.is_none_or(str::is_empty);
    // Each point has the number of its result.
    let mut points = Vec::new();
    for (number, (_, series)) in found.iter().enumerate() {
        let own = series.points.iter().map(|(at, value)| (number, *at, *value));
        if is_ascending { points.extend(own) } else { points.extend(own.rev()) }
    }
    let last_of = |points: &[(usize, u64, f64)], number: usize| {
        points.iter().rfind(|(of, ..)| *of == number).map(|(_, at, _)| *at)
    };
    let ends: Vec<Option<u64>> = (0..found.len()).map(|number| last_of(&points, number)).collect();
    let (page, token) = input::page("GetMetricData", token, most, points)?;
    let mut rows = Vec::new();
    for (number, (id, series)) in found.iter().enumerate() {
        let own = page.iter().filter(|(of, ..)| *of == number);
        let (times, values): (Vec<u64>, Vec<f64>) = own.map(|(_, at, value)| (*at, *value)).unzip();
        if times.is_empty() && !(is_first && ends[number].is_none()) {
            continue;
        }
        let is_whole = times.last().copied() == ends[number];
        rows.push(json!({
            "Id": id,
            "Label": series.label,
            "Timestamps": times,
            "Values": values,
            "StatusCode": if is_whole { "Complete" } else { "PartialData" },
        }));
    }
    Ok(read::answer("MetricDataResults", rows, token))
}
