//! Which name was meant.

/// Names that are less alike than this are no suggestion; 1 is the same name.
const LEAST: f64 = 0.4;

/// The known name that is most like what was written, for a "did you mean"; None where none is like it. Capitals do not
/// count.
#[must_use]
pub fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_ascii_lowercase();
    let length = written.chars().count();
    known
        .into_iter()
        .filter(|name| can_be_alike(length, name.chars().count()))
        .map(|name| (strsim::normalized_damerau_levenshtein(&written, &name.to_ascii_lowercase()), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness >= LEAST)
        .map(|(_, name)| name)
}

/// Whether names with these lengths can be as alike as [`LEAST`], two fifths. The comparison takes memory for the product of both
/// lengths, and what was written may be a whole file without a blank.
fn can_be_alike(length: usize, other: usize) -> bool {
    length.min(other).saturating_mul(5) >= length.max(other).saturating_mul(2)
}

/// The part of a message that names it: ` (did you mean 'gp3'?)`; nothing where there is none.
#[must_use]
pub fn did_you_mean(closest: Option<&str>) -> String {
    closest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_lengths_that_rule_likeness_out_are_not_compared() {
        assert!(can_be_alike(2, 5) && can_be_alike(5, 2) && can_be_alike(0, 0));
        assert!(!can_be_alike(2, 6) && !can_be_alike(usize::MAX, 3) && !can_be_alike(0, 1));
        // None of those that are left out would have been suggested.
        for (written, name) in [("aa", "aabbbb"), ("gp3gp3gp3", "gp3"), ("", "x")] {
            assert!(strsim::normalized_damerau_levenshtein(written, name) < LEAST, "{written} {name}");
        }
    }

    #[test]
    fn the_name_that_is_most_alike_is_suggested_and_none_where_none_is() {
        let known = ["gp2", "gp3", "io2", "iodepth", "iodepth_low"];
        assert_eq!(closest("IODPETH", known), Some("iodepth"));
        assert_eq!(closest("gp33", known), Some("gp3"));
        assert_eq!(closest("xyzzy", known), None);
        assert_eq!(closest("duarble", ["Durable", "Flush-2"]), Some("Durable"));
        assert_eq!(closest("gp3", []), None);
        assert_eq!(format!("no gp33{}", did_you_mean(Some("gp3"))), "no gp33 (did you mean 'gp3'?)");
    }
}
