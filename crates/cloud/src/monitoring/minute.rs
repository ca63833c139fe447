//! What a volume or an instance did in one minute, as counters that can be added up.

use ebbtide_control::{InstanceBalances, MinuteMetrics, Nanos, OpStats, Stats};

/// A part of a minute, or all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Minute {
    /// Of a volume: the difference of two moments. `at` is the span that they cover. Gauges (queue, credits, sustained rate)
    /// are those of the end. An instance's own minute has the span alone.
    pub(super) counters: Stats,
    /// Of an instance: what it had left when that was last known in the minute.
    pub(super) balances: InstanceBalances,
}

/// What an instance and all its volumes together did in one minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct InstanceMinute {
    /// The volumes' counters; zero without volumes.
    pub(super) volumes: MinuteMetrics,
    /// Whether I/O of one of the volumes was stalled.
    pub(super) is_stalled: bool,
    /// What a running instance had left; none where it did not run.
    pub(super) balances: Option<InstanceBalances>,
}

impl Minute {
    /// What happened between two moments of the same attachment, in requests as CloudWatch counts them.
    pub(super) fn between(earlier: &Stats, later: &Stats) -> Self {
        let happened = later.since(earlier).as_device_requests();
        // CloudWatch has none of the rest.
        let counters = Stats {
            flush_ops: 0,
            discard_ops: 0,
            read_latency: Default::default(),
            write_latency: Default::default(),
            ..happened
        };
        Self { counters, ..Self::default() }
    }

    /// The same minute with what followed in it: counters add up, gauges are the later ones.
    #[must_use]
    pub(super) fn then(&self, later: &Self) -> Self {
        let (a, b) = (&self.counters, &later.counters);
        if b.at == Nanos::ZERO {
            return *self;
        }
        let ops = |a: OpStats, b: OpStats| OpStats {
            ops: a.ops + b.ops,
            bytes: a.bytes + b.bytes,
            time: a.time + b.time,
        };
        let counters = Stats {
            at: a.at + b.at,
            read: ops(a.read, b.read),
            write: ops(a.write, b.write),
            consumed_ops: a.consumed_ops + b.consumed_ops,
            queue: b.queue,
            queue_time: a.queue_time + b.queue_time,
            idle_time: a.idle_time + b.idle_time,
            volume_iops_exceeded: a.volume_iops_exceeded + b.volume_iops_exceeded,
            volume_throughput_exceeded: a.volume_throughput_exceeded + b.volume_throughput_exceeded,
            instance_iops_exceeded: a.instance_iops_exceeded + b.instance_iops_exceeded,
            instance_throughput_exceeded: a.instance_throughput_exceeded + b.instance_throughput_exceeded,
            credit_share: b.credit_share,
            iops_rate: b.iops_rate,
            ..Stats::default()
        };
        let balances = InstanceBalances {
            io: later.balances.io.or(self.balances.io),
            bytes: later.balances.bytes.or(self.balances.bytes),
        };
        Self { counters, balances }
    }

    /// Whether it covers any time.
    pub(super) fn is_empty(&self) -> bool {
        self.counters.at == Nanos::ZERO
    }

    /// The metrics, by the model's own formulas.
    pub(super) fn metrics(&self) -> MinuteMetrics {
        MinuteMetrics::between(&Stats::default(), &self.counters)
    }
}
