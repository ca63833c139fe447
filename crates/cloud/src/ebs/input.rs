//! The parameters of a call.

use serde_json::Value;

use super::refuse;
use crate::{ApiError, Call};

/// A text; an empty one is none.
pub(super) fn text<'a>(call: &Call<'a>, member: &str) -> Option<&'a str> {
    call.input.get(member).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(super) fn number(call: &Call<'_>, member: &str) -> Option<i64> {
    call.input.get(member).and_then(Value::as_i64)
}

/// A number between two bounds; none where it is absent.
pub(super) fn bounded(
    call: &Call<'_>,
    member: &str,
    (least, most): (u64, u64),
) -> Result<Option<u64>, ApiError> {
    let Some(number) = number(call, member) else { return Ok(None) };
    let fits = u64::try_from(number).ok().filter(|number| (least..=most).contains(number));
    fits.map(Some).ok_or_else(|| {
        refuse::invalid_value(format!("{member} must be between {least} and {most}; {number} is not."))
    })
}

/// The id of a snapshot; `place` is its name in messages.
pub(super) fn snapshot_id<'a>(call: &Call<'a>, member: &str, place: &str) -> Result<&'a str, ApiError> {
    let id = text(call, member).unwrap_or_default();
    let is_id = |digits: &str| {
        !digits.is_empty()
            && digits.len() <= 59
            && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    if id.strip_prefix("snap-").is_some_and(is_id) { Ok(id) } else { Err(refuse::malformed_id(id, place)) }
}
