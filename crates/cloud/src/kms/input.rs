//! Parameters as the actions read them, and pages of answers.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::refuse;
use crate::ApiError;

/// A structure of parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Input<'a> {
    /// A text; none where it is absent or empty.
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// A text that must be there; `member` is its name in messages.
    pub(super) fn required(self, name: &str) -> Result<&'a str, ApiError> {
        self.text(name).ok_or_else(|| refuse::missing(name))
    }

    pub(super) fn flag(self, name: &str) -> Option<bool> {
        self.0.get(name).and_then(Value::as_bool)
    }

    /// A number between bounds, both included.
    pub(super) fn bounded(self, name: &str, (least, most): (u64, u64)) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.0.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        let number = value.as_u64().filter(|number| (least..=most).contains(number));
        let message = || format!("{name} is {value}; it is at least {least} and at most {most}.");
        number.map(Some).ok_or_else(|| refuse::validation(message()))
    }

    pub(super) fn array(self, name: &str) -> &'a [Value] {
        self.0.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn texts(self, name: &str) -> Vec<&'a str> {
        self.array(name).iter().filter_map(Value::as_str).collect()
    }

    /// Bytes of a length between bounds, both included.
    pub(super) fn bytes(self, name: &str, (least, most): (usize, usize)) -> Result<Vec<u8>, ApiError> {
        let bytes = STANDARD.decode(self.required(name)?);
        let bytes = bytes.map_err(|_| refuse::validation(format!("{name} is no base64.")))?;
        if (least..=most).contains(&bytes.len()) {
            return Ok(bytes);
        }
        let message =
            format!("{name} has {} bytes; it has at least {least} and at most {most}.", bytes.len());
        Err(refuse::validation(message))
    }

    /// An encryption context; empty where it is absent.
    pub(super) fn context(self, name: &str) -> BTreeMap<String, String> {
        let pairs = self.0.get(name).and_then(Value::as_object).into_iter().flatten();
        pairs.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    }

    /// A page of rows that are in the order of their names, as `Limit` and `Marker` ask for it.
    pub(super) fn page<'b>(
        self,
        list: &str,
        (usual, most): (u64, u64),
        rows: impl Iterator<Item = (&'b str, Value)>,
    ) -> Result<Map<String, Value>, ApiError> {
        let limit = self.bounded("Limit", (1, most))?.unwrap_or(usual);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let after = self.text("Marker").map(|marker| {
            let name = STANDARD.decode(marker).ok().and_then(|name| String::from_utf8(name).ok());
            name.ok_or_else(|| ApiError::client("InvalidMarkerException", "The marker is not valid."))
        });
        let after = after.transpose()?;
        let mut rows = rows.filter(|(name, _)| after.as_deref().is_none_or(|after| *name > after));
        let mut last = "";
        let mut page: Vec<Value> = Vec::new();
        for (name, row) in rows.by_ref().take(limit) {
            last = name;
            page.push(row);
        }
        let is_more = rows.next().is_some();
        let mut output =
            Map::from_iter([(list.to_owned(), Value::from(page)), ("Truncated".to_owned(), is_more.into())]);
        if is_more {
            output.insert("NextMarker".to_owned(), STANDARD.encode(last).into());
        }
        Ok(output)
    }
}

/// Seconds since 1970.
pub(super) fn seconds(at_ms: u64) -> Value {
    Value::from(at_ms as f64 / 1e3)
}
