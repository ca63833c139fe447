//! What a server reports about itself, once a second: counters, gauges, and what happened between two
//! looks at them. Whatever a version does not count is none, never a zero.

mod capture;
mod counters;
mod facts;
mod observer;
mod sampler;
mod selects;
mod sources;
mod survey;

pub use capture::Capture;
pub(crate) use capture::{over, rates_of_growth};
pub use counters::Counters;
pub use ebbtide_observe::{Facts, Rates};
pub(crate) use observer::changed;
pub use observer::{ObserveError, Observer};
pub use sampler::{StatusError, StatusSampler};
pub(crate) use survey::worst_channel;
