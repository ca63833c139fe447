//! Whether the answers of `get-metric-data` are whole, or pages of which others are missing.

use std::path::{Path, PathBuf};

/// One answer of `get-metric-data`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Page {
    path: PathBuf,
    /// Whether it names a page that follows.
    has_next: bool,
    pub(super) results: Vec<PageResult>,
}

/// A result of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PageResult {
    /// Id and label: those of the same query are equal on all pages.
    query: [String; 2],
    /// Whether it is not whole, with the words of CloudWatch.
    partial: Option<String>,
}

impl Page {
    pub(super) fn new(path: &Path, has_next: bool) -> Self {
        Self { path: path.to_owned(), has_next, results: Vec::new() }
    }

    fn shares_a_query(&self, other: &Self) -> bool {
        self.results.iter().any(|result| other.results.iter().any(|same| same.query == result.query))
    }
}

impl PageResult {
    pub(super) fn new(id: Option<&str>, label: Option<&str>, status: Option<&str>) -> Self {
        let partial = status.filter(|status| *status != "Complete").map(str::to_owned);
        Self { query: [id, label].map(|word| word.unwrap_or_default().to_owned()), partial }
    }

    /// What people call it.
    fn name(&self) -> &str {
        self.query.iter().rev().find(|word| !word.is_empty()).map_or("a metric", String::as_str)
    }
}

/// Says for people which answers are not whole. The pages are in the order of the files, and of the documents in them.
pub(super) fn missing(pages: &[Page]) -> Vec<String> {
    let mut notes = Vec::new();
    for (number, page) in pages.iter().enumerate() {
        let path = page.path.display();
        let follows =
            pages.get(number + 1).is_some_and(|next| next.path == page.path || next.shares_a_query(page));
        if page.has_next && !follows {
            notes.push(format!(
                "{path} is one page of several (NextToken), and the next one does not follow: the load of the other pages is not \
                 in these figures. Let the AWS CLI fetch all pages, or give them in their order"
            ));
            continue;
        }
        let later = |place: usize, result: &PageResult| {
            let here = page.results[place + 1..].iter();
            let mut others = here.chain(pages[number + 1..].iter().flat_map(|next| &next.results));
            others.any(|other| other.query == result.query)
        };
        let cut = page.results.iter().enumerate().filter(|(place, result)| {
            result.partial.is_some() && !(page.has_next && follows) && !later(*place, result)
        });
        let cut: Vec<String> = cut
            .map(|(_, result)| {
                format!("{} ({})", result.name(), result.partial.as_deref().unwrap_or_default())
            })
            .collect();
        if !cut.is_empty() {
            notes.push(format!(
                "{path}: CloudWatch says that figures are not complete: {}. What is missing is not in the load: ask again, with all pages",
                cut.join(", ")
            ));
        }
    }
    notes
}
