//! Suggestions for names that do not exist.

/// The known name most like what was written, where any is like it at all.
pub(crate) fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let written = written.to_ascii_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&written, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness >= 0.4)
        .map(|(_, name)| name.to_owned())
}

/// The part of a message that names the suggestion.
pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}
