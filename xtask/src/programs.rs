//! The test programs of the workspace, as cargo builds them.

use std::{
    io::BufReader,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Message, Metadata, MetadataCommand, Package, Target, TargetKind};

/// A test program that was built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Built {
    /// The package, and the target's name where it is not the package's own unit tests.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Where cargo runs it: the folder of the package.
    pub(crate) dir: PathBuf,
}

/// The name by which `xtask/tidy.toml`, `xtask/tests.toml` and the reports call a test program; none for what is no such program.
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

/// Builds all tests, or those of a package; none where they do not build.
pub(crate) fn build(package: Option<&str>) -> Result<Option<Vec<Built>>> {
    let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata failed")?;
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
        let Some(name) = name(package, &artifact.target) else { continue };
        programs.push(Built { name, path: executable.into_std_path_buf(), dir: folder(package, &metadata) });
    }
    programs.sort();
    Ok(build.wait().context("cannot wait for cargo")?.success().then_some(programs))
}

fn folder(package: &Package, metadata: &Metadata) -> PathBuf {
    let folder = package.manifest_path.parent().unwrap_or(&metadata.workspace_root);
    Path::new(folder).to_owned()
}

/// Asks a test program for its tests; further options choose among them.
pub(crate) fn tests(path: &Path, options: &[&str]) -> Result<Vec<String>> {
    let output = Command::new(path).args(["--list", "--format", "terse"]).args(options).output();
    let output = output.with_context(|| format!("cannot run {}", path.display()))?;
    ensure!(output.status.success(), "{} --list ended with {}", path.display(), output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}
