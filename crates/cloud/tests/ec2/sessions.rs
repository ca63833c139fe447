//! Temporary keys: STS issues them for users and roles, and EC2, KMS and STS itself take them, by the time of the test.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ebbtide_cloud::front::{Clock, Pipeline, Regions, Settings};
use ebbtide_cloud::iam::{Sealer, Unrestricted};
use ebbtide_cloud::sessions::Sessions;
use ebbtide_cloud::sts::Sts;
use ebbtide_cloud::users::{ACCOUNT, KeyRing, NewRole, UserStore};
use ebbtide_cloud::wire::conforms;
use ebbtide_cloud::{Call, Caller, Service as _};
use http::Response;
use ring::rand::SystemRandom;
use serde_json::{Value, json};

use crate::rows::Mismatches;
use crate::support::{ErrorRow, ErrorTable, REGION, Rig, START_MS, fill, fill_all, text};
use crate::wire::{Protocol, Refusal, Shapes, element, refusal};

#[derive(Debug)]
struct Moving(AtomicU64);

impl Clock for Moving {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A key with the token of a session, if it has one.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
}

/// An endpoint of a home with users and roles: EC2, KMS and STS, without a socket.
pub(super) struct Endpoint {
    pipeline: Pipeline,
    clock: Arc<Moving>,
    pub(super) users: UserStore,
    sts: Arc<Sts>,
    rig: Rig,
    pub(super) anna: Key,
    bert: Key,
}

const EC2: Protocol = Protocol::Ec2Query;

pub(super) fn role_arn(name: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:role/{name}")
}

pub(super) fn policy(effect: &str, actions: &[&str]) -> String {
    let statement = json!({"Effect": effect, "Action": actions, "Resource": "*"});
    json!({"Version": "2012-10-17", "Statement": statement}).to_string()
}

fn trust(principal: &str, condition: &Value) -> String {
    trust_for(&["sts:AssumeRole"], principal, condition)
}

pub(super) fn trust_for(actions: &[&str], principal: &str, condition: &Value) -> String {
    let mut statement = json!({"Effect": "Allow", "Principal": {"AWS": principal}, "Action": actions});
    if !condition.is_null() {
        statement["Condition"] = condition.clone();
    }
    json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

impl Endpoint {
    pub(super) fn new() -> Self {
        let rig = Rig::new();
        let users = UserStore::new(&rig.dir.path().join("aws"));
        let random = SystemRandom::new();
        let user = |name: &str, policy: Option<&str>| {
            let made = users.create(name, policy, START_MS, &random).unwrap();
            Key { id: made.access_key, secret: made.secret, token: None }
        };
        let (anna, bert) = (user("anna", None), user("bert", Some(&policy("Allow", &["ec2:*"]))));
        let bert_arn = format!("arn:aws:iam::{ACCOUNT}:user/bert");
        let root = format!("arn:aws:iam::{ACCOUNT}:root");
        let external = json!({"StringEquals": {"sts:ExternalId": "secret-id"}});
        let none = Value::Null;
        for (name, principal, condition, max_session_s) in [
            ("storage", root.as_str(), &none, 3_600),
            ("named", &bert_arn, &none, 3_600),
            ("external", ACCOUNT, &external, 3_600),
            ("short", &root, &none, 3_600),
            ("long", &root, &none, 43_200),
            ("first", &root, &none, 3_600),
            ("second", &role_arn("first"), &none, 43_200),
        ] {
            let (trust, policy) = (trust(principal, condition), policy("Allow", &["ec2:*", "sts:Decode*"]));
            let new = NewRole { name, trust: &trust, policy: Some(&policy), max_session_s };
            users.create_role(new, START_MS, &random).unwrap();
        }
        let all = ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"];
        for (name, principal, sts_actions) in [
            ("team", &root, "sts:*"),
            ("next", &role_arn("team"), "sts:*"),
            ("quiet", &root, "sts:Get*"),
            ("last", &role_arn("quiet"), "sts:*"),
        ] {
            let trust = trust_for(&all, principal, &none);
            let policy = policy("Allow", &["ec2:*", sts_actions]);
            let new = NewRole { name, trust: &trust, policy: Some(&policy), max_session_s: 3_600 };
            users.create_role(new, START_MS, &random).unwrap();
        }
        let clock = Arc::new(Moving(AtomicU64::new(START_MS)));
        let (pipeline, sts) = serve(&rig, &users, &clock);
        Self { pipeline, clock, users, sts, rig, anna, bert }
    }

    /// The same home, served by another process: nothing was told to the one before.
    pub(super) fn served_again(self) -> Self {
        let (pipeline, sts) = serve(&self.rig, &self.users, &self.clock);
        Self { pipeline, sts, ..self }
    }

    fn pass(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }

    fn call(
        &self,
        key: &Key,
        shapes: &Shapes,
        protocol: Protocol,
        action: &str,
        input: &Value,
    ) -> Response<Vec<u8>> {
        let mut message = shapes.request(protocol, action, (input, &[]));
        if let Some(token) = &key.token {
            message.headers.insert("x-amz-security-token".to_owned(), token.clone());
        }
        let request = message.signed(shapes.service, (&key.id, &key.secret), self.clock.now_ms());
        let (parts, body) = request.into_parts();
        self.pipeline.answer(&parts, &body, None)
    }

    pub(super) fn sts(&self, key: &Key, action: &str, input: &Value) -> Result<String, Refusal> {
        let response = self.call(key, &Shapes::of("sts"), Protocol::Query, action, input);
        match refusal(Protocol::Query, &response) {
            Some(refusal) => Err(refusal),
            None => Ok(String::from_utf8(response.into_body()).unwrap()),
        }
    }

    pub(super) fn ec2(&self, key: &Key, action: &str, input: &Value) -> Result<String, Refusal> {
        let response = self.call(key, &Shapes::of("ec2"), EC2, action, input);
        match refusal(EC2, &response) {
            Some(refusal) => Err(refusal),
            None => Ok(String::from_utf8(response.into_body()).unwrap()),
        }
    }

    #[track_caller]
    pub(super) fn session_token(&self, key: &Key, input: &Value) -> Key {
        key_of(&self.sts(key, "GetSessionToken", input).unwrap())
    }

    #[track_caller]
    pub(super) fn assume(&self, key: &Key, role: &str, more: &Value) -> Key {
        let mut input = json!({"RoleArn": role_arn(role), "RoleSessionName": "nightly"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key_of(&self.sts(key, "AssumeRole", &input).unwrap())
    }

    #[track_caller]
    pub(super) fn arn(&self, key: &Key) -> String {
        element(&self.sts(key, "GetCallerIdentity", &json!({})).unwrap(), "Arn")
    }
}

fn serve(rig: &Rig, users: &UserStore, clock: &Arc<Moving>) -> (Pipeline, Arc<Sts>) {
    let sessions = Sessions::open(rig.dir.path()).unwrap();
    let keys = Arc::new(KeyRing::new(users.clone(), sessions));
    let sealer = Arc::new(Sealer::new().unwrap());
    let sts = Arc::new(Sts::new(Arc::clone(&sealer), Arc::clone(&keys)));
    let clock = Arc::<Moving>::clone(clock);
    let regions = Regions::default();
    let settings = Settings { is_open: false, region: None, regions, room: None, keys, sealer, clock };
    let services: Vec<Arc<dyn ebbtide_cloud::Service>> =
        vec![Arc::clone(&rig.ec2) as _, Arc::clone(&rig.kms) as _, Arc::clone(&sts) as _];
    (Pipeline::new(settings, services), sts)
}

#[track_caller]
fn key_of(answer: &str) -> Key {
    let (id, secret) = (element(answer, "AccessKeyId"), element(answer, "SecretAccessKey"));
    assert!(id.starts_with("ASIA"), "{id}");
    Key { id, secret, token: Some(element(answer, "SessionToken")) }
}

pub(super) fn code(result: Result<String, Refusal>) -> String {
    result.map_or_else(|refusal| refusal.code, |answer| panic!("{answer}"))
}

const NEW_VOLUME: &str = r#"{"AvailabilityZone": "us-east-1a", "Size": 1}"#;

pub(super) fn new_volume() -> Value {
    serde_json::from_str(NEW_VOLUME).unwrap()
}

#[test]
fn a_session_of_a_role_may_do_what_the_policies_of_both_allow() {
    let endpoint = Endpoint::new();
    let plain = endpoint.assume(&endpoint.anna, "storage", &json!({}));
    assert_eq!(endpoint.arn(&plain), format!("arn:aws:sts::{ACCOUNT}:assumed-role/storage/nightly"));
    let identity = endpoint.sts(&plain, "GetCallerIdentity", &json!({})).unwrap();
    let id =
        &endpoint.users.roles().unwrap().into_iter().find(|role| role.name == "storage").unwrap().role_id;
    assert_eq!(element(&identity, "UserId"), format!("{id}:nightly"));
    endpoint.ec2(&plain, "CreateVolume", &new_volume()).unwrap();
    let kms = endpoint.call(&plain, &Shapes::of("kms"), Protocol::Json, "ListKeys", &json!({}));
    let refused = refusal(Protocol::Json, &kms).unwrap();
    assert_eq!((refused.code.as_str(), refused.status), ("AccessDeniedException", 400));
    assert!(
        refused.message.contains("no identity-based policy allows the kms:ListKeys"),
        "{}",
        refused.message
    );

    let limits = policy("Allow", &["ec2:Describe*", "kms:*"]);
    let limited = endpoint.assume(&endpoint.anna, "storage", &json!({"Policy": limits}));
    endpoint.ec2(&limited, "DescribeVolumes", &json!({})).unwrap();
    let refused = endpoint.ec2(&limited, "CreateVolume", &new_volume()).unwrap_err();
    assert_eq!((refused.code.as_str(), refused.status), ("UnauthorizedOperation", 403));
    let part = format!(
        "User: arn:aws:sts::{ACCOUNT}:assumed-role/storage/nightly is not authorized to perform: ec2:CreateVolume"
    );
    assert!(refused.message.contains(&part), "{}", refused.message);
    assert!(refused.message.contains("because no session policy allows the ec2:CreateVolume action"));
    let kms = endpoint.call(&limited, &Shapes::of("kms"), Protocol::Json, "ListKeys", &json!({}));
    assert_eq!(kms.status(), 400, "the policy of a session gives nothing");
}

#[test]
fn the_trust_policy_says_who_assumes_a_role() {
    let endpoint = Endpoint::new();
    // Named by the trust policy: a policy of bert's own need not allow it.
    endpoint.assume(&endpoint.bert, "named", &json!({}));
    endpoint.assume(&endpoint.anna, "external", &json!({"ExternalId": "secret-id"}));
    // From a session of a user, and from one of a role, which the trust policy names by the role.
    let of_user = endpoint.session_token(&endpoint.anna, &json!({}));
    let first = endpoint.assume(&of_user, "first", &json!({}));
    let second = endpoint.assume(&first, "second", &json!({}));
    assert_eq!(endpoint.arn(&second), format!("arn:aws:sts::{ACCOUNT}:assumed-role/second/nightly"));
}

#[test]
fn a_session_of_a_user_may_do_what_the_user_may() {
    let endpoint = Endpoint::new();
    let bert = endpoint.session_token(&endpoint.bert, &json!({"DurationSeconds": 900}));
    assert_eq!(endpoint.arn(&bert), format!("arn:aws:iam::{ACCOUNT}:user/bert"));
    endpoint.ec2(&bert, "CreateVolume", &new_volume()).unwrap();
    let kms = endpoint.call(&bert, &Shapes::of("kms"), Protocol::Json, "ListKeys", &json!({}));
    assert_eq!(kms.status(), 400, "bert's policy does not allow it");
    endpoint.users.delete("bert").unwrap();
    assert_eq!(code(endpoint.sts(&bert, "GetCallerIdentity", &json!({}))), "InvalidClientTokenId");
}

#[test]
fn a_key_ends_with_its_session_and_each_service_says_so() {
    let endpoint = Endpoint::new();
    let key = endpoint.assume(&endpoint.anna, "storage", &json!({"DurationSeconds": 900}));
    let long = endpoint.session_token(&endpoint.anna, &json!({"DurationSeconds": 129_600}));
    endpoint.pass(899_999);
    endpoint.arn(&key);
    endpoint.pass(1);
    let refused = endpoint.sts(&key, "GetCallerIdentity", &json!({})).unwrap_err();
    assert_eq!((refused.code.as_str(), refused.status), ("ExpiredToken", 403));
    assert_eq!(refused.message, "The security token included in the request is expired");
    assert_eq!(code(endpoint.ec2(&key, "DescribeVolumes", &json!({}))), "RequestExpired");
    let kms = endpoint.call(&key, &Shapes::of("kms"), Protocol::Json, "ListKeys", &json!({}));
    assert_eq!(refusal(Protocol::Json, &kms).unwrap().code, "ExpiredTokenException");
    endpoint.pass(129_600_000 - 900_001);
    endpoint.arn(&long);
    endpoint.pass(1);
    assert_eq!(code(endpoint.sts(&long, "GetCallerIdentity", &json!({}))), "ExpiredToken");
    // Long after that, a key is not known any more.
    endpoint.pass(129_600_000);
    endpoint.session_token(&endpoint.anna, &json!({}));
    assert_eq!(code(endpoint.sts(&long, "GetCallerIdentity", &json!({}))), "InvalidClientTokenId");
}

#[test]
fn how_long_a_key_lasts_unless_the_call_says_so() {
    let endpoint = Endpoint::new();
    let of = |answer: String| {
        let end: jiff::Timestamp = element(&answer, "Expiration").parse().unwrap();
        u64::try_from(end.as_millisecond()).unwrap() - START_MS
    };
    let role = |name: &str, more: Value| {
        let mut input = json!({"RoleArn": role_arn(name), "RoleSessionName": "nightly"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        of(endpoint.sts(&endpoint.anna, "AssumeRole", &input).unwrap())
    };
    assert_eq!(of(endpoint.sts(&endpoint.anna, "GetSessionToken", &json!({})).unwrap()), 43_200_000);
    assert_eq!(role("long", json!({})), 3_600_000);
    assert_eq!(role("long", json!({"DurationSeconds": 43_200})), 43_200_000);
    assert_eq!(role("short", json!({"DurationSeconds": 3_600})), 3_600_000);
    let large = endpoint.sts(&endpoint.anna, "GetSessionToken", &json!({"MinimumSessionTokenSize": 4_096}));
    let large = large.unwrap();
    assert_eq!(
        (element(&large, "SessionToken").len(), element(&large, "SessionTokenSize").as_str()),
        (4_096, "4096")
    );
}

#[test]
fn a_request_carries_the_token_of_its_key_and_no_other() {
    let endpoint = Endpoint::new();
    let key = endpoint.assume(&endpoint.anna, "storage", &json!({}));
    let other = endpoint.assume(&endpoint.anna, "storage", &json!({}));
    let cut = key.token.as_deref().map(|token| token[..token.len() - 1].to_owned());
    for token in [None, other.token.clone(), cut, Some(String::new())] {
        let wrong = Key { token, ..key.clone() };
        assert_eq!(
            code(endpoint.sts(&wrong, "GetCallerIdentity", &json!({}))),
            "InvalidClientTokenId",
            "{wrong:?}"
        );
        assert_eq!(code(endpoint.ec2(&wrong, "DescribeVolumes", &json!({}))), "AuthFailure", "{wrong:?}");
        let kms = endpoint.call(&wrong, &Shapes::of("kms"), Protocol::Json, "ListKeys", &json!({}));
        assert_eq!(refusal(Protocol::Json, &kms).unwrap().code, "UnrecognizedClientException");
    }
    let with_token = Key { token: key.token.clone(), ..endpoint.anna.clone() };
    assert_eq!(code(endpoint.sts(&with_token, "GetCallerIdentity", &json!({}))), "InvalidClientTokenId");
    let wrong = Key { secret: endpoint.anna.secret.clone(), ..key };
    assert_eq!(code(endpoint.sts(&wrong, "GetCallerIdentity", &json!({}))), "SignatureDoesNotMatch");
}

#[test]
fn an_answered_key_is_there_after_the_process_and_gone_with_its_role() {
    let endpoint = Endpoint::new();
    let limits = json!({"Policy": policy("Allow", &["ec2:Describe*"])});
    let key = endpoint.assume(&endpoint.anna, "storage", &limits);
    let endpoint = endpoint.served_again();
    assert_eq!(endpoint.arn(&key), format!("arn:aws:sts::{ACCOUNT}:assumed-role/storage/nightly"));
    endpoint.ec2(&key, "DescribeVolumes", &json!({})).unwrap();
    assert_eq!(code(endpoint.ec2(&key, "CreateVolume", &new_volume())), "UnauthorizedOperation");
    endpoint.users.delete_role("storage").unwrap();
    assert_eq!(code(endpoint.ec2(&key, "DescribeVolumes", &json!({}))), "AuthFailure");
    // Another role of that name is not that role.
    let trust = trust(ACCOUNT, &Value::Null);
    let new = NewRole { name: "storage", trust: &trust, policy: None, max_session_s: 3_600 };
    endpoint.users.create_role(new, START_MS, &SystemRandom::new()).unwrap();
    assert_eq!(code(endpoint.sts(&key, "GetCallerIdentity", &json!({}))), "InvalidClientTokenId");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(db(&endpoint)).unwrap());
    assert_eq!(mode & 0o777, 0o600);
}

fn db(endpoint: &Endpoint) -> std::path::PathBuf {
    Path::new(endpoint.rig.dir.path()).join("sts.db")
}

#[test]
fn answers_fit_the_model_of_aws_also_without_authorization() {
    let endpoint = Endpoint::new();
    let role = json!({"RoleArn": role_arn("storage"), "RoleSessionName": "nightly", "Policy": policy("Allow", &["ec2:*"])});
    let tagged = json!({"RoleArn": role_arn("team"), "RoleSessionName": "nightly", "SourceIdentity": "anna",
        "Tags": [{"Key": "project", "Value": "a"}], "TransitiveTagKeys": ["project"]});
    let missing = json!({"RoleArn": "arn:aws:iam::123456789012:role/any", "RoleSessionName": "nightly"});
    for access_key in [Some(endpoint.anna.id.clone()), None] {
        let caller = Caller {
            account: ACCOUNT.to_owned(),
            arn: format!("arn:aws:iam::{ACCOUNT}:root"),
            user_id: ACCOUNT.to_owned(),
            access_key,
        };
        for (action, input) in [
            ("AssumeRole", &role),
            ("AssumeRole", &tagged),
            ("AssumeRole", &missing),
            ("GetSessionToken", &json!({})),
            ("GetCallerIdentity", &json!({})),
        ] {
            let call = Call {
                action,
                input: input.as_object().unwrap(),
                payload: &[],
                caller: &caller,
                region: REGION,
                request_id: "test",
                now_ms: START_MS,
                authorizer: &Unrestricted,
            };
            let is_open = caller.access_key.is_none();
            let answer = match endpoint.sts.call(&call) {
                Err(error) if !is_open && input == &missing => {
                    assert_eq!(error.code, "AccessDenied");
                    continue;
                }
                answer => answer.unwrap(),
            };
            conforms("sts", action, &answer).unwrap();
            let key = &answer.output.get("Credentials").cloned().unwrap_or_default();
            if is_open && !key.is_null() {
                // Nobody's: what was issued to everyone is no key of an endpoint that asks for one.
                assert!(key["Expiration"].as_u64().unwrap() <= START_MS / 1000 + 3_600);
                let key = Key {
                    id: text(&key["AccessKeyId"]),
                    secret: text(&key["SecretAccessKey"]),
                    token: Some(text(&key["SessionToken"])),
                };
                assert_eq!(code(endpoint.sts(&key, "GetCallerIdentity", &json!({}))), "InvalidClientTokenId");
            }
        }
    }
}

#[test]
fn every_row_of_the_errors_of_sts_is_answered_as_it_says() {
    let table: ErrorTable = toml::from_str(include_str!("../../data/sts-errors.toml")).unwrap();
    let endpoint = Endpoint::new();
    let tagged = json!({"Tags": [{"Key": "Project", "Value": "a"}], "TransitiveTagKeys": ["project"],
        "SourceIdentity": "anna"});
    let keys = BTreeMap::from([
        ("user", endpoint.anna.clone()),
        ("limited", endpoint.bert.clone()),
        ("of-user", endpoint.session_token(&endpoint.anna, &json!({}))),
        ("of-role", endpoint.assume(&endpoint.anna, "first", &json!({}))),
        ("of-tagged", endpoint.assume(&endpoint.anna, "team", &tagged)),
        ("of-quiet", endpoint.assume(&endpoint.anna, "quiet", &json!({"SourceIdentity": "anna"}))),
    ]);
    let words = BTreeMap::from([
        ("account", ACCOUNT.to_owned()),
        ("long", " ".repeat(2_049)),
        ("key", "k".repeat(129)),
        ("value", "v".repeat(256)),
    ]);
    let shapes = Shapes::of("sts");
    let mut wrong = Mismatches::default();
    let mut missing = endpoint.sts.actions().to_vec();
    for ErrorRow { operation, state, parameters, code, message, status } in table.row {
        missing.retain(|action| *action != operation);
        let input = fill_all(&words, &parameters);
        let response = endpoint.call(&keys[state.as_str()], &shapes, Protocol::Query, &operation, &input);
        let message = fill(&words, &message);
        let row = format!("{state}: {operation} {parameters}");
        wrong.check_wire(&row, Protocol::Query, &response, (&code, &message, status));
    }
    wrong.end();
    assert_eq!(missing, ["GetCallerIdentity"], "operations without a row");
}
