//! The CloudWatch service over volumes of the model in virtual time.
#![allow(clippy::unwrap_used)]

mod alarms;
mod errors;
mod math;
mod metrics;
mod queries;
mod restart;
mod support;
