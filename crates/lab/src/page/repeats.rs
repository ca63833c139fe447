//! What came out of earlier runs of the same experiment, and whether this one agrees with them.

use ebbtide_report::{Block, Cell, Estimate, Estimates, Note, Report, Scale, Section, Table};

use super::{PageContext, text};
use crate::experiment::Experiment;
use crate::summary::{Compared, Metric, Ratio, Repeated, Repetition, RunFacts};

/// Whether finished runs of one experiment agree, as a document.
#[must_use]
pub fn runs_compared(experiment: &Experiment, repetition: &Repetition) -> Report {
    let number = text::count(repetition.runs.len(), "run");
    let answer = match repetition.overlap {
        Some(true) => format!("The {number} of {} agree: {}.", experiment.name, agreement(Some(true))),
        Some(false) => {
            format!("The {number} of {} do not agree: {}.", experiment.name, agreement(Some(false)))
        }
        None if repetition.comparisons.is_empty() => "The experiment compares nothing.".to_owned(),
        None => {
            format!("Whether the {number} of {} agree is not known: {}.", experiment.name, agreement(None))
        }
    };
    let texts = repetition.comparisons.iter().map(|repeated| Block::Text(repeated.text.clone()));
    let mut blocks = vec![Block::Findings(vec![answer])];
    blocks.extend(texts);
    let row = |run: &RunFacts| {
        let trials = format!("{} of {}", run.measured, run.trials);
        [run.directory.clone(), text::moment(run.started_ns), run.seed.to_string(), trials]
            .map(Cell::from)
            .to_vec()
    };
    blocks.push(Block::Table(Table {
        columns: ["Run", "Started", "Seed", "Trials"].map(str::to_owned).to_vec(),
        rows: repetition.runs.iter().map(row).collect(),
        ..Table::default()
    }));
    if !repetition.notes.is_empty() {
        blocks.push(Block::Notes(repetition.notes.iter().map(Note::caution).collect()));
    }
    Report { title: experiment.title.clone(), sections: vec![Section::new("", blocks)], ..Report::default() }
}

/// The line of a comparison's verdict; none where it was not held against other runs.
pub(super) fn detail(page: &PageContext, compared: &Compared) -> Option<String> {
    let repetition = page.summary.repeated.as_ref()?;
    let of_this = |repeated: &&Repeated| {
        (&repeated.axis, repeated.arm, repeated.baseline, &repeated.label)
            == (&compared.axis, compared.arm, compared.baseline, &compared.label)
    };
    let repeated = repetition.comparisons.iter().find(of_this)?;
    let ratio = |ratio: &Option<Ratio>| {
        ratio.map_or_else(|| "\u{2013}".to_owned(), |ratio| text::change(ratio.ratio))
    };
    let ratios: Vec<String> = repeated.ratios.iter().map(ratio).collect();
    let count = text::count(ratios.len(), "run");
    Some(format!("{count}: {}; {}.", text::list(&ratios), agreement(repeated.overlap)))
}

fn agreement(overlap: Option<bool>) -> &'static str {
    match overlap {
        Some(true) => "the intervals overlap",
        Some(false) => "the intervals do not all overlap",
        None => "not every run has an interval",
    }
}

/// All runs, comparison by comparison; none where there is only this one.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    let repetition = page.summary.repeated.as_ref()?;
    let texts = repetition.comparisons.iter().map(|repeated| text::capital(&repeated.text)).collect();
    let mut blocks = vec![Block::Findings(texts)];
    let metrics = [Metric::Tps, Metric::P95];
    blocks.extend(metrics.into_iter().filter_map(|metric| chart(page, repetition, metric)));
    if !repetition.notes.is_empty() {
        blocks.push(Block::Notes(repetition.notes.iter().map(Note::caution).collect()));
    }
    let lead = "Runs of the same experiment, each with an interval of its own. Intervals that have no value in \
                common say that something changed between the runs which the experiment does not know of.";
    Some(Section::new("The same experiment, run again", blocks).lead(lead))
}

/// The ratios of all runs on a log axis; none where there is none with this metric.
fn chart(page: &PageContext, repetition: &Repetition, metric: Metric) -> Option<Block> {
    let all = repetition.comparisons.iter().filter(|repeated| repeated.metric == metric);
    let rows: Vec<Estimate> = all
        .flat_map(|repeated| {
            let runs = repetition.runs.iter().zip(&repeated.ratios);
            runs.map(|(run, ratio)| row(page, repeated, run, ratio.as_ref()))
        })
        .collect();
    let what = match metric {
        Metric::Tps => "Throughput",
        Metric::P95 => "Response time at the 95th percentile",
    };
    (!rows.is_empty()).then(|| {
        Block::Estimates(Estimates {
            title: format!("{what} against the baseline, run by run"),
            unit: "ratio, log scale".into(),
            scale: Scale::Log,
            suffix: "\u{d7}".into(),
            reference: Some((1.0, "as the baseline".into())),
            band: None,
            band_label: String::new(),
            points_label: String::new(),
            mid_label: "ratio of the means, 95% interval".into(),
            rows_label: "Arm, run".into(),
            texts_label: "Ratio, 95% interval".into(),
            rows,
        })
    })
}

fn row(page: &PageContext, repeated: &Repeated, run: &RunFacts, ratio: Option<&Ratio>) -> Estimate {
    let interval = ratio.and_then(|ratio| ratio.interval);
    let this = if run.started_ns == page.run.started_ns { "this run" } else { run.directory.as_str() };
    let place = if repeated.label.is_empty() { String::new() } else { format!("{}; ", repeated.label) };
    Estimate {
        label: page.name(repeated.arm).to_owned(),
        detail: format!("{place}{this}, {}", text::moment(run.started_ns)),
        group: Some(repeated.arm),
        mid: ratio.map(|ratio| ratio.ratio),
        interval: interval.map(|interval| (interval.low, interval.high)),
        points: Vec::new(),
        text: ratio.map_or_else(|| "not measured".into(), |ratio| text::change(ratio.ratio)),
        text_detail: interval.map_or_else(String::new, |interval| text::change_interval(&interval)),
    }
}
