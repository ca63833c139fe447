//! What a run did, and why it could not go on.

use ebbtide_volume::{LoadProgress, Nanos, Stats};

use crate::balance::BalanceChange;
use crate::sample::Totals;

/// What a run did.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Virtual time from the start to the end of the last job.
    pub duration: Nanos,
    /// Every volume, in the order of the setup.
    pub volumes: Vec<VolumeOutcome>,
}

/// What a run did on one volume.
#[derive(Debug, Clone)]
pub struct VolumeOutcome {
    /// Every job, in the order of the workload.
    pub jobs: Vec<Totals>,
    /// The volume's own counters at the end.
    pub stats: Stats,
    /// When burst credits ended and came back, in order.
    pub changes: Vec<BalanceChange>,
    /// Reads and writes that had not completed at the end; they are in no other figure.
    pub in_flight: u64,
    /// How far a volume from a snapshot was loaded at the end; none where it had nothing to load.
    pub loading: Option<LoadProgress>,
}

impl VolumeOutcome {
    /// All jobs together.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut all = Totals::default();
        for job in &self.jobs {
            all.add(job);
        }
        all
    }
}

/// A workload that cannot run on a volume.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// A job's extent is beyond the volume.
    #[error(
        "job '{job}': its extent {extent} does not fit the volume of {size}: give offset and size within it"
    )]
    BeyondVolume {
        /// The job's name.
        job: String,
        /// The extent.
        extent: String,
        /// The volume's size.
        size: String,
    },
    /// A job's extent is shorter than its blocks.
    #[error(
        "job '{job}': its extent of {extent} is shorter than its block of {block}: give a size of at least one block"
    )]
    ShorterThanBlock {
        /// The job's name.
        job: String,
        /// The extent's length.
        extent: String,
        /// The largest block.
        block: String,
    },
    /// The observer gave the run up.
    #[error("given up at {at}")]
    GivenUp {
        /// Where it was.
        at: String,
    },
    /// Virtual time stalls.
    #[error(
        "virtual time does not advance at {at}: this volume answers at once and has no limits, so that a closed loop \
         on it never ends; give the job a pace with rate_iops or thinktime, or choose a volume with limits"
    )]
    Standstill {
        /// Its state.
        at: String,
    },
}
