//! What a run measures: transactions, latencies, what limits, and credits over time.

use ebbtide_observe::Role;
use ebbtide_volume::{Instance, Nanos, Stats};
use hdrhistogram::Histogram;

use super::disk::{Disk, FileTotals, Part};
use super::file_kind::FileKind;
use crate::balance::{BalanceChange, Balances};

/// What limits a server, in a second of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limiter {
    /// Transactions come no faster.
    Load,
    /// The processors.
    Processors,
    /// The volume's IOPS.
    VolumeIops,
    /// The volume's throughput.
    VolumeThroughput,
    /// The instance's IOPS.
    InstanceIops,
    /// The instance's throughput.
    InstanceThroughput,
    /// The redo log is full: transactions wait for a checkpoint.
    RedoCapacity,
    /// No page of the pool is free: transactions write pages to get one.
    FreePages,
    /// The latency of page reads, at this number of clients.
    ReadLatency,
    /// The latency of commits, at this number of clients.
    CommitLatency,
    /// The speed of one processor and the network, at this number of clients.
    Clients,
    /// The IOPS of the redo log's own volume.
    RedoVolumeIops,
    /// The throughput of the redo log's own volume.
    RedoVolumeThroughput,
    /// The IOPS of the binary log's own volume.
    BinlogVolumeIops,
    /// The throughput of the binary log's own volume.
    BinlogVolumeThroughput,
    /// The IOPS of the volume that both logs share.
    LogsVolumeIops,
    /// The throughput of the volume that both logs share.
    LogsVolumeThroughput,
}

impl Limiter {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Load,
        Self::Processors,
        Self::VolumeIops,
        Self::VolumeThroughput,
        Self::InstanceIops,
        Self::InstanceThroughput,
        Self::RedoCapacity,
        Self::FreePages,
        Self::ReadLatency,
        Self::CommitLatency,
        Self::Clients,
        Self::RedoVolumeIops,
        Self::RedoVolumeThroughput,
        Self::BinlogVolumeIops,
        Self::BinlogVolumeThroughput,
        Self::LogsVolumeIops,
        Self::LogsVolumeThroughput,
    ];

    /// The IOPS and the throughput of the volume of a role.
    fn of_volume(role: Role) -> (Self, Self) {
        match role {
            Role::Data => (Self::VolumeIops, Self::VolumeThroughput),
            Role::Redo => (Self::RedoVolumeIops, Self::RedoVolumeThroughput),
            Role::Binlog => (Self::BinlogVolumeIops, Self::BinlogVolumeThroughput),
            Role::Logs => (Self::LogsVolumeIops, Self::LogsVolumeThroughput),
            other => panic!("the model has no files for a volume of {}", other.key()),
        }
    }

    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Processors => "cpu",
            Self::VolumeIops => "volume_iops",
            Self::VolumeThroughput => "volume_throughput",
            Self::InstanceIops => "instance_iops",
            Self::InstanceThroughput => "instance_throughput",
            Self::RedoCapacity => "redo_capacity",
            Self::FreePages => "free_pages",
            Self::ReadLatency => "read_latency",
            Self::CommitLatency => "commit_latency",
            Self::Clients => "clients",
            Self::RedoVolumeIops => "redo_volume_iops",
            Self::RedoVolumeThroughput => "redo_volume_throughput",
            Self::BinlogVolumeIops => "binlog_volume_iops",
            Self::BinlogVolumeThroughput => "binlog_volume_throughput",
            Self::LogsVolumeIops => "logs_volume_iops",
            Self::LogsVolumeThroughput => "logs_volume_throughput",
        }
    }

    /// It in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Load => "the rate of the load",
            Self::Processors => "the processors",
            Self::VolumeIops => "the volume's IOPS",
            Self::VolumeThroughput => "the volume's throughput",
            Self::InstanceIops => "the instance's IOPS",
            Self::InstanceThroughput => "the instance's throughput",
            Self::RedoCapacity => "the redo log's capacity",
            Self::FreePages => "free pages of the buffer pool",
            Self::ReadLatency => "the latency of page reads",
            Self::CommitLatency => "the latency of commits",
            Self::Clients => "the number of clients",
            Self::RedoVolumeIops => "the IOPS of the redo log's volume",
            Self::RedoVolumeThroughput => "the throughput of the redo log's volume",
            Self::BinlogVolumeIops => "the IOPS of the binary log's volume",
            Self::BinlogVolumeThroughput => "the throughput of the binary log's volume",
            Self::LogsVolumeIops => "the IOPS of the logs' volume",
            Self::LogsVolumeThroughput => "the throughput of the logs' volume",
        }
    }
}

/// Where clients are, in nanoseconds of all of them together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ClientTime {
    pub(crate) reading: f64,
    pub(crate) committing: f64,
    pub(crate) waiting_for_redo: f64,
    pub(crate) waiting_for_pages: f64,
}

impl ClientTime {
    fn since(self, earlier: Self) -> Self {
        Self {
            reading: self.reading - earlier.reading,
            committing: self.committing - earlier.committing,
            waiting_for_redo: self.waiting_for_redo - earlier.waiting_for_redo,
            waiting_for_pages: self.waiting_for_pages - earlier.waiting_for_pages,
        }
    }
}

/// A span of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its end, since the start of the run.
    pub end: Nanos,
    /// Transactions finished in it.
    pub transactions: u64,
    /// Operations that the volume counted in it.
    pub operations: u64,
    /// Bytes in it.
    pub bytes: u64,
    /// Burst credits of the data's volume left at its end, 0 to 1; none without credits.
    pub credit_share: Option<f64>,
}

/// What a volume did in the time that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleOutcome {
    /// What lies on it.
    pub role: Role,
    /// The kinds of files on it.
    pub files: Vec<FileKind>,
    /// Operations that it counted.
    pub operations: u64,
    /// Bytes.
    pub bytes: u64,
    /// Share of the time in which I/O waited for its IOPS limit, 0 to 1.
    pub iops_waited: f64,
    /// Share of the time in which I/O waited for its throughput limit, 0 to 1.
    pub throughput_waited: f64,
    /// When its burst credits ended and came back, since the start of the run; those of the instance are with the volume of
    /// the data.
    pub changes: Vec<BalanceChange>,
}

/// What a run did.
#[derive(Debug, Clone)]
pub struct ModelOutcome {
    /// Time that was measured: the run without what was left to settle.
    pub measured: Nanos,
    /// Transactions finished in it.
    pub transactions: u64,
    /// Transactions of an open loop that were late at the end: as many as were unfinished more than when the measurement began,
    /// where they are over 3% of the finished ones. Fewer are what is under way by chance.
    pub late: u64,
    /// Latencies of the finished transactions, nanoseconds.
    pub latency: Histogram<u64>,
    /// I/O by kind of file, in the order of [`FileKind::ALL`].
    pub files: [FileTotals; 5],
    /// Seconds in which each thing limited, most first.
    pub limits: Vec<(Limiter, u64)>,
    /// Share of the processors' time that was busy, 0 to 1.
    pub processors_busy: f64,
    /// Transactions that waited for a full redo log, a second.
    pub redo_waits: u64,
    /// Reads that found no free page.
    pub page_waits: u64,
    /// Pages that the page cache of the system had: no I/O is in `files` for them.
    pub page_cache_reads: u64,
    /// Pages dirty at the end.
    pub dirty_pages: u64,
    /// Transactions that purge had not come to at the end.
    pub unpurged: u64,
    /// Each volume, that of the data first.
    pub volumes: Vec<RoleOutcome>,
    /// The whole run, in at most 240 spans.
    pub spans: Vec<Span>,
}

impl ModelOutcome {
    /// Transactions a second.
    #[must_use]
    pub fn tps(&self) -> f64 {
        self.transactions as f64 / self.measured.as_secs_f64().max(1e-9)
    }

    /// Of an open loop, the share of the transactions that were not late at the end, 0 to 1.
    #[must_use]
    pub fn share_carried(&self) -> f64 {
        self.transactions as f64 / ((self.transactions + self.late) as f64).max(1.0)
    }

    /// A quantile (0 to 1) of the latency; none without transactions.
    #[must_use]
    pub fn latency_at(&self, quantile: f64) -> Option<Nanos> {
        (!self.latency.is_empty()).then(|| Nanos(self.latency.value_at_quantile(quantile)))
    }

    /// Operations of the volume a second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.files.iter().map(|file| file.operations).sum::<u64>() as f64
            / self.measured.as_secs_f64().max(1e-9)
    }

    /// Bytes a second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.files.iter().map(|file| file.bytes).sum::<u64>() as f64 / self.measured.as_secs_f64().max(1e-9)
    }

    /// When burst credits of a volume or of the instance ended for the first time, since the start of the run.
    #[must_use]
    pub fn credits_end(&self) -> Option<Nanos> {
        let ends = self.volumes.iter().flat_map(|volume| &volume.changes).filter(|change| change.ended);
        ends.map(|change| change.at).min()
    }

    /// I/O of one kind of file.
    #[must_use]
    pub fn file(&self, kind: FileKind) -> FileTotals {
        self.files[kind as usize]
    }

    /// What limits most of the time, and for what share of it.
    #[must_use]
    pub fn limiter(&self) -> (Limiter, f64) {
        let all: u64 = self.limits.iter().map(|(_, seconds)| seconds).sum();
        let first = self.limits.first().copied().unwrap_or((Limiter::Load, 0));
        (first.0, first.1 as f64 / all.max(1) as f64)
    }
}

/// Share of the finished transactions by which the unfinished ones may grow without being late.
const AT_ONCE: f64 = 0.03;
/// Spans of a run, at most.
const SPANS: u64 = 240;

/// Longest latency that is told from longer ones: a day.
const LONGEST_NS: u64 = 86_400_000_000_000;

/// Counts a run as it goes on.
pub(crate) struct Meter {
    settle: Nanos,
    end: Nanos,
    clients: f64,
    closed: bool,
    transactions: u64,
    latency: Histogram<u64>,
    files_before: [FileTotals; 5],
    busy_before: f64,
    unfinished_before: u64,
    limits: [u64; Limiter::ALL.len()],
    /// Of each volume.
    balances: Vec<Balances>,
    stats_before: Vec<Stats>,
    spans: Vec<Span>,
    span: Nanos,
    span_end: Nanos,
    span_start: (u64, [FileTotals; 5]),
    finished: u64,
    last: Option<LastSecond>,
    /// Waits counted over the whole run.
    pub(crate) redo_waits: u64,
    pub(crate) page_waits: u64,
    /// Pages of the page cache that clients read, and those until the measurement began.
    pub(crate) page_cache_reads: u64,
    page_cache_before: u64,
}

/// What was seen a second ago.
struct LastSecond {
    stats: Vec<Stats>,
    busy_seconds: f64,
    clients: ClientTime,
}

/// What is looked at each second.
pub(crate) struct SecondView {
    pub(crate) busy_seconds: f64,
    pub(crate) vcpus: f64,
    pub(crate) clients: ClientTime,
    /// Transactions that wait for a client, in an open loop.
    pub(crate) backlog: usize,
    /// Transactions that a client has begun.
    pub(crate) begun: usize,
}

impl SecondView {
    /// Transactions that have arrived in an open loop and are not finished.
    const fn unfinished(&self) -> u64 {
        (self.backlog + self.begun) as u64
    }
}

/// The instance, whose credits are looked at with the volume of the data.
fn instance_of<'a>(disk: &'a Disk, part: &Part) -> Option<&'a Instance> {
    disk.instance().filter(|_| part.role == Role::Data)
}

impl Meter {
    pub(crate) fn new(settle: Nanos, end: Nanos, clients: u32, closed: bool, disk: &Disk) -> Self {
        let span = Nanos((end.0 / SPANS).max(Nanos::SECOND.0).div_ceil(Nanos::SECOND.0) * Nanos::SECOND.0);
        Self {
            settle,
            end,
            clients: f64::from(clients),
            closed,
            transactions: 0,
            latency: Histogram::new_with_max(LONGEST_NS, 3).expect("the bounds are sound"),
            files_before: [FileTotals::default(); 5],
            busy_before: 0.0,
            unfinished_before: 0,
            limits: [0; Limiter::ALL.len()],
            balances: disk
                .parts()
                .iter()
                .map(|part| Balances::new(&part.volume, instance_of(disk, part)))
                .collect(),
            stats_before: Vec::new(),
            spans: Vec::new(),
            span,
            span_end: span,
            span_start: (0, [FileTotals::default(); 5]),
            finished: 0,
            last: None,
            redo_waits: 0,
            page_waits: 0,
            page_cache_reads: 0,
            page_cache_before: 0,
        }
    }

    pub(crate) fn finished(&mut self, latency: Nanos, now: Nanos) {
        self.finished += 1;
        if now > self.settle {
            self.transactions += 1;
            self.latency.saturating_record(latency.0.max(1));
        }
    }

    /// Transactions finished since the start of the run.
    pub(crate) const fn all_finished(&self) -> u64 {
        self.finished
    }

    /// A second has passed.
    pub(crate) fn second(&mut self, now: Nanos, disk: &mut Disk, view: &SecondView) {
        for (part, balances) in disk.parts().iter().zip(&mut self.balances) {
            balances.look(&part.volume, instance_of(disk, part), now);
        }
        let stats = disk.stats(now);
        if let Some(last) = &self.last
            && now > self.settle
        {
            let limiter = self.judge(last, &stats, disk, view);
            self.limits[limiter as usize] += 1;
        }
        if now <= self.settle {
            self.files_before = disk.totals();
            self.busy_before = view.busy_seconds;
            self.unfinished_before = view.unfinished();
            self.page_cache_before = self.page_cache_reads;
            self.stats_before.clone_from(&stats);
        }
        self.last = Some(LastSecond { stats, busy_seconds: view.busy_seconds, clients: view.clients });
        if now >= self.span_end {
            self.end_span(now, disk);
            self.span_end += self.span;
        }
    }

    fn end_span(&mut self, now: Nanos, disk: &Disk) {
        let totals = disk.totals();
        let (before, files) = self.span_start;
        let sum = |of: fn(&FileTotals) -> u64| {
            totals.iter().map(of).sum::<u64>() - files.iter().map(of).sum::<u64>()
        };
        self.spans.push(Span {
            end: now,
            transactions: self.finished - before,
            operations: sum(|file| file.operations),
            bytes: sum(|file| file.bytes),
            credit_share: disk.parts()[0].volume.credit_share(now),
        });
        self.span_start = (self.finished, totals);
    }

    /// What limited the second that has passed.
    fn judge(&self, last: &LastSecond, stats: &[Stats], disk: &Disk, view: &SecondView) -> Limiter {
        let second = stats[0].at.since(last.stats[0].at).as_secs_f64().max(1e-9);
        let waits =
            disk.parts().iter().zip(stats.iter().zip(&last.stats)).flat_map(|(part, (now, before))| {
                let (iops, throughput) = Limiter::of_volume(part.role);
                let happened = now.since(before);
                let share = |waited: Nanos| waited.as_secs_f64() / second;
                [
                    (share(happened.volume_iops_exceeded), iops),
                    (share(happened.volume_throughput_exceeded), throughput),
                    (share(happened.instance_iops_exceeded), Limiter::InstanceIops),
                    (share(happened.instance_throughput_exceeded), Limiter::InstanceThroughput),
                ]
            });
        let most = waits.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, Limiter::Load));
        let busy = (view.busy_seconds - last.busy_seconds) / second / view.vcpus;
        let time = view.clients.since(last.clients);
        let of_clients = |time: f64| time / 1e9 / second / self.clients.max(1.0);
        if !self.closed && view.backlog == 0 {
            return Limiter::Load;
        }
        if most.0 > 0.5 {
            return most.1;
        }
        if of_clients(time.waiting_for_redo) > 0.3 {
            return Limiter::RedoCapacity;
        }
        if of_clients(time.waiting_for_pages) > 0.3 {
            return Limiter::FreePages;
        }
        if busy > 0.9 {
            return Limiter::Processors;
        }
        let (reading, committing) = (of_clients(time.reading), of_clients(time.committing));
        if reading.max(committing) < 0.4 {
            Limiter::Clients
        } else if reading >= committing {
            Limiter::ReadLatency
        } else {
            Limiter::CommitLatency
        }
    }

    /// What each volume did.
    fn volumes(&mut self, disk: &mut Disk, files: &[FileTotals; 5], measured: Nanos) -> Vec<RoleOutcome> {
        let stats = disk.stats(self.end);
        let balances = std::mem::take(&mut self.balances);
        let of = |((place, part), balances): ((usize, &Part), Balances)| {
            let before = self.stats_before.get(place).copied().unwrap_or_default();
            let happened = stats[place].since(&before);
            let waited = |time: Nanos| time.as_secs_f64() / measured.as_secs_f64().max(1e-9);
            let sum =
                |of: fn(&FileTotals) -> u64| part.files.iter().map(|kind| of(&files[*kind as usize])).sum();
            RoleOutcome {
                role: part.role,
                files: part.files.clone(),
                operations: sum(|file| file.operations),
                bytes: sum(|file| file.bytes),
                iops_waited: waited(happened.volume_iops_exceeded).min(1.0),
                throughput_waited: waited(happened.volume_throughput_exceeded).min(1.0),
                changes: balances.into_changes(),
            }
        };
        disk.parts().iter().enumerate().zip(balances).map(of).collect()
    }

    /// See [`ModelOutcome::late`].
    fn late(&self, view: &SecondView) -> u64 {
        let more = view.unfinished().saturating_sub(self.unfinished_before);
        if !self.closed && more as f64 > AT_ONCE * self.transactions as f64 { more } else { 0 }
    }

    pub(crate) fn finish(mut self, disk: &mut Disk, view: &SecondView, dirty_pages: u64) -> ModelOutcome {
        if self.spans.last().is_none_or(|span| span.end < self.end) {
            self.end_span(self.end, disk);
        }
        let measured = self.end.since(self.settle);
        let mut limits: Vec<(Limiter, u64)> =
            Limiter::ALL.into_iter().zip(self.limits).filter(|(_, seconds)| *seconds > 0).collect();
        limits.sort_by_key(|(_, seconds)| std::cmp::Reverse(*seconds));
        let mut files = disk.totals();
        for (file, before) in files.iter_mut().zip(self.files_before) {
            file.ios -= before.ios;
            file.operations -= before.operations;
            file.bytes -= before.bytes;
        }
        let volumes = self.volumes(disk, &files, measured);
        ModelOutcome {
            measured,
            transactions: self.transactions,
            late: self.late(view),
            latency: self.latency,
            files,
            limits,
            processors_busy: (view.busy_seconds - self.busy_before)
                / measured.as_secs_f64().max(1e-9)
                / view.vcpus,
            redo_waits: self.redo_waits,
            page_waits: self.page_waits,
            page_cache_reads: self.page_cache_reads - self.page_cache_before,
            dirty_pages,
            unpurged: 0,
            volumes,
            spans: self.spans,
        }
    }
}
