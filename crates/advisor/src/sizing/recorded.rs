//! What a record says of the volume that carried the load. It takes precedence over what the model says of that volume.

use ebbtide_catalog::Resolved;
use ebbtide_observe::VolumeLoad;
use ebbtide_volume::Nanos;

use super::carry::{Limit, Service, quantile};
use super::demand::{Demand, whole};
use super::little::measured_times_s;
use super::throttled::{NO_CREDITS, SLOW, Throttled, median_s};

/// What a record says of the volume that carried the load.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedPast {
    /// Share of the time (0 to 1) that was throttled, as far as can be known.
    pub throttled: f64,
    /// The same by each limit, in the order of [`Limit::ALL`].
    pub by: [f64; 6],
    /// Its burst credits; None where they were not recorded.
    pub credits: Option<RecordedCredits>,
    /// Empty where the latency of too many requests is not known.
    intervals: Vec<TimedInterval>,
    /// Seconds of the whole record.
    seconds: f64,
}

/// How long the I/O of an interval took.
#[derive(Debug, Clone, PartialEq)]
struct TimedInterval {
    seconds: f64,
    /// Reads and writes: their mean latency, s, and their number.
    sides: Vec<(f64, f64)>,
}

/// Burst credits of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordedCredits {
    /// The lowest, share of 0 to 1.
    pub lowest: f64,
    /// Share of the time (0 to 1) in which they were at zero.
    pub at_zero: f64,
    /// Start of the first interval with none, on the clock of the load, s; None where they lasted.
    pub first_zero_s: Option<f64>,
    /// The same since the start of the load.
    pub zero_after_s: Option<f64>,
}

/// How long I/O took by a record: its means where they show a wait, and the service times of the volume elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedLatency {
    /// Means that show a wait, with the share of all requests that have it.
    slow: Vec<(Nanos, f64)>,
    /// Share of the time (0 to 1) of these intervals.
    slow_time: f64,
    service: Service,
}

/// The share of the requests whose latency has to be known, so that the record has it.
const MOSTLY_KNOWN: f64 = 0.9;

impl RecordedPast {
    pub(super) fn of(load: &VolumeLoad, throttled: Option<&Throttled>) -> Self {
        Self {
            throttled: throttled.map_or(0.0, |throttled| throttled.time_pct / 100.0),
            by: throttled.map_or([0.0; 6], |throttled| throttled.by),
            credits: credits(load),
            intervals: timed_intervals(load),
            seconds: load.intervals.iter().map(|interval| interval.seconds).sum(),
        }
    }

    /// The limit that it was throttled by for most of the time; None where it was not.
    #[must_use]
    pub fn limited_by(&self) -> Option<Limit> {
        let most = Limit::ALL.into_iter().zip(self.by).max_by(|a, b| a.1.total_cmp(&b.1))?;
        (most.1 > 0.0).then_some(most.0)
    }

    /// How long the I/O of a load took on a volume; None where the record does not have it.
    pub(super) fn latency(&self, load: &Demand, volume: &Resolved) -> Option<RecordedLatency> {
        let sides = self.intervals.iter().flat_map(|interval| &interval.sides);
        let requests: f64 = sides.clone().map(|(_, number)| number).sum();
        if requests <= 0.0 {
            return None;
        }
        let least = SLOW * median_s(volume);
        let is_slow = |(mean, _): &(f64, f64)| *mean >= least;
        let slow = sides.filter(|side| is_slow(side));
        let slow = slow.map(|(mean, number)| (Nanos(whole(mean * 1e9)), number / requests)).collect();
        let waited = self.intervals.iter().filter(|interval| interval.sides.iter().any(is_slow));
        let waited: f64 = waited.map(|interval| interval.seconds).sum();
        let service = Service::of(load, &volume.members[0]);
        Some(RecordedLatency { slow, slow_time: waited / self.seconds, service })
    }
}

fn credits(load: &VolumeLoad) -> Option<RecordedCredits> {
    let known = load.intervals.iter().filter_map(|interval| Some((interval, interval.credits?)));
    let lowest = known.clone().map(|(_, credits)| credits).reduce(f64::min)?;
    let zero = known.clone().filter(|(_, credits)| *credits <= NO_CREDITS).map(|(interval, _)| interval);
    let time: f64 = known.map(|(interval, _)| interval.seconds).sum();
    let first = zero.clone().next().map(|interval| interval.start_s);
    let start_s = load.intervals.first().map_or(0.0, |interval| interval.start_s);
    Some(RecordedCredits {
        lowest,
        at_zero: zero.map(|interval| interval.seconds).sum::<f64>() / time,
        first_zero_s: first,
        zero_after_s: first.map(|first| first - start_s),
    })
}

fn timed_intervals(load: &VolumeLoad) -> Vec<TimedInterval> {
    let mut known = Vec::new();
    let (mut requests, mut timed) = (0.0, 0.0);
    for interval in &load.intervals {
        let mut sides = Vec::new();
        for (rate, mean) in [interval.reads, interval.writes].into_iter().zip(measured_times_s(interval)) {
            let number = rate * interval.seconds;
            requests += number;
            if let Some(mean) = mean {
                timed += number;
                sides.push((mean, number));
            }
        }
        known.push(TimedInterval { seconds: interval.seconds, sides });
    }
    if timed < MOSTLY_KNOWN * requests { Vec::new() } else { known }
}

impl RecordedLatency {
    /// A quantile (0 to 1) of the time of an I/O.
    #[must_use]
    pub fn at(&self, share: f64) -> Nanos {
        let longest = self.slow.iter().map(|(mean, _)| *mean).max().unwrap_or_default();
        let most = self.service.most().max(longest) + Nanos(1);
        quantile(most, 1.0 - share, |time| self.slower_than(time))
    }

    /// Share of the I/Os (0 to 1) that took longer.
    #[must_use]
    pub fn slower_than(&self, time: Nanos) -> f64 {
        let share = |least: Nanos| {
            self.slow.iter().filter(|(mean, _)| *mean > least).map(|(_, share)| share).sum::<f64>()
        };
        let (waited, slow) = (share(Nanos::ZERO), share(time));
        slow + (1.0 - waited).max(0.0) * self.service.above(time)
    }

    /// Share of the time (0 to 1) whose means show a wait.
    #[must_use]
    pub fn slow_time(&self) -> f64 {
        self.slow_time
    }

    /// The highest mean of an interval that shows a wait; None where none does.
    #[must_use]
    pub fn longest_mean(&self) -> Option<Nanos> {
        self.slow.iter().map(|(mean, _)| *mean).max()
    }
}
