//! The figures of a group of trials.

use std::collections::{BTreeMap, BTreeSet};

use super::group::{Figure, Group, Member, alone};
use super::limiter::limiter;
use super::model::{
    Across, Figures, HostFigures, Measured, PerTransaction, ServerFigures, TrialFigures, VolumeFigures,
};
use crate::record::{
    DesignArm, HostSecond, LimitShares, Role, Second, ServerSecond, TrialRecord, VolumeSecond,
};
use crate::stats::{Interval, Prior, mean_interval, series};

/// Sums up a group; none without trials.
pub(super) fn figures(group: &Group<'_>, prior: &Prior, offered: Option<f64>, cpus: u32) -> Option<Figures> {
    if group.members.is_empty() {
        return None;
    }
    let seconds: Vec<&Second> =
        group.members.iter().flat_map(|member| member.seconds.iter().copied()).collect();
    let across = |of: fn(&Member<'_>) -> f64| Across::of(group.members.iter().map(of).collect());
    let mut figures = Figures {
        trials: u32::try_from(group.members.len()).unwrap_or(u32::MAX),
        seconds: seconds.len() as f64,
        tps: measured(group, |second| second.load.tps, mean_interval(&group.samples(Figure::Tps), prior)),
        qps: measured(group, |second| second.load.qps, None),
        p50_us: across(|member| member.percentiles.p50),
        p95_us: across(|member| member.percentiles.p95),
        p99_us: across(|member| member.percentiles.p99),
        p99_9_us: across(|member| member.percentiles.p99_9),
        errors: seconds.iter().map(|second| second.load.errors).sum(),
        per_transaction: per_transaction(&seconds),
        volumes: volumes(group, &seconds),
        server: server(&seconds),
        host: host(&seconds),
        ..Figures::default()
    };
    // Statements are a multiple of transactions: their interval is the same but for the factor.
    if let (Some(interval), true) = (figures.tps.interval, figures.tps.mean > 0.0) {
        let factor = figures.qps.mean / figures.tps.mean;
        let Interval { mid, low, high } = interval;
        figures.qps.interval = Some(Interval { mid: mid * factor, low: low * factor, high: high * factor });
    }
    figures.limiter = limiter(&figures, offered, cpus);
    Some(figures)
}

/// The figures of a trial, as they go into those of its arm; none without seconds, or where one of them has a figure
/// that is no number.
#[must_use]
pub fn trial_figures(trial: &TrialRecord<'_>, arm: &DesignArm) -> Option<TrialFigures> {
    let is_number = |second: &Second| second.load.tps.is_finite() && second.load.p95_us.is_finite();
    if !trial.seconds.iter().all(is_number) {
        return None;
    }
    let member = alone(trial, arm)?;
    let mean = |of: fn(&Second) -> f64| mean_of(&member.seconds, of);
    Some(TrialFigures {
        tps: mean(|second| second.load.tps),
        qps: mean(|second| second.load.qps),
        p50_us: member.percentiles.p50,
        p95_us: member.percentiles.p95,
        p99_us: member.percentiles.p99,
        p99_9_us: member.percentiles.p99_9,
    })
}

fn measured(group: &Group<'_>, of: fn(&Second) -> f64, interval: Option<Interval>) -> Measured {
    let trials: Vec<f64> = group.members.iter().map(|member| mean_of(&member.seconds, of)).collect();
    let plain = series::mean(&trials);
    let several = trials.len() > 1 && plain > 0.0;
    Measured {
        mean: interval.map_or(plain, |interval| interval.mid),
        interval,
        spread: several.then(|| series::variance(&trials).sqrt() / plain),
        min: trials.iter().copied().fold(f64::INFINITY, f64::min),
        max: trials.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

impl Across {
    pub(super) fn of(trials: Vec<f64>) -> Self {
        Self {
            median: series::median(&trials),
            min: trials.iter().copied().fold(f64::INFINITY, f64::min),
            max: trials.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

fn mean_of(seconds: &[&Second], of: impl Fn(&Second) -> f64) -> f64 {
    if seconds.is_empty() {
        0.0
    } else {
        seconds.iter().map(|second| of(second)).sum::<f64>() / seconds.len() as f64
    }
}

/// Mean over the seconds that have a value; None where none has.
fn mean_reported(seconds: &[&Second], of: impl Fn(&ServerSecond) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = seconds.iter().filter_map(|second| second.server.as_ref().and_then(&of)).collect();
    (!values.is_empty()).then(|| series::mean(&values))
}

fn all_volumes(second: &Second, of: fn(&VolumeSecond) -> f64) -> f64 {
    second.volumes.values().map(of).sum()
}

fn per_transaction(seconds: &[&Second]) -> Option<PerTransaction> {
    let tps = mean_of(seconds, |second| second.load.tps);
    if tps <= 0.0 {
        return None;
    }
    let volume = |of: fn(&VolumeSecond) -> f64| mean_of(seconds, |second| all_volumes(second, of)) / tps;
    let host = |of: fn(&HostSecond) -> f64| mean_of(seconds, |second| of(&second.host)) / tps * 1e6;
    let server = |of: fn(&ServerSecond) -> Option<f64>| mean_reported(seconds, of).map(|rate| rate / tps);
    let (reads, writes) = (volume(|v| v.read_iops), volume(|v| v.write_iops));
    Some(PerTransaction {
        ios: reads + writes,
        reads,
        writes,
        consumed_ios: volume(|v| v.consumed_iops),
        read_kib: 1024.0 * volume(|v| v.read_mib),
        written_kib: 1024.0 * volume(|v| v.write_mib),
        flushes: volume(|v| v.flushes),
        redo_bytes: server(|s| s.redo_bytes),
        binlog_bytes: server(|s| s.binlog_bytes),
        page_reads: server(|s| s.page_reads),
        page_writes: server(|s| s.page_writes),
        doublewrite_pages: server(|s| s.doublewrite_pages),
        row_lock_waits: server(|s| s.row_lock_waits),
        server_cpu_us: host(|h| h.server_cpus),
        load_cpu_us: host(|h| h.load_cpus),
    })
}

fn volumes(group: &Group<'_>, seconds: &[&Second]) -> BTreeMap<Role, VolumeFigures> {
    let roles: BTreeSet<Role> = seconds.iter().flat_map(|second| second.volumes.keys().copied()).collect();
    let of_role = |role: Role| volume(group, seconds, &|second| second.volumes.get(&role).copied());
    roles.into_iter().map(|role| (role, of_role(role))).collect()
}

/// The volumes of the first replica; empty without replicas.
pub(super) fn replica_volumes(group: &Group<'_>) -> BTreeMap<Role, VolumeFigures> {
    let seconds: Vec<&Second> =
        group.members.iter().flat_map(|member| member.seconds.iter().copied()).collect();
    let firsts = seconds.iter().filter_map(|second| second.replica_volumes.first());
    let roles: BTreeSet<Role> = firsts.flat_map(|volumes| volumes.keys().copied()).collect();
    let of_role =
        |role: Role| volume(group, &seconds, &|second| second.replica_volumes.first()?.get(&role).copied());
    roles.into_iter().map(|role| (role, of_role(role))).collect()
}

/// The figures of the volume that `of` gives of a second; without any they are 0.
fn volume(
    group: &Group<'_>,
    seconds: &[&Second],
    of: &dyn Fn(&Second) -> Option<VolumeSecond>,
) -> VolumeFigures {
    let at = |second: &Second| of(second).unwrap_or_default();
    let mean = |of: fn(&VolumeSecond) -> f64| mean_of(seconds, |second| of(&at(second)));
    // A mean latency is that of the I/Os, so that seconds count by how many they had.
    let latency = |us: fn(&VolumeSecond) -> f64, iops: fn(&VolumeSecond) -> f64| {
        let count = mean(iops);
        if count > 0.0 { mean_of(seconds, |second| us(&at(second)) * iops(&at(second))) / count } else { 0.0 }
    };
    let credits = |ends: Vec<&Second>| {
        let shares: Vec<f64> = ends.into_iter().filter_map(|second| at(second).credits).collect();
        (!shares.is_empty()).then(|| series::mean(&shares))
    };
    let firsts = group.members.iter().filter_map(|member| member.seconds.first().copied()).collect();
    let lasts = group.members.iter().filter_map(|member| member.seconds.last().copied()).collect();
    VolumeFigures {
        read_iops: mean(|v| v.read_iops),
        write_iops: mean(|v| v.write_iops),
        consumed_iops: mean(|v| v.consumed_iops),
        read_mib: mean(|v| v.read_mib),
        write_mib: mean(|v| v.write_mib),
        read_us: latency(|v| v.read_us, |v| v.read_iops),
        write_us: latency(|v| v.write_us, |v| v.write_iops),
        queue: mean(|v| v.queue),
        credits_first: credits(firsts),
        credits_last: credits(lasts),
        limited: mean(|v| v.limited),
        limits: LimitShares {
            volume_iops: mean(|v| v.limits.volume_iops),
            volume_throughput: mean(|v| v.limits.volume_throughput),
            instance_iops: mean(|v| v.limits.instance_iops),
            instance_throughput: mean(|v| v.limits.instance_throughput),
        },
    }
}

fn server(seconds: &[&Second]) -> Option<ServerFigures> {
    seconds.iter().any(|second| second.server.is_some()).then_some(())?;
    let share = |part: fn(&ServerSecond) -> Option<f64>, all: fn(&ServerSecond) -> Option<f64>| {
        let all = mean_reported(seconds, all).filter(|all| *all > 0.0)?;
        Some(mean_reported(seconds, part)? / all)
    };
    Some(ServerFigures {
        checkpoint_age: mean_reported(seconds, |s| s.checkpoint_age),
        checkpoint_share: share(|s| s.checkpoint_age, |s| s.checkpoint_age_max),
        dirty_share: share(|s| s.dirty_pages, |s| s.data_pages),
        miss_share: share(|s| s.page_reads, |s| s.page_requests),
        lru_share: share(|s| s.lru_flushed, |s| Some(s.lru_flushed? + s.list_flushed?)),
        sync_flushed: mean_reported(seconds, |s| s.sync_flushed),
        wait_free: mean_reported(seconds, |s| s.wait_free),
        log_waits: mean_reported(seconds, |s| s.log_waits),
        row_lock_waits: mean_reported(seconds, |s| s.row_lock_waits),
        threads_running: mean_reported(seconds, |s| s.threads_running),
        doublewrite_pages: mean_reported(seconds, |s| s.doublewrite_pages),
        doublewrite_batches: mean_reported(seconds, |s| s.doublewrite_batches),
        doublewrite_wait: mean_reported(seconds, |s| s.doublewrite_wait),
        doublewrite_mutex_wait: mean_reported(seconds, |s| s.doublewrite_mutex_wait),
        redo_wait: mean_reported(seconds, |s| s.redo_wait),
        data_wait: mean_reported(seconds, |s| s.data_wait),
        binlog_wait: mean_reported(seconds, |s| s.binlog_wait),
    })
}

/// Figures of the machine over any seconds.
pub(super) fn host(seconds: &[&Second]) -> HostFigures {
    let mean = |of: fn(&HostSecond) -> f64| mean_of(seconds, |second| of(&second.host));
    let other = |h: &HostSecond| (h.busy_cpus - h.server_cpus - h.load_cpus - h.sampler_cpus).max(0.0);
    HostFigures {
        server_cpus: mean(|h| h.server_cpus),
        load_cpus: mean(|h| h.load_cpus),
        busy_cpus: mean(|h| h.busy_cpus),
        other_cpus: mean_of(seconds, |second| other(&second.host)),
        steal_cpus: mean(|h| h.steal_cpus),
        memory_bytes: mean(|h| h.memory_bytes),
        pacing_p99_us: seconds.iter().map(|second| second.host.pacing_p99_us).fold(0.0, f64::max),
        sampler_cpus: mean(|h| h.sampler_cpus),
    }
}
