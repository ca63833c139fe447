//! Parameters and answers as JSON.

use serde_json::{Map, Value};

use super::fault::{Fault, below, item};
use super::scalar;
use crate::model::{Kind, Model, Reference, Shape};

/// Reads a body. Members that the model does not have are ignored, as AWS does.
pub(super) fn decode(model: &Model, shape: &Shape, body: &[u8]) -> Result<Map<String, Value>, Fault> {
    let members = object(body)?;
    structure(model, shape, &members, "", &|_| true)
}

/// A body that is an object; an empty one is an empty object.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Fault::Malformed { why: "the body is no JSON object".to_owned() }),
        Err(error) => Err(Fault::Malformed { why: format!("the body is no JSON: {error}") }),
    }
}

/// The members that are wanted of an object.
pub(super) fn structure(
    model: &Model,
    shape: &Shape,
    sent: &Map<String, Value>,
    place: &str,
    wanted: &dyn Fn(&Reference) -> bool,
) -> Result<Map<String, Value>, Fault> {
    let mut members = Map::new();
    for (name, reference) in shape.members.iter().filter(|(_, reference)| wanted(reference)) {
        let Some(value) = sent.get(reference.wire_name(name)).filter(|value| !value.is_null()) else {
            continue;
        };
        let value = read(model, model.target(reference), value, &below(place, name))?;
        members.insert(name.clone(), value);
    }
    Ok(members)
}

fn read(model: &Model, shape: &Shape, value: &Value, place: &str) -> Result<Value, Fault> {
    let read = match (shape.kind, value) {
        (Kind::Structure, Value::Object(sent)) => {
            return structure(model, shape, sent, place, &|_| true).map(Value::Object);
        }
        (Kind::Map, Value::Object(sent)) => {
            let of_values = model.target(shape.entry().1);
            let entry = |(key, value): (&String, &Value)| {
                Ok((key.clone(), read(model, of_values, value, &format!("{place}.{key}.member"))?))
            };
            return sent.iter().map(entry).collect::<Result<_, _>>().map(Value::Object);
        }
        (Kind::List, Value::Array(sent)) => {
            let of_items = model.target(shape.item());
            let items =
                (1..).zip(sent).map(|(number, value)| read(model, of_items, value, &item(place, number)));
            return items.collect::<Result<_, _>>().map(Value::Array);
        }
        (Kind::String, Value::String(_)) | (Kind::Boolean, Value::Bool(_)) => Some(value.clone()),
        (Kind::Integer, _) => value.as_i64().and_then(|n| i32::try_from(n).ok()).map(Value::from),
        (Kind::Long, _) => value.as_i64().map(Value::from),
        (Kind::Float | Kind::Double, Value::Number(_)) => value.as_f64().map(Value::from),
        (Kind::Timestamp, Value::Number(_)) => scalar::time(value).map(|_| value.clone()),
        (Kind::Timestamp | Kind::Blob, Value::String(text)) => scalar::parse(shape.kind, text),
        _ => None,
    };
    read.ok_or_else(|| Fault::Kind { member: place.to_owned(), value: shown(value), wanted: shape.kind })
}

/// The beginning of a value, for a message.
fn shown(value: &Value) -> String {
    value.to_string().chars().take(100).collect()
}

/// The type of a body in a service's version of JSON.
pub(super) fn content_type(model: &Model) -> String {
    format!("application/x-amz-json-{}", model.metadata.json_version)
}

/// Writes an answer that fits its model.
pub(super) fn encode(model: &Model, shape: &Shape, output: &Map<String, Value>) -> Vec<u8> {
    Value::Object(renamed(model, shape, output, &|_| true)).to_string().into_bytes()
}

/// The members that are wanted, by their names in a message.
pub(super) fn renamed(
    model: &Model,
    shape: &Shape,
    output: &Map<String, Value>,
    wanted: &dyn Fn(&Reference) -> bool,
) -> Map<String, Value> {
    let member = |(name, value): (&String, &Value)| {
        let reference = shape.members.get(name).filter(|reference| wanted(reference))?;
        Some((reference.wire_name(name).to_owned(), write(model, model.target(reference), value)))
    };
    output.iter().filter_map(member).collect()
}

fn write(model: &Model, shape: &Shape, value: &Value) -> Value {
    match value {
        Value::Object(members) if shape.kind == Kind::Structure => {
            Value::Object(renamed(model, shape, members, &|_| true))
        }
        Value::Object(entries) if shape.kind == Kind::Map => {
            let of_values = model.target(shape.entry().1);
            let entry = |(key, value): (&String, &Value)| (key.clone(), write(model, of_values, value));
            Value::Object(entries.iter().map(entry).collect())
        }
        Value::Array(items) if shape.kind == Kind::List => {
            let of_items = model.target(shape.item());
            Value::Array(items.iter().map(|value| write(model, of_items, value)).collect())
        }
        _ => value.clone(),
    }
}
