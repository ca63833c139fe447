//! Times in words and words for a shell, for the terminal, the findings and the page alike.

/// A time given in us as a figure of three digits and its unit: `s`, `ms` or `us`. What would be rounded
/// up to a thousand of a unit is one of the next.
#[must_use]
pub fn latency(us: f64) -> (String, &'static str) {
    match us {
        999_500.0.. => (three_digits(us / 1e6), "s"),
        999.5.. => (three_digits(us / 1e3), "ms"),
        _ => (format!("{us:.0}"), "us"),
    }
}

/// A word for a shell: in quotes where it would not stay one word.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a command line that was made with [`quoted`]; None where a quote has no end.
#[must_use]
pub fn unquoted(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if !quoted => word.get_or_insert_default().push(letters.next()?),
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    (!quoted).then_some(words)
}

fn three_digits(value: f64) -> String {
    match value {
        99.95.. => format!("{value:.0}"),
        9.995.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_taken_apart_into_the_words_that_it_was_made_of() {
        for words in [&["ebbtide", "run", "a b", "it's", "", "--set", "x=1", "gp2 / writes"][..], &["a"], &[]]
        {
            let command: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            assert_eq!(unquoted(&command.join(" ")).unwrap(), words);
        }
        assert_eq!(quoted("gp3:size=1GiB"), "gp3:size=1GiB");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(unquoted("a 'b"), None);
    }

    #[test]
    fn times_have_three_digits_at_any_size_and_never_a_thousand_of_a_unit() {
        for (us, told) in [
            (83.4, "83 us"),
            (999.4, "999 us"),
            (999.6, "1.00 ms"),
            (1_234.0, "1.23 ms"),
            (9_996.0, "10.0 ms"),
            (12_345.0, "12.3 ms"),
            (99_960.0, "100 ms"),
            (123_456.0, "123 ms"),
            (999_400.0, "999 ms"),
            (999_600.0, "1.00 s"),
            (1_234_567.0, "1.23 s"),
            (95_885_040.0, "95.9 s"),
            (1.25e8, "125 s"),
        ] {
            let (figure, unit) = latency(us);
            assert_eq!(format!("{figure} {unit}"), told);
        }
    }
}
