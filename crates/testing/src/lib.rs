//! What tests and benches of several crates share. For development alone: crates depend on it for their tests, and no program is
//! linked with it.
//!
//! It knows none of our crates. What needs their types stays with the tests of the crate that has them.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test panics where something is missing"
)]

pub mod browser;
pub mod fio;
pub mod schema;

mod effort;
mod place;
mod time;
mod tiny;

pub use effort::repeats;
pub use place::own_place;
pub use time::Time;
pub use tiny::tiny;
