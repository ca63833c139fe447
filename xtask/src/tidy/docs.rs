//! Rules for Markdown: links and paths that lead somewhere, excerpts that stand in their files, no line numbers of
//! sources, no lost decision, no crate that the map leaves out.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use super::{Findings, line_of};
use crate::repo::Repo;

const DECISIONS: &str = "docs/decisions/";
const MAP: &str = "ARCHITECTURE.md";
/// What a text in backticks begins with where it means a path from the root.
const FOLDERS: [&str; 9] =
    ["assets/", "benches/", "crates/", "docs/", "scripts/", "src/", "tests/", "xtask/", ".ci/"];

/// A link of a document, and the line that it is in.
struct Link {
    target: String,
    line: usize,
}

/// Checks every document.
pub(super) fn check(repo: &Repo, most_lines: &BTreeMap<String, usize>, findings: &mut Findings) {
    for (path, text) in repo.texts(".md") {
        for link in links(text) {
            if let Err(why) = resolve(repo, path, &link.target) {
                findings.add(path, link.line, format!("the link to {} is dead: {why}", link.target));
            }
        }
        for (number, line) in text.lines().enumerate().filter(|(_, line)| cites_a_line(line)) {
            findings.add(path, number + 1, format!("cites a line of a source, which moves: {}", line.trim()));
        }
        check_paths(repo, path, text.lines().map(str::to_owned), findings);
        check_excerpts(repo, path, text, findings);
    }
    for (path, text) in repo.texts(".rs") {
        let comments = text.lines().map(|line| if line.trim_start().starts_with("//") { line } else { "" });
        check_paths(repo, path, comments.map(str::to_owned), findings);
    }
    check_decisions(repo, findings);
    check_map(repo, findings);
    check_lengths(repo, most_lines, findings);
}

/// What is to be read whole must stay short.
fn check_lengths(repo: &Repo, most_lines: &BTreeMap<String, usize>, findings: &mut Findings) {
    for (path, most) in most_lines {
        let Some(text) = repo.text(path) else {
            findings.add("xtask/tidy.toml", 0, format!("{path}: no such document"));
            continue;
        };
        let lines = text.lines().count();
        if lines > *most {
            let message = format!(
                "has {lines} lines, more than {most}: move what one part alone needs to its own text"
            );
            findings.add(path, 0, message);
        }
    }
}

/// Paths in backticks must exist, where they begin at the root or next to the source file.
fn check_paths(repo: &Repo, path: &str, lines: impl Iterator<Item = String>, findings: &mut Findings) {
    for (number, line) in lines.enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_path = FOLDERS.iter().any(|folder| quoted.starts_with(folder))
                && quoted.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            let here = crate_of(path).map(|folder| format!("{folder}{quoted}"));
            let exists = |path: &str| repo.has(path.trim_end_matches('/'));
            if is_path && !exists(quoted) && !here.as_deref().is_some_and(exists) {
                findings.add(path, number + 1, format!("names `{quoted}`, which does not exist"));
            }
        }
    }
}

/// A block of code that names a file behind its language (```` ```rust src/main.rs ````) is an excerpt of it: its lines
/// stand there one after the other, however far they are indented.
fn check_excerpts(repo: &Repo, path: &str, text: &str, findings: &mut Findings) {
    for excerpt in excerpts(text) {
        let lines = |text: &str| text.trim().lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
        let (wanted, file) = (lines(&excerpt.text), repo.text(&excerpt.file).map(lines));
        let stands = |file: Vec<String>| file.windows(wanted.len().max(1)).any(|part| part == wanted);
        if !file.is_some_and(stands) {
            let why = format!("the excerpt is not in {}, word for word: copy it again", excerpt.file);
            findings.add(path, excerpt.line, why);
        }
    }
}

/// An excerpt in a document.
struct Excerpt {
    file: String,
    line: usize,
    text: String,
}

fn excerpts(text: &str) -> Vec<Excerpt> {
    let mut all = Vec::new();
    let mut open: Option<Excerpt> = None;
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let line = line_of(text, range.start);
                let file = info.split_whitespace().nth(1).map(str::to_owned);
                open = file.map(|file| Excerpt { file, line, text: String::new() });
            }
            Event::Text(part) => {
                if let Some(open) = &mut open {
                    open.text.push_str(&part);
                }
            }
            Event::End(TagEnd::CodeBlock) => all.extend(open.take()),
            _ => {}
        }
    }
    all
}

/// The folder of the crate that a source file is in, with its `/`.
fn crate_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("crates/")?;
    Some(&path[..path.len() - inside.len() + inside.find('/')? + 1])
}

/// A part that the map leaves out will not be found.
fn check_map(repo: &Repo, findings: &mut Findings) {
    let Some(map) = repo.text(MAP) else { return };
    let manifests = repo.texts("/Cargo.toml").filter_map(|(path, _)| path.strip_suffix("/Cargo.toml"));
    for folder in manifests.filter(|folder| !map.contains(&format!("`{folder}`"))) {
        findings.add(MAP, 0, format!("the map leaves out `{folder}`"));
    }
}

/// A decision that the list does not name will not be found again.
fn check_decisions(repo: &Repo, findings: &mut Findings) {
    let list = format!("{DECISIONS}README.md");
    let listed: BTreeSet<_> =
        repo.text(&list).map(links).unwrap_or_default().into_iter().map(|link| link.target).collect();
    for (path, _) in repo.texts(".md").filter(|(path, _)| path.starts_with(DECISIONS) && *path != list) {
        if !listed.contains(&path[DECISIONS.len()..]) {
            findings.add(path, 0, format!("{list} does not link this decision"));
        }
    }
}

fn links(text: &str) -> Vec<Link> {
    Parser::new(text)
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(Link { target: dest_url.into_string(), line: line_of(text, range.start) })
            }
            _ => None,
        })
        .collect()
}

fn resolve(repo: &Repo, from: &str, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { from.to_owned() } else { join(from, file)? };
    if !repo.has(&path) {
        return Err(format!("there is no {path}"));
    }
    match repo.text(&path) {
        Some(text) if !anchor.is_empty() && path.ends_with(".md") && !anchors(text).contains(anchor) => {
            Err(format!("{path} has no heading for #{anchor}"))
        }
        _ => Ok(()),
    }
}

/// The path that a document at `from` means by `relative`.
fn join(from: &str, relative: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or("it leads out of the repository")?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// The anchors of all headings, made as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let name = slug(&heading.take().unwrap_or_default());
                let again = (1..).map(|n| format!("{name}-{n}")).find(|other| !anchors.contains(other));
                let name = if anchors.contains(&name) { again.unwrap_or(name) } else { name };
                anchors.insert(name);
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Whether a text has `file.rs:12` or `file.rs#L12`.
fn cites_a_line(line: &str) -> bool {
    [".rs:", ".rs#L", ".sh:", ".toml:"].iter().any(|mark| {
        line.match_indices(mark)
            .any(|(at, mark)| line[at + mark.len()..].starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
        let mut findings = Findings::default();
        check(&Repo::from(files), &BTreeMap::new(), &mut findings);
        findings.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_dead_link_is_caught() {
        let files = |link: &str| {
            let text = format!("Text.\n\nSee [it]({link}).\n");
            found([("docs/a.md", text.as_str()), ("docs/b.md", "# B c\n"), ("src/main.rs", "")])
        };
        assert_eq!(files("b.md"), Vec::<String>::new());
        assert_eq!(files("../src"), Vec::<String>::new());
        assert_eq!(files("https://example.com/b.md"), Vec::<String>::new());
        assert!(files("c.md")[0].starts_with("docs/a.md:3: the link to c.md is dead: there is no docs/c.md"));
        assert!(files("../../b.md")[0].contains("out of the repository"));
    }

    #[test]
    fn a_dead_anchor_is_caught() {
        let files = |anchor: &str| {
            found([("a.md", &format!("# One, `two` & 3\n\n# Same\n\n# Same\n\n[x](#{anchor})"))])
        };
        assert_eq!(files("one-two--3"), Vec::<String>::new());
        assert_eq!(files("same-1"), Vec::<String>::new());
        assert!(files("same-2")[0].contains("no heading for #same-2"));
    }

    #[test]
    fn a_cited_line_number_is_caught() {
        assert_eq!(found([("a.md", "see `volume.rs`: it holds 3")]), Vec::<String>::new());
        assert!(found([("a.md", "see src/volume.rs:33")])[0].contains("a.md:1: cites a line"));
        assert!(found([("a.md", "see src/volume.rs#L33")])[0].contains("cites a line"));
    }

    #[test]
    fn a_path_that_does_not_exist_is_caught() {
        let files = |path: &str| {
            let source = format!("//! See `{path}`.\nconst X: &str = \"`src/none.rs`\";");
            found([("crates/a/src/b.rs", source.as_str()), ("docs/x.md", "")])
        };
        for path in ["docs/x.md", "docs/", "src/b.rs", "src/b", "target/x", "docs/{x}"] {
            let expected = usize::from(path == "src/b");
            assert_eq!(files(path).len(), expected, "{path}");
        }
        assert!(found([("a.md", "one\n`src/lib.rs`")])[0].starts_with("a.md:2: names `src/lib.rs`"));
    }

    #[test]
    fn an_excerpt_that_is_not_in_its_file_is_caught() {
        let source = "//! A.\n\nmod a {\n    fn one() {\n        two();\n    }\n}\n";
        let page = |info: &str, code: &str| {
            let text = format!("# A\n\n```{info}\n{code}\n```\n");
            found([("docs/a.md", text.as_str()), ("src/a.rs", source)])
        };
        assert_eq!(page("rust src/a.rs", "fn one() {\n    two();\n}"), Vec::<String>::new());
        assert_eq!(page("rust src/a.rs", source), Vec::<String>::new());
        assert_eq!(page("rust", "fn three() {}"), Vec::<String>::new(), "it names no file");
        let caught = page("rust src/a.rs", "fn one() {\n    three();\n}");
        assert!(caught[0].starts_with("docs/a.md:3: the excerpt is not in src/a.rs"), "{caught:?}");
        assert_eq!(page("rust src/b.rs", "fn one() {").len(), 1, "there is no such file");
        assert_eq!(page("rust src/a.rs", "").len(), 1, "an excerpt has a line");
    }

    #[test]
    fn a_crate_that_the_map_leaves_out_is_caught() {
        let map = |text: &str| found([("ARCHITECTURE.md", text), ("crates/a/Cargo.toml", "")]);
        assert_eq!(map("| `crates/a` | is |"), Vec::<String>::new());
        assert!(map("| crates |")[0].contains("the map leaves out `crates/a`"));
    }

    #[test]
    fn a_long_document_and_one_that_is_gone_are_caught() {
        let found = |most: usize, path: &str| {
            let mut findings = Findings::default();
            let most_lines = BTreeMap::from([(path.to_owned(), most)]);
            check(&Repo::from([("README.md", "# A\n\nText.\n")]), &most_lines, &mut findings);
            findings.0.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found(3, "README.md"), Vec::<String>::new());
        assert!(found(2, "README.md")[0].starts_with("README.md: has 3 lines, more than 2"));
        assert!(found(3, "GONE.md")[0].contains("GONE.md: no such document"));
    }

    /// The repository's own limits, with a map that is a line too long.
    #[test]
    fn a_map_of_121_lines_and_a_readme_of_151_are_caught() {
        let rules: super::super::Rules = toml::from_str(include_str!("../../tidy.toml")).unwrap();
        let found = |map: usize, readme: usize| {
            let text = |lines: usize| "text\n".repeat(lines);
            let repo = Repo::from([("ARCHITECTURE.md", &*text(map)), ("README.md", &*text(readme))]);
            let mut findings = Findings::default();
            check(&repo, &rules.sizes.documents, &mut findings);
            findings.0.len()
        };
        assert_eq!((found(120, 150), found(121, 150), found(120, 151)), (0, 1, 1));
    }

    #[test]
    fn a_decision_that_is_not_listed_is_caught() {
        let list =
            |text: &str| found([("docs/decisions/README.md", text), ("docs/decisions/0001-a.md", "# A")]);
        assert_eq!(list("[A](0001-a.md)"), Vec::<String>::new());
        assert!(list("A")[0].contains("does not link this decision"));
    }
}
