//! The errors of KMS. Rows of `data/kms-errors.toml` check them one by one.

use super::Ask;
use super::names::Name;
use super::records::{Key, KeyState};
use crate::service::with_causes;
use crate::{ApiError, Call, partition};

pub(super) fn validation(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationException", message)
}

pub(super) fn missing(name: &str) -> ApiError {
    let member =
        name.get(..1).map(str::to_ascii_lowercase).unwrap_or_default() + name.get(1..).unwrap_or_default();
    validation(format!(
        "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
    ))
}

/// What is not built.
pub(super) fn unsupported(what: &str) -> ApiError {
    ApiError::client("UnsupportedOperationException", format!("{what} is not supported by this endpoint."))
}

pub(super) fn dry_run() -> ApiError {
    let message = "The request would have succeeded, but the DryRun option is set.";
    ApiError { status: 412, ..ApiError::client("DryRunOperationException", message) }
}

/// A text that names no key in any form.
pub(super) fn bad_name(text: &str) -> ApiError {
    if text.starts_with("arn:") {
        return ApiError::client("InvalidArnException", format!("Invalid arn {text}"));
    }
    ApiError::client("NotFoundException", format!("Invalid keyId '{text}'"))
}

pub(super) fn not_found(ask: &Ask<'_>, text: &str, name: Name<'_>) -> ApiError {
    let (region, account) = (ask.region(), ask.account());
    let part = partition::of_region(region);
    let message = match name {
        Name::Id(id) => format!("Key 'arn:{part}:kms:{region}:{account}:key/{id}' does not exist"),
        Name::Alias(alias) => format!("Alias arn:{part}:kms:{region}:{account}:{alias} is not found."),
        Name::Arn(at, ..) if at != region => format!("Invalid arn {at}"),
        Name::Arn(.., name) if name.starts_with("alias/") => format!("Alias {text} is not found."),
        Name::Arn(..) => format!("Key '{text}' does not exist"),
    };
    ApiError::client("NotFoundException", message)
}

pub(super) fn alias_not_found(arn: &str) -> ApiError {
    ApiError::client("NotFoundException", format!("Alias {arn} is not found."))
}

/// A key whose state does not allow the call.
pub(super) fn wrong_state(key: &Key) -> ApiError {
    let message = key.obstacle().unwrap_or_else(|| format!("{} is not pending deletion.", key.arn()));
    match key.state {
        KeyState::Disabled => ApiError::client("DisabledException", message),
        _ => ApiError::client("KMSInvalidStateException", message),
    }
}

/// A call that a key's own policy does not allow.
pub(super) fn denied(ask: &Ask<'_>, key: &Key) -> ApiError {
    if key.owner != ask.account() {
        return not_allowed(ask.call, ask.call.action, &key.arn());
    }
    let message = format!(
        "User: {} is not authorized to perform: kms:{} on resource: {} because no resource-based policy allows the \
         kms:{} action",
        ask.call.caller.arn,
        ask.call.action,
        key.arn(),
        ask.call.action
    );
    ApiError::client("AccessDeniedException", message)
}

/// An action with a key of another account, which either does not exist or does not let the caller do it.
pub(super) fn not_allowed(call: &Call<'_>, action: &str, key: &str) -> ApiError {
    let message = format!(
        "User: {} is not authorized to perform: kms:{action} on resource: {key} because the resource does not exist in this \
         Region, no resource-based policies allow access, or a resource-based policy explicitly denies access",
        call.caller.arn
    );
    ApiError::client("AccessDeniedException", message)
}

/// A call that a key's own policy denies.
pub(super) fn denied_explicitly(ask: &Ask<'_>, key: &Key) -> ApiError {
    if key.owner != ask.account() {
        return not_allowed(ask.call, ask.call.action, &key.arn());
    }
    let message = format!(
        "User: {} is not authorized to perform: kms:{} on resource: {} with an explicit deny in a resource-based policy",
        ask.call.caller.arn,
        ask.call.action,
        key.arn()
    );
    ApiError::client("AccessDeniedException", message)
}

/// A call that a grant does not allow to pass on.
pub(super) fn beyond_grant(ask: &Ask<'_>, key: &Key) -> ApiError {
    let message = format!(
        "User: {} is not authorized to perform: kms:CreateGrant on resource: {} because no grant of theirs has all of the \
         operations and constraints",
        ask.call.caller.arn,
        key.arn()
    );
    ApiError::client("AccessDeniedException", message)
}

/// A ciphertext that does not decrypt. AWS says no more.
pub(super) fn invalid_ciphertext() -> ApiError {
    ApiError::client("InvalidCiphertextException", "")
}

pub(super) fn internal(error: &dyn std::error::Error) -> ApiError {
    failed(&with_causes(error))
}

/// A failure of this program or of its host.
pub(super) fn failed(text: &str) -> ApiError {
    tracing::error!(%text, "a call of KMS failed");
    let message = format!("An internal error has occurred: {text}");
    ApiError { status: 500, ..ApiError::client("KMSInternalException", message) }
}
