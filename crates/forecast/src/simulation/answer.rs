//! The answer of a simulation: one sentence, with its rate, its latency and its price.

use super::figures::{latency, mean_rate, mib, span, whole};
use super::plan::SimulationPlan;
use super::run::SimulatedRun;
use super::sentences;
use ebbtide_volume::Nanos;

/// Rates and latencies that differ by less are the same.
const SAME: f64 = 0.02;

/// What the run comes to: the best of the volumes, what it is beside another, and what it costs.
pub(super) fn sentence(plan: &SimulationPlan, runs: &[SimulatedRun]) -> String {
    let best = best(plan, runs);
    let (spec, run) = (&plan.volumes[best].spec, &runs[best]);
    let all = run.totals.all();
    let ios = whole(all.ios as f64);
    let mut sentence = if run.duration == Nanos::ZERO {
        format!("{spec}: {ios} I/Os in no time")
    } else {
        format!(
            "{spec}: {} IOPS, {} MiB/s and a p99 of {} over {}",
            mean_rate(all.ios as f64, run.duration),
            mean_rate(mib(all.bytes as f64), run.duration),
            latency(all.percentiles.at(0.99)),
            span(run.duration)
        )
    };
    if runs.len() > 1 {
        sentence.push_str(&compared(plan, runs, best));
    } else if let Some(first) = sentences::changes(run).first() {
        sentence.push_str(&format!("; {}", first.sentence));
    }
    sentence.push_str(&price(plan, best));
    sentence.push('.');
    sentence
}

/// The volume with the highest rate; of those with the same rate that with the lowest p99; of those the cheapest, where all have
/// a price.
fn best(plan: &SimulationPlan, runs: &[SimulatedRun]) -> usize {
    let all = || 0..runs.len();
    let highest = all().map(|place| rate(&runs[place])).fold(0.0, f64::max);
    let fast: Vec<usize> = all().filter(|place| rate(&runs[*place]) >= highest * (1.0 - SAME)).collect();
    let lowest = fast.iter().map(|place| p99_ns(&runs[*place])).fold(f64::INFINITY, f64::min);
    let quick: Vec<usize> =
        fast.into_iter().filter(|place| p99_ns(&runs[*place]) <= lowest * (1.0 + SAME)).collect();
    let usd = |place: usize| plan.volumes[place].cost.as_ref().map(|cost| cost.usd);
    let all_priced = quick.iter().all(|place| usd(*place).is_some());
    let best = if all_priced { quick.iter().copied().min_by_key(|place| usd(*place)) } else { None };
    best.or(quick.first().copied()).unwrap_or(0)
}

fn rate(run: &SimulatedRun) -> f64 {
    run.totals.all().ios as f64 / run.duration.as_secs_f64().max(1e-9)
}

fn p99_ns(run: &SimulatedRun) -> f64 {
    run.totals.all().percentiles.at(0.99).map_or(0.0, |Nanos(ns)| ns as f64)
}

/// The volume that the best is compared with: the first, or the second where the first is the best.
const fn other(best: usize) -> usize {
    if best == 0 { 1 } else { 0 }
}

fn compared(plan: &SimulationPlan, runs: &[SimulatedRun], best: usize) -> String {
    let other = other(best);
    let spec = &plan.volumes[other].spec;
    let ratio = rate(&runs[best]) / rate(&runs[other]).max(1e-9);
    let slower = p99_ns(&runs[other]) / p99_ns(&runs[best]).max(1.0);
    if (ratio - 1.0).abs() >= SAME {
        format!(", {} times the IOPS of {spec}", ebbtide_text::fixed(ratio, 2))
    } else if slower - 1.0 >= SAME {
        let p99 = latency(runs[other].totals.all().percentiles.at(0.99));
        format!(", the IOPS of {spec}, whose p99 is {p99}")
    } else {
        format!(", the same as {spec}")
    }
}

fn price(plan: &SimulationPlan, best: usize) -> String {
    let Some(cost) = &plan.volumes[best].cost else { return String::new() };
    let other = plan.volumes.get(other(best)).and_then(|volume| volume.cost.as_ref());
    let difference = match other.filter(|_| plan.volumes.len() == 2) {
        Some(other) if cost.usd > other.usd => format!(", {} more", cost.usd.less(other.usd)),
        Some(other) if cost.usd < other.usd => format!(", {} less", other.usd.less(cost.usd)),
        _ => String::new(),
    };
    format!("; {} a month{difference}", cost.short())
}
