//! A watched machine in virtual time: readings of a volume, a server and a file system that a test describes by rates.

use std::collections::BTreeSet;

use ebbtide_observe::{Counter, Flavour, Readings, UPTIME, Version};
use ebbtide_volume::{Nanos, OpStats, RateLimit, Stats};
use ebbtide_watch::alarm::{AlarmState, Alarms, Event};
use ebbtide_watch::reading::{
    Answer, FileSystemReading, LatencyFloor, Moment, ReadingSet, ReplicaReading, ServerCounters,
    ServerReading, ThreadState, Throttling, VolumeLimits, VolumeReading,
};

pub(crate) const GIB: u64 = 1 << 30;

/// 2026-11-28 00:00 UTC.
pub(crate) const MIDNIGHT: i64 = 1_795_824_000;

/// A count of a rate and a time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of a test are small and positive"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// What a volume does, a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    pub(crate) read_s: f64,
    pub(crate) write_s: f64,
    /// Mean number of requests in flight; as many as rates and times give where it is None.
    pub(crate) queue: Option<f64>,
    /// Shares of the time over the limits: the volume's IOPS and throughput, the instance's IOPS and throughput.
    pub(crate) over: [f64; 4],
}

impl Pace {
    /// A third of a gp3 of 3,000 IOPS, at its floor.
    pub(crate) const USUAL: Self =
        Self { reads: 300.0, writes: 700.0, read_s: 0.001, write_s: 0.001, queue: None, over: [0.0; 4] };
    /// Nothing.
    pub(crate) const IDLE: Self = Self { reads: 0.0, writes: 0.0, ..Self::USUAL };
}

/// What a server counts, a second, and its gauges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerPace {
    pub(crate) log_waits: f64,
    pub(crate) free_page_waits: f64,
    pub(crate) sync_flushed: f64,
    /// Checkpoint age and the age at which it flushes before all else, MiB; the latter is not reported where it is 0.
    pub(crate) age_mib: f64,
    pub(crate) sync_age_mib: f64,
}

impl ServerPace {
    pub(crate) const USUAL: Self = Self {
        log_waits: 0.0,
        free_page_waits: 0.0,
        sync_flushed: 0.0,
        age_mib: 200.0,
        sync_age_mib: 1_000.0,
    };
}

/// Alarms, and what they are told.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) alarms: Alarms,
    pub(crate) events: Vec<Event>,
    /// Seconds since the start, by the clock that never runs back.
    pub(crate) second: u64,
    /// What the wall clock is ahead of it.
    pub(crate) wall_ahead_s: i64,
    /// Seconds between two readings.
    pub(crate) step: u64,
    pub(crate) volume: VolumeReading,
    pub(crate) mariadb: bool,
    pub(crate) redo_sync_bytes: Option<f64>,
    pub(crate) uptime_s: f64,
    counts: [f64; 3],
}

impl Watched {
    pub(crate) fn new() -> Self {
        let floor = Some(LatencyFloor { read_s: 0.001, write_s: 0.001 });
        let limits = VolumeLimits { iops: Some(RateLimit::flat(3_000)), throughput: None, floor };
        Self {
            alarms: Alarms::new(),
            events: Vec::new(),
            second: 1_000_000,
            wall_ahead_s: MIDNIGHT - 1_000_000,
            step: 1,
            volume: VolumeReading {
                name: "shop-data".to_owned(),
                epoch: "1".to_owned(),
                stats: Stats::default(),
                throttling: Throttling::Counted,
                limits,
            },
            mariadb: false,
            redo_sync_bytes: None,
            uptime_s: 86_400.0,
            counts: [0.0; 3],
        }
    }

    pub(crate) fn moment(&self) -> Moment {
        let unix_s = i64::try_from(self.second).unwrap() + self.wall_ahead_s;
        Moment { elapsed: Nanos::from_secs(self.second), unix_s, utc_offset_s: 0 }
    }

    /// Hands a reading in, with the moment of now.
    pub(crate) fn look(&mut self, reading: ReadingSet) {
        let events = self.alarms.observe(&ReadingSet { moment: self.moment(), ..reading });
        self.events.extend(events);
    }

    /// Readings of some seconds, each after a step.
    pub(crate) fn run(&mut self, seconds: u64, mut read: impl FnMut(&mut Self, f64) -> ReadingSet) {
        for number in 1..=seconds / self.step {
            self.second += self.step;
            self.uptime_s += self.step as f64;
            let reading = read(self, (number * self.step) as f64);
            self.look(reading);
        }
    }

    /// A volume at a pace.
    pub(crate) fn storage(&mut self, seconds: u64, pace: Pace) {
        self.storage_by(seconds, |_| pace);
    }

    /// A volume whose pace is given by the second.
    pub(crate) fn storage_by(&mut self, seconds: u64, pace: impl Fn(f64) -> Pace) {
        self.run(seconds, |watched, second| {
            watched.count(pace(second));
            ReadingSet { volumes: vec![watched.volume.clone()], ..ReadingSet::default() }
        });
    }

    /// Counts a step at a pace.
    pub(crate) fn count(&mut self, pace: Pace) {
        let seconds = self.step as f64;
        let stats = &mut self.volume.stats;
        stats.at += Nanos::from_secs(self.step);
        let add = |ops: &mut OpStats, rate: f64, time_s: f64| {
            let number = whole(rate * seconds);
            ops.ops += number;
            ops.bytes += number * 16_384;
            ops.time += nanos(number as f64 * time_s);
        };
        add(&mut stats.read, pace.reads, pace.read_s);
        add(&mut stats.write, pace.writes, pace.write_s);
        stats.consumed_ops = stats.read.ops + stats.write.ops;
        let queue = pace.queue.unwrap_or(pace.reads * pace.read_s + pace.writes * pace.write_s);
        stats.queue = whole(queue.ceil());
        stats.queue_time += nanos(queue * seconds);
        stats.idle_time += nanos((1.0 - queue).max(0.0) * seconds);
        let [volume_iops, volume_throughput, instance_iops, instance_throughput] = pace.over;
        stats.volume_iops_exceeded += nanos(volume_iops * seconds);
        stats.volume_throughput_exceeded += nanos(volume_throughput * seconds);
        stats.instance_iops_exceeded += nanos(instance_iops * seconds);
        stats.instance_throughput_exceeded += nanos(instance_throughput * seconds);
    }

    /// A server that answers, at a pace that is given by the second.
    pub(crate) fn server_by(&mut self, seconds: u64, pace: impl Fn(f64) -> ServerPace) {
        self.run(seconds, |watched, second| {
            let counters = watched.counters(pace(second), Vec::new());
            server(Answer::Counters(Box::new(counters)))
        });
    }

    pub(crate) fn server(&mut self, seconds: u64, pace: ServerPace) {
        self.server_by(seconds, |_| pace);
    }

    /// A server that answers with its replication.
    pub(crate) fn replica(&mut self, seconds: u64, replica: &ReplicaReading) {
        self.run(seconds, |watched, _| {
            let counters = watched.counters(ServerPace::USUAL, vec![replica.clone()]);
            server(Answer::Counters(Box::new(counters)))
        });
    }

    /// A server that does not answer.
    pub(crate) fn answer(&mut self, seconds: u64, answer: &Answer) {
        self.run(seconds, |_, _| server(answer.clone()));
    }

    /// The counters after another step.
    pub(crate) fn counters(&mut self, pace: ServerPace, replicas: Vec<ReplicaReading>) -> ServerCounters {
        let seconds = self.step as f64;
        for (count, rate) in
            self.counts.iter_mut().zip([pace.log_waits, pace.free_page_waits, pace.sync_flushed])
        {
            *count += rate * seconds;
        }
        let [log_waits, free_page_waits, sync_flushed] = self.counts.map(whole);
        let age = whole(pace.age_mib * 1_048_576.0);
        let mut counters = Readings::from_iter([
            (UPTIME, whole(self.uptime_s)),
            (Counter::Status("innodb_log_waits"), log_waits),
            (Counter::Status("innodb_buffer_pool_wait_free"), free_page_waits),
            (Counter::InnodbMetric("buffer_flush_sync_total_pages"), sync_flushed),
            (Counter::Status("innodb_checkpoint_age"), age),
        ]);
        if pace.sync_age_mib > 0.0 {
            let most = whole(pace.sync_age_mib * 1_048_576.0);
            counters.insert(Counter::Status("innodb_checkpoint_max_age"), most);
        }
        let (flavour, version) = if self.mariadb {
            (Flavour::MariaDb, Version::new(11, 8, 6))
        } else {
            (Flavour::MySql, Version::new(8, 4, 3))
        };
        ServerCounters { flavour, version, counters, redo_sync_bytes: self.redo_sync_bytes, replicas }
    }

    /// The server was started again: its counters begin again.
    pub(crate) fn restart(&mut self) {
        self.uptime_s = 0.0;
        self.counts = [0.0; 3];
    }

    /// A file system of 100 GiB, a reading a minute, whose used GiB are given by the minute.
    pub(crate) fn disk(&mut self, minutes: u64, used_gib: impl Fn(f64) -> f64) {
        self.step = 60;
        self.run(minutes * 60, |_, second| {
            file_system(100 * GIB, whole(used_gib(second / 60.0) * GIB as f64))
        });
        self.step = 1;
    }

    /// Names of the rules that were in ALARM at any time.
    pub(crate) fn raised(&self) -> BTreeSet<&'static str> {
        self.events.iter().filter(|event| event.to == AlarmState::Alarm).map(|event| event.rule).collect()
    }

    /// The state of a rule, whatever its subject is.
    pub(crate) fn state(&self, rule: &str) -> Option<AlarmState> {
        self.alarms.all().find(|alarm| alarm.rule == rule).map(|alarm| alarm.state)
    }
}

fn nanos(seconds: f64) -> Nanos {
    Nanos(whole(seconds * 1e9))
}

/// A reading of a server alone.
pub(crate) fn server(answer: Answer) -> ReadingSet {
    let servers = vec![ServerReading { name: "shop".to_owned(), answer }];
    ReadingSet { servers, ..ReadingSet::default() }
}

/// A reading of a file system alone.
pub(crate) fn file_system(size_bytes: u64, used_bytes: u64) -> ReadingSet {
    let reading = FileSystemReading {
        mount_point: "/var/lib/mysql".to_owned(),
        size_bytes,
        free_bytes: size_bytes.saturating_sub(used_bytes),
        read_only: false,
    };
    ReadingSet { file_systems: vec![reading], ..ReadingSet::default() }
}

/// A replica that is well.
pub(crate) fn replica() -> ReplicaReading {
    ReplicaReading {
        channel: String::new(),
        receiver: ThreadState::Running,
        applier: ThreadState::Running,
        lag_s: Some(0.0),
        delay_s: 0.0,
        error: None,
    }
}

/// A situation: what happens, and which rules have to alarm; no others may.
#[derive(Clone, Copy)]
pub(crate) struct Situation {
    pub(crate) name: &'static str,
    pub(crate) play: fn(&mut Watched),
    pub(crate) raises: &'static [&'static str],
}

/// Plays situations, and says of all that went wrong.
pub(crate) fn play(situations: &[Situation]) {
    let mut wrong = Vec::new();
    for Situation { name, play, raises } in situations {
        let mut watched = Watched::new();
        play(&mut watched);
        let expected: BTreeSet<&str> = raises.iter().copied().collect();
        let raised = watched.raised();
        if raised != expected {
            let lines: Vec<String> = watched.events.iter().map(Event::line).collect();
            wrong.push(format!("{name}: raised {raised:?}, expected {expected:?}\n{}", lines.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), situations.len(), wrong.join("\n\n"));
}
