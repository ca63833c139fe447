//! What happens to one request: route, signature, parameters, call, answer.

use std::io::Read as _;
use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use http::uri::Authority;
use http::{Response, Uri};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;

use crate::iam::{Environment, PolicyAuthorizer, Sealer, Unrestricted};
use crate::model::Model;
use crate::partition;
use crate::service::{ApiError, Authorizer, Call, Caller, Service};
use crate::sessions::Session;
use crate::sigv4::{self, Rules, Scope, SignatureError, Verified};
use crate::users::{ACCOUNT, KeyRing, Permissions};
use crate::wire::{self, NoRoute, Protocol, Route};

use super::regions::Regions;
use super::room::Room;

/// The most that a packed body may unpack to.
const MAX_UNPACKED_BYTES: u64 = 4 << 20;

/// The region of requests that name none.
const REGION: &str = "us-east-1";

/// Who sent a request.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Where it comes from.
    pub address: IpAddr,
    /// Whether it came over TLS.
    pub is_secure: bool,
}

/// The time.
pub trait Clock: std::fmt::Debug + Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
}

/// How requests are answered.
#[derive(Debug)]
pub struct Settings {
    /// Whether everyone may do everything: signatures are not verified, and no policy holds.
    pub is_open: bool,
    /// The only region that is served; all where there is none.
    pub region: Option<String>,
    /// The regions that a home has been called in.
    pub regions: Regions,
    /// How much the files of the home may take; None: as much as there is.
    pub room: Option<Room>,
    /// The access keys.
    pub keys: Arc<KeyRing>,
    /// Encodes what is denied.
    pub sealer: Arc<Sealer>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Answers requests.
#[derive(Debug)]
pub struct Pipeline {
    settings: Settings,
    services: Vec<Arc<dyn Service>>,
    random: SystemRandom,
}

impl Pipeline {
    /// A pipeline to some services.
    #[must_use]
    pub fn new(settings: Settings, services: Vec<Arc<dyn Service>>) -> Self {
        Self { settings, services, random: SystemRandom::new() }
    }

    /// What is there, as JSON.
    pub(super) fn health(&self) -> String {
        let services =
            self.services.iter().map(|service| (service.name().to_owned(), json!(service.actions())));
        json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "authorization": if self.settings.is_open { "off" } else { "signature" },
            "services": services.collect::<serde_json::Map<_, _>>(),
        })
        .to_string()
    }

    /// Answers one request.
    #[must_use]
    pub fn answer(&self, parts: &Parts, body: &[u8], peer: Option<Peer>) -> Response<Vec<u8>> {
        let id = self.request_id();
        let scope = sigv4::scope(parts);
        let service = scope.as_ref().map(|scope| scope.service.as_str());
        let unpacked = match unpack(parts, body) {
            Ok(unpacked) => unpacked,
            Err(error) => {
                return wire::refuse(guess(parts, service), service.and_then(Model::of), &error, &id);
            }
        };
        let plain = unpacked.as_deref().unwrap_or(body);
        let route = match wire::route(parts, plain, service) {
            Ok(route) => route,
            Err(no_route) => {
                let NoRoute { protocol, model, error } = *no_route;
                tracing::debug!(request = id, code = %error.code, "no operation: {}", error.message);
                return wire::refuse(protocol, model, &error, &id);
            }
        };
        let request = Request { parts, body, plain, route: &route, scope: scope.as_ref(), peer, id: &id };
        let (model, action) = (&route.model.name, &route.action);
        match self.carry_out(&request) {
            Ok(response) => {
                tracing::debug!(request = id, service = model, action, "answered");
                response
            }
            Err(error) => {
                tracing::debug!(request = id, service = model, action, code = %error.code, "refused: {}", error.message);
                wire::refuse(route.protocol, Some(route.model), &error, &id)
            }
        }
    }

    fn carry_out(&self, request: &Request<'_>) -> Result<Response<Vec<u8>>, ApiError> {
        let Request { route, id, .. } = request;
        let name = route.model.name.as_str();
        let now_ms = self.settings.clock.now_ms();
        let Verified { caller, region } = self.identify(request, now_ms)?;
        match self.settings.regions.admit(&region) {
            Ok(true) => {}
            Ok(false) => return Err(SignatureError::Region.answer(name)),
            Err(error) => {
                tracing::error!(%error, "the regions of the home cannot be stored");
                return Err(internal(name));
            }
        }
        // The home's users and roles are those of each partition that it is called in.
        let caller = Caller { arn: partition::moved(&caller.arn, &region), ..caller };
        let service = self.services.iter().find(|service| service.name() == name);
        let built = service.map_or(&[][..], |service| service.actions());
        let service = service.filter(|_| built.contains(&route.action.as_str()));
        let service = service.ok_or_else(|| wire::unknown_action(route, built))?;
        if let Some(room) = &self.settings.room {
            room.check(name, &route.action, now_ms)?;
        }
        let decoded = wire::decode(route, request.parts, request.plain)?;
        let permissions = match &caller.access_key {
            // Its user or role may have been deleted since the signature was verified.
            Some(key) => (self.settings.keys.permissions(key).map_err(|_| internal(name))?)
                .ok_or_else(|| SignatureError::UnknownKey.answer(name))?,
            None => Permissions::default(),
        };
        let agent = request.parts.headers.get("user-agent").and_then(|agent| agent.to_str().ok());
        let environment = Environment {
            source: request.peer.map(|peer| peer.address),
            is_secure: request.peer.is_some_and(|peer| peer.is_secure),
            user_agent: agent.map(str::to_owned),
            region: region.clone(),
            now_ms,
        };
        let by_policy = PolicyAuthorizer {
            policy: permissions.policy.as_deref(),
            session: permissions.session.as_deref().map(Session::terms),
            service: name,
            environment: &environment,
            sealer: &self.settings.sealer,
        };
        let authorizer: &dyn Authorizer = if self.settings.is_open { &Unrestricted } else { &by_policy };
        let answer = service.call(&Call {
            action: &route.action,
            input: &decoded.input,
            payload: if decoded.body_is_payload { request.plain } else { &[] },
            caller: &caller,
            region: &region,
            request_id: id,
            now_ms,
            authorizer,
        })?;
        wire::encode(route, &answer, id).map_err(|mismatch| {
            tracing::error!(service = name, action = route.action, "{mismatch}");
            internal(name)
        })
    }

    /// Who calls, and for which region.
    fn identify(&self, request: &Request<'_>, now_ms: u64) -> Result<Verified, ApiError> {
        let name = request.route.model.name.as_str();
        if self.settings.is_open {
            if let Some(why) = page_like(request.parts) {
                let text = format!("Without authorization, requests of web pages are refused: {why}.");
                return Err(ApiError { status: 403, ..ApiError::client("AccessDenied", text) });
            }
            return Ok(self.anyone(request.scope));
        }
        let rules = Rules {
            now_ms,
            service: name,
            region: self.settings.region.as_deref(),
            allows_unsigned_payload: name == "ebs" && request.route.action == "PutSnapshotBlock",
        };
        sigv4::verify(request.parts, request.body, &*self.settings.keys, &rules)
            .map_err(|error| error.answer(name))
    }

    /// Where authorization is off, an access key of twelve digits is the account, as other emulators have it.
    fn anyone(&self, scope: Option<&Scope>) -> Verified {
        let is_account = |key: &&str| key.len() == 12 && key.bytes().all(|digit| digit.is_ascii_digit());
        let account = scope.map(|scope| scope.access_key.as_str()).filter(is_account).unwrap_or(ACCOUNT);
        let region = scope.map(|scope| scope.region.as_str()).filter(|region| sigv4::is_region(region));
        let region = self.settings.region.as_deref().or(region).unwrap_or(REGION);
        let caller = Caller {
            account: account.to_owned(),
            arn: format!("arn:aws:iam::{account}:root"),
            user_id: account.to_owned(),
            access_key: None,
        };
        Verified { caller, region: region.to_owned() }
    }

    /// Refuses a request whose body was not read, or whose call failed.
    pub(super) fn refuse_body(
        &self,
        parts: &Parts,
        status: u16,
        code: &'static str,
        text: &str,
    ) -> Response<Vec<u8>> {
        let scope = sigv4::scope(parts);
        let service = scope.as_ref().map(|scope| scope.service.as_str());
        let error = ApiError { status, ..ApiError::client(code, text) };
        wire::refuse(guess(parts, service), service.and_then(Model::of), &error, &self.request_id())
    }

    /// A UUID of version 4.
    fn request_id(&self) -> String {
        let mut bytes = [0; 16];
        // Ids need not be secret: without random bytes they are only the same.
        let _ = self.random.fill(&mut bytes);
        let (mask, version) = ((0xf << 76) | (0b11 << 62), (4 << 76) | (0b10 << 62));
        let bits = (u128::from_be_bytes(bytes) & !mask) | version;
        let hex = format!("{bits:032x}");
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }
}

struct Request<'a> {
    parts: &'a Parts,
    /// As it was sent, and signed.
    body: &'a [u8],
    /// Unpacked.
    plain: &'a [u8],
    route: &'a Route,
    scope: Option<&'a Scope>,
    peer: Option<Peer>,
    id: &'a str,
}

/// Why a request may be one that a browser sends for a page; None where it cannot. Any page may send requests to this
/// machine, and needs no key if none is asked. One whose name leads to this machine is told by the host that it names, since
/// it counts as the same origin.
fn page_like(parts: &Parts) -> Option<String> {
    if parts.headers.contains_key("origin") {
        return Some("there is a header Origin".to_owned());
    }
    if let Some(site) = parts.headers.get("sec-fetch-site").filter(|site| *site != "none") {
        return Some(format!("the header Sec-Fetch-Site is {site:?}"));
    }
    let header = |name: &str| parts.headers.get(name).map(http::HeaderValue::as_bytes);
    let host =
        parts.uri.authority().map(|authority| authority.as_str().as_bytes()).or_else(|| header("host"));
    let own = host.and_then(|host| Authority::try_from(host).ok()).filter(is_this_machine);
    let Some(own) = own else {
        return Some("the header Host is neither localhost nor a loopback address".to_owned());
    };
    let referer = header("referer")?;
    let from = Uri::try_from(referer).ok().and_then(|uri| uri.into_parts().authority);
    (from != Some(own)).then(|| "the header Referer is of another origin".to_owned())
}

/// Whether a host is this machine, without asking a name server.
fn is_this_machine(host: &Authority) -> bool {
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a request only reads, so that it does not wait for what others do to volumes. It is told by its action, as far
/// as that is known before the request is read.
pub(super) fn only_reads(parts: &Parts, body: &[u8]) -> bool {
    if parts.headers.contains_key("content-encoding") {
        return false;
    }
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let of_form = |form: &[u8]| {
        let mut pairs = form_urlencoded::parse(form);
        pairs.find(|(name, _)| name == "Action").map(|(_, action)| action.into_owned())
    };
    let path = parts.uri.path();
    let action = match (target, path.rsplit_once("/operation/")) {
        (Some(target), _) => target.rsplit('.').next().map(str::to_owned),
        (None, Some((_, action))) => Some(action.to_owned()),
        (None, None) => of_form(parts.uri.query().unwrap_or_default().as_bytes()).or_else(|| of_form(body)),
    };
    match action {
        Some(action) => ["Describe", "Get", "List"].iter().any(|verb| action.starts_with(verb)),
        None => parts.method == http::Method::GET,
    }
}

/// The protocol of a request whose body is not known.
fn guess(parts: &Parts, service: Option<&str>) -> Protocol {
    let path = parts.uri.path();
    if path.starts_with("/service/") {
        Protocol::Cbor
    } else if parts.headers.contains_key("x-amz-target") {
        Protocol::Json
    } else if path.starts_with("/snapshots") {
        Protocol::RestJson
    } else if service.is_none_or(|service| service == "ec2") {
        Protocol::Ec2Query
    } else {
        Protocol::Query
    }
}

/// An internal error, as a service names it.
fn internal(service: &str) -> ApiError {
    let code = match service {
        "ec2" => "InternalError",
        "ebs" | "rbin" => "InternalServerException",
        "kms" => "KMSInternalException",
        "monitoring" => "InternalServiceError",
        _ => "InternalFailure",
    };
    ApiError { status: 500, ..ApiError::client(code, "An internal error has occurred.") }
}

/// The body of a request that is packed, as large ones of PutMetricData are.
fn unpack(parts: &Parts, body: &[u8]) -> Result<Option<Vec<u8>>, ApiError> {
    match parts
        .headers
        .get("content-encoding")
        .map(|encoding| encoding.as_bytes().to_ascii_lowercase())
        .as_deref()
    {
        None | Some(b"" | b"identity") => Ok(None),
        Some(b"gzip") => {
            let mut unpacked = Vec::new();
            let mut reader = flate2::read::GzDecoder::new(body).take(MAX_UNPACKED_BYTES + 1);
            let read = reader.read_to_end(&mut unpacked);
            match read {
                Ok(bytes) if u64::try_from(bytes).is_ok_and(|bytes| bytes <= MAX_UNPACKED_BYTES) => {
                    Ok(Some(unpacked))
                }
                Ok(_) => Err(ApiError {
                    status: 413,
                    ..ApiError::client(
                        "RequestEntityTooLarge",
                        format!("The body unpacks to more than {MAX_UNPACKED_BYTES} bytes."),
                    )
                }),
                Err(_) => Err(ApiError::client("MalformedInput", "The body is not packed by gzip.")),
            }
        }
        Some(_) => Err(ApiError {
            status: 415,
            ..ApiError::client("UnsupportedMediaType", "A body is packed by gzip or not at all.")
        }),
    }
}
