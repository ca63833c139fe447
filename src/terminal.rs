//! The terminal on standard output: how wide its lines are, and whether it has colours.

use std::io::IsTerminal as _;

use ebbtide_report::TextOptions;

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

/// $COLUMNS, as shells set it, then the terminal's width, then [`COLUMNS`].
fn columns() -> usize {
    let given =
        std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    given.unwrap_or_else(|| {
        let size = rustix::termios::tcgetwinsize(std::io::stdout());
        size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
    })
}
