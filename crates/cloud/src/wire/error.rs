//! Errors, as each protocol writes them.

use ciborium::Value as Cbor;
use http::Response;
use serde_json::{Map, Value};

use super::scalar::TimeForm;
use super::xml::{self, Document};
use super::{Protocol, REQUEST_ID, cbor, json, rest};
use crate::model::Model;
use crate::service::ApiError;

/// Writes an error. Without a model the service is not known.
#[must_use]
pub fn refuse(protocol: Protocol, model: Option<&Model>, error: &ApiError, id: &str) -> Response<Vec<u8>> {
    let names = Names::of(model, error);
    let (kind, body) = match protocol {
        Protocol::Ec2Query => (xml::TYPE.to_owned(), ec2(error, &names, id)),
        Protocol::Query => (xml::TYPE.to_owned(), query(model, error, &names, id)),
        Protocol::Json => {
            let kind = model.map_or_else(|| "application/x-amz-json-1.0".to_owned(), json::content_type);
            (kind, Value::Object(members(model, error, &names, true)).to_string().into_bytes())
        }
        Protocol::RestJson => {
            let members = members(model, error, &names, false);
            ("application/json".to_owned(), Value::Object(members).to_string().into_bytes())
        }
        Protocol::Cbor => {
            let entries = members(model, error, &names, true);
            let entry = |(name, value): (&String, &Value)| (Cbor::from(name.as_str()), cbor::plain(value));
            (cbor::TYPE.to_owned(), cbor::bytes(&Cbor::Map(entries.iter().map(entry).collect())))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = error.status.try_into().unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    rest::insert(headers, "content-type", &kind);
    rest::insert(headers, REQUEST_ID, id);
    match protocol {
        Protocol::Cbor => rest::insert(headers, cbor::HEADER, cbor::VALUE),
        Protocol::RestJson => rest::insert(headers, "x-amzn-errortype", &names.name),
        _ => {}
    }
    let is_compatible = model.is_some_and(|model| model.metadata.is_query_compatible());
    if is_compatible && matches!(protocol, Protocol::Cbor | Protocol::Json) {
        let fault = format!("{};{}", names.query_code, side(error));
        rest::insert(headers, "x-amzn-query-error", &fault);
    }
    response
}

/// What an error is called.
struct Names {
    /// Its shape, as JSON has it.
    name: String,
    /// Its code in the query protocol.
    query_code: String,
    /// The member that has its message.
    message: &'static str,
}

impl Names {
    fn of(model: Option<&Model>, error: &ApiError) -> Self {
        let known = model.and_then(|model| model.error(&error.code));
        let has = |name: &str| known.is_some_and(|(_, _, shape)| shape.members.contains_key(name));
        let is_upper = has("Message")
            || (!has("message") && model.is_some_and(|model| matches!(model.name.as_str(), "ebs" | "rbin")));
        let (name, query_code) = known.map_or((&*error.code, &*error.code), |(name, code, _)| (name, code));
        Self {
            name: name.to_owned(),
            query_code: query_code.to_owned(),
            message: if is_upper { "Message" } else { "message" },
        }
    }
}

/// Whose fault it is.
const fn side(error: &ApiError) -> &'static str {
    if error.status < 500 { "Sender" } else { "Receiver" }
}

fn ec2(error: &ApiError, names: &Names, id: &str) -> Vec<u8> {
    let mut document = Document::new(TimeForm::Milliseconds);
    document.open("Response");
    document.open("Errors");
    document.open("Error");
    document.leaf("Code", &names.query_code);
    document.leaf("Message", &error.message);
    document.close("Error");
    document.close("Errors");
    document.leaf("RequestID", id);
    document.close("Response");
    document.finish()
}

fn query(model: Option<&Model>, error: &ApiError, names: &Names, id: &str) -> Vec<u8> {
    let mut document = Document::new(TimeForm::Shortest);
    match model {
        Some(model) => document.open_in("ErrorResponse", &model.metadata.xml_namespace),
        None => document.open("ErrorResponse"),
    }
    document.open("Error");
    document.leaf("Type", side(error));
    document.leaf("Code", &names.query_code);
    document.leaf("Message", &error.message);
    for (name, value) in &error.members {
        document.leaf(name, value.as_str().unwrap_or(&value.to_string()));
    }
    document.close("Error");
    document.leaf("RequestId", id);
    document.close("ErrorResponse");
    document.finish()
}

fn members(model: Option<&Model>, error: &ApiError, names: &Names, has_type: bool) -> Map<String, Value> {
    let mut members = error.members.clone();
    if has_type {
        let namespaced = model.filter(|model| model.metadata.is_query_compatible()).map(|model| {
            format!("com.amazonaws.{}#{}", model.metadata.service_id.to_lowercase(), names.name)
        });
        members.insert("__type".to_owned(), namespaced.unwrap_or_else(|| names.name.clone()).into());
    }
    members.insert(names.message.to_owned(), error.message.clone().into());
    members
}
