//! Commands that the documents mention exist: those of `./dev` and those of the program.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Command, Stdio},
};

use cargo_metadata::Metadata;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::{Findings, line_of};
use crate::repo::Repo;

/// The text of `--help` for a command, given the words that lead to it; `None` where it is unknown.
type Help<'a> = dyn Fn(&[&str]) -> Option<String> + 'a;

/// The program that was built last.
pub(super) struct Programs {
    ebbtide: Option<PathBuf>,
}

impl Programs {
    /// Looks into the target directory.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let built =
            |profile: &str| metadata.target_directory.join(profile).join("ebbtide").into_std_path_buf();
        let age = |path: &PathBuf| path.metadata().and_then(|meta| meta.modified()).ok();
        let newest =
            [built("debug"), built("release")].into_iter().filter(|path| path.exists()).max_by_key(age);
        Self { ebbtide: newest }
    }

    fn help(&self, words: &[&str]) -> Option<String> {
        let output = Command::new(self.ebbtide.as_ref()?)
            .args(words)
            .arg("--help")
            .stdin(Stdio::null())
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A command that a document mentions.
struct Mention<'a> {
    document: &'a str,
    line: usize,
    command: String,
}

/// Checks the commands in all documents; those of the program only where it has been built.
pub(super) fn check(repo: &Repo, programs: &Programs, findings: &mut Findings) {
    let mentions: Vec<_> = repo.texts(".md").flat_map(|(document, text)| mentions(document, text)).collect();
    let dev = repo.text("dev").unwrap_or_default();
    for Mention { document, line, command } in &mentions {
        if let Some(name) = command.strip_prefix("./dev ").and_then(|rest| rest.split_whitespace().next())
            && name != "COMMAND"
            && !dev.contains(&format!("\ncmd_{name}() {{"))
        {
            findings.add(document, *line, format!("./dev has no command `{name}`"));
        }
    }
    if programs.ebbtide.is_none() {
        eprintln!("note: the commands of ebbtide in documents were not checked, because it is not built");
        return;
    }
    check_program(&mentions, &|words| programs.help(words), findings);
}

fn check_program(mentions: &[Mention<'_>], help: &Help<'_>, findings: &mut Findings) {
    let mut known = BTreeMap::new();
    for Mention { document, line, command } in mentions {
        let Some(arguments) = arguments_of_ebbtide(command) else { continue };
        let words: Vec<&str> = arguments.split_whitespace().collect();
        if let Err(what) = check_words(&words, help, &mut known) {
            findings.add(document, *line, format!("`{command}`: {what}"));
        }
    }
}

/// What follows the program's name, up to a pipe, a redirection or a comment.
fn arguments_of_ebbtide(command: &str) -> Option<&str> {
    let at = command.find("ebbtide ")?;
    let before = &command[..at];
    if !(before.is_empty() || before.ends_with(['/', ' '])) || before.contains("cargo") {
        return None;
    }
    let rest = &command[at + "ebbtide ".len()..];
    rest.split([';', '|', '>', '#', '&']).next()
}

/// Follows the words as far as they are subcommands; then the flags must be in the help text.
fn check_words<'a>(
    words: &[&'a str],
    help: &Help<'_>,
    known: &mut BTreeMap<Vec<&'a str>, Option<String>>,
) -> Result<(), String> {
    let mut path: Vec<&str> = Vec::new();
    loop {
        let text = known.entry(path.clone()).or_insert_with(|| help(&path)).clone();
        let text = text.ok_or_else(|| format!("there is no command `{}`", path.join(" ")))?;
        let subcommands = subcommands(&text);
        match words.get(path.len()).filter(|_| !subcommands.is_empty()) {
            Some(word) if word.starts_with('-') => {}
            Some(word) if subcommands.iter().any(|name| name == word) => {
                path.push(word);
                continue;
            }
            // A command that has commands below it and takes a name too, as `ebbtide doctor SERVER`.
            Some(_) if text.lines().any(|line| line == "Arguments:") => {}
            Some(word) => return Err(format!("there is no command `{word}`")),
            None => {}
        }
        let lost = words[path.len()..]
            .iter()
            .filter(|word| word.starts_with("--") && word.len() > 2)
            .map(|word| word.split('=').next().unwrap_or(word).trim_end_matches([']', ',', '.']))
            .find(|flag| {
                !text.split(|c: char| c.is_whitespace() || c == '=' || c == '[').any(|w| w == *flag)
            });
        return lost.map_or(Ok(()), |flag| Err(format!("there is no option `{flag}`")));
    }
}

/// The names under `Commands:` of a help text.
fn subcommands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

/// The lines of all code blocks and the code in running text.
fn mentions<'a>(document: &'a str, text: &str) -> Vec<Mention<'a>> {
    let mut mentions = Vec::new();
    let mut in_block = false;
    for (event, range) in Parser::new(text).into_offset_iter() {
        let line = line_of(text, range.start);
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Text(block) if in_block => {
                let block = block.replace("\\\n", " ");
                mentions.extend(block.lines().enumerate().map(|(number, command)| Mention {
                    document,
                    line: line + number,
                    command: command.trim_start_matches(['$', ' ']).to_owned(),
                }));
            }
            Event::Code(code) => mentions.push(Mention { document, line, command: code.into_string() }),
            _ => {}
        }
    }
    mentions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(words: &[&str]) -> Option<String> {
        match words {
            [] => Some(
                "Usage: ebbtide\n\nCommands:\n  volume  Live volumes\n  serve   Host\n  doctor  Look\n\nOptions:\n".into(),
            ),
            ["volume"] => Some("Commands:\n  create  Make one\n\nOptions:\n".into()),
            ["volume", "create"] => Some("Usage: create NAME SPEC\n\nOptions:\n      --json  x\n".into()),
            ["serve"] => Some("Options:\n".into()),
            ["doctor"] => Some("Commands:\n  capture  x\n\nArguments:\n  [SERVER]  x\n\nOptions:\n".into()),
            _ => None,
        }
    }

    fn found(command: &str) -> Vec<String> {
        let mut findings = Findings::default();
        let text = format!("# R\n\n```sh\n{command}\n```\n");
        check_program(&mentions("README.md", &text), &help, &mut findings);
        findings.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_command_that_the_program_lacks_is_caught() {
        assert_eq!(found("sudo ebbtide volume create data gp3 --json | jq"), Vec::<String>::new());
        assert_eq!(found("cargo run -p ebbtide nothing"), Vec::<String>::new());
        assert_eq!(found("ebbtide doctor shop"), Vec::<String>::new());
        assert!(found("$ ebbtide volume make data")[0].contains("there is no command `make`"));
        assert!(found("ebbtide sereve")[0].contains("there is no command `sereve`"));
        assert!(found("ebbtide volume create data --fast")[0].contains("there is no option `--fast`"));
    }

    #[test]
    fn a_command_that_dev_lacks_is_caught() {
        let found = |readme: &str| {
            let repo = Repo::from([("README.md", readme), ("dev", "#!/bin/sh\ncmd_test() { # all\n}\n")]);
            let mut findings = Findings::default();
            check(&repo, &Programs { ebbtide: None }, &mut findings);
            findings.0.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found("Run `./dev test`."), Vec::<String>::new());
        assert!(found("Run `./dev tests`.")[0].contains("README.md:1: ./dev has no command `tests`"));
    }
}
