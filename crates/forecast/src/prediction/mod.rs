//! What a server would do on volumes: runs of its calibrated model, with an interval for each figure.
//!
//! [`PredictionPlan`] checks a [`PredictionRequest`], [`predict`] runs it; [`knee`] is where the load line bends.

mod error;
mod plan;
mod points;
mod sweep;

pub use error::{MOST_VOLUMES, PredictionError};
pub use plan::{PROCESSOR_TIME, PlannedVolume, PredictionPlan, PredictionRequest, SPANS};
pub use points::{PredictedPoint, PredictedVolume, interval, knee, mib, predict};
pub use sweep::{NoSweep, Sweep};
