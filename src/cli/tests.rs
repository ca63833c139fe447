//! The help of every command is true: its examples are taken, and what they name exists.

use clap::{CommandFactory as _, Parser as _};
use ebbtide_catalog::{Catalog, Spec};
use ebbtide_lab::experiment;

use super::{Cli, Command};
use crate::volume::args::VolumeCommand;

/// Every command, with the words that lead to it.
fn commands() -> Vec<(String, clap::Command)> {
    fn add(words: &str, command: &clap::Command, all: &mut Vec<(String, clap::Command)>) {
        for one in command.get_subcommands() {
            add(&format!("{words} {}", one.get_name()), one, all);
        }
        all.push((words.to_owned(), command.clone()));
    }
    let mut all = Vec::new();
    add("ebbtide", &Cli::command(), &mut all);
    all
}

/// The command lines among the lines of a text, without what a shell makes of them (remarks, pipes, files); those
/// that end with a backslash go on in the next line.
fn examples(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(|line| {
        let line = line.trim();
        line.strip_prefix("Example: ").unwrap_or(line)
    });
    let lines = lines.filter(|line| line.starts_with("ebbtide "));
    lines
        .map(|line| {
            line.split(['#', '>', '|']).next().unwrap_or(line).trim_end().trim_end_matches(" &").to_owned()
        })
        .collect()
}

/// Parses a command line as the program does, and resolves the names of experiments, arms and volumes in it.
fn check(example: &str) -> Result<(), String> {
    let cli = Cli::try_parse_from(example.split_whitespace()).map_err(|error| error.to_string())?;
    let refused = |error: &dyn std::fmt::Display| Err(error.to_string());
    match &cli.command {
        Command::Run(args) => match &args.experiment {
            Some(name) if is_shipped(name) => {
                let changes = crate::run::changes(args).map_err(|error| error.to_string())?;
                experiment::load(name, &changes).map(drop).or_else(|error| refused(&error))
            }
            Some(name) if !name.ends_with(".toml") => Err(format!("there is no experiment {name}")),
            _ => Ok(()),
        },
        Command::Crash(args) => match &args.experiment {
            Some(name) if is_shipped(name) => {
                let changes = crate::crash::changes(args).map_err(|error| error.to_string())?;
                experiment::load(name, &changes).map(drop).or_else(|error| refused(&error))
            }
            Some(name) if !name.ends_with(".toml") => Err(format!("there is no experiment {name}")),
            _ => Ok(()),
        },
        Command::Volume(VolumeCommand::Create(args)) => resolve(&args.spec),
        _ => Ok(()),
    }
}

fn is_shipped(name: &str) -> bool {
    experiment::shipped().iter().any(|one| one.name == name)
}

fn resolve(spec: &str) -> Result<(), String> {
    let spec = Spec::parse(spec).map_err(|error| error.to_string())?;
    Catalog::builtin().resolve(&spec).map(drop).map_err(|error| error.to_string())
}

#[test]
fn every_example_of_every_help_is_taken_and_what_it_names_exists() {
    let mut checked = 0;
    for (words, command) in commands() {
        // Before it is wrapped to the width of a terminal.
        let parts = [
            command.get_about(),
            command.get_long_about(),
            command.get_after_help(),
            command.get_after_long_help(),
        ];
        let help: Vec<String> = parts.into_iter().flatten().map(ToString::to_string).collect();
        let help = help.join("\n");
        for example in examples(&help) {
            check(&example).unwrap_or_else(|error| panic!("{words} --help: {example}\n{error}"));
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked} examples are too few: are they found?");
}

#[test]
fn an_example_that_is_wrong_is_found() {
    for wrong in [
        "ebbtide crash durability-matrix --arms relaxed",
        "ebbtide crash durability-matrx",
        "ebbtide run tuned-vs-default --set nobody.io_capacity=2000",
        "ebbtide volume create db gp3:size=1GiB,iops=99999",
        "ebbtide volume list --no-such",
    ] {
        check(wrong).expect_err(wrong);
    }
    assert_eq!(
        examples("Example: ebbtide a &\n  ebbtide a # b\n  ebbtide b \\\n  --c\n text"),
        ["ebbtide a", "ebbtide a", "ebbtide b    --c"]
    );
}

#[test]
fn a_missing_option_is_named_with_the_words_that_it_takes() {
    let choices = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        super::choices(&Cli::try_parse_from(&words).unwrap_err(), &words)
    };
    let attach = "ebbtide volume attach db --mount /srv/db";
    assert_eq!(choices(attach).unwrap(), "give --fs xfs, ext4 or ext4-bigalloc");
    assert_eq!(choices("ebbtide volume create db"), None, "a spec is not one of a few words");
    assert_eq!(choices("ebbtide volume attach db --fs zfs --mount /srv/db"), None, "it is given");
}

/// What `--force` does to a volume in use.
const FORCED: &str = "what was written before is flushed to the volume, I/O after that fails";

#[test]
fn force_is_described_in_the_same_words_everywhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let help = |wanted: &str| {
        let all = commands();
        let (_, command) = all.iter().find(|(words, _)| words == wanted).unwrap();
        let force = command.get_arguments().find(|argument| argument.get_id() == "force").unwrap();
        force.get_help().unwrap().to_string()
    };
    for (place, text) in [
        ("detach --help", help("ebbtide volume detach")),
        ("serve --help", help("ebbtide serve")),
        ("docs/cli.md", page("docs/cli.md")),
        ("SEMANTICS.md", page("SEMANTICS.md")),
        ("the hint of a refusal", page("src/refusal.rs")),
    ] {
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(FORCED), "{place}: {text}");
        assert!(!text.contains("what was not written is lost"), "{place}: {text}");
    }
}

/// The command lines in the blocks of code of a page.
fn shown(page: &str) -> Vec<String> {
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    examples(&blocks.join("\n"))
}

#[test]
fn every_command_line_of_the_manual_is_taken_and_what_it_names_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages =
        docs.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|ext| ext == "md"));
    let mut checked = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for example in shown(&text) {
            check(&example).unwrap_or_else(|error| panic!("{}: {example}\n{error}", page.display()));
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked} command lines are too few: are they found?");
}
