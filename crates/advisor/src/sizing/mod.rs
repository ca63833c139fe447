//! Sizes storage: the cheapest volumes and instance that carry a load over time.
//!
//! [`examine`] looks at the figures, [`Demand`] is the load, [`Space`] searches, [`size`] puts the answer together,
//! [`managed`] compares it with RDS and Aurora, and [`change`] writes the orders that make it so.

mod answer;
mod carry;
pub mod change;
mod demand;
mod inconsistent;
mod inputs;
pub mod managed;
mod search;

#[cfg(test)]
mod tests;

pub use answer::{
    ARRAY_OPERATION, Asked, CheaperArray, Choice, InstanceChoice, MOST_ROOM, Safer, Safety, Sizing, Today,
    place_of_answer, size,
};
pub use carry::{Carried, Limit, Setup, WAIT_THAT_COUNTS};
pub use demand::{Demand, Spread};
pub use inconsistent::Inconsistency;
pub use inputs::{Contradiction, Inputs, Little, LoadOrigin, QueueRule, Throttled, examine, queue_rule};
pub use search::{
    Candidate, IOPS_STEP, InstanceNeeds, KINDS, Objective, PricedInstance, Space, THROUGHPUT_STEP,
};
