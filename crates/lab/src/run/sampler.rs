//! The sampler: at the end of each second of the load it looks at the volumes, the server, and the
//! machine, and makes a [`Second`] of what happened in between.
//!
//! Volumes and processes are read where the load reports its second, which takes a fraction of a
//! millisecond. The server is asked on a thread of its own, since a server that stalls must delay
//! nobody else's sample; a second that it did not answer in time for has no server figures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ebbtide_device::engine::LiveVolume;
use ebbtide_load::Sample;
use ebbtide_mysql::Server;
use ebbtide_mysql::status::{Counters, Rates, StatusSampler};
use ebbtide_volume::Stats;

use super::lag::LagWatch;
use super::proc::{self, MachineTime};
use crate::experiment::Role;
use crate::record::{HostSecond, LimitShares, LoadSecond, Second, VolumeSecond};

/// Two looks that are less than this share of a sample's length apart show no rate: counters of
/// processor time have steps of 10 ms.
const SHORTEST_SPAN: f64 = 0.5;

/// Everything that is looked at, at one moment.
#[derive(Debug)]
struct Reading {
    at: Instant,
    volumes: Vec<Stats>,
    /// Of each replica, in the order of its volumes.
    replica_volumes: Vec<Vec<Stats>>,
    server_cpu: Duration,
    /// Processor time of the servers that follow it, s.
    replicas_s: f64,
    machine: MachineTime,
    /// Processor time of the load's threads so far, s.
    load_s: f64,
    /// Processor time of this process's threads so far, s.
    own_s: f64,
    /// Processor time of sampling so far, s.
    cost_s: f64,
}

impl Reading {
    fn empty(at: Instant) -> Self {
        Self {
            at,
            volumes: Vec::new(),
            replica_volumes: Vec::new(),
            server_cpu: Duration::ZERO,
            replicas_s: 0.0,
            machine: MachineTime::default(),
            load_s: 0.0,
            own_s: 0.0,
            cost_s: 0.0,
        }
    }
}

/// What happened between two moments, as rates.
#[derive(Debug, Default)]
struct ReadingRates {
    volumes: Vec<VolumeSecond>,
    replica_volumes: Vec<Vec<VolumeSecond>>,
    host: HostSecond,
    /// Processors that neither the servers nor this process kept busy.
    foreign_cpus: f64,
}

impl ReadingRates {
    fn between(before: &Reading, now: &Reading) -> Self {
        let span_s = now.at.duration_since(before.at).as_secs_f64().max(1e-6);
        let host = HostSecond {
            server_cpus: now.server_cpu.saturating_sub(before.server_cpu).as_secs_f64() / span_s,
            load_cpus: (now.load_s - before.load_s) / span_s,
            busy_cpus: (now.machine.busy_s - before.machine.busy_s) / span_s,
            steal_cpus: (now.machine.steal_s - before.machine.steal_s) / span_s,
            sampler_cpus: (now.cost_s - before.cost_s) / span_s,
            ..HostSecond::default()
        };
        let own = (now.own_s - before.own_s + now.replicas_s - before.replicas_s) / span_s;
        let volumes = |before: &[Stats], now: &[Stats]| -> Vec<VolumeSecond> {
            before.iter().zip(now).map(|(a, b)| volume_second(a, b)).collect()
        };
        let replicas = before.replica_volumes.iter().zip(&now.replica_volumes);
        Self {
            volumes: volumes(&before.volumes, &now.volumes),
            replica_volumes: replicas.map(|(a, b)| volumes(a, b)).collect(),
            foreign_cpus: (host.busy_cpus - host.server_cpus - own).max(0.0),
            host,
        }
    }
}

/// The last look, and what it showed.
#[derive(Debug)]
struct LastReading {
    before: Reading,
    seen: ReadingRates,
}

impl LastReading {
    /// Whether enough time has passed since the last look for another one to show a rate.
    ///
    /// After this machine stalled the load reports all that it missed at once: what the first of
    /// these seconds shows is the mean over all of them, and holds for the others too.
    fn is_due(&self, at: Instant, length_s: f64) -> bool {
        at.duration_since(self.before.at).as_secs_f64() >= SHORTEST_SPAN * length_s
    }

    fn reach(&mut self, now: Reading) {
        self.seen = ReadingRates::between(&self.before, &now);
        self.before = now;
    }
}

/// The volumes of a server.
pub(super) type Watched<'a> = Vec<(Role, &'a LiveVolume)>;

/// Makes seconds of moments.
#[derive(Debug)]
pub(super) struct SecondSampler<'a> {
    volumes: Watched<'a>,
    /// Of each replica.
    replica_volumes: Vec<Watched<'a>>,
    server: &'a Server,
    replicas: &'a [Server],
    lag: &'a LagWatch,
    /// Threads of this process that were there before the load.
    others: BTreeSet<u32>,
    /// This process's threads, with the last time seen of each.
    threads: BTreeMap<u32, f64>,
    /// Processor time of everybody else in each measured second, processors.
    foreign: Vec<f64>,
    course: LastReading,
    /// What sampling took on the thread on which the load reports its seconds, s.
    cost_here_s: f64,
    asked: &'a ServerPoll,
    ask: mpsc::Sender<usize>,
    ticks: usize,
}

impl<'a> SecondSampler<'a> {
    /// Begins to watch, just before the load starts.
    pub(super) fn new(
        (volumes, replica_volumes): (Watched<'a>, Vec<Watched<'a>>),
        server: &'a Server,
        (replicas, lag): (&'a [Server], &'a LagWatch),
        asked: &'a ServerPoll,
        ask: mpsc::Sender<usize>,
    ) -> Self {
        let others = proc::thread_times_s().into_keys().collect();
        let course = LastReading { before: Reading::empty(Instant::now()), seen: ReadingRates::default() };
        let mut watch = Self {
            volumes,
            replica_volumes,
            server,
            replicas,
            lag,
            others,
            threads: BTreeMap::new(),
            foreign: Vec::new(),
            course,
            cost_here_s: 0.0,
            asked,
            ask,
            ticks: 0,
        };
        watch.course.before = watch.look();
        watch
    }

    /// The second that has just ended. The server's figures follow from [`Answers::rates`].
    pub(super) fn second(&mut self, sample: &Sample) -> Second {
        let cpu = proc::thread_time_s();
        if self.course.is_due(Instant::now(), sample.length_s) {
            // The thread that asks may be gone with its server.
            let _ = self.ask.send(self.ticks);
            let now = self.look();
            self.course.reach(now);
        }
        self.ticks += 1;
        let seen = &self.course.seen;
        if !sample.warmup {
            self.foreign.push(seen.foreign_cpus);
        }
        let by_role = |watched: &Watched<'_>, seen: &[VolumeSecond]| {
            watched.iter().map(|(role, _)| *role).zip(seen.iter().copied()).collect()
        };
        let replicas = self.replica_volumes.iter().zip(&seen.replica_volumes);
        let second = Second {
            t_s: sample.t_s,
            load: load_second(sample),
            volumes: by_role(&self.volumes, &seen.volumes),
            replica_volumes: replicas.map(|(watched, seen)| by_role(watched, seen)).collect(),
            server: None,
            host: HostSecond {
                memory_bytes: self.server.memory().bytes as f64,
                pacing_p99_us: self.pacing_p99_us(),
                ..seen.host
            },
            replica: self.lag.latest(),
        };
        self.cost_here_s += proc::thread_time_s() - cpu;
        second
    }

    /// Processors that were kept busy by neither the servers nor this process while it was measured, mean:
    /// other programs, and the kernel's own threads.
    pub(super) fn foreign_cpus(&self) -> f64 {
        self.foreign.iter().sum::<f64>() / self.foreign.len().max(1) as f64
    }

    /// How many seconds it has made.
    pub(super) fn ticks(&self) -> usize {
        self.ticks
    }

    fn look(&mut self) -> Reading {
        let stats = |watched: &Watched<'_>| watched.iter().map(|(_, live)| live.stats()).collect();
        self.threads.extend(proc::thread_times_s());
        let load = self.threads.iter().filter(|(thread, _)| !self.others.contains(thread));
        let load_s = load.map(|(_, time)| time).sum();
        Reading {
            at: Instant::now(),
            volumes: stats(&self.volumes),
            replica_volumes: self.replica_volumes.iter().map(stats).collect(),
            server_cpu: self.server.cpu_time(),
            replicas_s: self.replicas.iter().map(|replica| replica.cpu_time().as_secs_f64()).sum(),
            machine: proc::machine_time().unwrap_or_default(),
            load_s,
            own_s: self.threads.values().sum(),
            cost_s: self.cost_here_s + self.asked.cost_s(),
        }
    }

    fn pacing_p99_us(&self) -> f64 {
        let late = self.volumes.iter().map(|(_, live)| live.pacing().p99_ns);
        late.max().unwrap_or(0) as f64 / 1e3
    }
}

/// What the thread that asks the server reports to the others.
#[derive(Debug, Default)]
pub(super) struct ServerPoll {
    cost_ns: AtomicU64,
    /// The server is about to be killed: no answer is missed from then on.
    over: AtomicBool,
}

impl ServerPoll {
    fn cost_s(&self) -> f64 {
        self.cost_ns.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// Nobody is asked any more.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Asks the server at each tick until there are no more, or the server is gone. Ticks that came
    /// while it was slow to answer are passed over.
    pub(super) fn run(&self, mut sampler: StatusSampler, ticks: &mpsc::Receiver<usize>) -> Answers {
        let mut answers = Answers { first: sampler.sample().ok(), ..Answers::default() };
        while let Ok(mut tick) = ticks.recv() {
            while let Ok(later) = ticks.try_recv() {
                tick = later;
            }
            match sampler.sample() {
                Ok(counters) => answers.by_tick.push((tick, counters)),
                Err(_) if self.over.load(Ordering::Acquire) => break,
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
                    answers.lost = Some(format!("{error}{}", cause.unwrap_or_default()));
                    break;
                }
            }
            let cost = Duration::from_secs_f64(proc::thread_time_s().max(0.0));
            self.cost_ns.store(u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        answers
    }
}

/// What the server answered.
#[derive(Debug, Default)]
pub(super) struct Answers {
    first: Option<Counters>,
    by_tick: Vec<(usize, Counters)>,
    /// Why it answered no longer.
    pub(super) lost: Option<String>,
}

impl Answers {
    /// The server's rates up to each tick that it answered.
    pub(super) fn rates(&self) -> BTreeMap<usize, Rates> {
        let spans = spans(self.first.as_ref(), &self.by_tick);
        spans.map(|(tick, before, after)| (tick, Counters::between(before, after))).collect()
    }
}

/// Each tick with the answer before it and its own.
fn spans<'a, T>(
    first: Option<&'a T>,
    by_tick: &'a [(usize, T)],
) -> impl Iterator<Item = (usize, &'a T, &'a T)> {
    let mut before = first;
    by_tick.iter().filter_map(move |(tick, after)| {
        let span = before.map(|before| (*tick, before, after));
        before = Some(after);
        span
    })
}

fn load_second(sample: &Sample) -> LoadSecond {
    let length_s = sample.length_s.max(1e-6);
    LoadSecond {
        tps: sample.totals.events as f64 / length_s,
        qps: sample.totals.queries() as f64 / length_s,
        p50_us: sample.response.p50_us,
        p95_us: sample.response.p95_us,
        p99_us: sample.response.p99_us,
        p99_9_us: sample.response.p99_9_us,
        max_us: sample.response.max_us,
        errors: sample.totals.errors,
    }
}

/// A volume between two readings of its counters.
pub fn volume_second(before: &Stats, after: &Stats) -> VolumeSecond {
    let happened = after.since(before);
    let rate = |count: u64| happened.per_second(count);
    let mib = |bytes: u64| rate(bytes) / ebbtide_volume::MIB as f64;
    let mean_us = |done: &ebbtide_volume::OpStats| {
        if done.ops == 0 { 0.0 } else { done.time.as_secs_f64() * 1e6 / done.ops as f64 }
    };
    let share = |waited: ebbtide_volume::Nanos| happened.share(waited);
    let limits = LimitShares {
        volume_iops: share(happened.volume_iops_exceeded),
        volume_throughput: share(happened.volume_throughput_exceeded),
        instance_iops: share(happened.instance_iops_exceeded),
        instance_throughput: share(happened.instance_throughput_exceeded),
    };
    let all =
        [limits.volume_iops, limits.volume_throughput, limits.instance_iops, limits.instance_throughput];
    VolumeSecond {
        read_iops: rate(happened.read.ops),
        write_iops: rate(happened.write.ops),
        consumed_iops: rate(happened.consumed_ops),
        read_mib: mib(happened.read.bytes),
        write_mib: mib(happened.write.bytes),
        read_us: mean_us(&happened.read),
        write_us: mean_us(&happened.write),
        queue: happened.mean_queue(),
        flushes: rate(happened.flush_ops),
        credits: happened.credit_share,
        limited: all.into_iter().fold(0.0, f64::max),
        limits,
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::{Nanos, OpStats};

    use super::*;

    #[test]
    fn a_volumes_second_is_the_difference_of_its_counters() {
        let ops = |ops, bytes, ms| OpStats { ops, bytes, time: Nanos::from_ms(ms) };
        let before = Stats { at: Nanos::from_secs(10), read: ops(100, 0, 50), ..Stats::default() };
        let after = Stats {
            at: Nanos::from_secs(12),
            read: ops(300, 8 << 20, 150),
            write: ops(10, 4 << 20, 40),
            consumed_ops: 210,
            queue_time: Nanos::from_secs(3),
            volume_iops_exceeded: Nanos::from_ms(500),
            instance_throughput_exceeded: Nanos::from_secs(5),
            credit_share: Some(0.25),
            ..Stats::default()
        };
        let second = volume_second(&before, &after);
        assert!((second.read_iops - 100.0).abs() < 1e-9 && (second.write_iops - 5.0).abs() < 1e-9);
        assert!((second.read_us - 500.0).abs() < 1e-9 && (second.write_us - 4_000.0).abs() < 1e-9);
        assert!((second.read_mib - 4.0).abs() < 1e-9 && (second.queue - 1.5).abs() < 1e-9);
        assert!((second.limits.volume_iops - 0.25).abs() < 1e-9);
        assert!((second.limited - 1.0).abs() < 1e-9, "a share is never more than all of it");
        assert_eq!(second.credits, Some(0.25));
    }

    /// A machine on which the server keeps one processor busy, and a volume 100 reads a second.
    fn moment(start: Instant, ms: u64) -> Reading {
        // Processor time is reported in steps of 10 ms.
        let busy = Duration::from_millis(ms.next_multiple_of(10));
        let read = OpStats { ops: ms / 10, ..OpStats::default() };
        Reading {
            server_cpu: busy,
            machine: MachineTime { busy_s: busy.as_secs_f64(), ..MachineTime::default() },
            volumes: vec![Stats { at: Nanos::from_ms(ms), read, ..Stats::default() }],
            ..Reading::empty(start + Duration::from_millis(ms))
        }
    }

    #[test]
    fn seconds_that_are_reported_at_once_share_the_rates_of_the_time_that_they_cover() {
        let start = Instant::now();
        let mut course = LastReading { before: moment(start, 0), seen: ReadingRates::default() };
        // It stalled from 2.4 to 7.7 s: five seconds are reported at once, and the next one early.
        let mut looked = Vec::new();
        for ms in [1_000, 2_000, 7_700, 7_701, 7_702, 7_703, 7_704, 8_000, 9_000] {
            if course.is_due(start + Duration::from_millis(ms), 1.0) {
                course.reach(moment(start, ms));
                looked.push(ms);
            }
            let host = course.seen.host;
            assert!((host.server_cpus - 1.0).abs() < 0.02, "{ms} ms: {host:?}");
            assert!((host.busy_cpus - 1.0).abs() < 0.02, "{ms} ms: {host:?}");
            assert!((course.seen.volumes[0].read_iops - 100.0).abs() < 2.0, "{ms} ms");
        }
        assert_eq!(looked, [1_000, 2_000, 7_700, 9_000]);
        assert!(course.is_due(start + Duration::from_millis(9_200), 0.2), "the last sample may be short");
    }

    #[test]
    fn a_second_that_the_server_missed_has_no_rates_and_the_next_one_spans_both() {
        let answers = [(0, 'b'), (2, 'd')];
        assert_eq!(spans(Some(&'a'), &answers).collect::<Vec<_>>(), [(0, &'a', &'b'), (2, &'b', &'d')]);
        assert_eq!(spans(None, &answers).collect::<Vec<_>>(), [(2, &'b', &'d')]);
    }
}
