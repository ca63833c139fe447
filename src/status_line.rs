//! One line on a terminal that is written over; silent where standard error is no terminal.

use std::io::{IsTerminal as _, Write as _};

/// The line. It is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct StatusLine {
    terminal: bool,
    shown: bool,
    /// What is before every text; empty for nothing.
    prefix: String,
}

impl StatusLine {
    /// A line that shows nothing yet.
    pub(crate) fn new() -> Self {
        Self::with_prefix("")
    }

    /// A line that has this before every text.
    pub(crate) fn with_prefix(prefix: &str) -> Self {
        // A dumb terminal cannot go back in a line.
        let dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        Self { terminal: std::io::stderr().is_terminal() && !dumb, shown: false, prefix: prefix.to_owned() }
    }

    /// Whether anybody sees it.
    pub(crate) const fn is_seen(&self) -> bool {
        self.terminal
    }

    /// Shows a text, cut to the terminal's width: a line that wraps could not be written over.
    pub(crate) fn show(&mut self, text: &str) {
        if self.terminal {
            self.shown = true;
            let line: String = self.prefix.chars().chain(text.chars()).take(columns()).collect();
            // A terminal that is gone is no reason to stop.
            let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// Takes the text away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map_or(80, |size| usize::from(size.ws_col).max(20)) - 1
}
