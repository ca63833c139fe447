//! Requests to the AWS endpoint: signatures, the wire formats and policies.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use ebbtide_cloud::front::{Clock, Pipeline, Regions, Settings};
use ebbtide_cloud::iam::{Context, Policy, ResourcePolicy, Sealer, TrustPolicy};
use ebbtide_cloud::sessions::Sessions;
use ebbtide_cloud::users::{KeyRing, UserStore};
use ebbtide_cloud::{sigv4, wire};
use http::Request;
use http::request::Parts;
use tempfile::TempDir;

use crate::text;

/// 2026-11-22T01:02:03Z, the time of the kept signatures.
const NOW_MS: u64 = 1_795_309_323_000;
/// A user with the key of AWS's own examples.
const USERS: &str = r#"{"version": 1, "users": [{"name": "anna", "user_id": "AIDAANNA", "access_key": "AKIDEXAMPLE",
    "secret": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "created": "2026-11-22T01:02:03Z"}]}"#;

#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn now_ms(&self) -> u64 {
        NOW_MS
    }
}

thread_local! {
    /// One that verifies signatures, and one that does not, with their homes. They have no services: what comes after the wire
    /// format has the services' own tests.
    static PIPELINES: [(Pipeline, TempDir); 2] = [false, true].map(pipeline);
}

fn pipeline(is_open: bool) -> (Pipeline, TempDir) {
    let dir = tempfile::tempdir().expect("a folder can be made");
    let file = dir.path().join("users.json");
    fs::write(&file, USERS).expect("a file can be written");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("its mode can be set");
    let sessions = Sessions::open(dir.path()).expect("the sessions can be opened");
    let settings = Settings {
        is_open,
        region: None,
        regions: Regions::default(),
        room: None,
        keys: Arc::new(KeyRing::new(UserStore::new(dir.path()), sessions)),
        sealer: Arc::new(Sealer::new().expect("there is a random source")),
        clock: Arc::new(Fixed),
    };
    (Pipeline::new(settings, Vec::new()), dir)
}

/// A request as it is on the wire: its first line, headers, an empty line, a body. Nothing where HTTP's own reader, which is
/// not ours, would refuse it.
fn parsed(bytes: &[u8]) -> Option<(Parts, &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, body) = (text(&bytes[..end])?, bytes.get(end + 2..).unwrap_or_default());
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let mut request = Request::builder().method(first.next()?).uri(first.next()?);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        request = request.header(name, value.trim());
    }
    Some((request.body(()).ok()?.into_parts().0, body))
}

pub(super) fn request(bytes: &[u8]) {
    let Some((parts, body)) = parsed(bytes) else { return };
    PIPELINES.with(|pipelines| {
        for (pipeline, _) in pipelines {
            let answer = pipeline.answer(&parts, body, None);
            assert_ne!(answer.status().as_u16(), 500, "an internal error");
        }
    });
    let scope = sigv4::scope(&parts);
    let service = scope.as_ref().map(|scope| scope.service.as_str());
    let Ok(route) = wire::route(&parts, body, service) else { return };
    if let Err(error) = wire::decode(&route, &parts, body) {
        assert_ne!(error.status, 500, "{error:?}");
    }
}

pub(super) fn policy(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let mut context = Context::default();
    context.set("aws:RequestTag/team", ["a".to_owned(), "b".to_owned()]);
    context.set("aws:CurrentTime", ["2026-11-22T01:02:03Z".to_owned()]);
    context.set("aws:SourceIp", ["127.0.0.1".to_owned()]);
    if let Ok(policy) = Policy::parse(text) {
        let volume = "arn:aws:ec2:us-east-1:000000000000:volume/vol-0123456789abcdef0";
        let decision = policy.decide("ec2:CreateVolume", volume, &context);
        assert!(!(decision.is_allowed && decision.is_explicit_deny), "{decision:?}");
    }
    let _ = ResourcePolicy::parse(text);
    let _ = TrustPolicy::parse(text);
}
