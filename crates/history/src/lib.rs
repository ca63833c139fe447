//! Keeps time series: the only crate that does. What was recorded of volumes is in `history.db` of the home.
//!
//! A *series* is what is recorded of one subject, such as a volume on an instance: a [`SeriesKey`] of the subject and its labels. A
//! *point* of it has all values of an interval together, one for each [`Column`] of a [`Layout`]. A column says how two values become
//! one ([`Aggregate`]): growth and counts add up, a gauge has its latest, least and greatest value. So a server with 500 metrics is one
//! series, and one row a minute. Why it is SQLite, and what a sample needs: docs/decisions/history.md.
//!
//! # Where to begin reading
//!
//! - [`History`] is what a program opens: it records readings, and does the upkeep of the file. Its caller has the clock.
//! - `recorder` cuts growing counters into minutes. [`VolumeMinute`] in `volume` is what a volume did in a minute, as a point.
//! - [`Samples`] records servers and machines each second, which `watch` samples, and keeps minutes and hours of them.
//! - [`Store`] writes and reads points by [`Tier`], packs them once their chunk has passed, and deletes the oldest. `rollup` makes
//!   longer intervals of shorter ones; `lines` reads what is drawn, and what is replayed.
//! - `packed` is the format of packed points, `earlier` that of before version 4 of the file. `upgrade` takes over the
//!   `cloudwatch.db` of a home of before: its chunks stay as they are.
//!
//! To record something else, make a [`Layout`] of its columns, and write points with [`Store::write`], or [`Sample`]s each second.
//! Another length of intervals is one more [`Tier`], with two tables of its own in `sql/tiers.sql`.
//!
//! # What a kill leaves
//!
//! Points that were written are there after `kill -9`; samples of a second are written within 5 s. Whether they are after the power loss of the host says [`Durability`].
#![forbid(unsafe_code)]

mod earlier;
mod error;
mod history;
mod key;
mod layout;
mod lines;
mod packed;
mod recorder;
mod rollup;
mod samples;
mod store;
mod tier;
mod upgrade;
mod varint;
mod volume;

pub use error::HistoryError;
pub use history::{History, Options};
pub use key::{DEVICE, FILE_SYSTEM, GAUGE, INSTANCE, MACHINE, SERVER, Selector, SeriesKey, VOLUME};
pub use layout::{Aggregate, Column, GAUGE_LAYOUT, Layout, Number, Value};
pub use lines::{Figure, Lines, Replayed, SPAN};
pub use recorder::{Marks, Reading};
pub use samples::{Sample, SampleOptions, Samples};
pub use store::{Durability, NewPoint, Scanned, SeriesRow, Store};
pub use tier::Tier;
pub use volume::{Balances, VolumeMinute};

/// Name of the file in a home.
pub const FILE: &str = "history.db";
