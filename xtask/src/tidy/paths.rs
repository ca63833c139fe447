//! `#[path]` stays in its package: what two packages share is a crate.

use std::collections::BTreeMap;

use super::{Findings, rules::Paths};
use crate::repo::Repo;

/// Checks each `#[path]` of each Rust file. `folders` are those of the workspace's packages by name, empty for the one at the
/// root.
pub(super) fn check(repo: &Repo, folders: &BTreeMap<String, String>, paths: &Paths, findings: &mut Findings) {
    let mut used = vec![false; paths.known.len()];
    for (file, text) in repo.texts(".rs") {
        for (number, line) in (1..).zip(text.lines()) {
            let Some(path) = path_of(line).filter(|path| leads_out(file, path, folders)) else { continue };
            match paths.known.iter().position(|known| known.file == file && known.path == path) {
                Some(place) => used[place] = true,
                None => findings.add(
                    file,
                    number,
                    format!("#[path = \"{path}\"] leads out of its package: put what is shared into crates/testing"),
                ),
            }
        }
    }
    for (known, used) in paths.known.iter().zip(used) {
        if !used || known.reason.is_empty() {
            let message = format!("{}: no such #[path] any more, or no reason", known.file);
            findings.add("xtask/tidy.toml", 0, message);
        }
    }
}

/// The path of an attribute that stands on a line of its own.
fn path_of(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("#[path = \"")?.split_once('"').map(|(path, _)| path)
}

/// Whether a path that a file names lies in another package than the file.
fn leads_out(file: &str, path: &str, folders: &BTreeMap<String, String>) -> bool {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    package(file, folders) != package(&parts.join("/"), folders)
}

/// The folder of the package that a file lies in; empty for the one at the root.
fn package<'a>(file: &str, folders: &'a BTreeMap<String, String>) -> &'a str {
    let holds = |folder: &&String| file.starts_with(&format!("{folder}/"));
    folders.values().filter(holds).max_by_key(|folder| folder.len()).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::KnownPath;

    /// The findings for one file with one attribute.
    fn found(file: &str, path: &str, known: Vec<KnownPath>) -> Vec<String> {
        let folder = |name: &str, folder: &str| (name.to_owned(), folder.to_owned());
        let folders = BTreeMap::from([
            folder("ebbtide", ""),
            folder("ebbtide-lab", "crates/lab"),
            folder("ebbtide-twin", "crates/twin"),
        ]);
        let repo = Repo::from([(file, &*format!("//! Doc.\n#[path = \"{path}\"]\nmod a;\n"))]);
        let mut findings = Findings::default();
        check(&repo, &folders, &Paths { known }, &mut findings);
        findings.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_path_out_of_its_package_is_caught_and_one_inside_is_not() {
        let caught = found("crates/twin/benches/a.rs", "../../../benches/support/tiny.rs", Vec::new());
        assert!(caught[0].starts_with("crates/twin/benches/a.rs:2: #[path = "), "{caught:?}");
        assert_eq!(found("crates/twin/src/a.rs", "../../lab/src/b.rs", Vec::new()).len(), 1);
        assert_eq!(found("benches/a.rs", "../crates/lab/tests/b.rs", Vec::new()).len(), 1);
        for (file, path) in [
            ("crates/twin/benches/a.rs", "../tests/b.rs"),
            ("crates/twin/src/a.rs", "a/tests.rs"),
            ("benches/a.rs", "../tests/support/b.rs"),
        ] {
            assert_eq!(found(file, path, Vec::new()), Vec::<String>::new(), "{file}");
        }
    }

    #[test]
    fn a_path_that_is_known_is_excused_as_long_as_it_is_there_and_has_a_reason() {
        let known = |reason: &str| KnownPath {
            file: "crates/twin/src/a.rs".into(),
            path: "../../lab/src/b.rs".into(),
            reason: reason.into(),
        };
        let found = |path, reason| found("crates/twin/src/a.rs", path, vec![known(reason)]);
        assert_eq!(found("../../lab/src/b.rs", "types of lab"), Vec::<String>::new());
        assert!(found("../../lab/src/b.rs", "")[0].contains("no reason"));
        assert!(found("b.rs", "types of lab")[0].contains("no such #[path] any more"));
    }
}
