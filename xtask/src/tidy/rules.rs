//! The data of the rules: the shape of `xtask/tidy.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// All of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rules {
    /// What each crate of the workspace may do.
    pub(super) crates: BTreeMap<String, Crate>,
    /// Outside crates that only these of ours may depend on.
    pub(super) only: BTreeMap<String, Vec<String>>,
    pub(super) pure: Pure,
    /// What else the code of some crates may not name.
    #[serde(default)]
    pub(super) bans: Vec<Ban>,
    #[serde(default)]
    pub(super) modules: Modules,
    #[serde(default)]
    pub(super) paths: Paths,
    pub(super) repeat: Repeat,
    pub(super) sizes: Sizes,
}

/// One crate of ours.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Crate {
    /// Crates of ours that it may depend on.
    pub(super) edges: Vec<String>,
    /// More that its tests may depend on.
    #[serde(default)]
    pub(super) tests: Vec<String>,
    /// Whether it may contain `unsafe`.
    #[serde(default)]
    pub(super) unsafe_code: bool,
}

/// Crates without clock, files, threads and network.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pure {
    pub(super) crates: Vec<String>,
    /// Paths, whole or from some `::` on.
    pub(super) banned: Vec<String>,
    #[serde(default)]
    pub(super) exceptions: Vec<Impurity>,
}

/// A banned path that one file may name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Impurity {
    pub(super) file: String,
    pub(super) path: String,
    pub(super) reason: String,
}

/// Paths that the code of some crates may not name, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ban {
    pub(super) crates: Vec<String>,
    /// Paths, whole or from some `::` on; a macro's name is one.
    pub(super) paths: Vec<String>,
    pub(super) reason: String,
    /// Files that may name them.
    #[serde(default)]
    pub(super) exceptions: Vec<Excused>,
}

/// A file that may name what its crate is banned from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Excused {
    pub(super) file: String,
    pub(super) reason: String,
}

/// Circles of modules inside a crate.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Modules {
    #[serde(default)]
    pub(super) known: Vec<KnownCycle>,
}

/// Modules of one parent that know each other in a circle: their number may shrink, not grow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownCycle {
    #[serde(rename = "crate")]
    pub(super) krate: String,
    pub(super) modules: Vec<String>,
    pub(super) reason: String,
}

impl KnownCycle {
    pub(super) fn set(&self) -> BTreeSet<String> {
        self.modules.iter().cloned().collect()
    }
}

/// Attributes `#[path]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paths {
    /// Those that lead out of their package: their number may shrink, not grow.
    #[serde(default)]
    pub(super) known: Vec<KnownPath>,
}

/// A `#[path]` that leads out of its package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownPath {
    pub(super) file: String,
    pub(super) path: String,
    pub(super) reason: String,
}

/// Which tests `cargo xtask flaky` leaves out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Repeat {
    /// Test programs by package and name, which give the same result each time.
    pub(super) deterministic: Vec<String>,
    /// Paths that the code of such a program may not name, whole or from some `::` on.
    pub(super) nondeterministic: Vec<String>,
}

/// How long things may be, in lines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sizes {
    pub(super) file_lines: usize,
    pub(super) function_lines: usize,
    #[serde(default)]
    pub(super) exceptions: Vec<Ratchet>,
}

/// A file that is longer: it may shrink, not grow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ratchet {
    pub(super) file: String,
    pub(super) lines: usize,
    pub(super) reason: String,
}
