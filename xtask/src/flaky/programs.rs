//! The test programs that are repeated, and their tests.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;

use crate::programs::{self, Built};
use crate::tidy::deterministic_programs;

/// A test program and its tests.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// The package, and the target's name where it is not the package's own unit tests.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Where cargo runs it: the folder of the package.
    pub(crate) dir: PathBuf,
    /// Names of the tests that are not ignored.
    pub(crate) tests: Vec<String>,
}

impl Program {
    /// Asks a program for its tests.
    pub(crate) fn list(name: String, path: PathBuf, dir: PathBuf) -> Result<Self> {
        let (mut all, ignored) = (programs::tests(&path, &[])?, programs::tests(&path, &["--ignored"])?);
        all.retain(|test| !ignored.contains(test));
        Ok(Self { name, path, dir, tests: all })
    }

    /// Keeps only the tests whose program and name, with a space between them, contain a text.
    pub(crate) fn keep(&mut self, text: &str) {
        let program = &self.name;
        self.tests.retain(|test| format!("{program} {test}").contains(text));
    }
}

/// Builds all tests, or those of a package, and lists those that are repeated; none where they do not build.
pub(super) fn build(package: Option<&str>) -> Result<Option<Vec<Program>>> {
    let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata failed")?;
    let deterministic = deterministic_programs(&metadata)?;
    let Some(programs) = programs::build(package)? else { return Ok(None) };
    programs
        .into_iter()
        .filter(|built| !deterministic.contains(&built.name))
        .map(|Built { name, path, dir }| Program::list(name, path, dir))
        .collect::<Result<_>>()
        .map(Some)
}
