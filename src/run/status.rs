//! A run while it lasts: one status line on a terminal, and a line for each trial that ends.

use ebbtide_lab::run::Event;
use ebbtide_lab::words::progress::{Words, words};

use crate::status_line::StatusLine;
use crate::text::line;

/// Shows a run on standard error; trials that end are lines of standard output, unless that carries JSON.
#[derive(Debug)]
pub(crate) struct RunStatus {
    line: StatusLine,
    json: bool,
    /// The last line that was printed where no line can be overwritten, so that none is printed twice.
    last: String,
}

impl RunStatus {
    /// `prefix`: what the status line has before every text.
    pub(crate) fn new(json: bool, prefix: &str) -> Self {
        Self { line: StatusLine::with_prefix(prefix), json, last: String::new() }
    }

    pub(super) fn take(&mut self, event: Event) {
        self.show(words(event));
    }

    /// Shows a line on a terminal; prints the one that stays once where there is none.
    pub(crate) fn show(&mut self, words: Words) {
        match words {
            Words::Line(text) => self.print(&text),
            Words::Status { text, .. } if self.line.is_seen() => self.line.show(&text),
            Words::Status { plain, .. } if !plain.is_empty() && self.last != plain => {
                self.print(&plain);
                self.last = plain;
            }
            Words::Status { .. } | Words::Nothing => {}
        }
    }

    /// Prints a line that stays.
    fn print(&mut self, text: &str) {
        self.line.clear();
        if self.json {
            crate::text::note(text);
        } else {
            line(text);
        }
    }
}
