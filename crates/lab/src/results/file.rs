//! `results.json`: the whole run and its summary in one file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{JSON, ResultsError, SCHEMA_VERSION};
use crate::record::LabRun;
use crate::summary::Summary;

/// What `results.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Version of this schema.
    pub schema_version: u32,
    /// What was measured.
    pub run: LabRun,
    /// Its summary.
    pub summary: Summary,
}

/// The same, before it is written.
#[derive(Debug, Serialize)]
pub struct Borrowed<'a, R, S> {
    /// Version of the form of the file.
    pub schema_version: u32,
    /// What was measured.
    pub run: &'a R,
    /// Its summary.
    pub summary: &'a S,
}

#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

/// Reads `results.json` of a directory.
///
/// # Errors
///
/// It is not there, of another schema, or damaged.
pub fn read_json(dir: &Path) -> Result<Results, ResultsError> {
    read_of(dir, SCHEMA_VERSION)
}

/// Reads `results.json` of a directory as results of this schema.
///
/// # Errors
/// It is not there, of another schema, or damaged.
pub fn read_of<T: DeserializeOwned>(dir: &Path, schema: u32) -> Result<T, ResultsError> {
    let path = dir.join(JSON);
    let text = std::fs::read_to_string(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            ResultsError::Missing { dir: dir.to_path_buf() }
        }
        _ => ResultsError::File { action: "read", path: path.clone(), source },
    })?;
    let damaged = |error: serde_json::Error| ResultsError::Damaged {
        dir: dir.to_path_buf(),
        what: format!("{JSON}: {error}"),
    };
    let found = serde_json::from_str::<Version>(&text).map_err(damaged)?.schema_version;
    if found != schema {
        return Err(ResultsError::Schema { dir: dir.to_path_buf(), found, reads: schema });
    }
    serde_json::from_str(&text).map_err(damaged)
}

/// Writes `results.json` next to its place and renames it: a kill leaves the old file or the new one.
///
/// # Errors
/// A directory or disk that refuses.
pub fn write_json(dir: &Path, results: &impl Serialize) -> Result<(), ResultsError> {
    let (path, part) = (dir.join(JSON), dir.join("results.json.part"));
    let write = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(&part)?);
        serde_json::to_writer(&mut file, results)?;
        file.write_all(b"\n")?;
        file.into_inner()?.sync_all()?;
        std::fs::rename(&part, &path)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(|source| ResultsError::File { action: "write", path: path.clone(), source })
}

/// Writes a file of a directory of results whole or not at all.
///
/// # Errors
/// A directory or disk that refuses.
pub fn write_whole(dir: &Path, name: &str, text: &str) -> Result<(), ResultsError> {
    let (path, part) = (dir.join(name), dir.join(format!("{name}.part")));
    std::fs::write(&part, text)
        .and_then(|()| std::fs::rename(&part, &path))
        .map_err(|source| ResultsError::File { action: "write", path: path.clone(), source })
}
