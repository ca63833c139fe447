//! Styles. Without colours, bold, dim and reversed remain.

use ratatui::style::{Color, Modifier, Style};

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// A figure.
    Plain,
    /// What matters less: an axis, a key.
    Dim,
    /// The head of a table.
    Head,
    /// All is well.
    Good,
    /// What needs a look.
    Warning,
    /// What needs a hand.
    Critical,
}

impl Level {
    /// That of the severity of an alarm.
    pub(super) fn from_severity(severity: &str) -> Self {
        match severity {
            "critical" | "high" => Self::Critical,
            "medium" => Self::Warning,
            _ => Self::Plain,
        }
    }
}

/// Colours of lines that are told apart with red-green blindness too.
const LINES: [Color; 5] = [Color::Cyan, Color::Yellow, Color::Magenta, Color::Green, Color::Blue];

/// Which styles there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Theme {
    color: bool,
}

impl Theme {
    /// Styles with or without colours.
    pub(super) const fn new(color: bool) -> Self {
        Self { color }
    }

    /// Whether there are colours.
    pub(super) const fn has_color(self) -> bool {
        self.color
    }

    /// The style of a text.
    pub(super) const fn style(self, level: Level) -> Style {
        let (color, modifier) = match level {
            Level::Plain => (Color::Reset, Modifier::empty()),
            Level::Dim => (Color::Reset, Modifier::DIM),
            Level::Head => (Color::Reset, Modifier::BOLD),
            Level::Good => (Color::Green, Modifier::BOLD),
            Level::Warning => (Color::Yellow, Modifier::BOLD),
            Level::Critical => (Color::Red, Modifier::BOLD),
        };
        let style = Style::new().add_modifier(modifier);
        if self.color { style.fg(color) } else { style }
    }

    /// The style of a line of a graph.
    pub(super) fn line(self, place: usize) -> Style {
        if self.color { Style::new().fg(LINES[place % LINES.len()]) } else { Style::new() }
    }

    /// The style of the key of the screen that is shown.
    pub(super) const fn shown(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
