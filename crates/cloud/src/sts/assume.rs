//! AssumeRole: whether the caller may, for how long, and what the session may do.

use ring::rand::SecureRandom;
use serde_json::{Map, Value, json};

use super::attributes::Attributes;
use super::{Sts, check_form, credentials, denied, internal, invalid, members, number, refuse_mfa, text};
use crate::iam::{ASSUME_ROLE, Policy, SET_SOURCE_IDENTITY};
use crate::service::{Access, ApiError, Call, OwnPolicy};
use crate::sessions::{Principal, SessionAttributes};
use crate::users::{ACCOUNT, KnownRole};
use crate::{key_ids, partition};

/// How long a session lasts unless a call says so, seconds.
const SESSION_S: u64 = 3_600;
/// The longest session of a role that a session of a role assumes, seconds.
const CHAINED_S: u64 = 3_600;
/// The most characters of a session's policy and tags. AWS packs both, and does not publish how.
const PACKED_CHARS: usize = 2_048;
/// The most managed policies of a call.
const MOST_POLICIES: usize = 10;

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
        // No context provider is known. What would limit or widen the session is refused rather than left unheeded.
        let contexts = call.input.get("ProvidedContexts").and_then(Value::as_array);
        if contexts.is_some_and(|contexts| !contexts.is_empty()) {
            return Err(invalid("The parameter ProvidedContexts is not supported."));
        }
        let managed = managed_policy(call)?;
        let from = call.caller.access_key.as_deref().and_then(|key| self.keys.sessions().find(key));
        let attributes = Attributes::read(call, from.as_deref())?;
        refuse_mfa(call)?;
        let known = if named.account == ACCOUNT {
            self.keys.role(named.name).map_err(|error| internal(&error))?
        } else {
            None
        };
        // Without authorization every role may be assumed, whether the home has it or not.
        let is_open = call.caller.access_key.is_none();
        if !is_open {
            check_may(call, &named, known.as_ref(), &attributes)?;
        }
        if let Some(arn) = managed {
            let message = format!("Policy {arn} does not exist or is not attachable.");
            return Err(ApiError::client("InvalidParameterValue", message));
        }
        let duration_s = duration(call, known.as_ref())?;
        let policy = text(call, "Policy");
        let packed = packed_size(policy, attributes.tag_chars())?;
        let id = match &known {
            Some(known) => known.role.role_id.clone(),
            None => role_id(&self.random)?,
        };
        let of = (!is_open).then(|| Principal::Role {
            name: named.name.to_owned(),
            id: id.clone(),
            session: session.to_owned(),
        });
        let source_identity = attributes.source_identity.as_deref();
        let given = SessionAttributes { policy, tags: &attributes.tags, source_identity };
        let key = self.issue(call, duration_s, of, given)?;
        let assumed = json!({
            "Arn": format!("arn:{}:sts::{}:assumed-role/{}/{session}", partition::of_region(call.region), named.account, named.name),
            "AssumedRoleId": format!("{id}:{session}"),
        });
        let mut output = members([
            ("AssumedRoleUser", assumed),
            ("Credentials", credentials(&key)),
            ("SessionTokenSize", key.token.len().into()),
        ]);
        output.extend(packed.map(|percent| ("PackedPolicySize".to_owned(), percent.into())));
        output.extend(source_identity.map(|identity| ("SourceIdentity".to_owned(), identity.into())));
        Ok(output)
    }
}

/// Reads the ARN of a role.
fn named(arn: &str) -> Result<Named<'_>, ApiError> {
    let parts = partition::global_arn(arn, "iam").and_then(|rest| rest.split_once(":role/"));
    match parts.filter(|(account, name)| is_account(account) && !name.is_empty()) {
        Some((account, name)) => Ok(Named { arn, account, name }),
        None => Err(invalid("Request ARN is invalid")),
    }
}

fn is_account(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Reads the managed policies of a call, and answers with the first one. A home has none: policies are kept with their user or role.
fn managed_policy<'a>(call: &'a Call<'_>) -> Result<Option<&'a str>, ApiError> {
    let Some(value @ Value::Array(policies)) = call.input.get("PolicyArns") else { return Ok(None) };
    if policies.len() > MOST_POLICIES {
        return Err(invalid(format!(
            "1 validation error detected: Value '{value}' at 'policyArns' failed to satisfy constraint: Member must have length \
             less than or equal to {MOST_POLICIES}"
        )));
    }
    let arn = |policy: &'a Value| policy.get("arn").and_then(Value::as_str).unwrap_or_default();
    let is_policy = |arn: &str| {
        let parts = partition::global_arn(arn, "iam").and_then(|rest| rest.split_once(":policy/"));
        parts.is_some_and(|(account, name)| (account == "aws" || is_account(account)) && !name.is_empty())
    };
    match policies.iter().map(arn).find(|arn| !is_policy(arn)) {
        Some(wrong) => Err(invalid(format!("{wrong} is invalid"))),
        None => Ok(policies.first().map(arn)),
    }
}

/// Whether the caller may assume the role, and give the session its tags and its source identity. As on AWS, a role that is not
/// there is answered like one that does not trust the caller.
fn check_may(
    call: &Call<'_>,
    named: &Named<'_>,
    known: Option<&KnownRole>,
    attributes: &Attributes,
) -> Result<(), ApiError> {
    let mut context = attributes.keys();
    for (member, key) in [("RoleSessionName", "sts:RoleSessionName"), ("ExternalId", "sts:ExternalId")] {
        context.extend(text(call, member).map(|value| (key.to_owned(), vec![value.to_owned()])));
    }
    for action in [ASSUME_ROLE].into_iter().chain(attributes.actions()) {
        let access =
            Access { action: action.into(), resource: named.arn.to_owned(), context: context.clone() };
        let judgement = call.authorizer.judge(call.caller, &access);
        // Of a chain of roles, the policy of the calling role must allow it, whomever the trust policy names (IAM User Guide,
        // "Permissions required to set source identity").
        let needs_own = action == SET_SOURCE_IDENTITY && call.caller.is_role_session();
        let lacks_own = needs_own && matches!(judgement.says, OwnPolicy::Silent(_));
        let is_trusted =
            known.is_some_and(|known| known.trust.allows(action, call.caller, named.arn, &judgement));
        if lacks_own || !is_trusted {
            let (caller, role) = (&call.caller.arn, named.arn);
            return Err(denied(format!(
                "User: {caller} is not authorized to perform: {action} on resource: {role}"
            )));
        }
    }
    Ok(())
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

/// How much of the room for a session's policy and tags they take, percent; none without both.
fn packed_size(policy: Option<&str>, tag_chars: usize) -> Result<Option<usize>, ApiError> {
    let too_large = |why: String| Err(ApiError::client("PackedPolicyTooLarge", why));
    let percent = |chars: usize| (chars * 100).div_ceil(PACKED_CHARS);
    let policy_chars = policy.map_or(0, |policy| policy.chars().count());
    let (of_policy, of_both) = (percent(policy_chars), percent(policy_chars + tag_chars));
    if of_policy > 100 {
        return too_large(format!(
            "Packed policy consumes {of_policy}% of allotted space, please use smaller policy."
        ));
    }
    if of_both > 100 {
        return too_large(format!("Packed size of session tags consumes {of_both}% of allotted space."));
    }
    policy.map_or(Ok(()), check_policy)?;
    Ok((policy.is_some() || tag_chars > 0).then_some(of_both))
}

fn check_policy(policy: &str) -> Result<(), ApiError> {
    let malformed = |why: String| ApiError::client("MalformedPolicyDocument", why);
    if !matches!(serde_json::from_str(policy), Ok(Value::Object(_))) {
        return Err(malformed("This policy contains invalid Json".to_owned()));
    }
    Policy::parse(policy).map(drop).map_err(|error| malformed(error.to_string()))
}

fn role_id(random: &dyn SecureRandom) -> Result<String, ApiError> {
    key_ids::id("AROA", random).ok_or_else(|| internal(&"the system has no random bytes"))
}
