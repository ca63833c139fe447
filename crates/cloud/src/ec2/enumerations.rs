//! Parameters that have one of a few values.

use serde_json::Value;

use super::refuse;
use crate::model::{Kind, Model, Shape};
use crate::{ApiError, Call};

/// Enumerations for which the actions have words or rules of their own: types that the catalogue may have besides, names in
/// upper case, codes of AWS for a wrong value.
const OWN: [&str; 13] = [
    "AccountAttributeName",
    "CopyTagsFromSource",
    "InstanceAttributeName",
    "InstanceType",
    "LockMode",
    "OperationType",
    "PermissionGroup",
    "ResourceType",
    "SnapshotAttributeName",
    "SnapshotBlockPublicAccessState",
    "TargetStorageTier",
    "VolumeAttributeName",
    "VolumeType",
];

/// Refuses a value that the enumeration of its parameter does not have. An empty text is none.
pub(super) fn check(call: &Call<'_>) -> Result<(), ApiError> {
    let model = Model::of("ec2").expect("EC2 has a model");
    let shape = model.operation(call.action).and_then(|operation| model.input(operation));
    shape.map_or(Ok(()), |shape| members(model, shape, call.input))
}

fn members(model: &Model, shape: &Shape, input: &serde_json::Map<String, Value>) -> Result<(), ApiError> {
    input.iter().try_for_each(|(name, value)| match shape.members.get(name) {
        Some(reference) if !OWN.contains(&reference.shape.as_str()) => {
            checked(model, model.target(reference), value, name)
        }
        _ => Ok(()),
    })
}

fn checked(model: &Model, shape: &Shape, value: &Value, name: &str) -> Result<(), ApiError> {
    match value {
        Value::Object(input) if shape.kind == Kind::Structure => members(model, shape, input),
        Value::Array(items) if shape.kind == Kind::List && !OWN.contains(&shape.item().shape.as_str()) => {
            let of_items = model.target(shape.item());
            items.iter().try_for_each(|item| checked(model, of_items, item, name))
        }
        Value::String(text) => {
            let is_known = text.is_empty() || shape.variants.is_empty() || shape.variants.contains(text);
            if is_known { Ok(()) } else { Err(refuse::unknown_value(text, &lower(name))) }
        }
        _ => Ok(()),
    }
}

/// A parameter as messages name it: `locationType`.
fn lower(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
