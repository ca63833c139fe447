//! STS: who calls, temporary keys of users and roles, and why a call was denied.

mod assume;
mod attributes;

use std::collections::BTreeMap;
use std::sync::Arc;

use ring::rand::SystemRandom;
use serde_json::{Map, Value, json};

use crate::iam::Sealer;
use crate::service::{Access, Answer, ApiError, Call, Service};
use crate::sessions::{KeepError, Principal, SessionAttributes, TemporaryKey};
use crate::users::KeyRing;

/// How long a key of GetSessionToken lasts unless a call says so, seconds.
const SESSION_TOKEN_S: u64 = 43_200;
/// The longest of an account's owner, seconds.
const OWNERS_S: u64 = 3_600;

/// The service STS.
#[derive(Debug)]
pub struct Sts {
    sealer: Arc<Sealer>,
    keys: Arc<KeyRing>,
    random: SystemRandom,
}

impl Sts {
    /// The service, with what encoded the messages that it decodes, and the keys that it issues and others sign with.
    #[must_use]
    pub fn new(sealer: Arc<Sealer>, keys: Arc<KeyRing>) -> Self {
        Self { sealer, keys, random: SystemRandom::new() }
    }

    fn decode(&self, call: &Call<'_>) -> Result<Map<String, Value>, ApiError> {
        // As on AWS: a temporary key of a user may call GetCallerIdentity and AssumeRole alone.
        if call.caller.is_temporary() && !call.caller.is_role_session() {
            return Err(with_session_credentials(call));
        }
        call.authorize(&Access {
            action: "sts:DecodeAuthorizationMessage".into(),
            resource: "*".to_owned(),
            context: BTreeMap::new(),
        })?;
        let encoded = call.input.get("EncodedMessage").and_then(Value::as_str).unwrap_or_default();
        let message = self.sealer.open(encoded).ok_or_else(|| {
            ApiError::client("InvalidAuthorizationMessageException", "The message cannot be decoded")
        })?;
        Ok(members([("DecodedMessage", message.into())]))
    }

    /// No permission is needed: the key that signs is its user's.
    fn session_token(&self, call: &Call<'_>) -> Result<Map<String, Value>, ApiError> {
        if call.caller.is_temporary() {
            return Err(with_session_credentials(call));
        }
        refuse_mfa(call)?;
        let of = call.caller.access_key.clone().map(|access_key| Principal::User { access_key });
        let asked = number(call, "DurationSeconds").unwrap_or(SESSION_TOKEN_S);
        let duration_s = if of.is_none() { asked.min(OWNERS_S) } else { asked };
        let key = self.issue(call, duration_s, of, SessionAttributes::default())?;
        let mut output = members([("Credentials", credentials(&key))]);
        output.insert("SessionTokenSize".to_owned(), key.token.len().into());
        Ok(output)
    }

    /// A new key. Without authorization it is nobody's, and not kept: any key will do.
    fn issue(
        &self,
        call: &Call<'_>,
        duration_s: u64,
        of: Option<Principal>,
        given: SessionAttributes<'_>,
    ) -> Result<TemporaryKey, ApiError> {
        let chars = number(call, "MinimumSessionTokenSize").and_then(|chars| usize::try_from(chars).ok());
        let key = TemporaryKey::new(call.now_ms, duration_s, chars.unwrap_or_default(), &self.random);
        let key = key.ok_or_else(|| internal(&"the system has no random bytes"))?;
        let Some(of) = of else { return Ok(key) };
        match self.keys.sessions().keep(&key, of, given) {
            Ok(()) => Ok(key),
            Err(KeepError::TooMany(_)) => Err(ApiError::client("Throttling", "Rate exceeded")),
            Err(KeepError::Records(error)) => Err(internal(&error)),
        }
    }
}

/// No permission is needed, and none can take it away.
fn identity(call: &Call<'_>) -> Map<String, Value> {
    let caller = call.caller;
    members([
        ("Account", caller.account.clone().into()),
        ("Arn", caller.arn.clone().into()),
        ("UserId", caller.user_id.clone().into()),
    ])
}

fn members<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn credentials(key: &TemporaryKey) -> Value {
    json!({
        "AccessKeyId": key.id,
        "SecretAccessKey": key.secret,
        "SessionToken": key.token,
        "Expiration": key.expires_ms / 1000,
    })
}

fn number(call: &Call<'_>, member: &str) -> Option<u64> {
    call.input.get(member).and_then(Value::as_u64)
}

fn text<'a>(call: &'a Call<'_>, member: &str) -> Option<&'a str> {
    call.input.get(member).and_then(Value::as_str)
}

/// A user of a home has no device for multi-factor authentication, so that no code of one is right.
fn refuse_mfa(call: &Call<'_>) -> Result<(), ApiError> {
    if ["SerialNumber", "TokenCode"].iter().all(|member| !call.input.contains_key(*member)) {
        return Ok(());
    }
    Err(denied("MultiFactorAuthentication failed with invalid MFA one time pass code."))
}

fn with_session_credentials(call: &Call<'_>) -> ApiError {
    denied(format!("Cannot call {} with session credentials", call.action))
}

fn denied(message: impl Into<String>) -> ApiError {
    ApiError { status: 403, ..ApiError::client("AccessDenied", message) }
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

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationError", message)
}

fn internal(error: &dyn std::fmt::Display) -> ApiError {
    tracing::error!(%error, "STS cannot answer");
    ApiError { status: 500, ..ApiError::client("InternalFailure", "An internal error has occurred.") }
}

impl Service for Sts {
    fn name(&self) -> &'static str {
        "sts"
    }

    fn actions(&self) -> &'static [&'static str] {
        &["AssumeRole", "DecodeAuthorizationMessage", "GetCallerIdentity", "GetSessionToken"]
    }

    fn call(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        let output = match call.action {
            "AssumeRole" => self.assume_role(call)?,
            "DecodeAuthorizationMessage" => self.decode(call)?,
            "GetCallerIdentity" => identity(call),
            "GetSessionToken" => self.session_token(call)?,
            other => {
                return Err(ApiError::client(
                    "InvalidAction",
                    format!("The action {other} is not valid for this web service."),
                ));
            }
        };
        Ok(Answer { output, payload: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::sessions::Sessions;
    use crate::users::UserStore;

    #[test]
    fn every_action_is_one_of_the_model() {
        let home = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(home.path()).unwrap();
        let keys = Arc::new(KeyRing::new(UserStore::new(home.path()), sessions));
        let sts = Sts::new(Arc::new(Sealer::new().unwrap()), keys);
        let model = Model::of(sts.name()).unwrap();
        for action in sts.actions() {
            assert!(model.actions().any(|known| known == *action), "{action}");
        }
    }
}
