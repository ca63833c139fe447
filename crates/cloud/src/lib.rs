//! Answers the AWS APIs that people use for EBS, in AWS's own wire formats.
//!
//! A request passes four steps: the front reads it and verifies its signature; the wire format of its protocol turns
//! it into a [`Call`]; a [`Service`] answers the call; the wire format turns the answer, or the [`ApiError`], into
//! bytes. A service knows nothing of HTTP, of signatures or of protocols.
//!
//! # Where to begin reading
//!
//! [`front::Pipeline::answer`] is the life of one request, without a socket. In the order in which a request passes:
//!
//! - [`front`]: sockets, TLS, limits.
//! - [`wire`]: protocols, by AWS's models ([`model`]). [`sigv4`] verifies signatures with the keys of [`users`] and the temporary ones
//!   of [`sessions`], which [`sts`] issues.
//! - A [`Service`] answers a [`Call`]: [`ec2`], [`ebs`], [`kms`], [`monitoring`], [`rbin`], [`sts`]. It asks the call's
//!   [`Authorizer`], which decides by [`iam`]. It knows no HTTP, no signature and no protocol. The list of services is in
//!   `crates/serve/src/endpoint/mod.rs`.
//! - `records` opens the SQLite files of a home; [`ec2`], [`kms`], [`monitoring`] and [`sessions`] have one each.
//!
//! Services know each other in four places: [`kms`] is the `KeyUnwrapper` of the control plane, and gives [`ec2`] data keys; [`ebs`]
//! has no records of its own, those of its snapshots are in `ec2::direct`; the rules of [`rbin`] are in `ec2::bin`; [`monitoring`]
//! samples the volumes of [`ec2`] for the history.
//!
//! To add an action: its name in `xtask/aws-models.toml`, if the reduced model lacks it (`cargo xtask aws-models`); a row of `actions!` in
//! the service's `mod.rs`, in alphabetical order; a method of the service; its row in docs/aws-reference.md. `tests/support` writes and
//! signs requests by AWS's models.
//!
//! # What is stored
//!
//! | State | Place in the home |
//! |---|---|
//! | Volumes, snapshots, instances, tags | `aws.db` |
//! | Keys of KMS | `kms.db`, sealed with `aws/kms-master.key`; data keys wrapped in the store's manifest, plain in memory |
//! | Users and roles | `aws/users.json`; read again when the file changes |
//! | Temporary keys of STS | `sts.db` |
//! | Metrics by minute | `history.db` of `ebbtide-history`; a kill loses the minute that has not ended |
//! | Alarms | `cloudwatch.db` |
//!
//! All of it survives `kill -9`.
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
