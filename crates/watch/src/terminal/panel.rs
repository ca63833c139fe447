//! A part of the screen that is filled from its top.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::label::shortened;

/// A part of the screen that is filled from its top. What does not fit is left out.
#[derive(Debug)]
pub(super) struct Panel<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    used: u16,
}

impl<'a> Panel<'a> {
    /// An empty part.
    pub(super) fn new(buffer: &'a mut Buffer, area: Rect) -> Self {
        Self { buffer, area, used: 0 }
    }

    /// Its width in cells.
    pub(super) fn columns(&self) -> usize {
        usize::from(self.area.width)
    }

    /// How many lines are left.
    pub(super) fn rows(&self) -> usize {
        usize::from(self.area.height.saturating_sub(self.used))
    }

    /// Adds a line.
    pub(super) fn line(&mut self, line: &Line<'_>) {
        if self.used < self.area.height {
            self.buffer.set_line(self.area.x, self.area.y + self.used, line, self.area.width);
            self.used += 1;
        }
    }

    /// Adds a text of one line in one style, shortened where it is too long.
    pub(super) fn text(&mut self, text: &str, style: Style) {
        self.line(&Line::styled(shortened(text, self.columns()), style));
    }

    /// Adds lines.
    pub(super) fn lines<'line>(&mut self, lines: impl IntoIterator<Item = Line<'line>>) {
        lines.into_iter().for_each(|line| self.line(&line));
    }

    /// Leaves a line empty.
    pub(super) fn blank(&mut self) {
        self.used = self.used.saturating_add(1).min(self.area.height);
    }

    /// The buffer, and the area of the lines that are left.
    pub(super) fn rest(&mut self) -> (&mut Buffer, Rect) {
        let Rect { x, y, width, height } = self.area;
        let used = self.used.min(height);
        (&mut *self.buffer, Rect { x, y: y + used, width, height: height - used })
    }
}
