//! What a volume counts: everything that CloudWatch and the NVMe statistics page report.

use crate::{Nanos, Op};

/// Completed operations of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OpStats {
    /// Operations as the guest submitted them. CloudWatch's `VolumeReadOps` and `VolumeWriteOps` have [`SplitStats::ops`] more.
    pub ops: u64,
    /// Bytes moved (`VolumeReadBytes`, `VolumeWriteBytes`).
    pub bytes: u64,
    /// Sum of latencies. `VolumeTotalReadTime` and `VolumeTotalWriteTime` have [`SplitStats::time`] more.
    pub time: Nanos,
}

/// Requests of a device beyond the operations of its guest.
///
/// The device of an EBS volume takes at most 256 KiB in a request (`max_sectors_kb` of its NVMe device; 1 MiB is what an HDD
/// volume counts as one operation), so the kernel splits larger operations before CloudWatch counts them. A volume of ours takes
/// them whole: the pieces after the first are counted here, each with the latency of the whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SplitStats {
    /// Pieces after the first of each operation.
    pub ops: u64,
    /// Sum of their latencies.
    pub time: Nanos,
}

impl SplitStats {
    fn plus(self, other: Self) -> Self {
        Self { ops: self.ops + other.ops, time: self.time + other.time }
    }
}

/// Latencies in the 28 bins of the EBS NVMe statistics page: 0-1 us, then powers of two up to
/// 2^26 us and everything above.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LatencyHistogram {
    /// Completed operations by bin.
    pub bins: [u64; Self::BINS],
}

impl LatencyHistogram {
    /// Number of bins.
    pub const BINS: usize = 28;

    /// Bounds of a bin in microseconds, from inclusive to exclusive; the last one is open.
    #[must_use]
    pub const fn bounds_us(bin: usize) -> (u64, Option<u64>) {
        let low = if bin == 0 { 0 } else { 1 << (bin - 1) };
        (low, if bin + 1 < Self::BINS { Some(1 << bin) } else { None })
    }

    /// Counts one latency. It allocates nothing: the data path calls it.
    #[inline]
    pub const fn record(&mut self, latency: Nanos) {
        let us = latency.as_us();
        let bin = (u64::BITS - us.leading_zeros()) as usize;
        self.bins[if bin < Self::BINS { bin } else { Self::BINS - 1 }] += 1;
    }

    /// These latencies and those of another histogram.
    #[must_use]
    pub fn combined(&self, other: &Self) -> Self {
        Self { bins: core::array::from_fn(|bin| self.bins[bin] + other.bins[bin]) }
    }
}

/// Counters of a volume at one moment. They only grow, except for `queue`; the difference of two
/// is what happened between them: [`Stats::since`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// The moment that the counters are true for.
    pub at: Nanos,
    /// Completed reads.
    pub read: OpStats,
    /// Completed writes.
    pub write: OpStats,
    /// Pieces of completed reads that are larger than the device of an EBS volume takes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_split: SplitStats,
    /// The same of writes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_split: SplitStats,
    /// Completed flushes.
    pub flush_ops: u64,
    /// Completed discards.
    pub discard_ops: u64,
    /// Operations as the limits count them, after splitting and merging
    /// (`VolumeConsumedReadWriteOps`).
    pub consumed_ops: u64,
    /// Reads and writes that wait to complete (gauge, `VolumeQueueLength`).
    pub queue: u64,
    /// Integral of the queue length over time: its difference over a span, divided by the span, is
    /// the mean queue length.
    pub queue_time: Nanos,
    /// Time without any I/O in flight (`VolumeIdleTime`).
    pub idle_time: Nanos,
    /// Time in which I/O waited for the volume's IOPS limit.
    pub volume_iops_exceeded: Nanos,
    /// Time in which I/O waited for the volume's throughput limit.
    pub volume_throughput_exceeded: Nanos,
    /// Time in which I/O waited for the instance's IOPS limit.
    pub instance_iops_exceeded: Nanos,
    /// Time in which I/O waited for the instance's throughput limit.
    pub instance_throughput_exceeded: Nanos,
    /// Latencies of completed reads.
    pub read_latency: LatencyHistogram,
    /// Latencies of completed writes.
    pub write_latency: LatencyHistogram,
    /// Share of burst credits left, 0 to 1 (gauge, `BurstBalance`); none without credits.
    pub credit_share: Option<f64>,
    /// Operations a second that hold for ever (gauge); none where they are not limited.
    pub iops_rate: Option<u64>,
}

impl Stats {
    #[inline]
    pub(crate) fn completed(&mut self, op: Op, bytes: u32, latency: Nanos, unit_bytes: u32) {
        let (count, split, histogram) = match op {
            Op::Read => (&mut self.read, &mut self.read_split, &mut self.read_latency),
            Op::Write => (&mut self.write, &mut self.write_split, &mut self.write_latency),
            Op::Flush => {
                self.flush_ops += 1;
                return;
            }
            Op::Discard => {
                self.discard_ops += 1;
                return;
            }
        };
        count.ops += 1;
        count.bytes += u64::from(bytes);
        count.time += latency;
        histogram.record(latency);
        // Nearly all operations are one request: no division for them.
        if bytes > unit_bytes {
            let more = u64::from(bytes.div_ceil(unit_bytes) - 1);
            split.ops += more;
            split.time += Nanos(latency.0.saturating_mul(more));
        }
    }

    /// Adds another volume's counters, for an array. The gauge `credit_share` keeps the lower of
    /// the two, since the emptiest member decides what a stripe can do; `idle_time` likewise.
    #[must_use]
    pub fn combined(&self, other: &Self) -> Self {
        let ops = |a: OpStats, b: OpStats| OpStats {
            ops: a.ops + b.ops,
            bytes: a.bytes + b.bytes,
            time: a.time + b.time,
        };
        Self {
            at: self.at.max(other.at),
            read: ops(self.read, other.read),
            write: ops(self.write, other.write),
            read_split: self.read_split.plus(other.read_split),
            write_split: self.write_split.plus(other.write_split),
            flush_ops: self.flush_ops + other.flush_ops,
            discard_ops: self.discard_ops + other.discard_ops,
            consumed_ops: self.consumed_ops + other.consumed_ops,
            queue: self.queue + other.queue,
            queue_time: self.queue_time + other.queue_time,
            idle_time: self.idle_time.min(other.idle_time),
            volume_iops_exceeded: self.volume_iops_exceeded.max(other.volume_iops_exceeded),
            volume_throughput_exceeded: self.volume_throughput_exceeded.max(other.volume_throughput_exceeded),
            instance_iops_exceeded: self.instance_iops_exceeded.max(other.instance_iops_exceeded),
            instance_throughput_exceeded: self
                .instance_throughput_exceeded
                .max(other.instance_throughput_exceeded),
            read_latency: self.read_latency.combined(&other.read_latency),
            write_latency: self.write_latency.combined(&other.write_latency),
            credit_share: match (self.credit_share, other.credit_share) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            iops_rate: self.iops_rate.zip(other.iops_rate).map(|(a, b)| a + b),
        }
    }
}
