//! Which program this is: version, commit and build date.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde::Serialize;

use crate::text;

/// Version, commit and build, as `ebbtide --version --json` prints them.
#[derive(Debug, Serialize)]
pub(crate) struct Version {
    /// Version of the program, such as 0.1.0.
    version: &'static str,
    /// Commit that it was built from, 40 hexadecimal digits; null where it was built without git.
    commit: Option<&'static str>,
    /// Whether sources differed from that commit.
    modified: bool,
    /// When it was built, RFC 3339 in UTC; `SOURCE_DATE_EPOCH` where that was set.
    built: String,
    /// Target of the compiler, such as `x86_64-unknown-linux-gnu`.
    target: &'static str,
    /// Build profile: `debug` or `release`.
    profile: &'static str,
}

impl Version {
    /// The version of the running program.
    pub(crate) fn of_this_program() -> Self {
        let commit = env!("EBBTIDE_COMMIT");
        let built =
            env!("EBBTIDE_BUILT").parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: (!commit.is_empty()).then_some(commit),
            modified: env!("EBBTIDE_MODIFIED") == "true",
            built: built.unwrap_or(Timestamp::UNIX_EPOCH).to_string(),
            target: env!("EBBTIDE_TARGET"),
            profile: env!("EBBTIDE_PROFILE"),
        }
    }

    /// The short commit, with a mark where sources were modified.
    fn revision(&self) -> Option<String> {
        let short = self.commit.map(|commit| commit.get(..12).unwrap_or(commit))?;
        Some(format!("{short}{}", if self.modified { "-modified" } else { "" }))
    }

    /// For people, on one line: `0.1.0 (13c8360abcde 2026-11-22)`.
    fn line(&self) -> String {
        let date = self.built.split('T').next().unwrap_or_default();
        let words: Vec<String> = self.revision().into_iter().chain([date.to_owned()]).collect();
        format!("{} ({})", self.version, words.join(" "))
    }

    /// For people, with all that is known.
    fn lines(&self) -> String {
        let commit = match (self.commit, self.modified) {
            (None, _) => "unknown (built without git)".to_owned(),
            (Some(commit), false) => commit.to_owned(),
            (Some(commit), true) => format!("{commit}, with modified sources"),
        };
        let Self { built, target, profile, .. } = self;
        format!("{}\ncommit: {commit}\nbuilt: {built}\ntarget: {target}, {profile}", self.line())
    }
}

/// What `ebbtide -V` prints after the program's name.
pub(crate) fn short() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| Version::of_this_program().line());
    &TEXT
}

/// What `ebbtide --version` prints after the program's name.
pub(crate) fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| Version::of_this_program().lines());
    &TEXT
}

/// Version and commit, as results name the program that measured them: `0.1.0 (13c8360abcde)`. Without
/// the date, since two builds of a commit are the same program.
pub(crate) fn of_results() -> String {
    let version = Version::of_this_program();
    version
        .revision()
        .map_or_else(|| version.version.to_owned(), |revision| format!("{} ({revision})", version.version))
}

/// Prints the version as JSON.
pub(crate) fn print_json() {
    let value = serde_json::to_value(Version::of_this_program());
    text::print_json(&value.expect("a version is plain data"));
}
