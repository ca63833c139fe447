//! What a volume or an instance did in one minute, as counters that can be added up, and as a point.

use std::sync::LazyLock;

use ebbtide_volume::{MinuteMetrics, Nanos, OpStats, Stats, VolumeInterval};

use crate::layout::{Aggregate, Layout, Number, Value};

/// Shares of the burst credits that an instance has left, 0 to 1; none where it sustains its maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Balances {
    /// Of operations (CloudWatch `EBSIOBalance%`).
    pub io: Option<f64>,
    /// Of bytes (CloudWatch `EBSByteBalance%`).
    pub bytes: Option<f64>,
}

/// A part of a minute, or all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct VolumeMinute {
    /// Of a volume. An instance's own minute has the length alone.
    pub counters: VolumeInterval,
    /// Of an instance: what it had left when that was last known in the minute.
    pub balances: Balances,
}

/// The columns of a volume's points, times in nanoseconds. Chunks of before version 4 of the file have these in this order, so
/// new ones come at the end.
const COLUMNS: [(&str, Aggregate, Number); 19] = {
    use Aggregate::{Latest, Sum};
    use Number::{Real, Whole};
    [
        ("span", Sum, Whole),
        ("read_ops", Sum, Whole),
        ("read_bytes", Sum, Whole),
        ("read_time", Sum, Whole),
        ("write_ops", Sum, Whole),
        ("write_bytes", Sum, Whole),
        ("write_time", Sum, Whole),
        ("consumed_ops", Sum, Whole),
        ("queue", Latest, Whole),
        ("queue_time", Sum, Whole),
        // What is left of the span without the idle time: 0 without I/O, whatever the length of the minute.
        ("busy_time", Sum, Whole),
        ("volume_iops_exceeded", Sum, Whole),
        ("volume_throughput_exceeded", Sum, Whole),
        ("instance_iops_exceeded", Sum, Whole),
        ("instance_throughput_exceeded", Sum, Whole),
        ("credit_share", Latest, Real),
        ("iops_rate", Latest, Whole),
        ("balance_io", Latest, Real),
        ("balance_bytes", Latest, Real),
    ]
};

/// The layout of the points of volumes and instances.
pub(crate) static LAYOUT: LazyLock<Layout> = LazyLock::new(|| Layout::new(COLUMNS));

impl VolumeMinute {
    /// What happened between two moments of the same attachment, in requests as CloudWatch counts them.
    #[must_use]
    pub fn between(earlier: &Stats, later: &Stats) -> Self {
        let happened = later.since(earlier).as_device_requests();
        // What is not stored is not there before it is stored either.
        let growth = Stats {
            flush_ops: 0,
            discard_ops: 0,
            read_latency: Default::default(),
            write_latency: Default::default(),
            ..*happened
        };
        Self { counters: VolumeInterval::of_growth(growth), ..Self::default() }
    }

    /// The same minute with what followed in it.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        if later.is_empty() {
            return *self;
        }
        let balances = Balances {
            io: later.balances.io.or(self.balances.io),
            bytes: later.balances.bytes.or(self.balances.bytes),
        };
        Self { counters: self.counters.then(&later.counters), balances }
    }

    /// Whether it covers any time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counters.at == Nanos::ZERO
    }

    /// The metrics, by the model's own formulas.
    #[must_use]
    pub fn metrics(&self) -> MinuteMetrics {
        self.counters.metrics()
    }

    /// The values of a point, in the order of [`LAYOUT`].
    pub(crate) fn values(&self) -> Vec<Option<Value>> {
        let Self { counters: stats, balances } = self;
        let always = [
            stats.at.0,
            stats.read.ops,
            stats.read.bytes,
            stats.read.time.0,
            stats.write.ops,
            stats.write.bytes,
            stats.write.time.0,
            stats.consumed_ops,
            stats.queue,
            stats.queue_time.0,
            stats.at.0.wrapping_sub(stats.idle_time.0),
            stats.volume_iops_exceeded.0,
            stats.volume_throughput_exceeded.0,
            stats.instance_iops_exceeded.0,
            stats.instance_throughput_exceeded.0,
        ];
        let optional = [
            stats.credit_share.map(Value::Real),
            stats.iops_rate.map(Value::Whole),
            balances.io.map(Value::Real),
            balances.bytes.map(Value::Real),
        ];
        always.map(|number| Some(Value::Whole(number))).into_iter().chain(optional).collect()
    }

    /// The minute that a point of a layout has.
    #[must_use]
    pub fn read(layout: &Layout, values: &[Option<Value>]) -> Self {
        let value = |place: usize| layout.value(values, place, (COLUMNS[place].0, COLUMNS[place].1));
        let maybe = |place| match value(place) {
            Some(Value::Whole(number)) => Some(number),
            Some(Value::Real(_)) | None => None,
        };
        let share = |place| match value(place) {
            Some(Value::Real(share)) => Some(share),
            Some(Value::Whole(_)) | None => None,
        };
        let number = |place| maybe(place).unwrap_or_default();
        let time = |place| Nanos(number(place));
        let ops = |place| OpStats { ops: number(place), bytes: number(place + 1), time: time(place + 2) };
        let counters = VolumeInterval::of_growth(Stats {
            at: time(0),
            read: ops(1),
            write: ops(4),
            consumed_ops: number(7),
            queue: number(8),
            queue_time: time(9),
            idle_time: Nanos(number(0).wrapping_sub(number(10))),
            volume_iops_exceeded: time(11),
            volume_throughput_exceeded: time(12),
            instance_iops_exceeded: time(13),
            instance_throughput_exceeded: time(14),
            credit_share: share(15),
            iops_rate: maybe(16),
            ..Stats::default()
        });
        Self { counters, balances: Balances { io: share(17), bytes: share(18) } }
    }
}
