//! What TPC-C is measured by, arm by arm.

use ebbtide_report::{Block, Cell, Section, Table, Tone};

use super::{ArmView, PageContext, text};
use crate::summary::{Across, Measured, TpccFigures, TransactionFigures};

const LEAD: &str = "tpmC are New-Order transactions a minute of the measured seconds without warm-up. With keying and think \
    times no system exceeds 12.86 for each warehouse: a share over 100% says that the clients did not wait. Compare tpmC \
    only with those of a kit with as many statements per transaction. Response times are of all measured seconds, the \
    median of the trials. The specification limits the 90th percentile of each transaction (clause 5.2.5.7). The twelve consistency conditions of clause 3.3.2 were checked after every trial, on the replica where one was promoted; a trial after \
    which one does not hold does not count.";

/// None where no arm ran TPC-C.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    let arms: Vec<(usize, &ArmView, &TpccFigures)> = page
        .arms
        .iter()
        .enumerate()
        .filter_map(|(group, view)| Some((group, view, view.summary?.tpcc.as_ref()?)))
        .collect();
    let blocks = vec![Block::Table(throughput(&arms)?), Block::Table(response(&arms))];
    Some(Section::new("TPC-C", blocks).lead(LEAD))
}

fn throughput(arms: &[(usize, &ArmView, &TpccFigures)]) -> Option<Table> {
    let mut columns: Vec<String> =
        ["Arm", "tpmC", "Of the ceiling", "Statements per transaction"].map(str::to_owned).into();
    let shares = arms.first()?.2.transactions.iter().map(|of| words_of(&of.transaction));
    columns.extend(shares);
    let rows = arms.iter().map(|(group, view, figures)| {
        let mut row = vec![
            arm(*group, view),
            Cell::value(text::short(figures.tpmc.mean), figures.tpmc.mean, interval(&figures.tpmc)),
            Cell::value(text::percent(figures.ceiling_pct / 100.0), figures.ceiling_pct, ""),
            Cell::value(
                text::short(figures.statements_per_transaction),
                figures.statements_per_transaction,
                "",
            ),
        ];
        let share = |of: &TransactionFigures| {
            Cell::value(text::percent(of.share_pct / 100.0), of.share_pct, "of all")
        };
        row.extend(figures.transactions.iter().map(share));
        row
    });
    let rows = rows.collect();
    Some(Table { caption: "Throughput and mix".into(), columns, rows, ..Table::default() })
}

fn response(arms: &[(usize, &ArmView, &TpccFigures)]) -> Table {
    let rows = arms.iter().flat_map(|(group, view, figures)| {
        figures.transactions.iter().map(|of| {
            let percentile = |across: Across| match of.count {
                0 => Cell::from("-"),
                _ => Cell::value(text::latency(across.median), across.median, range(across)),
            };
            vec![
                arm(*group, view),
                Cell::from(words_of(&of.transaction)),
                percentile(of.p50_us),
                limited(of),
                percentile(of.p95_us),
                percentile(of.p99_us),
                percentile(of.max_us),
                Cell::value(text::whole(of.count as f64), of.count as f64, ""),
            ]
        })
    });
    Table {
        caption: "Response time by transaction".into(),
        columns: ["Arm", "Transaction", "p50", "p90", "p95", "p99", "Longest", "Finished, all trials"]
            .map(str::to_owned)
            .into(),
        rows: rows.collect(),
        ..Table::default()
    }
}

/// The 90th percentile against its limit; the slowest trial decides.
fn limited(of: &TransactionFigures) -> Cell {
    if of.count == 0 {
        return Cell::from("-");
    }
    let limit_us = of.limit_s * 1e6;
    let (tone, holds) = match of.p90_us.max <= limit_us {
        true => (Tone::Good, "within"),
        false => (Tone::Bad, "over"),
    };
    let text = text::latency(of.p90_us.median);
    let detail = format!("{holds} its limit of {}", text::latency(limit_us));
    Cell { tone, ..Cell::value(text, of.p90_us.median, detail) }
}

fn arm(group: usize, view: &ArmView) -> Cell {
    Cell { text: view.name.clone(), group: Some(group), ..Cell::default() }
}

/// `new_order` as `new order`.
fn words_of(transaction: &str) -> String {
    transaction.replace('_', " ")
}

fn interval(figure: &Measured) -> String {
    figure.interval.map_or(String::new(), |interval| {
        format!("{} to {}", text::short(interval.low), text::short(interval.high))
    })
}

fn range(across: Across) -> String {
    if across.min < across.max {
        format!("{} to {}", text::latency(across.min), text::latency(across.max))
    } else {
        String::new()
    }
}
