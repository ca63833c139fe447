//! The report of a run: a page with the result, and the evidence for it.

mod answers;
mod arms;
mod backups;
pub mod brief;
pub mod claims;
pub mod costs;
pub(crate) mod curves;
pub mod documents;
mod latency;
mod notes;
mod panels;
mod repeats;
mod replicas;
pub mod settings;
pub mod setup;
pub mod text;
mod timeline;
mod tpcc;
mod verdict;

#[cfg(test)]
mod brief_tests;
#[cfg(any(test, feature = "fixtures"))]
#[allow(clippy::unwrap_used, dead_code, reason = "made up for tests alone")]
pub mod synthetic;
#[cfg(test)]
mod synthetic_summary;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_report::{Block, Fact, Group, Medium, Report, Section};

#[cfg(test)]
pub(crate) use arms::DEFINITIONS;
pub use repeats::runs_compared;

use crate::experiment::Arm;
use crate::record::{LabRun, Outcome, Trial};
use crate::summary::{ArmSummary, Summary, TrialWindow};

/// The page, as one HTML file that opens offline.
#[must_use]
pub fn page(run: &LabRun, summary: &Summary) -> String {
    document(run, summary, "").to_html()
}

/// The answer as a document, from which text and page are made: [`brief`] for text, the rest for the page and as details.
/// `out` is the directory of the results, for the commands of the text.
#[must_use]
pub fn document(run: &LabRun, summary: &Summary, out: &str) -> Report {
    let mut report = report(run, summary);
    report.sections = report.sections.into_iter().map(Section::details).collect();
    report.sections.insert(0, brief::section(&PageContext::new(run, summary), out));
    report
}

pub(crate) fn report(run: &LabRun, summary: &Summary) -> Report {
    let page = PageContext::new(run, summary);
    let mut sections = vec![Section::new("", verdict::blocks(&page, CAVEATS))];
    let group = |arm: &str| page.arms.iter().position(|view| view.arm.name == arm);
    sections.extend(claims::section(&summary.claims, &group).map(|section| section.only(Medium::Page)));
    sections.extend(curves::section(&run.experiment, summary));
    sections.extend(arms::section(&page));
    sections.extend(answers::section(&page));
    sections.extend(tpcc::section(&page));
    sections.extend(replicas::sections(&page));
    sections.extend(backups::section(&page));
    sections.extend(repeats::section(&page));
    sections.extend(latency::section(&page));
    sections.extend(panels::sections(&page));
    sections.push(settings::section(&page.named_arms(), &run.server));
    sections.push(setup::section(&page));
    sections.push(notes::section(&page));
    sections.push(setup::again(&run.command, setup::EVERY_SECOND));
    Report {
        title: run.experiment.title.clone(),
        subtitle: text::line(&run.experiment.question),
        groups: page.groups(),
        groups_label: "Arms".into(),
        layers_label: "trial".into(),
        sections,
        footer: format!(
            "ebbtide {}, {}. Every figure was measured on a real server; the volumes were emulated on this machine.",
            run.ebbtide,
            text::moment(run.started_ns)
        ),
    }
}

/// The summary of a run, for the report of another one, whose arms are others: verdicts, then curves or comparisons. The
/// run need not have its trials.
#[must_use]
pub fn verdicts_and_curves(run: &LabRun, summary: &Summary) -> Vec<Block> {
    let page = PageContext::new(run, summary);
    let mut blocks = verdict::blocks(&page, "in its own report");
    blocks.extend(curves::blocks(&run.experiment, summary).unwrap_or_else(|| {
        let mut comparisons = arms::comparisons(&page);
        comparisons.iter_mut().for_each(without_groups);
        comparisons
    }));
    blocks
}

/// Takes the arms' colours off.
fn without_groups(block: &mut Block) {
    if let Block::Estimates(estimates) = block {
        estimates.rows.iter_mut().for_each(|row| row.group = None);
    }
}

/// A run with its summary, arm by arm.
struct PageContext<'a> {
    run: &'a LabRun,
    summary: &'a Summary,
    arms: Vec<ArmView<'a>>,
}

/// An arm and everything known about it.
struct ArmView<'a> {
    arm: &'a Arm,
    /// Its name without what all arms have in common.
    name: String,
    summary: Option<&'a ArmSummary>,
    /// The trials that count, by repeat.
    trials: Vec<&'a Trial>,
    /// Which of them represents the arm: the one with the median throughput.
    typical: usize,
    /// Its colour.
    style: usize,
    /// Whether the charts over time begin with it.
    shown: bool,
}

/// Where the report has all remarks.
const CAVEATS: &str = "under \u{201c}Trials and caveats\u{201d}";

/// How many arms the charts over time begin with.
const SHOWN: usize = 4;

impl<'a> PageContext<'a> {
    fn new(run: &'a LabRun, summary: &'a Summary) -> Self {
        let arms = run.experiment.arms.iter().enumerate();
        let mut arms: Vec<ArmView> =
            arms.map(|(index, arm)| ArmView::new(run, arm, summary.arms.get(index))).collect();
        if let Some(names) = short_names(&run.experiment.arms) {
            arms.iter_mut().zip(names).for_each(|(view, name)| view.name = name);
        }
        for (style, index) in prominence(run, summary).into_iter().enumerate() {
            arms[index].style = style;
            arms[index].shown = style < SHOWN && !arms[index].trials.is_empty();
        }
        Self { run, summary, arms }
    }

    fn groups(&self) -> Vec<Group> {
        let group = |view: &ArmView| Group {
            label: view.name.clone(),
            style: view.style,
            shown: view.shown || self.arms.len() <= SHOWN,
        };
        self.arms.iter().map(group).collect()
    }

    /// The arms, each with the name that the page has for it.
    fn named_arms(&self) -> Vec<(&str, &'a Arm)> {
        self.arms.iter().map(|view| (view.name.as_str(), view.arm)).collect()
    }

    /// The name of an arm, by its place in the experiment.
    fn name(&self, arm: usize) -> &str {
        self.arms.get(arm).map_or("", |view| view.name.as_str())
    }

    /// The window of a trial in the summary.
    fn window(&self, trial: &Trial) -> Option<&'a TrialWindow> {
        let arm = self.summary.arms.iter().find(|arm| arm.name == trial.arm)?;
        arm.windows.iter().find(|window| window.repeat == trial.repeat)
    }
}

impl<'a> ArmView<'a> {
    fn new(run: &'a LabRun, arm: &'a Arm, summary: Option<&'a ArmSummary>) -> Self {
        let counts = |trial: &&Trial| trial.arm == arm.name && trial.outcome == Outcome::Measured;
        let mut trials: Vec<&Trial> = run.trials.iter().filter(counts).collect();
        trials.sort_by_key(|trial| trial.repeat);
        let mut order: Vec<usize> = (0..trials.len()).collect();
        order.sort_by(|&a, &b| mean_tps(trials[a]).total_cmp(&mean_tps(trials[b])));
        let typical = order.get(order.len() / 2).copied().unwrap_or(0);
        Self { arm, name: arm.name.clone(), summary, trials, typical, style: 0, shown: false }
    }
}

/// The arms by the options in which they differ; none where these do not distinguish all of them.
#[must_use]
pub fn short_names(arms: &[Arm]) -> Option<Vec<String>> {
    let differs = |axis: &str| {
        let option =
            |arm: &Arm| arm.options.iter().find(|(name, _)| name == axis).map(|(_, option)| option.clone());
        arms.iter().any(|arm| option(arm) != option(&arms[0]))
    };
    let short = |arm: &Arm| {
        let options = arm.options.iter().filter(|(axis, _)| differs(axis)).map(|(_, option)| option.as_str());
        options.collect::<Vec<_>>().join(" / ")
    };
    let names: Vec<String> = arms.iter().map(short).collect();
    let distinct: BTreeSet<&String> = names.iter().filter(|name| !name.is_empty()).collect();
    (distinct.len() == arms.len()).then_some(names)
}

fn mean_tps(trial: &Trial) -> f64 {
    let all: f64 = trial.seconds.iter().map(|second| second.load.tps).sum();
    all / (trial.seconds.len().max(1)) as f64
}

/// The arms in the order in which a reader asks for them: those of the first comparison, those of the
/// strongest ones, then the rest as the experiment has them.
fn prominence(run: &LabRun, summary: &Summary) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    let mut add = |index: usize| {
        if index < run.experiment.arms.len() && !order.contains(&index) {
            order.push(index);
        }
    };
    for compared in verdict::strongest(summary) {
        add(compared.baseline);
        add(compared.arm);
    }
    (0..run.experiment.arms.len()).for_each(&mut add);
    order
}

/// Facts from pairs, without the ones that are empty.
#[must_use]
pub fn facts(pairs: Vec<(&str, String)>) -> Block {
    let known = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    Block::Facts(known.map(|(label, value)| Fact::new(label, value)).collect())
}

/// The values of every arm where they differ, by what they are; one text where all arms agree.
#[must_use]
pub fn agreed<'a>(values: impl Iterator<Item = (&'a str, String)>) -> Vec<(String, Vec<&'a str>)> {
    let mut arms_by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (arm, value) in values {
        arms_by_value.entry(value).or_default().push(arm);
    }
    arms_by_value.into_iter().collect()
}
