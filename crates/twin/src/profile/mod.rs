//! Profiles: a server, its machine, its workload and what was measured of it, as a TOML file (docs/predict.md).

mod file;
mod machine;
mod mix;
mod not_modelled;
mod plan;
mod workload;
mod write;

pub use file::{
    DoublewriteMode, DoublewriteTable, MachineTable, PagesTable, PointState, PointTable, Profile,
    ServerTable, TypeTable, WorkloadTable,
};
pub use machine::MachineFacts;
pub use plan::{Planned, PlannedPoint};

/// A profile that says too little, or what cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// The text is not TOML, or has an unknown key or a value of the wrong kind.
    #[error("{0}")]
    Syntax(String),
    /// Something is missing.
    #[error("the profile lacks {what}: {from}")]
    Missing {
        /// The key.
        what: &'static str,
        /// Where to get its value.
        from: &'static str,
    },
    /// A value is out of its range.
    #[error("{key} = {value} is out of range: expected {allowed}")]
    Range {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Two values exclude each other.
    #[error("{0}")]
    Conflict(String),
}
