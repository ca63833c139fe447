//! Runs that came to their end before, to hold others against.

use std::path::{Path, PathBuf};

use super::differences::other_experiment;
use super::{DATABASE, ResultsError, read_json};
use crate::experiment::Experiment;
use crate::record::{LabRun, ServerFacts};

/// A run and where its results are.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// The directory.
    pub dir: PathBuf,
    /// The run.
    pub run: LabRun,
}

impl Earlier {
    /// Reads the results of a run that has ended, and writes nothing.
    ///
    /// # Errors
    ///
    /// The directory holds none, the run has not ended, or its results are damaged or of another schema.
    pub fn read(dir: &Path) -> Result<Self, ResultsError> {
        match read_json(dir) {
            Ok(results) => Ok(Self { dir: dir.to_path_buf(), run: results.run }),
            Err(ResultsError::Missing { dir }) if dir.join(DATABASE).is_file() => {
                Err(ResultsError::Unended { dir })
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses what this run would not be another run of: the data, the arms, how trials come to their
    /// state and how long they are, and the server's version must be its own. Seed, number of trials and
    /// machine may differ.
    ///
    /// # Errors
    ///
    /// [`ResultsError::OtherExperiment`] with everything that differs.
    pub fn refuse_other(&self, experiment: &Experiment, server: &ServerFacts) -> Result<(), ResultsError> {
        let differences = other_experiment(&self.run, experiment, server);
        if differences.is_empty() {
            return Ok(());
        }
        Err(ResultsError::OtherExperiment { dir: self.dir.clone(), differences })
    }

    /// Refuses a run that is named twice, in one directory or in a copy: it agrees with itself.
    ///
    /// # Errors
    ///
    /// [`ResultsError::SameRun`] with the first two directories that hold the same run.
    pub fn refuse_repeated(runs: &[Self]) -> Result<(), ResultsError> {
        for (index, one) in runs.iter().enumerate() {
            let same = |other: &&Self| {
                one.run.started_ns == other.run.started_ns
                    && one.run.experiment.seed == other.run.experiment.seed
            };
            if let Some(other) = runs[..index].iter().find(same) {
                return Err(ResultsError::SameRun { dir: other.dir.clone(), other: one.dir.clone() });
            }
        }
        Ok(())
    }
}
