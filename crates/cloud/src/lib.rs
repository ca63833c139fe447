//! Answers the AWS APIs that people use for EBS, in AWS's own wire formats.
//!
//! A request passes four steps: the front reads it and verifies its signature; the wire format of its protocol turns
//! it into a [`Call`]; a [`Service`] answers the call; the wire format turns the answer, or the [`ApiError`], into
//! bytes. A service knows nothing of HTTP, of signatures or of protocols.
#![forbid(unsafe_code)]

mod context;
pub mod ebs;
pub mod ec2;
pub mod front;
pub mod iam;
mod key_ids;
pub mod kms;
pub mod model;
pub mod monitoring;
mod partition;
pub mod rbin;
mod records;
mod service;
pub mod sessions;
pub mod sigv4;
pub mod sts;
#[cfg(test)]
mod testing;
pub mod users;
pub mod wire;

pub use records::RecordsError;
pub use service::{Access, Answer, ApiError, Authorizer, Call, Caller, Judgement, OwnPolicy, Service};
