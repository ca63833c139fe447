//! Alarms in virtual time: situations that have to alarm, healthy neighbours that must not, forecasts against the model of a volume, and
//! what happens to states.
#![allow(clippy::unwrap_used, reason = "a test panics where something is missing")]

mod credits;
mod healthy;
mod planted;
mod states;
mod support;
