//! Judges what was measured.
//!
//! This is the only crate that decides what figures mean for the one who runs the server: each judgement is a
//! pure function of measurements and catalogue, and carries the arithmetic that it rests on, what has to
//! be true, what it risks, and where the facts come from. It asks no server, reads no clock and prints
//! nothing.
#![forbid(unsafe_code)]

mod aurora;
mod cautions;
mod check;
mod checks;
mod facts;
mod finding;
mod fix;
mod judgement;
pub mod optimized_writes;
pub mod sizing;
mod view;

pub use aurora::is_of_aurora;
pub use cautions::{Caution, cautions};
pub use check::Check;
pub use checks::{AREAS, Area, check, checks};
pub use facts::Words;
pub use finding::{
    Assessment, Benefit, Confidence, Evidence, Finding, Found, Gap, Judged, MeasuredGain, Seen, Severity,
    Source,
};
pub use fix::{Fix, VariableChange, VolumeChange};
pub use judgement::{in_order, judge};
pub use view::View;
