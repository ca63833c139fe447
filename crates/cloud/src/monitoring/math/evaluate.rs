//! Expressions evaluated.

use std::collections::{BTreeMap, BTreeSet};

use super::error::EvaluateError;
use super::parse::{Expression, Operator};
use crate::monitoring::span::Span;

/// A metric, or what was computed of metrics.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::monitoring) struct Series {
    pub(in crate::monitoring) label: String,
    /// In seconds.
    pub(in crate::monitoring) period: u64,
    /// Values by the second at which their period begins.
    pub(in crate::monitoring) points: BTreeMap<u64, f64>,
}

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::monitoring) enum Outcome {
    Scalar(f64),
    Series(Series),
    Many(Vec<Series>),
}

/// Knows the metrics and expressions of a request.
pub(in crate::monitoring) trait Lookup {
    /// What an id stands for.
    fn outcome(&self, id: &str) -> Result<Outcome, EvaluateError>;
    /// All metrics whose ids contain a text.
    fn metrics(&self, containing: &str) -> Result<Vec<Series>, EvaluateError>;
    /// The span of the request, in periods of this length.
    fn span(&self, period: u64) -> Span;
}

/// Evaluates an expression.
pub(in crate::monitoring) fn evaluate(
    expression: &Expression,
    lookup: &dyn Lookup,
) -> Result<Outcome, EvaluateError> {
    match expression {
        Expression::Number(number) => Ok(Outcome::Scalar(*number)),
        Expression::Text(text) => Err(EvaluateError::LoneText(text.clone())),
        Expression::Id(id) => lookup.outcome(id),
        Expression::Negated(inner) => each(evaluate(inner, lookup)?, |value| -value),
        Expression::Binary(operator, left, right) => {
            let (left, right) = (evaluate(left, lookup)?, evaluate(right, lookup)?);
            both(left, right, |a, b| operate(*operator, a, b))
        }
        Expression::List(items) => {
            let mut all = Vec::new();
            for item in items {
                match evaluate(item, lookup)? {
                    Outcome::Series(series) => all.push(series),
                    Outcome::Many(many) => all.extend(many),
                    Outcome::Scalar(_) => return Err(EvaluateError::NumberInList),
                }
            }
            Ok(Outcome::Many(all))
        }
        Expression::Call(name, arguments) => call(name, arguments, lookup),
    }
}

fn operate(operator: Operator, a: f64, b: f64) -> f64 {
    let truth = |is_true: bool| f64::from(u8::from(is_true));
    match operator {
        Operator::Or => truth(a != 0.0 || b != 0.0),
        Operator::And => truth(a != 0.0 && b != 0.0),
        Operator::Less => truth(a < b),
        Operator::AtMost => truth(a <= b),
        Operator::Greater => truth(a > b),
        Operator::AtLeast => truth(a >= b),
        Operator::Equal => truth(a == b),
        Operator::Unequal => truth(a != b),
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Power => a.powf(b),
    }
}

impl Series {
    /// The same with other values; one that is no number, as after a division by zero, is absent.
    fn with(&self, points: impl Iterator<Item = (u64, f64)>) -> Self {
        let points = points.filter(|(_, value)| value.is_finite()).collect();
        Self { label: self.label.clone(), period: self.period, points }
    }

    fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        self.with(self.points.iter().map(|(at, value)| (*at, change(*value))))
    }

    /// Where both have a value.
    fn zip(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let shared =
            self.points.iter().filter_map(|(at, a)| Some((*at, combine(*a, *other.points.get(at)?))));
        self.with(shared)
    }
}

fn each(outcome: Outcome, change: impl Fn(f64) -> f64 + Copy) -> Result<Outcome, EvaluateError> {
    Ok(match outcome {
        Outcome::Scalar(value) => Outcome::Scalar(change(value)),
        Outcome::Series(series) => Outcome::Series(series.map(change)),
        Outcome::Many(many) => Outcome::Many(many.iter().map(|series| series.map(change)).collect()),
    })
}

fn both(
    left: Outcome,
    right: Outcome,
    combine: impl Fn(f64, f64) -> f64 + Copy,
) -> Result<Outcome, EvaluateError> {
    use Outcome::{Many, Scalar, Series};
    Ok(match (left, right) {
        (Scalar(a), Scalar(b)) => Scalar(combine(a, b)),
        (Series(a), Scalar(b)) => Series(a.map(|a| combine(a, b))),
        (Scalar(a), Series(b)) => Series(b.map(|b| combine(a, b))),
        (Series(a), Series(b)) => Series(a.zip(&b, combine)),
        (Many(all), Scalar(b)) => Many(all.iter().map(|a| a.map(|a| combine(a, b))).collect()),
        (Scalar(a), Many(all)) => Many(all.iter().map(|b| b.map(|b| combine(a, b))).collect()),
        (Many(all), Series(b)) => Many(all.iter().map(|a| a.zip(&b, combine)).collect()),
        (Series(a), Many(all)) => Many(all.iter().map(|b| b.zip(&a, |b, a| combine(a, b))).collect()),
        (Many(_), Many(_)) => return Err(EvaluateError::TwoLists),
    })
}

fn call(name: &str, arguments: &[Expression], lookup: &dyn Lookup) -> Result<Outcome, EvaluateError> {
    let value = |number: usize| evaluate(&arguments[number], lookup);
    let count = arguments.len();
    let wrong = |wanted: &'static str| {
        Err(EvaluateError::Arguments { function: name.to_owned(), wanted, given: count })
    };
    match name {
        "ABS" | "CEIL" | "FLOOR" if count != 1 => wrong("one argument"),
        "ABS" => each(value(0)?, f64::abs),
        "CEIL" => each(value(0)?, f64::ceil),
        "FLOOR" => each(value(0)?, f64::floor),
        "SUM" | "AVG" | "MIN" | "MAX" if count != 1 => wrong("a metric or a list of metrics"),
        "SUM" => Ok(fold(value(0)?, |values| values.iter().sum())),
        "AVG" => Ok(fold(value(0)?, |values| values.iter().sum::<f64>() / values.len() as f64)),
        "MIN" => Ok(fold(value(0)?, |values| values.iter().copied().fold(f64::NAN, f64::min))),
        "MAX" => Ok(fold(value(0)?, |values| values.iter().copied().fold(f64::NAN, f64::max))),
        "METRICS" => match arguments {
            [] => lookup.metrics("").map(Outcome::Many),
            [Expression::Text(text)] => lookup.metrics(text).map(Outcome::Many),
            _ => wrong("a text or nothing"),
        },
        "PERIOD" if count != 1 => wrong("one metric"),
        "PERIOD" => match value(0)? {
            Outcome::Series(series) => Ok(Outcome::Scalar(series.period as f64)),
            _ => Err(EvaluateError::PeriodOfOther),
        },
        "RATE" if count != 1 => wrong("one argument"),
        "RATE" => of_series(value(0)?, name, rate),
        "FILL" if count != 2 => wrong("a metric and a filler"),
        "FILL" => {
            let filler = match &arguments[1] {
                Expression::Id(word) if word == "REPEAT" => None,
                Expression::Id(word) if word == "LINEAR" => return Err(EvaluateError::FillLinear),
                _ => Some(value(1)?),
            };
            of_series(value(0)?, name, |series| fill(series, filler.as_ref(), lookup))
        }
        "IF" if !(2..=3).contains(&count) => wrong("a condition and one or two values"),
        "IF" => {
            let otherwise = if count == 3 { Some(value(2)?) } else { None };
            choose(value(0)?, value(1)?, otherwise)
        }
        _ => Err(EvaluateError::UnknownFunction(name.to_owned())),
    }
}

/// One figure of a metric; of a list of metrics a metric, with the figure of each time.
fn fold(outcome: Outcome, figure: impl Fn(&[f64]) -> f64) -> Outcome {
    match outcome {
        Outcome::Scalar(value) => Outcome::Scalar(value),
        Outcome::Series(series) => Outcome::Scalar(figure(&series.points.into_values().collect::<Vec<_>>())),
        Outcome::Many(many) => {
            let times: BTreeSet<u64> = many.iter().flat_map(|series| series.points.keys().copied()).collect();
            let at = |at: u64| {
                let values: Vec<f64> =
                    many.iter().filter_map(|series| series.points.get(&at).copied()).collect();
                (at, figure(&values))
            };
            let period = many.first().map_or(60, |series| series.period);
            let empty = Series { label: String::new(), period, points: BTreeMap::new() };
            Outcome::Series(empty.with(times.into_iter().map(at)))
        }
    }
}

fn of_series(
    outcome: Outcome,
    name: &str,
    change: impl Fn(&Series) -> Series,
) -> Result<Outcome, EvaluateError> {
    match outcome {
        Outcome::Series(series) => Ok(Outcome::Series(change(&series))),
        Outcome::Many(many) => Ok(Outcome::Many(many.iter().map(change).collect())),
        Outcome::Scalar(_) => Err(EvaluateError::NotAMetric { function: name.to_owned() }),
    }
}

/// The change a second from each point to the next, at the time of the next.
fn rate(series: &Series) -> Series {
    let before = series.points.iter();
    let pairs = before.clone().zip(before.skip(1));
    series.with(pairs.map(|((from, a), (to, b))| (*to, (b - a) / (to - from) as f64)))
}

/// The same with a value for each period: the filler's, or without one that of the point before.
fn fill(series: &Series, filler: Option<&Outcome>, lookup: &dyn Lookup) -> Series {
    let mut latest = None;
    let value = |at: u64| {
        let own = series.points.get(&at).copied();
        latest = own.or(latest);
        let filled = match filler {
            None => latest,
            Some(Outcome::Scalar(value)) => Some(*value),
            Some(Outcome::Series(other)) => other.points.get(&at).copied(),
            Some(Outcome::Many(_)) => None,
        };
        Some((at, own.or(filled)?))
    };
    series.with(lookup.span(series.period).starts().filter_map(value))
}

/// A value or another by a condition; without the other, nothing.
fn choose(condition: Outcome, then: Outcome, otherwise: Option<Outcome>) -> Result<Outcome, EvaluateError> {
    let at = |outcome: &Outcome, at: u64| match outcome {
        Outcome::Scalar(value) => Some(*value),
        Outcome::Series(series) => series.points.get(&at).copied(),
        Outcome::Many(_) => None,
    };
    if [Some(&then), otherwise.as_ref()].into_iter().flatten().any(|one| matches!(one, Outcome::Many(_))) {
        return Err(EvaluateError::IfValue);
    }
    match condition {
        Outcome::Scalar(value) if value != 0.0 => Ok(then),
        Outcome::Scalar(_) => otherwise.ok_or(EvaluateError::IfWithoutElse),
        Outcome::Series(series) => {
            let chosen = series.points.iter().filter_map(|(time, value)| {
                let from = if *value == 0.0 { otherwise.as_ref() } else { Some(&then) };
                Some((*time, at(from?, *time)?))
            });
            Ok(Outcome::Series(series.with(chosen)))
        }
        Outcome::Many(_) => Err(EvaluateError::IfCondition),
    }
}
