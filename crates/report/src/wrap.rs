//! Texts that are no reports, in lines as wide as a terminal: sentences, printed lines, and Markdown as a manual has it.

use textwrap::core::display_width;

use crate::text::wrapped_to;
use crate::{Block, Cell, Report, Section, Table, TextOptions};

/// A text wrapped at so many columns, at least 40; its first line begins with `first`, the others with `rest`, and lines that it has
/// already stay apart. Words that are longer stay whole, and so do commands in quotes (`'ebbtide serve --stop'`).
#[must_use]
pub fn wrapped(text: &str, columns: usize, first: &str, rest: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    // Each line of the text by itself: textwrap measures the begin of all of them as that of the first one.
    for line in with_whole_commands(text).split('\n') {
        let begin = if lines.is_empty() { first } else { rest };
        let options = wrapped_to(columns.max(40)).initial_indent(begin).subsequent_indent(rest);
        let wrapped = textwrap::wrap(line, options);
        lines.extend(wrapped.iter().map(|line| line.trim_end().replace(JOINT, " ")));
    }
    lines.join("\n")
}

/// Lines wrapped each by itself. What is wrapped begins below the text of its line: behind the blanks at its begin, and behind a
/// name in front of two blanks.
#[must_use]
pub fn wrapped_lines(text: &str, columns: usize) -> String {
    let columns = columns.max(40);
    let wrap = |line: &str| {
        let begin = hanging(line, columns);
        wrapped(&line[begin..], columns, &line[..begin], &" ".repeat(display_width(&line[..begin])))
    };
    text.split('\n').map(wrap).collect::<Vec<_>>().join("\n")
}

/// Markdown whose paragraphs and items of lists are wrapped anew. Code stays as it is, and so do tables that are not too wide; the
/// cells of others are wrapped, or each row becomes a list.
#[must_use]
pub fn wrapped_markdown(text: &str, columns: usize) -> String {
    let mut page = Page { columns: columns.max(40), out: String::new(), open: None };
    let lines: Vec<&str> = text.lines().collect();
    let mut place = 0;
    while let Some(line) = lines.get(place) {
        let (rest, begin) = (&lines[place..], line.trim_start());
        let (code, rows) = if begin.starts_with(FENCE) { (fenced(rest), 0) } else { (0, table_lines(rest)) };
        if code > 0 {
            rest[..code].iter().for_each(|line| page.plain(line));
        } else if rows > 0 {
            page.table(&rest[..rows]);
        } else {
            page.line(line);
        }
        place += (code + rows).max(1);
    }
    page.end();
    page.out
}

/// Stands for a blank at which no line ends.
const JOINT: char = '\u{a0}';
/// Begins and ends code in Markdown.
const FENCE: &str = "```";

/// A text whose commands in quotes have no blanks.
fn with_whole_commands(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("'ebbtide ") {
        let (before, quoted) = rest.split_at(start);
        let end = quoted[1..].find('\'').map_or(quoted.len(), |end| end + 2);
        out.push_str(before);
        out.push_str(&quoted[..end].replace(' ', "\u{a0}"));
        rest = &quoted[end..];
    }
    out.push_str(rest);
    out
}

/// Where the text of a line begins, bytes.
fn hanging(line: &str, columns: usize) -> usize {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let named = line[blanks..].find("  ").map(|end| {
        let behind = &line[blanks + end..];
        blanks + end + behind.len() - behind.trim_start_matches(' ').len()
    });
    named.filter(|begin| *begin < line.len() && *begin <= columns / 3).unwrap_or(blanks)
}

/// Lines of code, with both fences.
fn fenced(lines: &[&str]) -> usize {
    let end = lines.iter().skip(1).position(|line| line.trim_start().starts_with(FENCE));
    end.map_or(lines.len(), |end| end + 2)
}

/// Lines of the table at the begin of these; 0 where there is none.
fn table_lines(lines: &[&str]) -> usize {
    lines.iter().take_while(|line| line.trim_start().starts_with('|')).count()
}

/// A paragraph or an item of a list that is being read.
struct Paragraph {
    /// What its first line begins with.
    first: String,
    /// What its other lines begin with.
    rest: String,
    text: String,
}

struct Page {
    columns: usize,
    out: String,
    open: Option<Paragraph>,
}

impl Page {
    /// Writes the paragraph that is being read.
    fn end(&mut self) {
        if let Some(Paragraph { first, rest, text }) = self.open.take() {
            self.out.push_str(&wrapped(&text, self.columns, &first, &rest));
            self.out.push('\n');
        }
    }

    /// Writes a line as it is.
    fn plain(&mut self, line: &str) {
        self.end();
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn line(&mut self, line: &str) {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        let is_code = self.open.is_none() && indent.len() >= 4;
        if text.is_empty() || is_code || text.starts_with(['#', '>', '<']) {
            return self.plain(line);
        }
        if let Some(width) = self.marker(text) {
            self.end();
            let (first, rest) =
                (format!("{indent}{}", &text[..width]), " ".repeat(indent.chars().count() + width));
            self.open = Some(Paragraph { first, rest, text: text[width..].to_owned() });
        } else if let Some(open) = &mut self.open {
            open.text.push(' ');
            open.text.push_str(text);
        } else {
            self.open =
                Some(Paragraph { first: indent.to_owned(), rest: indent.to_owned(), text: text.to_owned() });
        }
        // A break of the line that its writer wants.
        if line.ends_with("  ") || line.ends_with('\\') {
            self.end();
        }
    }

    /// The width of the sign in front of an item of a list; None of another line.
    fn marker(&self, text: &str) -> Option<usize> {
        if ["- ", "* ", "+ "].iter().any(|sign| text.starts_with(sign)) {
            return Some(2);
        }
        let (number, _) = text.split_once(". ")?;
        let is_number = !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit());
        // Another number at the begin of a line of a paragraph belongs to its text.
        let is_in_list = self.open.as_ref().is_none_or(|open| open.first != open.rest);
        (is_number && (number == "1" || is_in_list)).then_some(number.len() + 2)
    }

    /// Writes a table: as it is where it fits.
    fn table(&mut self, lines: &[&str]) {
        let fits = lines.iter().all(|line| display_width(line) <= self.columns);
        let [heads, _, rows @ ..] = lines else { return lines.iter().for_each(|line| self.plain(line)) };
        if fits {
            return lines.iter().for_each(|line| self.plain(line));
        }
        let columns = cells(heads);
        let row = |line: &&str| {
            let mut row: Vec<Cell> = cells(line).into_iter().map(Cell::from).collect();
            row.resize(columns.len(), Cell::default());
            row
        };
        let rows = rows.iter().map(row).collect();
        let table = Table { columns, rows, prose: true, ..Table::default() };
        // Of details nothing is left out.
        let section = Section::new("", vec![Block::Table(table)]).details();
        let options = TextOptions { columns: self.columns, color: false, details: true };
        self.end();
        self.out.push_str(&Report { sections: vec![section], ..Report::default() }.to_text(options));
    }
}

/// The cells of a line of a table. A bar behind a backslash is part of its cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').unwrap_or(line);
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\\' && letters.next_if_eq(&'|').is_some() {
            cell.push('|');
        } else if letter == '|' {
            cells.push(std::mem::take(&mut cell).trim().to_owned());
        } else {
            cell.push(letter);
        }
    }
    cells.push(cell.trim().to_owned());
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_wrapped_between_words_and_a_command_in_quotes_stays_whole() {
        let hint =
            "hint: change it with 'ebbtide serve --change --aws 4599', stop it with 'ebbtide serve --stop'";
        assert_eq!(
            wrapped(hint, 44, "", "  "),
            "hint: change it with\n  'ebbtide serve --change --aws 4599', stop\n  it with 'ebbtide serve --stop'"
        );
        assert_eq!(wrapped("one\ntwo", 80, "", "  "), "one\n  two");
    }

    #[test]
    fn a_line_goes_on_below_its_own_text() {
        let text = format!("Finding   {0}\n    {0}\n{0}\n", "word ".repeat(12).trim_end());
        let lines = "word word word word word word";
        let short = "word word word word word word word word";
        assert_eq!(
            wrapped_lines(&text, 40),
            format!(
                "Finding   {lines}\n          {lines}\n    {0}\n    word word word word word\n{short}\nword word word word\n",
                "word word word word word word word"
            )
        );
        assert_eq!(wrapped_lines("short\n", 80), "short\n");
    }

    #[test]
    fn paragraphs_and_lists_of_markdown_are_wrapped_and_code_and_narrow_tables_stay() {
        let page = "# A title\n\nSome words that the page has\nin two lines, of which this one is long.\n\n\
                    - an item that is longer than the width of it\n  and goes on\n- another\n\n\
                    ```console\n$ a command that is much longer than all of the others | cat\n```\n\n\
                    | A | B |\n|---|---|\n| 1 | 2 |\n";
        assert_eq!(
            wrapped_markdown(page, 40),
            "# A title\n\nSome words that the page has in two\nlines, of which this one is long.\n\n\
             - an item that is longer than the width\n  of it and goes on\n- another\n\n\
             ```console\n$ a command that is much longer than all of the others | cat\n```\n\n\
             | A | B |\n|---|---|\n| 1 | 2 |\n"
        );
    }

    #[test]
    fn a_table_that_is_too_wide_keeps_all_of_its_words_in_lines_that_fit() {
        let page = format!("| Option | Meaning |\n|---|---|\n| `a\\|b` | {} |\n", "word ".repeat(30));
        let text = wrapped_markdown(&page, 60);
        assert!(text.lines().all(|line| display_width(line) <= 60), "{text}");
        assert_eq!(text.matches("word").count(), 30, "{text}");
        assert!(text.contains("`a|b`") && text.contains("Meaning") && !text.contains("---"), "{text}");
    }
}
