//! A document of a command on standard output, as wide as the terminal and with its colours, and as a page.

use std::io::IsTerminal as _;
use std::path::Path;

use anyhow::Context as _;
use ebbtide_report::{Report, TextOptions, wrapped_lines};
use ebbtide_text::{closest, did_you_mean};

use crate::exit::Refusal;
use crate::text::{self, COLUMNS, terminal_width};

/// When text has colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    #[default]
    Auto,
    /// In files and pipes too.
    Always,
    /// Nowhere.
    Never,
}

/// How an answer is written on standard output.
pub(crate) fn text_options(color: ColorWhen, details: bool) -> TextOptions {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let color = match color {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => {
            let dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
            std::io::stdout().is_terminal() && !dumb && !set("NO_COLOR")
        }
    };
    TextOptions { columns: columns(), color, details }
}

/// Which sections of an answer are printed.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SectionArgs {
    /// Print these sections of --details alone, by name; a wrong name prints those that there are
    #[arg(long, value_name = "SECTION", value_delimiter = ',', conflicts_with = "details")]
    show: Vec<String>,
}

impl SectionArgs {
    /// The names of `--show`; empty without it.
    pub(crate) fn names(&self) -> &[String] {
        &self.show
    }

    /// Prints a document, and below it where the rest is; or its sections of `--show` alone.
    ///
    /// # Errors
    /// A section that the document does not have: exit code 2. Standard output takes no more.
    pub(crate) fn print(&self, document: &Report, options: TextOptions, rest: &str) -> anyhow::Result<()> {
        if self.show.is_empty() {
            return print(document, options, rest);
        }
        let shown = document.only(&self.show).map_err(|unknown| {
            let like = closest(&unknown.word, unknown.known.iter().map(String::as_str));
            let message =
                format!("--show {}: this answer has no such section{}", unknown.word, did_you_mean(like));
            Refusal::usage(message).hint(format!("its sections are {}", unknown.known.join(", ")))
        })?;
        text::write(&shown.to_text(TextOptions { details: true, ..options }))
    }
}

/// Prints a document, and below it where the rest is.
///
/// # Errors
/// Standard output takes no more.
pub(crate) fn print(document: &Report, options: TextOptions, rest: &str) -> anyhow::Result<()> {
    let rest = if rest.is_empty() { String::new() } else { format!("\n{}", options.sentence(rest)) };
    text::write(&format!("{}{rest}", document.to_text(options)))
}

/// Writes a document as the page of `--html`.
///
/// # Errors
/// The file cannot be written: exit code 3.
pub(crate) fn write_page(path: &Path, document: &Report) -> anyhow::Result<()> {
    std::fs::write(path, document.to_html()).with_context(|| {
        Refusal::environment(format!("cannot write {}", path.display()))
            .hint("give --html a file in a directory that is there and that you may write")
    })
}

/// Where the charts are, for the end of a line: the page that was written, or how to get one.
pub(crate) fn charts(page: Option<&Path>) -> String {
    page.map_or_else(|| "charts: --html FILE".to_owned(), |path| format!("charts: {}", path.display()))
}

/// The width of the terminal on standard output; None where it is none, and text is for a program or a file.
pub(crate) fn terminal_columns() -> Option<usize> {
    std::io::stdout().is_terminal().then(columns)
}

/// Printed lines, wrapped each by itself where standard output is a terminal; as they are elsewhere.
pub(crate) fn fitted(lines: String) -> String {
    match terminal_columns() {
        Some(columns) => wrapped_lines(&lines, columns),
        None => lines,
    }
}

/// $COLUMNS, as shells set it, then the terminal's width, then [`COLUMNS`].
fn columns() -> usize {
    let given =
        std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    given.or_else(|| terminal_width(std::io::stdout())).unwrap_or(COLUMNS)
}
