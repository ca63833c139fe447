//! What is wrong with limits.

/// Limits that contradict themselves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// A rate of zero would never complete anything.
    #[error("a rate limit of zero would never complete an I/O")]
    ZeroRate,
    /// A ceiling below the rate that it is the ceiling of.
    #[error("the burst ceiling is below the sustained rate")]
    CeilingBelowRate,
    /// A unit of no bytes cannot be counted.
    #[error("the accounting unit is zero bytes")]
    ZeroUnit,
    /// The volume has no bytes.
    #[error("the volume is empty")]
    ZeroSize,
    /// Service times with no station to serve them.
    #[error("the service parallelism is zero")]
    ZeroParallelism,
    /// An arm that several I/Os would move at the same time, or writes that would not move it.
    #[error("a disk with an arm serves one I/O at a time: its parallelism must be 1, without one for writes")]
    ParallelArm,
    /// A disk that does not turn, has no capacity or queue, or whose seeks contradict each other.
    #[error(
        "a disk needs a turn, a capacity, a queue and a transfer rate above zero, and a full stroke that takes no \
         less than a settling"
    )]
    Mechanics,
    /// A flush that waits for stations that do not exist, or for an arm.
    #[error("a flush that is served alone needs a parallelism, and is not modelled for a disk with an arm")]
    FlushAlone,
}
