//! The table of docs/accuracy.md: a line for each arm. It is written and read again, so that a run of some experiments keeps the
//! lines of the others.

use std::fmt::Write as _;

use crate::judge::Predicted;

/// Errors that count as close, and as those that are named.
const CLOSE: f64 = 0.25;

/// An arm, measured and predicted, as the table has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) experiment: String,
    arm: String,
    calibrated: bool,
    measured: String,
    predicted: String,
    /// Predicted by measured, less one; of three decimals.
    error: f64,
    measured_limiter: String,
    predicted_limiter: String,
    /// Whether the limiters are the same; None where the measurement shows none.
    right: Option<bool>,
}

const CALIBRATED: &str = " (calibrated)";
const HEADING: &str = "| Experiment | Arm | Measured tps | Predicted | Error | Measured limiter | Predicted limiter |\n\
                       |---|---|---|---|---|---|---|\n";

impl Row {
    pub(crate) fn of(one: &Predicted) -> Self {
        Self {
            experiment: one.experiment.clone(),
            arm: one.arm.clone(),
            calibrated: one.calibrated,
            measured: figure(one.measured),
            predicted: figure(one.predicted),
            error: (one.error() * 1e3).round() / 1e3,
            measured_limiter: one.measured_limiter.to_owned(),
            predicted_limiter: one.predicted_limiter.to_owned(),
            right: one.right,
        }
    }

    fn line(&self) -> String {
        format!(
            "| {} | {}{} | {} | {} | {:+.1}% | {} | {}{} |",
            self.experiment,
            self.arm,
            if self.calibrated { CALIBRATED } else { "" },
            self.measured,
            self.predicted,
            self.error * 100.0,
            self.measured_limiter,
            self.predicted_limiter,
            judgement(self.right),
        )
    }

    /// The row of a line; None where it is a line of something else.
    fn parse(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [experiment, arm, measured, predicted, error, measured_limiter, predicted_limiter] = cells[..]
        else {
            return None;
        };
        let error = error.strip_suffix('%')?.parse::<f64>().ok()? / 100.0;
        let judged = [Some(false), None].into_iter().find_map(|right| {
            predicted_limiter.strip_suffix(judgement(right)).map(|limiter| (limiter, right))
        });
        let (predicted_limiter, right) = judged.unwrap_or((predicted_limiter, Some(true)));
        Some(Self {
            experiment: experiment.to_owned(),
            arm: arm.strip_suffix(CALIBRATED).unwrap_or(arm).to_owned(),
            calibrated: arm.ends_with(CALIBRATED),
            measured: measured.to_owned(),
            predicted: predicted.to_owned(),
            error,
            measured_limiter: measured_limiter.to_owned(),
            predicted_limiter: predicted_limiter.to_owned(),
            right,
        })
    }
}

const fn judgement(right: Option<bool>) -> &'static str {
    match right {
        Some(true) => "",
        Some(false) => " (wrong)",
        None => " (not judged)",
    }
}

fn figure(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// The rows of a page and the new ones, in the order of `experiments`; new rows take the place of all of their experiment.
pub(crate) fn merged(page: &str, new: &[Row], experiments: &[&str]) -> Vec<Row> {
    let kept = page.lines().filter_map(Row::parse);
    let kept = kept.filter(|row| new.iter().all(|one| one.experiment != row.experiment));
    let mut all: Vec<Row> = kept.filter(|row| experiments.contains(&row.experiment.as_str())).collect();
    all.extend(new.iter().cloned());
    all.sort_by_key(|row| experiments.iter().position(|name| *name == row.experiment));
    all
}

/// The table, and what all of it comes to.
pub(crate) fn report(rows: &[Row]) -> String {
    let mut text = HEADING.to_owned();
    for row in rows {
        let _ = writeln!(text, "{}", row.line());
    }
    let _ = write!(text, "\n{}", Tally::of(rows).text());
    text
}

/// What all predictions come to; calibrated arms are in no figure.
pub(crate) struct Tally {
    /// Absolute errors, rising.
    errors: Vec<f64>,
    right: usize,
    judged: usize,
    worst: Vec<String>,
}

impl Tally {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let all: Vec<&Row> = rows.iter().filter(|one| !one.calibrated).collect();
        let mut errors: Vec<f64> = all.iter().map(|one| one.error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        let mut wrong: Vec<&&Row> =
            all.iter().filter(|one| one.error.abs() > CLOSE || one.right == Some(false)).collect();
        wrong.sort_by(|a, b| b.error.abs().total_cmp(&a.error.abs()));
        let line = |one: &&&Row| {
            let limiter = match one.right {
                Some(false) => {
                    format!("; limited by {}, not {}", one.measured_limiter, one.predicted_limiter)
                }
                _ => String::new(),
            };
            format!("- {}, {}: {:+.0}%{limiter}", one.experiment, one.arm, one.error * 100.0)
        };
        Self {
            right: all.iter().filter(|one| one.right == Some(true)).count(),
            judged: all.iter().filter(|one| one.right.is_some()).count(),
            worst: wrong.iter().map(line).collect(),
            errors,
        }
    }

    fn median(&self) -> f64 {
        let middle = self.errors.len() / 2;
        match self.errors.len() {
            0 => 0.0,
            odd if odd % 2 == 1 => self.errors[middle],
            _ => f64::midpoint(self.errors[middle - 1], self.errors[middle]),
        }
    }

    fn within(&self) -> f64 {
        self.errors.iter().filter(|error| **error <= CLOSE).count() as f64 / self.errors.len().max(1) as f64
    }

    fn limiters(&self) -> f64 {
        self.right as f64 / self.judged.max(1) as f64
    }

    pub(crate) fn keeps(&self, median: f64, within: f64, limiters: f64) -> bool {
        self.median() <= median && self.within() >= within && self.limiters() >= limiters
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} predictions: median error {:.1}%, {:.0}% within 25%, worst {:.0}%. Right limiter: {} of {} ({:.0}%).\n",
            self.errors.len(),
            self.median() * 100.0,
            self.within() * 100.0,
            self.errors.last().copied().unwrap_or(0.0) * 100.0,
            self.right,
            self.judged,
            self.limiters() * 100.0,
        );
        if !self.worst.is_empty() {
            text.push_str(&format!(
                "\nWrong by more than 25%, or in what limits:\n\n{}\n",
                self.worst.join("\n")
            ));
        }
        text
    }
}
