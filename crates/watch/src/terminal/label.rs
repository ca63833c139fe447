//! Text of strangers in so many cells of a terminal: escaped, measured, shortened.

use std::borrow::Cow;

use ebbtide_text::printable;
use ratatui::text::Span;

/// What stands for the end of a text that was shortened.
const MARK: char = '\u{2026}';

/// How many cells a text takes: two of a wide character, none of one that joins the one before.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text without what moves a cursor, in one line.
pub(super) fn clean(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// A text in at most so many cells. A longer one ends with a mark.
pub(super) fn shortened(text: &str, cells: usize) -> String {
    // Bounds the work for a name of a megabyte: no more than this is ever seen, but for what takes no cell.
    let most = cells.saturating_mul(4).saturating_add(16);
    let begin: String = text.chars().take(most).collect();
    let cut = begin.len() < text.len();
    let mut kept = clean(&begin);
    if !cut && width(&kept) <= cells {
        return kept;
    }
    if cells == 0 {
        return String::new();
    }
    loop {
        let excess = (width(&kept) + 1).saturating_sub(cells);
        if excess == 0 {
            break;
        }
        // A character takes two cells at most, so that so many go at once.
        for _ in 0..excess.div_ceil(2) {
            kept.pop();
        }
    }
    kept.push(MARK);
    kept
}

/// A text in exactly so many cells.
pub(super) fn padded(text: &str, cells: usize, right: bool) -> String {
    let text = shortened(text, cells);
    let blanks = " ".repeat(cells.saturating_sub(width(&text)));
    if right { blanks + &text } else { text + &blanks }
}

/// A text in lines of so many cells, at most `most` lines; the last one ends with a mark where there are more.
pub(super) fn wrapped(text: &str, cells: usize, most: usize) -> Vec<String> {
    // Words in as many cells as the lines have, and one more so that the mark is set.
    let bound = cells.saturating_mul(most + 1).saturating_mul(4);
    let begin = clean(&text.chars().take(bound).collect::<String>());
    let mut lines: Vec<String> =
        textwrap::wrap(&begin, cells.max(1)).into_iter().map(Cow::into_owned).collect();
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = shortened(&format!("{last} {MARK}"), cells);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_does_not_fit_ends_with_a_mark() {
        assert_eq!(shortened("shop", 4), "shop");
        assert_eq!(shortened("shop-replica", 6), "shop-\u{2026}");
        assert_eq!(shortened("shop", 1), "\u{2026}");
        assert_eq!(shortened("shop", 0), "");
    }

    #[test]
    fn wide_characters_take_two_cells() {
        assert_eq!(width("\u{8cc7}\u{6599}"), 4);
        assert_eq!(shortened("\u{8cc7}\u{6599}\u{5eab}", 4), "\u{8cc7}\u{2026}");
        assert_eq!(padded("\u{8cc7}", 4, true), "  \u{8cc7}");
        assert_eq!(width(&padded("\u{8cc7}\u{6599}\u{5eab}", 4, false)), 4);
    }

    #[test]
    fn what_moves_the_cursor_is_escaped_and_a_huge_name_is_cut() {
        assert_eq!(shortened("a\u{1b}[2Jb\nc", 40), r"a\u{1b}[2Jb c");
        assert_eq!(width(&shortened(&"x".repeat(1 << 20), 10)), 10);
        assert_eq!(shortened(&"\u{301}".repeat(1 << 20), 10).chars().last(), Some('\u{2026}'));
    }

    #[test]
    fn a_reason_is_wrapped_and_says_that_there_is_more() {
        assert_eq!(wrapped("credits end in 12 min", 11, 3), ["credits end", "in 12 min"]);
        assert_eq!(wrapped("credits end in 12 min", 11, 1), ["credits en\u{2026}"]);
        assert_eq!(wrapped("", 10, 2).concat(), "");
    }
}
