//! The summary of a crash run as evidence for claims.

use ebbtide_analysis::claim::{ArmIo, ClaimMetric, ClaimPhase, ClaimTest, Evidence, NoReading, Reading};
use ebbtide_analysis::stats::Share;
use ebbtide_lab::page::text as print;

use super::model::{ArmSummary, Quantiles, Summary};
use crate::record::VerdictKind;

/// The summary of a crash run.
pub(super) struct OfCuts<'a>(pub(super) &'a Summary);

impl Evidence for OfCuts<'_> {
    fn reading(&self, arm: &str, metric: ClaimMetric, _: &[ClaimPhase]) -> Result<Reading, NoReading> {
        let summary = self.arm(arm)?;
        if !self.0.valid {
            return Err(NoReading::VoidRun);
        }
        let kind = |kind: VerdictKind| summary.verdicts.get(&kind).and_then(percent);
        let reading = match metric {
            ClaimMetric::BadPct => percent(&summary.bad),
            ClaimMetric::CorruptPct => kind(VerdictKind::Corrupt),
            ClaimMetric::LostPct => kind(VerdictKind::LostCommits),
            ClaimMetric::RecoveryS => summary.recovery.map(|recovery| median(&recovery.seconds)),
            ClaimMetric::Tps => summary.throughput.map(|throughput| {
                let ends = throughput.tps.interval.map(|ends| (ends.low, ends.high)).unzip();
                Reading { mid: throughput.tps.mean, low: ends.0, high: ends.1 }
            }),
            ClaimMetric::WriteIops => {
                summary.throughput.map(|throughput| Reading::alone(throughput.write_iops))
            }
            _ => None,
        };
        reading.ok_or(NoReading::NoSuchFigure)
    }

    fn ratio(&self, test: &ClaimTest, over: &str) -> Option<Reading> {
        let named = |place: usize, name: &str| self.0.arms.get(place).is_some_and(|arm| arm.name == name);
        let mut gains = self.0.comparisons.iter();
        let gain = gains.find(|gain| named(gain.arm, &test.arm) && named(gain.baseline, over))?;
        let ratio = gain.tps.filter(|_| test.metric == ClaimMetric::Tps)?;
        let ends = ratio.interval.map(|ends| (ends.low, ends.high)).unzip();
        Some(Reading { mid: ratio.ratio, low: ends.0, high: ends.1 })
    }

    fn io(&self, arm: &str, _: &[ClaimPhase]) -> ArmIo {
        let Some(throughput) = self.arm(arm).ok().and_then(|arm| arm.throughput) else {
            return ArmIo::default();
        };
        let figures = format!(
            "{} writes and {} written a second",
            print::short(throughput.write_iops),
            print::bytes(throughput.write_bytes_s)
        );
        // What held the load back is not measured before cuts.
        ArmIo { waits: format!("was cut with {figures}"), ..ArmIo::default() }
    }
}

impl OfCuts<'_> {
    fn arm(&self, name: &str) -> Result<&ArmSummary, NoReading> {
        let arm = self.0.arms.iter().find(|arm| arm.name == name);
        let arm = arm.ok_or(NoReading::NotInRun)?;
        if arm.cuts == 0 { Err(NoReading::NotCut) } else { Ok(arm) }
    }
}

/// A share with its interval, percent.
fn percent(share: &Share) -> Option<Reading> {
    let ends = (share.low.map(|low| 100.0 * low), share.high.map(|high| 100.0 * high));
    Some(Reading { mid: 100.0 * share.share?, low: ends.0, high: ends.1 })
}

/// A median of cuts, from their 5th to their 95th percentile; one cut has no range.
fn median(quantiles: &Quantiles) -> Reading {
    match quantiles.count {
        0 | 1 => Reading::alone(quantiles.p50),
        _ => Reading::between(quantiles.p50, quantiles.p5, quantiles.p95),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages_with_their_interval_and_one_cut_has_no_range() {
        let reading = percent(&Share::new(3, 60)).unwrap();
        assert!((reading.mid - 5.0).abs() < 1e-9, "{reading:?}");
        assert!(reading.low.unwrap() < 5.0 && reading.high.unwrap() > 5.0);
        assert_eq!(percent(&Share::new(0, 0)), None);
        let of = |count| Quantiles { count, p5: 1.0, p50: 2.0, p95: 3.0, ..Quantiles::default() };
        assert_eq!(median(&of(1)), Reading::alone(2.0));
        assert_eq!(median(&of(9)), Reading::between(2.0, 1.0, 3.0));
    }
}
