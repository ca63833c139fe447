//! The modules of a crate do not know each other in a circle.
//!
//! A crate's graph has its modules as nodes, each by its path from the root: `a`, `a::b`. Edges are between modules of
//! the same parent. A module has an edge to each of them that its code names, or the code of a module below it, tests
//! apart: by a path from `crate` or `super`, or by a name that their parent re-exports. What the parent itself names is no
//! edge: it declares them. Circles that exist already are listed in `xtask/tidy.toml`, and may only become smaller.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Findings, Sources,
    rules::{KnownCycle, Rules},
};
use crate::source::Source;

/// Where one module names another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FirstUse {
    path: String,
    line: usize,
}

/// The modules that each module names of those with the same parent, with the first place of it.
type Graph = BTreeMap<String, BTreeMap<String, FirstUse>>;

/// Checks every crate; `folders` are those of the crates by name.
pub(super) fn check(
    sources: &Sources,
    folders: &BTreeMap<String, String>,
    rules: &Rules,
    findings: &mut Findings,
) {
    for (name, folder) in folders {
        let known: Vec<&KnownCycle> =
            rules.modules.known.iter().filter(|cycle| cycle.krate == *name).collect();
        let graph = graph(sources, &join(folder, "src/"));
        let circles = circles(&graph);
        for circle in &circles {
            if !known.iter().any(|known| circle.is_subset(&known.set())) {
                report(&graph, circle, findings);
            }
        }
        let in_a_circle: BTreeSet<&String> = circles.iter().flatten().collect();
        for known in known {
            let left: Vec<&str> =
                known.modules.iter().filter(|m| !in_a_circle.contains(m)).map(String::as_str).collect();
            if !left.is_empty() || known.reason.is_empty() {
                let message = format!(
                    "modules.known of {name}: {} no longer in a circle, or without a reason: shorten the list",
                    left.join(", ")
                );
                findings.add("xtask/tidy.toml", 0, message);
            }
        }
    }
    for known in rules.modules.known.iter().filter(|known| !folders.contains_key(&known.krate)) {
        findings.add("xtask/tidy.toml", 0, format!("modules.known: there is no crate {}", known.krate));
    }
}

fn join(folder: &str, rest: &str) -> String {
    if folder.is_empty() { rest.to_owned() } else { format!("{folder}/{rest}") }
}

/// The module of a file below `src`, from the root on; empty for the root itself.
fn module_of(file: &str) -> Vec<&str> {
    let stem = file.trim_end_matches(".rs");
    let mut module: Vec<&str> = stem.split('/').collect();
    if matches!(module.last(), Some(&"mod")) || matches!(module[..], ["lib" | "main"]) {
        module.pop();
    }
    module
}

fn graph(sources: &Sources, folder: &str) -> Graph {
    let files: Vec<(&String, Vec<&str>, &Source)> = sources
        .iter()
        .filter_map(|(path, source)| Some((path, module_of(path.strip_prefix(folder)?), source)))
        .collect();
    let modules: BTreeSet<&[&str]> =
        files.iter().flat_map(|(_, module, _)| (1..=module.len()).map(|depth| &module[..depth])).collect();
    // Names that a parent has of one of its modules, by the parent and the name.
    let mut re_exported: BTreeMap<(&[&str], &str), Vec<&str>> = BTreeMap::new();
    for (_, parent, source) in &files {
        for named in source.named.iter().filter(|named| named.is_import) {
            // From the root, or from here.
            let from_here: Vec<&str> = parent.iter().copied().chain(named.path.split("::")).collect();
            let from = from_root(&named.path, parent).unwrap_or(from_here);
            let module = from.get(..=parent.len()).filter(|module| module.starts_with(parent));
            if let (Some(module), [_, .., last]) = (module, &from[..])
                && from.len() > module.len()
                && modules.contains(module)
            {
                re_exported.insert((parent.as_slice(), *last), module.to_vec());
            }
        }
    }
    let mut graph = Graph::new();
    for (path, module, source) in &files {
        for named in &source.named {
            let Some(mut to) = from_root(&named.path, module) else { continue };
            let common = module.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let (Some(from), true) = (module.get(..=common), to.len() > common) else { continue };
            to.truncate(common + 1);
            if !modules.contains(to.as_slice()) {
                let Some(module) = re_exported.get(&(&module[..common], to[common])) else { continue };
                to.clone_from(module);
            }
            if to != from {
                let place = || FirstUse { path: (*path).clone(), line: named.line };
                graph.entry(from.join("::")).or_default().entry(to.join("::")).or_insert_with(place);
            }
        }
    }
    graph
}

/// A path from the crate's root on that a module has from `crate`, `self` or `super`; None for any other path.
fn from_root<'a>(path: &'a str, module: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut segments = path.split("::").peekable();
    let mut full = match segments.next()? {
        "crate" => Vec::new(),
        "self" => module.to_vec(),
        "super" => module.split_last()?.1.to_vec(),
        _ => return None,
    };
    while segments.next_if_eq(&"super").is_some() {
        full.pop()?;
    }
    full.extend(segments);
    Some(full)
}

/// The largest sets of modules each of which reaches all others.
fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|from| (from, reach(graph, from))).collect();
    let both = |a: &String, b: &String| {
        reached.get(a).is_some_and(|set| set.contains(b)) && reached.get(b).is_some_and(|set| set.contains(a))
    };
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for from in graph.keys().filter(|from| both(from, from)) {
        if !circles.iter().any(|circle| circle.contains(from)) {
            circles.push(graph.keys().filter(|to| both(from, to)).cloned().collect());
        }
    }
    circles
}

/// What a module reaches, over one edge or more.
fn reach<'a>(graph: &'a Graph, from: &String) -> BTreeSet<&'a String> {
    let next = |module: &String| graph.get(module).into_iter().flat_map(BTreeMap::keys);
    let mut reached: BTreeSet<&String> = BTreeSet::new();
    let mut left: Vec<&String> = next(from).collect();
    while let Some(module) = left.pop() {
        if reached.insert(module) {
            left.extend(next(module));
        }
    }
    reached
}

/// Reports which edges a circle consists of, at the place of the first.
fn report(graph: &Graph, circle: &BTreeSet<String>, findings: &mut Findings) {
    let edges = circle.iter().flat_map(|from| {
        let to = graph.get(from).into_iter().flatten().filter(|(to, _)| circle.contains(*to));
        to.map(move |(to, place)| (from, to, place))
    });
    let edges: Vec<_> = edges.collect();
    let shown: Vec<String> = edges
        .iter()
        .map(|(from, to, place)| format!("{from} -> {to} ({}:{})", place.path, place.line))
        .collect();
    if let Some((_, _, place)) = edges.first() {
        let message = format!(
            "modules of one crate know each other in a circle: {}; move what they share to a module below both",
            shown.join(", ")
        );
        findings.add(&place.path, place.line, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::Modules;

    fn rules(known: Vec<KnownCycle>) -> Rules {
        let text = "crates = {}\nonly = {}\n[pure]\ncrates = []\nbanned = []\n[repeat]\ndeterministic = []\nnondeterministic = []\n\
                    [sizes]\nfile_lines = 1\nfunction_lines = 1\n";
        Rules { modules: Modules { known }, ..toml::from_str(text).unwrap() }
    }

    fn known(modules: &[&str]) -> KnownCycle {
        KnownCycle {
            krate: "ebbtide-x".into(),
            modules: modules.iter().map(|module| (*module).to_owned()).collect(),
            reason: "grown".into(),
        }
    }

    fn found(files: &[(&str, &str)], known: Vec<KnownCycle>) -> Vec<String> {
        let sources = files
            .iter()
            .map(|(path, text)| (format!("crates/x/src/{path}"), Source::parse(text, false).unwrap()))
            .collect();
        let folders = [("ebbtide-x".to_owned(), "crates/x".to_owned())].into();
        let mut findings = Findings::default();
        check(&sources, &folders, &rules(known), &mut findings);
        findings.0.into_iter().map(|finding| finding.message).collect()
    }

    const ROOT: (&str, &str) = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::Thing;\n");

    #[test]
    fn a_planted_circle_is_caught_by_every_kind_of_path() {
        for (a, b) in [
            ("use crate::b::B;", "use crate::a::A;"),
            ("use crate::{b, c};", "fn f() { crate::a::g(); }"),
            ("use super::b::B;", "impl super::a::A for u8 {}"),
        ] {
            let messages = found(&[ROOT, ("a.rs", a), ("b.rs", b), ("c.rs", "")], Vec::new());
            assert_eq!(messages.len(), 1, "{a} {b}");
            assert!(messages[0].contains("a -> b (crates/x/src/a.rs:1), b -> a"), "{messages:?}");
        }
    }

    #[test]
    fn a_circle_through_a_file_below_a_module_and_through_a_re_export_is_caught() {
        let deep = ("a/deep.rs", "use super::super::b::B;");
        let through = ("b.rs", "use crate::Thing;");
        let messages =
            found(&[ROOT, ("a/mod.rs", "mod deep;"), deep, through, ("c.rs", "use crate::a;")], Vec::new());
        assert!(
            messages[0].contains("a -> b") && messages[0].contains("b -> c") && messages.len() == 1,
            "{messages:?}"
        );
    }

    #[test]
    fn a_planted_circle_below_the_top_is_caught_by_every_kind_of_path() {
        let parent = ("a/mod.rs", "mod x;\nmod y;\npub use y::Thing;\npub use self::x::Other;\n");
        for (x, y) in [
            ("use super::y::Y;", "use super::x::X;"),
            ("use crate::a::y;", "fn f() { crate::a::x::g(); }"),
            ("use super::Thing;", "use super::Other;"),
            ("use crate::a::Thing;", "use super::super::a::x::X;"),
        ] {
            let messages = found(&[ROOT, parent, ("a/x.rs", x), ("a/y.rs", y)], Vec::new());
            assert_eq!(messages.len(), 1, "{x} {y}");
            assert!(
                messages[0].contains("a::x -> a::y (crates/x/src/a/x.rs:1), a::y -> a::x"),
                "{messages:?}"
            );
        }
        let deep = ("a/x/deep.rs", "use crate::a::y::Y;");
        let files = [ROOT, parent, ("a/x.rs", "mod deep;"), deep, ("a/y.rs", "use super::x;")];
        assert_eq!(found(&files, Vec::new()).len(), 1);
        assert_eq!(found(&files, vec![known(&["a::x", "a::y"])]), [""; 0]);
        let left = found(&files, vec![known(&["a::x", "a::y", "a::z"])]);
        assert!(left[0].contains("a::z no longer in a circle"), "{left:?}");
    }

    #[test]
    fn a_parent_and_its_modules_are_no_circle_and_a_function_of_the_parent_is_not_its_modules() {
        let parent = ("a/mod.rs", "mod x;\nmod y;\npub fn run() { y::run(); x::run(); }\n");
        let files = [ROOT, parent, ("a/x.rs", "use super::run;"), ("a/y.rs", "use super::{run, x};")];
        assert_eq!(found(&files, Vec::new()), [""; 0]);
    }

    #[test]
    fn modules_that_stand_on_each_other_are_no_circle_and_tests_may_name_anything() {
        let a = "use crate::b::B;\nuse super::c;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n";
        let b = "use crate::c::C;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n";
        let inner = ("a/inner.rs", "use super::b_of_a; use super::Own;");
        assert_eq!(found(&[ROOT, ("a/mod.rs", a), inner, ("b.rs", b), ("c.rs", "")], Vec::new()), [""; 0]);
    }

    #[test]
    fn a_known_circle_may_become_smaller_and_not_larger() {
        let two = [ROOT, ("a.rs", "use crate::b;"), ("b.rs", "use crate::a;"), ("c.rs", "")];
        assert_eq!(found(&two, vec![known(&["a", "b"])]), [""; 0]);
        let left = found(&two, vec![known(&["a", "b", "c"])]);
        assert!(left[0].contains("c no longer in a circle"), "{left:?}");
        let three = [ROOT, ("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::a;")];
        assert_eq!(found(&three, vec![known(&["a", "b"])]).len(), 1);
    }
}
