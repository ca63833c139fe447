//! The figures of replicas: how far the one was behind that was farthest.

use super::group::{Group, Member};
use super::model::{Across, LagFigures};
use crate::record::ReplicaSecond;
use crate::stats::series;

/// Sums up the trials that count; none where no replica was asked.
pub(super) fn figures(whole: &Group<'_>) -> Option<LagFigures> {
    let trials: Vec<Vec<ReplicaSecond>> =
        whole.members.iter().map(seconds).filter(|seconds| !seconds.is_empty()).collect();
    if trials.is_empty() {
        return None;
    }
    let across =
        |of: &dyn Fn(&[ReplicaSecond]) -> f64| Across::of(trials.iter().map(|trial| of(trial)).collect());
    Some(LagFigures {
        mean_s: across(&|trial| series::mean(&lags(trial))),
        p95_s: across(&|trial| percentile_95(lags(trial))),
        end_s: across(&|trial| trial.last().map_or(0.0, |second| second.lag_s)),
        transactions: counted(&trials, series::mean),
        end_transactions: counted(&trials, |counts| counts.last().copied().unwrap_or(0.0)),
    })
}

fn seconds(member: &Member<'_>) -> Vec<ReplicaSecond> {
    member.seconds.iter().filter_map(|second| second.replica).collect()
}

fn lags(trial: &[ReplicaSecond]) -> Vec<f64> {
    trial.iter().map(|second| second.lag_s).collect()
}

/// The smallest value that 95% of them do not exceed.
fn percentile_95(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() * 95).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or(0.0)
}

/// A figure of the transactions that were missing; none where they are not numbered.
fn counted(trials: &[Vec<ReplicaSecond>], of: fn(&[f64]) -> f64) -> Option<Across> {
    let of_trial = |trial: &Vec<ReplicaSecond>| {
        let counts: Vec<f64> = trial.iter().filter_map(|second| second.lag_transactions).collect();
        (!counts.is_empty()).then(|| of(&counts))
    };
    let all: Vec<f64> = trials.iter().filter_map(of_trial).collect();
    (!all.is_empty()).then(|| Across::of(all))
}
