//! AssumeRole: whether the caller may, for how long, and what the session may do.

use std::collections::BTreeMap;

use ring::rand::SecureRandom;
use serde_json::{Map, Value, json};

use super::{Sts, credentials, denied, internal, members, number, refuse_mfa, text};
use crate::iam::{ASSUME_ROLE, Policy};
use crate::key_ids;
use crate::service::{Access, ApiError, Call};
use crate::sessions::Principal;
use crate::users::{ACCOUNT, KnownRole};

/// How long a session lasts unless a call says so, seconds.
const SESSION_S: u64 = 3_600;
/// The longest session of a role that a session of a role assumes, seconds.
const CHAINED_S: u64 = 3_600;
/// The most characters of a session's policy.
const POLICY_CHARS: usize = 2_048;

/// Parameters of the model that are not built. They would limit or widen what the session may do, so that they are refused
/// rather than left unheeded.
const NOT_BUILT: [&str; 5] =
    ["PolicyArns", "ProvidedContexts", "SourceIdentity", "Tags", "TransitiveTagKeys"];

/// A role, as a call names it.
struct Named<'a> {
    arn: &'a str,
    account: &'a str,
    name: &'a str,
}

impl Sts {
    pub(super) fn assume_role(&self, call: &Call<'_>) -> Result<Map<String, Value>, ApiError> {
        let named = named(text(call, "RoleArn").unwrap_or_default())?;
        let session = text(call, "RoleSessionName").unwrap_or_default();
        check_form("roleSessionName", session, "[\\w+=,.@-]*", "_+=,.@-")?;
        let external = text(call, "ExternalId");
        check_form("externalId", external.unwrap_or_default(), "[\\w+=,.@:\\/-]*", "_+=,.@:/-")?;
        if let Some(member) = NOT_BUILT.iter().find(|member| call.input.contains_key(**member)) {
            return Err(invalid(format!("The parameter {member} is not supported.")));
        }
        refuse_mfa(call)?;
        let known = if named.account == ACCOUNT {
            self.keys.role(named.name).map_err(|error| internal(&error))?
        } else {
            None
        };
        // Without authorization every role may be assumed, whether the home has it or not.
        let is_open = call.caller.access_key.is_none();
        if !is_open {
            check_may(call, &named, session, external, known.as_ref())?;
        }
        let duration_s = duration(call, known.as_ref())?;
        let policy = text(call, "Policy");
        let packed = policy.map(packed_size).transpose()?;
        let id = match &known {
            Some(known) => known.role.role_id.clone(),
            None => role_id(&self.random)?,
        };
        let of = (!is_open).then(|| Principal::Role {
            name: named.name.to_owned(),
            id: id.clone(),
            session: session.to_owned(),
        });
        let key = self.issue(call, duration_s, of, policy)?;
        let assumed = json!({
            "Arn": format!("arn:aws:sts::{}:assumed-role/{}/{session}", named.account, named.name),
            "AssumedRoleId": format!("{id}:{session}"),
        });
        let mut output = members([
            ("AssumedRoleUser", assumed),
            ("Credentials", credentials(&key)),
            ("SessionTokenSize", key.token.len().into()),
        ]);
        output.extend(packed.map(|percent| ("PackedPolicySize".to_owned(), percent.into())));
        Ok(output)
    }
}

/// Reads the ARN of a role.
fn named(arn: &str) -> Result<Named<'_>, ApiError> {
    let parts = arn.strip_prefix("arn:aws:iam::").and_then(|rest| rest.split_once(":role/"));
    let is_account = |text: &str| text.len() == 12 && text.bytes().all(|digit| digit.is_ascii_digit());
    match parts.filter(|(account, name)| is_account(account) && !name.is_empty()) {
        Some((account, name)) => Ok(Named { arn, account, name }),
        None => Err(invalid("Request ARN is invalid")),
    }
}

/// Checks the letters of a parameter, which the embedded model has no patterns for.
fn check_form(member: &str, value: &str, pattern: &str, marks: &str) -> Result<(), ApiError> {
    if value.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c)) {
        return Ok(());
    }
    Err(invalid(format!(
        "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: Member must satisfy regular \
         expression pattern: {pattern}"
    )))
}

/// Whether the caller may assume the role. As on AWS, one that is not there is answered like one that does not trust the caller.
fn check_may(
    call: &Call<'_>,
    named: &Named<'_>,
    session: &str,
    external: Option<&str>,
    known: Option<&KnownRole>,
) -> Result<(), ApiError> {
    let one = |text: &str| vec![text.to_owned()];
    let mut context = BTreeMap::from([("sts:RoleSessionName".to_owned(), one(session))]);
    context.extend(external.map(|id| ("sts:ExternalId".to_owned(), one(id))));
    let access = Access { action: ASSUME_ROLE.into(), resource: named.arn.to_owned(), context };
    let judgement = call.authorizer.judge(call.caller, &access);
    if known.is_some_and(|known| known.trust.allows(call.caller, named.arn, &judgement)) {
        return Ok(());
    }
    let caller = &call.caller.arn;
    Err(denied(format!(
        "User: {caller} is not authorized to perform: {ASSUME_ROLE} on resource: {}",
        named.arn
    )))
}

/// How long the session lasts, seconds. The model has checked the bounds that hold for all roles.
fn duration(call: &Call<'_>, known: Option<&KnownRole>) -> Result<u64, ApiError> {
    let asked = number(call, "DurationSeconds").unwrap_or(SESSION_S);
    if call.caller.is_role_session() && asked > CHAINED_S {
        return Err(invalid(
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining",
        ));
    }
    match known {
        Some(known) if asked > u64::from(known.role.max_session_s) => {
            Err(invalid("The requested DurationSeconds exceeds the MaxSessionDuration set for this role."))
        }
        _ => Ok(asked),
    }
}

/// How much of the room for a session's policy one takes, percent.
fn packed_size(policy: &str) -> Result<usize, ApiError> {
    let percent = (policy.chars().count() * 100).div_ceil(POLICY_CHARS);
    if percent > 100 {
        let why = format!("Packed policy consumes {percent}% of allotted space, please use smaller policy.");
        return Err(ApiError::client("PackedPolicyTooLarge", why));
    }
    let malformed = |why: String| ApiError::client("MalformedPolicyDocument", why);
    if !matches!(serde_json::from_str(policy), Ok(Value::Object(_))) {
        return Err(malformed("This policy contains invalid Json".to_owned()));
    }
    Policy::parse(policy).map_err(|error| malformed(error.to_string()))?;
    Ok(percent)
}

fn role_id(random: &dyn SecureRandom) -> Result<String, ApiError> {
    key_ids::id("AROA", random).ok_or_else(|| internal(&"the system has no random bytes"))
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationError", message)
}
