//! Reports: series and tables in; out come one HTML file that opens offline, text for a terminal, and Markdown.
//!
//! A [`Report`] is plain data, so that a command says everything once. [`Report::to_text`] wraps it for a terminal,
//! [`Report::to_markdown`] is for tickets. [`Report::to_html`] puts it into a page that carries its own styles, script and chart
//! library (`assets/report`, `assets/uplot`): as markup, which reads without JavaScript, and as JSON, from which the
//! script draws the page with its charts. Every text enters the page as a text node, so no value can become markup.
//!
//! # Where to begin reading
//!
//! [`Block`] in `src/block.rs` is what a page is made of; texts that are no report are wrapped in `src/wrap.rs`. How to add a section
//! to a report: docs/extending.md. The charts' script is `assets/report`; its figures follow `ebbtide-text`
//! (`assets/report/text.js`).

#![forbid(unsafe_code)]

mod block;
mod markdown;
mod number;
mod page;
mod plain;
mod plot;
mod text;
mod wrap;

pub use block::{
    Band, Bands, Block, Cell, Estimate, Estimates, Fact, Fold, Link, Listing, Medium, Note, Section, Table,
    Tone, Verdict,
};
pub use page::{PAGE_FILES, PageFiles, fill};
pub use plain::escaped;
pub use plot::{Axis, Chart, Format, Group, Layer, Line, Mark, Plots, Scale, Series, Width};
pub use text::{TextOptions, spark};
pub use wrap::{wrapped, wrapped_lines, wrapped_markdown};

use serde::{Serialize, Serializer};

/// A whole page.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The heading and the window's title.
    pub title: String,
    /// One line under the heading.
    pub subtitle: String,
    /// What belongs together in all plots and can be shown or hidden there, such as the arms of an
    /// experiment; empty where everything is always drawn.
    pub groups: Vec<Group>,
    /// What the groups are, in the plural and for people, such as `Arms`.
    pub groups_label: String,
    /// What the layers of a group are, in the singular, such as `trial`.
    pub layers_label: String,
    /// What the page holds, in reading order.
    #[serde(serialize_with = "on_page")]
    pub sections: Vec<Section>,
    /// The last line.
    pub footer: String,
}

/// A section that is asked for, and is not in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSection {
    /// The word that was given.
    pub word: String,
    /// The words of the sections that there are, in their order.
    pub known: Vec<String>,
}

impl Report {
    /// The sections of these words alone, in the order of the report. Capitals do not count.
    ///
    /// # Errors
    /// No section has the word.
    pub fn only(&self, words: &[String]) -> Result<Self, UnknownSection> {
        let mut known: Vec<String> = Vec::new();
        for section in &self.sections {
            let word = section.word();
            // Charts have no form as text; the answer itself needs no word.
            let is_written = section.is_for(Medium::Text)
                && section.blocks.iter().any(|block| !matches!(block, Block::Plots(_)));
            if is_written && !word.is_empty() && !known.iter().any(|other| *other == word) {
                known.push(word.into_owned());
            }
        }
        let is_known = |word: &&String| known.iter().any(|known| known.eq_ignore_ascii_case(word));
        if let Some(word) = words.iter().find(|word| !is_known(word)) {
            return Err(UnknownSection { word: word.clone(), known });
        }
        let asked = |section: &&Section| words.iter().any(|word| section.word().eq_ignore_ascii_case(word));
        let sections = self.sections.iter().filter(asked).cloned().collect();
        Ok(Self { sections, ..self.clone() })
    }
}

/// The data of a page have the sections that the page shows.
fn on_page<S: Serializer>(sections: &[Section], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(sections.iter().filter(|section| section.is_for(Medium::Page)))
}
