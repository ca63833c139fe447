//! Experiments as files: what they say, what they become, and what is refused.

mod arms;
mod overrides;
mod properties;
mod refusals;
mod shipped;
mod support;
