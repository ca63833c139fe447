//! Who may use a key: the key's policy, the caller's own, and grants.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::db::Change;
use super::names::Name;
use super::records::{Grant, Key};
use super::state::State;
use super::{Ask, Kms, refuse};
use crate::iam::{ResourcePolicy, Verdict};
use crate::{Access, ApiError, Call, Judgement, OwnPolicy, partition};

/// Most bytes of a key's policy.
const POLICY_BYTES: usize = 32 << 10;
/// The only policy of a key.
const DEFAULT: &str = "default";

/// By what a caller may use a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Permit<'a> {
    /// Policies allow it.
    Policies,
    /// A grant does.
    Grant(&'a Grant),
}

/// Why a caller may not use a key.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The policy of the key denies it.
    DeniedByKey,
    /// The policy of the key does not allow it.
    NotAllowedByKey,
    /// The caller's own policy does not allow it.
    ByOwn(ApiError),
}

/// The key that a call names, once the caller may do the call's action with it.
pub(super) fn permitted<'a>(ask: &Ask<'_>, state: &'a State, text: &str) -> Result<&'a Key, ApiError> {
    permitted_action(ask, state, ask.call.action, text)
}

/// The same of another action than the call's.
pub(super) fn permitted_action<'a>(
    ask: &Ask<'_>,
    state: &'a State,
    action: &str,
    text: &str,
) -> Result<&'a Key, ApiError> {
    match state.key(ask, text) {
        Ok(key) => demand_action(ask, state, action, key).map(|_| key),
        Err(error) => Err(refusal_of_missing(ask.call, action, text).unwrap_or(error)),
    }
}

/// Why a caller is not told that a key does not exist; None where it is: its own policy would let it do the action with a
/// key of this name in its own account. What another account has, it learns by that account's policies alone.
pub(super) fn refusal_of_missing(call: &Call<'_>, action: &str, text: &str) -> Option<ApiError> {
    let (account, region) = (call.caller.account.as_str(), call.region);
    match Name::read(text)? {
        Name::Id(id) => own_refusal(call, action, key_arn(region, account, &format!("key/{id}"))),
        Name::Alias(alias) => own_refusal(call, action, key_arn(region, account, alias)),
        Name::Arn(_, owner, _) if owner == account => own_refusal(call, action, text.to_owned()),
        Name::Arn(..) => {
            let is_open = judge(call, action, text.to_owned()) == OwnPolicy::Unchecked;
            let refusal = || own_refusal(call, action, text.to_owned());
            (!is_open).then(|| refusal().unwrap_or_else(|| refuse::not_allowed(call, action, text)))
        }
    }
}

/// The refusal of the caller's own policy; None where it allows the action on a resource.
pub(super) fn own_refusal(call: &Call<'_>, action: &str, resource: String) -> Option<ApiError> {
    match judge(call, action, resource) {
        OwnPolicy::Unchecked | OwnPolicy::Allows => None,
        OwnPolicy::Silent(error) | OwnPolicy::Denies(error) => Some(error),
    }
}

fn judge(call: &Call<'_>, action: &str, resource: String) -> OwnPolicy {
    let access = Access { action: format!("kms:{action}").into(), resource, context: BTreeMap::new() };
    call.authorizer.judge(call.caller, &access).says
}

/// The ARN of a key or an alias.
pub(super) fn key_arn(region: &str, account: &str, resource: &str) -> String {
    format!("arn:{}:kms:{region}:{account}:{resource}", partition::of_region(region))
}

/// Demands the call's action on an alias, which has no policy of its own.
pub(super) fn demand_alias(ask: &Ask<'_>, arn: &str) -> Result<(), ApiError> {
    own_refusal(ask.call, ask.call.action, arn.to_owned()).map_or(Ok(()), Err)
}

/// What a call demands of a key: its policy, the caller's own and grants decide together.
pub(super) fn demand<'a>(ask: &Ask<'_>, state: &'a State, key: &Key) -> Result<Permit<'a>, ApiError> {
    demand_action(ask, state, ask.call.action, key)
}

/// The same of another action than the call's.
pub(super) fn demand_action<'a>(
    ask: &Ask<'_>,
    state: &'a State,
    action: &str,
    key: &Key,
) -> Result<Permit<'a>, ApiError> {
    let encryption = ask.input.context(encryption_context(action));
    let grant = state.grant_for(ask.call.caller, key, action, &encryption);
    demand_with(ask, action, key, grant)
}

/// The member of a request that has the encryption context of an action.
fn encryption_context(action: &str) -> &'static str {
    match action {
        "ReEncryptFrom" => "SourceEncryptionContext",
        "ReEncryptTo" => "DestinationEncryptionContext",
        _ => "EncryptionContext",
    }
}

/// Condition keys that are parameters of an action: the action, the parameter, the key, and its value where the call has none.
const REQUEST_KEYS: [(&str, &str, &str, Option<&str>); 6] = [
    ("CreateGrant", "GranteePrincipal", "kms:GranteePrincipal", None),
    ("CreateGrant", "Operations", "kms:GrantOperations", None),
    ("CreateGrant", "RetiringPrincipal", "kms:RetiringPrincipal", None),
    ("EnableKeyRotation", "RotationPeriodInDays", "kms:RotationPeriodInDays", Some("365")),
    ("PutKeyPolicy", "BypassPolicyLockoutSafetyCheck", "kms:BypassPolicyLockoutSafetyCheck", Some("false")),
    ("ScheduleKeyDeletion", "PendingWindowInDays", "kms:ScheduleKeyDeletionPendingWindowInDays", Some("30")),
];

/// The condition keys that a call's own parameters are.
fn request_keys<'a>(ask: &'a Ask<'_>, action: &'a str) -> impl Iterator<Item = (String, Vec<String>)> + 'a {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    REQUEST_KEYS.iter().filter(move |(own, ..)| *own == action).filter_map(move |(_, member, key, usual)| {
        let values = match ask.input.0.get(*member) {
            Some(Value::Array(values)) => values.iter().map(text).collect(),
            Some(value) => vec![text(value)],
            None => vec![(*usual)?.to_owned()],
        };
        Some(((*key).to_owned(), values))
    })
}

/// The same with a grant that allows it, if there is one.
pub(super) fn demand_with<'a>(
    ask: &Ask<'_>,
    action: &str,
    key: &Key,
    grant: Option<&'a Grant>,
) -> Result<Permit<'a>, ApiError> {
    let mut context = tags_of(key);
    context.insert("kms:CallerAccount".to_owned(), vec![ask.account().to_owned()]);
    for (name, value) in ask.input.context(encryption_context(action)) {
        context.insert(format!("kms:EncryptionContext:{name}"), vec![value]);
    }
    if let Some(alias) = ask.input.text("KeyId").filter(|text| text.starts_with("alias/")) {
        context.insert("kms:RequestAlias".to_owned(), vec![alias.to_owned()]);
    }
    context.extend(request_keys(ask, action));
    let access = Access { action: format!("kms:{action}").into(), resource: key.arn(), context };
    permit(ask.call, key, &access, grant).map_err(|refusal| match refusal {
        Refusal::DeniedByKey => refuse::denied_explicitly(ask, key),
        Refusal::NotAllowedByKey => refuse::denied(ask, key),
        Refusal::ByOwn(error) => error,
    })
}

/// Whether a call may use a key, by the evaluation logic of KMS (developer guide, `control-access` and "Determining access"):
/// a deny wins; in the key's account the key's policy or a grant is enough where it names the caller; else the caller's own
/// policy must allow it, too.
pub(super) fn permit<'a>(
    call: &Call<'_>,
    key: &Key,
    access: &Access,
    grant: Option<&'a Grant>,
) -> Result<Permit<'a>, Refusal> {
    let Judgement { says, context } = call.authorizer.judge(call.caller, access);
    if says == OwnPolicy::Unchecked {
        return Ok(Permit::Policies);
    }
    // What is stored was read before.
    let verdict = ResourcePolicy::parse(&key.policy).map_or(Verdict::Silent, |policy| {
        policy.decide(call.caller, &access.action, &access.resource, &context)
    });
    if verdict == Verdict::Denies {
        return Err(Refusal::DeniedByKey);
    }
    if let OwnPolicy::Denies(error) = says {
        return Err(Refusal::ByOwn(error));
    }
    let is_own = call.caller.account == key.owner;
    let permit = match (verdict, grant) {
        (Verdict::Allows, _) if is_own => return Ok(Permit::Policies),
        // A grant takes nothing from who may without it.
        (Verdict::Delegates, _) if is_own && matches!(says, OwnPolicy::Allows) => {
            return Ok(Permit::Policies);
        }
        (_, Some(grant)) if is_own => return Ok(Permit::Grant(grant)),
        (Verdict::Allows | Verdict::Delegates, _) => Permit::Policies,
        (_, Some(grant)) => Permit::Grant(grant),
        // Whose own policy allows nothing is answered as for a key that does not exist.
        _ => {
            return Err(match says {
                OwnPolicy::Silent(error) => Refusal::ByOwn(error),
                _ => Refusal::NotAllowedByKey,
            });
        }
    };
    match says {
        OwnPolicy::Silent(error) => Err(Refusal::ByOwn(error)),
        _ => Ok(permit),
    }
}

pub(super) fn tags_of(key: &Key) -> BTreeMap<String, Vec<String>> {
    key.tags.iter().map(|(name, value)| (format!("aws:ResourceTag/{name}"), vec![value.clone()])).collect()
}

/// Demands an action that has no key.
pub(super) fn demand_any(ask: &Ask<'_>) -> Result<(), ApiError> {
    let action = format!("kms:{}", ask.call.action).into();
    ask.call.authorize(&Access { action, resource: "*".to_owned(), context: BTreeMap::new() })
}

/// A key that AWS manages serves its service alone, and nobody changes it.
pub(super) fn refuse_managed(ask: &Ask<'_>, key: &Key) -> Result<(), ApiError> {
    if key.is_managed { Err(refuse::denied(ask, key)) } else { Ok(()) }
}

/// The policy of a key whose creator gives none: its account decides by its own policies.
pub(super) fn default_policy(region: &str, account: &str) -> String {
    json!({
        "Version": "2012-10-17",
        "Id": "key-default-1",
        "Statement": [{
            "Sid": "Enable IAM User Permissions",
            "Effect": "Allow",
            "Principal": {"AWS": format!("arn:{}:iam::{account}:root", partition::of_region(region))},
            "Action": "kms:*",
            "Resource": "*",
        }],
    })
    .to_string()
}

/// A policy that a caller gives for a key, if it can be read and lets the caller change it again.
pub(super) fn checked(ask: &Ask<'_>, key: &Key, policy: &str) -> Result<String, ApiError> {
    let malformed = |why: String| ApiError::client("MalformedPolicyDocumentException", why);
    if policy.len() > POLICY_BYTES {
        let why = format!("The policy has {} bytes; it has at most {POLICY_BYTES}.", policy.len());
        return Err(ApiError::client("LimitExceededException", why));
    }
    if !matches!(serde_json::from_str(policy), Ok(Value::Object(_))) {
        return Err(malformed("The policy is no JSON object.".to_owned()));
    }
    ResourcePolicy::parse(policy).map_err(|error| malformed(error.to_string()))?;
    if ask.input.flag("BypassPolicyLockoutSafetyCheck") != Some(true) {
        let new = Key { policy: policy.to_owned(), ..key.clone() };
        let why = "The new key policy will not allow you to update the key policy in the future.";
        demand_with(ask, "PutKeyPolicy", &new, None).map_err(|_| malformed(why.to_owned()))?;
    }
    Ok(policy.to_owned())
}

fn of_name(ask: &Ask<'_>) -> Result<(), ApiError> {
    match ask.input.text("PolicyName") {
        None | Some(DEFAULT) => Ok(()),
        Some(other) => Err(ApiError::client("NotFoundException", format!("No such policy exists: {other}"))),
    }
}

impl Kms {
    pub(super) fn get_key_policy(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?;
        of_name(ask)?;
        Ok(Map::from_iter([
            ("Policy".to_owned(), key.policy.clone().into()),
            ("PolicyName".to_owned(), DEFAULT.into()),
        ]))
    }

    pub(super) fn put_key_policy(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?.clone();
        refuse_managed(ask, &key)?;
        of_name(ask)?;
        let policy = checked(ask, &key, ask.input.required("Policy")?)?;
        state.commit(vec![Change::Key(Box::new(Key { policy, ..key }))])?;
        Ok(Map::new())
    }

    pub(super) fn list_key_policies(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let state = self.state.lock();
        permitted(ask, &state, ask.input.required("KeyId")?)?;
        ask.input.page("PolicyNames", (100, 1_000), std::iter::once((DEFAULT, DEFAULT.into())))
    }
}
