//! How much is lost, and how long recovery takes: not means, but what the cuts really did.

use ebbtide_lab::page::text;
use ebbtide_report::{Block, Cell, Estimate, Estimates, Scale, Section, Table, Tone};

use super::{PageContext, dash, texts};
use crate::record::{Cut, VerdictKind};
use crate::summary::sentences::{ends, seconds};
use crate::summary::{ArmSummary, Quantiles, has};

/// At most so many dots represent the cuts of an arm.
const DOTS: usize = 120;

/// None where nothing was lost.
pub(super) fn loss(page: &PageContext) -> Option<Section> {
    let lost =
        |cut: &Cut| cut.loss.as_ref().filter(|_| has(cut, VerdictKind::LostCommits)).map(|loss| loss.seconds);
    let rows = |(place, (arm, name)): (usize, &(&ArmSummary, String))| {
        let of = arm.loss?;
        let cuts = format!("{} lost commits", ends(of.seconds.count, arm.end));
        Some(row(place, name, cuts, &of.seconds, dots(page, arm, lost)))
    };
    let rows: Vec<Estimate> = page.arms.iter().enumerate().filter_map(rows).collect();
    if rows.is_empty() {
        return None;
    }
    let title = "Time lost: from the first lost acknowledgement to the cut";
    let blocks = vec![chart(title, rows), Block::Table(losses(page))];
    let lead = "Only among the cuts that lost something. A transaction counts as lost where its client had read the \
                server's OK before the cut and the recovered tables lack it.";
    Some(Section::new("What is lost", blocks).lead(lead))
}

fn losses(page: &PageContext) -> Table {
    let arms = page.arms.iter().enumerate().filter_map(|(place, (arm, _))| Some((place, arm.loss?)));
    let row = |(place, loss): (usize, crate::summary::LossSummary)| {
        let count = |value: f64| Cell::value(text::whole(value), value, "");
        let time = |value: f64| Cell::value(seconds(value), value, "");
        let (n, t) = (loss.transactions, loss.seconds);
        vec![
            page.cell(place),
            count(n.p50),
            count(n.p95),
            count(n.max),
            time(t.p50),
            time(t.p95),
            time(t.max),
        ]
    };
    Table {
        columns: texts(&[
            "Arm",
            "Transactions lost, median",
            "95%",
            "At most",
            "Time lost, median",
            "95%",
            "At most",
        ]),
        rows: arms.map(row).collect(),
        sortable: true,
        ..Table::default()
    }
}

/// None where no server recovered.
pub(super) fn recovery(page: &PageContext) -> Option<Section> {
    let time = |cut: &Cut| cut.recovery.as_ref().map(|recovery| recovery.seconds);
    let rows = |(place, (arm, name)): (usize, &(&ArmSummary, String))| {
        let of = arm.recovery?;
        let recovered = format!("{} recovered from", ends(of.seconds.count, arm.end));
        Some(row(place, name, recovered, &of.seconds, dots(page, arm, time)))
    };
    let rows: Vec<Estimate> = page.arms.iter().enumerate().filter_map(rows).collect();
    if rows.is_empty() {
        return None;
    }
    let mut blocks = vec![
        chart("Recovery time: from the server's start to its first answer", rows),
        Block::Table(work(page)),
    ];
    blocks.extend(resumed(page));
    Some(Section::new("How it recovers", blocks).lead("On volumes with the same limits as under the load."))
}

fn work(page: &PageContext) -> Table {
    let row = |(place, (arm, _)): (usize, &(&ArmSummary, String))| {
        let of = arm.recovery?;
        let torn = arm.torn;
        let io = |count: &Quantiles, bytes: &Quantiles| {
            Cell::value(text::whole(count.p50), count.p50, text::bytes(bytes.p50))
        };
        let number = |value: u64| Cell::value(text::whole(value as f64), value as f64, "");
        let images = Cell { detail: text::count(torn.pages, "page"), ..number(torn.images) };
        let mended =
            Cell { tone: if torn.mended > 0 { Tone::Good } else { Tone::Plain }, ..number(torn.mended) };
        let not_restored = Cell {
            tone: if torn.not_restored > 0 { Tone::Bad } else { Tone::Plain },
            ..number(torn.not_restored)
        };
        Some(vec![
            page.cell(place),
            io(&of.reads, &of.read_bytes),
            io(&of.writes, &of.written_bytes),
            number(of.rolled_back),
            number(torn.writes),
            if torn.images > 0 { images } else { dash() },
            if torn.images > 0 { number(torn.given_back) } else { dash() },
            if torn.images > 0 { mended } else { dash() },
            if torn.images > 0 { not_restored } else { dash() },
        ])
    };
    Table {
        caption: "What recovery had to do".into(),
        columns: texts(&[
            "Arm",
            "Reads, median",
            "Writes, median",
            "Rolled back, all cuts",
            "Torn writes",
            "Images with invalid pages",
            "Pages from the doublewrite buffer",
            "Of these images clean after it",
            "Of these a page with a valid copy not restored",
        ]),
        rows: page.arms.iter().enumerate().filter_map(row).collect(),
        sortable: true,
        ..Table::default()
    }
}

/// How replicas went on; none where there are none.
fn resumed(page: &PageContext) -> Option<Block> {
    let count = |value: f64| Cell::value(text::whole(value), value, "");
    let time = |value: f64| Cell::value(seconds(value), value, "");
    let row = |(place, (arm, _)): (usize, &(&ArmSummary, String))| {
        let of = arm.resumed?;
        let (again, caught_up) = (of.to_fetch_again, of.caught_up_s);
        Some(vec![
            page.cell(place),
            count(again.count as f64),
            count(again.p50),
            count(again.max),
            caught_up.map_or_else(|| count(0.0), |caught_up| count(caught_up.count as f64)),
            caught_up.map_or_else(dash, |caught_up| time(caught_up.p50)),
            caught_up.map_or_else(dash, |caught_up| time(caught_up.max)),
        ])
    };
    let rows: Vec<Vec<Cell>> = page.arms.iter().enumerate().filter_map(row).collect();
    (!rows.is_empty()).then(|| {
        Block::Table(Table {
            caption: "How replicas went on: what they had applied before the cut, and had to fetch again"
                .into(),
            columns: texts(&[
                "Arm",
                "Started again",
                "To fetch again, median",
                "At most",
                "Caught up",
                "Took, median",
                "At most",
            ]),
            rows,
            sortable: true,
            ..Table::default()
        })
    })
}

fn row(place: usize, name: &str, detail: String, of: &Quantiles, points: Vec<f64>) -> Estimate {
    Estimate {
        label: name.to_owned(),
        detail,
        group: Some(place),
        mid: Some(of.p50),
        interval: Some((of.p5, of.p95)),
        points,
        text: seconds(of.p50),
        text_detail: format!("at most {}", seconds(of.max)),
    }
}

fn chart(title: &str, rows: Vec<Estimate>) -> Block {
    Block::Estimates(Estimates {
        title: title.into(),
        unit: "seconds".into(),
        scale: Scale::Linear,
        suffix: String::new(),
        reference: None,
        band: None,
        band_label: String::new(),
        points_label: "one cut".into(),
        mid_label: "median; the bar holds 9 of 10 cuts".into(),
        rows_label: "Arm".into(),
        texts_label: "Median".into(),
        rows,
    })
}

/// The figures of an arm's cuts, or as many of them as there is room for, evenly by rank: both ends are there.
fn dots(page: &PageContext, arm: &ArmSummary, figure: impl Fn(&Cut) -> Option<f64>) -> Vec<f64> {
    let mut values: Vec<f64> =
        page.run.cuts.iter().filter(|cut| cut.arm == arm.name).filter_map(figure).collect();
    values.sort_by(f64::total_cmp);
    if values.len() <= DOTS {
        return values;
    }
    (0..DOTS).map(|dot| values[dot * (values.len() - 1) / (DOTS - 1)]).collect()
}
