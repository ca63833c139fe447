//! The errors of EC2: its codes, messages and statuses.
//!
//! Rows of `data/ec2-errors.toml` check them one by one.

use std::fmt::Display;

use ebbtide_control::{ControlError, ControlErrorKind};

use super::ids::Kind;
use crate::ApiError;
use crate::service::with_causes;

fn error(code: &'static str, message: impl Into<String>, status: u16) -> ApiError {
    ApiError { status, ..ApiError::client(code, message) }
}

pub(super) fn invalid_value(message: impl Into<String>) -> ApiError {
    ApiError::client("InvalidParameterValue", message)
}

pub(super) fn invalid_combination(message: impl Into<String>) -> ApiError {
    ApiError::client("InvalidParameterCombination", message)
}

pub(super) fn incorrect_state(message: impl Into<String>) -> ApiError {
    ApiError::client("IncorrectState", message)
}

/// What is not built. AWS has the code for what a resource cannot do.
pub(super) fn unsupported(what: &str) -> ApiError {
    ApiError::client("UnsupportedOperation", format!("{what} is not supported by this endpoint."))
}

/// A parameter that is required by its name in messages, such as `volumeId`.
pub(super) fn missing(parameter: &str) -> ApiError {
    let message =
        format!("Value (null) for parameter {parameter} is invalid. Parameter may not be null or empty.");
    ApiError::client("MissingParameter", message)
}

pub(super) fn missing_of_request(parameter: &str) -> ApiError {
    ApiError::client("MissingParameter", format!("The request must contain the parameter {parameter}"))
}

pub(super) fn unknown_value(value: impl Display, parameter: &str) -> ApiError {
    invalid_value(format!("Value ({value}) for parameter {parameter} is invalid."))
}

pub(super) fn dry_run() -> ApiError {
    error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
}

pub(super) fn not_found(kind: Kind, id: &str) -> ApiError {
    match kind {
        Kind::Volume => {
            ApiError::client("InvalidVolume.NotFound", format!("The volume '{id}' does not exist."))
        }
        Kind::Snapshot => {
            ApiError::client("InvalidSnapshot.NotFound", format!("The snapshot '{id}' does not exist."))
        }
        Kind::Instance => instances_not_found(&[id]),
    }
}

impl Kind {
    /// Refuses what has not the form of an id, as most actions do. `parameter` is its name in messages.
    pub(super) fn check(self, text: &str, parameter: &str) -> Result<(), ApiError> {
        if self.is_id(text) {
            return Ok(());
        }
        let (code, name) = match self {
            Self::Volume => ("InvalidVolumeID.Malformed", "VOLUME"),
            Self::Snapshot => ("InvalidSnapshotID.Malformed", "SNAPSHOT"),
            Self::Instance => {
                return Err(ApiError::client(
                    "InvalidInstanceID.Malformed",
                    format!("Invalid id: \"{text}\""),
                ));
            }
        };
        if !text.starts_with(self.prefix()) {
            let expected = self.prefix();
            let message =
                format!("Value ({text}) for parameter {parameter} is invalid. Expected: '{expected}...'.");
            return Err(invalid_value(message));
        }
        Err(ApiError::client(code, format!("Value ( {text} ) for parameter {name} is invalid. ")))
    }
}

/// AWS names all instances that are missing.
pub(super) fn instances_not_found(ids: &[&str]) -> ApiError {
    let message = match ids {
        [id] => format!("The instance ID '{id}' does not exist"),
        _ => format!("The instance IDs '{}' do not exist", ids.join(", ")),
    };
    ApiError::client("InvalidInstanceID.NotFound", message)
}

pub(super) fn zone_not_found(zone: &str) -> ApiError {
    ApiError::client("InvalidZone.NotFound", format!("The zone '{zone}' does not exist."))
}

pub(super) fn internal(text: impl Display) -> ApiError {
    tracing::error!(%text, "a call failed");
    error("InternalError", format!("An internal error has occurred: {text}"), 500)
}

fn unavailable(text: impl Display) -> ApiError {
    error("Unavailable", format!("The server is overloaded and can't handle the request: {text}"), 503)
}

/// What the control plane refuses although the records of this service allow it.
pub(super) fn of_control(error: &ControlError) -> ApiError {
    let text = with_causes(error);
    match error.kind() {
        ControlErrorKind::Conflict | ControlErrorKind::InUse => incorrect_state(text),
        ControlErrorKind::Unavailable => unavailable(text),
        ControlErrorKind::Usage
        | ControlErrorKind::NotFound
        | ControlErrorKind::Environment
        | ControlErrorKind::Invariant => internal(text),
    }
}
