//! The samples of pages: what a page quotes of a command is what the command prints at 80 columns, of a run what its recorded
//! results say. `EBBTIDE_REWRITE=1 cargo test --test simulate pages` writes the quotes again.

use std::path::Path;
use std::process::Command;

use ebbtide_report::{Report, TextOptions};
use ebbtide_text::shell_words::unquoted;
use serde::Deserialize;

/// The pages, each with how many samples it has at least.
const PAGES: [(&str, usize); 7] = [
    ("docs/predict.md", 3),
    ("docs/size.md", 1),
    ("docs/simulate.md", 1),
    ("docs/doctor.md", 1),
    ("docs/lab.md", 1),
    ("docs/crash.md", 1),
    ("README.md", 3),
];
/// What a command begins with that needs no server and no root: it is run.
const RUN: [&str; 4] =
    ["ebbtide predict ", "ebbtide size ", "ebbtide simulate ", "ebbtide doctor --from examples/"];
/// Makes the report of a directory of results, under the command that it was run by.
type Render = fn(&Path, &str) -> Report;

/// Commands that take minutes, with the results of a run of each: below `tests/recorded`, without what happened in each second and what
/// servers wrote.
const RECORDED: [(&str, Render); 2] = [
    ("ebbtide run tuned-vs-default --quick", of_lab),
    ("ebbtide crash durability-matrix --quick --arms doublewrite-off", of_crash),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn of_lab(results: &Path, out: &str) -> Report {
    let results = ebbtide_lab::results::file::read_json(results).unwrap();
    ebbtide_lab::page::document(&results.run, &results.summary, out)
}

#[derive(Deserialize)]
struct CrashResults {
    run: ebbtide_crash::record::CrashRun,
}

fn of_crash(results: &Path, _: &str) -> Report {
    let text = std::fs::read_to_string(results.join("results.json")).unwrap();
    let run = serde_json::from_str::<CrashResults>(&text).unwrap().run;
    ebbtide_crash::page::document(&run, &ebbtide_crash::summary::summarize(&run))
}

/// What a command prints at 80 columns; None of one that is not held.
fn printed(line: &str) -> Option<String> {
    let words = unquoted(line).unwrap();
    if let Some((_, document)) = RECORDED.iter().find(|(command, _)| *command == line) {
        let name = &words[2];
        let out = format!("{name}-20261129-015726");
        let answer = document(&root().join("tests/recorded").join(name), &out);
        let rest = format!("report: /root/{out}/report.html; more: --details");
        return Some(format!("{}\n{rest}\n", answer.to_text(TextOptions::default())));
    }
    let is_run = RUN.iter().any(|begin| line.starts_with(begin));
    is_run.then(|| {
        let output = Command::new(env!("CARGO_BIN_EXE_ebbtide"))
            .env("EBBTIDE_HOME", "/nonexistent/home")
            .env("COLUMNS", "80")
            .current_dir(root())
            .args(&words[1..])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    })
}

/// The commands of a page's blocks of a console, each with what the page quotes of its output.
fn samples(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```\n").next());
    blocks.filter_map(|block| block.strip_prefix("$ ")?.split_once('\n')).collect()
}

/// The first part of a quotation that the output does not have in its place; `...` stands for any lines.
fn missing<'q>(quoted: &'q str, output: &str) -> Option<&'q str> {
    let mut rest = output;
    quoted.split("...\n").find(|part| match rest.find(part) {
        Some(place) => {
            rest = &rest[place + part.len()..];
            false
        }
        None => true,
    })
}

/// A quotation of this output with as many lines in each of its parts: the first from the begin, the last up to the end where the
/// quotation has it, others from their first line on.
fn quoted_again(quoted: &str, output: &str) -> String {
    let lines: Vec<&str> = output.split_inclusive('\n').collect();
    let parts: Vec<&str> = quoted.split("...\n").collect();
    if let [_] = parts[..] {
        return output.to_owned();
    }
    let mut from = 0;
    let part = |(place, part): (usize, &&str)| {
        let count = part.lines().count();
        let first = part.split_inclusive('\n').next().unwrap_or_default();
        let begin = match place {
            0 => 0,
            last if last + 1 == parts.len() => lines.len().saturating_sub(count).max(from),
            _ => lines.iter().skip(from).position(|line| *line == first).map_or(from, |place| from + place),
        };
        let end = (begin + count).min(lines.len());
        from = end;
        lines[begin..end].concat()
    };
    parts.iter().enumerate().map(part).collect::<Vec<_>>().join("...\n")
}

#[test]
fn the_pages_quote_what_the_commands_print() {
    let rewrites = std::env::var_os("EBBTIDE_REWRITE").is_some();
    for (name, samples_at_least) in PAGES {
        let path = root().join(name);
        let page = std::fs::read_to_string(&path).unwrap();
        let mut written = page.clone();
        let mut seen = 0;
        for (line, quoted) in samples(&page) {
            let Some(printed) = printed(line) else { continue };
            seen += 1;
            if rewrites {
                let block = |quoted: &str| format!("```console\n$ {line}\n{quoted}```\n");
                written = written.replace(&block(quoted), &block(&quoted_again(quoted, &printed)));
                continue;
            }
            let missing = missing(quoted, &printed);
            assert!(
                missing.is_none(),
                "{name}: {line} does not print\n{}\nbut\n{printed}\nEBBTIDE_REWRITE=1 with this test writes it again",
                missing.unwrap_or_default()
            );
        }
        assert!(seen >= samples_at_least, "{name} has {seen} samples");
        if written != page {
            std::fs::write(&path, written).unwrap();
        }
    }
}

#[test]
fn recorded_answers_fit_on_a_screen_and_hold_nothing_of_their_machine() {
    for (line, _) in RECORDED {
        let screen = printed(line).unwrap();
        assert!(screen.lines().count() <= 24 + 2, "{line}: {screen}");
        let is_long = |line: &&str| line.chars().count() > 80;
        assert_eq!(screen.lines().find(is_long), None, "{line}");
        assert!(!screen.contains("/tmp/") && !screen.contains("--home"), "{line}: {screen}");
    }
}

#[test]
fn a_figure_that_a_command_does_not_print_is_noticed_and_written_again() {
    let printed = "a 1\nb 2\nc 3\nd 4\n";
    for right in ["a 1\nb 2\nc 3\nd 4\n", "a 1\n...\nc 3\nd 4\n", "...\nb 2\n...\n"] {
        assert_eq!(missing(right, printed), None, "{right}");
        assert_eq!(quoted_again(right, printed), right);
    }
    for wrong in ["a 2\n", "c 3\n...\na 1\n", "a 1\nc 3\n"] {
        assert!(missing(wrong, printed).is_some(), "{wrong}");
    }
    for (wrong, right) in [
        ("a 2\n...\nd 3\n", "a 1\n...\nd 4\n"),
        ("a 9\n", printed),
        ("a 2\n...\nb 2\n...\n", "a 1\n...\nb 2\n...\n"),
    ] {
        assert_eq!(quoted_again(wrong, printed), right, "{wrong}");
    }
}
