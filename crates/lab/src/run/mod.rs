//! Running an experiment: data prepared once, volumes cloned from it for every trial, a real server
//! on them, its load measured second by second, and nothing left behind.

mod error;
mod event;

use std::path::PathBuf;

use ebbtide_catalog::Catalog;
use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;

pub use error::{RunError, StageError};
pub use event::{Event, Phase, Progress, Tick};

use crate::experiment::Experiment;
use crate::record::Run;

/// Where and with what an experiment runs.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The home: the lab keeps its own below it, in `lab`.
    pub home: PathBuf,
    /// The server that is measured.
    pub server: Binary,
    /// Where the results go; made where it is missing.
    pub out: PathBuf,
    /// Go on with a run whose results are in [`Self::out`]: what it has measured is not run again.
    pub resume: bool,
    /// What volume specs and instance types mean.
    pub catalog: Catalog,
    /// Run although the host is slower than a volume; the trials are marked with it.
    pub over_limit: bool,
    /// The command that runs it again, for the record.
    pub command: String,
    /// The program's version, for the record.
    pub ebbtide: String,
}

/// Runs an experiment.
///
/// A trial that fails is recorded and the others go on. `cancel` ends the run within a couple of
/// seconds; what was measured until then is in the results, and nothing is left mounted, attached or
/// running in any case.
///
/// # Errors
/// What forbids the run before its first trial, [`RunError::Cancelled`], and results that cannot be
/// written.
pub fn run(
    experiment: Experiment,
    options: RunOptions,
    cancel: &Cancel,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<Run, RunError> {
    let teller = event::Teller::new(tell);
    teller.preparing(format!("looking at {}", options.home.display()));
    std::fs::create_dir_all(&options.out)
        .map_err(RunError::io(format!("create {}", options.out.display())))?;
    let _ = (experiment, cancel);
    Err(RunError::Results { dir: options.out, why: "the lab cannot run trials yet".into() })
}
