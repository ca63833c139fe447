//! The backups that were made while the load ran: what the foreground lost, how long they took, how large they are, what
//! they used of the credits, and what restoring them showed.

use ebbtide_report::{Cell, Section, Table, Tone};

use super::{ArmView, Block, PageContext, text};
use crate::experiment::{BackupMethod, BackupPlan};
use crate::record::{BackupUse, Outcome, Trial};
use crate::summary::{Across, ArmSummary, Around, BackupFigures, Measured};

const LEAD: &str = "A backup began while the load ran. The throughput of the load before, during and after it has its 95% \
    interval; a phase of less than some seconds has no figure. The time of a backup ends when all of it is on its volume. A \
    snapshot is complete at once for the server; EBS copies its blocks to S3 in the background, which no volume here does. \
    Credits are shares of a full bucket, of the volume that lost most. Every backup was restored to a server of its own and \
    checked, on a volume without limits; a trial whose backup fails its check counts in no figure. A restored snapshot has \
    all of its blocks from the beginning (initialization none): on EBS, without fast snapshot restore, each block is \
    slow when it is touched first.";

/// None where no arm has a backup.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    let arms = page.arms.iter().enumerate();
    let rows: Vec<Vec<Cell>> =
        arms.filter_map(|(group, view)| Some(row(group, view, view.arm.backup.as_ref()?))).collect();
    let columns =
        ["Arm", "Backup", "Before, transactions/s", "During", "After", "Duration", "Size", "Credits used"];
    let table = Table {
        caption: "Backups under load".into(),
        columns: columns.map(str::to_owned).into(),
        rows,
        ..Table::default()
    };
    if table.rows.is_empty() {
        return None;
    }
    Some(Section::new("Backups", vec![Block::Table(table), Block::Table(restored(page))]).lead(LEAD))
}

/// What restoring showed, arm by arm.
fn restored(page: &PageContext) -> Table {
    let arms = page.arms.iter().enumerate().filter(|(_, view)| view.arm.backup.is_some());
    let row = |(group, view): (usize, &ArmView)| {
        let name = Cell { text: view.name.clone(), group: Some(group), ..Cell::default() };
        let (usable, why) = checked(page, view);
        vec![name, usable, Cell::from(why)]
    };
    Table {
        caption: "Restored and checked".into(),
        columns: ["Arm", "Usable", "What was checked"].map(str::to_owned).into(),
        rows: arms.map(row).collect(),
        prose: true,
        words: true,
        ..Table::default()
    }
}

fn row(group: usize, view: &ArmView, plan: &BackupPlan) -> Vec<Cell> {
    let name = Cell { text: view.name.clone(), group: Some(group), ..Cell::default() };
    let rate = |around: Around| rate(view.summary, around);
    let figures = view.summary.and_then(|summary| summary.backup);
    let none = || Cell::from("\u{2013}");
    let across = |of: fn(&BackupFigures) -> Across, text: fn(f64) -> String| {
        figures.as_ref().map_or_else(none, |figures| figure(of(figures), text))
    };
    vec![
        name,
        Cell::from(how(plan)),
        rate(Around::Before),
        rate(Around::During),
        rate(Around::After),
        across(|figures| figures.took_s, |s| text::latency(s.max(1e-6) * 1e6)),
        across(|figures| figures.bytes, text::bytes),
        figures.as_ref().map_or_else(none, credits),
    ]
}

fn how(plan: &BackupPlan) -> String {
    let method = match plan.method {
        BackupMethod::Dump => "dump",
        BackupMethod::Physical => "physical copy",
        BackupMethod::Snapshot => "snapshot",
    };
    format!("{method} of the {}", plan.of.name())
}

fn rate(summary: Option<&ArmSummary>, around: Around) -> Cell {
    let parts = summary.into_iter().flat_map(|summary| &summary.regimes);
    let own = parts.filter(|part| part.regime.backup == Some(around));
    let Some(longest) = own.max_by(|a, b| a.figures.seconds.total_cmp(&b.figures.seconds)) else {
        return Cell::from("\u{2013}");
    };
    let Measured { mean, interval, .. } = longest.figures.tps;
    let interval = interval.map(|ends| format!("{} to {}", text::short(ends.low), text::short(ends.high)));
    Cell::value(text::short(mean), mean, interval.unwrap_or_default())
}

fn figure(across: Across, text: impl Fn(f64) -> String) -> Cell {
    let range = (across.min < across.max).then(|| format!("{} to {}", text(across.min), text(across.max)));
    Cell::value(text(across.median), across.median, range.unwrap_or_default())
}

/// Credits of the server's volumes, and of the target. What flowed in is subtracted, so that less than none was used
/// where more flowed in.
fn credits(figures: &BackupFigures) -> Cell {
    let share = |across: Across| text::percent(across.median.max(0.0));
    let target = figures.target_credits_used.map(|used| format!("target: {}", share(used)));
    match (figures.credits_used, target) {
        (Some(used), target) => Cell::value(share(used), used.median, target.unwrap_or_default()),
        (None, Some(target)) => Cell::from(target),
        (None, None) => Cell::from("no credits"),
    }
}

/// How many backups of an arm can be used, and what was checked; why there is none where none was made.
fn checked(page: &PageContext, view: &ArmView) -> (Cell, String) {
    let own = || page.run.trials.iter().filter(|trial| trial.arm == view.arm.name);
    let made: Vec<&BackupUse> = own().filter_map(|trial| trial.backup.as_ref()).collect();
    let why = |trial: &Trial| match &trial.outcome {
        Outcome::Failed { why, .. } => Some(why.clone()),
        _ => None,
    };
    let cell = |text: String, tone| Cell { text, tone, ..Cell::default() };
    let Some(first) = made.first() else {
        let why = own().find_map(why).unwrap_or_else(|| "no trial was made".to_owned());
        return (cell("none was made".into(), Tone::Bad), why);
    };
    let broken = made.iter().find_map(|one| one.restored.failed.as_ref());
    let good = made.iter().filter(|one| one.restored.failed.is_none()).count();
    let text = format!("{good} of {}", text::count(made.len(), "backup"));
    match broken {
        Some(why) => (cell(text, Tone::Bad), why.clone()),
        None => (cell(text, Tone::Good), first.restored.checked.join("; ")),
    }
}
