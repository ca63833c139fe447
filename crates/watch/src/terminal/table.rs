//! Tables that fit: texts are shortened first, then columns are left out, those of the highest rank first.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::label::{padded, shortened, width};

/// Cells between two columns.
const GAP: usize = 2;
/// What a label with its value takes at least, cells.
const GRID_CELLS: usize = 30;

/// A column.
#[derive(Debug, Clone)]
pub(super) struct Column {
    head: String,
    right: bool,
    least: usize,
    rank: u8,
}

impl Column {
    /// A column of figures, at least so many cells wide, so that it stays in its place while they change.
    pub(super) fn figures(head: &str, least: usize, rank: u8) -> Self {
        Self { head: head.to_owned(), right: true, least, rank }
    }

    /// A column of texts, which are shortened down to so many cells where there is no room.
    pub(super) fn texts(head: impl Into<String>, least: usize, rank: u8) -> Self {
        Self { head: head.into(), right: false, least, rank }
    }

    /// What it takes at most and at least, with these cells.
    fn widths(&self, longest: usize) -> (usize, usize) {
        let natural = longest.max(width(&self.head));
        if self.right {
            let whole = natural.max(self.least);
            (whole, whole)
        } else {
            (natural, natural.min(self.least.max(width(&self.head))))
        }
    }
}

/// A row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    cells: Vec<String>,
    style: Style,
    /// Takes the place of all cells but the first one.
    rest: Option<String>,
}

impl Row {
    /// A row with a cell for each column.
    pub(super) fn new(cells: Vec<String>, style: Style) -> Self {
        Self { cells, style, rest: None }
    }

    /// A row with a text in place of its figures.
    pub(super) fn note(first: String, text: String, style: Style) -> Self {
        Self { cells: vec![first], style, rest: Some(text) }
    }

    fn cell(&self, column: usize) -> &str {
        self.cells.get(column).map_or("", String::as_str)
    }
}

/// The lines of a table in so many cells: its head, and a line for each row.
pub(super) fn table(columns: &[Column], rows: &[Row], cells: usize, head: Style) -> Vec<Line<'static>> {
    let widths = fitted(columns, rows, cells);
    let line = |texts: &dyn Fn(usize) -> String| {
        let shown = columns.iter().enumerate().zip(&widths).filter_map(|((place, column), width)| {
            width.map(|width| padded(&texts(place), width, column.right))
        });
        shown.collect::<Vec<_>>().join(&" ".repeat(GAP))
    };
    let mut lines = vec![Line::styled(line(&|place| columns[place].head.clone()), head)];
    for row in rows {
        let text = match &row.rest {
            None => line(&|place| row.cell(place).to_owned()),
            Some(rest) => {
                let first = widths.first().copied().flatten().unwrap_or(0);
                let left = cells.saturating_sub(first + GAP);
                format!("{}{}{}", padded(row.cell(0), first, false), " ".repeat(GAP), shortened(rest, left))
            }
        };
        lines.push(Line::styled(text, row.style));
    }
    lines
}

/// The width of each column; None of those that are left out.
fn fitted(columns: &[Column], rows: &[Row], cells: usize) -> Vec<Option<usize>> {
    let bounds: Vec<(usize, usize)> = columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let longest = rows.iter().map(|row| width(&shortened(row.cell(place), cells))).max();
            column.widths(longest.unwrap_or(0))
        })
        .collect();
    let mut shown: Vec<bool> = vec![true; columns.len()];
    let least = |shown: &[bool]| {
        let kept = bounds.iter().zip(shown).filter(|(_, shown)| **shown);
        kept.map(|((_, least), _)| least + GAP).sum::<usize>().saturating_sub(GAP)
    };
    while least(&shown) > cells {
        let last = (1..columns.len()).filter(|place| shown[*place]).max_by_key(|place| columns[*place].rank);
        let Some(last) = last else { break };
        shown[last] = false;
    }
    let mut spare = cells.saturating_sub(least(&shown));
    let widths = bounds.iter().zip(&shown).map(|((natural, least), shown)| {
        let more = (natural - least).min(spare);
        shown.then(|| {
            spare -= more;
            (least + more).min(cells)
        })
    });
    widths.collect()
}

/// Labels of so many cells with their values, in as many columns as fit into so many cells.
pub(super) fn grid(pairs: &[(&str, String)], cells: usize, label: usize, style: Style) -> Vec<Line<'static>> {
    let columns = (cells / GRID_CELLS).clamp(1, 3);
    let value = (cells / columns).saturating_sub(label + 1);
    let lines = pairs.len().div_ceil(columns);
    let line = |row: usize| {
        let pairs = (0..columns).filter_map(|column| pairs.get(column * lines + row));
        let spans = pairs.flat_map(|(name, text)| {
            let text = format!("{} ", padded(text, value, false));
            [Span::styled(padded(name, label, false), style), Span::raw(text)]
        });
        Line::from(spans.collect::<Vec<_>>())
    };
    (0..lines).map(line).collect()
}

/// Which of `count` rows are shown in so many lines: the page that has the selected one.
pub(super) fn page(count: usize, lines: usize, selected: Option<usize>) -> Range<usize> {
    if lines == 0 {
        return 0..0;
    }
    let from = selected.unwrap_or(0).min(count.saturating_sub(1)) / lines * lines;
    from..(from + lines).min(count)
}

/// The head of a column of names, with the rows that are shown where not all are.
pub(super) fn paged_head(head: &str, shown: &Range<usize>, count: usize) -> String {
    if shown.len() == count {
        head.to_owned()
    } else if shown.is_empty() {
        format!("{head} 0 of {count}")
    } else {
        format!("{head} {}-{} of {count}", shown.start + 1, shown.end)
    }
}

/// Gives lines to sections that want so many each, one after the other, until there are none.
pub(super) fn shared<const N: usize>(mut lines: usize, wanted: [usize; N]) -> [usize; N] {
    let mut given = [0; N];
    while lines > 0 && given != wanted {
        for (given, wanted) in given.iter_mut().zip(wanted) {
            if *given < wanted && lines > 0 {
                *given += 1;
                lines -= 1;
            }
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(cells: usize) -> Vec<String> {
        let columns =
            [Column::texts("SERVER", 8, 0), Column::figures("STMT/S", 7, 1), Column::figures("LAG", 5, 2)];
        let rows = [
            Row::new(vec!["shop-replica-2".into(), "1,234".into(), "0.0 s".into()], Style::new()),
            Row::note("old".into(), "refused the login".into(), Style::new()),
        ];
        table(&columns, &rows, cells, Style::new()).into_iter().map(String::from).collect()
    }

    #[test]
    fn names_are_shortened_before_a_column_is_left_out() {
        assert_eq!(
            texts(40),
            [
                "SERVER           STMT/S    LAG",
                "shop-replica-2    1,234  0.0 s",
                "old             refused the login",
            ]
        );
        assert_eq!(
            texts(24),
            [
                "SERVER     STMT/S    LAG",
                "shop-re\u{2026}    1,234  0.0 s",
                "old       refused the l\u{2026}"
            ]
        );
        assert_eq!(
            texts(20),
            ["SERVER        STMT/S", "shop-repli\u{2026}    1,234", "old          refuse\u{2026}"]
        );
        assert!(texts(3).iter().all(|line| width(line) <= 5));
    }

    #[test]
    fn the_page_of_the_selected_row_is_shown() {
        assert_eq!(page(20, 8, None), 0..8);
        assert_eq!(page(20, 8, Some(9)), 8..16);
        assert_eq!(page(20, 8, Some(19)), 16..20);
        assert_eq!(page(0, 8, Some(3)), 0..0);
        assert_eq!(page(20, 0, Some(3)), 0..0);
        assert_eq!(paged_head("SERVER", &(8..16), 20), "SERVER 9-16 of 20");
    }

    #[test]
    fn sections_share_the_lines() {
        assert_eq!(shared(10, [20, 2, 20]), [4, 2, 4]);
        assert_eq!(shared(50, [1, 2, 3]), [1, 2, 3]);
        assert_eq!(shared(0, [1, 2]), [0, 0]);
    }
}
