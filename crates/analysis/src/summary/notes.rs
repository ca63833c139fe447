//! What a reader must know before believing a run.

use super::compare::primary;
use super::comparison::{Metric, Verdict};
use super::group::Parted;
use super::limiter::FULL;
use super::model::{Bottleneck, Cause, Figures, Note, Summary};
use crate::record::{Outcome, RunRecord, TrialRecord};
use ebbtide_text::{figure, latency, list, percent};

/// The remark on an arm with two trials.
pub const TWO_TRIALS: &str = "Two trials only: the intervals are very wide.";

/// From this many processors of strangers' work on the machine was busy.
const STRANGERS: f64 = 0.25;

/// From this share of the processors on the hypervisor took away too much.
const STOLEN: f64 = 0.02;

/// A volume that answers later than this is not what it pretends to be, us.
const PACING_US: f64 = 500.0;

/// From this share of the arrivals on that were never answered, the response times are lower bounds.
const UNDONE: f64 = 0.01;

/// More of the measured time than this was warm-up.
const LONG_WARM_UP: f64 = 0.25;

/// Transactions that take more of a trial than this are few one after the other.
const LONG_TRANSACTION: f64 = 1.0 / 3.0;

pub(super) fn notes(run: &RunRecord<'_>, arms: &[Parted<'_>], summary: &Summary) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    let mut add = |arm: Option<&str>, text: String| {
        notes.push(Note { arm: arm.map(str::to_owned), text });
    };
    for compared in summary.comparisons.iter().filter(|compared| compared.equal) {
        if matches!(compared.verdict, Verdict::Faster | Verdict::Slower) {
            let size = primary(compared).map_or(0.0, |ratio| ratio.ratio.ln().abs().exp_m1());
            add(
                None,
                format!(
                    "Equal arms differed by {}: nothing in this run that is not much larger can be believed.",
                    percent(size)
                ),
            );
        }
    }
    for (parted, arm) in arms.iter().zip(&summary.arms) {
        for text in trials(parted, run).into_iter().chain(overload(parted)).chain(steadiness(parted)) {
            add(Some(&arm.name), text);
        }
        if let Some(figures) = &arm.whole {
            for text in part_of_a_wave(figures).into_iter().chain(long_transactions(figures)) {
                add(Some(&arm.name), text);
            }
            if figures.limiter.what == Bottleneck::Processors {
                add(
                    Some(&arm.name),
                    format!(
                        "The processors of this machine were {} busy: its ratios to other arms are of processors, and not of volumes.",
                        percent(figures.limiter.share)
                    ),
                );
            }
            if figures.host.pacing_p99_us > PACING_US {
                add(
                    Some(&arm.name),
                    format!(
                        "The volumes answered up to {} us later than they should (99th percentile): this machine was too busy to pace them.",
                        figure(figures.host.pacing_p99_us)
                    ),
                );
            }
        }
    }
    if let Some(text) = lower_bounds(arms, summary) {
        add(None, text);
    }
    for text in machine(run, summary) {
        add(None, text);
    }
    notes
}

fn repeats(trials: &[&TrialRecord<'_>]) -> String {
    let numbers: Vec<String> = trials.iter().map(|trial| (trial.repeat + 1).to_string()).collect();
    if numbers.len() == 1 { format!("Trial {}", numbers[0]) } else { format!("Trials {}", list(&numbers)) }
}

/// Trials that do not count, too few of them, and what the runner noted.
fn trials(parted: &Parted<'_>, run: &RunRecord<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    let of_arm = run.trials.iter().filter(|trial| trial.arm == parted.arm.name);
    for trial in of_arm {
        let name = repeats(&[trial]);
        match trial.outcome {
            Outcome::Measured => {}
            Outcome::Disqualified { why } => texts.push(format!("{name} is in no figure: {why}.")),
            Outcome::Failed { why, .. } => texts.push(format!("{name} failed: {why}.")),
        }
        texts.extend(trial.notes.iter().map(|note| format!("{name}: {note}")));
        texts.extend(super::answers::note(trial).map(|note| format!("{name}: {note}")));
    }
    match parted.counts.measured {
        0 => texts.push("No trial was measured.".to_owned()),
        1 => texts.push("One trial only: how far its figures would spread is not known.".to_owned()),
        2 => texts.push(TWO_TRIALS.to_owned()),
        _ => {}
    }
    texts
}

/// What became of the arrivals of an open loop, all counted trials of an arm together.
#[derive(Debug, Clone, Copy, Default)]
struct Arrivals {
    due: u64,
    shed: u64,
    unfinished: u64,
    /// The longest wait of an unfinished one, ms.
    oldest_ms: f64,
}

impl Arrivals {
    fn of(parted: &Parted<'_>) -> Self {
        let loads = parted.looked.iter().filter_map(|looked| looked.trial.arrivals);
        loads.fold(Self::default(), |sum, load| Self {
            due: sum.due + load.due,
            shed: sum.shed + load.shed,
            unfinished: sum.unfinished + load.unfinished,
            oldest_ms: sum.oldest_ms.max(load.oldest_unfinished_ms),
        })
    }

    /// Whether so many were left undone that the percentiles would be longer with them.
    fn overloaded(&self) -> bool {
        (self.shed + self.unfinished) as f64 > UNDONE * self.due as f64
    }
}

/// Arrivals that an arm left undone. The few that are always in progress when the time is over are no news.
fn overload(parted: &Parted<'_>) -> Option<String> {
    let arrivals = Arrivals::of(parted);
    (arrivals.shed > 0 || arrivals.overloaded()).then(|| {
        format!(
            "It could not carry the rate that was offered: of {} arrivals {} were shed, because the backlog was full, \
             and {} were unfinished when the time was over; the longest wait of these was {}.",
            arrivals.due,
            arrivals.shed,
            arrivals.unfinished,
            latency(arrivals.oldest_ms * 1e3)
        )
    })
}

/// Arms in comparisons of response times that would be longer, had all arrivals been answered.
fn lower_bounds(arms: &[Parted<'_>], summary: &Summary) -> Option<String> {
    let compared = |index: usize| {
        let by_p95 = summary.comparisons.iter().filter(|compared| compared.metric == Metric::P95);
        by_p95.into_iter().any(|compared| [compared.arm, compared.baseline].contains(&index))
    };
    let names: Vec<String> = arms
        .iter()
        .enumerate()
        .filter(|(index, parted)| compared(*index) && Arrivals::of(parted).overloaded())
        .map(|(_, parted)| parted.arm.name.clone())
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "In comparisons with {} the 95th percentile is a lower bound: more than {} of the arrivals were shed or \
             unfinished, and would have waited for longer.",
            list(&names),
            percent(UNDONE)
        )
    })
}

fn steadiness(parted: &Parted<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for looked in &parted.looked {
        let (window, name) = (&looked.window, repeats(&[looked.trial]));
        for change in window.changes.iter().filter(|change| change.cause == Cause::Unknown) {
            texts.push(format!(
                "{name} was not steady: its level changed after {} s, for no cause that was recorded.",
                figure(change.t_s)
            ));
        }
        if looked.unsettled {
            texts.push(format!(
                "{name} was not steady: it had not settled after half of the time. Measure for longer."
            ));
        } else if window.steady && window.from_s > LONG_WARM_UP * window.to_s {
            texts.push(format!("{name}: the first {} s were cut as warm-up.", figure(window.from_s)));
        }
        if looked.drifts {
            let way = if window.drift > 0.0 { "rose" } else { "fell" };
            texts.push(format!(
                "{name} was not steady: it {way} by {} over its window.",
                percent(window.drift.abs())
            ));
        }
    }
    let waving: Vec<&TrialRecord<'_>> =
        parted.looked.iter().filter(|looked| looked.waves).map(|looked| looked.trial).collect();
    if !waving.is_empty() {
        texts.push(format!(
            "{} went up and down in waves, as flushing does: measure for whole waves, and several of them.",
            repeats(&waving)
        ));
    }
    texts
}

/// Trials that are shorter than the time in which a full redo log turns over: what was written at the
/// same time comes due at the same time, one turn later, and trials that begin alike see the same part of it.
fn part_of_a_wave(figures: &Figures) -> Option<String> {
    let server = figures.server?;
    if server.checkpoint_share? < FULL {
        return None;
    }
    let turn_s = server.checkpoint_age? / (figures.per_transaction?.redo_bytes? * figures.tps.mean);
    let trial_s = figures.seconds / f64::from(figures.trials.max(1));
    (turn_s.is_finite() && trial_s < turn_s).then(|| {
        format!(
            "Its trials of {trial_s:.0} s are shorter than the {turn_s:.0} s in which its full redo log turns over. \
             Flushing goes in waves of about that length, and trials that begin alike see the same part of one: the \
             figures may be off by more than their intervals say. Measure for longer."
        )
    })
}

/// Transactions that are long compared with their trials: each client ends few of them, all at about the same times, so that it
/// matters where the trial begins and ends.
fn long_transactions(figures: &Figures) -> Option<String> {
    let trial_s = figures.seconds / f64::from(figures.trials.max(1));
    let p95_us = figures.p95_us.median;
    (p95_us / 1e6 > LONG_TRANSACTION * trial_s).then(|| {
        format!(
            "Its transactions take up to {} (95th percentile), of trials that count {trial_s:.0} s: each client ends few \
             of them, and the figures hang on where the trials begin and end. Measure for longer, or with fewer \
             connections.",
            latency(p95_us)
        )
    })
}

fn machine(run: &RunRecord<'_>, summary: &Summary) -> Vec<String> {
    let cpus = f64::from(run.cpus.max(1));
    let mut texts = Vec::new();
    let noise = &summary.noise;
    if noise.worst_steal_cpus > STOLEN * cpus {
        texts.push(format!(
            "The hypervisor took up to {} processors away during a trial: repeat the run on a quieter machine.",
            figure(noise.worst_steal_cpus)
        ));
    }
    if run.load_before > STRANGERS * cpus {
        texts.push(format!(
            "The machine had a load of {} before the run began: other programs shared it.",
            figure(run.load_before)
        ));
    }
    let planned = run.design.arms.len() * usize::try_from(run.design.repeats).unwrap_or(usize::MAX);
    if run.trials.len() < planned {
        texts.push(format!("The run is not complete: {} of {planned} trials were run.", run.trials.len()));
    }
    texts
}
