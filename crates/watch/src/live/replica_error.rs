//! The error of a replication thread, without what it quotes.

/// So many characters of an error are shown at most.
const LONGEST: usize = 120;

/// The number of an error and its first words, up to what it quotes: a statement or a value of a row, which is no matter for terminals,
/// pages, journals and webhooks.
pub(super) fn without_quotes(error: &str) -> String {
    let unquoted = error.split('\'').next().unwrap_or_default();
    let mut shown: String = unquoted.chars().take(LONGEST).collect();
    if shown.len() < error.len() {
        shown.truncate(shown.trim_end().len());
        shown.push_str(" ...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_quotes_is_left_out() {
        for (error, shown) in [
            ("error 2003: error connecting", "error 2003: error connecting"),
            (
                "error 1062: Could not execute Write_rows event on table shop.cards; Duplicate entry '4111' for key 'PRIMARY'",
                "error 1062: Could not execute Write_rows event on table shop.cards; Duplicate entry ...",
            ),
            ("error 1064: 'INSERT INTO cards VALUES (4111)'", "error 1064: ..."),
            ("", ""),
        ] {
            assert_eq!(without_quotes(error), shown);
        }
        let long = format!("error 1: {}", "ä".repeat(500));
        assert_eq!(without_quotes(&long).chars().count(), LONGEST + 4);
    }
}
