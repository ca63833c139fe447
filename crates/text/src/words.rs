//! Counts, lists, and what print makes of a text.

use crate::figure::whole;
use std::borrow::Cow;

/// A number with its noun: `1 trial`, `2 trials`, `3,000 cuts`.
#[must_use]
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {noun}{}", whole(number as f64), if number == 1 { "" } else { "s" })
}

/// Items as a sentence lists them: `a, b and c`.
#[must_use]
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The first `most` items, and how many there are more: `a, b and 3 more`.
#[must_use]
pub fn first_of(items: &[impl AsRef<str>], most: usize) -> String {
    let shown: Vec<&str> = items.iter().take(most).map(AsRef::as_ref).collect();
    let first = shown.join(", ");
    if items.len() > most { format!("{first} and {} more", items.len() - most) } else { first }
}

/// The first of some sentences without its full stop, and those after it.
#[must_use]
pub fn first_sentence(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(". ").unwrap_or((text, ""));
    (first.trim_end_matches('.'), rest)
}

/// A figure as print sets it: in one piece, with the signs for minus, times and micro. Its digits stay.
#[must_use]
pub fn typeset(figure: &str) -> String {
    let figure = figure.replace('-', "\u{2212}").replace(" us", " \u{b5}s").replace(' ', "\u{a0}");
    figure.strip_suffix('x').map_or(figure.clone(), |ratio| format!("{ratio}\u{d7}"))
}

/// Text that may hold a user's words, as a terminal may get it: what could move the cursor or hide something is
/// written as `\u{1b}`. Ends of lines and tabs stay.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    // The last two ranges set the direction of writing (Unicode Standard Annex 9).
    let harms = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(harms) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if harms(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_many_are_named_and_the_others_counted() {
        assert_eq!(first_of(&["a", "b"], 2), "a, b");
        assert_eq!(first_of(&["a", "b", "c", "d"], 2), "a, b and 2 more");
        assert_eq!(first_of(&Vec::<String>::new(), 2), "");
    }

    #[test]
    fn a_text_is_parted_behind_its_first_sentence() {
        assert_eq!(first_sentence("One takes 1.5 s. Two is more."), ("One takes 1.5 s", "Two is more."));
        assert_eq!(first_sentence("One."), ("One", ""));
    }

    #[test]
    fn what_could_change_a_terminal_is_written_as_an_escape() {
        assert_eq!(printable("plain\tä\n"), "plain\tä\n");
        assert_eq!(
            printable("a\u{1b}[31mb\u{7}\u{7f}\u{9b}\r\u{202e}"),
            r"a\u{1b}[31mb\u{7}\u{7f}\u{9b}\u{d}\u{202e}"
        );
    }

    #[test]
    fn one_of_a_thing_is_singular() {
        assert_eq!(
            [count(1, "trial"), count(2, "trial"), count(0, "cut"), count(3000, "cut")],
            ["1 trial", "2 trials", "0 cuts", "3,000 cuts"]
        );
    }

    #[test]
    fn items_are_listed_as_a_sentence_has_them() {
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            [list(&items[..0]), list(&items[..1]), list(&items[..2]), list(&items)],
            ["", "a", "a and b", "a, b and c"]
        );
    }

    #[test]
    fn print_changes_signs_and_no_digit() {
        assert_eq!(typeset("83 us"), "83\u{a0}\u{b5}s");
        assert_eq!(typeset("-37%"), "\u{2212}37%");
        assert_eq!(typeset("12.6x"), "12.6\u{d7}");
        assert_eq!(typeset("1 h 5 s"), "1\u{a0}h\u{a0}5\u{a0}s");
    }
}
