//! What a volume did in an interval: one type with one set of units, and what CloudWatch makes of it.

use core::ops::Deref;

use crate::{LatencyHistogram, Nanos, OpStats, SplitStats, Stats};

/// What a volume did in an interval: operations, bytes and nanoseconds, as it counts them.
///
/// It reads as [`Stats`] does. Counters are what they have grown by, `at` is the length of the interval, and the gauges `queue`,
/// `credit_share` and `iops_rate` are those of its end. [`Stats::since`] makes it of two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct VolumeInterval(Stats);

impl Deref for VolumeInterval {
    type Target = Stats;

    fn deref(&self) -> &Stats {
        &self.0
    }
}

impl Stats {
    /// What happened since an earlier moment of the same volume. A counter that went back, as that of another attachment does, gives
    /// zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> VolumeInterval {
        let ops = |later: OpStats, earlier: OpStats| OpStats {
            ops: later.ops.saturating_sub(earlier.ops),
            bytes: later.bytes.saturating_sub(earlier.bytes),
            time: later.time.since(earlier.time),
        };
        let split = |later: SplitStats, earlier: SplitStats| SplitStats {
            ops: later.ops.saturating_sub(earlier.ops),
            time: later.time.since(earlier.time),
        };
        let bins = |later: LatencyHistogram, earlier: LatencyHistogram| LatencyHistogram {
            bins: core::array::from_fn(|i| later.bins[i].saturating_sub(earlier.bins[i])),
        };
        VolumeInterval(Self {
            at: self.at.since(earlier.at),
            read: ops(self.read, earlier.read),
            write: ops(self.write, earlier.write),
            read_split: split(self.read_split, earlier.read_split),
            write_split: split(self.write_split, earlier.write_split),
            flush_ops: self.flush_ops.saturating_sub(earlier.flush_ops),
            discard_ops: self.discard_ops.saturating_sub(earlier.discard_ops),
            consumed_ops: self.consumed_ops.saturating_sub(earlier.consumed_ops),
            queue: self.queue,
            queue_time: self.queue_time.since(earlier.queue_time),
            idle_time: self.idle_time.since(earlier.idle_time),
            volume_iops_exceeded: self.volume_iops_exceeded.since(earlier.volume_iops_exceeded),
            volume_throughput_exceeded: self
                .volume_throughput_exceeded
                .since(earlier.volume_throughput_exceeded),
            instance_iops_exceeded: self.instance_iops_exceeded.since(earlier.instance_iops_exceeded),
            instance_throughput_exceeded: self
                .instance_throughput_exceeded
                .since(earlier.instance_throughput_exceeded),
            read_latency: bins(self.read_latency, earlier.read_latency),
            write_latency: bins(self.write_latency, earlier.write_latency),
            credit_share: self.credit_share,
            iops_rate: self.iops_rate,
        })
    }
}

impl VolumeInterval {
    /// An interval whose growth was kept elsewhere, such as in a file. `growth.at` is its length.
    #[must_use]
    pub const fn of_growth(growth: Stats) -> Self {
        Self(growth)
    }

    /// Its length, seconds; at least one nanosecond, so that rates are finite.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.at.as_secs_f64().max(1e-9)
    }

    /// So many in the interval as a rate, a second.
    #[must_use]
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds()
    }

    /// Reads and writes.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.read.ops + self.write.ops
    }

    /// Bytes read and written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.read.bytes + self.write.bytes
    }

    /// Mean number of reads and writes that waited to complete.
    #[must_use]
    pub fn mean_queue(&self) -> f64 {
        self.queue_time.as_secs_f64() / self.seconds()
    }

    /// Share of the interval (0 to 1) that a time of it is, such as that in which I/O waited for a limit.
    #[must_use]
    pub fn share(&self, time: Nanos) -> f64 {
        (time.as_secs_f64() / self.seconds()).min(1.0)
    }

    /// The same counters with operations and their times as the device of an EBS volume has them, and CloudWatch counts them:
    /// in pieces of what it takes at most.
    #[must_use]
    pub fn as_device_requests(&self) -> Self {
        let whole = |ops: OpStats, split: SplitStats| OpStats {
            ops: ops.ops + split.ops,
            time: ops.time + split.time,
            ..ops
        };
        Self(Stats {
            read: whole(self.read, self.read_split),
            write: whole(self.write, self.write_split),
            queue_time: self.queue_time + self.read_split.time + self.write_split.time,
            read_split: SplitStats::default(),
            write_split: SplitStats::default(),
            ..self.0
        })
    }

    /// The interval of several volumes together: counters add up, as those of the members of an array do.
    #[must_use]
    pub fn together(&self, other: &Self) -> Self {
        Self(self.combined(other))
    }

    /// The same volume's interval with the one that followed it: counters add up, gauges are the later ones.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        if later.at == Nanos::ZERO {
            return *self;
        }
        // The shares of members do not matter here: both are of the same volume.
        let sum = self.combined(later);
        Self(Stats {
            at: self.at + later.at,
            queue: later.queue,
            idle_time: self.idle_time + later.idle_time,
            volume_iops_exceeded: self.volume_iops_exceeded + later.volume_iops_exceeded,
            volume_throughput_exceeded: self.volume_throughput_exceeded + later.volume_throughput_exceeded,
            instance_iops_exceeded: self.instance_iops_exceeded + later.instance_iops_exceeded,
            instance_throughput_exceeded: self.instance_throughput_exceeded
                + later.instance_throughput_exceeded,
            credit_share: later.credit_share,
            iops_rate: later.iops_rate,
            ..sum
        })
    }

    /// The interval as CloudWatch would publish it.
    ///
    /// AWS sets an exceeded check where "any second within the minute consistently exceeds" the
    /// limit, without a definition of consistently; here it is a second's worth of waiting.
    #[must_use]
    pub fn metrics(&self) -> MinuteMetrics {
        let happened = self.as_device_requests();
        let span = happened.seconds();
        let (reads, writes) = (happened.read.ops, happened.write.ops);
        let bytes = happened.read.bytes + happened.write.bytes;
        let consumed = happened.consumed_ops;
        let read_time = happened.read.time.as_secs_f64();
        let write_time = happened.write.time.as_secs_f64();
        let mean_ms = |time: f64, ops: u64| if ops == 0 { 0.0 } else { time / ops as f64 * 1e3 };
        let check = |waited: Nanos| u8::from(waited >= Nanos::SECOND);
        MinuteMetrics {
            volume_read_ops: reads,
            volume_write_ops: writes,
            volume_read_bytes: happened.read.bytes,
            volume_write_bytes: happened.write.bytes,
            volume_total_read_time: read_time,
            volume_total_write_time: write_time,
            volume_idle_time: happened.idle_time.as_secs_f64(),
            volume_queue_length: happened.queue_time.as_secs_f64() / span,
            burst_balance: happened.credit_share.map(|share| share * 100.0),
            volume_consumed_read_write_ops: consumed,
            volume_throughput_percentage: happened
                .iops_rate
                .map(|rate| consumed as f64 / span / rate as f64 * 100.0),
            volume_avg_read_latency: mean_ms(read_time, reads),
            volume_avg_write_latency: mean_ms(write_time, writes),
            volume_avg_iops: (reads + writes) as f64 / span,
            volume_avg_throughput: bytes as f64 / 1024.0 / span,
            volume_iops_exceeded_check: check(happened.volume_iops_exceeded),
            volume_throughput_exceeded_check: check(happened.volume_throughput_exceeded),
            volume_stalled_io_check: u8::from(
                reads + writes == 0 && happened.queue > 0 && happened.idle_time == Nanos::ZERO,
            ),
            instance_ebs_iops_exceeded_check: check(happened.instance_iops_exceeded),
            instance_ebs_throughput_exceeded_check: check(happened.instance_throughput_exceeded),
        }
    }
}

/// One period of a volume as CloudWatch would publish it (namespace `AWS/EBS`; EBS user guide,
/// `using_cloudwatch_ebs`).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "PascalCase"))]
pub struct MinuteMetrics {
    /// Reads completed, in requests of what the device of an EBS volume takes at most: see [`SplitStats`].
    pub volume_read_ops: u64,
    /// Writes completed, in the same requests.
    pub volume_write_ops: u64,
    /// Bytes read.
    pub volume_read_bytes: u64,
    /// Bytes written.
    pub volume_write_bytes: u64,
    /// Sum of read latencies in seconds.
    pub volume_total_read_time: f64,
    /// Sum of write latencies in seconds.
    pub volume_total_write_time: f64,
    /// Seconds without any I/O.
    pub volume_idle_time: f64,
    /// Mean number of reads and writes that waited to complete.
    pub volume_queue_length: f64,
    /// Percent of credits left at the end; none without credits.
    pub burst_balance: Option<f64>,
    /// Operations in capacity units.
    pub volume_consumed_read_write_ops: u64,
    /// Operations in capacity units as a percentage of the sustained rate; none without one. AWS
    /// publishes it for io1 and io2 alone.
    pub volume_throughput_percentage: Option<f64>,
    /// Mean read latency in ms; 0 without reads.
    pub volume_avg_read_latency: f64,
    /// Mean write latency in ms; 0 without writes.
    pub volume_avg_write_latency: f64,
    /// Mean IOPS driven.
    #[cfg_attr(feature = "serde", serde(rename = "VolumeAvgIOPS"))]
    pub volume_avg_iops: f64,
    /// Mean throughput driven in KiB/s.
    pub volume_avg_throughput: f64,
    /// 1 where I/O waited for the volume's IOPS limit for a second or more of the period.
    #[cfg_attr(feature = "serde", serde(rename = "VolumeIOPSExceededCheck"))]
    pub volume_iops_exceeded_check: u8,
    /// 1 where I/O waited for the volume's throughput limit for a second or more of the period.
    pub volume_throughput_exceeded_check: u8,
    /// 1 where I/O was in flight for the whole period and none completed.
    #[cfg_attr(feature = "serde", serde(rename = "VolumeStalledIOCheck"))]
    pub volume_stalled_io_check: u8,
    /// 1 where I/O waited for the instance's IOPS limit for a second or more of the period.
    #[cfg_attr(feature = "serde", serde(rename = "InstanceEBSIOPSExceededCheck"))]
    pub instance_ebs_iops_exceeded_check: u8,
    /// 1 where I/O waited for the instance's throughput limit for a second or more of the period.
    #[cfg_attr(feature = "serde", serde(rename = "InstanceEBSThroughputExceededCheck"))]
    pub instance_ebs_throughput_exceeded_check: u8,
}
