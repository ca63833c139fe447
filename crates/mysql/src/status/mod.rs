//! What a server reports about itself, once a second: counters, gauges, and what happened between two
//! looks at them. Whatever a version does not count is none, never a zero.

mod counters;
mod facts;
mod sampler;
mod sources;

pub use counters::Counters;
pub use ebbtide_observe::Rates;
pub use facts::Facts;
pub use sampler::{Sampler, StatusError};
