//! How the program ends: the exit codes, and the one place that prints an error.

use std::fmt;
use std::process::ExitCode;

use serde::Serialize;

use crate::{text, version};

/// The exit codes, which scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done, and nothing to report.
    Clean = 0,
    /// Done, and a violation or a finding is reported.
    Finding = 1,
    /// The request itself is wrong.
    Usage = 2,
    /// The environment does not allow it: no FUSE, no server, no permission, no space.
    Environment = 3,
    /// An invariant of our own broke.
    Invariant = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that knows how the program ends because of it.
///
/// Return it as it is, or attach it as anyhow context over the error that it explains. The
/// outermost one of a chain decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What is wrong, naming the value.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl Refusal {
    /// The request is wrong (exit code 2).
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), hint: None }
    }

    /// The environment does not allow it (exit code 3).
    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self { exit: Exit::Environment, message: message.into(), hint: None }
    }

    /// An invariant of our own broke (exit code 4).
    pub(crate) fn invariant(message: impl Into<String>) -> Self {
        Self { exit: Exit::Invariant, message: message.into(), hint: None }
    }

    /// The user ended it before its end (exit code 1).
    pub(crate) fn cancelled(message: impl Into<String>) -> Self {
        Self { exit: Exit::Finding, message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// An error as it is printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    /// The exit code.
    pub(crate) exit: Exit,
    /// The messages of the chain, outermost first.
    pub(crate) chain: Vec<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

impl Report {
    /// Classifies an error chain. Without a [`Refusal`] in it, an I/O error is the environment's
    /// fault and everything else is ours.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if let Some(remote) = error.downcast_ref::<Self>() {
            return remote.clone();
        }
        let mut chain: Vec<String> = error.chain().map(ToString::to_string).collect();
        chain.dedup();
        let refusal = error
            .downcast_ref::<Refusal>()
            .or_else(|| error.chain().find_map(|cause| cause.downcast_ref::<Refusal>()));
        let exit = match refusal {
            Some(refusal) => refusal.exit,
            None if error.chain().any(|cause| cause.is::<std::io::Error>()) => Exit::Environment,
            None => Exit::Invariant,
        };
        Self { exit, chain, hint: refusal.and_then(|refusal| refusal.hint.clone()) }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain.join(": "))
    }
}

impl std::error::Error for Report {}

/// What a command prints that fails.
#[derive(Debug, Serialize)]
pub(crate) struct Failed<'a> {
    /// What went wrong.
    pub(crate) error: &'a Report,
}

/// Prints an error, once, and names the exit code.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    let report = Report::of(error);
    if json {
        print_json(&report);
    }
    note_report(&report).into()
}

/// Prints an error on standard error alone, after an answer that it does not take back, and names the exit code.
pub(crate) fn note_error(error: &anyhow::Error) -> Exit {
    note_report(&Report::of(error))
}

fn note_report(report: &Report) -> Exit {
    text::note(&format!("error: {report}"));
    if let Some(hint) = &report.hint {
        text::note(&format!("hint: {hint}"));
    }
    report.exit
}

fn print_json(report: &Report) {
    let line = serde_json::to_string(&Failed { error: report });
    text::line(&line.expect("a report is plain data"));
}

/// Prints clap's own message, with a `hint` where there is a better one than clap's, and as JSON too where `json`
/// is set; asking for help or the version is no error, and the
/// version is JSON where `json` is set.
pub(crate) fn report_usage(error: &clap::Error, hint: Option<String>, json: bool) -> ExitCode {
    if error.use_stderr() {
        if json {
            let report = usage(error);
            print_json(&Report { hint: hint.clone().or(report.hint), ..report });
        }
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        if words.into_iter().all(|word| text::printable(&word) == word) {
            // Where even standard error is closed, the error cannot be reported.
            let _ = error.print();
        } else {
            text::note(error.to_string().trim_end());
        }
        hint.iter().for_each(|hint| text::note(&format!("hint: {hint}")));
        return Exit::Usage.into();
    }
    if json && error.kind() == clap::error::ErrorKind::DisplayVersion {
        version::print_json();
        return text::lost().map_or(Exit::Clean.into(), |error| report(error, json));
    }
    match error.print() {
        // A closed pipe (`ebbtide --help | head -1`) is the reader's choice.
        Err(lost) if lost.kind() != std::io::ErrorKind::BrokenPipe => {
            report(&anyhow::Error::new(lost).context("cannot write to standard output"), json)
        }
        _ => Exit::Clean.into(),
    }
}

/// Clap's message in the shape of every other error: its first paragraph is what is wrong.
fn usage(error: &clap::Error) -> Report {
    use clap::error::ErrorKind;
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let (what, hint) = match error.kind() {
        // Clap answers with the whole help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            ("a command is missing".to_owned(), "try '--help'".to_owned())
        }
        _ => (paragraphs.next().unwrap_or_default(), paragraphs.collect::<Vec<_>>().join("\n")),
    };
    let what = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    Report { exit: Exit::Usage, chain: vec![what], hint: Some(hint) }
}
