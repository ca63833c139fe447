//! The summary of a run of the lab as evidence for claims.

use ebbtide_text::{figure, percent};

use super::comparison::Ratio;
use super::model::{Across, ArmSummary, Figures, Measured, Summary, VolumeFigures};
use super::regime::{Around, Regime};
use super::{sentences, summarize};
use crate::claim::{ArmIo, ClaimMetric, ClaimPhase, ClaimTest, Evidence, NoReading, Reading};
use crate::record::{Role, RunRecord};

/// A run of the lab: its summary, and that of each of its rounds, for the range of the trials.
#[derive(Debug, Clone)]
pub struct OfRun<'a> {
    summary: &'a Summary,
    rounds: Vec<Summary>,
    /// Processors of the machine.
    cpus: u32,
}

impl<'a> OfRun<'a> {
    /// The evidence of a run.
    #[must_use]
    pub fn new(run: &RunRecord<'_>, summary: &'a Summary) -> Self {
        let round = |repeat: u32| {
            let trials = run.trials.iter().filter(|trial| trial.repeat == repeat).cloned().collect();
            summarize(&RunRecord { trials, ..run.clone() })
        };
        Self { summary, rounds: (0..run.design.repeats).map(round).collect(), cpus: run.cpus }
    }
}

impl Evidence for OfRun<'_> {
    fn reading(&self, arm: &str, metric: ClaimMetric, during: &[ClaimPhase]) -> Result<Reading, NoReading> {
        let summary = self.arm(arm)?;
        let trials = summary.trials.measured;
        match metric {
            ClaimMetric::Tpmc => {
                summary.tpcc.as_ref().map(|tpcc| rate(&tpcc.tpmc)).ok_or(NoReading::NoSuchFigure)
            }
            ClaimMetric::LagS => {
                summary.lag.as_ref().map(|lag| across(lag.mean_s, 1.0, trials)).ok_or(NoReading::NoSuchFigure)
            }
            ClaimMetric::SilentS => summary
                .answers
                .as_ref()
                .map(|one| across(one.silent_s, 1.0, trials))
                .ok_or(NoReading::NoSuchFigure),
            ClaimMetric::LockTimeouts => summary
                .answers
                .as_ref()
                .map(|one| across(one.lock_timeouts, 1.0, trials))
                .ok_or(NoReading::NoSuchFigure),
            ClaimMetric::BackupS => summary
                .backup
                .as_ref()
                .map(|backup| across(backup.took_s, 1.0, trials))
                .ok_or(NoReading::NoSuchFigure),
            ClaimMetric::BackupMib => {
                let mib = |bytes| across(bytes, 1.0 / f64::from(1 << 20), trials);
                summary.backup.as_ref().map(|backup| mib(backup.bytes)).ok_or(NoReading::NoSuchFigure)
            }
            _ => self.of_trials(arm, figures(summary, during)?.1, metric, during),
        }
    }

    fn ratio(&self, test: &ClaimTest, over: &str) -> Option<Reading> {
        if test.arm == over {
            return self.within_trials(test);
        }
        let (arm, baseline) = (self.arm(&test.arm).ok()?, self.arm(over).ok()?);
        let (ours, _) = figures(arm, &test.during).ok()?;
        let (theirs, _) = figures(baseline, &test.over_during).ok()?;
        let compared = self.summary.comparisons.iter().find(|compared| {
            let regimes = compared.regimes.unzip();
            let same =
                |place: usize, name: &str| self.summary.arms.get(place).is_some_and(|arm| arm.name == name);
            same(compared.arm, &test.arm) && same(compared.baseline, over) && regimes == (ours, theirs)
        })?;
        let ratio: Ratio = match test.metric {
            ClaimMetric::Tps => compared.tps,
            ClaimMetric::P95Ms => compared.p95,
            ClaimMetric::P99Ms => compared.p99,
            _ => None,
        }?;
        let ends = ratio.interval.map(|interval| (interval.low, interval.high)).unzip();
        Some(Reading { mid: ratio.ratio, low: ends.0, high: ends.1 })
    }

    fn io(&self, arm: &str, during: &[ClaimPhase]) -> ArmIo {
        let Ok((_, figures)) = self.arm(arm).and_then(|arm| figures(arm, during)) else {
            return ArmIo::default();
        };
        let ios = figures.per_transaction.map(|cost| {
            format!(
                "{} I/Os and {} KiB written by transaction",
                figure(cost.consumed_ios),
                figure(cost.written_kib)
            )
        });
        let iops: f64 = figures.volumes.values().map(|volume| volume.consumed_iops).sum();
        let busy = format!("processors {} busy", percent(self.of_all(figures.host.busy_cpus) / 100.0));
        let replica = self.arm(arm).ok().and_then(replica_io);
        let parts = [ios, Some(format!("{} IOPS", figure(iops))), Some(busy), replica];
        ArmIo {
            waits: sentences::limiter(figures.limiter, false).unwrap_or_default(),
            figures: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            ios_per_transaction: figures.per_transaction.map(|cost| cost.consumed_ios),
            iops: Some(iops),
        }
    }
}

impl OfRun<'_> {
    fn arm(&self, name: &str) -> Result<&ArmSummary, NoReading> {
        let arm = self.summary.arms.iter().find(|arm| arm.name == name);
        arm.ok_or(NoReading::NotInRun)
    }

    /// Processors as a percentage of all.
    fn of_all(&self, cpus: f64) -> f64 {
        100.0 * cpus / f64::from(self.cpus.max(1))
    }

    /// The ratio of two phases of an arm, trial by trial: what a trial has throughout falls out. The geometric mean of the
    /// trials with their range.
    fn within_trials(&self, test: &ClaimTest) -> Option<Reading> {
        let of_round = |round: &Summary| {
            let summary = round.arms.iter().find(|one| one.name == test.arm)?;
            let value = |during| self.value(figures(summary, during).ok()?.1, test.metric);
            let (own, other) = (value(&test.during)?, value(&test.over_during)?);
            (own > 0.0 && other > 0.0).then(|| own / other)
        };
        let trials: Vec<f64> = self.rounds.iter().filter_map(of_round).collect();
        let mid = (!trials.is_empty())
            .then(|| (trials.iter().map(|ratio| ratio.ln()).sum::<f64>() / trials.len() as f64).exp())?;
        if trials.len() < 2 {
            return Some(Reading::alone(mid));
        }
        let low = trials.iter().copied().fold(mid, f64::min);
        Some(Reading::between(mid, low, trials.iter().copied().fold(mid, f64::max)))
    }

    /// A figure of all trials, with the interval of a rate, and for others with the range of the trials.
    fn of_trials(
        &self,
        arm: &str,
        all: &Figures,
        metric: ClaimMetric,
        during: &[ClaimPhase],
    ) -> Result<Reading, NoReading> {
        if metric == ClaimMetric::Tps {
            return Ok(rate(&all.tps));
        }
        let mid = self.value(all, metric).ok_or(NoReading::NoSuchFigure)?;
        let of_round = |round: &Summary| {
            let summary = round.arms.iter().find(|one| one.name == arm)?;
            self.value(figures(summary, during).ok()?.1, metric)
        };
        let trials: Vec<f64> = self.rounds.iter().filter_map(of_round).collect();
        if trials.len() < 2 {
            return Ok(Reading::alone(mid));
        }
        let low = trials.iter().copied().fold(mid, f64::min);
        Ok(Reading::between(mid, low, trials.iter().copied().fold(mid, f64::max)))
    }

    /// A figure in the unit of its metric; none where there is no such figure.
    fn value(&self, figures: &Figures, metric: ClaimMetric) -> Option<f64> {
        let data = || figures.volumes.get(&Role::Data);
        let all = |of: fn(&VolumeFigures) -> f64| Some(figures.volumes.values().map(of).sum());
        match metric {
            ClaimMetric::Tps => Some(figures.tps.mean),
            ClaimMetric::P50Ms => Some(figures.p50_us.median / 1e3),
            ClaimMetric::P95Ms => Some(figures.p95_us.median / 1e3),
            ClaimMetric::P99Ms => Some(figures.p99_us.median / 1e3),
            ClaimMetric::ConsumedIops => all(|volume| volume.consumed_iops),
            ClaimMetric::ReadIops => all(|volume| volume.read_iops),
            ClaimMetric::WriteIops => all(|volume| volume.write_iops),
            ClaimMetric::ReadMs => data().map(|volume| volume.read_us / 1e3),
            ClaimMetric::WriteMs => data().map(|volume| volume.write_us / 1e3),
            ClaimMetric::Queue => data().map(|volume| volume.queue),
            ClaimMetric::IosPerTransaction => figures.per_transaction.map(|cost| cost.consumed_ios),
            ClaimMetric::WrittenKibPerTransaction => figures.per_transaction.map(|cost| cost.written_kib),
            ClaimMetric::ServerCpuPct => Some(self.of_all(figures.host.server_cpus)),
            ClaimMetric::RedoWait => figures.server.and_then(|server| server.redo_wait),
            // These are not of the figures of a part of a trial.
            ClaimMetric::Tpmc
            | ClaimMetric::LagS
            | ClaimMetric::SilentS
            | ClaimMetric::LockTimeouts
            | ClaimMetric::BackupS
            | ClaimMetric::BackupMib
            | ClaimMetric::BadPct
            | ClaimMetric::CorruptPct
            | ClaimMetric::LostPct
            | ClaimMetric::RecoveryS => None,
        }
    }
}

/// What the volumes of the first replica did, in words; none without replicas.
fn replica_io(arm: &ArmSummary) -> Option<String> {
    let of = |(role, volume): (&Role, &VolumeFigures)| {
        let share = if volume.limited > 0.01 {
            format!(", held back by a limit {} of the time", percent(volume.limited))
        } else {
            String::new()
        };
        let (iops, queue) = (figure(volume.consumed_iops), figure(volume.queue));
        format!("the replica's {} volume {iops} IOPS with a queue of {queue}{share}", role.key())
    };
    let all: Vec<String> = arm.replica_volumes.iter().map(of).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The figures of an arm under conditions, with the regime that they are of; all of them without conditions. Of several
/// parts that meet the conditions, the longest.
fn figures<'a>(
    arm: &'a ArmSummary,
    during: &[ClaimPhase],
) -> Result<(Option<Regime>, &'a Figures), NoReading> {
    if arm.whole.is_none() {
        let counts = arm.trials;
        return Err(match (counts.failed, counts.disqualified) {
            (0, 0) => NoReading::NotMeasured,
            (_, 0) => NoReading::Failed,
            _ => NoReading::NoneCounts,
        });
    }
    let whole = arm.whole.as_ref().map(|whole| (None, whole));
    if during.is_empty() {
        return whole.ok_or(NoReading::NoSuchFigure);
    }
    let never = || NoReading::NeverInPhase(during.to_vec());
    let holds = |regime: Regime| during.iter().all(|phase| is_in(*phase, regime));
    if arm.regimes.is_empty() {
        // All of it is one regime, which the windows name.
        let only = arm.windows.iter().flat_map(|window| &window.parts).next().map(|part| part.regime);
        return whole.filter(|_| only.is_some_and(holds)).ok_or_else(never);
    }
    let matching = arm.regimes.iter().filter(|part| holds(part.regime));
    let longest = matching.max_by(|a, b| a.figures.seconds.total_cmp(&b.figures.seconds));
    longest.map(|part| (Some(part.regime), &part.figures)).ok_or_else(never)
}

fn rate(measured: &Measured) -> Reading {
    let ends = measured.interval.map(|interval| (interval.low, interval.high)).unzip();
    Reading { mid: measured.mean, low: ends.0, high: ends.1 }
}

/// A median over trials with their range; one trial has none.
fn across(value: Across, factor: f64, trials: u32) -> Reading {
    if trials < 2 {
        return Reading::alone(value.median * factor);
    }
    Reading::between(value.median * factor, value.min * factor, value.max * factor)
}

/// Whether a part of a trial is in a phase.
fn is_in(phase: ClaimPhase, regime: Regime) -> bool {
    match phase {
        ClaimPhase::Batch => regime.batch,
        ClaimPhase::NoBatch => !regime.batch,
        ClaimPhase::CreditsLeft => regime.credits_gone == Some(false),
        ClaimPhase::CreditsGone => regime.credits_gone == Some(true),
        ClaimPhase::BeforeBackup => regime.backup == Some(Around::Before),
        ClaimPhase::DuringBackup => regime.backup == Some(Around::During),
        ClaimPhase::AfterBackup => regime.backup == Some(Around::After),
    }
}
