//! Jobs on volumes in virtual time, against the formulas that AWS publishes.

mod formulas;
mod jobs;
mod replays;
mod sequential;
mod support;
