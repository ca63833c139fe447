//! What is read of servers, storage and their machine at one moment, as plain data: the input of [`alarm`](crate::alarm).
//!
//! Counters are handed in as they are read. What grew between two readings is computed once, in `alarm`, with an epoch: the attachment
//! of a volume, the identity of a device, the uptime of a server. A counter that begins again gives a gap, and no growth.

use ebbtide_control::ObservedVolume;
use ebbtide_observe::metric::Servers;
use ebbtide_observe::{Flavour, Readings, Version};
use ebbtide_volume::{InstanceLimits, Limits, Nanos, OpStats, RateLimit, Stats};

/// A moment, by two clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// By a clock that never runs back, such as CLOCK_MONOTONIC; its zero point does not matter. All spans are of it.
    pub elapsed: Nanos,
    /// By the wall clock, seconds since 1970. It may step: it is for texts alone.
    pub unix_s: i64,
    /// What local time is ahead of UTC, seconds; 0 prints UTC.
    pub utc_offset_s: i64,
}

/// All that was read at one moment. What could not be read is left out: after a minute its alarms have insufficient data.
#[derive(Debug, Clone, Default)]
pub struct ReadingSet {
    /// When.
    pub moment: Moment,
    /// Volumes of Ebbtide, and devices of the kernel as [`DeviceReading::as_volume`] gives them.
    pub volumes: Vec<VolumeReading>,
    /// Instances with limits of their own.
    pub instances: Vec<InstanceReading>,
    /// Servers.
    pub servers: Vec<ServerReading>,
    /// File systems.
    pub file_systems: Vec<FileSystemReading>,
    /// Checks of the doctor, as often as it looks.
    pub checks: Vec<CheckReading>,
}

/// What a volume may do, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct VolumeLimits {
    /// Operations a second; None: not known, or not limited.
    pub iops: Option<RateLimit>,
    /// Bytes a second; None as above.
    pub throughput: Option<RateLimit>,
    /// How long an operation takes when nothing holds it back; None: it is learned of the volume itself.
    pub floor: Option<LatencyFloor>,
}

/// Time of an operation on a volume that is idle, s; above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyFloor {
    /// Of a read.
    pub read_s: f64,
    /// Of a write.
    pub write_s: f64,
}

impl VolumeLimits {
    /// Those of a model, with the medians of its service times as the floor.
    #[must_use]
    pub fn of_model(limits: &Limits) -> Self {
        let read_s = limits.service.median_read().as_secs_f64();
        let half_turn_s =
            limits.service.mechanics.map_or(0.0, |mechanics| mechanics.turn.as_secs_f64() / 2.0);
        let write_s = limits.service.write.quantile(500_000).as_secs_f64() + half_turn_s;
        let floor = (read_s > 0.0 && write_s > 0.0).then_some(LatencyFloor { read_s, write_s });
        Self { iops: limits.iops, throughput: limits.throughput, floor }
    }

    /// The limit whose credits are spent; None without credits.
    #[must_use]
    pub fn credited(&self) -> Option<RateLimit> {
        [self.iops, self.throughput].into_iter().flatten().find(RateLimit::has_credits)
    }
}

/// The counters of a volume or of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeReading {
    /// Its name.
    pub name: String,
    /// Which life of it the counters belong to, such as the start of its attachment. Another one is another life.
    pub epoch: String,
    /// The counters. `at` is on a clock that never runs back, and the share of the credits is None where it is not known.
    pub stats: Stats,
    /// Whether the counters have times over limits, and of when these are.
    pub throttling: Throttling,
    /// What it may do.
    pub limits: VolumeLimits,
}

/// Of when the times over limits of a volume's counters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttling {
    /// As the other counters.
    Counted,
    /// They were read at this time, by the clock of the counters: the statistics page of an EBS volume is read less often.
    ReadAt(Nanos),
    /// They are not counted, or not known at the moment: the device has no such page, or it was not had.
    Unknown,
}

impl VolumeReading {
    /// A volume of ours as `control` observes it; None while it is not attached. The floor is that of its model, or is learned.
    #[must_use]
    pub fn of_observed(volume: &ObservedVolume, floor: Option<LatencyFloor>) -> Option<Self> {
        let attachment = volume.attachment.as_ref()?;
        let reading = &attachment.reading;
        Some(Self {
            name: volume.name.clone(),
            epoch: attachment.since.0.to_string(),
            stats: reading.totals.stats,
            throttling: Throttling::Counted,
            limits: VolumeLimits { iops: reading.iops_limit, throughput: reading.throughput_limit, floor },
        })
    }

    /// The times over limits, with the time that they are of; None where they are not known.
    #[must_use]
    pub const fn exceeded(&self) -> Option<ExceededReading> {
        let stats = &self.stats;
        let read = match self.throttling {
            Throttling::Counted => stats.at,
            Throttling::ReadAt(read) => read,
            Throttling::Unknown => return None,
        };
        let times = ExceededTimes {
            volume_iops: stats.volume_iops_exceeded,
            volume_throughput: stats.volume_throughput_exceeded,
            instance_iops: stats.instance_iops_exceeded,
            instance_throughput: stats.instance_throughput_exceeded,
        };
        Some(ExceededReading { read, times })
    }
}

/// Times over limits of an EBS volume (NVMe log page 0xD0). They only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExceededTimes {
    /// Of the volume's IOPS.
    pub volume_iops: Nanos,
    /// Of the volume's throughput.
    pub volume_throughput: Nanos,
    /// Of the instance's IOPS.
    pub instance_iops: Nanos,
    /// Of the instance's throughput.
    pub instance_throughput: Nanos,
}

impl ExceededTimes {
    /// Over the volume's IOPS and throughput, then over those of the instance.
    const fn all(&self) -> [Nanos; 4] {
        [self.volume_iops, self.volume_throughput, self.instance_iops, self.instance_throughput]
    }
}

/// Times over limits, as they were read at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceededReading {
    /// When, by a clock that never runs back.
    pub read: Nanos,
    /// The times.
    pub times: ExceededTimes,
}

impl ExceededReading {
    /// Over a longer gap two readings are not compared.
    const LONGEST_GAP: Nanos = Nanos::from_secs(120);

    /// Shares of the time since an earlier reading, 0 to 1: over the volume's IOPS and throughput, then over those of the instance. None
    /// where no time passed or more than two minutes, and where a time fell: then the volume was attached anew.
    #[must_use]
    pub fn shares_since(&self, earlier: &Self) -> Option<[f64; 4]> {
        let is_near = self.read.since(earlier.read) <= Self::LONGEST_GAP;
        if is_near { self.means_since(earlier) } else { None }
    }

    /// The same over however long a time, between whose ends there were other readings.
    pub(crate) fn means_since(&self, earlier: &Self) -> Option<[f64; 4]> {
        let passed = self.read.since(earlier.read);
        if passed == Nanos::ZERO {
            return None;
        }
        let mut shares = [0.0; 4];
        for (share, (after, before)) in
            shares.iter_mut().zip(self.times.all().into_iter().zip(earlier.times.all()))
        {
            let grown = Nanos(after.0.checked_sub(before.0)?);
            *share = (grown.as_secs_f64() / passed.as_secs_f64()).min(1.0);
        }
        Some(shares)
    }
}

/// A block device of the kernel, with the counters of `/proc/diskstats` since it appeared.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceReading {
    /// Its name, such as `nvme1n1`.
    pub name: String,
    /// What tells it from another device of the same name: its serial number or volume id, and the boot.
    pub identity: String,
    /// Reads that were completed, their bytes, and the sum of their times.
    pub read: OpStats,
    /// The same of writes.
    pub write: OpStats,
    /// Flushes that were completed.
    pub flush_ops: u64,
    /// Discards that were completed.
    pub discard_ops: u64,
    /// Requests in flight now.
    pub queue: u64,
    /// Time in which there was any I/O (`io_ticks`).
    pub busy: Nanos,
    /// Sum of the times that requests were in flight (`time_in_queue`).
    pub queue_time: Nanos,
    /// Times over limits; None where the device has no EBS statistics page, or it was not had.
    pub exceeded: Option<ExceededReading>,
    /// Share of the burst credits left, 0 to 1 (CloudWatch's `BurstBalance`); None where it is not known.
    pub credit_share: Option<f64>,
    /// What it may do, where that is known.
    pub limits: VolumeLimits,
}

impl DeviceReading {
    /// The idle time of a device is counted from so long before any clock of a program begins, 146 years. A device has been busy since
    /// its boot, which may be longer than the program runs: of the idle time the growth alone means something.
    const IDLE_FROM: Nanos = Nanos(1 << 62);

    /// The device in the form of a volume, read at `elapsed`.
    #[must_use]
    pub fn as_volume(&self, elapsed: Nanos) -> VolumeReading {
        let exceeded = self.exceeded.map(|exceeded| exceeded.times).unwrap_or_default();
        VolumeReading {
            name: self.name.clone(),
            epoch: self.identity.clone(),
            stats: Stats {
                at: elapsed,
                read: self.read,
                write: self.write,
                flush_ops: self.flush_ops,
                discard_ops: self.discard_ops,
                consumed_ops: self.read.ops + self.write.ops,
                queue: self.queue,
                queue_time: self.queue_time,
                idle_time: (Self::IDLE_FROM + elapsed).since(self.busy),
                volume_iops_exceeded: exceeded.volume_iops,
                volume_throughput_exceeded: exceeded.volume_throughput,
                instance_iops_exceeded: exceeded.instance_iops,
                instance_throughput_exceeded: exceeded.instance_throughput,
                credit_share: self.credit_share,
                iops_rate: self.limits.iops.map(|limit| limit.rate),
                ..Stats::default()
            },
            throttling: self
                .exceeded
                .map_or(Throttling::Unknown, |exceeded| Throttling::ReadAt(exceeded.read)),
            limits: self.limits,
        }
    }
}

/// The burst credits of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceReading {
    /// Its name.
    pub name: String,
    /// Its limits.
    pub limits: InstanceLimits,
    /// Share of the credits of operations left, 0 to 1; None where it sustains its maximum.
    pub io_share: Option<f64>,
    /// The same of bytes.
    pub byte_share: Option<f64>,
}

impl InstanceReading {
    /// The instance of a volume of ours; None while that is not attached to one. Volumes of one instance give the same.
    #[must_use]
    pub fn of_observed(volume: &ObservedVolume) -> Option<Self> {
        let attachment = volume.attachment.as_ref()?;
        let (io_share, byte_share) = attachment.reading.instance_balances?;
        let limits = attachment.reading.instance_limits?;
        Some(Self { name: attachment.instance.clone()?, limits, io_share, byte_share })
    }
}

/// A server, or that it did not answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerReading {
    /// Its name.
    pub name: String,
    /// What it answered.
    pub answer: Answer,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Its counters.
    Counters(Box<ServerCounters>),
    /// It is not asked this time: it is slow, and asked less often. This is no fault.
    NotAsked,
    /// There is no connection. With the error.
    Down(String),
    /// It refuses the login. With the error.
    LoginRefused(String),
    /// It took the connection or the question, and did not answer in time. With the limit.
    TimedOut(Nanos),
}

/// What a server counts, and what it replicates.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCounters {
    /// Whose it is.
    pub flavour: Flavour,
    /// Its version.
    pub version: Version,
    /// Its counters; `uptime` among them is the epoch.
    pub counters: Readings,
    /// Bytes of redo since the checkpoint at which the server flushes before all else, as its settings give them; taken where no
    /// counter has them. None: not known.
    pub redo_sync_bytes: Option<f64>,
    /// Its sources; empty where it replicates from none.
    pub replicas: Vec<ReplicaReading>,
}

impl ServerCounters {
    /// Whether the page cleaner waits until the checkpoint is seven eighths of the way to where writers wait (`buf0flu.cc` of
    /// MariaDB from 10.5 on). Under each load that goes on for long enough, the age is there.
    #[must_use]
    pub fn flushes_late(&self) -> bool {
        self.flavour.is_among(self.version, Servers { since: Some((10, 5, 0)), ..Servers::MARIADB })
    }
}

/// A channel by which a server replicates.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaReading {
    /// Its name; empty where the server has one alone.
    pub channel: String,
    /// The thread that receives (`Replica_IO_Running`).
    pub receiver: ThreadState,
    /// The thread that applies (`Replica_SQL_Running`).
    pub applier: ThreadState,
    /// Seconds that it is behind, by the best evidence there is; None where the server says NULL.
    pub lag_s: Option<f64>,
    /// Seconds that it is to be behind (`SQL_Delay`).
    pub delay_s: f64,
    /// The last error of either thread; None without one.
    pub error: Option<String>,
}

/// What a thread of replication does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// `Yes`.
    Running,
    /// `Connecting`, and MariaDB's `Preparing`.
    Connecting,
    /// `No`.
    Stopped,
}

impl ThreadState {
    /// Of the server's word. What is no such word counts as stopped.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        match word {
            "Yes" => Self::Running,
            "Connecting" | "Preparing" => Self::Connecting,
            _ => Self::Stopped,
        }
    }

    /// The word in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Connecting => "connecting",
            Self::Stopped => "stopped",
        }
    }
}

/// The space of a file system.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSystemReading {
    /// Where it is mounted.
    pub mount_point: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Bytes that are free for the server.
    pub free_bytes: u64,
    /// Whether it is mounted read-only: then it is as full as it will be.
    pub read_only: bool,
}

/// The answer of a check of the doctor.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckReading {
    /// The server that was looked at.
    pub server: String,
    /// The code of the check, such as `R02`.
    pub code: String,
    /// The answer.
    pub verdict: CheckVerdict,
}

/// What a check of the doctor found.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckVerdict {
    /// There is something to change: why, and what to do.
    Found {
        /// Why, in sentences.
        why: String,
        /// What to do; empty where the doctor has no fix.
        fix: String,
    },
    /// Nothing to do, or the question has no meaning.
    Fine,
    /// It could not be answered.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_as_a_volume_whose_idle_time_grows_while_it_is_not_busy() {
        let device = DeviceReading {
            name: "nvme1n1".to_owned(),
            identity: "vol0123 boot 7".to_owned(),
            read: OpStats { ops: 10, bytes: 40_960, time: Nanos::from_ms(20) },
            write: OpStats { ops: 5, bytes: 20_480, time: Nanos::from_ms(5) },
            flush_ops: 2,
            discard_ops: 1,
            queue: 3,
            // Since the boot: longer than the program runs.
            busy: Nanos::from_secs(4_000_000),
            queue_time: Nanos::from_secs(50),
            exceeded: None,
            credit_share: Some(0.5),
            limits: VolumeLimits { iops: Some(RateLimit::flat(3_000)), ..VolumeLimits::default() },
        };
        let volume = device.as_volume(Nanos::from_secs(100));
        let later = DeviceReading { busy: Nanos::from_secs(4_000_003), ..device.clone() };
        let step = later.as_volume(Nanos::from_secs(110)).stats.since(&volume.stats);
        assert_eq!(step.idle_time, Nanos::from_secs(7));
        assert_eq!((volume.stats.consumed_ops, volume.stats.iops_rate), (15, Some(3_000)));
        assert_eq!((volume.throttling, volume.exceeded()), (Throttling::Unknown, None));
        let read = Nanos::from_secs(98);
        let times = ExceededTimes { instance_iops: Nanos::from_secs(9), ..ExceededTimes::default() };
        let exceeded = Some(ExceededReading { read, times });
        let known = DeviceReading { exceeded, ..device }.as_volume(Nanos::from_secs(100));
        assert_eq!(known.exceeded(), exceeded);
    }

    #[test]
    fn times_over_limits_are_shares_of_the_time_between_their_readings() {
        let reading = |second: u64, iops_ms: u64| ExceededReading {
            read: Nanos::from_secs(second),
            times: ExceededTimes { volume_iops: Nanos::from_ms(iops_ms), ..ExceededTimes::default() },
        };
        let first = reading(10, 1_000);
        assert_eq!(reading(20, 6_000).shares_since(&first), Some([0.5, 0.0, 0.0, 0.0]));
        assert_eq!(
            reading(20, 90_000).shares_since(&first),
            Some([1.0, 0.0, 0.0, 0.0]),
            "errors of two clocks"
        );
        for other in [reading(10, 2_000), reading(20, 999), reading(131, 2_000), reading(9, 2_000)] {
            assert_eq!(other.shares_since(&first), None, "{other:?}");
        }
    }

    #[test]
    fn a_thread_that_connects_is_neither_running_nor_stopped() {
        let states = ["Yes", "Connecting", "Preparing", "No", ""].map(ThreadState::of_word);
        assert_eq!(
            states.map(ThreadState::name),
            ["running", "connecting", "connecting", "stopped", "stopped"]
        );
    }
}
