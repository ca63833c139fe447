//! What a record says of the volume that carried the load. It takes precedence over what the model says of that volume.

use ebbtide_catalog::Resolved;
use ebbtide_observe::VolumeLoad;
use ebbtide_volume::Nanos;

use super::carry::{Service, quantile};
use super::demand::{Demand, whole};
use super::throttled::{NO_CREDITS, SLOW, Throttled, median_s};

/// What a record says of the volume that carried the load.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedPast {
    /// Share of the time (0 to 1) that was throttled, as far as can be known.
    pub throttled: f64,
    /// Its burst credits; None where they were not recorded.
    pub credits: Option<RecordedCredits>,
    /// Requests of one direction of an interval: their mean latency, s, and their number.
    latencies: Vec<(f64, f64)>,
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
    service: Service,
}

/// The share of the requests whose latency has to be known, so that the record has it.
const MOSTLY_KNOWN: f64 = 0.9;

impl RecordedPast {
    pub(super) fn of(load: &VolumeLoad, throttled: Option<&Throttled>) -> Self {
        Self {
            throttled: throttled.map_or(0.0, |throttled| throttled.time_pct / 100.0),
            credits: credits(load),
            latencies: latencies(load),
        }
    }

    /// How long the I/O of a load took on a volume; None where the record does not have it.
    pub(super) fn latency(&self, load: &Demand, volume: &Resolved) -> Option<RecordedLatency> {
        let requests: f64 = self.latencies.iter().map(|(_, number)| number).sum();
        if requests <= 0.0 {
            return None;
        }
        let waited = self.latencies.iter().filter(|(mean, _)| *mean >= SLOW * median_s(volume));
        let slow = waited.map(|(mean, number)| (Nanos(whole(mean * 1e9)), number / requests)).collect();
        Some(RecordedLatency { slow, service: Service::of(load, &volume.members[0]) })
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

/// Empty where the latency of too many requests is not known.
fn latencies(load: &VolumeLoad) -> Vec<(f64, f64)> {
    let mut known = Vec::new();
    let (mut requests, mut timed) = (0.0, 0.0);
    for interval in &load.intervals {
        for (rate, mean) in [(interval.reads, interval.read_s), (interval.writes, interval.write_s)] {
            let number = rate * interval.seconds;
            requests += number;
            if let Some(mean) = mean.filter(|_| number > 0.0) {
                timed += number;
                known.push((mean, number));
            }
        }
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

    /// The highest mean of an interval that shows a wait; None where none does.
    #[must_use]
    pub fn longest_mean(&self) -> Option<Nanos> {
        self.slow.iter().map(|(mean, _)| *mean).max()
    }
}
