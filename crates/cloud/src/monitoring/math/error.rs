//! Why an expression cannot be read or evaluated. The endpoint answers these texts to its callers.

use crate::monitoring::db::DbError;

/// Functions that are built.
const BUILT: &str = "ABS, AVG, CEIL, FILL, FLOOR, IF, MAX, METRICS, MIN, PERIOD, RATE and SUM";

/// A text that is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::monitoring) enum ParseError {
    /// Something follows a whole expression.
    #[error("unexpected '{0}'")]
    Unexpected(String),
    /// A sign is not where it must be.
    #[error("'{sign}' is missing at '{at}'")]
    Missing { sign: &'static str, at: String },
    /// Parentheses and calls lie too deep in each other.
    #[error("it is nested too deep")]
    TooDeep,
    /// The second quotation mark is missing.
    #[error("a text has no end")]
    OpenText,
    /// Digits and points that are no number.
    #[error("'{0}' is no number")]
    Number(String),
    /// An operator, a parenthesis or a comma has no value behind it.
    #[error("a metric, number or function is missing at '{0}'")]
    NoValue(String),
}

/// An expression that has no value.
#[derive(Debug, thiserror::Error)]
pub(in crate::monitoring) enum EvaluateError {
    /// A text that is no argument of a function.
    #[error("the text '{0}' stands alone")]
    LoneText(String),
    /// A number among the metrics of a list.
    #[error("a list has metrics alone")]
    NumberInList,
    /// Two lists, whose metrics belong to each other in no order.
    #[error("an operator between two lists of metrics has no meaning")]
    TwoLists,
    /// Too few or too many arguments.
    #[error("{function} takes {wanted}, not {given} arguments")]
    Arguments { function: String, wanted: &'static str, given: usize },
    /// A number, for a function of metrics.
    #[error("{function} takes a metric, not a number")]
    NotAMetric { function: String },
    /// PERIOD of a number or of a list.
    #[error("PERIOD takes one metric")]
    PeriodOfOther,
    /// FILL's filler LINEAR.
    #[error("FILL with LINEAR is not supported by this endpoint")]
    FillLinear,
    /// A function that is not built.
    #[error("the function {0} is not supported by this endpoint; it has {built}", built = BUILT)]
    UnknownFunction(String),
    /// A list as a value of IF.
    #[error("IF takes one metric or number for each value")]
    IfValue,
    /// A list as the condition of IF.
    #[error("IF takes one metric or number for its condition")]
    IfCondition,
    /// A false number as the condition of IF without a second value.
    #[error("IF has no value where its condition is false")]
    IfWithoutElse,
    /// No query has this id.
    #[error("the id '{0}' is not defined")]
    Undefined(String),
    /// Expressions name each other in a circle.
    #[error("'{0}' depends on itself")]
    Circular(String),
    /// The records of a metric cannot be read: no fault of the expression.
    #[error(transparent)]
    Records(#[from] DbError),
}
