//! Profiles of what was measured of a server.
//!
//! [`Draft::of_run`] takes a run of the lab, [`Draft::of_observation`] what was observed of a server; both make the server's
//! table of its variables ([`server_table`]). [`Draft::finish`] names everything that is missing at once, and leaves out points
//! that contradict the others.

mod busy;
mod lab;
mod observed;
mod settings;

use std::path::{Path, PathBuf};

use ebbtide_catalog::{Catalog, CatalogError};
use ebbtide_lab::results::ResultsError;
use ebbtide_observe::{Observation, TwoSpecs};
use ebbtide_twin::innodb::{CalibrateError, calibrate, contradicting};
use ebbtide_twin::profile::{Profile, ProfileError, WorkloadTable};

pub use busy::busy_pct;
pub use lab::{NotAPoint, is_run};
pub use settings::server_table;

use crate::server::{ProfileFault, Runs, calibrating, calibration_points, facts, instance_of, trials};
use crate::volumes::VolumesError;

/// What a source shows, before the user adds what it lacks.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The profile, as far as the source has it.
    profile: Profile,
    /// Another description of the workload, for where the first does not fit what was measured.
    observed: Option<WorkloadTable>,
    /// What a reader of the profile must know, in sentences.
    notes: Vec<String>,
}

/// A profile that `predict` takes.
#[derive(Debug, Clone)]
pub struct MadeProfile {
    /// It.
    pub profile: Profile,
    /// What a reader of it must know, in sentences: what was assumed, and what was left out.
    pub notes: Vec<String>,
    /// Points that contradict the others and were left out, in sentences.
    pub contradicting: Vec<String>,
}

/// Something that a profile needs and the source lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Its key, as [`Draft::set`] takes it.
    pub key: &'static str,
    /// Where to get it.
    pub from: &'static str,
}

impl Missing {
    /// Whether a key says it: its own, or another of the machine or of the workload, which may stand in for it.
    #[must_use]
    pub fn takes(&self, key: &str) -> bool {
        let table = ["machine.", "workload."].into_iter().find(|table| self.key.contains(table));
        self.key == key || table.is_some_and(|table| key.starts_with(table))
    }
}

/// A source of which no profile can be made.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// A directory whose results cannot be read.
    #[error("{} has no results that can be read", dir.display())]
    Results {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: ResultsError,
    },
    /// No arm of the run can be a profile.
    #[error("no arm of {} can be a profile: {reasons}", dir.display())]
    NoUsableArm {
        /// The directory of the run.
        dir: PathBuf,
        /// Why, by arm.
        reasons: String,
    },
    /// The arm that was named cannot be a profile.
    #[error("the arm {arm} can be no profile: {why}")]
    UnusableArm {
        /// Its name.
        arm: String,
        /// Why.
        why: NotAPoint,
        /// Arms that can.
        usable: Vec<String>,
    },
    /// The run has no arm of the name.
    #[error("the run has no arm {arm}")]
    UnknownArm {
        /// The name.
        arm: String,
        /// Arms that can be a profile.
        usable: Vec<String>,
    },
    /// The server's variables were not observed.
    #[error("the source has no variables of a server")]
    NoVariables,
    /// Both logs lie on one device, and two volumes are named for it.
    #[error(transparent)]
    SharedLogs(#[from] TwoSpecs),
    /// The server's counters began anew while it was observed.
    #[error("the server was started again between the two looks at its status: its counters began anew")]
    Restarted,
    /// A key that no profile has, or a value that it does not take.
    #[error(transparent)]
    Key(ProfileError),
    /// What the source lacks.
    #[error("the source lacks what a profile needs: {}", said(.0))]
    Missing(Vec<Missing>),
    /// The instance type is in no catalogue.
    #[error(transparent)]
    Instance(CatalogError),
    /// A point was measured on volumes that a server cannot have.
    #[error(transparent)]
    Volumes(#[from] VolumesError),
    /// What was measured makes no profile.
    #[error("no profile can be made of this source")]
    Useless(#[source] ProfileFault),
}

/// Each missing key with where to get it.
fn said(missing: &[Missing]) -> String {
    let each = missing.iter().map(|one| format!("{} ({})", one.key, one.from));
    each.collect::<Vec<_>>().join("; ")
}

impl Draft {
    /// The profile of an arm of a run in a directory, and of the others that share its server, machine and workload; of the first
    /// arm where none is named.
    ///
    /// # Errors
    /// Results that cannot be read, an arm that there is not, or none that the model can express.
    pub fn of_run(dir: &Path, arm: Option<&str>) -> Result<Self, DraftError> {
        lab::draft(dir, arm)
    }

    /// The profile of a server that was observed, as far as the observation has it.
    ///
    /// # Errors
    /// The observation lacks the server's variables, or contradicts itself.
    pub fn of_observation(seen: &Observation) -> Result<Self, DraftError> {
        observed::draft(seen)
    }

    /// Sets keys of the profile: what its source lacks, or has otherwise.
    ///
    /// # Errors
    /// A key that no profile has, and a value that it does not take.
    pub fn set(&mut self, changes: &[(String, String)]) -> Result<(), DraftError> {
        let set = |(key, value): &(String, String)| self.profile.set(key, value);
        changes.iter().try_for_each(set).map_err(DraftError::Key)
    }

    /// A profile that `predict` takes: leaves out the points that contradict the others, and takes the observed workload where
    /// the described one does not fit.
    ///
    /// # Errors
    /// Something is missing, or what was measured makes no profile.
    pub fn finish(mut self, catalog: &Catalog, seed: u64) -> Result<MadeProfile, DraftError> {
        let missing = missing(&self.profile);
        if !missing.is_empty() {
            return Err(DraftError::Missing(missing));
        }
        let useless = DraftError::Useless;
        loop {
            let profile = &self.profile;
            let instance = instance_of(profile, None, None, catalog).map_err(DraftError::Instance)?;
            let known = instance.as_ref().map(|of| facts(of, profile.machine.divided_by.unwrap_or(1)));
            let planned =
                profile.plan(known.unwrap_or_default(), seed).map_err(|error| useless(error.into()))?;
            let points = calibration_points(profile, &planned, catalog, instance.as_ref())?;
            let runs = Runs { seed, asked: None };
            let apart = contradicting(&points, &trials(&planned, runs), planned.costs);
            let kept: Vec<_> =
                (0..points.len()).filter(|n| !apart.iter().any(|one| one.point == *n)).collect();
            let points: Vec<_> = kept.iter().map(|n| points[*n].clone()).collect();
            match calibrate(&points, &calibrating(&planned, runs)) {
                Ok(_) => {
                    let contradicting = apart.iter().map(|one| {
                        format!(
                            "{} contradicts the other points and is left out: its {} are {:.2} times what the others have",
                            name(profile, one.point),
                            one.what,
                            one.times
                        )
                    });
                    let contradicting = contradicting.collect();
                    self.profile.points = kept.iter().map(|n| profile.points[*n].clone()).collect();
                    return Ok(MadeProfile { profile: self.profile, notes: self.notes, contradicting });
                }
                Err(error @ (CalibrateError::OutOfBounds { .. } | CalibrateError::Unreached { .. }))
                    if self.observed.is_some() =>
                {
                    self.notes.push(format!(
                        "the workload is taken as it was observed, since its description does not fit: {error}"
                    ));
                    self.profile.workload = self.observed.take().expect("it was looked at");
                }
                Err(error) => return Err(useless(error.into())),
            }
        }
    }
}

/// Everything that a prediction would refuse the profile for, one thing after the other.
fn missing(profile: &Profile) -> Vec<Missing> {
    let (server, workload) = (&profile.server, &profile.workload);
    let observed = workload.kind.as_deref() == Some("observed");
    let pages = "two SHOW GLOBAL STATUS under the usual load, some minutes apart: the growth of Innodb_pages_read and \
                 Innodb_pages_written by that of Com_commit";
    let has = |of: fn(&ebbtide_twin::profile::PointTable) -> bool| profile.points.iter().all(of);
    let rows = [
        (
            server.flavour.is_none(),
            "server.flavour",
            "SELECT VERSION(): mysql-8.0, mariadb-11 or another of docs/predict.md",
        ),
        (
            server.buffer_pool_size.is_none(),
            "server.buffer_pool_size",
            "SHOW GLOBAL VARIABLES LIKE 'innodb_buffer_pool_size'",
        ),
        (
            profile.machine.vcpus.is_none() && profile.machine.instance.is_none(),
            "machine.vcpus",
            "`nproc` on the server's machine; or give machine.instance, such as r6i.large",
        ),
        (observed && workload.pages.is_empty(), "[[workload.pages]]", pages),
        (
            observed && workload.redo_bytes.is_none(),
            "workload.redo_bytes",
            "the growth of Innodb_os_log_written by that of Com_commit",
        ),
        (
            observed && server.log_bin == Some(true) && workload.binlog_bytes.is_none(),
            "workload.binlog_bytes",
            "the growth of the files in SHOW BINARY LOGS by that of Com_commit; 0 where nothing is written",
        ),
        (
            !has(|point| point.volume.is_some()),
            "point.volume",
            "the volume that the data are on, such as gp3:size=500GiB",
        ),
        (
            !has(|point| point.tps.is_some()),
            "point.tps",
            "two SHOW GLOBAL STATUS under the usual load: the growth of Com_commit by that of Uptime",
        ),
        (
            !has(|point| point.clients.is_some() || point.rate.is_some()),
            "point.clients",
            "connections that were busy: the mean of Threads_running over some looks",
        ),
        (
            workload.cpu_us.is_none() && !profile.points.iter().any(|point| point.cpu_pct.is_some()),
            "point.cpu_pct",
            "us + sy of vmstat on the server's machine, or `iostat -x 60 2` among the files; or workload.cpu_us, the processor \
             time of a transaction",
        ),
    ];
    rows.into_iter().filter(|(lacks, ..)| *lacks).map(|(_, key, from)| Missing { key, from }).collect()
}

fn name(profile: &Profile, point: usize) -> String {
    let number = format!("point {}", point + 1);
    match profile.points.get(point).and_then(|point| point.name.as_ref()) {
        Some(name) => format!("{number} ({name})"),
        None => number,
    }
}

/// Four digits: no figure here is known better.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let unit = 10_f64.powf(3.0 - value.abs().log10().floor());
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        assert_eq!((rounded(0.0), rounded(1.0 / 3.0), rounded(12_345.6)), (0.0, 0.3333, 12_350.0));
        assert_eq!((rounded(431.27), rounded(-0.001_234_56)), (431.3, -0.001_235));
    }

    #[test]
    fn everything_that_is_missing_is_named_with_where_to_get_it() {
        let profile = Profile {
            workload: WorkloadTable { kind: Some("observed".into()), ..WorkloadTable::default() },
            points: vec![ebbtide_twin::profile::PointTable::default()],
            ..Profile::default()
        };
        let keys: Vec<&str> = missing(&profile).iter().map(|one| one.key).collect();
        assert_eq!(
            keys,
            [
                "server.flavour",
                "server.buffer_pool_size",
                "machine.vcpus",
                "[[workload.pages]]",
                "workload.redo_bytes",
                "point.volume",
                "point.tps",
                "point.clients",
                "point.cpu_pct"
            ]
        );
        let draft = Draft { profile, ..Draft::default() };
        let error = draft.finish(&Catalog::builtin(), 1).unwrap_err().to_string();
        assert!(error.contains("SELECT VERSION()") && error.contains("vmstat"), "{error}");
    }
}
