//! Who may depend on whom.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata};

use super::{
    Findings,
    rules::{Crate, Rules},
};

/// One dependency of a crate of ours.
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    tests_only: bool,
}

/// Compares what cargo reports with the list of allowed edges.
pub(super) fn check(metadata: &Metadata, rules: &Rules, findings: &mut Findings) {
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    for name in ours.iter().filter(|name| !rules.crates.contains_key(**name)) {
        findings.add(
            "xtask/tidy.toml",
            0,
            format!("the crate {name} is missing: say which crates it may know"),
        );
    }
    let edges = metadata.packages.iter().flat_map(|package| {
        package.dependencies.iter().map(|dependency| Edge {
            from: &package.name,
            to: &dependency.name,
            tests_only: dependency.kind == DependencyKind::Development,
        })
    });
    check_edges(edges, &ours, rules, findings);
}

fn check_edges<'a>(
    edges: impl Iterator<Item = Edge<'a>>,
    ours: &BTreeSet<&str>,
    rules: &Rules,
    findings: &mut Findings,
) {
    let nothing = Crate::default();
    for Edge { from, to, tests_only } in edges {
        let allowed = rules.crates.get(from).unwrap_or(&nothing);
        let in_list = |list: &[String]| list.iter().any(|name| name == to);
        if ours.contains(to) && !in_list(&allowed.edges) && !(tests_only && in_list(&allowed.tests)) {
            findings.add(
                &manifest(from),
                0,
                format!(
                    "{from} may not depend on {to}; it may know {}. Move the code, or argue the edge in \
                     docs/decisions/ and xtask/tidy.toml",
                    if allowed.edges.is_empty() { "nobody".into() } else { allowed.edges.join(", ") }
                ),
            );
        }
        if let Some(owners) = rules.only.get(to).filter(|owners| owners.iter().all(|owner| owner != from)) {
            findings.add(
                &manifest(from),
                0,
                format!("{from} may not depend on {to}, which belongs to {} alone", owners.join(", ")),
            );
        }
    }
}

fn manifest(name: &str) -> String {
    BTreeMap::from([("ebbtide", "Cargo.toml".to_owned()), ("xtask", "xtask/Cargo.toml".to_owned())])
        .remove(name)
        .unwrap_or_else(|| format!("crates/{}/Cargo.toml", name.trim_start_matches("ebbtide-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(from: &str, to: &str, tests_only: bool) -> Vec<String> {
        let rules: Rules = toml::from_str(
            r#"
            [crates.ebbtide-volume]
            edges = []
            [crates.ebbtide-device]
            edges = ["ebbtide-volume"]
            tests = ["ebbtide-catalog"]
            [crates.ebbtide-catalog]
            edges = ["ebbtide-volume"]
            [only]
            fuser = ["ebbtide-device"]
            [pure]
            crates = []
            banned = []
            [repeat]
            deterministic = []
            nondeterministic = []
            [sizes]
            file_lines = 1
            function_lines = 1
            "#,
        )
        .unwrap();
        let ours = rules.crates.keys().map(String::as_str).collect();
        let mut findings = Findings::default();
        check_edges([Edge { from, to, tests_only }].into_iter(), &ours, &rules, &mut findings);
        findings.0.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn an_edge_that_is_not_listed_is_caught() {
        assert_eq!(found("ebbtide-device", "ebbtide-volume", false).len(), 0);
        assert!(found("ebbtide-volume", "ebbtide-device", false)[0].contains("it may know nobody"));
        assert!(found("ebbtide-volume", "ebbtide-device", true)[0].contains("may not depend"));
    }

    #[test]
    fn an_edge_for_tests_does_not_serve_the_code() {
        assert_eq!(found("ebbtide-device", "ebbtide-catalog", true).len(), 0);
        assert_eq!(found("ebbtide-device", "ebbtide-catalog", false).len(), 1);
    }

    #[test]
    fn an_outside_crate_stays_with_its_owner() {
        assert_eq!(found("ebbtide-device", "fuser", false).len(), 0);
        assert!(found("ebbtide-catalog", "fuser", false)[0].contains("belongs to ebbtide-device alone"));
    }
}
