//! A text as people paste it: quoted with `>`, moved to the right, or between the marks of a block of code.

use std::borrow::Cow;

/// What begins a line that marks a block of code, in Markdown and in trackers of issues.
const FENCES: [&str; 3] = ["```", "{code", "{noformat"];

/// The text without what was put around its lines.
pub(crate) fn bare(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    // A quotation may have a block of code in it, and a block of code a quotation.
    for _ in 0..3 {
        let Some(stripped) = stripped(&text) else { break };
        text = Cow::Owned(stripped);
    }
    text
}

/// The text without one such mark of its lines; None where there is none.
fn stripped(text: &str) -> Option<String> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let is_fence = |line: &&str| FENCES.iter().any(|fence| line.trim_start().starts_with(fence));
    if is_fence(&first) {
        return Some(joined(text.lines().filter(|line| !is_fence(line))));
    }
    let is_quoted = first.starts_with('>');
    let indent = if is_quoted { 0 } else { indent(text, first) };
    if !is_quoted && indent == 0 {
        return None;
    }
    let unquoted =
        |line: &str| line.strip_prefix('>').map(|rest| rest.strip_prefix(' ').unwrap_or(rest).len());
    let mut lines = Vec::new();
    for line in text.lines() {
        let kept = match (line.trim().is_empty(), is_quoted) {
            (true, _) => 0,
            (false, true) => unquoted(line)?,
            (false, false) => line.len() - indent,
        };
        lines.push(&line[line.len() - kept..]);
    }
    Some(joined(lines.into_iter()))
}

/// Bytes of the blanks with which every line begins that has more than blanks; `first` is the first one.
fn indent(text: &str, first: &str) -> usize {
    let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut common = &first[..blanks(first)];
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let same = common.bytes().zip(line.bytes()).take_while(|(letter, other)| letter == other).count();
        common = &common[..same];
    }
    common.len()
}

fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_ticket_are_no_part_of_a_text() {
        let text = "Variable_name\tValue\n\nversion\t8.0.36\n";
        let each = |mark: &str| text.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
        for pasted in [
            each("> "),
            each("    "),
            each("> > "),
            each("\t"),
            format!("```text\n{text}```\n"),
            format!("{{code}}\n{text}{{code}}\n"),
            each("> ").replace("> \n", ">\n"),
        ] {
            assert_eq!(bare(&pasted), text, "{pasted}");
        }
        for own in [text, "", "\n\n", "  a\nb\n", "> a\nb\n", "*** 1. row ***\n  a: b\n"] {
            assert!(matches!(bare(own), Cow::Borrowed(same) if same == own), "{own}");
        }
    }
}
