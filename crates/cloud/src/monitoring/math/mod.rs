//! Metric math: expressions over metrics, as CloudWatch's guide has them (`using-metric-math`).

mod error;
mod evaluate;
mod parse;

pub(super) use error::EvaluateError;
pub(super) use evaluate::{Lookup, Outcome, Series, evaluate};
pub(super) use parse::{Expression, parse};
