//! When the power was cut, and what was under way.

use std::collections::BTreeMap;

use ebbtide_lab::page::text;
use ebbtide_report::{Block, Cell, Section, Table, Tone};

use super::{PageContext, dash, texts};
use crate::record::FileKind;
use crate::summary::sentences::{file, kind as kind_name, moment as moment_words};
use crate::summary::{InFlightSummary, MomentSummary};

/// None where nothing was cut.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    let rows: Vec<Vec<Cell>> = together(page).iter().map(|one| row(page, one)).collect();
    if rows.is_empty() {
        return None;
    }
    let mut columns = texts(&["The power was cut", "Cuts", "Moment met", "Clean"]);
    columns.extend(page.kinds().into_iter().map(|kind| kind_name(kind).to_owned()));
    columns.push("Unverified".to_owned());
    let table = Table { columns, rows, sortable: true, ..Table::default() };
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(in_flight(page));
    let lead = "All arms together, canaries apart. Where the moment was not met after a patient wait, the cut came at \
                another time and counts all the same. A moment that cannot come, such as a doublewrite batch without the \
                buffer, is no moment that was not met.";
    Some(Section::new("When the power was cut", blocks).lead(lead))
}

/// The moments of all arms, in the order in which they are first planned.
fn together(page: &PageContext) -> Vec<MomentSummary> {
    let mut all: Vec<MomentSummary> = Vec::new();
    for one in page.arms.iter().flat_map(|(arm, _)| &arm.moments).filter(|one| one.cuts > 0) {
        let Some(sum) = all.iter_mut().find(|sum| sum.moment == one.moment) else {
            all.push(one.clone());
            continue;
        };
        sum.cuts += one.cuts;
        sum.possible += one.possible;
        sum.met += one.met;
        sum.clean += one.clean;
        sum.unverified += one.unverified;
        for (kind, count) in &one.verdicts {
            *sum.verdicts.entry(*kind).or_default() += count;
        }
    }
    all
}

fn row(page: &PageContext, one: &MomentSummary) -> Vec<Cell> {
    let number = |count: u64, tone: Tone| {
        let cell = Cell::value(text::whole(count as f64), count as f64, "");
        Cell { tone: if count > 0 { tone } else { Tone::Plain }, ..cell }
    };
    // Of the cuts with which it can come at all.
    let share = one.met as f64 / one.possible.max(1) as f64;
    let detail = format!("{} of {}", text::whole(one.met as f64), text::whole(one.possible as f64));
    let met = match one.possible {
        0 => dash(),
        _ => Cell::value(text::percent(share), share, detail),
    };
    let mut cells = vec![
        Cell::from(moment_words(one.moment)),
        number(one.cuts, Tone::Plain),
        Cell { tone: if one.possible > 0 && share < 0.5 { Tone::Caution } else { Tone::Plain }, ..met },
        number(one.clean, Tone::Plain),
    ];
    let of_kind = |kind| number(one.verdicts.get(&kind).copied().unwrap_or(0), Tone::Bad);
    cells.extend(page.kinds().into_iter().map(of_kind));
    cells.push(number(one.unverified, Tone::Caution));
    cells
}

/// What was in flight, over all arms; none where nothing was.
fn in_flight(page: &PageContext) -> Option<Block> {
    let mut kinds: BTreeMap<FileKind, InFlightSummary> = BTreeMap::new();
    for one in page.arms.iter().flat_map(|(arm, _)| &arm.in_flight) {
        let sum = kinds.entry(one.kind).or_insert(InFlightSummary { cuts: 0, writes: 0, torn: 0, ..*one });
        sum.cuts += one.cuts;
        sum.writes += one.writes;
        sum.torn += one.torn;
    }
    let all: u64 = page.arms.iter().map(|(arm, _)| arm.cuts).sum();
    let row = |one: &InFlightSummary| {
        let share = one.cuts as f64 / all.max(1) as f64;
        let number = |count: u64| Cell::value(text::whole(count as f64), count as f64, "");
        vec![
            Cell::from(file(one.kind)),
            Cell { bar: Some(share), ..Cell::value(text::percent(share), share, "") },
            number(one.writes),
            if one.torn > 0 { number(one.torn) } else { dash() },
        ]
    };
    (!kinds.is_empty()).then(|| {
        Block::Table(Table {
            caption: "Writes in flight at the moment of the cut".into(),
            columns: texts(&["Written", "In flight in so many cuts", "Writes", "Torn by the cut"]),
            rows: kinds.values().map(row).collect(),
            ..Table::default()
        })
    })
}
