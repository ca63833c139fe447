//! Judges what was measured.
//!
//! This is the only crate that decides what figures mean for the one who runs the server: each judgement is a
//! pure function of measurements and catalogue, and carries the arithmetic that it rests on, what has to
//! be true, what it risks, and where the facts come from. It asks no server, reads no clock and prints
//! nothing.
//!
//! # Where to begin reading
//!
//! - [`judge`] in `src/judgement.rs` has the answers of all checks. A check is a [`Check`] of [`AREAS`] in `src/checks`. It makes a
//!   [`Finding`] of an observation, and reads values through a `View` (`src/view.rs`), which keeps what was read as evidence. How
//!   to add a check: docs/extending.md.
//! - D04 and W01 are checks of [`doublewrite`], whose longer answer `ebbtide crash --candidate` prints:
//!   [`examine`](doublewrite::examine) in `src/checks/doublewrite/check.rs`.
//! - [`size`](sizing::size) in `src/sizing/answer.rs` is a whole sizing. The search is [`Space::cheapest`](sizing::Space::cheapest) in
//!   `search.rs` beside it, whether volumes carry a load [`Demand::carried_by`](sizing::Demand::carried_by) in `carry.rs`, and what they count
//!   of it `Charges` in `charge.rs`. It drives the model's own buckets, `BurstBucket::flow` of `ebbtide-volume`.
#![forbid(unsafe_code)]

mod aurora;
mod cautions;
mod check;
mod checks;
mod facts;
mod finding;
mod fix;
mod judgement;
pub mod sizing;
mod view;

pub use aurora::is_of_aurora;
pub use cautions::{Caution, cautions};
pub use check::Check;
pub use checks::doublewrite;
pub use checks::{AREAS, Area, check, checks};
pub use facts::Words;
pub use finding::{
    Assessment, Benefit, Confidence, Evidence, Finding, Found, Gap, Judged, MeasuredGain, Seen, Severity,
    Source,
};
pub use fix::{Fix, VariableChange, VolumeChange};
pub use judgement::{in_order, judge};
pub use view::View;
