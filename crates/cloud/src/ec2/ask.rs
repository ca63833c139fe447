//! A call as the actions read it, and the members of their answers.

use serde_json::{Map, Value};

use super::refuse;
use crate::{ApiError, Call};

/// A structure of parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Input<'a> {
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A text that must be there and not empty; `parameter` is its name in messages.
    pub(super) fn required(self, name: &str, parameter: &str) -> Result<&'a str, ApiError> {
        self.text(name).filter(|text| !text.is_empty()).ok_or_else(|| refuse::missing(parameter))
    }

    pub(super) fn flag(self, name: &str) -> Option<bool> {
        match self.0.get(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => Some(text == "true"),
            _ => None,
        }
    }

    pub(super) fn number(self, name: &str) -> Option<i64> {
        match self.0.get(name)? {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
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

    fn array(self, name: &str) -> &'a [Value] {
        self.0.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// A call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) input: Input<'a>,
}

impl<'a> Ask<'a> {
    pub(super) const fn new(call: &'a Call<'a>) -> Self {
        Self { call, input: Input(call.input) }
    }

    pub(super) const fn now(&self) -> u64 {
        self.call.now_ms
    }

    pub(super) const fn region(&self) -> &'a str {
        self.call.region
    }

    pub(super) fn account(&self) -> &'a str {
        &self.call.caller.account
    }

    /// Ends a call that only asks whether it would be allowed.
    pub(super) fn end_dry_run(&self) -> Result<(), ApiError> {
        if self.input.flag("DryRun") == Some(true) { Err(refuse::dry_run()) } else { Ok(()) }
    }
}

/// The members of a structure of an answer.
#[derive(Debug, Default)]
pub(super) struct Members(Map<String, Value>);

impl Members {
    pub(super) fn put(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn put_some<T: Into<Value>>(&mut self, name: &str, value: Option<T>) -> &mut Self {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }

    /// A time, in seconds since 1970.
    pub(super) fn put_time(&mut self, name: &str, at_ms: u64) -> &mut Self {
        self.put(name, seconds(at_ms))
    }

    pub(super) fn end(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.0)
    }
}

/// Seconds since 1970, whole where they are.
pub(super) fn seconds(at_ms: u64) -> Value {
    if at_ms.is_multiple_of(1_000) { Value::from(at_ms / 1_000) } else { Value::from(at_ms as f64 / 1e3) }
}

/// A time as filters compare it and messages name it.
pub(super) fn iso(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| format!("{at_ms} ms after 1970"), |at| format!("{at:.3}"))
}

/// GiB as bytes.
pub(super) const fn gib(gib: u64) -> u64 {
    gib.saturating_mul(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_in_texts_and_seconds_in_answers() {
        assert_eq!(iso(1_700_000_000_000), "2023-11-14T22:13:20.000Z");
        assert_eq!(iso(1_700_000_000_007), "2023-11-14T22:13:20.007Z");
        assert_eq!(seconds(1_700_000_000_000), Value::from(1_700_000_000_u64));
        assert_eq!(seconds(1_500), Value::from(1.5));
    }
}
