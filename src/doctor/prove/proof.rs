//! What a proof measured, and how far the lab's workload is the server's: figure by figure, observed against measured.

use std::path::{Path, PathBuf};

use ebbtide_advisor::{Finding, MeasuredGain};
use ebbtide_lab::record::LabRun;
use ebbtide_lab::summary::{Summary, Verdict};
use ebbtide_observe::{Observation, Rates};
use ebbtide_text::{change, change_interval, figure};
use serde::Serialize;

use super::file::BEFORE;
use super::proposal::{NotProved, Proposal};
use super::shape::RowsWritten;
use crate::run::Measured;
use crate::text::TextTable;

/// A run of the lab in which findings were proved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Proof {
    /// Directory of the results; null where nothing was run.
    directory: Option<PathBuf>,
    /// The report of the run.
    report: Option<PathBuf>,
    /// The server that was measured, in its own words.
    server: String,
    /// The lab's machine was one of so many parts of the server's.
    divided_by: u32,
    /// The load, in a sentence.
    workload: String,
    /// How far the lab's workload is the server's; empty where nothing was measured.
    figures: Vec<Matched>,
    /// Findings that were not proved.
    pub(crate) not_proved: Vec<NotProved>,
    /// Settings of the server that the lab's server does not take, with the reason.
    left_out: Vec<String>,
    /// What a reader must know before believing it.
    notes: Vec<String>,
}

/// A figure of the server, and the same of the lab's server with the settings of now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Matched {
    /// What it is.
    figure: &'static str,
    /// As it was observed; of a divided machine the part of one.
    observed: Option<f64>,
    /// As it was measured.
    measured: Option<f64>,
    /// Measured over observed; null where either is unknown or 0.
    ratio: Option<f64>,
}

/// Notes that a terminal shows.
const NOTES: usize = 4;
/// Figures within this factor count as alike.
const ALIKE: f64 = 1.25;

/// A figure with its name, of rates and the transactions a second; whether a divided machine has a part of it.
type Row = (&'static str, bool, fn(&Rates, f64) -> Option<f64>);

const FIGURES: [Row; 10] = [
    ("transactions a second", true, |_, tps| Some(tps)),
    ("clients whose statements run", true, |rates, _| rates.threads_running),
    ("SELECT statements a transaction", false, |rates, tps| Some(rates.read_statements? / tps)),
    ("statements that write a transaction", false, |rates, tps| Some(rates.write_statements? / tps)),
    ("redo bytes a transaction", false, |rates, tps| Some(rates.redo_bytes? / tps)),
    ("binary log bytes a transaction", false, |rates, tps| Some(rates.binlog_bytes? / tps)),
    ("page requests a transaction", false, |rates, tps| Some(rates.page_requests? / tps)),
    ("pages read a transaction", false, |rates, tps| Some(rates.page_reads? / tps)),
    ("pages written a transaction", false, |rates, tps| Some(rates.page_writes? / tps)),
    ("share of page requests that miss", false, |rates, _| Some(rates.page_reads? / rates.page_requests?)),
];

/// Holds figures against each other.
fn pair(figure: &'static str, observed: Option<f64>, measured: Option<f64>) -> Matched {
    let both = observed.zip(measured).filter(|(observed, measured)| *observed > 0.0 && *measured > 0.0);
    Matched { figure, observed, measured, ratio: both.map(|(observed, measured)| measured / observed) }
}

/// The rows of the server and of the lab's: how many a transaction writes, and how long they are. In the lab each statement that
/// writes does so to one row, and rows are as long as their table's definition makes them.
fn of_rows(proposal: &Proposal, measured: &Rates) -> [Matched; 2] {
    let (shape, rows) = (&proposal.shape, &proposal.rows);
    let tps = measured.transactions().map(|(tps, _)| tps).filter(|tps| *tps > 0.0);
    let written = measured.write_statements.zip(tps).map(|(statements, tps)| statements / tps);
    let lengths = measured.transactions().map(|_| rows.row_bytes);
    [
        pair("rows written a transaction", shape.rows.as_ref().map(RowsWritten::all), written),
        pair("bytes of a row", shape.row_bytes, lengths),
    ]
}

/// Holds the figures of two servers against each other, the first of which is divided.
fn matched(observed: &Rates, measured: &Rates, divided_by: u32) -> Vec<Matched> {
    let of = |rates: &Rates, row: &Row| {
        let (tps, _) = rates.transactions().filter(|(tps, _)| *tps > 0.0)?;
        (row.2)(rates, tps).filter(|value| value.is_finite())
    };
    let one = |row: &Row| {
        let part = if row.1 { f64::from(divided_by) } else { 1.0 };
        pair(row.0, of(observed, row).map(|value| value / part), of(measured, row))
    };
    FIGURES.iter().map(one).collect()
}

/// The mean of the trials of the arm that has the settings of now.
fn before(record: &LabRun) -> Rates {
    let seen: Vec<Rates> = record
        .trials
        .iter()
        .filter(|trial| trial.arm == BEFORE)
        .filter_map(|trial| record.observation(trial).rates)
        .collect();
    Rates::mean(&seen)
}

impl Proof {
    /// A proof in which nothing was run.
    pub(super) fn nothing(server: &str, proposal: &Proposal) -> Self {
        Self {
            directory: None,
            report: None,
            server: server.trim().to_owned(),
            divided_by: proposal.divided_by,
            workload: proposal.workload(),
            figures: Vec::new(),
            not_proved: proposal.not_proved.clone(),
            left_out: proposal.left_out.clone(),
            notes: Vec::new(),
        }
    }

    /// What a run of the proposal measured.
    pub(super) fn of(proposal: &Proposal, seen: &Observation, measured: &Measured, out: &Path) -> Self {
        let record = &measured.record;
        let rates = seen.rates.unwrap_or_default();
        let observed = Rates { threads_running: seen.clients.or(rates.threads_running), ..rates };
        let note = |note: &ebbtide_lab::summary::Note| {
            let arm = note.arm.as_ref().map(|arm| format!("{arm}: ")).unwrap_or_default();
            format!("{arm}{}", note.text)
        };
        let lab = before(record);
        let mut figures = matched(&observed, &lab, proposal.divided_by);
        figures.extend(of_rows(proposal, &lab));
        Self {
            directory: Some(out.to_owned()),
            report: Some(measured.report.clone()),
            figures,
            notes: proposal.bounds.iter().cloned().chain(measured.summary.notes.iter().map(note)).collect(),
            ..Self::nothing(&record.server.version, proposal)
        }
    }

    /// How many of the figures that both have are alike.
    fn alike(&self) -> (usize, usize) {
        let known: Vec<f64> = self.figures.iter().filter_map(|one| one.ratio).collect();
        (known.iter().filter(|ratio| ratio.max(1.0 / **ratio) <= ALIKE).count(), known.len())
    }

    /// How the proof was made, in sentences.
    pub(in crate::doctor) fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(directory) = &self.directory {
            let part = match self.divided_by {
                1 => String::new(),
                by => format!(", at 1/{by} of the machine"),
            };
            all.push(format!("Measured on {}{part}, with {}.", self.server, self.workload));
            let (alike, known) = self.alike();
            all.push(format!("{alike} of {known} figures of the workload are within a quarter of the server's. The lab's clients never wait between statements: it shows what the server carries at most."));
            all.push(format!(
                "Results: {}; the experiment: {}.",
                directory.display(),
                directory.join(super::FILE).display()
            ));
        }
        all.extend(self.notes.iter().map(|note| format!("Note: {note}")));
        all.extend(self.left_out.iter().map(|what| format!("Not taken by the lab's server: {what}.")));
        all.extend(
            self.not_proved.iter().map(|one| format!("Not proved: {}, because {}.", one.code, one.why)),
        );
        all
    }

    /// The figures, as the cells of a table.
    pub(in crate::doctor) fn rows(&self) -> Vec<[String; 4]> {
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
        let row = |one: &Matched| {
            let ratio = one.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{}x", figure(ratio)));
            [one.figure.to_owned(), cell(one.observed), cell(one.measured), ratio]
        };
        self.figures.iter().map(row).collect()
    }

    /// The sentences of a terminal: of many notes the first.
    fn brief(&self) -> Vec<String> {
        let mut all = self.sentences();
        let is_note = |text: &String| text.starts_with("Note: ");
        let first = all.iter().position(is_note).unwrap_or(0);
        let notes = all.iter().filter(|text| is_note(text)).count();
        if notes > NOTES {
            let more = format!("{} more notes are in the report.", notes - NOTES);
            all.splice(first + NOTES..first + notes, [more]);
        }
        all
    }

    /// The whole as text.
    pub(in crate::doctor) fn text(&self) -> String {
        let mut text = String::from("\nProof:\n");
        for sentence in self.brief() {
            text += &format!("  {sentence}\n");
        }
        if !self.figures.is_empty() {
            let mut table = TextTable::new(&HEADS);
            self.rows().into_iter().for_each(|row| table.row(row));
            text += &format!("\n{}\n", table.text());
        }
        text
    }
}

/// The columns of the figures.
pub(in crate::doctor) const HEADS: [&str; 4] = ["WORKLOAD", "OBSERVED", "MEASURED", "RATIO"];

/// Puts what was measured into the findings.
pub(super) fn attach(findings: &mut [Finding], record: &LabRun, summary: &Summary) {
    for compared in &summary.comparisons {
        let name = record.experiment.arms.get(compared.arm).map(|arm| arm.name.as_str());
        let (Some(ratio), Some(finding)) =
            (compared.tps, findings.iter_mut().find(|finding| Some(finding.code) == name))
        else {
            continue;
        };
        let trials = [compared.arm, compared.baseline].map(|arm| summary.arms[arm].trials.measured);
        finding.measured = Some(MeasuredGain {
            times: ratio.ratio,
            low: ratio.interval.map(|interval| interval.low),
            high: ratio.interval.map(|interval| interval.high),
            of: "transactions a second",
            trials: trials[0].min(trials[1]),
            difference: !matches!(
                compared.verdict,
                Verdict::NoDifferenceSeen | Verdict::NotComparable { .. }
            ),
        });
    }
}

/// What was measured of a fix, in a sentence without a full stop.
pub(in crate::doctor) fn gain(measured: &MeasuredGain) -> String {
    let interval = measured
        .low
        .zip(measured.high)
        .map(|(low, high)| format!(" (95%: {})", change_interval(measured.times, low, high)))
        .unwrap_or_default();
    let trials = crate::text::count(measured.trials, "trial");
    let none = if measured.difference { "" } else { ": no difference that can be told from noise" };
    format!("{} {}{interval}, {trials} of each in the lab{none}", change(measured.times), measured.of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(scale: f64) -> Rates {
        Rates {
            commits: Some(100.0 * scale),
            read_statements: Some(1_000.0 * scale),
            write_statements: Some(400.0 * scale),
            threads_running: Some(16.0 * scale),
            redo_bytes: Some(2e5 * scale),
            page_requests: Some(1e4 * scale),
            page_reads: Some(0.0),
            ..Rates::default()
        }
    }

    #[test]
    fn figures_are_of_a_transaction_and_of_the_part_of_a_divided_machine() {
        let all = matched(&rates(8.0), &Rates { redo_bytes: Some(4e5), ..rates(1.0) }, 8);
        let of = |name: &str| all.iter().find(|one| one.figure == name).unwrap().clone();
        assert_eq!(of("transactions a second").ratio, Some(1.0));
        assert_eq!(of("clients whose statements run").observed, Some(16.0));
        assert_eq!(of("SELECT statements a transaction").observed, Some(10.0));
        assert_eq!(of("redo bytes a transaction").ratio, Some(2.0));
        let misses = of("pages read a transaction");
        assert_eq!((misses.observed, misses.measured, misses.ratio), (Some(0.0), Some(0.0), None));
        assert_eq!(of("binary log bytes a transaction").observed, None, "it was not counted");
    }

    #[test]
    fn a_gain_is_a_change_with_its_interval_and_says_where_there_is_none() {
        let of_interval = |difference, low, high| {
            let of = "transactions a second";
            gain(&MeasuredGain { times: 1.42, low, high, of, trials: 3, difference })
        };
        assert_eq!(
            of_interval(true, Some(1.31), Some(1.54)),
            "+42% transactions a second (95%: +31% to +54%), 3 trials of each in the lab"
        );
        let unsure = of_interval(false, Some(0.95), Some(1.54));
        assert!(unsure.contains("-5.0% to +54%"), "{unsure}");
        assert!(of_interval(false, None, None).ends_with("no difference that can be told from noise"));
    }
}
