//! What must be known before believing it: every trial, and what went wrong.

use ebbtide_report::{Block, Cell, Fold, Listing, Note as Remark, Section, Table, Tone};

use super::{PageContext, mean_tps, text};
use crate::record::{Outcome, Trial};
use crate::summary::Note;

pub(super) fn section(page: &PageContext) -> Section {
    let remarks: Vec<Remark> =
        page.summary.notes.iter().map(|note| Remark::caution(sentence(page, note))).collect();
    let mut blocks = Vec::new();
    if remarks.is_empty() && page.run.trials.iter().all(|trial| trial.outcome == Outcome::Measured) {
        blocks.push(Block::Text("All trials were measured, without a remark.".into()));
    } else if !remarks.is_empty() {
        blocks.push(Block::Notes(remarks));
    }
    blocks.extend(page.run.trials.iter().filter_map(|trial| failure(page, trial)));
    let table = Fold {
        summary: format!(
            "All {}, in the order in which they ran",
            text::count(page.run.trials.len(), "trial")
        ),
        blocks: vec![Block::Table(trials(page))],
    };
    blocks.push(Block::Fold(table));
    Section::new("Trials and caveats", blocks)
}

/// A remark with the arm that it is about.
pub(super) fn sentence(page: &PageContext, note: &Note) -> String {
    match &note.arm {
        Some(arm) if !note.text.contains(arm.as_str()) => format!("{}: {}", short(page, arm), note.text),
        _ => note.text.clone(),
    }
}

/// The name of an arm as the rest of the page has it.
fn short<'a>(page: &'a PageContext, arm: &'a str) -> &'a str {
    page.arms.iter().find(|view| view.arm.name == arm).map_or(arm, |view| view.name.as_str())
}

/// A trial that came to nothing, with the end of the server's log.
fn failure(page: &PageContext, trial: &Trial) -> Option<Block> {
    let Outcome::Failed { why, log } = &trial.outcome else { return None };
    let summary = format!("{}, trial {}, failed: {why}", short(page, &trial.arm), trial.repeat + 1);
    let text = if log.is_empty() { "The server wrote no log.".to_owned() } else { log.join("\n") };
    let listing = Listing { label: "The end of the server's log:".into(), text };
    Some(Block::Fold(Fold { summary, blocks: vec![Block::Listing(listing)] }))
}

fn trials(page: &PageContext) -> Table {
    let columns = ["Arm", "Trial", "Mean TPS", "Counted", "Took", "Outcome and remarks"];
    Table {
        columns: columns.map(str::to_owned).to_vec(),
        rows: page.run.trials.iter().map(|trial| row(page, trial)).collect(),
        sortable: true,
        ..Table::default()
    }
}

fn row(page: &PageContext, trial: &Trial) -> Vec<Cell> {
    let group = page.arms.iter().position(|view| view.arm.name == trial.arm);
    let window = page.window(trial);
    let counted = window.map_or(String::new(), |window| {
        let steady = if window.steady { "" } else { ", not steady" };
        format!("{:.0} to {:.0} s{steady}", window.from_s, window.to_s)
    });
    let (outcome, tone) = match &trial.outcome {
        Outcome::Measured => ("measured".to_owned(), Tone::Plain),
        Outcome::Disqualified { why } => (format!("disqualified: {why}"), Tone::Caution),
        Outcome::Failed { why, .. } => (format!("failed: {why}"), Tone::Bad),
    };
    let tps = match trial.seconds.is_empty() {
        true => Cell::from("\u{2013}"),
        false => Cell::value(text::short(mean_tps(trial)), mean_tps(trial), ""),
    };
    let number = f64::from(trial.repeat + 1);
    vec![
        Cell { text: short(page, &trial.arm).to_owned(), group, ..Cell::default() },
        Cell::value(text::whole(number), number, ""),
        tps,
        Cell::from(counted),
        Cell::value(text::span(trial.took_s), trial.took_s, ""),
        Cell { text: outcome, detail: trial.notes.join("; "), tone, ..Cell::default() },
    ]
}
