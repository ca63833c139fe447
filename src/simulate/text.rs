//! The report for a terminal.

use std::fmt::Write as _;
use std::path::Path;

use ebbtide_catalog::NO_LIMITS;
use ebbtide_twin::Interval;
use ebbtide_volume::Op;

use super::figures::{latency, mean_rate, mib, percent, rate, span, whole};
use super::plan::Plan;
use super::run::SimulatedRun;
use super::sentences;

/// What is known before the run: the seed first.
pub(super) fn heading(plan: &Plan) -> String {
    let mut text = format!("seed {}\n", plan.seed);
    for volume in &plan.volumes {
        let _ = writeln!(text, "volume {}: {}", volume.spec, volume.resolved.description);
        let _ = writeln!(text, "  cost {}", volume.cost_line());
    }
    if let Some(instance) = plan.instance.as_ref().filter(|instance| !instance.has_limits()) {
        let _ = writeln!(text, "instance {}: {NO_LIMITS}", instance.name);
    } else if let Some(instance) = &plan.instance {
        let shared = if plan.together { ", shared by all volumes" } else { "" };
        let _ = writeln!(
            text,
            "instance {}: {} IOPS and {} Mb/s sustained, {} and {} at most{shared}",
            instance.name,
            whole(instance.baseline_iops as f64),
            whole(instance.baseline_mbps as f64),
            whole(instance.maximum_iops as f64),
            whole(instance.maximum_mbps as f64),
        );
    }
    if plan.loader.is_some() {
        let _ = writeln!(text, "initialization {}: a snapshot has every block", plan.initialization);
    }
    let kind = if plan.trace.is_some() { "trace" } else { "job" };
    let _ = writeln!(text, "{kind} {}", plan.load());
    for note in &plan.workload.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// The same of a trace: what of it is not used comes first.
pub(super) fn heading_of_trace(plan: &Plan, warning: Option<&str>) -> String {
    warning.map_or_else(String::new, |warning| format!("{warning}\n")) + &heading(plan)
}

/// Tables, totals and verdicts.
pub(super) fn body(plan: &Plan, runs: &[SimulatedRun], html: Option<&Path>) -> String {
    let mut text = String::new();
    for (volume, run) in plan.volumes.iter().zip(runs) {
        if runs.len() > 1 {
            let _ = write!(text, "\n== {}\n", volume.spec);
        } else {
            text.push('\n');
        }
        over_time(plan, run, &mut text);
        totals(plan, run, &mut text);
        for sentence in sentences::verdict(plan, run) {
            let _ = writeln!(text, "{sentence}");
        }
    }
    if runs.len() > 1 {
        side_by_side(plan, runs, &mut text);
    }
    if let Some(path) = html {
        let _ = writeln!(text, "\ncharts: {}", path.display());
    }
    text
}

/// A column: its heading, its width and how a row fills it.
type Column = (&'static str, usize, fn(&Interval) -> String);

fn over_time(plan: &Plan, run: &SimulatedRun, text: &mut String) {
    let columns = columns(plan, run);
    for (heading, width, _) in &columns {
        let _ = write!(text, "{heading:>width$}");
    }
    text.push('\n');
    let changes = sentences::changes(run);
    let mut next = changes.iter().peekable();
    // Rows that read the same as the one before, in one line. Every row is shown where the
    // user named the interval.
    let mut same: Vec<String> = Vec::new();
    let mut before = String::new();
    for row in &run.rows {
        let cells: Vec<String> =
            columns.iter().map(|(_, width, cell)| format!("{:>width$}", cell(row))).collect();
        let line = cells.concat();
        let figures = cells[1..].concat();
        let changed = next.peek().is_some_and(|change| change.at <= row.start);
        if figures == before && !changed && !plan.interval_given {
            same.push(line);
            continue;
        }
        flush(&mut same, text);
        while let Some(change) = next.next_if(|change| change.at <= row.start) {
            let _ = writeln!(text, "  -- {}", change.sentence);
        }
        let _ = writeln!(text, "{line}");
        before = figures;
    }
    flush(&mut same, text);
    for change in next {
        let _ = writeln!(text, "  -- {}", change.sentence);
    }
}

/// Prints rows that were held back: of many the last, and how many it represents.
fn flush(same: &mut Vec<String>, text: &mut String) {
    if same.len() > 2 {
        let _ = writeln!(text, "{:>UNTIL$}  ({} rows alike)", "...", same.len() - 1);
        same.drain(..same.len() - 1);
    }
    for line in same.drain(..) {
        let _ = writeln!(text, "{line}");
    }
}

/// Width of the column of times.
const UNTIL: usize = 12;

fn columns(plan: &Plan, run: &SimulatedRun) -> Vec<Column> {
    let mut columns: Vec<Column> = vec![("until", UNTIL, |row| span(row.end))];
    if run.shows(plan, Op::Read) && run.shows(plan, Op::Write) {
        columns.push(("reads/s", 10, |row| rate(row.read_iops())));
        columns.push(("writes/s", 10, |row| rate(row.write_iops())));
    } else {
        columns.push(("IOPS", 10, |row| rate(row.iops())));
    }
    columns.push(("MiB/s", 10, |row| rate(mib(row.bytes_per_second()))));
    columns.push(("p50", 10, |row| latency(row.p50)));
    columns.push(("p99", 10, |row| latency(row.p99)));
    columns.push(("queue", 9, |row| format!("{:.1}", row.queue)));
    columns.push(("throttled", 11, |row| percent(Some(row.throttled_share))));
    if has(run, |interval| interval.credit_share) {
        columns.push(("credits", 9, |row| percent(row.credit_share)));
    }
    if has(run, |interval| interval.instance_io_share) {
        columns.push(("inst I/O", 10, |row| percent(row.instance_io_share)));
    }
    if has(run, |interval| interval.instance_byte_share) {
        columns.push(("inst bytes", 12, |row| percent(row.instance_byte_share)));
    }
    columns
}

fn has(run: &SimulatedRun, share: fn(&Interval) -> Option<f64>) -> bool {
    run.intervals.iter().any(|interval| share(interval).is_some())
}

fn totals(plan: &Plan, run: &SimulatedRun, text: &mut String) {
    let _ = writeln!(text, "\ntotal over {}", span(run.duration));
    let parts = [("reads", Op::Read, &run.totals.read), ("writes", Op::Write, &run.totals.write)];
    for (name, op, part) in parts {
        if !run.shows(plan, op) {
            continue;
        }
        let at = |quantile| latency(part.percentiles.at(quantile));
        let _ = writeln!(
            text,
            "{name:>8}: {} I/Os, {} IOPS, {} MiB/s; latency mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
            whole(part.ios as f64),
            mean_rate(part.ios as f64, run.duration),
            mean_rate(mib(part.bytes as f64), run.duration),
            latency(part.mean()),
            at(0.50),
            at(0.99),
            at(0.999),
            at(1.0),
        );
    }
    if run.totals.flushes > 0 {
        let _ = writeln!(text, " flushes: {}", whole(run.totals.flushes as f64));
    }
    if let Some(loading) = &run.outcome.loading {
        let counts = &loading.counts;
        let figure = |blocks: u64| whole(blocks as f64);
        let _ = writeln!(
            text,
            "  loaded: {} of {} blocks of 512 KiB; {} at the first touch, {} in the background, {} overwritten before",
            figure(counts.total()),
            figure(loading.blocks()),
            figure(counts.touched),
            figure(counts.background),
            figure(counts.overwritten),
        );
    }
    text.push('\n');
}

fn side_by_side(plan: &Plan, runs: &[SimulatedRun], text: &mut String) {
    let width = plan.volumes.iter().map(|volume| volume.spec.chars().count()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "\n== side by side\n{:width$}{:>10}{:>10}{:>10}{:>10}{:>10}{:>9}{:>18}{:>14}",
        "volume", "IOPS", "MiB/s", "p50", "p99", "p99.9", "credits", "credits ended", "cost/month"
    );
    for (volume, run) in plan.volumes.iter().zip(runs) {
        let cells = comparison(run);
        let _ = write!(text, "{:width$}", volume.spec);
        // A cell that is wider than its column still has a blank before it.
        for (cell, width) in cells.iter().zip([9, 9, 9, 9, 9, 8, 17]) {
            let _ = write!(text, " {cell:>width$}");
        }
        let _ = writeln!(text, "{:>14}", volume.cost_cell());
    }
}

/// IOPS, MiB/s, p50, p99, p99.9, credits left, and when they ended.
pub(super) fn comparison(run: &SimulatedRun) -> [String; 7] {
    let all = run.totals.all();
    let at = |quantile| latency(all.percentiles.at(quantile));
    let ended = run.outcome.changes.iter().find(|change| change.ended);
    [
        mean_rate(all.ios as f64, run.duration),
        mean_rate(mib(all.bytes as f64), run.duration),
        at(0.50),
        at(0.99),
        at(0.999),
        percent(run.outcome.stats.credit_share),
        ended.map_or("-".into(), |change| format!("after {}", span(change.at))),
    ]
}
