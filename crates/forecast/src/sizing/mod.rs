//! Sizing: the cheapest storage that carries a load, of what was recorded of it or of a server's profile.
//!
//! [`take_prices`] reads price lists. [`SizingPlan::read`] checks a [`SizingRequest`]: a [`Source`] is a load with what it comes
//! from, of records of other tools, a trace, a run of the lab, or the model of a profile's server. [`Answer::of`] has
//! [`ebbtide_advisor::sizing`] search, and checks the choices for a profile's server with its model.

mod answer;
mod error;
mod files;
mod modelled;
mod plan;
mod prices;
mod request;
mod run;
mod source;
mod traced;
mod verify;

pub use answer::Answer;
pub use error::{SizeOrigin, SizingError, TraceOption};
pub use modelled::JudgedRate;
pub use plan::SizingPlan;
pub use prices::{PriceListRead, PricesError, take_prices};
pub use request::{MOST_MEMBERS, Processors, SizingRequest};
pub use source::Source;
pub use verify::Verified;
