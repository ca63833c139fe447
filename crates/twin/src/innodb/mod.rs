//! A discrete-event model of InnoDB on a volume.
//!
//! [`run`] drives clients, processors, a buffer pool, the logs and the page cleaner of a server in virtual time. The
//! volume is the state machine that live volumes are made of. State is kept for each class of pages ([`pages`]), so a
//! run costs the same for any amount of data. What is modelled and what is not: docs/model.md.

pub mod observed;
pub mod sysbench;
pub mod tpcc;

mod buffer;
mod calibrate;
mod cleaner;
mod commit;
mod cpu;
mod dirty;
mod disk;
mod equilibrium;
mod file_kind;
mod flavour;
mod memory;
mod meter;
mod model;
mod page_cache;
mod pages;
mod purge;
mod redo;
mod search;
mod shape;
mod trial;
mod writer;

pub(crate) use cleaner::whole;

pub use calibrate::{
    CalibrateError, Calibrating, Calibration, Contradicting, PointSpan, Shorter, calibrate, contradicting,
};
pub use cleaner::{
    CleanerView, Recommendation, percent_for_age, percent_for_dirty, recommend, recommend_idle,
};
pub use cpu::Machine;
pub use disk::FileTotals;
pub use file_kind::FileKind;
pub use flavour::{FileSystem, Flavour, Settings, UnknownFlavour};
pub use memory::Memory;
pub use meter::{Limiter, ModelOutcome, RoleOutcome, Span};
pub use model::{Costs, ModelLoad, ModelSetup, run};
pub use pages::{
    CurvePoint, MissCurve, PageClass, PageKind, Pool, Revisits, characteristic_time, pages_per_transaction,
};
pub use redo::{LEAST_REDO_BYTES, RedoLimits};
pub use shape::{Shape, Touch, TransactionType};
pub use trial::{MeasuredPoint, Point, Trials};
