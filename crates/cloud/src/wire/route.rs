//! Which operation of which service a request asks for, and in which protocol.

use http::Method;
use http::request::Parts;
use percent_encoding::percent_decode_str;

use super::{Protocol, cbor};
use crate::model::Model;
use crate::service::ApiError;

/// More parameters than this are not read.
const MAX_PARAMETERS: usize = 20_001;

/// The operation that a request asks for.
#[derive(Debug)]
pub struct Route {
    /// The service's model.
    pub model: &'static Model,
    /// How the request is written.
    pub protocol: Protocol,
    /// The operation's name, which the model may lack.
    pub action: String,
    /// Parameters of the query, and of the body that is a form.
    pub(super) parameters: Vec<(String, String)>,
    /// Parameters of the path.
    pub(super) labels: Vec<(String, String)>,
}

impl Route {
    /// A route without parameters.
    #[cfg(test)]
    pub(crate) fn bare(model: &'static Model, protocol: Protocol, action: &str) -> Self {
        found(model, protocol, action)
    }
}

/// A request that is for no service.
#[derive(Debug)]
pub struct NoRoute {
    /// How it is written, most likely.
    pub protocol: Protocol,
    /// The service that it may be for.
    pub model: Option<&'static Model>,
    /// What to answer.
    pub error: ApiError,
}

/// Finds the operation that a request asks for. The service in its signature's scope decides where the request alone
/// does not say it.
///
/// # Errors
/// A request for no service.
pub fn route(parts: &Parts, body: &[u8], scope: Option<&str>) -> Result<Route, Box<NoRoute>> {
    let path = parts.uri.path();
    let other = scope.filter(|service| Model::of(service).is_none());
    if let Some(no_route) = other.and_then(|service| of_other_service(parts, body, service)) {
        return Err(no_route);
    }
    if path.starts_with("/service/") {
        return of_cbor(parts, path);
    }
    if let Some(target) = parts.headers.get("x-amz-target") {
        return of_target(target.to_str().unwrap_or_default());
    }
    if let Some(found) = of_known_path(parts, path) {
        return found;
    }
    if path == "/" {
        return of_form(parts, body, scope);
    }
    Err(unknown(Protocol::Json, None, &format!("{} {path}", parts.method)))
}

/// The refusal of a request that is signed for a service without a model, in the service's own protocol. None where the request
/// itself is one of a service that is here: then its signature has the wrong scope, and is refused for that.
fn of_other_service(parts: &Parts, body: &[u8], service: &str) -> Option<Box<NoRoute>> {
    let path = parts.uri.path();
    if path.starts_with("/service/") || parts.headers.contains_key("x-amz-target") {
        return None;
    }
    // `/tags/` is a path of other services too, such as DLM.
    if !path.starts_with("/tags/") && of_known_path(parts, path).is_some_and(|found| found.is_ok()) {
        return None;
    }
    let parameters = if path == "/" { form(parts, body) } else { Vec::new() };
    if let Some(action) = value(&parameters, "Action") {
        let is_here = value(&parameters, "Version").and_then(with_version).is_some();
        return (!is_here).then(|| {
            let error =
                ApiError::client("InvalidAction", not_here(&format!("{action} of the service {service}")));
            no_route(Protocol::Query, None, error)
        });
    }
    let protocol = if REST_XML.contains(&service) { Protocol::Query } else { Protocol::Json };
    let operation = format!("{} {path} of the service {service}", parts.method);
    Some(unknown(protocol, None, &operation))
}

/// Services whose clients read errors as XML, although their operations are paths: REST-XML in AWS's models.
const REST_XML: [&str; 5] = ["cloudfront", "route53", "s3", "s3-outposts", "s3express"];

fn not_here(operation: &str) -> String {
    format!("{operation} is no operation of EC2, EBS, Recycle Bin, CloudWatch, KMS or STS")
}

fn no_route(protocol: Protocol, model: Option<&'static Model>, error: ApiError) -> Box<NoRoute> {
    Box::new(NoRoute { protocol, model, error })
}

fn unknown(protocol: Protocol, model: Option<&'static Model>, what: &str) -> Box<NoRoute> {
    let mut error = ApiError::client("UnknownOperationException", not_here(what));
    error.status = 404;
    no_route(protocol, model, error)
}

/// The service whose requests name it so in JSON and CBOR.
fn with_target(prefix: &str, protocol: &str) -> Option<&'static Model> {
    let speaks = |model: &&Model| model.metadata.protocols.iter().any(|name| name == protocol);
    Model::all()
        .iter()
        .filter(speaks)
        .find(|model| !prefix.is_empty() && model.metadata.target_prefix == prefix)
}

fn found(model: &'static Model, protocol: Protocol, action: &str) -> Route {
    Route { model, protocol, action: action.to_owned(), parameters: Vec::new(), labels: Vec::new() }
}

/// `/service/SERVICE/operation/OPERATION`
fn of_cbor(parts: &Parts, path: &str) -> Result<Route, Box<NoRoute>> {
    let words: Vec<&str> = path.split('/').collect();
    let ["", "service", service, "operation", action] = words[..] else {
        return Err(unknown(Protocol::Cbor, None, path));
    };
    let model = with_target(service, "smithy-rpc-v2-cbor");
    let model = model.ok_or_else(|| unknown(Protocol::Cbor, None, service))?;
    let is_named = parts.headers.get(cbor::HEADER).is_some_and(|value| value == cbor::VALUE);
    if !is_named || parts.method != Method::POST {
        return Err(unknown(
            Protocol::Cbor,
            Some(model),
            "A request without POST and smithy-protocol: rpc-v2-cbor",
        ));
    }
    Ok(found(model, Protocol::Cbor, action))
}

/// `X-Amz-Target: SERVICE.OPERATION`
fn of_target(target: &str) -> Result<Route, Box<NoRoute>> {
    let (prefix, action) = target.rsplit_once('.').unwrap_or_default();
    let model = with_target(prefix, "json").ok_or_else(|| unknown(Protocol::Json, None, target))?;
    Ok(found(model, Protocol::Json, action))
}

/// A path of the two services whose operations are paths; none where it is of neither.
fn of_known_path(parts: &Parts, path: &str) -> Option<Result<Route, Box<NoRoute>>> {
    if path == "/snapshots" || path.starts_with("/snapshots/") {
        return Some(of_path("ebs", parts, path));
    }
    let is_of_rules = path == "/list-rules"
        || path == "/rules"
        || path.starts_with("/rules/")
        || path.starts_with("/tags/");
    is_of_rules.then(|| of_path("rbin", parts, path))
}

/// A path of a service whose operations are paths.
fn of_path(service: &str, parts: &Parts, path: &str) -> Result<Route, Box<NoRoute>> {
    let model = Model::of(service).expect("its model is embedded");
    for (action, operation) in model.operations() {
        if operation.http.method != parts.method.as_str() {
            continue;
        }
        if let Some(labels) = labels(&operation.http.request_uri, path) {
            let parameters = pairs(parts.uri.query().unwrap_or_default().as_bytes());
            return Ok(Route { parameters, labels, ..found(model, Protocol::RestJson, action) });
        }
    }
    Err(unknown(Protocol::RestJson, Some(model), &format!("{} {path}", parts.method)))
}

/// The values of a pattern's names in braces; none where the path is another one.
fn labels(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
    let mut labels = Vec::new();
    let mut words = path.split('/');
    for wanted in pattern.split('/') {
        let word = words.next()?;
        match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) if !word.is_empty() => {
                let value = percent_decode_str(word).decode_utf8().ok()?;
                labels.push((name.to_owned(), value.into_owned()));
            }
            None if wanted == word => {}
            _ => return None,
        }
    }
    words.next().is_none().then_some(labels)
}

/// A form with `Action` and `Version`.
fn of_form(parts: &Parts, body: &[u8], scope: Option<&str>) -> Result<Route, Box<NoRoute>> {
    if parts.method != Method::POST && parts.method != Method::GET {
        return Err(unknown(Protocol::Query, None, &format!("{} /", parts.method)));
    }
    let parameters = form(parts, body);
    let (action, version) = (value(&parameters, "Action"), value(&parameters, "Version"));
    let in_scope = scope.and_then(Model::of).filter(speaks_query);
    let model = version.and_then(with_version).or(in_scope);
    let is_ec2 = model.is_none_or(|model| model.name == "ec2");
    let protocol = if is_ec2 { Protocol::Ec2Query } else { Protocol::Query };
    let missing = |name: &str| {
        let code = if name == "Action" { "MissingAction" } else { "MissingParameter" };
        no_route(
            protocol,
            model,
            ApiError::client(code, format!("The request must contain the parameter {name}")),
        )
    };
    let action = action.ok_or_else(|| missing("Action"))?.to_owned();
    let version = version.ok_or_else(|| missing("Version"))?;
    match model {
        Some(model) if model.metadata.api_version == version => {
            Ok(Route { parameters, ..found(model, protocol, &action) })
        }
        _ => {
            let text = format!("The requested version ({version}) of the service does not exist");
            Err(no_route(protocol, model, ApiError::client("NoSuchVersion", text)))
        }
    }
}

/// The parameters of the query, and of the body of a POST.
fn form(parts: &Parts, body: &[u8]) -> Vec<(String, String)> {
    let mut parameters = pairs(parts.uri.query().unwrap_or_default().as_bytes());
    if parts.method == Method::POST {
        parameters.extend(pairs(body));
    }
    parameters
}

fn value<'a>(form: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    form.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
}

fn speaks_query(model: &&Model) -> bool {
    model.metadata.protocols.iter().any(|name| name == "ec2" || name == "query")
}

/// The service of a version: those that are here differ in it.
fn with_version(version: &str) -> Option<&'static Model> {
    Model::all().iter().filter(speaks_query).find(|model| model.metadata.api_version == version)
}

fn pairs(form: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(form)
        .take(MAX_PARAMETERS)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}
