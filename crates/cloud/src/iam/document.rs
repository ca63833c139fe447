//! Reads policies, and says where one is wrong.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::condition::{Condition, Operator};
use super::pattern::{Pattern, Patterns};
use super::{Policy, Statement};

/// What is wrong with a policy, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct PolicyError {
    place: String,
    why: String,
}

impl PolicyError {
    pub(super) fn at(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self { place: place.into(), why: why.into() }
    }
}

fn wrong<T>(place: impl Into<String>, why: impl Into<String>) -> Result<T, PolicyError> {
    Err(PolicyError::at(place, why))
}

/// The longest policy that is read: more than IAM stores.
const MAX_BYTES: usize = 64 * 1024;

/// Reads a policy.
pub(super) fn parse(text: &str) -> Result<Policy, PolicyError> {
    const ROOT: &str = "policy";
    if text.len() > MAX_BYTES {
        return wrong(ROOT, format!("it has {} bytes, at most {MAX_BYTES} are read", text.len()));
    }
    let document = match serde_json::from_str(text) {
        Ok(Value::Object(document)) => document,
        Ok(_) => return wrong(ROOT, "it is no JSON object"),
        Err(error) => return wrong(ROOT, format!("it is no JSON: {error}")),
    };
    only(&document, ROOT, &["Id", "Statement", "Version"])?;
    let has_variables = match document.get("Version").map(Value::as_str) {
        Some(Some("2012-10-17")) => true,
        None | Some(Some("2008-10-17")) => false,
        Some(_) => return wrong("Version", "give \"2012-10-17\" or \"2008-10-17\""),
    };
    let several = |number: usize| format!("Statement[{number}]");
    let found: Vec<(String, &Value)> = match document.get("Statement") {
        Some(Value::Array(all)) => {
            all.iter().enumerate().map(|(number, one)| (several(number), one)).collect()
        }
        Some(one) => vec![("Statement".to_owned(), one)],
        None => return wrong("Statement", "it is missing"),
    };
    if found.is_empty() {
        return wrong("Statement", "there is none");
    }
    let mut statements = Vec::new();
    let mut names = BTreeSet::new();
    for (number, (place, value)) in (1..).zip(&found) {
        let Value::Object(fields) = value else { return wrong(place, "it is no JSON object") };
        let statement = statement(fields, place, number, has_variables)?;
        if fields.contains_key("Sid") && !names.insert(statement.name.clone()) {
            return wrong(format!("{place}.Sid"), format!("'{}' is there twice", statement.name));
        }
        statements.push(statement);
    }
    Ok(Policy { statements })
}

fn only(fields: &Map<String, Value>, place: &str, known: &[&str]) -> Result<(), PolicyError> {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => wrong(place, format!("'{name}' is none of its elements: {}", known.join(", "))),
        None => Ok(()),
    }
}

const ELEMENTS: [&str; 7] = ["Action", "Condition", "Effect", "NotAction", "NotResource", "Resource", "Sid"];

fn statement(
    fields: &Map<String, Value>,
    place: &str,
    number: usize,
    has_variables: bool,
) -> Result<Statement, PolicyError> {
    for name in ["Principal", "NotPrincipal"] {
        if fields.contains_key(name) {
            return wrong(
                format!("{place}.{name}"),
                "a policy of a user has none: the user is the principal",
            );
        }
    }
    only(fields, place, &ELEMENTS)?;
    let name = match fields.get("Sid") {
        None => number.to_string(),
        Some(Value::String(name)) if name.chars().all(|c| c.is_ascii_alphanumeric()) => name.clone(),
        Some(_) => return wrong(format!("{place}.Sid"), "it must be letters and digits"),
    };
    let allows = match fields.get("Effect").and_then(Value::as_str) {
        Some("Allow") => true,
        Some("Deny") => false,
        _ => return wrong(format!("{place}.Effect"), "give \"Allow\" or \"Deny\""),
    };
    let of_action = |text: &str| {
        let fits = Pattern::is_action(text);
        if fits { Pattern::parse(text, false) } else { Err("is neither \"*\" nor SERVICE:ACTION") }
    };
    let of_resource = |text: &str| {
        let fits = text == "*" || (text.starts_with("arn:") && text.split(':').count() >= 6);
        if fits {
            Pattern::parse(text, has_variables)
        } else {
            Err("is neither \"*\" nor an ARN with six parts")
        }
    };
    let conditions = match fields.get("Condition") {
        None => Vec::new(),
        Some(Value::Object(all)) => conditions(all, &format!("{place}.Condition"), has_variables)?,
        Some(_) => return wrong(format!("{place}.Condition"), "it is no JSON object"),
    };
    Ok(Statement {
        name,
        allows,
        actions: one_of(fields, place, ["Action", "NotAction"], &of_action)?,
        resources: one_of(fields, place, ["Resource", "NotResource"], &of_resource)?,
        conditions,
    })
}

type Read<'a, T> = &'a dyn Fn(&str) -> Result<T, &'static str>;

/// An element, or the one that turns it round; exactly one of both.
fn one_of(
    fields: &Map<String, Value>,
    place: &str,
    [plain, negated]: [&str; 2],
    read: Read<'_, Pattern>,
) -> Result<Patterns, PolicyError> {
    let (name, value, is_negated) = match (fields.get(plain), fields.get(negated)) {
        (Some(value), None) => (plain, value, false),
        (None, Some(value)) => (negated, value, true),
        (None, None) => return wrong(format!("{place}.{plain}"), format!("give {plain} or {negated}")),
        (Some(_), Some(_)) => {
            return wrong(format!("{place}.{plain}"), format!("give {plain} or {negated}, not both"));
        }
    };
    Ok(Patterns { patterns: values(value, &format!("{place}.{name}"), read)?, is_negated })
}

/// One value, or a list of them. Numbers and booleans are texts, as IAM takes them.
fn values<T>(value: &Value, place: &str, read: Read<'_, T>) -> Result<Vec<T>, PolicyError> {
    let one = |value: &Value, place: &str| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return wrong(place, "it is no text"),
        };
        read(&text).or_else(|why| wrong(place, format!("'{text}' {why}")))
    };
    match value {
        Value::Array(all) if all.is_empty() => wrong(place, "it is an empty list"),
        Value::Array(all) => {
            all.iter().enumerate().map(|(number, value)| one(value, &format!("{place}[{number}]"))).collect()
        }
        _ => one(value, place).map(|value| vec![value]),
    }
}

fn conditions(
    all: &Map<String, Value>,
    place: &str,
    has_variables: bool,
) -> Result<Vec<Condition>, PolicyError> {
    let mut conditions = Vec::new();
    for (name, keys) in all {
        let place = format!("{place}.{name}");
        let Some(operator) = Operator::parse(name) else {
            return wrong(place, "is no operator of conditions");
        };
        let Value::Object(keys) = keys else { return wrong(place, "it is no JSON object") };
        for (key, value) in keys {
            let place = format!("{place}.{key}");
            if key.is_empty() {
                return wrong(place, "a condition key has no name");
            }
            let values = values(value, &place, &|text| operator.value(text, has_variables))?;
            conditions.push(Condition { operator, key: key.clone(), values });
        }
    }
    Ok(conditions)
}
