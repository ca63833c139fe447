//! What a run is about to do and what it found, for people.

use std::fmt::Write as _;
use std::path::Path;

use ebbtide_lab::experiment::{self, Arm, Experiment, Shipped};
use ebbtide_lab::record::Run;
use ebbtide_lab::run::{Plan, Prepared};
use ebbtide_lab::summary::{ArmSummary, Repetition, Summary};

use super::status::{latency, span};
use crate::text::{Table, count, seconds, size, timestamp};

/// The shipped experiments.
pub(crate) fn list<'a>(shipped: impl IntoIterator<Item = &'a Shipped>, command: &str) -> String {
    let mut text = String::new();
    for one in shipped {
        let _ = writeln!(
            text,
            "{}\n    {}\n    {}\n",
            one.name,
            one.title,
            one.question.trim().replace('\n', "\n    ")
        );
    }
    let _ = write!(
        text,
        "Run one with 'ebbtide {command} NAME', or NAME --quick; 'ebbtide {command} NAME --show' prints its file."
    );
    text
}

/// What runs, before it does.
pub(super) fn header(plan: &Plan, out: &Path) -> String {
    let (experiment, server) = (&plan.experiment(), plan.server());
    let (arms, repeats) = (experiment.arms.len(), experiment.trial.repeats);
    let mut text = format!("{}: {}\n", experiment.name, experiment.title);
    let _ = writeln!(text, "server: {} ({})", server.text.trim(), server.path.display());
    let _ = writeln!(
        text,
        "{}, {} of each, {} measured; seed {}",
        count(arms, "arm"),
        count(repeats, "trial"),
        measured(experiment),
        experiment.seed
    );
    text + &format!("results: {}", out.display())
}

/// What would run.
pub(super) fn plan(plan: &Plan, experiment: &Experiment) -> String {
    let (server, estimate) = (plan.server(), experiment::estimate(experiment));
    let mut text = format!("{}: {}\nserver: {}\n", experiment.name, experiment.title, server.text.trim());
    if !experiment.scale.is_empty() {
        let _ = writeln!(text, "scale: {}", experiment.scale.trim());
    }
    for planned in plan.arms() {
        let arm = &planned.arm;
        let _ = writeln!(text, "\n{}", arm.name);
        for (role, spec) in &arm.volumes {
            let role = format!("{role:?}").to_lowercase();
            let _ = writeln!(text, "    {role} volume: {spec}");
        }
        let _ = writeln!(
            text,
            "    memory {}, about {} of data",
            size(arm.instance.memory_bytes),
            size(planned.data_bytes)
        );
        let _ = writeln!(text, "    {}", asked_of(arm));
        for option in &planned.options {
            let _ = writeln!(text, "    {option}");
        }
    }
    let (arms, repeats) = (experiment.arms.len(), experiment.trial.repeats);
    let is_cut = experiment.arms.iter().any(|arm| arm.crash.is_some());
    text + &format!(
        "\n{}, {} of each, {} measured: about {}",
        count(arms, "arm"),
        count(repeats, if is_cut { "stint" } else { "trial" }),
        measured(experiment),
        span(estimate.as_secs_f64())
    )
}

/// The time that is measured in a trial: `60 s`, or `15 s to 60 s` where arms differ.
pub(crate) fn measured(experiment: &Experiment) -> String {
    let times = || experiment.arms.iter().map(|arm| arm.measure_s);
    let (least, most) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let [least, most] = [least, most].map(|time| seconds(f64::from(time)));
    if least == most { most } else { format!("{least} to {most}") }
}

/// What an arm's server is put through.
fn asked_of(arm: &Arm) -> String {
    let load = &arm.load;
    let Some(crash) = &arm.crash else {
        return format!("{} with {} connections", load.workload, load.connections);
    };
    let moments: Vec<&str> = crash.moments.iter().map(|moment| moment.name()).collect();
    let upto = if crash.canary.is_some() { "up to " } else { "" };
    let fault = crash.fault.map(|fault| format!("; fault: {}", fault.name())).unwrap_or_default();
    format!(
        "{} clients, {upto}{} cuts ({}) at the moments {}{fault}",
        load.connections,
        crash.cuts,
        crash.end.name(),
        moments.join(", ")
    )
}

/// The data that runs share.
pub(super) fn prepared(all: &[Prepared]) {
    let mut table = Table::new(&["NAME", "TABLES", "ROWS", "FS", "DISK", "SERVER"]);
    for one in all {
        let server = one.damage.clone().unwrap_or_else(|| one.server.trim().to_owned());
        let (tables, rows) = (one.tables.to_string(), one.rows.to_string());
        table.row([one.name.clone(), tables, rows, one.fs.clone(), size(one.allocated_bytes), server]);
    }
    table.print("no prepared data");
}

/// What was found.
pub(super) fn verdict(record: &Run, summary: &Summary, report: &Path) -> String {
    let mut text = String::new();
    for finding in &summary.findings {
        let _ = writeln!(text, "\n{finding}");
    }
    let _ = writeln!(text, "\n{}\n{DEFINITIONS}", arms(summary));
    if let Some(repetition) = &summary.repeated {
        let _ = writeln!(text, "{}\n", runs(repetition));
    }
    for note in &summary.notes {
        let arm = note.arm.as_ref().map(|arm| format!("{arm}: ")).unwrap_or_default();
        let _ = writeln!(text, "note: {arm}{}", note.text);
    }
    let _ = writeln!(text, "again: {}", record.command);
    text + &format!("report: {}", report.display())
}

/// Several runs of an experiment, and whether they agree.
pub(super) fn repetition(experiment: &Experiment, repetition: &Repetition) -> String {
    format!("{}: {}\n{}", experiment.name, experiment.title, runs(repetition))
}

fn runs(repetition: &Repetition) -> String {
    let mut table = Table::new(&["RUN", "STARTED", "SEED", "TRIALS"]);
    for run in &repetition.runs {
        let started = timestamp(i64::try_from(run.started_ns / 1_000_000_000).unwrap_or(i64::MAX));
        let trials = format!("{} of {}", run.measured, run.trials);
        table.row([run.directory.clone(), started, run.seed.to_string(), trials]);
    }
    let mut text = format!("\n{}", table.text());
    for repeated in &repetition.comparisons {
        let _ = write!(text, "\n\n{}", repeated.text);
    }
    if repetition.comparisons.is_empty() {
        text += "\n\nThe experiment compares nothing.";
    }
    for (at, note) in repetition.notes.iter().enumerate() {
        let _ = write!(text, "{}note: {note}", if at == 0 { "\n\n" } else { "\n" });
    }
    text
}

/// What the figures of the table are.
const DEFINITIONS: &str =
    "(without warm-up; IO/TX: operations a transaction, as the volumes' IOPS limits count them)";

/// The arms as a table.
fn arms(summary: &Summary) -> String {
    let mut table = Table::new(&["ARM", "TPS", "95%", "P95", "P99", "IO/TX", "KIB/TX", "TRIALS"]);
    for arm in &summary.arms {
        table.row(figures(arm));
    }
    table.text()
}

fn figures(arm: &ArmSummary) -> [String; 8] {
    let none = || "-".to_owned();
    let trials = &arm.trials;
    let of = trials.measured + trials.disqualified + trials.failed;
    let counted = format!("{} of {of}", trials.measured);
    let Some(figures) = &arm.whole else {
        return [arm.name.clone(), none(), none(), none(), none(), none(), none(), counted];
    };
    let per = figures.per_transaction.as_ref();
    [
        arm.name.clone(),
        number(figures.tps.mean),
        figures
            .tps
            .interval
            .map_or_else(none, |interval| format!("{} to {}", number(interval.low), number(interval.high))),
        latency(figures.p95_us.median),
        latency(figures.p99_us.median),
        per.map_or_else(none, |per| format!("{:.2}", per.consumed_ios)),
        per.map_or_else(none, |per| format!("{:.1}", per.read_kib + per.written_kib)),
        counted,
    ]
}

/// Three digits or more.
fn number(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Whether every trial counts: the exit code says so.
pub(super) fn all_measured(summary: &Summary) -> bool {
    summary.arms.iter().all(|arm| arm.trials.disqualified == 0 && arm.trials.failed == 0)
}
