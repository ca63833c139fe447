//! What a server reports about itself, once a second: counters, gauges, and what happened between two
//! looks at them. Whatever a version does not count is none, never a zero.

mod counters;
mod sampler;
mod sources;

pub use counters::{Counters, Rates};
pub use sampler::{Sampler, StatusError};
