//! The rules of the repository, as a test.
//!
//! Each rule is a function from the repository to [`Findings`], and has a test of its own that plants
//! the fault. The rules' data are in `xtask/tidy.toml`.

mod commands;
mod deterministic;
mod docs;
mod edges;
mod modules;
mod paths;
mod promises;
mod rules;
mod sources;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    process::ExitCode,
};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};

use crate::{repo::Repo, schemas, source::Source, tidy::rules::Rules};

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// 1 or more; 0 where the whole file is meant.
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// The breaches found so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, path: &str, line: usize, message: impl Into<String>) {
        self.0.push(Finding { path: path.into(), line, message: message.into() });
    }
}

/// The number of the line that a byte of a text is in.
fn line_of(text: &str, byte: usize) -> usize {
    text[..byte].matches('\n').count() + 1
}

/// Rust files by path.
type Sources = BTreeMap<String, Source>;

/// Checks every rule; prints what breaks one, and the size of code and tests.
pub(crate) fn run() -> Result<ExitCode> {
    let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata failed")?;
    let repo = Repo::read(metadata.workspace_root.as_std_path())?;
    let rules: Rules = toml::from_str(repo.text("xtask/tidy.toml").context("xtask/tidy.toml is missing")?)?;
    let mut findings = Findings::default();
    let sources = parse(&repo, &mut findings);

    edges::check(&metadata, &rules, &mut findings);
    sources::check(&repo, &sources, &rules, &mut findings);
    let folders = crate_folders(&metadata);
    sources::check_purity(&sources, &folders, &rules, &mut findings);
    sources::check_bans(&sources, &folders, &rules, &mut findings);
    modules::check(&sources, &folders, &rules, &mut findings);
    paths::check(&repo, &folders, &rules.paths, &mut findings);
    deterministic::check(&metadata, &sources, &rules.repeat, &mut findings);
    docs::check(&repo, &mut findings);
    promises::check(&repo, &sources, &mut findings);
    check_schemas(&repo, &mut findings);
    commands::check(&repo, &commands::Programs::of(&metadata), &mut findings);

    for finding in &findings.0 {
        eprintln!("{finding}");
    }
    println!("{}", sizes(&repo, &sources));
    let tidy = findings.0.is_empty();
    println!("{}", if tidy { "tidy" } else { "not tidy" });
    Ok(if tidy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The test programs that need no repetition, by the names of [`crate::flaky`].
pub(crate) fn deterministic_programs(metadata: &Metadata) -> Result<BTreeSet<String>> {
    let path = metadata.workspace_root.join("xtask/tidy.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let rules: Rules = toml::from_str(&text).with_context(|| format!("{path} is not as it should be"))?;
    Ok(rules.repeat.deterministic.into_iter().collect())
}

/// The schemas in docs/json are what the types define.
fn check_schemas(repo: &Repo, findings: &mut Findings) {
    match schemas::stale(repo) {
        Ok(stale) => stale.iter().for_each(|path| {
            findings.add(path, 0, "is not what the serialized types say: run `cargo xtask schemas`");
        }),
        Err(error) => findings.add("xtask/schemas.toml", 0, format!("{error:#}")),
    }
}

fn parse(repo: &Repo, findings: &mut Findings) -> Sources {
    let mut sources = Sources::new();
    for (path, text) in repo.texts(".rs") {
        let only_tests = path.split('/').any(|part| matches!(part, "tests" | "benches"))
            || path.ends_with("/tests.rs")
            || path.ends_with("_tests.rs");
        match Source::parse(text, only_tests) {
            Ok(source) => {
                sources.insert(path.into(), source);
            }
            Err(error) => findings.add(path, error.span().start().line, format!("does not parse: {error}")),
        }
    }
    sources
}

/// The folder of each crate of the workspace by its name; empty for the one at the root.
fn crate_folders(metadata: &Metadata) -> BTreeMap<String, String> {
    let folder = |manifest: &cargo_metadata::camino::Utf8Path| {
        let folder = manifest.parent().and_then(|folder| folder.strip_prefix(&metadata.workspace_root).ok());
        folder.map(ToString::to_string).unwrap_or_default()
    };
    metadata.packages.iter().map(|p| (p.name.to_string(), folder(&p.manifest_path))).collect()
}

fn sizes(repo: &Repo, sources: &Sources) -> String {
    let all: usize = repo.texts(".rs").map(|(_, text)| text.lines().count()).sum();
    let tests: usize = sources.values().map(|source| source.test_lines).sum();
    let code = all.saturating_sub(tests);
    format!("{code} lines of code, {tests} of tests: {:.2} to 1", tests as f64 / code.max(1) as f64)
}
