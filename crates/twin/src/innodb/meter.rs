//! What a run measures: transactions, latencies, what limits, and credits over time.

use ebbtide_volume::{Nanos, Stats};
use hdrhistogram::Histogram;

use super::disk::{Disk, FileKind, FileTotals};
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
}

impl Limiter {
    /// All of them.
    pub const ALL: [Self; 11] = [
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
    ];

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
    /// Burst credits left at its end, 0 to 1; none without credits.
    pub credit_share: Option<f64>,
}

/// What a run did.
#[derive(Debug, Clone)]
pub struct ModelOutcome {
    /// Time that was measured: the run without what was left to settle.
    pub measured: Nanos,
    /// Transactions finished in it.
    pub transactions: u64,
    /// Their latencies, nanoseconds.
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
    /// Pages dirty at the end.
    pub dirty_pages: u64,
    /// Transactions that purge had not come to at the end.
    pub unpurged: u64,
    /// When burst credits ended and came back, since the start of the run.
    pub changes: Vec<BalanceChange>,
    /// The whole run, in at most 240 spans.
    pub spans: Vec<Span>,
}

impl ModelOutcome {
    /// Transactions a second.
    #[must_use]
    pub fn tps(&self) -> f64 {
        self.transactions as f64 / self.measured.as_secs_f64().max(1e-9)
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
    limits: [u64; 11],
    balances: Balances,
    spans: Vec<Span>,
    span: Nanos,
    span_end: Nanos,
    span_start: (u64, [FileTotals; 5]),
    finished: u64,
    last: Option<(Stats, f64, ClientTime, u64)>,
    /// Waits counted over the whole run.
    pub(crate) redo_waits: u64,
    pub(crate) page_waits: u64,
}

/// What is looked at each second.
pub(crate) struct SecondView {
    pub(crate) busy_seconds: f64,
    pub(crate) vcpus: f64,
    pub(crate) clients: ClientTime,
    /// Transactions that wait for a client, in an open loop.
    pub(crate) backlog: usize,
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
            limits: [0; 11],
            balances: Balances::new(disk.volume(), disk.instance()),
            spans: Vec::new(),
            span,
            span_end: span,
            span_start: (0, [FileTotals::default(); 5]),
            finished: 0,
            last: None,
            redo_waits: 0,
            page_waits: 0,
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
        self.balances.look(disk.volume(), disk.instance(), now);
        let stats = disk.stats(now);
        if let Some(last) = self.last
            && now > self.settle
        {
            let limiter = self.judge(&last, &stats, view);
            self.limits[limiter as usize] += 1;
        }
        if now <= self.settle {
            self.files_before = disk.totals();
            self.busy_before = view.busy_seconds;
        }
        self.last = Some((stats, view.busy_seconds, view.clients, self.finished));
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
            credit_share: disk.volume().credit_share(now),
        });
        self.span_start = (self.finished, totals);
    }

    /// What limited the second that has passed.
    fn judge(&self, last: &(Stats, f64, ClientTime, u64), stats: &Stats, view: &SecondView) -> Limiter {
        let second = stats.at.since(last.0.at).as_secs_f64().max(1e-9);
        let share = |now: Nanos, before: Nanos| now.since(before).as_secs_f64() / second;
        let waits = [
            (share(stats.volume_iops_exceeded, last.0.volume_iops_exceeded), Limiter::VolumeIops),
            (
                share(stats.volume_throughput_exceeded, last.0.volume_throughput_exceeded),
                Limiter::VolumeThroughput,
            ),
            (share(stats.instance_iops_exceeded, last.0.instance_iops_exceeded), Limiter::InstanceIops),
            (
                share(stats.instance_throughput_exceeded, last.0.instance_throughput_exceeded),
                Limiter::InstanceThroughput,
            ),
        ];
        let busy = (view.busy_seconds - last.1) / second / view.vcpus;
        let time = view.clients.since(last.2);
        let of_clients = |time: f64| time / 1e9 / second / self.clients.max(1.0);
        if !self.closed && view.backlog == 0 {
            return Limiter::Load;
        }
        let most = waits.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, Limiter::Load));
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
        ModelOutcome {
            measured,
            transactions: self.transactions,
            latency: self.latency,
            files,
            limits,
            processors_busy: (view.busy_seconds - self.busy_before)
                / measured.as_secs_f64().max(1e-9)
                / view.vcpus,
            redo_waits: self.redo_waits,
            page_waits: self.page_waits,
            dirty_pages,
            unpurged: 0,
            changes: self.balances.into_changes(),
            spans: self.spans,
        }
    }
}
