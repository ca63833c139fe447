//! Two readings of a volume or a device, and what happened between them.

use ebbtide_volume::{Nanos, OpStats, RateLimit, Stats};

use crate::exceeded::ExceededTrack;
use crate::reading::VolumeReading;
use crate::view::StorageView;

/// Over a longer gap two readings are not compared.
const LONGEST_GAP: Nanos = Nanos::from_secs(120);
/// Below this share of the credits the baseline is what is allowed.
const NO_CREDITS: f64 = 0.005;

/// The newest reading of a volume or a device.
#[derive(Debug, Default)]
pub(super) struct StorageTrack {
    last: Option<(String, Stats)>,
    step: Option<StorageStep>,
    exceeded: ExceededTrack,
    /// When the newest reading was taken, by the caller's clock.
    seen: Nanos,
}

/// What happened between two readings of one life of a subject.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StorageStep {
    pub(super) span: Nanos,
    read: OpStats,
    write: OpStats,
    queue_time: Nanos,
}

/// Names of the limits, in the order of [`ExceededTrack::shares`].
const CAUSES: [&str; 4] = ["volume IOPS", "volume throughput", "instance IOPS", "instance throughput"];

impl StorageTrack {
    /// Takes a reading. Returns whether it is a new one: one that was taken before changes nothing.
    pub(super) fn take(&mut self, elapsed: Nanos, reading: &VolumeReading) -> bool {
        let now = reading.stats;
        let is_same_life = |(epoch, _): &(String, Stats)| *epoch == reading.epoch;
        if self.last.as_ref().is_some_and(|last| is_same_life(last) && last.1.at == now.at) {
            return false;
        }
        let before = self.last.replace((reading.epoch.clone(), now)).filter(is_same_life);
        self.step = before.and_then(|(_, before)| StorageStep::between(&before, &now));
        self.exceeded.take(&reading.epoch, reading.exceeded());
        self.seen = elapsed;
        true
    }

    /// Writes into a view which share of the time requests waited for a limit, and for which one; nothing where that is not known.
    pub(super) fn show_throttling(&self, view: &mut StorageView) {
        let Some(shares) = self.exceeded.shares() else { return };
        let longest = shares.iter().zip(CAUSES).max_by(|first, second| first.0.total_cmp(second.0));
        let (share, cause) = longest.map_or((0.0, ""), |(share, cause)| (*share, cause));
        view.throttled = Some(share);
        view.limited_by = (share > 0.0).then(|| cause.to_owned());
    }

    /// What happened between the last two readings; None after the first one, and where the counters began again.
    pub(super) const fn step(&self) -> Option<&StorageStep> {
        self.step.as_ref()
    }

    /// When the newest reading was taken.
    pub(super) const fn seen(&self) -> Nanos {
        self.seen
    }
}

impl StorageStep {
    /// None where a counter fell, where no time passed, and after a long gap.
    fn between(before: &Stats, after: &Stats) -> Option<Self> {
        let grown = |before: Nanos, after: Nanos| after.0.checked_sub(before.0).map(Nanos);
        let ops = |before: &OpStats, after: &OpStats| {
            Some(OpStats {
                ops: after.ops.checked_sub(before.ops)?,
                bytes: after.bytes.checked_sub(before.bytes)?,
                time: grown(before.time, after.time)?,
            })
        };
        let span = grown(before.at, after.at).filter(|span| *span > Nanos::ZERO && *span <= LONGEST_GAP)?;
        Some(Self {
            span,
            read: ops(&before.read, &after.read)?,
            write: ops(&before.write, &after.write)?,
            queue_time: grown(before.queue_time, after.queue_time)?,
        })
    }

    /// Writes the figures of the interval into a view.
    pub(super) fn show(&self, view: &mut StorageView) {
        let seconds = self.span.as_secs_f64();
        let mean = |ops: &OpStats| (ops.ops > 0).then(|| ops.time.as_secs_f64() / ops.ops as f64);
        view.reads = Some(self.read.ops as f64 / seconds);
        view.writes = Some(self.write.ops as f64 / seconds);
        view.read_bytes = Some(self.read.bytes as f64 / seconds);
        view.written_bytes = Some(self.write.bytes as f64 / seconds);
        view.read_s = mean(&self.read);
        view.write_s = mean(&self.write);
        view.queue = Some(self.queue_time.as_secs_f64() / seconds);
    }
}

/// What a limit allows now: its ceiling while credits last.
pub(super) fn allowed(limit: RateLimit, credit_share: Option<f64>) -> f64 {
    let is_burst = limit.has_credits() && credit_share.is_none_or(|share| share > NO_CREDITS);
    if is_burst { limit.ceiling as f64 } else { limit.rate as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{Throttling, VolumeLimits};

    fn reading(epoch: &str, at_s: u64, ops: u64) -> VolumeReading {
        let read = OpStats { ops, bytes: ops * 4_096, time: Nanos::from_ms(ops) };
        let stats = Stats {
            at: Nanos::from_secs(at_s),
            read,
            volume_iops_exceeded: Nanos::from_ms(ops),
            ..Stats::default()
        };
        let limits = VolumeLimits::default();
        VolumeReading {
            name: "db".to_owned(),
            epoch: epoch.to_owned(),
            stats,
            throttling: Throttling::Counted,
            limits,
        }
    }

    #[test]
    fn what_grew_is_a_rate_and_a_reset_another_life_and_a_pause_are_gaps() {
        let mut track = StorageTrack::default();
        let mut reads = Vec::new();
        for (epoch, at_s, ops) in [
            ("1", 1, 100),
            ("1", 2, 300),
            // Reset.
            ("1", 3, 5),
            ("1", 4, 15),
            // Another life.
            ("2", 5, 1_000_000),
            ("2", 7, 1_000_100),
            // A pause.
            ("2", 500, 1_000_200),
            // A clock that went back.
            ("2", 400, 1_000_300),
        ] {
            assert!(track.take(Nanos::from_secs(at_s), &reading(epoch, at_s, ops)));
            let mut view = StorageView::default();
            if let Some(step) = track.step() {
                step.show(&mut view);
            }
            reads.push(view.reads);
        }
        assert_eq!(reads, [None, Some(200.0), None, Some(10.0), None, Some(50.0), None, None]);
    }

    #[test]
    fn a_reading_that_was_taken_before_changes_nothing() {
        let mut track = StorageTrack::default();
        track.take(Nanos::from_secs(1), &reading("1", 1, 0));
        track.take(Nanos::from_secs(2), &reading("1", 2, 500));
        let step = track.step().copied();
        assert!(!track.take(Nanos::from_secs(3), &reading("1", 2, 500)));
        assert_eq!((track.step().copied(), track.seen()), (step, Nanos::from_secs(2)));
    }

    #[test]
    fn the_limit_that_held_for_longest_is_named() {
        let mut track = StorageTrack::default();
        track.take(Nanos::from_secs(1), &reading("1", 1, 0));
        track.take(Nanos::from_secs(2), &reading("1", 2, 500));
        let mut view = StorageView::default();
        track.step().unwrap().show(&mut view);
        track.show_throttling(&mut view);
        assert_eq!((view.throttled, view.limited_by.as_deref()), (Some(0.5), Some("volume IOPS")));
        assert_eq!((view.read_s, view.write_s), (Some(0.001), None));
        // Pages of a device are read less often than its counters: the share stays, and one that is missing is no zero.
        let device = |at_s: u64, ops, throttling| {
            let VolumeReading { name, epoch, stats, limits, .. } = reading("1", at_s, ops);
            VolumeReading { name, epoch, stats, throttling, limits }
        };
        let shown = |track: &StorageTrack| {
            let mut view = StorageView::default();
            track.show_throttling(&mut view);
            view.throttled
        };
        let mut track = StorageTrack::default();
        for (at_s, ops, throttling, expected) in [
            (10, 1_000, Throttling::ReadAt(Nanos::from_secs(10)), None),
            (20, 6_000, Throttling::ReadAt(Nanos::from_secs(20)), Some(0.5)),
            (21, 6_000, Throttling::ReadAt(Nanos::from_secs(20)), Some(0.5)),
            (22, 6_000, Throttling::Unknown, None),
            (30, 9_000, Throttling::ReadAt(Nanos::from_secs(30)), Some(0.3)),
        ] {
            track.take(Nanos::from_secs(at_s), &device(at_s, ops, throttling));
            assert_eq!(shown(&track), expected, "at {at_s} s");
        }
    }

    #[test]
    fn a_burst_limit_is_its_ceiling_while_credits_last() {
        let limit = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
        assert_eq!(
            [Some(0.5), None, Some(0.0)].map(|share| allowed(limit, share)),
            [3_000.0, 3_000.0, 300.0]
        );
        assert_eq!(allowed(RateLimit::flat(3_000), None), 3_000.0);
    }
}
