//! The documents that promise: each row names a test or a bench that exists, or has `[pending]`.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{Findings, Sources, line_of};
use crate::{bench, repo::Repo};

const DOCUMENTS: [&str; 2] = ["SEMANTICS.md", "SPECIFICATION.md"];
/// The heading of the column that names the evidence; always the last one.
const EVIDENCE: &str = "Shown by";
const PENDING: &str = "[pending]";

/// A row of a table of promises.
#[derive(Debug, Default)]
struct Promise {
    line: usize,
    /// What the last cell quotes in backticks.
    quoted: Vec<String>,
    /// The whole text of the last cell.
    evidence: String,
}

/// Checks that the evidence of each promise exists.
pub(super) fn check(repo: &Repo, sources: &Sources, findings: &mut Findings) {
    let tests: BTreeSet<&str> =
        sources.values().flat_map(|source| source.tests.iter().map(String::as_str)).collect();
    for path in DOCUMENTS {
        let Some(text) = repo.text(path) else { continue };
        let promises = promises(text);
        if promises.is_empty() {
            findings.add(path, 0, format!("has no table whose last column is `{EVIDENCE}`"));
        }
        for promise in promises {
            if promise.quoted.is_empty() && !promise.evidence.contains(PENDING) {
                findings.add(
                    path,
                    promise.line,
                    format!("names no `test` and no `./dev bench`, nor says {PENDING}"),
                );
            }
            for name in promise.quoted.iter().filter(|name| !exists(repo, &tests, name)) {
                findings.add(path, promise.line, format!("there is no test or bench `{name}`"));
            }
        }
    }
}

fn exists(repo: &Repo, tests: &BTreeSet<&str>, name: &str) -> bool {
    match name.strip_prefix("./dev bench ") {
        Some(name) => {
            let table = repo.text(bench::TABLE).unwrap_or_default();
            bench::names(table).is_ok_and(|names| names.iter().any(|bench| bench == name))
        }
        None => tests.contains(name.rsplit("::").next().unwrap_or(name)),
    }
}

fn promises(text: &str) -> Vec<Promise> {
    let mut promises = Vec::new();
    let (mut in_head, mut evidence_is_last) = (false, false);
    let mut cell: Option<Promise> = None;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::TableHead) => in_head = true,
            Event::Start(Tag::TableCell) => {
                cell = Some(Promise { line: line_of(text, range.start), ..Promise::default() });
            }
            Event::Code(code) => {
                if let Some(cell) = &mut cell {
                    cell.evidence.push_str(&code);
                    cell.quoted.push(code.into_string());
                }
            }
            Event::Text(words) => {
                if let Some(cell) = &mut cell {
                    cell.evidence.push_str(&words);
                }
            }
            Event::End(TagEnd::TableHead) => {
                evidence_is_last = cell.take().is_some_and(|cell| cell.evidence == EVIDENCE);
                in_head = false;
            }
            Event::End(TagEnd::TableRow) if !in_head => {
                promises.extend(cell.take().filter(|_| evidence_is_last));
            }
            _ => {}
        }
    }
    promises
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn found(evidence: &str) -> Vec<String> {
        let text = format!("# P\n\n| It | Shown by |\n|---|---|\n| `never_a_test` holds | {evidence} |\n");
        let repo = Repo::from([
            ("SPECIFICATION.md", text.as_str()),
            (bench::TABLE, "[[bench]]\nname = \"pacer\"\nshows = \"x\"\nscript = \"s.sh\"\n"),
        ]);
        let source = Source::parse("#[test]\nfn it_holds() {}", true).unwrap();
        let mut findings = Findings::default();
        check(&repo, &Sources::from([("a.rs".into(), source)]), &mut findings);
        findings.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_promise_without_evidence_is_caught() {
        assert!(found("")[0].contains("SPECIFICATION.md:5: names no `test`"));
        assert!(found("of course")[0].contains("names no `test`"));
        assert_eq!(found("[pending]"), Vec::<String>::new());
    }

    #[test]
    fn evidence_that_does_not_exist_is_caught() {
        assert_eq!(found("`volume::it_holds`, `./dev bench pacer`"), Vec::<String>::new());
        assert!(found("`it_held`")[0].contains("no test or bench `it_held`"));
        assert!(found("`./dev bench speed`")[0].contains("no test or bench"));
    }

    #[test]
    fn a_document_of_promises_without_a_table_is_caught() {
        let mut findings = Findings::default();
        check(&Repo::from([("SEMANTICS.md", "All is well.")]), &Sources::new(), &mut findings);
        assert!(findings.0[0].message.contains("has no table"));
    }
}
