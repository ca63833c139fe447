//! Values that are one text in a query, a path, a header or XML.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::{Number, Value};

use crate::model::Kind;

/// A text as a value of a kind; none where it is none, and for kinds that are no scalars.
pub(super) fn parse(kind: Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::String => Some(text.into()),
        Kind::Boolean if text.eq_ignore_ascii_case("true") => Some(true.into()),
        Kind::Boolean if text.eq_ignore_ascii_case("false") => Some(false.into()),
        Kind::Integer => text.parse::<i32>().ok().map(Value::from),
        Kind::Long => text.parse::<i64>().ok().map(Value::from),
        Kind::Float | Kind::Double => {
            text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::from)
        }
        Kind::Timestamp => parse_time(text),
        Kind::Blob => canonical_blob(text),
        Kind::Boolean | Kind::List | Kind::Map | Kind::Structure => None,
    }
}

/// Base64 text in its one canonical form.
pub(super) fn canonical_blob(text: &str) -> Option<Value> {
    STANDARD.decode(text).ok().map(|bytes| blob(&bytes))
}

/// Bytes as base64 text.
pub(super) fn blob(bytes: &[u8]) -> Value {
    STANDARD.encode(bytes).into()
}

/// Base64 text as bytes.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// ISO 8601, or seconds since 1970.
fn parse_time(text: &str) -> Option<Value> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(seconds(time));
    }
    text.parse().ok().and_then(|number: f64| time(&number.into())).map(seconds)
}

/// Seconds since 1970, whole where they are.
fn seconds(time: Timestamp) -> Value {
    if time.subsec_nanosecond() == 0 {
        time.as_second().into()
    } else {
        Number::from_f64(time.as_duration().as_secs_f64()).map_or(Value::Null, Value::Number)
    }
}

/// Seconds since 1970 as a time, where it is one.
pub(super) fn time(seconds: &Value) -> Option<Timestamp> {
    let since = match seconds.as_i64() {
        Some(whole) => SignedDuration::from_secs(whole),
        None => SignedDuration::try_from_secs_f64(seconds.as_f64()?).ok()?,
    };
    Timestamp::from_duration(since).ok()
}

/// How a time is written in XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeForm {
    /// Always with milliseconds, as EC2 does.
    Milliseconds,
    /// With milliseconds only where there are some.
    Shortest,
}

/// A scalar of an answer as text.
pub(super) fn write(kind: Kind, value: &Value, form: TimeForm) -> Cow<'_, str> {
    match (kind, value) {
        (Kind::Timestamp, _) => {
            let time = time(value).unwrap_or_default();
            // A float of seconds may be a nanosecond below its millisecond.
            let time = time.round(Unit::Millisecond).unwrap_or(time);
            match form {
                TimeForm::Shortest if time.subsec_nanosecond() == 0 => format!("{time:.0}").into(),
                _ => format!("{time:.3}").into(),
            }
        }
        (_, Value::String(text)) => text.as_str().into(),
        (_, Value::Bool(flag)) => if *flag { "true" } else { "false" }.into(),
        _ => value.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_form_that_clients_send() {
        let at = |text| parse(Kind::Timestamp, text);
        assert_eq!(at("2026-11-22T01:02:03Z"), Some(1_795_309_323_i64.into()));
        assert_eq!(at("2026-11-22T01:02:03.5Z"), Some(1_795_309_323.5.into()));
        assert_eq!(at("2026-11-22T02:02:03+01:00"), Some(1_795_309_323_i64.into()));
        assert_eq!(at("1795309323"), Some(1_795_309_323_i64.into()));
        assert_eq!(at("yesterday"), None);
        assert_eq!(at("1e300"), None);
        assert_eq!(at("NaN"), None);
    }

    #[test]
    fn times_are_written_as_the_service_does() {
        let write = |seconds: Value, form| write(Kind::Timestamp, &seconds, form).into_owned();
        assert_eq!(write(1_795_309_323.into(), TimeForm::Milliseconds), "2026-11-22T01:02:03.000Z");
        assert_eq!(write(1_795_309_323.into(), TimeForm::Shortest), "2026-11-22T01:02:03Z");
        assert_eq!(write(1_795_309_323.123.into(), TimeForm::Shortest), "2026-11-22T01:02:03.123Z");
    }

    #[test]
    fn numbers_out_of_range_and_other_words_are_refused() {
        assert_eq!(parse(Kind::Integer, "2147483647"), Some(i32::MAX.into()));
        assert_eq!(parse(Kind::Integer, "2147483648"), None);
        assert_eq!(parse(Kind::Long, "2147483648"), Some(2_147_483_648_i64.into()));
        assert_eq!(parse(Kind::Integer, "10.0"), None);
        assert_eq!(parse(Kind::Double, "inf"), None);
        assert_eq!(parse(Kind::Boolean, "True"), Some(true.into()));
        assert_eq!(parse(Kind::Boolean, "yes"), None);
        assert_eq!(parse(Kind::Blob, "YQ=="), Some("YQ==".into()));
        assert_eq!(parse(Kind::Blob, "?"), None);
    }
}
