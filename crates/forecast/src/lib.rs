//! Says what will be: what a server would do on volumes, and which storage a load needs.
//!
//! - [`profile`] makes a profile of what was measured: a run of the lab, or an observation of a server.
//! - [`server`] calibrates the model of InnoDB on the points of a profile.
//! - [`prediction`] runs it for volumes and loads, and gives each figure its interval.
//! - [`sizing`] reads a load, has `ebbtide-advisor` search the cheapest volumes, and checks them with the model of a
//!   profile's server.
//! - [`volumes`] reads the specs of a server's volumes, [`stored`] says what must lie on them.
//!
//! Requests are plain values and errors are typed: a caller names its options, and says what to do about an error.
#![forbid(unsafe_code)]

pub mod prediction;
pub mod profile;
pub mod server;
pub mod sizing;
pub mod stored;
pub mod volumes;
