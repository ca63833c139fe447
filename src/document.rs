//! A document of a command on standard output, as wide as the terminal and with its colours, and as a page.

use std::io::IsTerminal as _;
use std::path::Path;

use anyhow::Context as _;
use ebbtide_report::{Report, TextOptions};

use crate::exit::Refusal;
use crate::text;

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

/// Columns where standard output is no terminal and $COLUMNS is not set.
const COLUMNS: usize = 80;

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

/// Prints a document, and below it where the rest is.
///
/// # Errors
/// Standard output takes no more.
pub(crate) fn print(document: &Report, options: TextOptions, rest: &str) -> anyhow::Result<()> {
    text::write(&format!("{}\n{}", document.to_text(options), options.sentence(rest)))
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

/// $COLUMNS, as shells set it, then the terminal's width, then [`COLUMNS`].
fn columns() -> usize {
    let given =
        std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    given.unwrap_or_else(|| {
        let size = rustix::termios::tcgetwinsize(std::io::stdout());
        size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
    })
}
