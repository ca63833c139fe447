//! What is wrong with the parameters of a request, and what each service answers.

use serde_json::Value;

use super::Protocol;
use crate::model::{Kind, Model};
use crate::service::ApiError;

/// What is wrong with the parameters of a request. A `member` is a place: `tagSpecifications.1.member.tags`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fault {
    /// A member that must be there is not.
    Missing { member: String },
    /// A value is of another type.
    Kind { member: String, value: String, wanted: Kind },
    /// EC2 has no such parameter.
    Unknown { parameter: String },
    /// A parameter is there twice, or one is below another that is a value.
    Query { why: String },
    /// The body is not in the protocol's format.
    Malformed { why: String },
    /// A value breaks a bound of the model.
    Bound { member: String, value: String, rule: String },
}

/// The reason that the EBS direct APIs give with these errors.
const EBS_REASON: &str = "INVALID_PARAMETER_VALUE";

impl Fault {
    /// The error that the service answers.
    pub(super) fn answer(&self, model: &Model, protocol: Protocol) -> ApiError {
        match protocol {
            Protocol::Ec2Query => self.of_ec2(),
            _ => self.of_others(model, protocol),
        }
    }

    fn of_ec2(&self) -> ApiError {
        match self {
            Self::Missing { member } => {
                let name = last(member);
                let text = if name.ends_with("Id") {
                    format!(
                        "Value (null) for parameter {name} is invalid. Parameter may not be null or empty."
                    )
                } else {
                    format!("The request must contain the parameter {name}")
                };
                ApiError::client("MissingParameter", text)
            }
            Self::Kind { member, value, wanted } => {
                let what = article(*wanted);
                let text = format!(
                    "Value ({value}) for parameter {} is invalid. Value must be {what}.",
                    last(member)
                );
                ApiError::client("InvalidParameterValue", text)
            }
            Self::Bound { member, value, rule } => ApiError::client(
                "InvalidParameterValue",
                format!("Value ({value}) for parameter {} is invalid. {rule}", last(member)),
            ),
            Self::Unknown { parameter } => {
                ApiError::client("UnknownParameter", format!("The parameter {parameter} is not recognized"))
            }
            Self::Query { why } | Self::Malformed { why } => {
                ApiError::client("MalformedQueryString", format!("The query string is malformed: {why}"))
            }
        }
    }

    fn of_others(&self, model: &Model, protocol: Protocol) -> ApiError {
        let is_query = protocol == Protocol::Query;
        let validation = if is_query { "ValidationError" } else { "ValidationException" };
        let mut error = match self {
            Self::Missing { member } if model.name == "monitoring" => ApiError::client(
                "MissingParameter",
                format!("The parameter {} is required.", upper_first(last(member))),
            ),
            Self::Missing { member } => ApiError::client(
                validation,
                format!(
                    "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
                ),
            ),
            Self::Bound { member, value, rule } => ApiError::client(
                validation,
                format!(
                    "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: {rule}"
                ),
            ),
            Self::Kind { member, value, wanted } => ApiError::client(
                if is_query { "MalformedInput" } else { "SerializationException" },
                format!("The value {value} of '{member}' is not {}", article(*wanted)),
            ),
            Self::Unknown { parameter } => ApiError::client(
                if is_query { "MalformedInput" } else { "SerializationException" },
                format!("The parameter {parameter} is not known"),
            ),
            Self::Query { why } => ApiError::client("MalformedQueryString", why.clone()),
            Self::Malformed { why } => ApiError::client(
                if is_query { "MalformedInput" } else { "SerializationException" },
                why.clone(),
            ),
        };
        if model.name == "ebs" && error.code == "ValidationException" {
            error.members.insert("Reason".to_owned(), Value::from(EBS_REASON));
        }
        error
    }
}

/// What a value of a kind is called.
const fn article(kind: Kind) -> &'static str {
    match kind {
        Kind::Blob => "base64 text",
        Kind::Boolean => "true or false",
        Kind::Double | Kind::Float => "a number",
        Kind::Integer | Kind::Long => "an integer",
        Kind::List => "a list",
        Kind::Map => "a map",
        Kind::String => "a string",
        Kind::Structure => "a structure",
        Kind::Timestamp => "a time",
    }
}

/// The last word of a place that is no number of an item.
fn last(member: &str) -> &str {
    let is_name = |word: &&str| *word != "member" && word.parse::<u32>().is_err();
    member.rsplit('.').find(is_name).unwrap_or(member)
}

/// A member's name as places have it: the first letter is small.
pub(super) fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// The first letter is large.
pub(super) fn upper_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// A place below another.
pub(super) fn below(place: &str, name: &str) -> String {
    let name = lower_first(name);
    if place.is_empty() { name } else { format!("{place}.{name}") }
}

/// The place of an item, which is counted from 1.
pub(super) fn item(place: &str, number: usize) -> String {
    format!("{place}.{number}.member")
}
