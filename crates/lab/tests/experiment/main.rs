//! Experiments as files: what they hold, what they become, and what is refused.

mod arms;
mod backup;
mod claims;
mod overrides;
mod programs;
mod properties;
mod refusals;
mod shipped;
mod support;
mod topology;
mod tpcc;
