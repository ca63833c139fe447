//! How far the replicas of each arm were behind, and what became of the one that was promoted.

use ebbtide_report::{Block, Cell, Section, Table};

use super::{ArmView, PageContext, text};
use crate::record::{Promotion, Trial};
use crate::summary::{Across, LagFigures};

const LEAD: &str = "The age of the newest heartbeat that a replica had applied, at the end of each second, and the \
    transactions of the source that it had not applied. Of several replicas it is the one that was farthest behind. A \
    heartbeat is committed on the source each tenth of a second: a replica that keeps up shows about 0.1 s and the time of a \
    commit. Median of the trials, with their range. A replica that does not keep up ends farther behind than its mean.";

const PROMOTION: &str = "The source was killed under its load after the measurement. The replica then applied what it had fetched, \
    forgot its source and committed a write of its own. Nobody had to notice the failure, and no client had to be moved: \
    these come on top. Lost are transactions that the source had acknowledged to the clients and the replica does not have, \
    by the clients' ledger and the marks of their transactions.";

/// Empty where no arm has replicas.
pub(super) fn sections(page: &PageContext) -> Vec<Section> {
    let arms = page.arms.iter().enumerate();
    let rows: Vec<Vec<Cell>> =
        arms.filter_map(|(group, view)| Some(row(group, view, &view.summary?.lag?))).collect();
    let columns = ["Arm", "Mean lag", "95th percentile", "At the end", "Transactions, mean", "At the end"];
    let table = Table {
        caption: "Lag of the replicas".into(),
        columns: columns.map(str::to_owned).into(),
        rows,
        ..Table::default()
    };
    let lag =
        (!table.rows.is_empty()).then(|| Section::new("Replicas", vec![Block::Table(table)]).lead(LEAD));
    let volumes = volumes(page);
    let lag = lag.map(|mut section| {
        section.blocks.extend(volumes.map(Block::Table));
        section
    });
    let promotions: Vec<Vec<Cell>> = page.arms.iter().enumerate().flat_map(promoted).collect();
    let columns =
        ["Arm", "Trial", "Applied after", "Writes after", "Acknowledged", "Lost", "Clients that lost some"];
    let table = Table {
        caption: "Promotion of a replica".into(),
        columns: columns.map(str::to_owned).into(),
        rows: promotions,
        ..Table::default()
    };
    let promotion = (!table.rows.is_empty())
        .then(|| Section::new("Promotion", vec![Block::Table(table)]).lead(PROMOTION));
    lag.into_iter().chain(promotion).collect()
}

/// The volumes of the first replica of each arm: all replicas of an arm are alike. None where they were not recorded.
fn volumes(page: &PageContext) -> Option<Table> {
    let arms = page.arms.iter().enumerate();
    let arms = arms.filter_map(|(group, view)| Some((group, view, &view.summary?.replica_volumes)));
    let rows = arms.flat_map(|(group, view, volumes)| {
        volumes.iter().map(move |(role, volume)| {
            let latency = |us: f64| Cell::value(text::latency(us), us, "");
            vec![
                Cell { text: view.name.clone(), group: Some(group), ..Cell::default() },
                Cell::from(role.holds()),
                Cell::value(text::short(volume.consumed_iops), volume.consumed_iops, ""),
                latency(volume.read_us),
                latency(volume.write_us),
                Cell::value(text::short(volume.queue), volume.queue, ""),
                Cell::value(text::percent(volume.limited), volume.limited, "of the time"),
            ]
        })
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let columns = ["Arm", "Volume", "IOPS", "Read", "Write", "Queue", "Held back by a limit"];
    (!rows.is_empty()).then(|| Table {
        caption: "Volumes of a replica".into(),
        columns: columns.map(str::to_owned).into(),
        rows,
        ..Table::default()
    })
}

/// A row for each trial that ended with a promotion.
fn promoted((group, view): (usize, &ArmView)) -> Vec<Vec<Cell>> {
    let of = |trial: &&Trial| trial.promotion.map(|promotion| (trial.repeat, promotion));
    let row = |(repeat, promotion): (u32, Promotion)| {
        let time = |s: f64| Cell::value(text::latency(s * 1e6), s, "");
        let count = |count: u64| Cell::value(text::whole(count as f64), count as f64, "");
        vec![
            Cell { text: view.name.clone(), group: Some(group), ..Cell::default() },
            count(u64::from(repeat) + 1),
            time(promotion.applied_s),
            time(promotion.took_s),
            count(promotion.acknowledged),
            count(promotion.lost),
            count(promotion.clients.into()),
        ]
    };
    view.trials.iter().filter_map(of).map(row).collect()
}

fn row(group: usize, view: &ArmView, lag: &LagFigures) -> Vec<Cell> {
    let time = |across: Across| figure(across, |s| text::latency(s * 1e6));
    let count =
        |across: Option<Across>| across.map_or_else(|| Cell::from("-"), |one| figure(one, text::short));
    vec![
        Cell { text: view.name.clone(), group: Some(group), ..Cell::default() },
        time(lag.mean_s),
        time(lag.p95_s),
        time(lag.end_s),
        count(lag.transactions),
        count(lag.end_transactions),
    ]
}

fn figure(across: Across, text: impl Fn(f64) -> String) -> Cell {
    let range = (across.min < across.max).then(|| format!("{} to {}", text(across.min), text(across.max)));
    Cell::value(text(across.median), across.median, range.unwrap_or_default())
}
