//! Whether parameters and answers fit the model: what must be there, bounds, types.

use serde_json::{Map, Value};

use super::fault::{Fault, below, item};
use super::{Decoded, scalar};
use crate::model::{Kind, Model, Shape};
use crate::service::Answer;

/// An answer that does not fit the model of its operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer's {place} {why}")]
pub struct Mismatch {
    place: String,
    why: String,
}

impl Mismatch {
    pub(super) fn new(place: &str, why: impl Into<String>) -> Self {
        Self { place: place.to_owned(), why: why.into() }
    }
}

/// Parameters: what must be there is, and values are in their bounds. Of EC2 and the EBS direct APIs, both are the
/// service's own affair, which has words of its own; only what is missing inside a parameter is refused here.
pub(super) fn input(model: &Model, shape: &Shape, decoded: &Decoded) -> Result<(), Fault> {
    let payload = shape.payload.as_deref().filter(|_| decoded.body_is_payload);
    let check = Input { model, is_of_service: matches!(&*model.name, "ec2" | "ebs") };
    check.structure(shape, &decoded.input, "", payload)
}

struct Input<'a> {
    model: &'a Model,
    /// Whether the service checks its parameters itself.
    is_of_service: bool,
}

impl Input<'_> {
    fn structure(
        &self,
        shape: &Shape,
        value: &Map<String, Value>,
        place: &str,
        payload: Option<&str>,
    ) -> Result<(), Fault> {
        let is_missing =
            |name: &&String| !value.contains_key(name.as_str()) && payload != Some(name.as_str());
        let is_checked = !(self.is_of_service && place.is_empty());
        if let Some(name) = shape.required.iter().find(is_missing).filter(|_| is_checked) {
            return Err(Fault::Missing { member: below(place, name) });
        }
        value.iter().try_for_each(|(name, value)| {
            shape.members.get(name).map_or(Ok(()), |reference| {
                self.value(self.model.target(reference), value, &below(place, name))
            })
        })
    }

    fn value(&self, shape: &Shape, value: &Value, place: &str) -> Result<(), Fault> {
        if !self.is_of_service {
            bounds(shape, value, place)?;
        }
        match value {
            Value::Object(members) if shape.kind == Kind::Structure => {
                self.structure(shape, members, place, None)
            }
            Value::Object(entries) if shape.kind == Kind::Map => {
                let of_values = self.model.target(shape.entry().1);
                entries.iter().try_for_each(|(key, value)| {
                    self.value(of_values, value, &format!("{place}.{key}.member"))
                })
            }
            Value::Array(items) if shape.kind == Kind::List => {
                let of_items = self.model.target(shape.item());
                (1..)
                    .zip(items)
                    .try_for_each(|(number, value)| self.value(of_items, value, &item(place, number)))
            }
            _ => Ok(()),
        }
    }
}

/// A number's value, and the length of everything else that has one.
fn bounds(shape: &Shape, value: &Value, place: &str) -> Result<(), Fault> {
    let (what, measured) = match (shape.kind, value) {
        (Kind::Integer | Kind::Long | Kind::Float | Kind::Double, _) => ("value", value.as_f64()),
        (Kind::String, Value::String(text)) => ("length", Some(text.chars().count() as f64)),
        (Kind::Blob, Value::String(text)) => ("length", scalar::bytes(text).map(|bytes| bytes.len() as f64)),
        (Kind::List, Value::Array(items)) => ("length", Some(items.len() as f64)),
        (Kind::Map, Value::Object(entries)) => ("length", Some(entries.len() as f64)),
        _ => return Ok(()),
    };
    let fault = |rule: String| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Err(Fault::Bound { member: place.to_owned(), value, rule })
    };
    let is_variant = |text: &str| shape.variants.iter().any(|variant| variant == text);
    if let (Some(text), false) = (value.as_str(), shape.variants.is_empty())
        && !is_variant(text)
    {
        return fault(format!("Member must satisfy enum value set: [{}]", shape.variants.join(", ")));
    }
    match measured {
        Some(measured) if shape.min.is_some_and(|min| measured < min) => {
            let min = shape.min.unwrap_or_default();
            fault(format!("Member must have {what} greater than or equal to {min}"))
        }
        Some(measured) if shape.max.is_some_and(|max| measured > max) => {
            let max = shape.max.unwrap_or_default();
            fault(format!("Member must have {what} less than or equal to {max}"))
        }
        _ => Ok(()),
    }
}

/// An answer: every member is known and of its type. A strict check also wants every member that must be there, and in
/// texts of an enumeration a value that the model has.
pub(super) fn output(
    model: &Model,
    shape: Option<&Shape>,
    answer: &Answer,
    is_strict: bool,
) -> Result<(), Mismatch> {
    let Some(shape) = shape else {
        return match answer.output.keys().next() {
            Some(name) => Err(Mismatch::new(name, "is in an answer that has no members")),
            None => Ok(()),
        };
    };
    Output { model, is_strict, payload: shape.payload.as_deref() }.fields(shape, &answer.output)
}

struct Output<'a> {
    model: &'a Model,
    is_strict: bool,
    /// The member that is the body, and no member of the answer.
    payload: Option<&'a str>,
}

impl Mismatch {
    /// The same, seen from outside: its place is only put together where there is one.
    fn inside(self, outer: &str) -> Self {
        let place = if self.place.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.place) };
        Self { place, ..self }
    }
}

impl Output<'_> {
    fn fields(&self, shape: &Shape, members: &Map<String, Value>) -> Result<(), Mismatch> {
        let is_missing =
            |name: &&String| !members.contains_key(name.as_str()) && self.payload != Some(name.as_str());
        if let Some(name) = shape.required.iter().find(is_missing).filter(|_| self.is_strict) {
            return Err(Mismatch::new(&below("", name), "is missing"));
        }
        members.iter().try_for_each(|(name, value)| {
            let Some(reference) = shape.members.get(name) else {
                return Err(Mismatch::new(&below("", name), "is not in the model"));
            };
            let checked = self.fits(self.model.target(reference), value);
            checked.map_err(|mismatch| mismatch.inside(&below("", name)))
        })
    }

    fn fits(&self, shape: &Shape, value: &Value) -> Result<(), Mismatch> {
        let fits_text = |kind| value.as_str().is_some_and(|text| scalar::parse(kind, text).is_some());
        let is_fine = match shape.kind {
            Kind::Structure | Kind::Map => value.is_object(),
            Kind::List => value.is_array(),
            Kind::String => value.is_string(),
            Kind::Boolean => value.is_boolean(),
            Kind::Integer | Kind::Long => value.as_i64().is_some(),
            Kind::Float | Kind::Double => value.is_number(),
            Kind::Timestamp => scalar::time(value).is_some(),
            Kind::Blob => fits_text(Kind::Blob),
        };
        if !is_fine {
            return Err(Mismatch::new("", format!("is no {:?}", shape.kind)));
        }
        match value {
            Value::Object(members) if shape.kind == Kind::Structure => self.fields(shape, members),
            Value::Object(entries) => {
                let of_values = self.model.target(shape.entry().1);
                entries.iter().try_for_each(|(key, value)| {
                    self.fits(of_values, value).map_err(|mismatch| mismatch.inside(key))
                })
            }
            Value::Array(items) => {
                let of_items = self.model.target(shape.item());
                (1..).zip(items).try_for_each(|(number, value)| {
                    let checked = self.fits(of_items, value);
                    checked.map_err(|mismatch| mismatch.inside(&format!("{number}.member")))
                })
            }
            Value::String(text) if self.is_strict => Self::is_variant(shape, text),
            _ => Ok(()),
        }
    }

    fn is_variant(shape: &Shape, text: &str) -> Result<(), Mismatch> {
        if shape.variants.is_empty() || shape.variants.iter().any(|variant| variant == text) {
            return Ok(());
        }
        Err(Mismatch::new("", format!("is '{text}', which is none of {}", shape.variants.join(", "))))
    }
}
