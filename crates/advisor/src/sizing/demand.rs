//! The load that a volume has to carry, as steps of even load.

use ebbtide_observe::VolumeLoad;

/// A load over time: steps that follow each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    pub(super) steps: Vec<Step>,
}

/// An even load for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// Its length, ns.
    pub(super) nanos: u64,
    /// Operations in it.
    pub(super) ios: f64,
    /// Bytes in it.
    pub(super) bytes: f64,
    /// Of the operations, the share that reads, 0 to 1.
    pub(super) reads: f64,
}

/// The distribution of a figure over time.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Half of the time it is at most this.
    pub p50: f64,
    /// 95% of the time.
    pub p95: f64,
    /// 99% of the time.
    pub p99: f64,
    /// 99.9% of the time.
    pub p999: f64,
    /// The highest of an interval.
    pub max: f64,
}

impl Demand {
    /// What a volume carried, times `factor`. What was not recorded between two intervals is left out.
    ///
    /// # Panics
    /// If the factor is not above zero.
    #[must_use]
    pub fn of(load: &VolumeLoad, factor: f64) -> Self {
        assert!(factor > 0.0, "a load is multiplied by more than zero");
        let steps = load.intervals.iter().map(|interval| Step {
            nanos: whole(interval.seconds * 1e9),
            ios: interval.ios() * interval.seconds * factor,
            bytes: interval.bytes() * interval.seconds * factor,
            reads: if interval.ios() > 0.0 { interval.reads / interval.ios() } else { 0.0 },
        });
        Self { steps: steps.filter(|step| step.nanos > 0).collect() }
    }

    /// The same, times `factor`.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        let steps = self.steps.iter().map(|step| Step {
            ios: step.ios * factor,
            bytes: step.bytes * factor,
            ..*step
        });
        Self { steps: steps.collect() }
    }

    /// Seconds that it lasts.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.nanos as f64 / 1e9).sum()
    }

    /// Operations a second.
    #[must_use]
    pub fn iops(&self) -> Option<Spread> {
        self.spread(|step| step.ios)
    }

    /// Bytes a second.
    #[must_use]
    pub fn throughput(&self) -> Option<Spread> {
        self.spread(|step| step.bytes)
    }

    /// Mean bytes of an operation; None without one.
    #[must_use]
    pub fn io_bytes(&self) -> Option<f64> {
        let (ios, bytes) =
            self.steps.iter().fold((0.0, 0.0), |sum, step| (sum.0 + step.ios, sum.1 + step.bytes));
        (ios > 0.0).then(|| bytes / ios)
    }

    /// Share of the operations that read, 0 to 1; None without one.
    #[must_use]
    pub fn read_share(&self) -> Option<f64> {
        let (ios, reads) =
            self.steps.iter().fold((0.0, 0.0), |sum, step| (sum.0 + step.ios, sum.1 + step.ios * step.reads));
        (ios > 0.0).then(|| reads / ios)
    }

    /// The distribution over time of what happens in a step, a second; None of no time.
    fn spread(&self, of: impl Fn(&Step) -> f64) -> Option<Spread> {
        let rate = |step: &Step| of(step) / (step.nanos as f64 / 1e9);
        let rates: Vec<(f64, f64)> = self.steps.iter().map(|step| (rate(step), step.nanos as f64)).collect();
        spread_of(rates)
    }
}

/// The distribution of values that hold for a time each, given as (value, time).
pub(super) fn spread_of(mut values: Vec<(f64, f64)>) -> Option<Spread> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = values.iter().map(|(_, time)| time).sum();
    let (last, _) = values.last()?;
    let at = |share: f64| {
        let mut sum = 0.0;
        let reached = values.iter().find(|(_, time)| {
            sum += time;
            // A sum of times is not exact.
            sum >= all * share * (1.0 - 1e-12)
        });
        reached.map_or(*last, |(value, _)| *value)
    };
    Some(Spread {
        mean: values.iter().map(|(value, time)| value * time).sum::<f64>() / all,
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: *last,
    })
}

/// The nearest whole number; below zero counts as zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
pub(super) fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ebbtide_observe::LoadInterval;

    use super::*;

    #[test]
    fn quantiles_are_of_time_and_not_of_intervals() {
        let interval = |seconds: f64, reads: f64| LoadInterval { seconds, reads, ..LoadInterval::default() };
        let load =
            VolumeLoad { intervals: vec![interval(97.0, 10.0), interval(1.0, 500.0), interval(2.0, 100.0)] };
        let spread = Demand::of(&load, 2.0).iops().unwrap();
        assert_eq!((spread.p50, spread.p95, spread.p99, spread.max), (20.0, 20.0, 200.0, 1_000.0));
        assert_eq!(spread.mean, 2.0 * (970.0 + 500.0 + 200.0) / 100.0);
        assert_eq!(Demand::of(&VolumeLoad::default(), 1.0).iops(), None);
    }
}
