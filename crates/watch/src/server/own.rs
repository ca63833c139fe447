//! `ebbtide_server_*`: what follows from several readings, and what the sampling costs.

use ebbtide_mysql::sampling::Reading;

use super::families::{Families, Labels};
use super::lag::{ReplicaLag, lags};
use super::names as n;
use super::trend::ServerTrend;

/// Adds what is known of a server that answers.
pub(super) fn add_server(families: &mut Families, reading: &Reading, trend: &ServerTrend) {
    let (rates, redo) = (trend.rates(), trend.redo());
    for (family, value) in [
        (&n::LOG_WAITS, rates.and_then(|rates| rates.log_waits)),
        (&n::FREE_PAGE_WAITS, rates.and_then(|rates| rates.wait_free)),
        (&n::REDO_CAPACITY, redo.capacity_bytes),
        (&n::REDO_USED, redo.used_bytes),
        (&n::REDO_SYNC_FLUSH, redo.sync_flush_bytes),
        (&n::REDO_WRITTEN, redo.written_per_s),
        (&n::REDO_GROWTH, redo.growth_per_s),
        (&n::REDO_SECONDS, redo.seconds_to_sync_flush()),
        (&n::REDO_HEADROOM, redo.headroom_seconds()),
    ] {
        if let Some(value) = value {
            families.add_own(family, Labels::new(), value);
        }
    }
    for lag in lags(reading) {
        add_lag(families, &lag);
    }
    for missing in &reading.missing {
        families.add_own(&n::MISSING, vec![("subject", missing.subject.clone())], 1.0);
    }
}

fn add_lag(families: &mut Families, lag: &ReplicaLag) {
    let channel = || ("channel", lag.channel.clone());
    if let Some(seconds) = lag.seconds {
        families.add_own(&n::REPLICA_LAG, vec![channel()], seconds);
    }
    let evidence = ("evidence", lag.evidence.name().to_owned());
    families.add_own(&n::REPLICA_EVIDENCE, vec![channel(), evidence], 1.0);
    for (thread, runs) in [("receiver", lag.receiving), ("applier", lag.applying)] {
        let labels = vec![channel(), ("thread", thread.to_owned())];
        families.add_own(&n::REPLICA_THREAD, labels, f64::from(u8::from(runs)));
    }
    if let Some(transactions) = lag.transactions {
        families.add_own(&n::REPLICA_TRANSACTIONS, vec![channel()], transactions as f64);
    }
}

/// Adds what the sampling has cost, whether the server answers or not.
pub(super) fn add_cost(families: &mut Families, reading: &Reading) {
    let cost = &reading.cost;
    for (family, value) in [
        (&n::RESTARTS, reading.run as f64),
        (&n::SAMPLES, cost.samples as f64),
        (&n::SKIPPED, cost.skipped as f64),
        (&n::STATEMENTS, cost.statements as f64),
        (&n::STATEMENT_TIME, cost.seconds),
        (&n::BYTES, cost.bytes as f64),
        (&n::CONNECTIONS, cost.connections as f64),
    ] {
        families.add_own(family, Labels::new(), value);
    }
}
