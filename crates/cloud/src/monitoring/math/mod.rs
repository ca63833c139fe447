//! Metric math: expressions over metrics, as CloudWatch's guide has them (`using-metric-math`).

mod evaluate;
mod parse;

pub(super) use evaluate::{Lookup, Outcome, Series, evaluate};
pub(super) use parse::{Expression, parse};
