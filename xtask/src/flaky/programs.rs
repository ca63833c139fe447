//! The test programs of the workspace, as cargo builds them.

use std::{
    io::BufReader,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Message, Metadata, MetadataCommand, Package, Target, TargetKind};

use crate::tidy::calm_programs;

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
        let tests = |more: &[&str]| -> Result<Vec<String>> {
            let output = Command::new(&path).args(["--list", "--format", "terse"]).args(more).output();
            let output = output.with_context(|| format!("cannot run {}", path.display()))?;
            ensure!(output.status.success(), "{} --list ended with {}", path.display(), output.status);
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
        };
        let (mut all, ignored) = (tests(&[])?, tests(&["--ignored"])?);
        all.retain(|test| !ignored.contains(test));
        Ok(Self { name, path, dir, tests: all })
    }

    /// Keeps only the tests whose program and name, with a space between them, contain a text.
    pub(crate) fn keep(&mut self, text: &str) {
        let program = &self.name;
        self.tests.retain(|test| format!("{program} {test}").contains(text));
    }
}

/// The name by which `xtask/tidy.toml` and the reports call a test program; none for what is no such program.
pub(crate) fn name(package: &Package, target: &Target) -> Option<String> {
    let is = |kind: &TargetKind| target.kind.contains(kind);
    if !target.test {
        None
    } else if is(&TargetKind::Lib) || is(&TargetKind::Bin) {
        Some(package.name.to_string())
    } else {
        is(&TargetKind::Test).then(|| format!("{} {}", package.name, target.name))
    }
}

/// Builds all tests, or those of a package, and lists those that are repeated; none where they do not build.
pub(super) fn build(package: Option<&str>) -> Result<Option<Vec<Program>>> {
    let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata failed")?;
    let calm = calm_programs(&metadata)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let which = package.map_or(vec!["--workspace"], |package| vec!["--package", package]);
    let mut build = Command::new(cargo)
        .args(["test", "--no-run", "--message-format=json-render-diagnostics"])
        .args(which)
        .current_dir(&metadata.workspace_root)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let output = build.stdout.take().context("cargo's output is piped")?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(output)) {
        let Message::CompilerArtifact(artifact) = message? else { continue };
        let Some(executable) = artifact.executable.filter(|_| artifact.profile.test) else { continue };
        let package = metadata.packages.iter().find(|package| package.id == artifact.package_id);
        let Some(package) = package else { continue };
        let Some(name) = name(package, &artifact.target).filter(|name| !calm.contains(name)) else {
            continue;
        };
        programs.push((name, executable.into_std_path_buf(), folder(package, &metadata)));
    }
    if !build.wait().context("cannot wait for cargo")?.success() {
        return Ok(None);
    }
    programs.sort();
    programs
        .into_iter()
        .map(|(name, path, dir)| Program::list(name, path, dir))
        .collect::<Result<_>>()
        .map(Some)
}

fn folder(package: &Package, metadata: &Metadata) -> PathBuf {
    let folder = package.manifest_path.parent().unwrap_or(&metadata.workspace_root);
    Path::new(folder).to_owned()
}
