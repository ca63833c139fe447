//! The server's log: its format, and which events are in it.

use std::io::{IsTerminal as _, stderr};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, ParseError};

use crate::exit::Refusal;

/// The environment variable that sets which events are logged.
const FILTER: &str = "EBBTIDE_LOG";

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

impl LogFormat {
    /// Prints a text on standard error that is no event: as text to people, and as an event where lines are JSON.
    pub(super) fn print(self, what: &str) {
        match self {
            Self::Text => crate::text::note(what),
            Self::Json => tracing::warn!("{what}"),
        }
    }

    /// As the option takes it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Which events are logged: those of `EBBTIDE_LOG`, or those of level info and above.
///
/// # Errors
/// A value that is no filter.
pub(super) fn filter() -> anyhow::Result<EnvFilter> {
    let Some(text) = std::env::var_os(FILTER).filter(|text| !text.is_empty()) else {
        return Ok(EnvFilter::new("info"));
    };
    let text = text.to_string_lossy();
    parse(&text).map_err(|why| {
        Refusal::usage(format!("{FILTER}='{text}' is no filter of log events: {why}"))
            .hint("write a level (error, warn, info, debug or trace), or levels by module: info,ebbtide_device=debug")
            .into()
    })
}

/// Why a text is no filter.
#[derive(Debug, thiserror::Error)]
enum FilterError {
    #[error("'{0}' is no level")]
    UnknownLevel(String),
    #[error(transparent)]
    Directive(#[from] ParseError),
}

/// Reads a filter. Errors are logged unless it is `off`: among them are requests that the host's disk failed.
fn parse(text: &str) -> Result<EnvFilter, FilterError> {
    for word in text.split(',').map(str::trim).filter(|word| !word.contains(['=', '['])) {
        // A word alone that is no level would be taken for a module, and all others would be switched off.
        if word.parse::<LevelFilter>().is_err() && !word.starts_with("ebbtide") {
            return Err(FilterError::UnknownLevel(word.to_owned()));
        }
    }
    // Later words win over earlier ones.
    Ok(EnvFilter::try_new(format!("error,{text}"))?)
}

/// Logs to standard error from now on.
pub(super) fn start(format: LogFormat, filter: EnvFilter) {
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    match format {
        LogFormat::Text => log.with_ansi(stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).init(),
    }
}
