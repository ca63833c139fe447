//! `ebbtide watch dashboards` and `ebbtide watch rules`: files for Grafana and Prometheus.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ebbtide_watch::dashboards::{dashboard, rule_file};
use serde::Serialize;

use crate::answers;
use crate::exit::{Exit, Refusal};
use crate::text::line;

/// Which files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A dashboard of Grafana.
    Dashboards,
    /// A rule file of Prometheus.
    Rules,
}

/// What `watch dashboards` and `watch rules` print.
#[derive(Debug, Serialize)]
pub(crate) struct WatchFiles {
    /// The files that were written.
    files: Vec<PathBuf>,
}

/// Writes files into a directory, which is made where it is missing.
///
/// # Errors
/// The directory or a file cannot be written: exit code 3.
pub(super) fn write(directory: &Path, kind: Kind, json: bool) -> Result<Exit> {
    let (name, text, next) = match kind {
        Kind::Dashboards => ("ebbtide.json", dashboard(), "import it in Grafana, or provision its directory"),
        Kind::Rules => ("ebbtide.rules.yml", rule_file(), "name it under rule_files in prometheus.yml"),
    };
    let file = directory.join(name);
    let refusal = || {
        Refusal::environment(format!("cannot write {}", file.display()))
            .hint("name a directory that you may write with --out")
    };
    fs::create_dir_all(directory).with_context(refusal)?;
    fs::write(&file, text).with_context(refusal)?;
    if json {
        answers::print(&WatchFiles { files: vec![file] });
    } else {
        line(&format!("wrote {}: {next}", file.display()));
    }
    Ok(Exit::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_into_a_directory_that_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a/b");
        write(&out, Kind::Rules, false).unwrap();
        write(&out, Kind::Dashboards, false).unwrap();
        assert!(fs::read_to_string(out.join("ebbtide.rules.yml")).unwrap().contains("alert:"));
        let text = fs::read_to_string(out.join("ebbtide.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        let error = write(&out.join("ebbtide.json/c"), Kind::Rules, false).unwrap_err().to_string();
        assert!(error.contains("cannot write"), "{error}");
    }
}
