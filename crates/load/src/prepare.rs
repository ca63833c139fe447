//! sysbench's tables: loading them, and dropping them.

use ebbtide_workload::sysbench::{Mix, Sysbench, TABLES};
use ebbtide_workload::{LEDGER_TABLE, OptionError};
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::load::{Loading, Prepared, Progress, load};
use crate::options::Target;
use crate::run::Cancel;
use crate::wire::{Session, quoted};
use crate::{Distribution, Schema, Workload};

/// What to load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrepareOptions {
    /// The workload it is for: `bulk_insert` has tables of its own, and `oltp_insert` without
    /// AUTO_INCREMENT starts on empty ones, as in sysbench. None means the OLTP tables.
    pub workload: Option<Workload>,
    /// The tables.
    pub schema: Schema,
    /// How the values of k are drawn.
    pub distribution: Distribution,
    /// The seed; the rows depend on it and on nothing else.
    pub seed: u64,
    /// Connections that load at the same time. More than there are tables split the tables.
    pub threads: u32,
}

/// Creates the tables (and the database, where it is missing), fills them, and creates the index.
///
/// # Errors
/// The server's, such as 1050 where a table is there already.
pub fn prepare(
    target: &Target,
    options: &PrepareOptions,
    cancel: &Cancel,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Prepared, LoadError> {
    options.schema.check()?;
    options.distribution.check().map_err(OptionError::from)?;
    let sysbench = Sysbench {
        workload: options.workload.unwrap_or(Workload::ReadWrite),
        schema: options.schema.clone(),
        mix: Mix::default(),
        distribution: options.distribution,
        clients: options.threads,
        marks: false,
    };
    let loading = Loading { seed: options.seed, connections: options.threads };
    load(target, &sysbench.describe(), loading, cancel, on_progress)
}

/// The names among sysbench's first `tables` tables and the ledger's that are there.
///
/// # Errors
/// The server's.
pub fn tables_present(target: &Target, tables: u32) -> Result<Vec<String>, LoadError> {
    let mut session = Session::open(target, target.endpoint(0)?)?;
    let rows = session.rows(&format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND \
         (table_name LIKE '{TABLES}%' OR table_name = '{LEDGER_TABLE}')"
    ))?;
    let ours = |name: &str| {
        let number = name.strip_prefix(TABLES).and_then(|number| number.parse::<u32>().ok());
        name == LEDGER_TABLE || number.is_some_and(|number| (1..=tables).contains(&number))
    };
    let mut names: Vec<String> = rows
        .into_iter()
        .filter_map(|row| row.into_iter().next().flatten())
        .filter(|name| ours(name))
        .collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    Ok(names)
}

/// Drops what [`tables_present`] names, and answers with it.
///
/// # Errors
/// The server's.
pub fn cleanup(target: &Target, tables: u32) -> Result<Vec<String>, LoadError> {
    let names = tables_present(target, tables)?;
    let mut session = Session::open(target, target.endpoint(0)?)?;
    for name in &names {
        session.execute(&format!("DROP TABLE IF EXISTS {}", quoted(name)))?;
    }
    Ok(names)
}
