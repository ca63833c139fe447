//! The figures of TPC-C: its throughput in New-Orders, and response times of each kind of transaction.

use super::group::Parted;
use super::model::{Across, Figures, Measured, TpccFigures, TransactionFigures};
use crate::record::{TpccRecord, TransactionRecord};
use crate::stats::{Interval, series};

/// The transaction whose throughput is TPC-C's figure.
const NEW_ORDER: &str = "new_order";

/// Sums up the trials that count; none where their load was another.
pub(super) fn figures(arm: &Parted<'_>, whole: Option<&Figures>) -> Option<TpccFigures> {
    let trials: Vec<&TpccRecord<'_>> =
        arm.looked.iter().filter_map(|looked| looked.trial.tpcc.as_ref()).collect();
    let first = trials.first()?;
    let shares = trials.iter().map(|trial| share(trial, NEW_ORDER));
    let tpmc = times(whole?.tps, 60.0 * series::mean(&shares.collect::<Vec<_>>()));
    let statements: Vec<f64> = trials.iter().map(|trial| trial.statements_per_transaction).collect();
    Some(TpccFigures {
        ceiling_pct: 100.0 * tpmc.mean / first.ceiling_tpmc,
        tpmc,
        statements_per_transaction: series::mean(&statements),
        transactions: first.transactions.iter().map(|of| transaction(of.transaction, &trials)).collect(),
    })
}

fn transaction(name: &str, trials: &[&TpccRecord<'_>]) -> TransactionFigures {
    let across = |of: fn(&TransactionRecord<'_>) -> f64| {
        let all = trials.iter().flat_map(|trial| &trial.transactions);
        Across::of(all.filter(|one| one.transaction == name && one.count > 0).map(of).collect())
    };
    let counted = trials.iter().flat_map(|trial| &trial.transactions);
    let count: u64 = counted.filter(|one| one.transaction == name).map(|one| one.count).sum();
    let shares: Vec<f64> = trials.iter().map(|trial| 100.0 * share(trial, name)).collect();
    let none = Across::default();
    TransactionFigures {
        transaction: name.to_owned(),
        count,
        share_pct: series::mean(&shares),
        p50_us: if count > 0 { across(|one| one.p50_us) } else { none },
        p90_us: if count > 0 { across(|one| one.p90_us) } else { none },
        limit_s: trials
            .iter()
            .flat_map(|trial| &trial.transactions)
            .find(|one| one.transaction == name)
            .map_or(0.0, |one| one.limit_s),
        p95_us: if count > 0 { across(|one| one.p95_us) } else { none },
        p99_us: if count > 0 { across(|one| one.p99_us) } else { none },
        max_us: if count > 0 { across(|one| one.max_us) } else { none },
    }
}

/// The share of a kind of transaction among all of a trial.
fn share(trial: &TpccRecord<'_>, name: &str) -> f64 {
    let all: u64 = trial.transactions.iter().map(|one| one.count).sum();
    let own = trial.transactions.iter().find(|one| one.transaction == name).map_or(0, |one| one.count);
    own as f64 / all.max(1) as f64
}

/// A figure times a factor. Its spread is a share, and stays.
fn times(figure: Measured, factor: f64) -> Measured {
    let interval = figure.interval.map(|Interval { mid, low, high }| Interval {
        mid: mid * factor,
        low: low * factor,
        high: high * factor,
    });
    Measured {
        mean: figure.mean * factor,
        interval,
        spread: figure.spread,
        min: figure.min * factor,
        max: figure.max * factor,
    }
}
