//! Why nothing can be predicted.

use ebbtide_catalog::CatalogError;
use ebbtide_twin::profile::ProfileError;

use crate::server::ServerError;
use crate::stored::VolumeTooSmall;
use crate::volumes::VolumesError;

/// Volumes that are predicted at a time, at most.
pub const MOST_VOLUMES: usize = 200;

/// A request that cannot be predicted.
#[derive(Debug, thiserror::Error)]
pub enum PredictionError {
    /// The server cannot be modelled.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server cannot have the volumes.
    #[error(transparent)]
    Volumes(#[from] VolumesError),
    /// The volumes do not hold what must lie on them.
    #[error(transparent)]
    TooSmall(#[from] VolumeTooSmall),
    /// The instance type is in no catalogue.
    #[error(transparent)]
    Instance(CatalogError),
    /// Another processor time is asked for, and points have the share of the processors that was busy.
    #[error("the processor time of a transaction follows from cpu_pct of the points (point {point} has it)")]
    ProcessorTimeMeasured {
        /// The first such point, from 1.
        point: usize,
    },
    /// Another value of a point is asked for.
    #[error("points are what was measured, and cannot be predicted with another value")]
    PointChanged {
        /// The key.
        key: String,
    },
    /// A key that no profile has, or a value that it does not take.
    #[error(transparent)]
    Key(ProfileError),
    /// The profile cannot be used with the values that are asked for.
    #[error("the profile cannot be used with these values")]
    Changed(#[source] ProfileError),
    /// A rate that no load has.
    #[error("{rate} is out of range: expected more than 0, at most 1000000 transactions a second")]
    Rate {
        /// Transactions a second.
        rate: f64,
    },
    /// A number of clients that no load has.
    #[error("{clients} is out of range: expected 1 to 10000")]
    Clients {
        /// The number.
        clients: u32,
    },
    /// A sweep of a volume that there is not.
    #[error("there is no volume for {role}")]
    NoVolumeToSweep {
        /// The role, as the sweep has it.
        role: String,
        /// The key of the spec.
        key: String,
    },
    /// More volumes than are predicted at a time.
    #[error("{number} volumes are too many: at most {MOST_VOLUMES} are predicted at a time")]
    TooManyVolumes {
        /// How many they are.
        number: usize,
    },
}
