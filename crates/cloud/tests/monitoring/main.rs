//! The CloudWatch service over volumes of the model in virtual time.
#![allow(clippy::unwrap_used)]

mod alarms;
mod errors;
mod fuzz;
mod instances;
mod math;
mod metrics;
mod queries;
#[path = "../support/fuzz.rs"]
mod requests;
mod restart;
#[path = "../support/rows.rs"]
mod rows;
mod support;
#[path = "../support/wire.rs"]
mod wire;
