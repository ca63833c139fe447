//! What a run means, in words.

use ebbtide_twin::{Balance, BalanceChange, Interval, Rate};
use ebbtide_volume::{Nanos, Op};

use super::figures;
use super::plan::SimulationPlan;
use super::run::SimulatedRun;
use super::trace::TraceRead;

/// A limit counts as what holds a run back when I/O waited for it in this share of the time.
const HELD: f64 = 0.02;
/// A paced job counts as behind when it moved less than this share of what it was to.
const BEHIND: f64 = 0.99;

/// A change with what followed it.
#[derive(Debug)]
pub(super) struct DescribedChange {
    pub(super) at: Nanos,
    /// The whole sentence.
    pub(super) sentence: String,
    /// The beginning of it, for a chart.
    pub(super) label: String,
}

/// The changes of a run: when credits ended or came back, and what it ran at from then on.
pub(super) fn changes(run: &SimulatedRun) -> Vec<DescribedChange> {
    let all = &run.outcome.changes;
    let next = all.iter().skip(1).map(|change| change.at).chain([run.duration]);
    all.iter().zip(next).map(|(change, until)| describe(run, change, until)).collect()
}

fn describe(run: &SimulatedRun, change: &BalanceChange, until: Nanos) -> DescribedChange {
    let whose = match change.balance {
        Balance::Volume => "credits",
        Balance::InstanceIo => "the instance's I/O credits",
        Balance::InstanceBytes => "the instance's byte credits",
    };
    let does = if change.ended { "ended" } else { "came back" };
    let label = match (change.at, change.ended) {
        (Nanos::ZERO, true) => format!("no {whose} from the start"),
        (at, true) => format!("{whose} {does} after {}", figures::seconds(at)),
        (at, false) => format!("{whose} {does} at {}", figures::seconds(at)),
    };
    let sentence = match between(run, change.at, until) {
        Some((iops, mib_s)) => {
            format!("{label}; from then on {} IOPS, {} MiB/s", figures::rate(iops), figures::rate(mib_s))
        }
        None => label.clone(),
    };
    DescribedChange { at: change.at, sentence, label }
}

/// Mean IOPS and MiB/s of the intervals that are wholly within a span, where there are any.
fn between(run: &SimulatedRun, from: Nanos, until: Nanos) -> Option<(f64, f64)> {
    // The interval in which the change fell has some of both sides; the one after it has the rest
    // of what was in flight.
    let inside = |interval: &&Interval| interval.start >= from && interval.end <= until;
    let intervals: Vec<&Interval> = run.intervals.iter().filter(inside).collect();
    let skip = usize::from(intervals.len() > 2 && from > Nanos::ZERO);
    let intervals = &intervals[skip..];
    let seconds: f64 = intervals.iter().map(|interval| interval.span().as_secs_f64()).sum();
    let sum = |of: fn(&Interval) -> u64| intervals.iter().map(|interval| of(interval)).sum::<u64>() as f64;
    (seconds > 0.0).then(|| {
        let ios = sum(|interval| interval.reads + interval.writes);
        let bytes = sum(|interval| interval.read_bytes + interval.write_bytes);
        (ios / seconds, figures::mib(bytes) / seconds)
    })
}

/// Shares of a run (0 to 1) in which I/O waited for each limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) volume_iops: f64,
    pub(super) volume_throughput: f64,
    pub(super) instance_iops: f64,
    pub(super) instance_throughput: f64,
}

impl Held {
    pub(super) fn of(run: &SimulatedRun) -> Self {
        let stats = &run.outcome.stats;
        let share = |time: Nanos| (time.0 as f64 / (run.duration.0 as f64).max(1.0)).min(1.0);
        Self {
            volume_iops: share(stats.volume_iops_exceeded),
            volume_throughput: share(stats.volume_throughput_exceeded),
            instance_iops: share(stats.instance_iops_exceeded),
            instance_throughput: share(stats.instance_throughput_exceeded),
        }
    }
}

/// The verdict on one run: what changed, what held it back, what of a trace was replayed, and whether its pace was kept.
pub(super) fn verdict(plan: &SimulationPlan, run: &SimulatedRun) -> Vec<String> {
    let trace = run.trace.iter().flat_map(TraceRead::sentences);
    changed(run).chain([bottleneck(run)]).chain(trace).chain(behind(plan, run)).collect()
}

/// The verdict without what is said of a trace, which is that of all volumes.
pub(super) fn of_volume(plan: &SimulationPlan, run: &SimulatedRun) -> Vec<String> {
    changed(run).chain([bottleneck(run)]).chain(behind(plan, run)).collect()
}

fn changed(run: &SimulatedRun) -> impl Iterator<Item = String> {
    changes(run).into_iter().map(|change| capital(&change.sentence))
}

/// What held a run back.
pub(super) fn bottleneck(run: &SimulatedRun) -> String {
    let held = Held::of(run);
    let mut limits = [
        (held.volume_iops, "the volume's IOPS limit"),
        (held.volume_throughput, "the volume's throughput limit"),
        (held.instance_iops, "the instance's IOPS limit"),
        (held.instance_throughput, "the instance's throughput limit"),
    ];
    limits.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named: Vec<String> = limits
        .iter()
        .filter(|(share, _)| *share >= HELD)
        .map(|(share, name)| format!("{name} ({} of the time)", figures::percent(Some(*share))))
        .collect();
    if named.is_empty() {
        let p50 = figures::latency(run.totals.all().percentiles.at(0.50));
        if run.trace.is_some() {
            return format!("No limit held it back; the latency of the volume was {p50} at the median.");
        }
        return format!(
            "No limit held it back: the depth of the load and the latency of the volume, {p50} at the median, set the pace."
        );
    }
    format!("Held back by {}.", named.join(" and "))
}

/// A sentence for every paced job that the volume did not keep up with.
pub(super) fn behind(plan: &SimulationPlan, run: &SimulatedRun) -> Vec<String> {
    let mut sentences = Vec::new();
    for (job, done) in plan.workload.jobs.iter().zip(&run.outcome.jobs) {
        let Some(runtime) = job.runtime.filter(|_| job.time_based) else { continue };
        for (side, op, done) in [(0, Op::Read, &done.read), (1, Op::Write, &done.write)] {
            let Some(rate) = job.rate[side].filter(|_| job.does(op)) else { continue };
            let (asked, got, unit) = match rate {
                Rate::Iops(rate) => (rate as f64, done.ios as f64, "IOPS"),
                Rate::Bytes(rate) => (figures::mib(rate as f64), figures::mib(done.bytes as f64), "MiB/s"),
            };
            let (asked, got) = (asked * f64::from(job.clones), got / runtime.as_secs_f64());
            if got < asked * BEHIND {
                sentences.push(format!(
                    "Job '{}' asked for {} {unit} of {}s and got {}.",
                    job.name,
                    figures::rate(asked),
                    if op == Op::Read { "read" } else { "write" },
                    figures::rate(got)
                ));
            }
        }
    }
    sentences
}

/// A sentence of its own: with a capital and a full stop.
pub(super) fn capital(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
