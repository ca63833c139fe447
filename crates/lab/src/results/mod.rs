//! The results of a run on disk: a directory with `results.sqlite`, written trial by trial, and
//! `results.json`, written at the end. `docs/json/run.md` documents both.

mod columns;
mod differences;
mod earlier;
pub mod encode;
mod error;
pub mod file;
mod header;
pub mod read;
mod write;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

pub use earlier::Earlier;
pub use error::ResultsError;
pub use file::{Results, read_json};
pub use header::Header;

use crate::experiment::Arm;
use crate::record::{LabRun, Trial};
use crate::summary::Summary;

/// Version of the schemas of `results.sqlite` and `results.json`.
pub const SCHEMA_VERSION: u32 = 1;

/// The database's name in the directory.
pub const DATABASE: &str = "results.sqlite";

/// The table of the header.
const RUN: &str = "run";

/// The JSON file's name in the directory.
pub const JSON: &str = "results.json";

/// The results of one run, open for writing and reading.
#[derive(Debug)]
pub struct ResultsDatabase {
    dir: PathBuf,
    database: Connection,
    /// Of the experiment.
    arms: Vec<Arm>,
}

impl ResultsDatabase {
    /// Makes the directory and writes the run's header; its trials, where it has any, go in too.
    ///
    /// # Errors
    ///
    /// The directory holds results already, or cannot be written.
    pub fn create(dir: &Path, run: &LabRun) -> Result<Self, ResultsError> {
        let mut store =
            Self { dir: dir.to_path_buf(), database: create(dir)?, arms: run.experiment.arms.clone() };
        write::create(&mut store.database, run).map_err(database(dir))?;
        for trial in &run.trials {
            store.add_trial(trial)?;
        }
        Ok(store)
    }

    /// Opens what is there.
    ///
    /// # Errors
    ///
    /// There is nothing, or it is of another schema.
    pub fn open(dir: &Path) -> Result<Self, ResultsError> {
        let mut store = Self { dir: dir.to_path_buf(), database: open(dir)?, arms: Vec::new() };
        let found = read::schema_version(&store.database).map_err(database(dir))?;
        if found != SCHEMA_VERSION {
            let reads = SCHEMA_VERSION;
            return Err(ResultsError::Schema { dir: dir.to_path_buf(), found, reads });
        }
        store.arms = Header::read(&store.database, dir, RUN)?.experiment.arms;
        Ok(store)
    }

    /// Opens what is there to go on with it: program, experiment, server and machine of `run` must be those
    /// that it was begun with.
    ///
    /// # Errors
    ///
    /// As [`ResultsDatabase::open`], and [`ResultsError::Different`] with everything that differs.
    pub fn resume(dir: &Path, run: &LabRun) -> Result<Self, ResultsError> {
        let store = Self::open(dir)?;
        Header::read(&store.database, dir, RUN)?.refuse_other(dir, &run.into())?;
        Ok(store)
    }

    /// Adds a trial in one transaction: a kill leaves all of it or nothing. A trial of the same arm and
    /// repeat takes the old one's place.
    ///
    /// # Errors
    ///
    /// The database refused; figures that are not numbers are refused too.
    pub fn add_trial(&mut self, trial: &Trial) -> Result<(), ResultsError> {
        let arm = self.arms.iter().find(|arm| arm.name == trial.arm);
        write::trial(&mut self.database, trial, arm).map_err(database(&self.dir))
    }

    /// Everything, as it was handed in.
    ///
    /// # Errors
    ///
    /// The database refused, or holds what this program did not write.
    pub fn run(&self) -> Result<LabRun, ResultsError> {
        let header = Header::read(&self.database, &self.dir, RUN)?;
        Ok(LabRun { trials: read::trials(&self.database, &self.dir)?, ..header.into() })
    }

    /// Writes the summary's figures and comparisons to the database, and run and summary to `results.json`,
    /// whole or not at all. May be called again, with what it wrote before replaced.
    ///
    /// # Errors
    ///
    /// The database or the disk refused.
    pub fn finish(&mut self, summary: &Summary) -> Result<(), ResultsError> {
        let run = self.run()?;
        write::summary(&mut self.database, &run, summary).map_err(database(&self.dir))?;
        let schema_version = SCHEMA_VERSION;
        file::write_json(&self.dir, &file::Borrowed { schema_version, run: &run, summary })
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Makes the directory and an empty database in it.
///
/// # Errors
/// [`ResultsError::Exists`] where it holds results, and a disk that refuses.
pub fn create(dir: &Path) -> Result<Connection, ResultsError> {
    std::fs::create_dir_all(dir).map_err(|source| ResultsError::File {
        action: "create",
        path: dir.to_path_buf(),
        source,
    })?;
    let path = dir.join(DATABASE);
    if path.exists() {
        if !is_unborn(&path) {
            return Err(ResultsError::Exists { dir: dir.to_path_buf() });
        }
        std::fs::remove_file(&path).map_err(|source| ResultsError::File {
            action: "replace",
            path: path.clone(),
            source,
        })?;
    }
    connect(dir, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
}

/// Opens the database of a directory.
///
/// # Errors
/// [`ResultsError::Missing`], and a database that cannot be opened.
pub fn open(dir: &Path) -> Result<Connection, ResultsError> {
    let path = dir.join(DATABASE);
    if !path.is_file() || is_unborn(&path) {
        return Err(ResultsError::Missing { dir: dir.to_path_buf() });
    }
    connect(dir, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn connect(dir: &Path, flags: OpenFlags) -> Result<Connection, ResultsError> {
    let connection = Connection::open_with_flags(dir.join(DATABASE), flags).map_err(database(dir))?;
    connection.pragma_update(None, "foreign_keys", true).map_err(database(dir))?;
    Ok(connection)
}

/// A kill between the file's birth and its first transaction leaves an empty file: no results.
fn is_unborn(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.len() == 0)
}

/// What becomes of an error of the database of a directory.
pub fn database(dir: &Path) -> impl Fn(rusqlite::Error) -> ResultsError {
    let dir = dir.to_path_buf();
    move |source| ResultsError::Database { dir: dir.clone(), source }
}
