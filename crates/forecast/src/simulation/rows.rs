//! The run of a volume over time as a table.

use ebbtide_report::{Block, Cell, Section, Table};
use ebbtide_twin::Interval;
use ebbtide_volume::Op;

use super::figures::{latency, mib, percent, rate, span};
use super::plan::SimulationPlan;
use super::run::SimulatedRun;
use super::sentences;

/// A column: its heading and how a row fills it.
type Column = (&'static str, fn(&Interval) -> String);

/// The rows of every volume. The page has charts in their place.
#[must_use]
pub fn sections(plan: &SimulationPlan, runs: &[SimulatedRun]) -> Vec<Section> {
    let section = |(spec, run): (&str, &SimulatedRun)| {
        let heading = if runs.len() > 1 { format!("{spec} over time") } else { "Over time".to_owned() };
        let section = Section::new(heading, over_time(plan, run)).named("intervals");
        // Who names an interval wants to see each of them.
        if plan.interval_given { section } else { section.details() }
    };
    plan.volumes.iter().map(|volume| volume.spec.as_str()).zip(runs).map(section).collect()
}

/// When credits ended and came back, and the rows. A row ends where they do.
fn over_time(plan: &SimulationPlan, run: &SimulatedRun) -> Vec<Block> {
    let columns = columns(plan, run);
    let mut table = Table {
        columns: columns.iter().map(|(heading, _)| (*heading).to_owned()).collect(),
        ..Table::default()
    };
    // Rows that read the same as the one before, in one line. Every row is shown where the user named the interval.
    let mut same: Vec<Vec<String>> = Vec::new();
    let mut before: Vec<String> = Vec::new();
    for row in &run.rows {
        let cells: Vec<String> = columns.iter().map(|(_, cell)| cell(row)).collect();
        if cells[1..] == before && !plan.interval_given {
            same.push(cells);
            continue;
        }
        flush(&mut same, &mut table);
        before = cells[1..].to_vec();
        table.rows.push(cells.into_iter().map(Cell::from).collect());
    }
    flush(&mut same, &mut table);
    let changes = sentences::changes(run).into_iter().map(|change| Block::Text(change.sentence));
    changes.chain([Block::Table(table)]).collect()
}

/// Adds rows that were held back: of many the last, and how many it represents.
fn flush(same: &mut Vec<Vec<String>>, table: &mut Table) {
    if same.len() > 2 {
        let mut alike = vec![Cell::default(); table.columns.len()];
        alike[0] = format!("... {} alike", same.len() - 1).into();
        table.rows.push(alike);
        same.drain(..same.len() - 1);
    }
    table.rows.extend(same.drain(..).map(|cells| cells.into_iter().map(Cell::from).collect()));
}

fn columns(plan: &SimulationPlan, run: &SimulatedRun) -> Vec<Column> {
    let mut columns: Vec<Column> = vec![("Until", |row| span(row.end))];
    if run.shows(plan, Op::Read) && run.shows(plan, Op::Write) {
        columns.push(("Reads/s", |row| rate(row.read_iops())));
        columns.push(("Writes/s", |row| rate(row.write_iops())));
    } else {
        columns.push(("IOPS", |row| rate(row.iops())));
    }
    columns.push(("MiB/s", |row| rate(mib(row.bytes_per_second()))));
    columns.push(("p50", |row| latency(row.p50)));
    columns.push(("p99", |row| latency(row.p99)));
    columns.push(("Queue", |row| format!("{:.1}", row.queue)));
    columns.push(("Throttled", |row| percent(Some(row.throttled_share))));
    if has(run, |interval| interval.credit_share) {
        columns.push(("Credits", |row| percent(row.credit_share)));
    }
    if has(run, |interval| interval.instance_io_share) {
        columns.push(("Inst. I/O", |row| percent(row.instance_io_share)));
    }
    if has(run, |interval| interval.instance_byte_share) {
        columns.push(("Inst. bytes", |row| percent(row.instance_byte_share)));
    }
    columns
}

fn has(run: &SimulatedRun, share: fn(&Interval) -> Option<f64>) -> bool {
    run.intervals.iter().any(|interval| share(interval).is_some())
}
