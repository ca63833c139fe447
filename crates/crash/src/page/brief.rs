//! The answer on one screen, for text: the arm that suffered most with its interval, the arms in one table, why it may be
//! believed, and the commands to go on with. The sections after it are details.

use ebbtide_lab::page::brief::{brief, first_remark, interval_detail};
use ebbtide_report::{Block, Cell, Listing, Medium, Section, Table, Tone};
use ebbtide_text::{change, count, figure, latency, whole};

use super::{PageContext, replay};
use crate::record::{Cut, VerdictKind};
use crate::summary::sentences::{bound, share_of};
use crate::summary::{ArmSummary, BAD, gained};

/// Rows of the table that text shows without details; the fewer where names take several lines each.
const FIRST_ROWS: usize = 6;
const FIRST_LONG_ROWS: usize = 3;
/// A name that is longer wraps beside the figures.
const LONG_NAME: usize = 20;
/// Bad cuts whose replay is offered, at most.
const EXAMPLES: usize = 2;

pub(super) fn section(page: &PageContext) -> Section {
    let mut blocks = vec![Block::Findings(vec![answer(page)])];
    if !page.arms.is_empty() {
        blocks.push(Block::Table(table(page)));
    }
    let why = why(page);
    if !why.is_empty() {
        blocks.push(Block::Text(why));
    }
    blocks.extend(remark(page));
    // A remark takes the lines of one of them.
    let shown = if page.summary.notes.is_empty() { EXAMPLES } else { EXAMPLES - 1 };
    for cut in examples(page).into_iter().take(shown) {
        let damage = crate::harm(cut).into_iter().next().unwrap_or_default();
        let label = format!("Look at cut {} of {}, {damage}", cut.number + 1, page.name(&cut.arm));
        let command = replay(&page.run.host.home, cut.seed);
        blocks.push(Block::Listing(Listing { label, text: command }));
    }
    if !page.run.command.is_empty() {
        blocks.push(Block::Listing(Listing { label: "Again".into(), text: page.run.command.clone() }));
    }
    Section::new("", blocks).only(Medium::Text)
}

/// The first sentence: what it costs where it costs most, and where it costs nothing.
fn answer(page: &PageContext) -> String {
    if !page.summary.valid {
        return format!("VOID: nothing below may be believed: {}.", page.summary.void.join("; "));
    }
    let share = |arm: &ArmSummary| arm.bad.share.unwrap_or(0.0);
    let harmed: Vec<_> = page.arms.iter().filter(|(arm, _)| arm.bad.count > 0).collect();
    let unharmed = unharmed(page);
    let Some((arm, name)) = harmed.iter().max_by(|a, b| share(a.0).total_cmp(&share(b.0))) else {
        return match unharmed {
            Some(words) => format!("No harm seen: {words}."),
            None => "No cut of any arm was judged: nothing can be said about them.".to_owned(),
        };
    };
    let loss = arm.loss.as_ref().map_or_else(String::new, |loss| {
        let lost = whole(loss.transactions.max);
        format!(
            ", at most {lost} acknowledged transactions lost, of the last {}",
            latency(loss.seconds.max * 1e6)
        )
    });
    let others = match harmed.len() - 1 {
        0 => String::new(),
        others => format!("; {} too", count(others, "other arm")),
    };
    let unharmed = unharmed.map_or_else(String::new, |words| format!("; {words}"));
    let (cuts, bound) = (share_of(&arm.bad, arm.end), bound(&arm.bad));
    format!("{name}: {cuts} did harm ({bound}, 95%){loss}{others}{unharmed}.")
}

/// The arms with which nothing bad was seen: `none of 30 with durable (at most 9.5%)`.
fn unharmed(page: &PageContext) -> Option<String> {
    let unharmed = page.arms.iter().filter(|(arm, _)| arm.bad.of > 0 && arm.bad.count == 0);
    let unharmed: Vec<_> = unharmed.collect();
    let (weakest, name) = unharmed.iter().min_by_key(|(arm, _)| arm.bad.of)?;
    let bound = bound(&weakest.bad);
    Some(match unharmed.len() {
        1 => format!("none of {} with {name} ({bound}, 95%)", whole(weakest.bad.of as f64)),
        arms => {
            let cuts: u64 = unharmed.iter().map(|(arm, _)| arm.bad.of).sum();
            format!("none of {} with {} ({bound} of any, 95%)", whole(cuts as f64), count(arms, "arm"))
        }
    })
}

fn table(page: &PageContext) -> Table {
    let kinds: Vec<VerdictKind> =
        BAD.into_iter().filter(|kind| page.arms.iter().any(|(arm, _)| arm.count(*kind) > 0)).collect();
    let has = |wanted: fn(&ArmSummary) -> bool| page.arms.iter().any(|(arm, _)| wanted(arm));
    let (unverified, lost) = (has(|arm| arm.unverified > 0), has(|arm| arm.loss.is_some()));
    let gains = has(|arm| gain(arm).is_some());
    let mut columns = vec!["Arm", "Harmed (95%)"];
    columns.extend(kinds.iter().map(|kind| head(*kind)));
    columns.extend(unverified.then_some("Unverified"));
    columns.extend(lost.then_some("Lost at most"));
    columns.push("TPS");
    columns.extend(gains.then_some("Gain (95%)"));
    let mut arms: Vec<_> = page.arms.iter().collect();
    let is_long = arms.iter().any(|(_, name)| name.chars().count() > LONG_NAME);
    let first_rows = if is_long { FIRST_LONG_ROWS } else { FIRST_ROWS };
    if arms.len() > first_rows {
        let share = |arm: &ArmSummary| arm.bad.share.unwrap_or(0.0);
        arms.sort_by(|a, b| share(b.0).total_cmp(&share(a.0)));
    }
    let row = |(arm, name): &&(&ArmSummary, String)| {
        let mut cells = vec![name.as_str().into(), harmed(arm)];
        cells.extend(kinds.iter().map(|kind| asked(arm, *kind)));
        cells.extend(unverified.then(|| arm.unverified.to_string().into()));
        cells.extend(lost.then(|| {
            arm.loss.map_or_else(dash, |loss| {
                let seconds = latency(loss.seconds.max * 1e6);
                format!("{} tx, {seconds}", whole(loss.transactions.max)).into()
            })
        }));
        cells.push(arm.throughput.map_or_else(dash, |throughput| figure(throughput.tps.mean).into()));
        cells.extend(gains.then(|| gain(arm).unwrap_or_else(dash)));
        cells
    };
    let column = |head: &str| columns.iter().position(|other| *other == head);
    Table {
        spare: ["Partial", "Binlog", "Unverified", "Replication", "Lost", "Corrupt", "TPS"]
            .into_iter()
            .filter_map(column)
            .collect(),
        rows: arms.iter().map(row).collect(),
        columns: columns.iter().map(|head| (*head).to_owned()).collect(),
        first_rows: Some(first_rows),
        ..Table::default()
    }
}

fn dash() -> Cell {
    "-".into()
}

const fn head(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Corrupt => "Corrupt",
        VerdictKind::Partial => "Partial",
        VerdictKind::LostCommits => "Lost",
        VerdictKind::BinlogDisagrees => "Binlog",
        VerdictKind::ReplicationBroken => "Replication",
        VerdictKind::Unverified => "Unverified",
    }
}

/// The cuts with a bad verdict, of those that were judged.
fn harmed(arm: &ArmSummary) -> Cell {
    if arm.bad.of == 0 {
        return dash();
    }
    let tone = if arm.bad.count > 0 { Tone::Bad } else { Tone::Good };
    let text = format!("{} of {}", whole(arm.bad.count as f64), whole(arm.bad.of as f64));
    Cell { detail: bound(&arm.bad), tone, ..Cell::from(text) }
}

/// Cuts with a kind of verdict; a dash where it is not looked for.
fn asked(arm: &ArmSummary, kind: VerdictKind) -> Cell {
    if arm.verdicts.contains_key(&kind) { arm.count(kind).to_string().into() } else { dash() }
}

/// What the arm carries more than what it is held against; None without an interval: one stint has no spread.
fn gain(arm: &ArmSummary) -> Option<Cell> {
    let gain = arm.gain.filter(|gain| gain.interval.is_some())?;
    Some(Cell { detail: interval_detail(gain.interval), ..Cell::from(change(gain.ratio)) })
}

/// That damage is seen, and what the risk buys.
fn why(page: &PageContext) -> String {
    let mut sentences = Vec::new();
    if page.summary.valid {
        let caught = page.summary.canaries.iter().filter_map(|canary| canary.caught).max().unwrap_or(0);
        sentences.push(format!(
            "All {} canaries were caught, the last one by its cut {caught}: the tester sees such damage.",
            page.summary.canaries.len()
        ));
    }
    if let Some(gain) = &page.run.gain {
        let first = gained(page.run).into_iter().next();
        sentences.extend(first.map(|finding| brief(finding.split("; ").next().unwrap_or_default())));
        sentences.extend(gain.failed.as_ref().map(|why| {
            let measured =
                if gain.measured.is_some() { "Not all of the gain counts" } else { "No gain was measured" };
            brief(&format!("{measured}: {why}"))
        }));
    }
    sentences.join(" ")
}

/// The first remark in its first sentence, and how many there are.
fn remark(page: &PageContext) -> Option<Block> {
    let notes = &page.summary.notes;
    let first = super::tester::sentence(page, notes.first()?);
    Some(first_remark(&first, notes.len() - 1))
}

/// Kept cuts of the arms in which their verdict is rarest, and so the least expected: at most [`EXAMPLES`], one for an arm.
fn examples<'a>(page: &PageContext<'a>) -> Vec<&'a Cut> {
    let kept = |arm: &ArmSummary, kind| {
        page.run.cuts.iter().find(|cut| cut.kept && cut.arm == arm.name && cut.kinds().contains(&kind))
    };
    let rarest = |arm: &ArmSummary| {
        let found = arm.verdicts.iter().filter_map(|(kind, share)| Some((share.count, kept(arm, *kind)?)));
        let (count, cut) = found.min_by_key(|(count, _)| *count)?;
        Some((count as f64 / arm.cuts as f64, cut))
    };
    let mut found: Vec<_> = page.summary.arms.iter().filter_map(rarest).collect();
    found.sort_by(|(rare, _), (other, _)| rare.total_cmp(other));
    found.into_iter().take(EXAMPLES).map(|(_, cut)| cut).collect()
}
