//! The five protocols of AWS, driven by its models: requests become parameters, answers and errors become messages.
//!
//! | Protocol | Request | Answer |
//! |---|---|---|
//! | EC2 Query | form with `Action` and `Version`; lists without a level of their own | XML |
//! | AWS Query | form; lists as `Name.member.1` | XML, with a result element |
//! | JSON 1.0 and 1.1 | `X-Amz-Target`, JSON | JSON |
//! | REST-JSON | path, query, headers, JSON or bytes | headers, JSON or bytes |
//! | Smithy RPC v2 CBOR | path with the operation, CBOR | CBOR |

mod cbor;
mod check;
mod error;
mod fault;
mod json;
mod query;
mod rest;
mod route;
mod scalar;
#[cfg(test)]
mod tests;
mod xml;

use http::Response;
use http::request::Parts;
use serde_json::{Map, Value};

use crate::model::{Model, Operation};
use crate::service::{Answer, ApiError};

pub use check::Mismatch;
pub use error::refuse;
pub use route::{NoRoute, Route, route};

/// How a request is written, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The protocol of EC2.
    Ec2Query,
    /// The protocol of STS, and of older clients of CloudWatch.
    Query,
    /// JSON 1.0 and 1.1.
    Json,
    /// The protocol of the EBS direct APIs.
    RestJson,
    /// Smithy RPC v2 CBOR.
    Cbor,
}

/// The parameters of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// As [`crate::Call::input`].
    pub input: Map<String, Value>,
    /// Whether the body is data, and no parameter.
    pub body_is_payload: bool,
}

/// The header that has the id of a request.
pub const REQUEST_ID: &str = "x-amzn-requestid";

impl Route {
    fn operation(&self) -> Option<&'static Operation> {
        self.model.operation(&self.action)
    }
}

/// Reads the parameters of a request.
///
/// # Errors
/// What AWS answers to parameters that are missing, of another type, or unknown.
pub fn decode(route: &Route, parts: &Parts, body: &[u8]) -> Result<Decoded, ApiError> {
    let Some(operation) = route.operation() else { return Err(unknown_action(route, &[])) };
    let shape = route.model.input(operation);
    let decoded = match (route.protocol, shape) {
        (Protocol::Ec2Query | Protocol::Query, _) => {
            query::decode(route.model, route.protocol, shape, &route.parameters).map(parameters)
        }
        (_, None) => Ok(parameters(Map::new())),
        (Protocol::Json, Some(shape)) => json::decode(route.model, shape, body).map(parameters),
        (Protocol::Cbor, Some(shape)) => cbor::decode(route.model, shape, body).map(parameters),
        (Protocol::RestJson, Some(shape)) => rest::decode(route, shape, parts, body),
    };
    decoded
        .and_then(|decoded| {
            if let Some(shape) = shape {
                check::input(route.model, shape, &decoded)?;
            }
            Ok(decoded)
        })
        .map_err(|fault| fault.answer(route.model, route.protocol))
}

const fn parameters(input: Map<String, Value>) -> Decoded {
    Decoded { input, body_is_payload: false }
}

/// The error of an operation that is not built; it names those that are.
#[must_use]
pub fn unknown_action(route: &Route, built: &[&str]) -> ApiError {
    let Route { action, protocol, .. } = route;
    let built = if built.is_empty() { "none".to_owned() } else { built.join(", ") };
    let here = format!("Actions of {} that Ebbtide answers: {built}.", route.model.name);
    match protocol {
        Protocol::Ec2Query | Protocol::Query => ApiError::client(
            "InvalidAction",
            format!("The action {action} is not valid for this web service. {here}"),
        ),
        Protocol::Json | Protocol::RestJson | Protocol::Cbor => ApiError::client(
            "UnknownOperationException",
            format!("The operation {action} is not known. {here}"),
        ),
    }
}

/// Writes the answer of an operation.
///
/// # Errors
/// An answer that does not fit the operation's model: a fault of the service.
pub fn encode(route: &Route, answer: &Answer, request_id: &str) -> Result<Response<Vec<u8>>, Mismatch> {
    let operation = route.operation().ok_or_else(|| Mismatch::new(&route.action, "is no operation"))?;
    let shape = route.model.output(operation);
    check::output(route.model, shape, answer, false)?;
    let (kind, body) = match route.protocol {
        Protocol::Ec2Query => (xml::TYPE.to_owned(), xml::ec2(route, shape, &answer.output, request_id)),
        Protocol::Query => {
            (xml::TYPE.to_owned(), xml::query(route, operation, shape, &answer.output, request_id))
        }
        Protocol::Json => (
            json::content_type(route.model),
            shape.map(|shape| json::encode(route.model, shape, &answer.output)).unwrap_or_default(),
        ),
        Protocol::Cbor => (cbor::TYPE.to_owned(), cbor::encode(route.model, shape, &answer.output)),
        Protocol::RestJson => return Ok(rest::encode(route.model, operation, shape, answer, request_id)),
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    rest::insert(headers, REQUEST_ID, request_id);
    if route.protocol == Protocol::Cbor {
        rest::insert(headers, cbor::HEADER, cbor::VALUE);
    }
    // Smithy's rule: an answer without a shape has neither a body nor its type.
    if route.protocol != Protocol::Cbor || shape.is_some() {
        rest::insert(headers, "content-type", &kind);
    }
    Ok(response)
}

/// Compares the answer of an operation with AWS's model, more strictly than [`encode`] does: every member that must be
/// there is, and a text of an enumeration is one that the model has. For tests of services.
///
/// # Errors
/// The first place that does not fit, or a service or operation that has no model.
pub fn conforms(service: &str, action: &str, answer: &Answer) -> Result<(), Mismatch> {
    let model = Model::of(service).ok_or_else(|| Mismatch::new(service, "is no service with a model"))?;
    let operation = model.operation(action).ok_or_else(|| Mismatch::new(action, "is no operation"))?;
    check::output(model, model.output(operation), answer, true)
}

/// All services whose models are there, with the protocols that are answered, for documents and tests.
#[must_use]
pub fn protocols(model: &Model) -> Vec<Protocol> {
    let named = |name: &String| match name.as_str() {
        "ec2" => Some(Protocol::Ec2Query),
        "query" => Some(Protocol::Query),
        "json" => Some(Protocol::Json),
        "rest-json" => Some(Protocol::RestJson),
        "smithy-rpc-v2-cbor" => Some(Protocol::Cbor),
        _ => None,
    };
    model.metadata.protocols.iter().filter_map(named).collect()
}
