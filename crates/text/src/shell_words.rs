//! Words for a shell.

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
}
