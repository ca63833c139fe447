//! The table of families as a page for people, in Markdown.

use crate::family::Family;
use crate::names::FAMILIES;

/// The page docs/generated/metrics.md.
#[must_use]
pub fn names_page() -> String {
    let mut page = format!(
        "# The metric families of `ebbtide serve --metrics`\n\n\
         Made of the table in `crates/watch/src/names.rs`; a test holds the two together. There are {} families. How to use them:\n\
         [metrics.md](../metrics.md).\n\n\
         | Family | Type | Unit | Labels | What it is | Source |\n|---|---|---|---|---|---|\n",
        FAMILIES.len()
    );
    FAMILIES.iter().for_each(|family| page.push_str(&row(family)));
    page
}

fn row(family: &Family) -> String {
    let Family { name, kind, unit, labels, help, source } = family;
    let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
    let labels = if labels.is_empty() { "-".to_owned() } else { labels.join(", ") };
    format!("| `{name}` | {} | {unit} | {labels} | {help} | {source} |\n", kind.name())
}
