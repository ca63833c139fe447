//! `ebbtide docs`: the pages of this version, in the pager. They are part of the program: a container's image may leave out
//! /usr/share/doc, and a page of another version would be wrong (docs/decisions/pages.md).

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use ebbtide_report::wrapped_markdown;
use ebbtide_text::{closest, did_you_mean};
use serde::Serialize;

use crate::answers;
use crate::document::terminal_columns;
use crate::exit::{Exit, Refusal};
use crate::text::{self, TextTable};

/// `docs`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ebbtide docs\n  ebbtide docs size\n  PAGER=cat ebbtide docs cli")]
pub(crate) struct DocsArgs {
    /// The page, or a command that it is about [default: list the pages]
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// The pages, by name.
const PAGES: [(&str, &str); 27] = [
    ("accuracy", include_str!("../docs/accuracy.md")),
    ("aws", include_str!("../docs/aws.md")),
    ("aws-reference", include_str!("../docs/aws-reference.md")),
    ("catalog", include_str!("../docs/catalog.md")),
    ("cli", include_str!("../docs/cli.md")),
    ("config", include_str!("../docs/config.md")),
    ("crash", include_str!("../docs/crash.md")),
    ("doctor", include_str!("../docs/doctor.md")),
    ("experiments", include_str!("../docs/experiments.md")),
    ("lab", include_str!("../docs/lab.md")),
    ("load", include_str!("../docs/load.md")),
    ("metrics", include_str!("../docs/metrics.md")),
    ("model", include_str!("../docs/model.md")),
    ("nbd", include_str!("../docs/nbd.md")),
    ("predict", include_str!("../docs/predict.md")),
    ("security", include_str!("../docs/security.md")),
    ("service", include_str!("../docs/service.md")),
    ("simulate", include_str!("../docs/simulate.md")),
    ("size", include_str!("../docs/size.md")),
    ("troubleshooting", include_str!("../docs/troubleshooting.md")),
    ("tutorial", include_str!("../docs/tutorial.md")),
    ("watch", include_str!("../docs/watch.md")),
    ("alarms", include_str!("../docs/generated/alarms.md")),
    ("checks", include_str!("../docs/generated/checks.md")),
    ("metric-names", include_str!("../docs/generated/metrics.md")),
    ("settings", include_str!("../docs/generated/settings.md")),
    ("semantics", include_str!("../SEMANTICS.md")),
];

/// Commands that have no page of their own name, with the page that they are in.
const COMMANDS: [(&str, &str); 7] = [
    ("volume", "cli"),
    ("snapshot", "cli"),
    ("serve", "cli"),
    ("run", "lab"),
    ("user", "aws"),
    ("role", "aws"),
    ("completions", "config"),
];

/// A page, as `docs` lists it.
#[derive(Debug, Serialize)]
pub(crate) struct PageListed<'a> {
    /// Its name.
    name: &'a str,
    /// Its heading.
    title: &'a str,
}

/// A page, as `docs NAME` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct PageShown<'a> {
    /// The page.
    #[serde(flatten)]
    page: PageListed<'a>,
    /// Its text, Markdown.
    text: &'a str,
}

/// The names of the pages.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PAGES.into_iter().map(|(name, _)| name)
}

/// Lists the pages, or shows one.
///
/// # Errors
/// No page of this name (exit code 2).
pub(crate) fn run(args: &DocsArgs, json: bool) -> anyhow::Result<Exit> {
    match &args.name {
        None => list(json),
        Some(name) => {
            let (name, text) = page(name)?;
            if json {
                answers::print(&PageShown { page: PageListed { name, title: title(text) }, text });
            } else {
                show(text)?;
            }
        }
    }
    Ok(Exit::Clean)
}

fn list(json: bool) {
    let listed = PAGES.map(|(name, text)| PageListed { name, title: title(text) });
    if json {
        return answers::print(&listed);
    }
    let mut table = TextTable::new(&["PAGE", "ABOUT"]);
    for page in listed {
        table.row([page.name.to_owned(), page.title.to_owned()]);
    }
    table.print("no pages");
    text::line("one of them: ebbtide docs PAGE");
}

/// The heading of a page.
fn title(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
}

/// A page by its name, as a name, a file or a command.
fn page(wanted: &str) -> anyhow::Result<(&'static str, &'static str)> {
    let name = wanted.rsplit('/').next().unwrap_or(wanted);
    let name = name.strip_suffix(".md").unwrap_or(name).to_ascii_lowercase();
    let name = COMMANDS.iter().find(|(command, _)| *command == name).map_or(name.as_str(), |(_, page)| page);
    PAGES.into_iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let known = names().chain(COMMANDS.iter().map(|(command, _)| *command));
        let nearest = did_you_mean(closest(name, known));
        Refusal::usage(format!("there is no page '{wanted}'{nearest}"))
            .hint("'ebbtide docs' lists the pages")
            .into()
    })
}

/// Shows a text in the pager, wrapped at the terminal's width; as it is where standard output is no terminal.
fn show(page: &str) -> anyhow::Result<()> {
    let Some(columns) = terminal_columns() else { return text::write(page) };
    let page = wrapped_markdown(page, columns);
    if paged(&page) { Ok(()) } else { text::write(&page) }
}

/// Whether a pager has shown it.
fn paged(page: &str) -> bool {
    // Ctrl-C is for the pager, which stops a search by it. In the program that is started the signal does what it does by default.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)));
    let mut command = pager(&|name| std::env::var(name).ok());
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut pipe) = child.stdin.take() {
        // A reader that has seen enough is no error.
        let _ = pipe.write_all(page.as_bytes());
    }
    // 127 is the shell's: there is no such program.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

/// The pager of the user. Under sudo it is `less` without its commands that start programs, whatever `PAGER` says: who may run
/// `ebbtide` as root may not run everything.
fn pager(variable: &dyn Fn(&str) -> Option<String>) -> Command {
    let is_sudo = variable("SUDO_USER").is_some();
    let named = variable("PAGER").filter(|pager| !pager.trim().is_empty() && !is_sudo);
    let mut command = Command::new("sh");
    command.args(["-c", named.as_deref().unwrap_or("less")]);
    if variable("LESS").is_none() || is_sudo {
        // It ends by itself where a page fits on the screen.
        command.env("LESS", "FRX");
    }
    if is_sudo {
        command.env("LESSSECURE", "1").env_remove("LESSOPEN").env_remove("LESSCLOSE");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_heading_and_is_found_by_its_name_its_file_and_its_command() {
        for (name, text) in PAGES {
            assert!(!title(text).is_empty(), "{name}");
            assert_eq!(page(name).unwrap().1, text);
        }
        assert_eq!(page("docs/size.md").unwrap().0, "size");
        assert_eq!(page("SEMANTICS.md").unwrap().0, "semantics");
        for (command, name) in COMMANDS {
            assert_eq!(page(command).unwrap().0, name);
        }
        let error = page("docter").unwrap_err().to_string();
        assert!(error.contains("did you mean 'doctor'?"), "{error}");
    }

    #[test]
    fn the_text_of_every_page_fits_a_terminal_but_for_code_and_words_that_are_longer() {
        for (name, text) in PAGES {
            let wrapped = wrapped_markdown(text, 100);
            let mut in_code = false;
            for line in wrapped.lines() {
                in_code ^= line.trim_start().starts_with("```");
                let longest = line.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
                let is_prose = !in_code && !line.starts_with(['#', ' ', '<', '>', '|']) && longest < 60;
                assert!(!is_prose || line.chars().count() <= 100, "{name}: {line}");
            }
            let begin = |text: &str| text.split_whitespace().take(20).collect::<Vec<_>>().join(" ");
            assert_eq!(begin(&wrapped), begin(text), "{name}");
        }
    }

    #[test]
    fn under_sudo_no_program_of_the_users_is_the_pager() {
        let of = |variables: &[(&str, &str)]| {
            let command = pager(&|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            });
            let word = command.get_args().last().unwrap().to_string_lossy().into_owned();
            let secure = command.get_envs().any(|(name, value)| name == "LESSSECURE" && value.is_some());
            (word, secure)
        };
        assert_eq!(of(&[("PAGER", "more -s")]), ("more -s".to_owned(), false));
        assert_eq!(of(&[("PAGER", " ")]), ("less".to_owned(), false));
        assert_eq!(of(&[("PAGER", "sh"), ("SUDO_USER", "anna")]), ("less".to_owned(), true));
    }
}
