//! The header of a run: what its database keeps once, whether its records are trials or cuts.

use std::path::Path;

use rusqlite::{Connection, Transaction, params};

use super::encode::json;
use super::read::{as_far_as_there, parse};
use super::{ResultsError, database};
use crate::experiment::Experiment;
use crate::record::{HostFacts, LabRun, ServerFacts};

/// A run without its records.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// When it began, ns since 1970.
    pub started_ns: u64,
    /// The command that runs it again.
    pub command: String,
    /// The program's version.
    pub ebbtide: String,
    /// What was asked.
    pub experiment: Experiment,
    /// Overrides of the catalogue; None: there were none.
    pub overrides: Option<String>,
    /// The machine.
    pub host: HostFacts,
    /// The server.
    pub server: ServerFacts,
}

impl Header {
    /// Writes the only row of `table`.
    ///
    /// # Errors
    /// The database refused.
    pub fn write(
        &self,
        transaction: &Transaction<'_>,
        table: &str,
        schema_version: u32,
    ) -> rusqlite::Result<()> {
        let row = params![
            schema_version,
            self.started_ns,
            self.command,
            self.ebbtide,
            self.experiment.name,
            self.experiment.seed.to_string(),
            json(&self.experiment)?,
            json(&self.host)?,
            json(&self.server)?,
            self.overrides,
        ];
        let sql = format!("INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
        transaction.execute(&sql, row).map(drop)
    }

    /// Reads the only row of `table`.
    ///
    /// # Errors
    /// The database refused, or holds what this program did not write.
    pub fn read(connection: &Connection, dir: &Path, table: &str) -> Result<Self, ResultsError> {
        let overrides = as_far_as_there(connection, table, &["overrides"]).map_err(database(dir))?.concat();
        let sql = format!(
            "SELECT started_ns, command, ebbtide, experiment_json, host_json, server_json, {overrides} \
             FROM {table}"
        );
        let (started_ns, command, ebbtide, texts, overrides) = connection
            .query_row(&sql, [], |row| {
                let texts: [String; 3] = [row.get(3)?, row.get(4)?, row.get(5)?];
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, texts, row.get(6)?))
            })
            .map_err(database(dir))?;
        Ok(Self {
            started_ns,
            command,
            ebbtide,
            experiment: parse(dir, "the experiment", &texts[0])?,
            overrides,
            host: parse(dir, "the host", &texts[1])?,
            server: parse(dir, "the server", &texts[2])?,
        })
    }
}

impl From<&LabRun> for Header {
    fn from(run: &LabRun) -> Self {
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

impl From<Header> for LabRun {
    fn from(header: Header) -> Self {
        let Header { started_ns, command, ebbtide, experiment, overrides, host, server } = header;
        Self { started_ns, command, ebbtide, experiment, overrides, host, server, trials: Vec::new() }
    }
}
