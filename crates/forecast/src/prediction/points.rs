//! The predictions: a run of the model for each volume and load, with an interval.

use ebbtide_catalog::Resolved;
use ebbtide_twin::accuracy::{Figure, Uncertainty};
use ebbtide_twin::innodb::{FileKind, Limiter, ModelLoad, ModelOutcome, Volumes};
use ebbtide_volume::{Limits, RateLimit};

use super::plan::{PlannedVolume, PredictionPlan};
use crate::server::{Setting, modelled, uncertainty as of_server};

/// A volume with a prediction for each load.
#[derive(Debug)]
pub struct PredictedVolume<'a> {
    /// The volume.
    pub volume: &'a PlannedVolume,
    /// A prediction for each load, in the order given.
    pub points: Vec<PredictedPoint>,
}

/// A prediction.
#[derive(Debug)]
pub struct PredictedPoint {
    /// The load.
    pub load: ModelLoad,
    /// What the model did.
    pub outcome: ModelOutcome,
    /// How sure that is.
    pub uncertainty: Uncertainty,
    /// What its volumes may do.
    ceilings: Volumes<Ceilings>,
}

/// What a volume may do, with burst credits where it has them; infinite without a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ceilings {
    iops: f64,
    mib_s: f64,
}

impl Ceilings {
    fn of(volume: &Resolved) -> Self {
        let sum = |of: fn(&Limits) -> Option<RateLimit>| -> f64 {
            volume.members.iter().map(|one| of(one).map_or(f64::INFINITY, |rate| rate.ceiling as f64)).sum()
        };
        Self { iops: sum(|one| one.iops), mib_s: mib(sum(|one| one.throughput)) }
    }

    /// What all of them may do together.
    fn together(volumes: &Volumes<Self>) -> Self {
        let none = Self { iops: 0.0, mib_s: 0.0 };
        volumes
            .roles()
            .fold(none, |sum, (_, one)| Self { iops: sum.iops + one.iops, mib_s: sum.mib_s + one.mib_s })
    }

    /// The most to expect of a rate. Where the prediction itself is above a ceiling, such as of requests that the volume merges, the
    /// ceiling says nothing of it.
    fn most(&self, figure: Figure, value: f64, high: f64) -> f64 {
        let ceiling = match figure {
            Figure::Iops => self.iops,
            Figure::MibS => self.mib_s,
            _ => f64::INFINITY,
        };
        if value > ceiling * OVER { high } else { high.min(ceiling.max(value)) }
    }
}

/// Bytes in MiB.
#[must_use]
pub fn mib(bytes: f64) -> f64 {
    bytes / (1024.0 * 1024.0)
}

/// How far above a limit a rate is when credits of the seconds before are left.
const OVER: f64 = 1.01;

impl PredictedPoint {
    /// The value of a figure, latencies in us; none without transactions.
    #[must_use]
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        match figure {
            Figure::Tps => Some(self.outcome.tps()),
            Figure::P50 => self.latency_us(0.5),
            Figure::P95 => self.latency_us(0.95),
            Figure::P99 => self.latency_us(0.99),
            Figure::P999 => self.latency_us(0.999),
            Figure::Iops => Some(self.outcome.iops()),
            Figure::MibS => Some(mib(self.outcome.bytes_per_second())),
            Figure::Reads => Some(self.file_iops(FileKind::DataRead)),
            Figure::Writes => {
                let kinds = FileKind::ALL.into_iter().filter(|kind| *kind != FileKind::DataRead);
                Some(kinds.map(|kind| self.file_iops(kind)).sum())
            }
            Figure::Cpu => Some(self.outcome.processors_busy * 100.0),
            Figure::CreditsEnd => self.credits_end_s(),
        }
    }

    /// The least and the most to expect of a figure.
    #[must_use]
    pub fn range(&self, figure: Figure) -> Option<(f64, f64)> {
        let value = self.figure(figure)?;
        let (low, high) = self.uncertainty.around(figure, value);
        // No more processors are busy than there are, and no volume does more than it may.
        let high = match figure {
            Figure::Cpu => high.min(100.0),
            _ => Ceilings::together(&self.ceilings).most(figure, value, high),
        };
        Some((low, high))
    }

    /// A rate of a kind of file, and the least and the most to expect of it: its operations a second ([`Figure::Iops`]) or its MiB/s.
    #[must_use]
    pub fn file_rate(&self, kind: FileKind, figure: Figure) -> (f64, f64, f64) {
        let value = match figure {
            Figure::Iops => self.file_iops(kind),
            _ => mib(self.file_bytes(kind)),
        };
        let (low, high) = self.uncertainty.around(of_file(kind), value);
        (value, low, self.ceilings.of_file(kind).most(figure, value, high))
    }

    /// When burst credits end for the first time, s since the start of the run.
    #[must_use]
    pub fn credits_end_s(&self) -> Option<f64> {
        self.outcome.credits_end().map(ebbtide_volume::Nanos::as_secs_f64)
    }

    /// Everything that limits with its share of the time, the most first.
    pub fn limits(&self) -> impl Iterator<Item = (Limiter, f64)> + '_ {
        let all: u64 = self.outcome.limits.iter().map(|(_, seconds)| seconds).sum();
        self.outcome
            .limits
            .iter()
            .map(move |(limiter, seconds)| (*limiter, *seconds as f64 / all.max(1) as f64))
    }

    /// A quantile of the latency, us.
    #[must_use]
    pub fn latency_us(&self, quantile: f64) -> Option<f64> {
        self.outcome.latency_at(quantile).map(|latency| latency.0 as f64 / 1e3)
    }

    /// Pages a second that clients read from the page cache; None where it has none of them.
    #[must_use]
    pub fn page_cache_reads(&self) -> Option<f64> {
        let pages = self.outcome.page_cache_reads;
        (pages > 0).then(|| pages as f64 / self.outcome.measured.as_secs_f64())
    }

    /// Operations a second of a kind of file.
    #[must_use]
    pub fn file_iops(&self, kind: FileKind) -> f64 {
        self.outcome.file(kind).operations as f64 / self.outcome.measured.as_secs_f64()
    }

    /// Bytes a second of a kind of file.
    #[must_use]
    pub fn file_bytes(&self, kind: FileKind) -> f64 {
        self.outcome.file(kind).bytes as f64 / self.outcome.measured.as_secs_f64()
    }
}

/// The figure whose interval a kind of file has.
const fn of_file(kind: FileKind) -> Figure {
    match kind {
        FileKind::DataRead => Figure::Reads,
        FileKind::DataWrite | FileKind::Doublewrite | FileKind::Redo | FileKind::Binlog => Figure::Writes,
    }
}

/// What the intervals of a plan come from, for one of its loads: the widest of its volumes.
#[must_use]
pub fn interval(plan: &PredictionPlan, load: ModelLoad) -> Uncertainty {
    of_volumes(plan, load, plan.volumes.iter().all(|volume| volume.resolved.is_one()))
}

fn of_volumes(plan: &PredictionPlan, load: ModelLoad, one_volume: bool) -> Uncertainty {
    of_server(&plan.planned, &plan.calibration, load, one_volume)
}

/// Runs the model for each volume and load.
#[must_use]
pub fn predict(plan: &PredictionPlan) -> Vec<PredictedVolume<'_>> {
    let of_volume = |volume| PredictedVolume {
        volume,
        points: plan.loads.iter().map(|load| point(plan, volume, *load)).collect(),
    };
    plan.volumes.iter().map(of_volume).collect()
}

fn point(plan: &PredictionPlan, volume: &PlannedVolume, load: ModelLoad) -> PredictedPoint {
    let setting = Setting {
        load,
        volumes: volume.resolved.as_ref(),
        instance: plan.instance.as_ref(),
        span: plan.span,
        seed: plan.seed,
    };
    let outcome = modelled(&plan.planned, &plan.calibration, &setting);
    PredictedPoint {
        load,
        outcome,
        uncertainty: of_volumes(plan, load, volume.resolved.is_one()),
        ceilings: volume.resolved.map(Ceilings::of),
    }
}

/// Share of the highest throughput that the knee of a closed loop has.
const KNEE: f64 = 0.9;
/// Share of an arriving rate that counts as carried.
const CARRIED: f64 = 0.97;

/// The place of the knee of a load line. In a closed loop it is the first point with nine tenths of the highest
/// throughput; in an open one the last whose rate is carried. None with fewer than three points, and where the line does
/// not bend: the throughput still rises at the last point, or every rate is carried, or none.
#[must_use]
pub fn knee(points: &[PredictedPoint]) -> Option<usize> {
    let line: Vec<(Option<f64>, f64)> =
        points.iter().map(|point| (point.load.rate, point.outcome.tps())).collect();
    bend(&line)
}

/// The knee of (rate, throughput) points.
fn bend(line: &[(Option<f64>, f64)]) -> Option<usize> {
    if line.len() < 3 {
        return None;
    }
    let at = if line[0].0.is_some() {
        let lost = |&(rate, tps): &(Option<f64>, f64)| tps < rate.unwrap_or(0.0) * CARRIED;
        line.iter().position(lost)?.checked_sub(1)?
    } else {
        let most = line.iter().map(|(_, tps)| *tps).fold(0.0, f64::max);
        line.iter().position(|(_, tps)| *tps >= most * KNEE)?
    };
    (at + 1 < line.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_of_a_closed_loop_has_nine_tenths_of_the_highest_throughput() {
        let line = |all: &[f64]| all.iter().map(|tps| (None, *tps)).collect::<Vec<_>>();
        assert_eq!(bend(&line(&[99.0, 216.0, 223.0, 229.0])), Some(1));
        assert_eq!(bend(&line(&[100.0, 200.0, 400.0])), None);
        assert_eq!(bend(&line(&[100.0, 100.0])), None);
    }

    #[test]
    fn the_knee_of_an_open_loop_is_the_last_rate_that_is_carried() {
        let line = |all: &[(f64, f64)]| all.iter().map(|(rate, tps)| (Some(*rate), *tps)).collect::<Vec<_>>();
        assert_eq!(bend(&line(&[(100.0, 100.0), (200.0, 199.0), (300.0, 230.0)])), Some(1));
        assert_eq!(bend(&line(&[(100.0, 100.0), (200.0, 199.0), (300.0, 298.0)])), None);
        assert_eq!(bend(&line(&[(300.0, 230.0), (400.0, 230.0), (500.0, 230.0)])), None);
    }
}
