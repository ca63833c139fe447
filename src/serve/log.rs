//! The server's log: its format, and which events are in it.

use std::io::{IsTerminal as _, stderr};

use anyhow::Context as _;
use clap::ValueEnum;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

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

/// Which events are logged: those of `--log`, else of `EBBTIDE_LOG`, else those of level info and above.
///
/// # Errors
/// A value that is no filter.
pub(super) fn filter(option: Option<&str>) -> anyhow::Result<EnvFilter> {
    if let Some(text) = option {
        return parse_option(text);
    }
    let Some(text) = std::env::var_os(FILTER).filter(|text| !text.is_empty()) else {
        return Ok(EnvFilter::new("info"));
    };
    parse_named(FILTER, &text.to_string_lossy())
}

/// The filter of `--log`.
///
/// # Errors
/// A value that is no filter.
pub(super) fn parse_option(text: &str) -> anyhow::Result<EnvFilter> {
    parse_named("--log", text)
}

fn parse_named(name: &str, text: &str) -> anyhow::Result<EnvFilter> {
    parse(text).map_err(|why| {
        Refusal::usage(format!("{name}='{text}' is no filter of log events: {why}"))
            .hint("write a level (error, warn, info, debug or trace), or levels by module: info,ebbtide_device=debug")
            .into()
    })
}

/// Sets the filter of a log that has begun.
type SetFilter = dyn Fn(EnvFilter) -> anyhow::Result<()> + Send + Sync;

/// The level of the log, which can be set anew.
pub(super) struct LogLevel(Box<SetFilter>);

impl std::fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogLevel")
    }
}

impl LogLevel {
    /// Logs the events of another filter from now on.
    ///
    /// # Errors
    /// Another log has taken its place.
    pub(super) fn set(&self, filter: EnvFilter) -> anyhow::Result<()> {
        (self.0)(filter)
    }
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

/// Writes the fields of an event on its one line: what a caller of the endpoint has chosen begins no line of its own, and
/// says nothing to a terminal.
fn escaped_fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    let fields = debug_fn(|writer: &mut Writer<'_>, field: &Field, value: &dyn std::fmt::Debug| {
        let text = escaped(&format!("{value:?}"));
        match field.name() {
            "message" => write!(writer, "{text}"),
            name => write!(writer, "{name}={text}"),
        }
    });
    fields.delimited(" ")
}

/// A text whose control characters, and those that turn the direction of writing, are written as Rust does.
fn escaped(text: &str) -> String {
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = |c: char| matches!(c, '\u{2028}' | '\u{2029}');
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || turns(c) || breaks(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Logs to standard error from now on.
pub(super) fn start(format: LogFormat, filter: EnvFilter) -> LogLevel {
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    match format {
        LogFormat::Text => {
            let log = log.fmt_fields(escaped_fields()).with_ansi(stderr().is_terminal());
            let log = log.with_filter_reloading();
            let handle = log.reload_handle();
            log.init();
            LogLevel(Box::new(move |filter| handle.reload(filter).context("the log cannot be changed")))
        }
        LogFormat::Json => {
            let log = log.json().flatten_event(true).with_current_span(false).with_filter_reloading();
            let handle = log.reload_handle();
            log.init();
            LogLevel(Box::new(move |filter| handle.reload(filter).context("the log cannot be changed")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_callers_choose_stays_on_the_line_of_its_event_and_tells_a_terminal_nothing() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let log = tracing_subscriber::fmt().fmt_fields(escaped_fields()).with_ansi(false).without_time();
        let log = log.with_target(false).with_writer(move || writer.clone()).finish();
        let chosen = "x\r\n2026 ERROR made up \u{1b}[31m\u{9b}2J\u{202e}é";
        tracing::subscriber::with_default(log, || {
            tracing::warn!(action = %chosen, user = chosen, number = 7, "refused: {chosen}");
        });
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        let line = r"x\r\n2026 ERROR made up \u{1b}[31m\u{9b}2J\u{202e}é";
        assert_eq!(text, format!(" WARN refused: {line} action={line} user=\"{line}\" number=7\n"));
    }
}
