//! Parameters as the actions read them, and times as answers have them.

use serde_json::{Map, Value};

use super::refuse;
use crate::ApiError;

/// A structure of parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Input<'a> {
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub(super) fn number(self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    pub(super) fn flag(self, name: &str) -> Option<bool> {
        self.0.get(name).and_then(Value::as_bool)
    }

    pub(super) fn texts(self, name: &str) -> Vec<&'a str> {
        self.array(name).iter().filter_map(Value::as_str).collect()
    }

    pub(super) fn structures(self, name: &str) -> Vec<Input<'a>> {
        self.array(name).iter().filter_map(Value::as_object).map(Input).collect()
    }

    pub(super) fn structure(self, name: &str) -> Option<Input<'a>> {
        self.0.get(name).and_then(Value::as_object).map(Input)
    }

    /// A time, in whole seconds since 1970.
    pub(super) fn second(self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_f64).map(whole)
    }

    /// The first whole second at a time or after it.
    pub(super) fn second_from(self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_f64).map(|at| whole(at.ceil()))
    }

    /// Pairs of names and values; a value may be absent.
    pub(super) fn dimensions(self) -> Vec<(&'a str, Option<&'a str>)> {
        let dimensions = self.structures("Dimensions").into_iter();
        dimensions.map(|pair| (pair.text("Name").unwrap_or_default(), pair.text("Value"))).collect()
    }

    fn array(self, name: &str) -> &'a [Value] {
        self.0.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// The whole part of a number that is not negative; else 0.
fn whole(number: f64) -> u64 {
    // A time has at most 11 digits: text is the only conversion that does not truncate silently.
    format!("{:.0}", number.floor().max(0.0)).parse().unwrap_or_default()
}

/// Seconds since 1970, whole where they are.
pub(super) fn seconds(at_ms: u64) -> Value {
    if at_ms.is_multiple_of(1_000) { Value::from(at_ms / 1_000) } else { Value::from(at_ms as f64 / 1e3) }
}

/// A time as AWS's texts have it: `2026-11-24T03:00:00.000+0000`.
pub(super) fn iso(at_ms: u64) -> String {
    stamp(at_ms, "%Y-%m-%dT%H:%M:%S%.3f+0000")
}

/// A time by a format.
pub(super) fn stamp(at_ms: u64, format: &str) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| at_ms.to_string(), |at| at.strftime(format).to_string())
}

/// A page of rows, and the token of the next. A token has its action, so that another's is refused.
pub(super) fn page<T>(
    action: &str,
    token: Option<&str>,
    most: usize,
    rows: Vec<T>,
) -> Result<(Vec<T>, Option<String>), ApiError> {
    let from = match token.filter(|token| !token.is_empty()) {
        None => 0,
        Some(token) => {
            let from = token.strip_prefix(action).and_then(|rest| rest.strip_prefix('-'));
            from.and_then(|from| from.parse().ok()).ok_or_else(refuse::invalid_token)?
        }
    };
    let next = from + most;
    let token = (rows.len() > next).then(|| format!("{action}-{next}"));
    Ok((rows.into_iter().skip(from).take(most).collect(), token))
}
