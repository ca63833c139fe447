//! REST-JSON: parameters in the path, the query, headers and the body.

use http::request::Parts;
use http::{HeaderName, HeaderValue, Response};
use serde_json::{Map, Value};

use super::fault::{Fault, below};
use super::{Decoded, REQUEST_ID, Route, json, scalar};
use crate::model::{Kind, Location, Model, Operation, Reference, Shape};
use crate::service::Answer;

/// Reads the parameters of a request.
pub(super) fn decode(route: &Route, shape: &Shape, parts: &Parts, body: &[u8]) -> Result<Decoded, Fault> {
    let model = route.model;
    let payload = shape.payload.as_ref().map(|name| &shape.members[name]);
    let body_is_payload = payload.is_some_and(|reference| model.target(reference).kind == Kind::Blob);
    let has_body = |reference: &Reference| reference.location.is_none();
    let mut input = if body_is_payload || !shape.members.values().any(has_body) {
        Map::new()
    } else {
        json::structure(model, shape, &json::object(body)?, "", &has_body)?
    };
    for (name, reference) in &shape.members {
        let wire = reference.wire_name(name);
        let kind = model.target(reference).kind;
        if matches!((reference.location, kind), (Some(Location::QueryString), Kind::List)) {
            // A list of texts, each a parameter of its own.
            let texts: Vec<Value> = all(&route.parameters, wire).map(Value::from).collect();
            if !texts.is_empty() {
                input.insert(name.clone(), texts.into());
            }
            continue;
        }
        let text = match reference.location {
            Some(Location::Uri) => find(&route.labels, wire),
            Some(Location::QueryString) => find(&route.parameters, wire),
            Some(Location::Header) => {
                parts.headers.get(wire).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            }
            Some(Location::StatusCode) | None => None,
        };
        let Some(text) = text else { continue };
        let fault = || Fault::Kind { member: below("", name), value: text.clone(), wanted: kind };
        input.insert(name.clone(), scalar::parse(kind, &text).ok_or_else(fault)?);
    }
    Ok(Decoded { input, body_is_payload })
}

fn all<'a>(pairs: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn find(pairs: &[(String, String)], name: &str) -> Option<String> {
    all(pairs, name).next().map(str::to_owned)
}

/// Writes an answer that fits its model.
pub(super) fn encode(
    model: &Model,
    operation: &Operation,
    shape: Option<&Shape>,
    answer: &Answer,
    request_id: &str,
) -> Response<Vec<u8>> {
    let payload = shape.and_then(|shape| shape.payload.as_deref());
    let (kind, body) = match (payload, shape) {
        (Some(_), _) => ("application/octet-stream", answer.payload.clone()),
        // No Content.
        (None, _) if operation.http.response_code == 204 => ("application/json", Vec::new()),
        (None, Some(shape)) => {
            let members =
                json::renamed(model, shape, &answer.output, &|reference| reference.location.is_none());
            ("application/json", Value::Object(members).to_string().into_bytes())
        }
        (None, None) => ("application/json", Vec::new()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = operation.http.response_code.try_into().unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(kind));
    insert(headers, REQUEST_ID, request_id);
    for (name, reference) in shape.into_iter().flat_map(|shape| &shape.members) {
        if let (Some(Location::Header), Some(value)) = (reference.location, answer.output.get(name)) {
            let text = scalar::write(model.target(reference).kind, value, scalar::TimeForm::Shortest);
            insert(headers, reference.wire_name(name), &text);
        }
    }
    response
}

/// Sets a header; what no header can have is left out.
pub(super) fn insert(headers: &mut http::HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}
