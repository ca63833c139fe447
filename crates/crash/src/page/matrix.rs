//! Risk and gain in one table.

use ebbtide_analysis::stats::Share;
use ebbtide_lab::page::text;
use ebbtide_lab::summary::LEAST;
use ebbtide_report::{Block, Cell, Estimate, Estimates, Scale, Section, Table, Tone};

use super::{PageContext, dash};
use crate::summary::ArmSummary;
use crate::summary::sentences::{bound, ends, kind as kind_name, seconds};

/// None where there is no arm.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    if page.arms.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Table(table(page))];
    blocks.extend(gains(page));
    let lead = "Each share is of the cuts in which it could be looked for, with its exact 95% interval; where nothing \
                was seen, with the largest share that 95% confidence leaves. A cut that could not be verified is in \
                no share.";
    Some(Section::new("Risk and gain", blocks).lead(lead))
}

fn table(page: &PageContext) -> Table {
    let baseline = page.summary.baseline.and_then(|place| page.arms.get(place));
    let mut columns = vec!["Arm".to_owned(), "TPS, 95% interval".to_owned()];
    columns.extend(baseline.map(|(_, name)| format!("TPS against {name}")));
    columns.push("Any bad verdict".to_owned());
    columns.extend(page.kinds().into_iter().map(|kind| kind_name(kind).to_owned()));
    columns.extend(["Lost at most", "Clean", "Unverified"].map(str::to_owned));
    let rows = page.arms.iter().enumerate().map(|(place, (arm, _))| row(page, place, arm));
    Table { columns, rows: rows.collect(), sortable: true, ..Table::default() }
}

/// Whether any arm is held against this one.
fn is_baseline(page: &PageContext, place: usize) -> bool {
    page.summary.baseline == Some(place) || page.arms.iter().any(|(arm, _)| arm.gain_over == Some(place))
}

fn row(page: &PageContext, place: usize, arm: &ArmSummary) -> Vec<Cell> {
    let name = Cell { detail: ends(arm.cuts, arm.end), ..page.cell(place) };
    let mut cells = vec![name, throughput(arm)];
    if let Some(baseline) = page.summary.baseline {
        cells.push(match arm.gain_over {
            None if is_baseline(page, place) => Cell::from("baseline"),
            None => dash(),
            Some(over) if over == baseline => gain(arm),
            Some(over) => against(page, over, gain(arm)),
        });
    }
    cells.push(share(&arm.bad, Tone::Bad));
    let of_kind = |kind| arm.verdicts.get(&kind).map_or_else(dash, |one| share(one, Tone::Bad));
    cells.extend(page.kinds().into_iter().map(of_kind));
    cells.push(arm.loss.as_ref().map_or_else(dash, |loss| {
        let transactions = format!("{} transactions", text::whole(loss.transactions.max));
        Cell::value(seconds(loss.seconds.max), loss.seconds.max, transactions)
    }));
    cells.push(Cell::value(text::whole(arm.clean as f64), arm.clean as f64, ""));
    let tone = if arm.unverified > 0 { Tone::Caution } else { Tone::Plain };
    let in_part = match arm.bad_in_part {
        0 => String::new(),
        bad => format!("and {} bad in part", text::whole(bad as f64)),
    };
    let unverified = Cell::value(text::whole(arm.unverified as f64), arm.unverified as f64, in_part);
    cells.push(Cell { tone, ..unverified });
    cells
}

fn throughput(arm: &ArmSummary) -> Cell {
    let not_counted = match arm.disqualified {
        0 => String::new(),
        stints => format!("{} not counted", text::count(stints, "stint")),
    };
    let Some(throughput) = arm.throughput else { return Cell { detail: not_counted, ..dash() } };
    let tps = throughput.tps;
    let detail = tps.interval.map_or_else(
        || format!("{}: no interval", text::count(throughput.stints, "stint")),
        |interval| format!("{} to {}", text::short(interval.low), text::short(interval.high)),
    );
    let detail = if not_counted.is_empty() { detail } else { format!("{detail}, {not_counted}") };
    Cell::value(text::short(tps.mean), tps.mean, detail)
}

fn gain(arm: &ArmSummary) -> Cell {
    // One stint has no spread, and a gain without an interval is a guess.
    let Some((gain, interval)) = arm.gain.and_then(|gain| Some((gain, gain.interval?))) else {
        return dash();
    };
    let detail = text::change_interval(&interval);
    Cell::value(text::change(gain.ratio), gain.ratio, detail)
}

/// Reports what a ratio is over, where that is not the arm that the column names.
fn against(page: &PageContext, over: usize, ratio: Cell) -> Cell {
    let name = page.arms.get(over).map_or("", |(_, name)| name.as_str());
    let detail = if ratio.detail.is_empty() { String::new() } else { format!("{}, ", ratio.detail) };
    Cell { detail: format!("{detail}against {name}"), ..ratio }
}

/// `61 of 100` over its interval, with a bar.
pub(super) fn share(share: &Share, tone: Tone) -> Cell {
    let Some(value) = share.share else { return dash() };
    let text = format!("{} of {}", text::whole(share.count as f64), text::whole(share.of as f64));
    Cell {
        bar: Some(value),
        tone: if share.count > 0 { tone } else { Tone::Plain },
        ..Cell::value(text, value, bound(share))
    }
}

/// The throughputs held against each other, as a chart; none where nothing is compared.
fn gains(page: &PageContext) -> Option<Block> {
    let compared: Vec<_> = page.summary.comparisons.iter().filter(|gain| gain.tps.is_some()).collect();
    let first = compared.first()?.baseline;
    let only = compared.iter().all(|gain| gain.baseline == first);
    let name = |place: usize| page.arms.get(place).map_or("", |(_, name)| name.as_str());
    let rows = compared.iter().filter_map(|gain| {
        let tps = gain.tps?;
        Some(Estimate {
            label: name(gain.arm).to_owned(),
            detail: if only { String::new() } else { format!("against {}", name(gain.baseline)) },
            group: Some(gain.arm),
            mid: Some(tps.ratio),
            interval: tps.interval.map(|interval| (interval.low, interval.high)),
            points: stint_ratios(page, gain.arm, gain.baseline),
            text: text::change(tps.ratio),
            text_detail: tps.interval.map_or(String::new(), |interval| text::change_interval(&interval)),
        })
    });
    let against = if only { name(first) } else { "the baseline" };
    Some(Block::Estimates(Estimates {
        title: format!("What the risk buys: throughput against {against}"),
        unit: "ratio, log scale".into(),
        scale: Scale::Log,
        suffix: "\u{d7}".into(),
        reference: Some((1.0, "as the baseline".into())),
        band: Some((1.0 / (1.0 + LEAST), 1.0 + LEAST)),
        band_label: format!("within {}: never called a difference", text::percent(LEAST)),
        points_label: "one stint against the baseline's mean".into(),
        mid_label: "ratio of the means, 95% interval".into(),
        rows_label: "Arm".into(),
        texts_label: "Ratio, 95% interval".into(),
        rows: rows.collect(),
    }))
}

fn stint_ratios(page: &PageContext, arm: usize, baseline: usize) -> Vec<f64> {
    let (Some((arm, _)), Some((baseline, _))) = (page.arms.get(arm), page.arms.get(baseline)) else {
        return Vec::new();
    };
    let Some(level) = baseline.throughput.map(|one| one.tps.mean).filter(|level| *level > 0.0) else {
        return Vec::new();
    };
    let stints = page.run.stints.iter().filter(|stint| stint.arm == arm.name);
    stints.filter_map(|stint| Some(stint.counted()?.tps / level)).collect()
}
