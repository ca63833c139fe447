//! `ebbtide man-pages` and `ebbtide completions`: what a package installs next to the program, made from
//! the table of commands, so that it cannot differ from it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use serde::Serialize;

use crate::cli::Cli;
use crate::exit::{Exit, Refusal};
use crate::{text, version};

/// `man-pages`
#[derive(Debug, Args)]
#[command(after_help = "Example: ebbtide man-pages ~/.local/share/man/man1")]
pub(crate) struct ManPagesArgs {
    /// Where to write them; it is made where it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// `completions`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ebbtide completions bash --names > ~/.local/share/bash-completion/completions/ebbtide\n  \
    ebbtide completions fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = shells())]
    shell: String,
    /// The script that asks this program, so that names are completed too: volumes, snapshots, experiments, specs key by key
    #[arg(long)]
    names: bool,
}

/// The shells whose scripts are tested.
const SHELLS: [(&str, Shell); 3] = [("bash", Shell::Bash), ("fish", Shell::Fish), ("zsh", Shell::Zsh)];

fn shells() -> clap::builder::PossibleValuesParser {
    SHELLS.map(|(name, _)| name).into()
}

/// The answer of `man-pages --json`.
#[derive(Debug, Serialize)]
struct ManPages<'a> {
    /// Where they were written.
    directory: &'a Path,
    /// Names of the files, sorted.
    pages: Vec<String>,
}

/// Writes the manual pages, one for each command.
///
/// # Errors
/// The directory cannot be made or written to.
pub(crate) fn write_pages(args: &ManPagesArgs, json: bool) -> anyhow::Result<Exit> {
    let directory = &args.directory;
    let refused =
        || Refusal::environment(format!("the manual pages cannot be written to {}", directory.display()));
    fs::create_dir_all(directory).with_context(refused)?;
    let mut pages = Vec::new();
    for (name, page) in pages_of(Cli::command())? {
        fs::write(directory.join(&name), page).with_context(refused)?;
        pages.push(name);
    }
    pages.sort();
    if json {
        text::print_json(&serde_json::to_value(ManPages { directory, pages })?);
    } else {
        text::line(&format!("wrote {} manual pages to {}", pages.len(), directory.display()));
    }
    Ok(Exit::Clean)
}

/// File names and texts of the pages of a command and all below it.
fn pages_of(command: clap::Command) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    // A page for `help` of each page would contain nothing more.
    let mut command = command.disable_help_subcommand(true).long_version(version::short());
    command.build();
    let mut pages = Vec::new();
    let mut left = vec![command];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().filter(|below| !below.is_hide_set()).cloned());
        let man = clap_mangen::Man::new(command)
            .manual("Ebbtide")
            .source(format!("ebbtide {}", env!("CARGO_PKG_VERSION")));
        let mut page = Vec::new();
        man.render(&mut page)?;
        pages.push((man.get_filename(), page));
    }
    Ok(pages)
}

/// The answer of `completions --json`.
#[derive(Debug, Serialize)]
struct Completions<'a> {
    /// `bash`, `fish` or `zsh`.
    shell: &'a str,
    /// The script, for the shell to read.
    script: String,
}

/// Prints the completion script of a shell; `with_names` makes the one that asks this program.
///
/// # Errors
/// Standard output takes no more.
pub(crate) fn print_completions(
    args: &CompletionsArgs,
    with_names: impl FnOnce(&str) -> Option<Vec<u8>>,
    json: bool,
) -> anyhow::Result<Exit> {
    let (_, shell) =
        SHELLS.iter().find(|(name, _)| *name == args.shell).context("clap takes no other shell")?;
    let script = if args.names {
        with_names(&args.shell).context("every shell has such a script")?
    } else {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut Cli::command(), "ebbtide", &mut script);
        script
    };
    let script = String::from_utf8(script).context("a completion script is text")?;
    if json {
        text::print_json(&serde_json::to_value(Completions { shell: &args.shell, script })?);
    } else {
        text::write(&script)?;
    }
    Ok(Exit::Clean)
}
