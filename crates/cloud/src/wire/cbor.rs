//! Parameters and answers as CBOR, in Smithy's RPC v2.

use ciborium::Value as Cbor;
use serde_json::{Map, Value};

use super::fault::{Fault, below, item};
use super::scalar;
use crate::model::{Kind, Model, Shape};

/// The type of a body.
pub(super) const TYPE: &str = "application/cbor";
/// The header that names the protocol, in requests and answers, and its value.
pub(super) const HEADER: &str = "smithy-protocol";
/// The value of that header.
pub(super) const VALUE: &str = "rpc-v2-cbor";
/// Seconds since 1970.
const TAG_TIME: u64 = 1;

/// Reads a body. Members that the model does not have are ignored.
pub(super) fn decode(model: &Model, shape: &Shape, body: &[u8]) -> Result<Map<String, Value>, Fault> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let malformed = |why: String| Fault::Malformed { why: format!("the body is no CBOR: {why}") };
    let mut rest = body;
    let value: Cbor = ciborium::from_reader(&mut rest).map_err(|error| malformed(error.to_string()))?;
    match (value, rest) {
        (Cbor::Map(sent), []) => structure(model, shape, &sent, ""),
        (_, []) => Err(malformed("it is no map".to_owned())),
        _ => Err(malformed("bytes follow its value".to_owned())),
    }
}

type Entries = [(Cbor, Cbor)];

fn structure(model: &Model, shape: &Shape, sent: &Entries, place: &str) -> Result<Map<String, Value>, Fault> {
    let mut members = Map::new();
    for (name, value) in sent.iter().filter_map(|(name, value)| Some((name.as_text()?, value))) {
        let Some(reference) = shape.members.get(name) else { continue };
        if !value.is_null() {
            members
                .insert(name.to_owned(), read(model, model.target(reference), value, &below(place, name))?);
        }
    }
    Ok(members)
}

fn read(model: &Model, shape: &Shape, value: &Cbor, place: &str) -> Result<Value, Fault> {
    let read = match (shape.kind, value) {
        (Kind::Structure, Cbor::Map(sent)) => {
            return structure(model, shape, sent, place).map(Value::Object);
        }
        (Kind::Map, Cbor::Map(sent)) => {
            let of_values = model.target(shape.entry().1);
            let entry = |(key, value): &(Cbor, Cbor)| {
                let key = key.as_text().unwrap_or_default();
                Ok((key.to_owned(), read(model, of_values, value, &format!("{place}.{key}.member"))?))
            };
            return sent.iter().map(entry).collect::<Result<_, _>>().map(Value::Object);
        }
        (Kind::List, Cbor::Array(sent)) => {
            let of_items = model.target(shape.item());
            let items =
                (1..).zip(sent).map(|(number, value)| read(model, of_items, value, &item(place, number)));
            return items.collect::<Result<_, _>>().map(Value::Array);
        }
        (Kind::String, Cbor::Text(text)) => Some(text.as_str().into()),
        (Kind::Boolean, Cbor::Bool(is)) => Some((*is).into()),
        (Kind::Integer, _) => whole(value).and_then(|number| i32::try_from(number).ok()).map(Value::from),
        (Kind::Long, _) => whole(value).map(Value::from),
        (Kind::Float | Kind::Double, _) => number(value),
        (Kind::Timestamp, Cbor::Tag(TAG_TIME, seconds)) => whole(seconds)
            .map(Value::from)
            .or_else(|| number(seconds))
            .filter(|value| scalar::time(value).is_some()),
        (Kind::Blob, Cbor::Bytes(bytes)) => Some(scalar::blob(bytes)),
        _ => None,
    };
    read.ok_or_else(|| Fault::Kind {
        member: place.to_owned(),
        value: format!("{value:?}").chars().take(100).collect(),
        wanted: shape.kind,
    })
}

fn whole(value: &Cbor) -> Option<i64> {
    value.as_integer().and_then(|number| i64::try_from(number).ok())
}

/// A number that JSON can have too.
fn number(value: &Cbor) -> Option<Value> {
    let float = value.as_float().or_else(|| whole(value).map(|whole| whole as f64))?;
    float.is_finite().then(|| float.into())
}

/// Writes an answer that fits its model; nothing where the operation has none.
pub(super) fn encode(model: &Model, shape: Option<&Shape>, output: &Map<String, Value>) -> Vec<u8> {
    shape.map(|shape| bytes(&members(model, shape, output))).unwrap_or_default()
}

/// A value as bytes.
pub(super) fn bytes(value: &Cbor) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).expect("memory takes all that is written");
    bytes
}

fn members(model: &Model, shape: &Shape, output: &Map<String, Value>) -> Cbor {
    let member = |(name, value): (&String, &Value)| {
        let reference = shape.members.get(name)?;
        Some((Cbor::from(name.as_str()), write(model, model.target(reference), value)))
    };
    Cbor::Map(output.iter().filter_map(member).collect())
}

fn write(model: &Model, shape: &Shape, value: &Value) -> Cbor {
    match (shape.kind, value) {
        (Kind::Structure, Value::Object(output)) => members(model, shape, output),
        (Kind::Map, Value::Object(entries)) => {
            let of_values = model.target(shape.entry().1);
            let entry =
                |(key, value): (&String, &Value)| (Cbor::from(key.as_str()), write(model, of_values, value));
            Cbor::Map(entries.iter().map(entry).collect())
        }
        (Kind::List, Value::Array(items)) => {
            let of_items = model.target(shape.item());
            Cbor::Array(items.iter().map(|value| write(model, of_items, value)).collect())
        }
        (Kind::Blob, Value::String(text)) => Cbor::Bytes(scalar::bytes(text).unwrap_or_default()),
        (Kind::Timestamp, _) => Cbor::Tag(TAG_TIME, Box::new(plain(value))),
        (Kind::Float | Kind::Double, _) => Cbor::Float(value.as_f64().unwrap_or_default()),
        _ => plain(value),
    }
}

/// A scalar without a model: a member of an error.
pub(super) fn plain(value: &Value) -> Cbor {
    match value {
        Value::Bool(is) => (*is).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Null => Cbor::Null,
        Value::Array(items) => Cbor::Array(items.iter().map(plain).collect()),
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| (Cbor::from(key.as_str()), plain(value));
            Cbor::Map(entries.iter().map(entry).collect())
        }
    }
}
