//! The report as text for a terminal: wrapped at its width, with colours where it has them.
//!
//! Charts are left to the page. A table that is too wide first wraps its columns of words, then leaves out columns, and says
//! which ones. Among details nothing is left out: there each row becomes a list. What could control a terminal, such as an escape in
//! a value, is written as text.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use ebbtide_text::printable;
use textwrap::core::{Word, display_width};
use textwrap::{Options, WordSeparator, WordSplitter};

use crate::{Block, Cell, Fact, Listing, Medium, Note, Report, Section, Table, Tone, Verdict};

/// How a report is written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// The longest line, columns; at least 40 are used. Words that are longer, such as paths, stay whole.
    pub columns: usize,
    /// Whether tones are shown by colours (ANSI escapes).
    pub color: bool,
    /// Whether sections and folds that hold details are written too.
    pub details: bool,
}

impl Default for TextOptions {
    /// What fits on the narrowest common terminal: 80 columns, no colours, no details.
    fn default() -> Self {
        Self { columns: 80, color: false, details: false }
    }
}

impl TextOptions {
    /// A sentence beside a report, wrapped; it ends with a line feed.
    #[must_use]
    pub fn sentence(self, sentence: &str) -> String {
        let block = Block::Text(sentence.to_owned());
        Report { sections: vec![Section::new("", vec![block])], ..Report::default() }.to_text(self)
    }
}

/// Blanks between two columns of a table.
const GAP: usize = 2;
/// The narrowest that a column of words gets before another column is left out.
const WORDS_AT_LEAST: usize = 18;
/// Where the text of a note, a fact or a detail begins.
const INDENT: &str = "  ";

impl Report {
    /// The report as text: sections in their order, without title and footer, so that the first line is the first finding or
    /// verdict. It ends with a line feed, unless it is empty.
    #[must_use]
    pub fn to_text(&self, options: TextOptions) -> String {
        let options = TextOptions { columns: options.columns.max(40), ..options };
        let mut text = Text { options, out: String::new(), in_details: false };
        let of_text = self.sections.iter().filter(|section| section.is_for(Medium::Text));
        for section in of_text.filter(|section| options.details || !section.details) {
            text.section(section);
        }
        text.out
    }
}

struct Text {
    options: TextOptions,
    out: String,
    /// Whether what is written now was asked for as details.
    in_details: bool,
}

impl Text {
    fn section(&mut self, section: &Section) {
        if !section.blocks.iter().any(|block| is_written(block, self.options)) {
            return;
        }
        if !section.heading.is_empty() {
            self.gap();
            self.heading(&section.heading);
        }
        if !section.lead.is_empty() {
            self.paragraph("", "", &section.lead, Style::new());
        }
        self.in_details = section.details;
        self.blocks(&section.blocks);
        self.in_details = false;
    }

    fn blocks(&mut self, blocks: &[Block]) {
        let options = self.options;
        let mut after_sentence = true;
        for block in blocks.iter().filter(|block| is_written(block, options)) {
            // Sentences follow each other; between other blocks there is an empty line.
            let is_sentence = matches!(block, Block::Text(_) | Block::Link(_));
            if !(is_sentence && after_sentence) {
                self.gap();
            }
            after_sentence = is_sentence || matches!(block, Block::Findings(_));
            match block {
                Block::Verdicts(verdicts) => verdicts.iter().for_each(|verdict| self.verdict(verdict)),
                Block::Findings(findings) => {
                    findings.iter().for_each(|finding| self.paragraph("", INDENT, finding, bold()));
                }
                Block::Heading(heading) => self.heading(heading),
                Block::Text(text) => self.paragraph("", "", text, Style::new()),
                Block::Facts(facts) => self.facts(facts),
                Block::Table(table) => self.table(table),
                Block::Estimates(estimates) => self.table(&estimates.table()),
                Block::Bands(bands) => self.table(&bands.table()),
                Block::Listing(listing) => self.listing(listing),
                Block::Notes(notes) => notes.iter().for_each(|note| self.note(note)),
                Block::Fold(fold) => {
                    self.heading(&fold.summary);
                    self.blocks(&fold.blocks);
                }
                Block::Link(link) => {
                    self.paragraph("", INDENT, &format!("{}: {}", link.text, link.file), Style::new())
                }
                Block::Plots(_) => unreachable!("charts have no form as text"),
            }
        }
    }

    /// An empty line, unless there is one or nothing is written yet.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn heading(&mut self, text: &str) {
        self.paragraph("", "", text, bold());
    }

    /// Wraps a text; its first line begins with `first`, the others with `rest`.
    fn paragraph(&mut self, first: &str, rest: &str, text: &str, style: Style) {
        let options = wrapped_to(self.options.columns).initial_indent(first).subsequent_indent(rest);
        for line in textwrap::wrap(&printable(text), options) {
            self.line(&line, style);
        }
    }

    fn line(&mut self, text: &str, style: Style) {
        let _ = writeln!(self.out, "{}", self.painted(text.trim_end(), style));
    }

    /// A text in its style, where there are colours.
    fn painted<'t>(&self, text: &'t str, style: Style) -> Cow<'t, str> {
        if self.options.color && style != Style::new() && !text.trim().is_empty() {
            format!("{style}{text}{style:#}").into()
        } else {
            text.into()
        }
    }

    fn verdict(&mut self, verdict: &Verdict) {
        self.paragraph("", INDENT, &verdict.sentence(), tone(verdict.tone).bold());
        verdict.details.iter().for_each(|detail| self.paragraph(INDENT, INDENT, detail, Style::new()));
    }

    fn facts(&mut self, facts: &[Fact]) {
        let width = facts.iter().map(|fact| display_width(&fact.label)).max().unwrap_or(0);
        // A longer label has lines of its own: it leaves too little room beside it.
        let width = width.min(self.options.columns / 3);
        let rest = " ".repeat(width + GAP);
        for fact in facts {
            let label = printable(&fact.label);
            if display_width(&label) > width {
                self.paragraph("", "", &label, Style::new());
                self.paragraph(&rest, &rest, &fact.value, Style::new());
            } else {
                let first = format!("{}{}", padded(&label, width, false), " ".repeat(GAP));
                self.paragraph(&first, &rest, &fact.value, Style::new());
            }
        }
    }

    /// Lines to copy. What is too long for a line is a command: it goes on in the next line as a shell takes it.
    fn listing(&mut self, listing: &Listing) {
        if !listing.label.is_empty() {
            self.paragraph("", "", &format!("{}:", listing.label.trim_end_matches(':')), Style::new());
        }
        for line in printable(&listing.text).lines() {
            self.line(&continued(line, self.options.columns), Style::new());
        }
    }

    fn note(&mut self, note: &Note) {
        let word = if note.tone == Tone::Plain { "note: " } else { "caution: " };
        self.paragraph(word, INDENT, &note.text, tone(note.tone));
    }

    fn table(&mut self, table: &Table) {
        if !table.caption.is_empty() {
            self.paragraph("", "", &table.caption, Style::new());
        }
        let layout = Layout::new(table, self.options.columns);
        if self.in_details && !layout.left_out.is_empty() {
            return self.records(table);
        }
        let heads: Vec<Cow<'_, str>> = table.columns.iter().map(|head| printable(head)).collect();
        self.row(&layout, &heads, |_| bold());
        let shown = table.first_rows.filter(|_| !self.options.details).unwrap_or(usize::MAX);
        for row in table.rows.iter().take(shown) {
            let texts: Vec<Cow<'_, str>> = row.iter().map(cell_text).collect();
            self.row(&layout, &texts, |column| tone(row[column].tone));
        }
        if table.rows.len() > shown {
            self.line(&format!("and {} more", table.rows.len() - shown), Style::new());
        }
        let left_out: Vec<&str> =
            layout.left_out.iter().map(|column| table.columns[*column].as_str()).collect();
        if !left_out.is_empty() {
            let text = format!("left out for want of columns: {}", left_out.join(", "));
            self.paragraph("", INDENT, &text, Style::new());
        }
    }

    /// Each row as a list of its cells, under the first one.
    fn records(&mut self, table: &Table) {
        for row in &table.rows {
            self.gap();
            self.heading(&cell_text(&row[0]));
            let named = table.columns.iter().zip(row).skip(1);
            let facts: Vec<Fact> = named.map(|(head, cell)| Fact::new(head, cell_text(cell))).collect();
            self.facts(&facts);
        }
    }

    /// Cells side by side, each wrapped in its column.
    fn row(&mut self, layout: &Layout, texts: &[Cow<'_, str>], style: impl Fn(usize) -> Style) {
        let wrap = |column: &Column| textwrap::wrap(&texts[column.number], wrapped_to(column.width));
        let cells: Vec<_> = layout.columns.iter().map(wrap).collect();
        let lines = cells.iter().map(Vec::len).max().unwrap_or(0);
        for number in 0..lines {
            let mut line = String::new();
            for (column, cell) in layout.columns.iter().zip(&cells) {
                let text = padded(cell.get(number).map_or("", |text| text), column.width, column.right);
                line.push_str(&self.painted(&text, style(column.number)));
                line.push_str(&" ".repeat(GAP));
            }
            let _ = writeln!(self.out, "{}", line.trim_end());
        }
    }
}

/// Lines of so many columns, broken at blanks and behind the commas of a volume spec. Options and names of types have
/// hyphens, which stay.
pub(crate) fn wrapped_to(columns: usize) -> Options<'static> {
    Options::new(columns)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation)
        .word_separator(WordSeparator::Custom(|line| Box::new(words(line).map(Word::from))))
}

/// The parts of a line that stay whole, with the blanks behind them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let bytes = rest.as_bytes();
        let ends = |end: usize| match bytes[end - 1] {
            b' ' => bytes[end] != b' ' && !parts_unit(&rest[..end], &rest[end..]),
            // A comma within a number is no end.
            b',' => bytes[end].is_ascii_lowercase(),
            _ => false,
        };
        let end = (1..rest.len()).find(|end| rest.is_char_boundary(*end) && ends(*end)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Units that stay in the line of their number.
const UNITS: [&str; 24] = [
    "us", "ms", "s", "min", "h", "d", "B", "KiB", "MiB", "GiB", "TiB", "kB", "KB", "MB", "GB", "TB", "B/s",
    "KiB/s", "MiB/s", "GiB/s", "MB/s", "IOPS", "tps", "tx",
];

/// Whether an end of a line at this blank would part a number from its unit, as in `12 ms`.
fn parts_unit(before: &str, after: &str) -> bool {
    let mut words = before.trim_end_matches(' ').rsplit(' ');
    let number = words.next().unwrap_or_default().trim_start_matches(['(', '+', '-', '~', '<', '>', '=']);
    let is_number = number.starts_with(|first: char| first.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    let unit = after.split(' ').next().unwrap_or_default();
    let unit = unit.trim_end_matches(['.', ',', ';', ':', ')', '?', '*']);
    is_number && UNITS.contains(&unit)
}

/// Whether a block has a form as text.
fn is_written(block: &Block, options: TextOptions) -> bool {
    match block {
        Block::Plots(_) => false,
        Block::Fold(_) => options.details,
        _ => true,
    }
}

/// A column that is written.
struct Column {
    /// Its number in the table.
    number: usize,
    /// Columns of the terminal.
    width: usize,
    /// The least that it can be wrapped to: figures stay whole, and so do words.
    least: usize,
    /// Whether its texts end in one line, as numbers do.
    right: bool,
}

/// Which columns of a table are written, and how wide.
struct Layout {
    columns: Vec<Column>,
    left_out: Vec<usize>,
}

impl Layout {
    /// Fits a table into `limit` columns: words wrap first, then columns are left out, those of `Table::spare` in their
    /// order and then the last ones. The first column stays.
    fn new(table: &Table, limit: usize) -> Self {
        let figures = |column: usize| {
            let mut cells = table
                .rows
                .iter()
                .map(|row| cell_text(&row[column]))
                .filter(|text| !text.is_empty())
                .peekable();
            column > 0 && !table.prose && cells.peek().is_some() && cells.all(|text| is_figure(&text))
        };
        let natural = |column: usize| {
            let cells = table.rows.iter().map(|row| display_width(&cell_text(&row[column])));
            cells.chain([display_width(&table.columns[column])]).max().unwrap_or(0)
        };
        let longest_word = |column: usize| {
            let cells = table.rows.iter().map(|row| cell_text(&row[column]));
            let longest = |text: Cow<'_, str>| words(&text).map(|word| display_width(word.trim_end())).max();
            cells.chain([Cow::from(table.columns[column].as_str())]).filter_map(longest).max().unwrap_or(0)
        };
        let column = |number| {
            let (width, right) = (natural(number), figures(number));
            let least = if right { width } else { longest_word(number).max(WORDS_AT_LEAST).min(width) };
            Column { number, width, least, right }
        };
        let mut columns: Vec<Column> = (0..table.columns.len()).map(column).collect();
        let mut spare = table.spare.iter();
        let mut left_out = Vec::new();
        while columns.len() > 1 {
            shrink_words(&mut columns, limit);
            if total(&columns) <= limit {
                break;
            }
            let position =
                spare.next().and_then(|spare| columns.iter().position(|column| column.number == *spare));
            let gone = columns.remove(position.filter(|position| *position > 0).unwrap_or(columns.len() - 1));
            left_out.push(gone.number);
            // What was wrapped may have room again.
            columns.iter_mut().for_each(|column| column.width = natural(column.number));
        }
        shrink_words(&mut columns, limit);
        left_out.sort_unstable();
        Self { columns, left_out }
    }
}

fn total(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Takes from the widest columns of words what the table is too wide, down to the least width of each.
fn shrink_words(columns: &mut [Column], limit: usize) {
    loop {
        let over = total(columns).saturating_sub(limit);
        let words = columns.iter_mut().filter(|column| column.width > column.least);
        match words.max_by_key(|column| column.width) {
            Some(widest) if over > 0 => widest.width -= 1,
            _ => return,
        }
    }
}

/// Whether a text is a number with what belongs to it, which is aligned to the right and never wrapped.
fn is_figure(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '-', '$', '<', '>', '\u{2212}', '~', ' ']);
    text.is_empty() || text == "\u{2013}" || text.starts_with(|first: char| first.is_ascii_digit())
}

/// The text of a cell: its summary with the second line in brackets, or its line as small blocks.
fn cell_text(cell: &Cell) -> Cow<'_, str> {
    if !cell.spark.is_empty() {
        return spark(&cell.spark).into();
    }
    match cell.with_detail() {
        Cow::Borrowed(text) => printable(text),
        Cow::Owned(text) => printable(&text).into_owned().into(),
    }
}

/// A line of values as blocks of eight heights, from 0 to the highest value; a blank where there is none.
#[must_use]
pub fn spark(values: &[Option<f64>]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let finite = |value: &Option<f64>| value.filter(|value| value.is_finite());
    let highest = values.iter().filter_map(finite).fold(0.0, f64::max);
    let block = |value: &Option<f64>| match finite(value) {
        None => ' ',
        Some(value) => {
            // Seven steps above the lowest block, which stands for 0.
            let height = if highest > 0.0 { (value.max(0.0) / highest * 7.0).round() } else { 0.0 };
            (0_u8..7)
                .find(|step| f64::from(*step) >= height)
                .map_or(BLOCKS[7], |step| BLOCKS[usize::from(step)])
        }
    };
    values.iter().map(block).collect()
}

/// A text with blanks up to a width, behind it or before it.
fn padded(text: &str, width: usize, right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(display_width(text)));
    if right { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
}

/// A command in several lines where it is too long for one, broken at its blanks outside of quotes.
fn continued(line: &str, columns: usize) -> String {
    if display_width(line) <= columns {
        return line.to_owned();
    }
    let begin: String = line.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![begin.clone()];
    for word in shell_words(line.trim_start()) {
        let last = lines.last_mut().expect("there is a first line");
        let empty = last.trim().is_empty();
        // Two columns stay for the blank and the backslash.
        if !empty && display_width(last) + 1 + display_width(word) + 2 > columns {
            last.push_str(" \\");
            lines.push(format!("{begin}    {word}"));
        } else {
            if !empty {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines.join("\n")
}

/// The words of a command with their quotes.
fn shell_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut quote) = (0, None);
    for (index, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ' ' => {
                if index > start {
                    words.push(&text[start..index]);
                }
                start = index + 1;
            }
            _ => {}
        }
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

fn bold() -> Style {
    Style::new().bold()
}

fn tone(tone: Tone) -> Style {
    let color = match tone {
        Tone::Plain => return Style::new(),
        Tone::Good => AnsiColor::Green,
        Tone::Bad => AnsiColor::Red,
        Tone::Caution => AnsiColor::Yellow,
    };
    color.on_default()
}

#[cfg(test)]
mod tests;
