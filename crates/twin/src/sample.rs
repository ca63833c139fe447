//! What a run measures: intervals of virtual time, and totals.

use std::ops::ControlFlow;

use ebbtide_volume::{Array, Instance, Nanos, Op, Stats};

use crate::percentiles::Percentiles;

/// One interval of virtual time on one volume: what completed in it.
///
/// A completion at the very end of an interval belongs to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// When it begins.
    pub start: Nanos,
    /// When it ends.
    pub end: Nanos,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Median latency of reads and writes; none where none completed.
    pub p50: Option<Nanos>,
    /// 99th percentile of the latency.
    pub p99: Option<Nanos>,
    /// Mean number of reads and writes in flight.
    pub queue: f64,
    /// Share of the I/O's time (0 to 1) that was waiting for a limit rather than service.
    pub throttled_share: f64,
    /// Share of the interval (0 to 1) in which I/O waited for the volume's IOPS limit.
    pub volume_iops_exceeded: f64,
    /// The same for the volume's throughput limit.
    pub volume_throughput_exceeded: f64,
    /// The same for the instance's IOPS limit.
    pub instance_iops_exceeded: f64,
    /// The same for the instance's throughput limit.
    pub instance_throughput_exceeded: f64,
    /// Whether some burst credits, the volume's or the instance's, have ended and are not back.
    pub credits_ended: bool,
    /// Share of the volume's burst credits left at the end; none without credits.
    pub credit_share: Option<f64>,
    /// Share of the instance's I/O credits left at the end; none without.
    pub instance_io_share: Option<f64>,
    /// Share of the instance's byte credits left at the end; none without.
    pub instance_byte_share: Option<f64>,
}

impl Interval {
    /// Its length.
    #[must_use]
    pub const fn span(&self) -> Nanos {
        self.end.since(self.start)
    }

    /// Operations a second that completed.
    #[must_use]
    pub fn iops(&self) -> f64 {
        per_second(self.reads + self.writes, self.span())
    }

    /// Reads a second that completed.
    #[must_use]
    pub fn read_iops(&self) -> f64 {
        per_second(self.reads, self.span())
    }

    /// Writes a second that completed.
    #[must_use]
    pub fn write_iops(&self) -> f64 {
        per_second(self.writes, self.span())
    }

    /// Bytes a second that completed.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        per_second(self.read_bytes + self.write_bytes, self.span())
    }
}

fn per_second(count: u64, span: Nanos) -> f64 {
    if span == Nanos::ZERO { 0.0 } else { count as f64 / span.as_secs_f64() }
}

/// Receives a run's intervals as virtual time passes.
pub trait Observer {
    /// An interval of a volume (its number in the run) has ended; `latencies` are those of its
    /// reads and writes. A break gives the run up.
    fn interval(&mut self, volume: usize, interval: &Interval, latencies: &Percentiles) -> ControlFlow<()>;
}

/// Reads, or writes, of a whole run.
#[derive(Debug, Clone, Default)]
pub struct OpTotals {
    /// Completed operations.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Sum of latencies in nanoseconds.
    pub latency_ns: u128,
    /// The part of it that was waiting for a limit.
    pub throttled_ns: u128,
    /// Latencies.
    pub percentiles: Percentiles,
}

impl OpTotals {
    fn record(&mut self, done: &Done) {
        self.ios += 1;
        self.bytes += u64::from(done.len);
        self.latency_ns += u128::from(done.latency.0);
        self.throttled_ns += u128::from(done.throttled.0);
        self.percentiles.record(done.latency);
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.latency_ns += other.latency_ns;
        self.throttled_ns += other.throttled_ns;
        self.percentiles.add(&other.percentiles);
    }

    /// Mean latency; none without I/O.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        let mean = self.latency_ns.checked_div(u128::from(self.ios))?;
        Some(Nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

/// What a job, or all jobs together, did on a volume.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Reads.
    pub read: OpTotals,
    /// Writes.
    pub write: OpTotals,
    /// Completed flushes.
    pub flushes: u64,
}

impl Totals {
    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.read.add(&other.read);
        self.write.add(&other.write);
        self.flushes += other.flushes;
    }

    /// Reads and writes together.
    #[must_use]
    pub fn all(&self) -> OpTotals {
        let mut all = self.read.clone();
        all.add(&self.write);
        all
    }
}

/// One completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) op: Op,
    pub(crate) len: u32,
    pub(crate) latency: Nanos,
    pub(crate) throttled: Nanos,
}

/// Measures one volume.
#[derive(Debug)]
pub(crate) struct IntervalSampler {
    start: Nanos,
    latencies: Percentiles,
    counts: Counts,
    queue: u64,
    queue_changed: Nanos,
    before: Stats,
    jobs: Vec<Totals>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    latency_ns: u128,
    throttled_ns: u128,
    /// Integral of the queue length over time.
    queue_ns: u128,
}

impl IntervalSampler {
    pub(crate) fn new(jobs: usize, volume: &mut Array) -> Self {
        Self {
            start: Nanos::ZERO,
            latencies: Percentiles::default(),
            counts: Counts::default(),
            queue: 0,
            queue_changed: Nanos::ZERO,
            before: volume.stats(Nanos::ZERO),
            jobs: vec![Totals::default(); jobs],
        }
    }

    pub(crate) fn submitted(&mut self, now: Nanos) {
        self.queue_moves(now);
        self.queue += 1;
    }

    pub(crate) fn completed(&mut self, job: usize, done: &Done, now: Nanos) {
        let totals = &mut self.jobs[job];
        if done.op == Op::Flush {
            totals.flushes += 1;
            return;
        }
        self.queue_moves(now);
        self.queue -= 1;
        let counts = &mut self.counts;
        if done.op == Op::Read {
            counts.reads += 1;
            counts.read_bytes += u64::from(done.len);
            self.jobs[job].read.record(done);
        } else {
            counts.writes += 1;
            counts.write_bytes += u64::from(done.len);
            self.jobs[job].write.record(done);
        }
        self.counts.latency_ns += u128::from(done.latency.0);
        self.counts.throttled_ns += u128::from(done.throttled.0);
        self.latencies.record(done.latency);
    }

    fn queue_moves(&mut self, now: Nanos) {
        self.counts.queue_ns += u128::from(self.queue) * u128::from(now.since(self.queue_changed).0);
        self.queue_changed = now;
    }

    /// Ends the interval at `now` and hands it on; nothing where it has no length.
    pub(crate) fn end_interval(
        &mut self,
        number: usize,
        volume: &mut Array,
        instance: Option<&Instance>,
        credits_ended: bool,
        now: Nanos,
        observer: &mut dyn Observer,
    ) -> ControlFlow<()> {
        if now <= self.start {
            return ControlFlow::Continue(());
        }
        self.queue_moves(now);
        let stats = volume.stats(now);
        let interval = Interval { credits_ended, ..self.interval(&stats, instance, now) };
        observer.interval(number, &interval, &self.latencies)?;
        self.latencies.clear();
        self.counts = Counts::default();
        self.start = now;
        self.before = stats;
        ControlFlow::Continue(())
    }

    fn interval(&self, stats: &Stats, instance: Option<&Instance>, now: Nanos) -> Interval {
        let (counts, happened) = (&self.counts, stats.since(&self.before));
        let span = now.since(self.start);
        let exceeded = |waited: Nanos| (waited.0 as f64 / span.0 as f64).min(1.0);
        Interval {
            start: self.start,
            end: now,
            reads: counts.reads,
            writes: counts.writes,
            read_bytes: counts.read_bytes,
            write_bytes: counts.write_bytes,
            p50: self.latencies.at(0.50),
            p99: self.latencies.at(0.99),
            queue: counts.queue_ns as f64 / span.0 as f64,
            throttled_share: counts.throttled_ns as f64 / (counts.latency_ns as f64).max(1.0),
            volume_iops_exceeded: exceeded(happened.volume_iops_exceeded),
            volume_throughput_exceeded: exceeded(happened.volume_throughput_exceeded),
            instance_iops_exceeded: exceeded(happened.instance_iops_exceeded),
            instance_throughput_exceeded: exceeded(happened.instance_throughput_exceeded),
            credits_ended: false,
            credit_share: happened.credit_share,
            instance_io_share: instance.and_then(|instance| instance.io_balance(now)),
            instance_byte_share: instance.and_then(|instance| instance.byte_balance(now)),
        }
    }

    /// Reads and writes in flight.
    pub(crate) const fn queue(&self) -> u64 {
        self.queue
    }

    pub(crate) fn into_totals(self) -> Vec<Totals> {
        self.jobs
    }
}
