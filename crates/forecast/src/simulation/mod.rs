//! fio's jobs, or a trace, on volumes alone, in virtual time, and what that says.
//!
//! A [`SimulationPlan`] is what is to be run. A [`VolumeGroup`] of it runs by itself, on a thread of the caller's where it likes, and
//! gives a [`SimulatedRun`] for each volume. [`document`](document()) says what came out, with [`sections`] for the run over time;
//! [`figures`] is that for programs.

mod answer;
mod charts;
mod document;
mod figures;
mod json;
mod plan;
mod rows;
mod run;
mod sentences;
mod trace;

pub use self::document::{document, prices};
pub use self::figures::span;
pub use self::json::{Several, SimulationFigures, Single, figures};
pub use self::plan::{MOST_INTERVALS, SimulatedVolume, SimulationPlan, latest_end};
pub use self::rows::sections;
pub use self::run::{Reached, SimulatedRun, VolumeGroup};
pub use self::trace::{TracePlan, TraceRead};
