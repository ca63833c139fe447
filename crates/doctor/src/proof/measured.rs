//! What a proof measured, and how far the lab's workload is the server's: figure by figure, observed against measured.

use std::path::{Path, PathBuf};

use ebbtide_advisor::{Finding, MeasuredGain};
use ebbtide_lab::record::LabRun;
use ebbtide_lab::summary::{Summary, Verdict};
use ebbtide_observe::{Observation, Rates};
use serde::Serialize;

use super::file::BEFORE;
use super::proposal::{NotProved, Proposal};
use super::shape::RowsWritten;

/// A run of the lab in which findings were proved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// Directory of the results; null where nothing was run.
    pub directory: Option<PathBuf>,
    /// The report of the run.
    pub report: Option<PathBuf>,
    /// The server that was measured, in its own words.
    pub server: String,
    /// The lab's machine was one of so many parts of the server's.
    pub divided_by: u32,
    /// The load, in a sentence.
    pub workload: String,
    /// How far the lab's workload is the server's; empty where nothing was measured.
    pub figures: Vec<Matched>,
    /// Findings that were not proved.
    pub not_proved: Vec<NotProved>,
    /// Settings of the server that the lab's server does not take, with the reason.
    pub left_out: Vec<String>,
    /// What a reader must know before believing it.
    pub notes: Vec<String>,
}

/// A figure of the server, and the same of the lab's server with the settings of now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matched {
    /// What it is.
    pub figure: &'static str,
    /// As it was observed; of a divided machine the part of one.
    pub observed: Option<f64>,
    /// As it was measured.
    pub measured: Option<f64>,
    /// Measured over observed; null where either is unknown or 0.
    pub ratio: Option<f64>,
}

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
    #[must_use]
    pub fn nothing(server: &str, proposal: &Proposal) -> Self {
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

    /// What a run of the proposal measured, whose results are in `directory` and whose report is `report`.
    #[must_use]
    pub fn of(
        proposal: &Proposal,
        seen: &Observation,
        (record, summary): (&LabRun, &Summary),
        directory: &Path,
        report: &Path,
    ) -> Self {
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
            directory: Some(directory.to_owned()),
            report: Some(report.to_owned()),
            figures,
            notes: proposal.bounds.iter().cloned().chain(summary.notes.iter().map(note)).collect(),
            ..Self::nothing(&record.server.version, proposal)
        }
    }

    /// How many of the figures that both have are alike.
    #[must_use]
    pub fn alike(&self) -> (usize, usize) {
        let known: Vec<f64> = self.figures.iter().filter_map(|one| one.ratio).collect();
        (known.iter().filter(|ratio| ratio.max(1.0 / **ratio) <= ALIKE).count(), known.len())
    }
}

/// Puts what was measured into the findings.
pub fn attach(findings: &mut [Finding], record: &LabRun, summary: &Summary) {
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
}
