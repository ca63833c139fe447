//! Markup that is built of elements: each text and each value of an attribute is escaped on its way in.

use ebbtide_report::escaped;
use ebbtide_text::printable;

/// Markup of a page, or of a part of it.
#[derive(Debug, Default)]
pub(super) struct Markup(String);

impl Markup {
    /// Begins an element.
    pub(super) fn open(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
        self.0.push('>');
    }

    /// Ends an element.
    pub(super) fn close(&mut self, tag: &str) {
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push_str(">\n");
    }

    /// An element with a text.
    pub(super) fn element(&mut self, tag: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close(tag);
    }

    /// A text. What could hide or turn text, such as control characters, is written as its code.
    pub(super) fn text(&mut self, text: &str) {
        self.0.push_str(&escaped(&printable(text)));
    }

    /// A table that can be scrolled by the keyboard where it is wider than the page.
    pub(super) fn table(&mut self, table: &Table<'_>) {
        let Table { caption, columns, rows } = table;
        self.open(
            "div",
            &[("class", "table-box"), ("role", "region"), ("tabindex", "0"), ("aria-label", *caption)],
        );
        self.open("table", &[("class", "rows")]);
        self.element("caption", &[], caption);
        self.open("thead", &[]);
        self.open("tr", &[]);
        for column in *columns {
            self.element("th", &[("scope", "col")], column);
        }
        self.close("tr");
        self.close("thead");
        self.open("tbody", &[]);
        for row in rows {
            self.open("tr", &[]);
            for (index, cell) in row.iter().enumerate() {
                self.cell(index == 0, cell);
            }
            self.close("tr");
        }
        self.close("tbody");
        self.close("table");
        self.close("div");
    }

    fn cell(&mut self, is_first: bool, cell: &Cell) {
        let (tag, scope) = if is_first { ("th", Some(("scope", "row"))) } else { ("td", None) };
        let tone = (!cell.tone.is_empty()).then_some(("class", cell.tone));
        let attributes: Vec<(&str, &str)> = scope.into_iter().chain(tone).collect();
        self.open(tag, &attributes);
        match &cell.link {
            Some(link) => self.element("a", &[("href", link.as_str())], &cell.text),
            None => self.text(&cell.text),
        }
        self.close(tag);
    }

    /// The markup.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The markup as its own text.
    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// A table.
#[derive(Debug)]
pub(super) struct Table<'a> {
    /// What it shows.
    pub(super) caption: &'a str,
    /// The heads of its columns.
    pub(super) columns: &'a [&'a str],
    /// Its rows, with a cell for each column.
    pub(super) rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    text: String,
    link: Option<String>,
    /// A class of the styles: `bad`, `caution`, `good`, `words`, or empty.
    tone: &'static str,
}

impl Cell {
    /// A cell whose text leads to a page of this server.
    pub(super) fn link(text: &str, path: String) -> Self {
        Self { text: text.to_owned(), link: Some(path), tone: "" }
    }

    /// Words, which are set to the left and may have several lines.
    pub(super) fn words(text: impl Into<String>) -> Self {
        let text: String = text.into();
        Self::from(text).toned("words")
    }

    /// The same cell in a tone.
    pub(super) fn toned(self, tone: &'static str) -> Self {
        Self { tone, ..self }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, link: None, tone: "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_an_element_or_ends_an_attribute() {
        let nasty = "\" onload=x><script>&\u{1b}[2J";
        let mut markup = Markup::default();
        markup.element("a", &[("href", nasty)], nasty);
        let text = markup.into_string();
        assert_eq!(
            text,
            "<a href=\"&quot; onload=x&gt;&lt;script&gt;&amp;\\u{1b}[2J\">&quot; onload=x&gt;&lt;script&gt;&amp;\\u{1b}[2J</a>\n"
        );
    }
}
