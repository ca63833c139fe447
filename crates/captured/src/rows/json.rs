//! Rows in JSON.

use serde_json::{Map, Value};

use super::{Rows, pair_of};
use crate::printed;

/// Reads the documents that follow each other.
pub(super) fn read(text: &str) -> Rows {
    let rows = documents(text);
    if !rows.text.is_empty() {
        return rows;
    }
    // `mysql --batch` doubles each backslash without --raw, and what it prints is no JSON then.
    documents(&text.replace("\\\\", "\\"))
}

fn documents(text: &str) -> Rows {
    let mut rows = Rows::default();
    // Rows of one result that stand on lines of their own have no heading between them.
    let mut was_pair = false;
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match document {
            Ok(value) => {
                let is_pair = value.as_object().is_some_and(|object| pair_of(&columns(object)).is_some());
                if !(is_pair && was_pair) {
                    rows.heading();
                }
                was_pair = is_pair;
                value_of(&value, &mut rows);
            }
            Err(error) => {
                rows.is_cut = error.is_eof();
                break;
            }
        }
    }
    let is_empty = rows.text.lines().all(|line| line.starts_with('*'));
    if is_empty { Rows::default() } else { rows }
}

fn value_of(value: &Value, rows: &mut Rows) {
    match value {
        Value::Object(object) => object_of(object, rows),
        Value::Array(list) => list_of(list, rows),
        _ => {}
    }
}

fn object_of(object: &Map<String, Value>, rows: &mut Rows) {
    let columns = columns(object);
    if let Some((name, value)) = pair_of(&columns) {
        rows.pair(name, value);
    } else if printed::is_of_server(columns.iter().map(|(name, _)| name.as_str())) {
        rows.heading();
        columns.iter().for_each(|(name, value)| rows.pair(name, value));
    } else if columns.iter().any(|(name, _)| is_of_replica(name)) {
        rows.row(&columns);
    } else {
        object.values().for_each(|value| value_of(value, rows));
    }
}

/// A list of rows: objects, or lists of a name and a value.
fn list_of(list: &[Value], rows: &mut Rows) {
    rows.heading();
    for value in list {
        let pair = value.as_array().and_then(|pair| match &pair[..] {
            [Value::String(name), value] => Some((name, scalar(value)?)),
            _ => None,
        });
        match pair {
            Some((name, value)) => rows.pair(name, &value),
            None => value_of(value, rows),
        }
    }
}

fn is_of_replica(name: &str) -> bool {
    ["slave_io_running", "replica_io_running"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The members of an object that are no objects or lists themselves.
fn columns(object: &Map<String, Value>) -> Vec<(String, String)> {
    object.iter().filter_map(|(name, value)| Some((name.clone(), scalar(value)?))).collect()
}

/// A value as a client prints it.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(is_on) => Some(if *is_on { "ON" } else { "OFF" }.to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}
