//! The results of a crash run on disk: a directory with `results.sqlite`, written stint by stint and cut by
//! cut, and `results.json`, written at the end. `docs/json/crash.md` documents both.

mod read;
mod write;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use ebbtide_lab::results::{self, Header, database, file};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::record::{CrashRun, Cut, Gained, Stint};
use super::summary::Summary;
pub use ebbtide_lab::results::{DATABASE, JSON, ResultsError};

/// Version of the schemas of `results.sqlite` and `results.json`.
pub const SCHEMA_VERSION: u32 = 3;

/// The table of the header.
const RUN: &str = "crash_run";

/// The command whose results these are, in messages.
const OF: &str = "ebbtide crash";

/// The results of one crash run, open for writing and reading.
#[derive(Debug)]
pub struct CrashDatabase {
    dir: PathBuf,
    database: Connection,
}

/// What `results.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashResults {
    /// Version of this schema.
    pub schema_version: u32,
    /// What was found.
    pub run: CrashRun,
    /// Its summary.
    pub summary: Summary,
}

impl CrashDatabase {
    /// Makes the directory and writes the run's header; its stints and cuts, where it has any, go in too.
    ///
    /// # Errors
    ///
    /// The directory holds results already, or cannot be written.
    pub fn create(dir: &Path, run: &CrashRun) -> Result<Self, ResultsError> {
        let mut store = Self { dir: dir.to_path_buf(), database: results::create(dir)? };
        write::create(&mut store.database, run).map_err(database(dir))?;
        run.stints.iter().try_for_each(|stint| store.add_stint(stint))?;
        run.cuts.iter().try_for_each(|cut| store.add_cut(cut))?;
        run.gain.iter().try_for_each(|gain| store.set_gain(gain))?;
        Ok(store)
    }

    /// Opens what is there.
    ///
    /// # Errors
    ///
    /// There is nothing, or it is another command's, or of another schema.
    pub fn open(dir: &Path) -> Result<Self, ResultsError> {
        let store = Self { dir: dir.to_path_buf(), database: results::open(dir)? };
        let found = read::schema_version(&store.database).map_err(database(dir))?;
        match found {
            None => Err(ResultsError::OtherKind { dir: dir.to_path_buf(), of: OF }),
            Some(SCHEMA_VERSION) => Ok(store),
            Some(found) => Err(ResultsError::Schema { dir: dir.to_path_buf(), found, reads: SCHEMA_VERSION }),
        }
    }

    /// Opens what is there to go on with it: program, experiment, server and machine of `run` must be those
    /// that it was begun with.
    ///
    /// # Errors
    ///
    /// As [`CrashDatabase::open`], and [`ResultsError::Different`] with everything that differs.
    pub fn resume(dir: &Path, run: &CrashRun) -> Result<Self, ResultsError> {
        let store = Self::open(dir)?;
        Header::read(&store.database, dir, RUN)?.refuse_other(dir, &run.into())?;
        Ok(store)
    }

    /// Adds a stint in one transaction. A stint of the same arm and repeat takes the old one's place.
    ///
    /// # Errors
    ///
    /// The database refused; figures that are not numbers are refused too.
    pub fn add_stint(&mut self, stint: &Stint) -> Result<(), ResultsError> {
        write::stint(&mut self.database, stint).map_err(database(&self.dir))
    }

    /// Adds a cut in one transaction: a kill leaves all of it or nothing. A cut of the same arm and number
    /// takes the old one's place.
    ///
    /// # Errors
    ///
    /// The database refused; figures that are not numbers are refused too.
    pub fn add_cut(&mut self, cut: &Cut) -> Result<(), ResultsError> {
        write::cut(&mut self.database, cut).map_err(database(&self.dir))
    }

    /// Keeps what the risk buys, in place of what was kept before.
    ///
    /// # Errors
    ///
    /// The database refused; figures that are not numbers are refused too.
    pub fn set_gain(&mut self, gain: &Gained) -> Result<(), ResultsError> {
        write::gain(&mut self.database, gain).map_err(database(&self.dir))
    }

    /// Everything, as it was handed in.
    ///
    /// # Errors
    ///
    /// The database refused, or holds what this program did not write.
    pub fn run(&self) -> Result<CrashRun, ResultsError> {
        let stints = read::all(&self.database, &self.dir, "stint")?;
        let cuts = read::all(&self.database, &self.dir, "cut")?;
        let gain = read::gain(&self.database, &self.dir)?;
        Ok(CrashRun { stints, cuts, gain, ..Header::read(&self.database, &self.dir, RUN)?.into() })
    }

    /// The cuts with this seed: one, unless seeds met by chance.
    ///
    /// # Errors
    ///
    /// As [`CrashDatabase::run`].
    pub fn cuts_of(&self, seed: u64) -> Result<Vec<Cut>, ResultsError> {
        read::cuts_of(&self.database, &self.dir, seed)
    }

    /// Writes the summary's figures to the database, and run and summary to `results.json`, whole or not at
    /// all. May be called again, with what it wrote before replaced.
    ///
    /// # Errors
    ///
    /// The database or the disk refused.
    pub fn finish(&mut self, summary: &Summary) -> Result<(), ResultsError> {
        let run = self.run()?;
        write::summary(&mut self.database, summary).map_err(database(&self.dir))?;
        let results = file::Borrowed { schema_version: SCHEMA_VERSION, run: &run, summary };
        file::write_json(&self.dir, &results)
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Reads `results.json` of a directory.
///
/// # Errors
///
/// It is not there, of another schema, or damaged.
pub fn read_json(dir: &Path) -> Result<CrashResults, ResultsError> {
    file::read_of(dir, SCHEMA_VERSION)
}

impl From<&CrashRun> for Header {
    fn from(run: &CrashRun) -> Self {
        Self {
            started_ns: run.started_ns,
            command: run.command.clone(),
            ebbtide: run.ebbtide.clone(),
            experiment: run.experiment.clone(),
            overrides: run.overrides.clone(),
            host: run.host.clone(),
            server: run.server.clone(),
        }
    }
}

impl From<Header> for CrashRun {
    fn from(header: Header) -> Self {
        let Header { started_ns, command, ebbtide, experiment, overrides, host, server } = header;
        let (stints, cuts, gain) = (Vec::new(), Vec::new(), None);
        Self { started_ns, command, ebbtide, experiment, overrides, host, server, stints, cuts, gain }
    }
}
