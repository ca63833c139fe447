//! The errors of CloudWatch. Rows of `data/monitoring-errors.toml` check them one by one.

use std::fmt::Display;

use crate::ApiError;
use crate::service::with_causes;

pub(super) fn invalid_value(message: impl Into<String>) -> ApiError {
    ApiError::client("InvalidParameterValue", message)
}

pub(super) fn invalid_combination(message: impl Into<String>) -> ApiError {
    ApiError::client("InvalidParameterCombination", message)
}

pub(super) fn validation(message: impl Into<String>) -> ApiError {
    ApiError::client("ValidationError", message)
}

/// What is not built.
pub(super) fn unsupported(what: impl Display) -> ApiError {
    validation(format!("{what} is not supported by this endpoint."))
}

pub(super) fn missing(parameter: &str) -> ApiError {
    ApiError::client("MissingParameter", format!("The parameter {parameter} is required."))
}

pub(super) fn invalid_token() -> ApiError {
    ApiError::client("InvalidNextToken", "The next token specified is invalid.")
}

/// What a call names is not there. The model has two shapes for it: this one is of SetAlarmState and DeleteAlarms.
pub(super) fn not_found(message: impl Into<String>) -> ApiError {
    ApiError { status: 404, ..ApiError::client("ResourceNotFound", message) }
}

/// The same of the calls on tags, which declare another shape: clients catch it by its name.
pub(super) fn tagged_not_found(message: impl Into<String>) -> ApiError {
    ApiError { status: 404, ..ApiError::client("ResourceNotFoundException", message) }
}

/// A failure of this program: its records, or its volumes.
pub(super) fn internal(error: &dyn std::error::Error) -> ApiError {
    let text = with_causes(error);
    tracing::error!(%text, "a call of CloudWatch failed");
    ApiError {
        status: 500,
        ..ApiError::client("InternalServiceError", format!("An internal error has occurred: {text}"))
    }
}
