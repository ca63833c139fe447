//! What a server reports about itself, once a second: counters, gauges, and what happened between two
//! looks at them. Whatever a version does not count is none, never a zero.

mod counters;
mod facts;
mod observer;
mod sampler;
mod selects;
mod survey;

pub use counters::Counters;
pub use ebbtide_observe::{Facts, Rates};
pub(crate) use facts::pairs;
pub use observer::{ObserveError, Observer};
pub use sampler::{StatusError, StatusSampler};
