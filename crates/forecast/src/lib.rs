//! Says what will be: what a server would do on volumes, and which storage a load needs.
//!
//! - [`profile`] makes a profile of what was measured: a run of the lab, or an observation of a server.
//! - [`server`] calibrates the model of InnoDB on the points of a profile.
//! - [`prediction`] runs it for volumes and loads, and gives each figure its interval.
//! - [`sizing`] reads a load, has `ebbtide-advisor` search the cheapest volumes, and checks them with the model of a
//!   profile's server.
//! - [`simulation`] runs jobs or a trace on volumes alone.
//! - [`volumes`] reads the specs of a server's volumes, [`stored`] says what must lie on them.
//!
//! Requests are plain values and errors are typed: a caller names its options, and says what to do about an error.
//!
//! # Where to begin reading
//!
//! - [`predict`](prediction::predict) in `src/prediction/points.rs`: [`PredictionPlan`](prediction::PredictionPlan) checks a request,
//!   [`PredictedPoint`](prediction::PredictedPoint) has the intervals, [`knee`](prediction::knee) is that of a load line.
//! - [`Answer::of`](sizing::Answer::of) in `src/sizing/answer.rs`: [`SizingPlan`](sizing::SizingPlan) checks a request, a
//!   [`Source`](sizing::Source) is a load (records by `ebbtide-captured`, traces of `ebbtide-twin`, runs of the lab, profiles).
//! - [`Draft`](profile::Draft) in `src/profile/mod.rs` is a profile that is being made.
//!
//! `src/predict`, `src/size` and `src/simulate` of the program print what this crate says; `src/refusal/forecast.rs` there gives errors the names of
//! options. How another command uses this crate: docs/extending.md.
#![forbid(unsafe_code)]

pub mod prediction;
pub mod profile;
pub mod server;
pub mod simulation;
pub mod sizing;
pub mod stored;
pub mod volumes;
