//! `cargo xtask lint`: checks of the sources that run no test.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, ensure};

use crate::{
    groups,
    phases::{Outcome, Phases},
    tools::{CARGO_DENY, Places, succeeds, word},
};

/// What the tests did already, beside them.
pub(crate) struct Beside<'a> {
    /// The folder with their logs.
    pub(crate) logs: &'a Path,
}

/// `./dev lint`.
pub(crate) fn run() -> Result<ExitCode> {
    groups::end_with_signals()?;
    let mut phases = Phases::default();
    checks(&Places::find()?, &mut phases, None);
    let passed = phases.finish();
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all checks. Lints that compile, and the build of the tool for dependencies may have run beside the tests.
pub(crate) fn checks(places: &Places, phases: &mut Phases, beside: Option<&Beside<'_>>) {
    let run = |words: &[&str]| places.succeeds(words).map(Outcome::from);
    phases.check("format", || run(&["cargo", "fmt", "--all", "--", "--check"]));
    phases.check("clippy", || match beside {
        Some(beside) => judged(beside, "clippy"),
        None => run(&CLIPPY),
    });
    if let Some(beside) = beside {
        phases.check("build", || judged(beside, "build"));
    }
    phases.check("tidy", || {
        let own = std::env::current_exe().context("this program has no path")?;
        run(&[word(&own), "tidy"])
    });
    phases.check("shellcheck", || shell(places));
    phases.check("fresh, on planted logs", || run(&["scripts/fresh.sh", "--self-test"]));
    phases.check("cargo-deny", || deny(places));
    phases.check("advisories", || advisories(places));
}

/// The lints of clippy.
pub(crate) const CLIPPY: [&str; 8] =
    ["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];

/// The program alone, with the features that users get: dependencies for tests add some.
pub(crate) const PROGRAM: [&str; 8] =
    ["cargo", "clippy", "--workspace", "--locked", "--quiet", "--", "-D", "warnings"];

/// How a command ended that ran beside the tests.
fn judged(beside: &Beside<'_>, name: &str) -> Result<Outcome> {
    let log = beside.logs.join(name);
    let text = fs::read_to_string(&log).with_context(|| format!("{} was not written", log.display()))?;
    let failed = beside.logs.join(format!("{name}.failed")).exists();
    if failed {
        eprint!("{text}");
    }
    Ok(Outcome::from(!failed))
}

fn shell(places: &Places) -> Result<Outcome> {
    let Ok(tool) = places.shellcheck() else {
        eprintln!("SKIPPED: shellcheck {} cannot be installed", crate::tools::SHELLCHECK);
        return Ok(Outcome::Skipped);
    };
    let listed = ["git", "ls-files", "-co", "--exclude-standard", "--", "dev", ".ci/run"];
    let patterns = ["scripts/*.sh", "findings/*.sh", "tests/clients/*.sh"];
    let scripts = places.output(&[&listed[..], &patterns].concat())?.context("git lists no files")?;
    let mut check = Command::new(tool);
    check.current_dir(&places.root).arg("-x").args(scripts.lines());
    Ok(Outcome::from(succeeds(&mut check)?))
}

/// The path of cargo-deny, with the dependencies of every platform, which a build does not download; `None` where that cannot be had.
fn deny_tool(places: &Places) -> Result<Option<String>> {
    let Ok(deny) = places.tool(&CARGO_DENY) else {
        eprintln!("SKIPPED: cargo-deny cannot be built here");
        return Ok(None);
    };
    if !places.succeeds(&["cargo", "fetch", "--quiet", "--locked"])? {
        eprintln!("SKIPPED: some dependencies cannot be downloaded");
        return Ok(None);
    }
    Ok(Some(word(&deny).to_owned()))
}

/// Licences, sources and versions of dependencies.
fn deny(places: &Places) -> Result<Outcome> {
    let Some(deny) = deny_tool(places)? else { return Ok(Outcome::Skipped) };
    let checks = ["--offline", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    Ok(Outcome::from(places.succeeds(&[&[deny.as_str()], &checks[..]].concat())?))
}

/// The folder in which cargo-deny looks for RustSec's database: that of deny.toml, and its own name for the database's address.
const ADVISORIES: &str = "target/advisories/advisory-db-3157b0e258782691";

/// The advisories about dependencies that RustSec's database has, where there is one.
fn advisories(places: &Places) -> Result<Outcome> {
    let Some(deny) = deny_tool(places)? else { return Ok(Outcome::Skipped) };
    let folder = places.root.join(ADVISORIES);
    let _ = fs::remove_dir_all(&folder);
    for part in [".git", "crates"] {
        fs::create_dir_all(folder.join(part)).with_context(|| format!("cannot make {ADVISORIES}"))?;
    }
    // cargo-deny takes the time of this file for that of the database.
    fs::write(folder.join(".git/FETCH_HEAD"), "").context("cannot write into the database's folder")?;
    let check = [deny.as_str(), "--offline", "check", "--hide-inclusion-graph", "advisories"];
    refuses_planted(places, &check)?;
    let Some(date) = lay_advisories(places)? else {
        eprintln!("SKIPPED: no copy of RustSec's database: see xtask/advisories/README.md");
        return Ok(Outcome::Skipped);
    };
    let files = walkdir::WalkDir::new(folder.join("crates")).into_iter().filter_map(Result::ok);
    let count = files.filter(|file| file.path().extension().is_some_and(|end| end == "md")).count();
    eprintln!("RustSec's database of {date}: {count} advisories");
    Ok(Outcome::from(places.succeeds(&check)?))
}

/// A made-up advisory on a dependency of ours has to be refused, or what is not refused means nothing.
fn refuses_planted(places: &Places, check: &[&str]) -> Result<()> {
    let planted = places.root.join(ADVISORIES).join("crates/planted.md");
    fs::copy(places.root.join("xtask/advisories/planted.md"), &planted)
        .context("cannot plant an advisory")?;
    let output = places.command(check).output().context("cannot run cargo-deny")?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && text.contains("RUSTSEC-1970-0001"),
        "cargo-deny does not refuse the planted advisory: {text}"
    );
    fs::remove_file(planted).context("cannot remove the planted advisory")
}

/// Lays RustSec's database out where cargo-deny reads it, and gives back its date: the clone that `ADVISORY_DB` names, or the kept
/// copy. `None` where there is neither.
fn lay_advisories(places: &Places) -> Result<Option<String>> {
    let folder = places.root.join(ADVISORIES);
    let kept = places.root.join("xtask/advisories");
    let unpack = |archive: &Path| places.succeeds(&["tar", "-xf", word(archive), "-C", word(&folder)]);
    if let Some(clone) = std::env::var("ADVISORY_DB").ok().filter(|clone| !clone.is_empty()) {
        let archive = folder.join("crates.tar");
        let made =
            places.succeeds(&["git", "-C", &clone, "archive", "-o", word(&archive), "HEAD", "crates"])?;
        ensure!(made && unpack(&archive)?, "RustSec's database cannot be laid out");
        fs::remove_file(&archive).context("cannot remove the archive of the database")?;
        let date = places.output(&["git", "-C", &clone, "log", "-1", "--format=%cs"])?;
        return Ok(Some(date.context("RustSec's database has no date")?));
    }
    let archive = kept.join("advisory-db.tar.gz");
    if !archive.exists() {
        return Ok(None);
    }
    ensure!(unpack(&archive)?, "RustSec's database cannot be laid out");
    let date = fs::read_to_string(kept.join("date")).context("the kept database has no date")?;
    Ok(Some(date.chars().take(10).collect()))
}
