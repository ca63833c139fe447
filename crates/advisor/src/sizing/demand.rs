//! The load that a volume has to carry, as steps of even load, reads and writes apart.

use ebbtide_observe::{LoadInterval, VolumeLoad};

use super::origin::LoadOrigin;

/// A load over time: steps that follow each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    pub(super) steps: Vec<Step>,
    /// How operations of a mean size are counted.
    pub(super) rounding: Rounding,
}

/// An even load for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// Its length, ns.
    pub(super) nanos: u64,
    pub(super) reads: Side,
    pub(super) writes: Side,
}

/// One direction of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Side {
    /// Requests in the step.
    pub(super) ios: f64,
    /// Bytes in it.
    pub(super) bytes: f64,
}

impl Side {
    fn times(self, factor: f64) -> Self {
        Self { ios: self.ios * factor, bytes: self.bytes * factor }
    }
}

impl Step {
    /// Requests in both directions.
    pub(super) fn ios(&self) -> f64 {
        self.reads.ios + self.writes.ios
    }

    /// Bytes in both directions.
    pub(super) fn bytes(&self) -> f64 {
        self.reads.bytes + self.writes.bytes
    }

    fn times(&self, factor: f64) -> Self {
        Self { reads: self.reads.times(factor), writes: self.writes.times(factor), ..*self }
    }
}

/// The largest request that counts as one operation of an SSD volume, bytes:
/// <https://docs.aws.amazon.com/ebs/latest/userguide/ebs-io-characteristics.html>.
pub const SSD_UNIT: u64 = 256 << 10;

/// How a number of requests of a mean size becomes operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rounding {
    /// By how much of a unit a mean size may be above a whole number of units and still count as that number.
    slack: f64,
}

/// The rates and sizes of tools on the host are printed with two decimals. 0.001 of 256 KiB is 256 bytes, less than a block.
const HOST_SLACK: f64 = 0.001;
/// EBS counted already, so that no operation is larger than a unit. Operations and bytes of a minute may be cut a moment apart.
const EBS_SLACK: f64 = 0.1;

impl Rounding {
    /// How the sizes of a source are to be taken.
    pub(super) const fn of(origin: LoadOrigin) -> Self {
        let slack = match origin {
            LoadOrigin::EbsMetrics => EBS_SLACK,
            LoadOrigin::Host | LoadOrigin::HostTogether | LoadOrigin::Trace | LoadOrigin::Model => HOST_SLACK,
        };
        Self { slack }
    }

    /// Units of `unit_bytes` that a request of so many bytes counts as; a whole number.
    pub(super) fn units(self, bytes: f64, unit_bytes: f64) -> f64 {
        (bytes / unit_bytes - self.slack).ceil().max(1.0)
    }

    /// Operations that requests of one direction count as. All are taken to have the mean size: EBS rounds each of them up.
    pub(super) fn operations(self, side: Side, unit_bytes: f64) -> f64 {
        let least = side.bytes / unit_bytes;
        if least <= side.ios {
            return side.ios;
        }
        if side.ios <= 0.0 {
            return least;
        }
        (side.ios * self.units(side.bytes / side.ios, unit_bytes)).max(least)
    }
}

/// Operations a second of an interval as a volume of this unit, bytes, counts them.
#[must_use]
pub fn operations_of(interval: &LoadInterval, origin: LoadOrigin, unit_bytes: u64) -> f64 {
    let rounding = Rounding::of(origin);
    let side = |ios, bytes| rounding.operations(Side { ios, bytes }, unit_bytes as f64);
    side(interval.reads, interval.read_bytes) + side(interval.writes, interval.written_bytes)
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
    /// What a volume carried, times `factor`. What was not recorded between two intervals is left out. The sizes are those of
    /// requests, as a tool on the host has them.
    ///
    /// # Panics
    /// If the factor is not above zero.
    #[must_use]
    pub fn of(load: &VolumeLoad, factor: f64) -> Self {
        Self::from_origin(load, LoadOrigin::Host, factor)
    }

    /// The same of another source.
    ///
    /// # Panics
    /// If the factor is not above zero.
    #[must_use]
    pub fn from_origin(load: &VolumeLoad, origin: LoadOrigin, factor: f64) -> Self {
        assert!(factor > 0.0, "a load is multiplied by more than zero");
        let steps = load.intervals.iter().map(|interval| {
            let amount = interval.seconds * factor;
            Step {
                nanos: whole(interval.seconds * 1e9),
                reads: Side { ios: interval.reads, bytes: interval.read_bytes }.times(amount),
                writes: Side { ios: interval.writes, bytes: interval.written_bytes }.times(amount),
            }
        });
        Self { steps: steps.filter(|step| step.nanos > 0).collect(), rounding: Rounding::of(origin) }
    }

    /// The same, times `factor`: more requests of the same sizes.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        Self { steps: self.steps.iter().map(|step| step.times(factor)).collect(), ..*self }
    }

    /// Seconds that it lasts.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.nanos as f64 / 1e9).sum()
    }

    /// Requests a second, as they were submitted.
    #[must_use]
    pub fn requests(&self) -> Option<Spread> {
        self.spread(Step::ios)
    }

    /// Operations a second as a volume of this unit, bytes, counts them: each direction by its own mean size.
    #[must_use]
    pub fn operations(&self, unit_bytes: u64) -> Option<Spread> {
        let count = |side| self.rounding.operations(side, unit_bytes as f64);
        self.spread(|step| count(step.reads) + count(step.writes))
    }

    /// Bytes a second.
    #[must_use]
    pub fn throughput(&self) -> Option<Spread> {
        self.spread(Step::bytes)
    }

    /// Mean bytes of a request; None without one.
    #[must_use]
    pub fn io_bytes(&self) -> Option<f64> {
        mean_bytes(self.total(|step| Side { ios: step.ios(), bytes: step.bytes() }))
    }

    /// Mean bytes of a read; None without one.
    #[must_use]
    pub fn read_bytes(&self) -> Option<f64> {
        mean_bytes(self.total(|step| step.reads))
    }

    /// Mean bytes of a write; None without one.
    #[must_use]
    pub fn write_bytes(&self) -> Option<f64> {
        mean_bytes(self.total(|step| step.writes))
    }

    /// Share of the requests that read, 0 to 1; None without one.
    #[must_use]
    pub fn read_share(&self) -> Option<f64> {
        let (reads, writes) = (self.total(|step| step.reads).ios, self.total(|step| step.writes).ios);
        (reads + writes > 0.0).then(|| reads / (reads + writes))
    }

    /// The most that a mix of sizes inside one direction may add to [`Self::operations`], times it: the mean size is known, and
    /// each request counts less than a unit more than its bytes. 1 where nothing can be added.
    #[must_use]
    pub fn most_mixed(&self, unit_bytes: u64) -> f64 {
        let unit = unit_bytes as f64;
        let (mut counted, mut most) = (0.0, 0.0);
        for side in self.steps.iter().flat_map(|step| [step.reads, step.writes]) {
            let operations = self.rounding.operations(side, unit);
            counted += operations;
            most += operations.max(side.ios + side.bytes / unit);
        }
        if counted > 0.0 { most / counted } else { 1.0 }
    }

    /// All that happens on one side, in the whole time.
    pub(super) fn total(&self, side: impl Fn(&Step) -> Side) -> Side {
        self.steps.iter().map(side).fold(Side::default(), |sum, side| Side {
            ios: sum.ios + side.ios,
            bytes: sum.bytes + side.bytes,
        })
    }

    /// The distribution over time of what happens in a step, a second; None of no time.
    fn spread(&self, amount: impl Fn(&Step) -> f64) -> Option<Spread> {
        let rate = |step: &Step| amount(step) / (step.nanos as f64 / 1e9);
        let rates: Vec<(f64, f64)> = self.steps.iter().map(|step| (rate(step), step.nanos as f64)).collect();
        spread_of(rates)
    }
}

fn mean_bytes(side: Side) -> Option<f64> {
    (side.ios > 0.0).then(|| side.bytes / side.ios)
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
    use super::super::tests::of_sides;
    use super::*;

    #[test]
    fn quantiles_are_of_time_and_not_of_intervals() {
        let interval = |seconds: f64, reads: f64| LoadInterval { seconds, reads, ..LoadInterval::default() };
        let load =
            VolumeLoad { intervals: vec![interval(97.0, 10.0), interval(1.0, 500.0), interval(2.0, 100.0)] };
        let spread = Demand::of(&load, 2.0).requests().unwrap();
        assert_eq!((spread.p50, spread.p95, spread.p99, spread.max), (20.0, 20.0, 200.0, 1_000.0));
        assert_eq!(spread.mean, 2.0 * (970.0 + 500.0 + 200.0) / 100.0);
        assert_eq!(Demand::of(&VolumeLoad::default(), 1.0).requests(), None);
    }

    /// One second of reads and writes: (number, bytes of one).
    fn second(reads: (f64, f64), writes: (f64, f64)) -> VolumeLoad {
        of_sides(reads, writes, 1.0)
    }

    const KIB: f64 = 1_024.0;

    #[test]
    fn each_direction_is_counted_by_its_own_size() {
        let count = |load: &VolumeLoad, origin, unit| {
            Demand::from_origin(load, origin, 1.0).operations(unit).unwrap().mean
        };
        let small_beside_large = second((3_600.0, 4.0 * KIB), (400.0, 1_024.0 * KIB));
        assert_eq!(count(&small_beside_large, LoadOrigin::Host, SSD_UNIT), 5_200.0);
        assert_eq!(count(&small_beside_large, LoadOrigin::Host, 4 * SSD_UNIT), 4_000.0, "of an HDD volume");
        // Reads may be the larger ones, and one direction may be alone.
        assert_eq!(
            count(&second((100.0, 512.0 * KIB), (10.0, 4.0 * KIB)), LoadOrigin::Host, SSD_UNIT),
            210.0
        );
        assert_eq!(count(&second((0.0, 0.0), (10.0, 300.0 * KIB)), LoadOrigin::Host, SSD_UNIT), 20.0);
        // A rounded figure is no second unit, and four KiB more are.
        assert_eq!(
            count(&second((10.0, 256.02 * KIB), (0.0, 0.0)), LoadOrigin::Host, SSD_UNIT).round(),
            10.0
        );
        assert_eq!(count(&second((10.0, 260.0 * KIB), (0.0, 0.0)), LoadOrigin::Host, SSD_UNIT), 20.0);
        // EBS counted already: its minutes are cut a moment apart.
        let cut = count(&second((100.0, 265.0 * KIB), (0.0, 0.0)), LoadOrigin::EbsMetrics, SSD_UNIT);
        assert!((cut - 103.5).abs() < 0.1, "{cut}");
        assert_eq!(
            count(&second((100.0, 1_024.0 * KIB), (0.0, 0.0)), LoadOrigin::EbsMetrics, SSD_UNIT),
            400.0
        );
    }

    #[test]
    fn a_mix_inside_a_direction_adds_less_than_a_unit_for_each_request() {
        let demand = Demand::of(&second((900.0, 16.0 * KIB), (0.0, 0.0)), 1.0);
        assert!((demand.most_mixed(SSD_UNIT) - 1.0625).abs() < 1e-9, "{}", demand.most_mixed(SSD_UNIT));
        let full = Demand::of(&second((900.0, 256.0 * KIB), (0.0, 0.0)), 1.0);
        assert_eq!(full.most_mixed(SSD_UNIT), 2.0);
    }
}
