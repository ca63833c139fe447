//! Sizes storage: the cheapest volumes and instance that carry a load over time.
//!
//! [`examine`] looks at the figures, [`Demand`] is the load, [`Space`] searches, [`size`] puts the answer together,
//! [`managed`] compares it with RDS and Aurora, and [`change`] writes the orders that make it so.

mod answer;
mod carry;
pub mod change;
mod charge;
mod demand;
mod inconsistent;
mod inputs;
mod little;
pub mod managed;
mod objective;
mod origin;
mod recorded;
mod search;
mod setup;
mod throttled;
mod too_little;
mod without_credits;

#[cfg(test)]
mod tests;

pub use answer::{
    ARRAY_OPERATION, Asked, CheaperArray, Choice, InstanceChoice, MOST_ROOM, Safer, Safety, Sizing, Today,
    place_of_answer, size,
};
pub use carry::{Carried, Limit, WAIT_THAT_COUNTS};
pub use demand::{Demand, SSD_UNIT, Spread, operations_of};
pub use inconsistent::Inconsistency;
pub use inputs::{Contradiction, Inputs, QueueRule, examine, queue_rule};
pub use little::LittlesLaw;
pub use objective::Objective;
pub use origin::LoadOrigin;
pub use recorded::{RecordedCredits, RecordedLatency, RecordedPast};
pub use search::{Candidate, IOPS_STEP, InstanceNeeds, KINDS, PricedInstance, Space, THROUGHPUT_STEP};
pub use setup::Setup;
pub use throttled::Throttled;
pub use too_little::TooLittle;
pub use without_credits::WithoutCredits;
