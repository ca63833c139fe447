//! The report as Markdown (CommonMark with the tables of GitHub), for tickets and pull requests.
//!
//! Charts become a line that names them: their figures are in the page and in JSON.

use std::fmt::Write as _;

use crate::{Block, Medium, Report, Section, Table};

impl Report {
    /// The report as Markdown: title, sections, footer. Texts are escaped, so that no value becomes markup.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut markdown = Markdown { out: String::new() };
        markdown.paragraph(&format!("# {}", escaped(&self.title)));
        markdown.text(&self.subtitle);
        for section in self.sections.iter().filter(|section| section.is_for(Medium::Text)) {
            markdown.section(section);
        }
        markdown.text(&self.footer);
        markdown.out
    }
}

struct Markdown {
    out: String,
}

impl Markdown {
    /// A block of lines, with an empty line before it.
    fn paragraph(&mut self, text: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let _ = writeln!(self.out, "{text}");
    }

    /// A sentence of ours or of a user; nothing where it is empty.
    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.paragraph(&escaped(text));
        }
    }

    fn section(&mut self, section: &Section) {
        if !section.heading.is_empty() {
            self.paragraph(&format!("## {}", escaped(&section.heading)));
        }
        self.text(&section.lead);
        self.blocks(&section.blocks);
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Verdicts(verdicts) => {
                    for verdict in verdicts {
                        self.paragraph(&format!("**{}**", escaped(&verdict.sentence())));
                        self.list(verdict.details.iter().map(String::as_str));
                    }
                }
                Block::Findings(findings) => {
                    findings.iter().for_each(|finding| self.paragraph(&format!("**{}**", escaped(finding))));
                }
                Block::Heading(heading) => self.paragraph(&format!("### {}", escaped(heading))),
                Block::Text(text) => self.text(text),
                Block::Facts(facts) => {
                    let line =
                        |fact: &crate::Fact| format!("- {}: {}", escaped(&fact.label), escaped(&fact.value));
                    self.paragraph(&facts.iter().map(line).collect::<Vec<_>>().join("\n"));
                }
                Block::Table(table) => self.table(table),
                Block::Estimates(estimates) => self.table(&estimates.table()),
                Block::Bands(bands) => self.table(&bands.table()),
                Block::Plots(plots) => {
                    let titles: Vec<&str> = plots.charts.iter().map(|chart| chart.title.as_str()).collect();
                    self.text(&format!("Charts in the page: {}", titles.join(", ")));
                }
                Block::Listing(listing) => {
                    self.text(&listing.label);
                    let fence = fence(&listing.text);
                    self.paragraph(&format!("{fence}\n{}\n{fence}", listing.text.trim_end_matches('\n')));
                }
                Block::Notes(notes) => self.list(notes.iter().map(|note| note.text.as_str())),
                Block::Fold(fold) => {
                    self.paragraph(&format!("### {}", escaped(&fold.summary)));
                    self.blocks(&fold.blocks);
                }
                Block::Link(link) => self.text(&format!("{}: {}", link.text, link.file)),
            }
        }
    }

    fn list<'t>(&mut self, texts: impl Iterator<Item = &'t str>) {
        let lines: Vec<String> = texts.map(|text| format!("- {}", escaped(text))).collect();
        if !lines.is_empty() {
            self.paragraph(&lines.join("\n"));
        }
    }

    fn table(&mut self, table: &Table) {
        self.text(&table.caption);
        let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let mut lines = vec![row(table.columns.iter().map(|head| escaped(head)).collect())];
        lines.push(row(vec!["---".to_owned(); table.columns.len()]));
        for cells in &table.rows {
            let texts = cells.iter().map(|cell| escaped(&cell.with_detail()));
            lines.push(row(texts.collect()));
        }
        self.paragraph(&lines.join("\n"));
    }
}

/// Text in which no sign is markup, in one line.
fn escaped(text: &str) -> String {
    let text = text.trim();
    let mut out = String::with_capacity(text.len());
    // At the beginning of a line a dash, a plus or a number with a full stop would begin a list.
    let number = text.chars().take_while(char::is_ascii_digit).count();
    for (index, c) in text.chars().enumerate() {
        match c {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' => {
                out.extend(['\\', c]);
            }
            '-' | '+' | '=' if index == 0 => out.extend(['\\', c]),
            '.' | ')' if number > 0 && index == number => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

/// A fence that the text does not hold.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests;
