//! The errors of the EBS direct APIs: codes, reasons, messages and statuses.
//!
//! Rows of `data/ebs-errors.toml` check them one by one.

use ebbtide_control::ControlError;

use crate::ApiError;
use crate::ec2::direct::DirectError;
use crate::kms::KeyProblem;
use crate::service::with_causes;

fn error(code: &'static str, reason: Option<&str>, message: impl Into<String>, status: u16) -> ApiError {
    let mut error = ApiError { status, ..ApiError::client(code, message) };
    if let Some(reason) = reason {
        error.members.insert("Reason".to_owned(), reason.into());
    }
    error
}

/// A parameter that cannot be.
pub(super) fn invalid(reason: &str, message: impl Into<String>) -> ApiError {
    error("ValidationException", Some(reason), message, 400)
}

pub(super) fn invalid_value(message: impl Into<String>) -> ApiError {
    invalid("INVALID_PARAMETER_VALUE", message)
}

/// A key that a snapshot cannot have.
pub(super) fn of_key(problem: &KeyProblem, name: &str) -> ApiError {
    let reason = "INVALID_CUSTOMER_KEY";
    match problem {
        KeyProblem::Malformed => invalid(reason, format!("The specified KMS key ARN {name} is invalid.")),
        KeyProblem::NotFound => {
            let message = format!("The specified KMS key {name} does not exist.");
            error("ResourceNotFoundException", Some("DEPENDENCY_RESOURCE_NOT_FOUND"), message, 404)
        }
        KeyProblem::NotUsable(cause) => invalid(reason, cause.as_str()),
        KeyProblem::Denied => {
            let message = format!("Not authorized to use the KMS key {name}.");
            error("AccessDeniedException", Some("DEPENDENCY_ACCESS_DENIED"), message, 403)
        }
        KeyProblem::Internal(text) => {
            error("InternalServerException", None, format!("An internal error has occurred: {text}"), 500)
        }
    }
}

pub(super) fn not_found(id: &str) -> ApiError {
    let message = format!("The snapshot '{id}' does not exist.");
    error("ResourceNotFoundException", Some("SNAPSHOT_NOT_FOUND"), message, 404)
}

pub(super) fn wrong_checksum(computed: &str, expected: &str) -> ApiError {
    let message = format!(
        "The value passed in as x-amz-Checksum does not match the computed checksum. Computed checksum: {computed} \
         expected checksum: {expected}"
    );
    error("InvalidSignatureException", None, message, 403)
}

/// A text that has not the form of a snapshot's id.
pub(super) fn malformed_id(text: &str, member: &str) -> ApiError {
    let message = format!(
        "1 validation error detected: Value '{text}' at '{member}' failed to satisfy constraint: Member must satisfy \
         regular expression pattern: ^snap-[0-9a-f]+$"
    );
    invalid("INVALID_SNAPSHOT_ID", message)
}

pub(super) fn internal(error_of: &dyn std::error::Error) -> ApiError {
    let text = with_causes(error_of);
    tracing::error!(%text, "a call failed");
    error("InternalServerException", None, format!("An internal error has occurred: {text}"), 500)
}

/// What the control plane refuses although the records allow it: the snapshot was deleted meanwhile, most likely.
pub(super) fn of_control(error_of: &ControlError, id: &str) -> ApiError {
    match error_of {
        ControlError::NotFound { .. } => not_found(id),
        ControlError::Key { source, .. } => invalid("INVALID_CUSTOMER_KEY", source.to_string()),
        ControlError::Unrelated { .. } => invalid("UNRELATED_SNAPSHOTS", "The snapshots are not related."),
        other => internal(other),
    }
}

/// Why a snapshot is not begun, or not recorded.
pub(super) fn of_direct(error_of: &DirectError, id: &str) -> ApiError {
    match error_of {
        DirectError::TokenUsed => {
            let message = "Current request does not match request stored with this token.";
            error("ConflictException", None, message, 409)
        }
        DirectError::TooManyPending(most) => {
            let message = format!("You have reached the limit of {most} pending snapshots.");
            error("ConcurrentLimitExceededException", None, message, 400)
        }
        DirectError::TooMany(most) => {
            let message = format!("You have exceeded the maximum of {most} snapshots.");
            let reason = Some("DEPENDENCY_SERVICE_QUOTA_EXCEEDED");
            error("ServiceQuotaExceededException", reason, message, 402)
        }
        DirectError::Key(problem) => of_key(problem, ""),
        DirectError::Control(error) => of_control(error, id),
        DirectError::Db(error) => internal(error),
    }
}
