//! Rules for Rust files: docs, sizes, `unsafe`, purity, and notes left for later.

use std::collections::BTreeMap;

use super::{
    Findings, Sources,
    rules::{Rules, Sizes},
};
use crate::{repo::Repo, source::Source};

/// Checks each file by itself.
pub(super) fn check(repo: &Repo, sources: &Sources, rules: &Rules, findings: &mut Findings) {
    for (path, text) in repo.texts(".rs") {
        if let Some(source) = sources.get(path) {
            check_size(path, text.lines().count(), source, &rules.sizes, findings);
            if !source.has_module_doc {
                findings.add(path, 1, "has no `//!` text that says what the module is for");
            }
            if is_crate_root(path) && !source.forbids_unsafe && !may_be_unsafe(path, rules) {
                findings.add(
                    path,
                    1,
                    "must say `#![forbid(unsafe_code)]`: only the device crate may use unsafe",
                );
            }
        }
    }
    for exception in &rules.sizes.exceptions {
        if exception.reason.is_empty() || !repo.has(&exception.file) {
            findings.add("xtask/tidy.toml", 0, format!("{}: no such file, or no reason", exception.file));
        }
    }
    for suffix in [".rs", ".sh", ".toml", "dev"] {
        for (path, text) in repo.texts(suffix) {
            check_notes(path, text, findings);
        }
    }
}

fn check_size(path: &str, lines: usize, source: &Source, sizes: &Sizes, findings: &mut Findings) {
    let limit = sizes
        .exceptions
        .iter()
        .find(|exception| exception.file == path)
        .map_or(sizes.file_lines, |exception| exception.lines);
    if lines > limit {
        findings.add(path, 0, format!("has {lines} lines, more than {limit}: split it along its subjects"));
    }
    for function in source.functions.iter().filter(|function| function.lines > sizes.function_lines) {
        findings.add(
            path,
            function.line,
            format!("{} has {} lines, more than {}", function.name, function.lines, sizes.function_lines),
        );
    }
}

fn is_crate_root(path: &str) -> bool {
    ["src/main.rs", "src/lib.rs"].iter().any(|root| path == *root || path.ends_with(&format!("/{root}")))
}

fn may_be_unsafe(path: &str, rules: &Rules) -> bool {
    rules
        .crates
        .iter()
        .filter(|(_, krate)| krate.unsafe_code)
        .any(|(name, _)| path.starts_with(&format!("crates/{}/", name.trim_start_matches("ebbtide-"))))
}

/// A note for later must have what and why in four words or more.
fn check_notes(path: &str, text: &str, findings: &mut Findings) {
    for (number, line) in text.lines().enumerate() {
        for word in [concat!("TO", "DO"), concat!("FIX", "ME")] {
            let Some((before, after)) = line.split_once(word) else { continue };
            let within_a_word = before.ends_with(|c: char| c.is_alphanumeric())
                || after.starts_with(|c: char| c.is_alphanumeric());
            let explained = after.strip_prefix(':').is_some_and(|text| text.split_whitespace().count() >= 4);
            if !within_a_word && !explained {
                findings.add(
                    path,
                    number + 1,
                    format!("{word} without an explanation: `{word}: what, and why not now`"),
                );
            }
        }
    }
}

/// Checks that pure crates name no clock, file, thread or socket.
pub(super) fn check_purity(
    sources: &Sources,
    folders: &BTreeMap<String, String>,
    rules: &Rules,
    findings: &mut Findings,
) {
    let pure = &rules.pure;
    for (name, folder) in folders.iter().filter(|(name, _)| pure.crates.contains(name)) {
        for (path, source) in sources.iter().filter(|(path, _)| path.starts_with(&format!("{folder}/"))) {
            for named in &source.named {
                let Some(banned) = pure.banned.iter().find(|banned| names(&named.path, banned)) else {
                    continue;
                };
                let excused =
                    |e: &super::rules::Impurity| e.file == *path && e.path == *banned && !e.reason.is_empty();
                if !pure.exceptions.iter().any(excused) {
                    let message =
                        format!("{name} is pure and may not name {}: let the caller pass it in", named.path);
                    findings.add(path, named.line, message);
                }
            }
        }
    }
}

/// Checks that no crate names what it is banned from.
pub(super) fn check_bans(
    sources: &Sources,
    folders: &BTreeMap<String, String>,
    rules: &Rules,
    findings: &mut Findings,
) {
    for ban in &rules.bans {
        for excused in &ban.exceptions {
            if excused.reason.is_empty() || !sources.contains_key(&excused.file) {
                findings.add("xtask/tidy.toml", 0, format!("{}: no such file, or no reason", excused.file));
            }
        }
        let is_excused = |path: &str| ban.exceptions.iter().any(|excused| excused.file == path);
        for name in &ban.crates {
            let Some(folder) = folders.get(name) else {
                findings.add("xtask/tidy.toml", 0, format!("a ban names {name}, and there is no such crate"));
                continue;
            };
            let inside = |path: &str| path.starts_with(&format!("{folder}/")) && !is_excused(path);
            for (path, source) in sources.iter().filter(|(path, _)| inside(path)) {
                let banned = |path: &str| ban.paths.iter().any(|banned| names(path, banned));
                for named in source.named.iter().filter(|named| banned(&named.path)) {
                    let message = format!("{name} may not name {}: {}", named.path, ban.reason);
                    findings.add(path, named.line, message);
                }
            }
        }
    }
}

/// Whether a path is the banned one, is inside it, or ends with it.
pub(super) fn names(path: &str, banned: &str) -> bool {
    path == banned || path.starts_with(&format!("{banned}::")) || path.ends_with(&format!("::{banned}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        toml::from_str(
            r#"
            [crates.ebbtide-device]
            edges = []
            unsafe_code = true
            [crates.ebbtide-twin]
            edges = []
            [only]
            [pure]
            crates = ["ebbtide-twin"]
            banned = ["std::fs", "Instant::now"]
            exceptions = [{ file = "crates/twin/src/load.rs", path = "std::fs", reason = "traces" }]
            [[bans]]
            crates = ["ebbtide-twin"]
            paths = ["println", "serde_json::to_string"]
            reason = "adapters print"
            [[bans]]
            crates = ["ebbtide-twin"]
            paths = ["fs::write", "File::create"]
            reason = "by descriptor"
            exceptions = [{ file = "long.rs", reason = "kernel files" }]
            [repeat]
            deterministic = []
            nondeterministic = []
            [sizes]
            file_lines = 4
            function_lines = 3
            exceptions = [{ file = "long.rs", lines = 6, reason = "a table" }]
            "#,
        )
        .unwrap()
    }

    /// The findings for one file, with the one that the rules name.
    fn found(path: &str, text: &str) -> Vec<String> {
        let repo = Repo::from([("long.rs", "//! Doc."), (path, text)]);
        let (mut findings, rules) = (Findings::default(), rules());
        let sources = super::super::parse(&repo, &mut findings);
        check(&repo, &sources, &rules, &mut findings);
        let folders = BTreeMap::from([("ebbtide-twin".into(), "crates/twin".into())]);
        check_purity(&sources, &folders, &rules, &mut findings);
        check_bans(&sources, &folders, &rules, &mut findings);
        findings.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_without_a_module_doc_is_caught() {
        assert_eq!(found("a.rs", "//! Doc.\n"), Vec::<String>::new());
        assert!(found("a.rs", "fn f() {}\n")[0].contains("a.rs:1: has no `//!`"));
    }

    #[test]
    fn a_long_file_is_caught_and_an_excused_one_may_not_grow() {
        assert!(found("a.rs", "//! Doc.\n\n\n\n\n")[0].contains("has 5 lines, more than 4"));
        assert_eq!(found("long.rs", "//! Doc.\n\n\n\n\n\n"), Vec::<String>::new());
        assert!(found("long.rs", "//! Doc.\n\n\n\n\n\n\n")[0].contains("more than 6"));
    }

    #[test]
    fn a_long_function_is_caught() {
        assert!(found("a.rs", "//! D\nfn f() {\n\n\n}")[1].contains("a.rs:2: f has 4 lines, more than 3"));
    }

    #[test]
    fn a_crate_that_does_not_forbid_unsafe_is_caught() {
        assert!(found("crates/twin/src/lib.rs", "//! Doc.")[0].contains("forbid(unsafe_code)"));
        assert_eq!(found("crates/device/src/lib.rs", "//! Doc."), Vec::<String>::new());
        assert_eq!(found("src/main.rs", "//! Doc.\n#![forbid(unsafe_code)]"), Vec::<String>::new());
    }

    #[test]
    fn a_clock_or_file_in_a_pure_crate_is_caught() {
        let fault = |text: &str| found("crates/twin/src/a.rs", &format!("//! Doc.\n{text}"));
        assert!(fault("use std::{fs::File, mem};")[0].contains("a.rs:2: ebbtide-twin is pure"));
        assert!(fault("fn f() { time::Instant::now(); }")[0].contains("Instant::now"));
        assert_eq!(fault("#[cfg(test)] mod t { use std::fs; }"), Vec::<String>::new());
        assert_eq!(found("crates/twin/src/load.rs", "//! Doc.\nuse std::fs;"), Vec::<String>::new());
        assert_eq!(found("crates/device/src/a.rs", "//! Doc.\nuse std::fs;"), Vec::<String>::new());
    }

    #[test]
    fn a_banned_macro_or_function_is_caught_in_its_crate_alone() {
        let code = "//! Doc.\nfn f() { println!(); }\nfn g() { serde_json::to_string(&1); }";
        let caught = found("crates/twin/src/a.rs", code);
        assert_eq!(caught[0], "crates/twin/src/a.rs:2: ebbtide-twin may not name println: adapters print");
        assert!(caught[1].contains("a.rs:3: ebbtide-twin may not name serde_json::to_string"), "{caught:?}");
        assert_eq!(found("crates/device/src/a.rs", code), Vec::<String>::new());
        let tests = "//! Doc.\n#[cfg(test)] mod t { fn f() { println!(); } }";
        assert_eq!(found("crates/twin/src/a.rs", tests), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_a_ban_excuses_may_name_what_is_banned_and_must_exist() {
        let rules = |file: &str| -> Rules {
            let mut rules = rules();
            rules.bans[1].exceptions[0].file = file.to_owned();
            rules
        };
        let found = |file: &str, path: &str| {
            let text = "//! Doc.\nfn f() { std::fs::write(\"a\", \"b\"); }";
            let repo = Repo::from([("crates/twin/src/kernel.rs", "//! Doc."), (path, text)]);
            let mut findings = Findings::default();
            let sources = super::super::parse(&repo, &mut findings);
            let folders = BTreeMap::from([("ebbtide-twin".into(), "crates/twin".into())]);
            check_bans(&sources, &folders, &rules(file), &mut findings);
            findings.0.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (kernel, other) = ("crates/twin/src/kernel.rs", "crates/twin/src/a.rs");
        assert_eq!(found(kernel, kernel), Vec::<String>::new());
        assert!(found(kernel, other)[0].contains("a.rs:2: ebbtide-twin may not name std::fs::write"));
        assert!(found("crates/twin/src/gone.rs", "a.rs")[0].contains("no such file"));
    }

    /// The repository's own ban of writing by path, on a planted file of each crate that it is for.
    #[test]
    fn a_write_by_path_in_the_crates_of_servers_is_caught() {
        let text = include_str!("../../tidy.toml");
        let rules: Rules = toml::from_str(text).unwrap();
        for name in ["mysql", "lab", "crash"] {
            let folders = BTreeMap::from([(format!("ebbtide-{name}"), format!("crates/{name}"))]);
            let path = format!("crates/{name}/src/planted.rs");
            for call in [
                "std::fs::write(a, b)",
                "fs::rename(a, b)",
                "File::create(a)",
                "std::fs::OpenOptions::new()",
                "std::os::unix::fs::chown(a, None, None)",
                "std::fs::remove_dir_all(a)",
                "std::fs::create_dir(a)",
                "std::fs::copy(a, b)",
            ] {
                let repo = Repo::from([(path.as_str(), &*format!("//! Doc.\nfn f() {{ {call}; }}"))]);
                let mut findings = Findings::default();
                let sources = super::super::parse(&repo, &mut findings);
                check_bans(&sources, &folders, &rules, &mut findings);
                let caught = findings.0.iter().any(|finding| finding.path == path && finding.line == 2);
                assert!(caught, "{name}: {call}");
            }
        }
    }

    #[test]
    fn a_note_without_an_explanation_is_caught() {
        let note = |text: &str| found("a.sh", &format!("# {}{text}", concat!("TO", "DO")));
        assert!(note("")[0].contains("without an explanation"));
        assert!(note(": later")[0].contains("without an explanation"));
        assert_eq!(note(": count holes once the store knows them"), Vec::<String>::new());
    }
}
