//! Text for people: tables, lines, times as commands take and print them; and JSON for programs.

pub(crate) use ebbtide_text::{count, printable, size, timestamp};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use anyhow::Context as _;
use ebbtide_report::wrapped;

/// A table with left-aligned columns.
#[derive(Debug)]
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with these column heads.
    pub(crate) fn new(heads: &[&str]) -> Self {
        Self { rows: vec![heads.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row, as wide as the heads.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        let cells = cells.into();
        debug_assert_eq!(cells.len(), self.rows[0].len(), "a row has a cell for each head");
        self.rows.push(cells);
    }

    /// Prints the table, or `empty` where it has no rows.
    pub(crate) fn print(&self, empty: &str) {
        if self.rows.len() == 1 {
            return line(empty);
        }
        for text in self.lines() {
            line(&text);
        }
    }

    /// The table as text, without an end of line.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.lines().join("\n")
    }

    fn lines(&self) -> Vec<String> {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<_> = (0..self.rows[0].len()).map(|column| width(column).unwrap_or(0)).collect();
        let pad = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(pad).collect()
    }
}

/// Prints text as it is. A reader that has gone away (`| head -1`) is no error.
///
/// # Errors
/// Standard output takes no more: its disk is full, most likely.
pub(crate) fn write(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// The first failure of [`line()`], kept until the program ends.
static LOST: OnceLock<anyhow::Error> = OnceLock::new();

/// Prints one line. What could not be printed is known to [`lost`], as the error flag of a C
/// stream would have it: a command whose work is done half must not end over its output.
pub(crate) fn line(text: &str) {
    if let Err(error) = write(&format!("{text}\n")) {
        // A later failure shows nothing new.
        let _ = LOST.set(error);
    }
}

/// Why lines of this program were lost, if they were.
pub(crate) fn lost() -> Option<&'static anyhow::Error> {
    LOST.get()
}

/// Prints one message on standard error. What belongs to it begins with blanks where it has several lines, so
/// that no word of a user can pass for a message of its own.
///
/// On a terminal it is wrapped at its width. What reads a file or a pipe finds each message as it was written.
#[allow(clippy::print_stderr, reason = "the one place that does")]
pub(crate) fn note(text: &str) {
    eprintln!("{}", noted(text, note_columns()));
}

/// A message as it is printed: of a terminal, with its width.
fn noted(text: &str, columns: Option<usize>) -> String {
    let text = printable(text);
    match columns {
        Some(columns) => wrapped(&text, columns, "", "  "),
        None => text.replace('\n', "\n  "),
    }
}

/// The width of the terminal on standard error; None where it is none.
fn note_columns() -> Option<usize> {
    io::stderr().is_terminal().then(|| terminal_width(io::stderr()).unwrap_or(COLUMNS))
}

/// The width where nobody says another one, columns.
pub(crate) const COLUMNS: usize = 80;

/// The width of a terminal, columns; None where it has none, as a serial line.
pub(crate) fn terminal_width(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Replaces the status line of a terminal on standard error.
#[allow(clippy::print_stderr, reason = "a line without its end")]
pub(crate) fn status(text: &str) {
    eprint!("\r\x1b[K{}", printable(text));
}

/// Prints one JSON value.
pub(crate) fn print_json(value: &serde_json::Value) {
    line(&serde_json::to_string_pretty(value).expect("a JSON value can always be written"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_wrapped_on_a_terminal_alone_and_goes_on_behind_blanks() {
        let message =
            "note: volume 'db' may still take 500 GiB, and the disk of the home has 20 GiB free\nat /srv";
        assert_eq!(noted(message, None), message.replace('\n', "\n  "));
        assert_eq!(
            noted(message, Some(60)),
            "note: volume 'db' may still take 500 GiB, and the disk of\n  the home has 20 GiB free\n  at /srv"
        );
    }

    #[test]
    fn columns_line_up_and_lines_end_without_blanks() {
        let mut table = TextTable::new(&["NAME", "SIZE"]);
        table.row(["database".into(), "1GiB".into()]);
        assert_eq!(table.lines(), ["NAME      SIZE", "database  1GiB"]);
    }
}
