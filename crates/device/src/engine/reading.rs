//! All that a live volume reports of itself, read at one moment.

use ebbtide_volume::{Credits, InstanceLimits, LoadProgress, Nanos, RateLimit, Stats, VolumeInterval};

use super::LiveVolume;
use crate::faults::{ActiveFaults, InjectedFaults};
use crate::lateness::LatenessTotals;

/// Counters of a volume. They only grow, except for the gauges in `stats`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct VolumeTotals {
    /// The model's counters.
    pub stats: Stats,
    /// How late the answers were.
    pub lateness: LatenessTotals,
    /// Requests that injected faults have changed.
    pub injected: InjectedFaults,
    /// Requests that failed because the host failed: its disk is full, or broken.
    pub host_errors: u64,
}

impl VolumeTotals {
    /// These counters with those of a later attachment, which began at zero. The gauges are the later ones.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        // Intervals add their lengths, and `at` is a moment here.
        let before = Stats { at: Nanos::ZERO, ..self.stats };
        let stats = VolumeInterval::of_growth(before).then(&VolumeInterval::of_growth(later.stats));
        Self {
            stats: *stats,
            lateness: self.lateness.combined(&later.lateness),
            injected: InjectedFaults {
                delayed: self.injected.delayed + later.injected.delayed,
                failed: self.injected.failed + later.injected.failed,
            },
            host_errors: self.host_errors + later.host_errors,
        }
    }
}

/// Makes times of the model grow that can step back.
///
/// The model knows in advance how long requests will wait for a limit, and takes back what is in the future: less than a service
/// time too much. A stall adds to the queue while it lasts, and the model does not know of it when it has ended.
#[derive(Debug, Default)]
pub(super) struct GrowingTimes {
    /// The longest that were read, in the order of [`GrowingTimes::exceeded`].
    longest: [Nanos; 4],
    /// The time of the queue that was read last, by the model.
    queue: Nanos,
    /// What stalls have added to the queue's time.
    stalled: Nanos,
}

impl GrowingTimes {
    fn apply(&mut self, stats: &mut Stats) {
        for (longest, time) in self.longest.iter_mut().zip(Self::exceeded(stats)) {
            *longest = (*longest).max(*time);
            *time = *longest;
        }
        self.stalled += self.queue.since(stats.queue_time);
        self.queue = stats.queue_time;
        stats.queue_time += self.stalled;
    }

    fn exceeded(stats: &mut Stats) -> [&mut Nanos; 4] {
        [
            &mut stats.volume_iops_exceeded,
            &mut stats.volume_throughput_exceeded,
            &mut stats.instance_iops_exceeded,
            &mut stats.instance_throughput_exceeded,
        ]
    }
}

/// A live volume at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeReading {
    /// Its counters.
    pub totals: VolumeTotals,
    /// Usable size, bytes.
    pub size_bytes: u64,
    /// The limit of operations a second; none: unlimited.
    pub iops_limit: Option<RateLimit>,
    /// The limit of bytes a second; none: unlimited.
    pub throughput_limit: Option<RateLimit>,
    /// Its burst credits; none without credits.
    pub credits: Option<Credits>,
    /// The limits of its instance; none without one.
    pub instance_limits: Option<InstanceLimits>,
    /// Shares of the instance's credits that are left, 0 to 1: of operations and of bytes. None without an instance; a share is
    /// none where the instance sustains its maximum.
    pub instance_balances: Option<(Option<f64>, Option<f64>)>,
    /// How far its snapshot is loaded; none where all was there from the beginning.
    pub loading: Option<LoadProgress>,
    /// The faults in force.
    pub faults: ActiveFaults,
    /// Whether a power cut or a stop has ended it.
    pub has_ended: bool,
}

impl LiveVolume {
    /// Reads everything, for metrics. The volume's lock is taken once, for some microseconds: nothing is allocated, and no
    /// block is looked at under it.
    #[must_use]
    pub fn reading(&self) -> VolumeReading {
        let core = &self.core;
        let (lateness, host_errors) = (core.lateness.totals(), core.failures.total());
        let (size_bytes, has_ended) = (core.size_bytes(), !core.is_live());
        let mut state = core.state.lock();
        let now = core.clock.now();
        let mut stats = state.stats(now);
        state.times.apply(&mut stats);
        let (model, array) = (&state.model, &state.model.array);
        VolumeReading {
            totals: VolumeTotals { stats, lateness, injected: state.injected, host_errors },
            size_bytes,
            iops_limit: array.iops_limit(),
            throughput_limit: array.throughput_limit(),
            credits: array.credits(now),
            instance_limits: model.instance_limits(),
            instance_balances: model.instance_balances(now),
            loading: array.load_progress(now),
            faults: state.faults.active(),
            has_ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::OpStats;

    use super::*;

    #[test]
    fn times_that_step_back_are_kept_and_those_of_a_queue_go_on_after_a_stall() {
        let mut times = GrowingTimes::default();
        let mut read = |exceeded_us: u64, queue_s: u64| {
            let mut stats = Stats {
                instance_iops_exceeded: Nanos::from_us(exceeded_us),
                queue_time: Nanos::from_secs(queue_s),
                ..Stats::default()
            };
            times.apply(&mut stats);
            (stats.instance_iops_exceeded.as_us(), stats.queue_time.0 / Nanos::SECOND.0)
        };
        assert_eq!(read(500, 10), (500, 10));
        // A stall of which the model knows nothing afterwards.
        assert_eq!(read(400, 70), (500, 70));
        assert_eq!(read(600, 11), (600, 70));
        assert_eq!(read(550, 13), (600, 72));
    }

    #[test]
    fn counters_go_on_over_attachments_and_gauges_are_the_later_ones() {
        let attachment = |at: u64, ops: u64, queue: u64| VolumeTotals {
            stats: Stats {
                at: Nanos(u64::MAX / 2 + at),
                write: OpStats { ops, bytes: 4096 * ops, time: Nanos::from_us(ops) },
                idle_time: Nanos::from_secs(at),
                volume_iops_exceeded: Nanos::from_secs(ops),
                queue,
                ..Stats::default()
            },
            host_errors: ops,
            ..VolumeTotals::default()
        };
        let mut both = attachment(10, 3, 7).then(&attachment(20, 5, 1));
        assert_eq!((both.stats.write.ops, both.stats.write.bytes, both.host_errors), (8, 8 * 4096, 8));
        assert_eq!(
            (both.stats.idle_time, both.stats.volume_iops_exceeded),
            (Nanos::from_secs(30), Nanos::from_secs(8))
        );
        assert_eq!((both.stats.queue, both.stats.at), (1, Nanos(u64::MAX / 2 + 20)));
        // Moments are not added: a third one would not fit.
        both = both.then(&attachment(30, 1, 0)).then(&attachment(40, 1, 0));
        assert_eq!(both.stats.write.ops, 10);
    }
}
