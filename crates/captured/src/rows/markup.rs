//! Rows in XML and HTML.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::Rows;

/// Reads the rows of a document. HTML leaves out the ends of elements, and may have what is no XML after its tables.
pub(super) fn read(text: &str) -> Rows {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut document = Document::default();
    loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => document.begin(&element),
            Ok(Event::Empty(element)) => {
                document.begin(&element);
                document.end(element.local_name().as_ref());
            }
            Ok(Event::End(element)) => document.end(element.local_name().as_ref()),
            Ok(Event::Text(text)) => document.text(&text),
            Ok(Event::CData(text)) => document.text(&text),
            Ok(Event::GeneralRef(reference)) => document.text(&letter(&reference)),
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(_) => {
                document.is_broken = true;
                break;
            }
        }
    }
    document.rows()
}

/// A document as far as it is read.
#[derive(Debug, Default)]
struct Document {
    rows: Rows,
    /// Whether a table of HTML was seen.
    is_html: bool,
    /// Columns of the row that is read, by their names; a cell of HTML has none yet.
    columns: Vec<(String, String)>,
    /// The column that text belongs to.
    open: Option<(String, String)>,
    /// Names of the columns of a table of HTML: the cells of its first row.
    heading: Vec<String>,
    /// Elements of a result that are open.
    depth: usize,
    is_broken: bool,
}

/// What an element is.
enum Element {
    /// It holds a result, or as phpMyAdmin's `table` one row of it.
    Result {
        has_rows: bool,
    },
    /// It holds a row.
    Row,
    /// A column of a row by this name.
    Column(String),
    /// A cell of a table of HTML.
    Cell,
    Other,
}

fn element(name: &str, attribute: Option<String>) -> Element {
    let name = name.to_ascii_lowercase();
    match (name.as_str(), attribute) {
        ("field" | "column", Some(column)) => Element::Column(column),
        ("td" | "th", _) => Element::Cell,
        ("tr" | "row" | "data_record" | "record", _) => Element::Row,
        ("variable_name" | "value" | "variable_value", _) => Element::Column(name),
        ("resultset" | "data", _) => Element::Result { has_rows: true },
        ("table", _) => Element::Result { has_rows: false },
        _ => Element::Other,
    }
}

impl Document {
    fn begin(&mut self, start: &BytesStart<'_>) {
        let name = start.local_name();
        let attribute = start.try_get_attribute("name").ok().flatten();
        let column = attribute.map(|attribute| attribute.value.into_owned());
        match element(name.as_ref(), column) {
            Element::Result { has_rows } => {
                self.end_row();
                self.depth += 1;
                self.heading.clear();
                if has_rows {
                    self.rows.heading();
                }
            }
            Element::Row => {
                self.end_row();
                self.depth += 1;
            }
            Element::Column(column) => {
                self.end_column();
                self.open = Some((column, String::new()));
            }
            Element::Cell => {
                self.is_html = true;
                self.end_column();
                self.open = Some((String::new(), String::new()));
            }
            Element::Other => {}
        }
    }

    fn end(&mut self, name: &str) {
        match element(name, Some(String::new())) {
            Element::Result { .. } | Element::Row => {
                self.end_row();
                self.depth = self.depth.saturating_sub(1);
            }
            Element::Column(_) | Element::Cell => self.end_column(),
            Element::Other => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((_, value)) = &mut self.open {
            value.push_str(text);
        }
    }

    fn end_column(&mut self) {
        if let Some((name, value)) = self.open.take() {
            self.columns.push((name, value.trim().to_owned()));
        }
    }

    fn end_row(&mut self) {
        self.end_column();
        let mut columns = std::mem::take(&mut self.columns);
        if columns.iter().all(|(name, _)| name.is_empty()) && !columns.is_empty() {
            if self.heading.is_empty() {
                self.heading = columns.into_iter().map(|(_, cell)| cell).collect();
                self.rows.heading();
                return;
            }
            for ((name, _), heading) in columns.iter_mut().zip(&self.heading) {
                name.clone_from(heading);
            }
        }
        self.rows.record(&columns);
    }

    fn rows(mut self) -> Rows {
        let is_cut = self.is_broken || self.depth > 0;
        if is_cut {
            // A value that has no end may be cut off, and a row may lack columns; HTML has rows without ends.
            if self.is_html && !self.is_broken {
                self.end_row();
            }
        }
        let is_empty = self.rows.text.lines().all(|line| line.starts_with('*') || line.is_empty());
        if is_empty { Rows::default() } else { Rows { is_cut: is_cut && !self.is_html, ..self.rows } }
    }
}

/// What a reference such as `&lt;` stands for; a blank where it is not known.
fn letter(reference: &BytesRef<'_>) -> String {
    match reference.resolve_char_ref() {
        Ok(Some(letter)) => letter.to_string(),
        _ => resolve_predefined_entity(reference).unwrap_or(" ").to_owned(),
    }
}
