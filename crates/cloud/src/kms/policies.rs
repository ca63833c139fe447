//! Who may use a key: the caller's own policy, and for other accounts the key's.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::db::Change;
use super::records::Key;
use super::{Ask, Kms, refuse};
use crate::iam::Policy;
use crate::{Access, ApiError};

/// Most bytes of a key's policy.
const POLICY_BYTES: usize = 32 << 10;
/// The only policy of a key.
const DEFAULT: &str = "default";

/// What a call demands of a key: the caller's policy decides, and of another account's key its own policy does, too.
pub(super) fn demand(ask: &Ask<'_>, key: &Key) -> Result<(), ApiError> {
    demand_action(ask, ask.call.action, key)
}

/// The same of another action than the call's.
pub(super) fn demand_action(ask: &Ask<'_>, action: &str, key: &Key) -> Result<(), ApiError> {
    if !is_open_to(key, ask.account()) {
        return Err(refuse::denied(ask, key));
    }
    let mut context = tags_of(key);
    context.insert("kms:CallerAccount".to_owned(), vec![ask.account().to_owned()]);
    for (name, value) in ask.input.context("EncryptionContext") {
        context.insert(format!("kms:EncryptionContext:{name}"), vec![value]);
    }
    if let Some(alias) = ask.input.text("KeyId").filter(|text| text.starts_with("alias/")) {
        context.insert("kms:RequestAlias".to_owned(), vec![alias.to_owned()]);
    }
    ask.call.authorize(&Access { action: format!("kms:{action}").into(), resource: key.arn(), context })
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

/// Whether a key's policy lets an account in: its owner, or one that an Allow names. Actions and conditions of the policy
/// are not looked at.
pub(super) fn is_open_to(key: &Key, account: &str) -> bool {
    if key.owner == account {
        return true;
    }
    let policy: Value = serde_json::from_str(&key.policy).unwrap_or_default();
    let statements = match &policy["Statement"] {
        Value::Array(all) => all.clone(),
        one => vec![one.clone()],
    };
    let names = |principal: &Value| match principal.as_str() {
        Some("*") => true,
        Some(text) => text == account || text.starts_with(&format!("arn:aws:iam::{account}:")),
        None => false,
    };
    statements.iter().filter(|one| one["Effect"] == "Allow").any(|one| match &one["Principal"] {
        Value::Object(kinds) => match kinds.get("AWS") {
            Some(Value::Array(all)) => all.iter().any(names),
            Some(one) => names(one),
            None => false,
        },
        principal => names(principal),
    })
}

/// The policy of a key whose creator gives none: its account decides by its own policies.
pub(super) fn default_policy(account: &str) -> String {
    json!({
        "Version": "2012-10-17",
        "Id": "key-default-1",
        "Statement": [{
            "Sid": "Enable IAM User Permissions",
            "Effect": "Allow",
            "Principal": {"AWS": format!("arn:aws:iam::{account}:root")},
            "Action": "kms:*",
            "Resource": "*",
        }],
    })
    .to_string()
}

/// A policy that a caller gives, if it can be read.
pub(super) fn checked(policy: &str) -> Result<String, ApiError> {
    let malformed = |why: String| ApiError::client("MalformedPolicyDocumentException", why);
    if policy.len() > POLICY_BYTES {
        let why = format!("The policy has {} bytes; it has at most {POLICY_BYTES}.", policy.len());
        return Err(ApiError::client("LimitExceededException", why));
    }
    let Ok(Value::Object(mut document)) = serde_json::from_str(policy) else {
        return Err(malformed("The policy is no JSON object.".to_owned()));
    };
    // All elements but the principals are those of an identity-based policy.
    let statements = match document.get_mut("Statement") {
        Some(Value::Array(all)) => all.iter_mut().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    for statement in statements {
        let has_principal =
            statement.as_object_mut().is_some_and(|fields| fields.remove("Principal").is_some());
        if !has_principal {
            return Err(malformed("A statement has no Principal.".to_owned()));
        }
    }
    Policy::parse(&Value::Object(document).to_string()).map_err(|error| malformed(error.to_string()))?;
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
        demand(ask, key)?;
        of_name(ask)?;
        Ok(Map::from_iter([
            ("Policy".to_owned(), key.policy.clone().into()),
            ("PolicyName".to_owned(), DEFAULT.into()),
        ]))
    }

    pub(super) fn put_key_policy(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let key = state.key(ask, ask.input.required("KeyId")?)?.clone();
        demand(ask, &key)?;
        refuse_managed(ask, &key)?;
        of_name(ask)?;
        let policy = checked(ask.input.required("Policy")?)?;
        state.commit(vec![Change::Key(Box::new(Key { policy, ..key }))])?;
        Ok(Map::new())
    }

    pub(super) fn list_key_policies(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let state = self.state.lock();
        demand(ask, state.key(ask, ask.input.required("KeyId")?)?)?;
        ask.input.page("PolicyNames", (100, 1_000), std::iter::once((DEFAULT, DEFAULT.into())))
    }
}
