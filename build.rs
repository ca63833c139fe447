//! Gives the program its commit and its build date, as variables of the compiler's environment.
//!
//! The script runs again only when a source of the program or the commit changes, so that a build
//! without changes stays a build without work. It needs neither git nor a network: in a source archive
//! the commit is the one that `git archive` wrote into `.git-archive`, or it is unknown.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

/// What the program is made of, from the root of the repository.
const SOURCES: [&str; 5] = ["Cargo.toml", "Cargo.lock", "build.rs", "rust-toolchain.toml", "src"];
/// What a crate of the program is made of, from its own folder.
const SOURCES_OF_A_CRATE: [&str; 4] = ["Cargo.toml", "src", "data", "assets"];
/// Written by `git archive` (see `.gitattributes`); in a repository it holds the place of a commit.
const ARCHIVE: &str = ".git-archive";

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let sources = sources(&root);
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rerun-if-changed={ARCHIVE}");
    for path in &sources {
        println!("cargo::rerun-if-changed={path}");
    }
    let tracked = commit_of_repository(&root);
    // An archive may be in another repository, whose commit is not that of its sources.
    let modified = tracked.is_some() && is_modified(&root, &sources);
    let commit = tracked.or_else(|| commit_of_archive(&root)).unwrap_or_default();
    println!("cargo::rustc-env=EBBTIDE_COMMIT={commit}");
    println!("cargo::rustc-env=EBBTIDE_MODIFIED={modified}");
    println!("cargo::rustc-env=EBBTIDE_BUILT={}", built());
    println!("cargo::rustc-env=EBBTIDE_TARGET={}", env::var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=EBBTIDE_PROFILE={}", env::var("PROFILE").unwrap_or_default());
}

/// The paths that the program is built from, as far as they exist: a missing one would make cargo run
/// the script every time.
fn sources(root: &Path) -> Vec<String> {
    let mut paths: Vec<String> = SOURCES.iter().map(ToString::to_string).collect();
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let mut names: Vec<_> = crates.map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names.iter().filter_map(|name| name.to_str()) {
        paths.extend(SOURCES_OF_A_CRATE.iter().map(|path| format!("crates/{name}/{path}")));
    }
    paths.retain(|path| root.join(path).exists());
    paths
}

/// The commit of the repository whose root this is, and not of another one that the sources are in.
fn commit_of_repository(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(top).ok()? != fs::canonicalize(root).ok()? {
        return None;
    }
    // The log of HEAD grows with every commit and checkout. Without one, HEAD and its branch are watched.
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
    let log = git_path(root, "logs/HEAD");
    let watched =
        if log.is_some() { vec![log] } else { vec![git_path(root, "HEAD"), git_path(root, &branch)] };
    for path in watched.into_iter().flatten() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    git(root, &["rev-parse", "HEAD"])
}

/// A file of the repository, where it exists.
fn git_path(root: &Path, name: &str) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    let path = root.join(git(root, &["rev-parse", "--git-path", name])?);
    path.exists().then_some(path)
}

/// The commit that `git archive` wrote.
fn commit_of_archive(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join(ARCHIVE)).ok()?;
    let commit = text.trim();
    (commit.len() >= 40 && commit.chars().all(|c| c.is_ascii_hexdigit())).then(|| commit.to_owned())
}

/// Whether a source differs from the commit's.
fn is_modified(root: &Path, sources: &[String]) -> bool {
    let mut words = vec!["status", "--porcelain", "--untracked-files=normal", "--"];
    words.extend(sources.iter().map(String::as_str));
    git(root, &words).is_some_and(|changes| !changes.is_empty())
}

/// What git answers; nothing where it is missing, fails, or this is no repository.
fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(words).current_dir(root).env("GIT_OPTIONAL_LOCKS", "0").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Seconds since 1970: `SOURCE_DATE_EPOCH` where it is set, so that a build can be reproduced to the byte.
fn built() -> u64 {
    let fixed = env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse().ok());
    fixed.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}
