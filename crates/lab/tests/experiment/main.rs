//! Experiments as files: what they hold, what they become, and what is refused.

mod arms;
mod overrides;
mod properties;
mod refusals;
mod shipped;
mod support;
mod topology;
mod tpcc;
