//! Names that say nothing: refused for variables, parameters and types, outside tests.
//!
//! Those that exist already are counted by file in `xtask/names.toml`. The counts may shrink, not grow;
//! [`shrunk`] is the file with what is left. The syntax tree has no names inside the calls of macros.

use std::collections::BTreeMap;

use super::{Findings, Sources, rules::Names};
use crate::source::Defined;

/// Where the counts are.
pub(super) const KNOWN: &str = "xtask/names.toml";

const HEADING: &str = "\
# How many names each file has that xtask/tidy.toml refuses under [names]. They may shrink, not grow:
# `cargo xtask tidy --shrink` lowers the counts. The line of a file that moves moves with it.

";

/// How many refused names each file may have.
pub(super) type Known = BTreeMap<String, usize>;

/// The refused names of each file that has any.
type Refused<'a> = BTreeMap<&'a str, Vec<&'a Defined>>;

/// Checks that no file has more of them than is known, and that no known one is gone.
pub(super) fn check(sources: &Sources, names: &Names, known: &Known, findings: &mut Findings) {
    let refused = refused(sources, names);
    for (path, defined) in &refused {
        let allowed = known.get(*path).copied().unwrap_or(0);
        if defined.len() > allowed {
            let message = format!(
                "has {} names that say nothing, and {KNOWN} allows {allowed}. Rename what is new of: {}",
                defined.len(),
                places(defined)
            );
            findings.add(path, 0, message);
        }
    }
    for (path, allowed) in known {
        let left = refused.get(path.as_str()).map_or(0, Vec::len);
        if left < *allowed {
            let message =
                format!("{path} has {left} of {allowed} names left: run `cargo xtask tidy --shrink`");
            findings.add(KNOWN, 0, message);
        }
    }
}

/// The text of [`KNOWN`] where no count is higher than what is there.
pub(super) fn shrunk(sources: &Sources, names: &Names, known: &Known) -> String {
    let refused = refused(sources, names);
    let left = known.iter().filter_map(|(path, allowed)| {
        let count = refused.get(path.as_str()).map_or(0, Vec::len).min(*allowed);
        (count > 0).then(|| format!("{path:?} = {count}\n"))
    });
    HEADING.to_owned() + &left.collect::<String>()
}

/// How many there are of each name, the most frequent first.
pub(super) fn counts(sources: &Sources, names: &Names) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for defined in refused(sources, names).into_values().flatten() {
        *counts.entry(&defined.name).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    format!("names that say nothing: {}", words.join(", "))
}

fn refused<'a>(sources: &'a Sources, names: &Names) -> Refused<'a> {
    let types = || sources.values().flat_map(|source| &source.types);
    let is_repeated = |name: &String| {
        names.repeated.contains(name) && types().filter(|defined| defined.name == *name).count() > 1
    };
    let mut refused = Refused::new();
    for (path, source) in sources {
        let variables = source.variables.iter().filter(|defined| names.variables.contains(&defined.name));
        let types = source
            .types
            .iter()
            .filter(|defined| names.types.contains(&defined.name) || is_repeated(&defined.name));
        let defined: Vec<_> = variables.chain(types).collect();
        if !defined.is_empty() {
            refused.insert(path, defined);
        }
    }
    refused
}

/// Each name with its lines.
fn places(defined: &[&Defined]) -> String {
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for defined in defined {
        lines.entry(&defined.name).or_default().push(defined.line.to_string());
    }
    let places: Vec<_> =
        lines.iter().map(|(name, lines)| format!("`{name}` (line {})", lines.join(", "))).collect();
    places.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::Repo;

    /// The repository's own lists.
    fn names() -> Names {
        let rules: crate::tidy::Rules = toml::from_str(include_str!("../../tidy.toml")).unwrap();
        rules.names
    }

    fn sources(files: &[(&str, &str)]) -> Sources {
        let mut all = Sources::new();
        for (path, text) in files {
            let repo = Repo::from([(*path, &*format!("//! Doc.\n{text}"))]);
            all.extend(super::super::parse(&repo, &mut Findings::default()));
        }
        all
    }

    fn found(files: &[(&str, &str)], known: &[(&str, usize)]) -> Vec<String> {
        let known = known.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect();
        let mut findings = Findings::default();
        check(&sources(files), &names(), &known, &mut findings);
        findings.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_variable_a_parameter_and_a_type_that_say_nothing_are_caught() {
        for text in [
            "fn f(of: u8) {}",
            "fn f() { let one = 1; }",
            "fn f() { if let Some(at) = g() {} }",
            "fn f() { for (_, what) in g() {} }",
            "fn f() { g(|it| it); }",
            "trait T { fn f(&self, of: u8); }",
            "struct Little;",
            "enum Stint {}",
            "type Beat = u8;",
            "struct LastWords(u8);",
            "trait Safer {}",
        ] {
            let caught = found(&[("a.rs", text)], &[]);
            assert!(caught.len() == 1 && caught[0].contains("(line 2)"), "{text}: {caught:?}");
        }
    }

    #[test]
    fn what_names_no_variable_and_what_is_for_tests_is_not_refused() {
        for text in [
            "fn of() {}",
            "struct S { at: u8 }",
            "fn f() { let S { at, .. } = g(); }",
            "#[cfg(test)] mod tests { fn f(one: u8) {} struct Stint; }",
            "#[test] fn it_works() { let what = 1; }",
        ] {
            assert_eq!(found(&[("a.rs", text)], &[]), Vec::<String>::new(), "{text}");
        }
        assert_eq!(found(&[("tests/a.rs", "fn f(one: u8) {}")], &[]), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_several_types_have_is_caught_at_each() {
        let both = [("a.rs", "struct Shape;"), ("b.rs", "enum Shape {}")];
        assert_eq!(found(&both, &[]).len(), 2);
        assert_eq!(found(&both[..1], &[]), Vec::<String>::new(), "one type has the name");
    }

    #[test]
    fn known_names_may_shrink_and_not_grow() {
        let file = [("a.rs", "fn f(one: u8) { let at = 1; }")];
        assert_eq!(found(&file, &[("a.rs", 2)]), Vec::<String>::new());
        let grown = found(&file, &[("a.rs", 1)]);
        assert!(grown[0].starts_with("a.rs: has 2 names that say nothing"), "{grown:?}");
        assert!(grown[0].ends_with("`at` (line 2); `one` (line 2)"), "{grown:?}");
        for known in [[("a.rs", 3)], [("gone.rs", 2)]] {
            let caught = found(&file, &known);
            assert!(caught.iter().any(|finding| finding.contains("tidy --shrink")), "{caught:?}");
        }
    }

    #[test]
    fn the_shrunk_file_lowers_counts_and_raises_none() {
        let known = Known::from([("a.rs".into(), 1), ("b.rs".into(), 5), ("gone.rs".into(), 2)]);
        let sources = sources(&[("a.rs", "fn f(one: u8, at: u8) {}"), ("b.rs", "fn f(of: u8) {}")]);
        let text = shrunk(&sources, &names(), &known);
        let read: Known = toml::from_str(&text).unwrap();
        assert_eq!(read, Known::from([("a.rs".into(), 1), ("b.rs".into(), 1)]));
        assert_eq!(counts(&sources, &names()), "names that say nothing: at 1, of 1, one 1");
    }
}
