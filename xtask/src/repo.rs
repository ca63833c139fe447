//! The files of the repository, read once; tests make their own.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use walkdir::{DirEntry, WalkDir};

/// Paths, relative to the root with `/` between their parts, and the text of those that are text.
#[derive(Debug, Default)]
pub(crate) struct Repo {
    files: BTreeMap<String, Option<String>>,
}

impl Repo {
    /// Reads everything below `root` apart from build output and git's own files.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let wanted = |entry: &DirEntry| {
            entry.depth() == 0
                || !matches!(entry.file_name().to_str(), Some(".git" | "target" | "node_modules"))
        };
        let mut files = BTreeMap::new();
        for entry in WalkDir::new(root).into_iter().filter_entry(wanted) {
            let entry = entry?;
            if !entry.file_type().is_file() {
                continue;
            }
            let path = entry.path().strip_prefix(root).context("walked out of the root")?;
            let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(path.to_string_lossy().into_owned(), String::from_utf8(bytes).ok());
        }
        Ok(Self { files })
    }

    /// The text files whose path ends so.
    pub(crate) fn texts<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(suffix))
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether a file or a folder of this name exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.keys().any(|file| file.starts_with(&folder))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Repo {
    fn from(files: [(&str, &str); N]) -> Self {
        Self { files: files.into_iter().map(|(path, text)| (path.into(), Some(text.into()))).collect() }
    }
}
