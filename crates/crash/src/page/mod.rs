//! The report of a crash run: a page that shows what a power cut costs, what the risk buys, and how each bad
//! verdict came about.

mod brief;
mod canaries;
mod cut_details;
mod gain;
mod loss_and_recovery;
mod matrix;
mod moments;
mod replayed;
mod tester;
mod verdict;

#[cfg(test)]
mod brief_tests;
#[cfg(test)]
mod tests;

pub use replayed::{found, replayed};

use ebbtide_lab::experiment::Arm;
use ebbtide_lab::page::{claims, settings, setup, short_names, text};
use ebbtide_report::{Cell, Group, Medium, Report, Section};
use ebbtide_text::seed;
use ebbtide_text::shell_words::quoted;

use super::record::{CrashRun, VerdictKind};
use super::summary::{ArmSummary, BAD, Summary};

/// The page, as one HTML file that opens offline.
#[must_use]
pub fn page(run: &CrashRun, summary: &Summary) -> String {
    document(run, summary).to_html()
}

/// The answer as a document, from which text and page are made: one screen for text, the rest for the page and as details.
#[must_use]
pub fn document(run: &CrashRun, summary: &Summary) -> Report {
    let mut report = report(run, summary);
    report.sections = report.sections.into_iter().map(Section::details).collect();
    report.sections.insert(0, brief::section(&PageContext::new(run, summary)));
    report
}

/// The command that judges the kept image of a cut again, in the home that has it; empty: the default.
#[must_use]
pub fn replay(home: &str, seed: u64) -> String {
    let home = match home {
        "" => String::new(),
        home => format!(" --home {}", quoted(home)),
    };
    format!("ebbtide crash --replay {}{home}", seed::hex(seed))
}

/// Where the figures of the page are.
const DATA: &str = "Every cut of this page with its evidence: results.sqlite and results.json in the directory of \
                    this file.";

fn report(run: &CrashRun, summary: &Summary) -> Report {
    let page = PageContext::new(run, summary);
    let mut sections = vec![Section::new("", verdict::blocks(&page))];
    let group = |arm: &str| page.arms.iter().position(|(known, _)| known.name == arm);
    sections.extend(claims::section(&summary.claims, &group).map(|section| section.only(Medium::Page)));
    sections.extend(matrix::section(&page));
    sections.extend(gain::section(&page));
    sections.extend(loss_and_recovery::loss(&page));
    sections.extend(loss_and_recovery::recovery(&page));
    sections.extend(moments::section(&page));
    sections.extend(cut_details::section(&page));
    sections.extend(cut_details::unverified(&page));
    sections.push(canaries::section(&page));
    sections.extend(tester::time(&page));
    sections.push(settings::section(&page.named_arms(), &run.server));
    sections.push(tester::setup(&page));
    sections.push(tester::caveats(&page));
    sections.push(setup::again(&run.command, DATA));
    Report {
        title: run.experiment.title.clone(),
        subtitle: text::line(&run.experiment.question),
        groups: page.groups(),
        groups_label: "Arms".into(),
        layers_label: "cut".into(),
        sections,
        footer: format!(
            "ebbtide {}, {}. Every cut was recovered by the real server; the volumes and their power were emulated on \
             this machine.",
            run.ebbtide,
            text::moment(run.started_ns)
        ),
    }
}

/// A crash run with its summary.
struct PageContext<'a> {
    run: &'a CrashRun,
    summary: &'a Summary,
    /// The arms that are asked about, with the names that the page has for them.
    arms: Vec<(&'a ArmSummary, String)>,
}

impl<'a> PageContext<'a> {
    fn new(run: &'a CrashRun, summary: &'a Summary) -> Self {
        let asked: Vec<Arm> =
            summary.arms.iter().filter_map(|arm| run.experiment.arms.get(arm.index)).cloned().collect();
        let full = summary.arms.iter().map(|arm| arm.name.clone()).collect();
        let names = short_names(&asked).filter(|names| names.len() == summary.arms.len()).unwrap_or(full);
        Self { run, summary, arms: summary.arms.iter().zip(names).collect() }
    }

    /// The kinds of bad verdict that are looked for in any of the arms.
    fn kinds(&self) -> Vec<VerdictKind> {
        let asked = |kind: &VerdictKind| self.arms.iter().any(|(arm, _)| arm.verdicts.contains_key(kind));
        BAD.into_iter().filter(asked).collect()
    }

    fn groups(&self) -> Vec<Group> {
        let arms = self.named_arms().into_iter().enumerate();
        arms.map(|(style, (name, _))| Group { label: name.to_owned(), style, shown: true }).collect()
    }

    /// Arms with their names, canaries too.
    fn named_arms(&self) -> Vec<(&str, &'a Arm)> {
        let asked = self.arms.iter().map(|(arm, name)| (arm.index, name.as_str()));
        let canaries =
            self.summary.canaries.iter().map(|canary| (canary.arm.index, canary.arm.name.as_str()));
        asked
            .chain(canaries)
            .filter_map(|(index, name)| Some((name, self.run.experiment.arms.get(index)?)))
            .collect()
    }

    /// The page's name of the arm with this name in the record; a canary keeps its own.
    fn name<'p>(&'p self, arm: &'p str) -> &'p str {
        self.arms.iter().find(|(known, _)| known.name == arm).map_or(arm, |(_, name)| name.as_str())
    }

    /// The name of an arm in its colour.
    fn cell(&self, place: usize) -> Cell {
        let text = self.arms.get(place).map_or(String::new(), |(_, name)| name.clone());
        Cell { text, group: Some(place), ..Cell::default() }
    }
}

/// Where there is nothing to show.
fn dash() -> Cell {
    Cell::from("\u{2013}")
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
