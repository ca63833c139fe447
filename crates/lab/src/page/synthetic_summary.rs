//! A summary of a synthetic run with rough statistics, so that a test of the page decides which verdicts
//! the page is given.

use std::collections::BTreeMap;

use crate::cost;
use crate::experiment::Role;
use crate::record::{LabRun, Second, Trial};
use crate::summary::{
    Across, ArmSummary, Bottleneck, Cause, Compared, Figures, Limiter, Measured, Metric, Noise, Note, Part,
    PerTransaction, Ratio, Regime, RegimeSummary, Summary, TrialCounts, TrialWindow, Verdict, VolumeFigures,
    WindowChange,
};
use ebbtide_analysis::stats::Interval;

/// A summary in which a ratio nearer to 1 than this is no difference.
const FLOOR: f64 = 0.02;

pub(super) fn summary(run: &LabRun) -> Summary {
    let arms: Vec<ArmSummary> = run.experiment.arms.iter().map(|arm| self::arm(run, &arm.name)).collect();
    let pairs = run.experiment.comparisons.iter();
    let comparisons = pairs.flat_map(|pair| compared(&arms, &pair.axis, pair.arm, pair.baseline)).collect();
    Summary {
        arms,
        comparisons,
        curves: Vec::new(),
        noise: Noise {
            between_trials: Some(0.011),
            expected_aa: Some(0.016),
            floor: FLOOR,
            other_cpus: 0.31,
            load_before: 0.31,
            ..Noise::default()
        },
        findings: vec!["A synthetic finding.".into()],
        notes: vec![Note { arm: None, text: "This run is synthetic: nothing was measured.".into() }],
        monthly_cost: cost::of(&run.experiment, &run.catalog()),
        claims: Vec::new(),
        repeated: None,
    }
}

fn arm(run: &LabRun, name: &str) -> ArmSummary {
    let trials: Vec<&Trial> = run.trials.iter().filter(|trial| trial.arm == name).collect();
    let gone = |second: &Second| second.volumes[&Role::Data].credits == Some(0.0);
    let splits = trials.iter().any(|trial| trial.seconds.iter().any(gone));
    let regime = |gone: bool| Regime { credits_gone: splits.then_some(gone), ..Regime::default() };
    let part = |trial: &&Trial, gone_now: bool| {
        let seconds: Vec<&Second> = trial.seconds.iter().filter(|second| gone(second) == gone_now).collect();
        let (first, last) = (seconds.first()?, seconds.last()?);
        let tps = seconds.iter().map(|second| second.load.tps).sum::<f64>() / seconds.len() as f64;
        Some(Part { regime: regime(gone_now), from_s: first.t_s - 1.0, to_s: last.t_s, tps })
    };
    let windows: Vec<TrialWindow> = trials
        .iter()
        .map(|trial| {
            let parts: Vec<Part> = [false, true].into_iter().filter_map(|gone| part(trial, gone)).collect();
            let change = |part: &Part| WindowChange { t_s: part.from_s, cause: Cause::CreditsEnded };
            TrialWindow {
                repeat: trial.repeat,
                from_s: 0.0,
                to_s: trial.seconds.len() as f64,
                steady: true,
                drift: 0.004,
                changes: parts.iter().skip(1).map(change).collect(),
                parts,
            }
        })
        .collect();
    let select = |gone_now: Option<bool>| -> Vec<Vec<&Second>> {
        let chosen = |second: &&Second| gone_now.is_none_or(|gone_now| gone(second) == gone_now);
        trials.iter().map(|trial| trial.seconds.iter().filter(chosen).collect()).collect()
    };
    let mut regimes = Vec::new();
    if splits {
        for (gone, label) in [(false, "with credits"), (true, "after the credits")] {
            let figures = figures(&select(Some(gone)));
            regimes.push(RegimeSummary { regime: regime(gone), label: label.into(), figures });
        }
    }
    let measured = u32::try_from(trials.len()).unwrap();
    ArmSummary {
        tpcc: None,
        lag: None,
        replica_volumes: BTreeMap::new(),
        answers: None,
        backup: None,
        name: name.into(),
        trials: TrialCounts { measured, ..TrialCounts::default() },
        whole: Some(figures(&select(None))),
        regimes,
        windows,
    }
}

fn figures(trials: &[Vec<&Second>]) -> Figures {
    let means = |of: &dyn Fn(&Second) -> f64| -> Vec<f64> {
        let mean = |seconds: &Vec<&Second>| {
            seconds.iter().map(|second| of(second)).sum::<f64>() / seconds.len() as f64
        };
        trials.iter().map(mean).collect()
    };
    let mean = |of: &dyn Fn(&Second) -> f64| means(of).iter().sum::<f64>() / trials.len() as f64;
    let tps = mean(&|second| second.load.tps);
    let volume = |second: &Second| second.volumes[&Role::Data];
    let ios = mean(&|second| volume(second).read_iops + volume(second).write_iops) / tps;
    let data = VolumeFigures { limited: mean(&|second| volume(second).limited), ..VolumeFigures::default() };
    let mut figures = Figures {
        trials: u32::try_from(trials.len()).unwrap(),
        seconds: trials.iter().map(|seconds| seconds.len() as f64).sum(),
        tps: measured(&means(&|second| second.load.tps)),
        p50_us: across(&means(&|second| second.load.p50_us)),
        p95_us: across(&means(&|second| second.load.p95_us)),
        p99_us: across(&means(&|second| second.load.p99_us)),
        per_transaction: Some(PerTransaction {
            ios,
            reads: ios * 0.3,
            writes: ios * 0.7,
            read_kib: ios * 0.3 * 16.0,
            written_kib: ios * 0.7 * 18.0,
            server_cpu_us: 2_000.0 + 2e5 / tps,
            ..PerTransaction::default()
        }),
        volumes: BTreeMap::from([(Role::Data, data)]),
        limiter: Limiter { what: Bottleneck::VolumeIops, volume: Some(Role::Data), share: data.limited },
        ..Figures::default()
    };
    figures.host.server_cpus = mean(&|second| second.host.server_cpus);
    figures
}

fn measured(values: &[f64]) -> Measured {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation =
        (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0)).sqrt();
    let reach = 2.2 * deviation / count.sqrt();
    Measured {
        mean,
        interval: (values.len() > 1).then_some(Interval { mid: mean, low: mean - reach, high: mean + reach }),
        spread: Some(deviation / mean),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(0.0, f64::max),
    }
}

fn across(values: &[f64]) -> Across {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Across { median: sorted[sorted.len() / 2], min: sorted[0], max: sorted[sorted.len() - 1] }
}

fn compared(arms: &[ArmSummary], axis: &str, arm: usize, baseline: usize) -> Vec<Compared> {
    let parts = |index: usize| -> Vec<(Option<Regime>, String, &Figures)> {
        let regimes = arms[index].regimes.iter();
        let mut parts: Vec<_> =
            regimes.map(|part| (Some(part.regime), part.label.clone(), &part.figures)).collect();
        if parts.is_empty() {
            parts.push((None, String::new(), arms[index].whole.as_ref().unwrap()));
        }
        parts
    };
    let plain = Regime::default();
    let pair = |(theirs, label, held): &(Option<Regime>, String, &Figures)| {
        let (mine, _, figures) = parts(arm).swap_remove(0);
        let ratio = figures.tps.mean / held.tps.mean;
        let interval = Interval { mid: ratio, low: ratio * 0.982, high: ratio * 1.019 };
        let verdict = match ratio {
            more if more > 1.0 + FLOOR => Verdict::Faster,
            less if less < 1.0 - FLOOR => Verdict::Slower,
            _ => Verdict::NoDifferenceSeen,
        };
        let ratio = |ratio| Ratio { ratio, interval: Some(interval), p_value: None, p_adjusted: None };
        Compared {
            axis: axis.into(),
            arm,
            baseline,
            regimes: theirs.map(|theirs| (mine.unwrap_or(plain), theirs)),
            label: if label.is_empty() { String::new() } else { format!("baseline {label}") },
            equal: false,
            metric: Metric::Tps,
            tps: Some(ratio(interval.mid)),
            p95: Some(ratio(1.0 / interval.mid)),
            p99: None,
            ios_per_transaction: None,
            verdict,
            smallest_effect: Some(0.024),
        }
    };
    parts(baseline).iter().map(pair).collect()
}
