//! What held the throughput back, from what was recorded.

use super::model::{Bottleneck, Figures, Limiter};
use crate::record::Role;

/// A limit or the processors held the throughput back from this share of the time on.
const HELD: f64 = 0.5;

/// Processors this busy are busy: what is left goes in parts of a second that no second shows.
const BUSY: f64 = 0.9;

/// A checkpoint age from this share of the one at which writers wait on makes them wait.
pub(super) const FULL: f64 = 0.9;

/// Row lock waits a transaction from which on locks hold the throughput back.
const LOCK_WAITS: f64 = 0.5;

/// Mean queue of a volume from which on its latency holds the throughput back: nearly always an I/O is
/// waited for.
const QUEUE: f64 = 0.7;

/// Of the rate asked for, the share that counts as all of it.
const ALL: f64 = 0.97;

pub(super) fn limiter(figures: &Figures, offered: Option<f64>, cpus: u32) -> Limiter {
    let limit = volume_limit(figures);
    let of_all = |busy: f64| if cpus == 0 { 0.0 } else { (busy / f64::from(cpus)).min(1.0) };
    let host = &figures.host;
    let busy = of_all(host.busy_cpus + host.steal_cpus);
    // What other programs take leaves enough to a server that needs little.
    let own = of_all(host.server_cpus + host.load_cpus + host.steal_cpus);
    if limit.share >= HELD && (limit.share >= busy || own < HELD) {
        return limit;
    }
    if busy >= BUSY {
        return Limiter { what: Bottleneck::Processors, volume: None, share: busy };
    }
    if limit.share >= HELD {
        return limit;
    }
    if let Some(offered) = offered
        && figures.tps.mean >= ALL * offered
    {
        return Limiter { what: Bottleneck::OfferedRate, volume: None, share: 1.0 };
    }
    let full = figures.server.and_then(|server| server.checkpoint_share).unwrap_or(0.0);
    if full >= FULL {
        return Limiter { what: Bottleneck::Checkpoint, volume: None, share: full.min(1.0) };
    }
    let waits = figures.per_transaction.and_then(|cost| cost.row_lock_waits).unwrap_or(0.0);
    if waits >= LOCK_WAITS {
        return Limiter { what: Bottleneck::RowLocks, volume: None, share: waits.min(1.0) };
    }
    let longest = figures.volumes.iter().max_by(|a, b| a.1.queue.total_cmp(&b.1.queue));
    match longest {
        Some((role, volume)) if volume.queue >= QUEUE => {
            Limiter { what: Bottleneck::VolumeLatency, volume: Some(*role), share: volume.queue.min(1.0) }
        }
        _ => Limiter::default(),
    }
}

/// The limit that was waited for longest.
fn volume_limit(figures: &Figures) -> Limiter {
    let limits = figures.volumes.iter().flat_map(|(role, volume)| {
        let shares = volume.limits;
        [
            (Bottleneck::VolumeIops, shares.volume_iops),
            (Bottleneck::VolumeThroughput, shares.volume_throughput),
            (Bottleneck::InstanceIops, shares.instance_iops),
            (Bottleneck::InstanceThroughput, shares.instance_throughput),
        ]
        .map(|(what, share)| limiter_of(what, *role, share))
    });
    limits.max_by(|a, b| a.share.total_cmp(&b.share)).unwrap_or_default()
}

fn limiter_of(what: Bottleneck, role: Role, share: f64) -> Limiter {
    Limiter { what, volume: Some(role), share }
}
