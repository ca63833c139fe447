//! Values as columns of the database have them.

use rusqlite::{Error, Result};
use serde::Serialize;

/// A value as JSON, for a column.
///
/// # Errors
/// A value that JSON cannot have.
pub fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))
}

/// A unit variant as its JSON spells it.
///
/// # Errors
/// A value that JSON cannot have.
pub fn word(value: &impl Serialize) -> Result<String> {
    Ok(json(value)?.trim_matches('"').to_owned())
}
