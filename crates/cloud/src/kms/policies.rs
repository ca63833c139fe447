//! Who may use a key: the key's policy, the caller's own, and grants.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::db::Change;
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
        _ => return Err(Refusal::NotAllowedByKey),
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
        let key = state.key(ask, ask.input.required("KeyId")?)?;
        demand(ask, &state, key)?;
        of_name(ask)?;
        Ok(Map::from_iter([
            ("Policy".to_owned(), key.policy.clone().into()),
            ("PolicyName".to_owned(), DEFAULT.into()),
        ]))
    }

    pub(super) fn put_key_policy(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let key = state.key(ask, ask.input.required("KeyId")?)?.clone();
        demand(ask, &state, &key)?;
        refuse_managed(ask, &key)?;
        of_name(ask)?;
        let policy = checked(ask, &key, ask.input.required("Policy")?)?;
        state.commit(vec![Change::Key(Box::new(Key { policy, ..key }))])?;
        Ok(Map::new())
    }

    pub(super) fn list_key_policies(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let state = self.state.lock();
        demand(ask, &state, state.key(ask, ask.input.required("KeyId")?)?)?;
        ask.input.page("PolicyNames", (100, 1_000), std::iter::once((DEFAULT, DEFAULT.into())))
    }
}
