//! Drives the planned volumes and keeps what they report.

use std::ops::ControlFlow;
use std::thread;

use ebbtide_twin::{
    Interval, Observer, Outcome, Percentiles, ReplayError, ReplaySetup, Setup, SimulateError, Totals,
    VolumeOutcome, replay, replay_closed, simulate,
};
use ebbtide_volume::{Array, Instance, Nanos, Op};

use super::plan::{MOST_INTERVALS, Plan, STEPS_S};
use super::progress::Progress;
use super::trace::{self, TracePlan, TraceRead};
use crate::exit::Refusal;

/// Rows of a condensed table: what fits a screen.
const ROWS: u64 = 40;

/// What came out for one volume.
#[derive(Debug)]
pub(super) struct SimulatedRun {
    /// Virtual time from the start to the end.
    pub(super) duration: Nanos,
    pub(super) outcome: VolumeOutcome,
    /// All jobs together.
    pub(super) totals: Totals,
    pub(super) intervals: Vec<Interval>,
    /// The table: the intervals, or several of them in one.
    pub(super) rows: Vec<Interval>,
    /// What was read of the trace; none of jobs.
    pub(super) trace: Option<TraceRead>,
}

impl SimulatedRun {
    /// Whether the table has figures of reads, or of writes.
    pub(super) fn shows(&self, plan: &Plan, op: Op) -> bool {
        match (&self.trace, op) {
            (None, _) => plan.does(op),
            (Some(_), Op::Read) => self.totals.read.ios > 0,
            (Some(_), _) => self.totals.write.ios > 0,
        }
    }
}

/// Runs every volume of the plan.
///
/// # Errors
/// A job that does not fit a volume, or a run that would never end.
pub(super) fn all(plan: &Plan) -> anyhow::Result<Vec<SimulatedRun>> {
    let arrays = plan.arrays();
    let progress = Progress::new(arrays.len(), plan.ends);
    let groups: Vec<Vec<Array>> =
        if plan.together { vec![arrays] } else { arrays.into_iter().map(|array| vec![array]).collect() };
    let results: Vec<anyhow::Result<Vec<SimulatedRun>>> = thread::scope(|scope| {
        let progress = &progress;
        let started: Vec<_> = groups
            .into_iter()
            .enumerate()
            .map(|(first, group)| scope.spawn(move || one_group(plan, group, first, progress)))
            .collect();
        let joined = started.into_iter().map(|group| group.join());
        joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    drop(progress);
    let mut runs = Vec::new();
    for result in results {
        runs.append(&mut result?);
    }
    Ok(runs)
}

fn refusal(error: &SimulateError) -> Refusal {
    match error {
        SimulateError::GivenUp { at } => Refusal::usage(format!(
            "at {at} of virtual time the run had {MOST_INTERVALS} intervals, the most that are kept"
        ))
        .hint("give a longer --interval, or a runtime"),
        other => Refusal::usage(other.to_string()),
    }
}

/// Volumes that run in one virtual time: all of them on one instance, or one alone.
fn one_group(
    plan: &Plan,
    volumes: Vec<Array>,
    first: usize,
    progress: &Progress,
) -> anyhow::Result<Vec<SimulatedRun>> {
    let instance = plan.instance.as_ref().map(|instance| Instance::new(instance.limits));
    let mut collector = IntervalCollector {
        volumes: volumes.iter().map(|_| CollectedVolume::new(plan)).collect(),
        first,
        progress,
    };
    let (seed, interval) = (plan.seed, plan.interval);
    let (outcome, trace) = match &plan.trace {
        None => {
            let setup = Setup { volumes, instance, workload: &plan.workload, seed, interval };
            (simulate(setup, &mut collector).map_err(|error| refusal(&error))?, None)
        }
        Some(trace) => {
            let setup = ReplaySetup { volumes, instance, seed, interval };
            let (outcome, read) = replayed(trace, setup, &mut collector)?;
            (outcome, Some(read))
        }
    };
    let kept = collector.volumes.into_iter().zip(outcome.volumes);
    let runs = kept.map(|(kept, volume)| SimulatedRun {
        duration: outcome.duration,
        totals: volume.totals(),
        outcome: volume,
        rows: kept.rows.finish(),
        intervals: kept.intervals,
        trace: trace.clone(),
    });
    Ok(runs.collect())
}

fn replayed(
    plan: &TracePlan,
    setup: ReplaySetup,
    collector: &mut IntervalCollector<'_>,
) -> anyhow::Result<(Outcome, TraceRead)> {
    let mut trace = plan.open()?;
    let outcome = trace::read_ahead(&mut trace, |records| {
        if plan.think_times {
            replay_closed(setup, records, collector)
        } else {
            replay(setup, records, collector)
        }
    });
    let read = TraceRead::of(&trace, plan.think_times);
    match outcome {
        Ok(_) if read.requests == 0 => Err(trace::empty(&plan.path, &read).into()),
        Ok(outcome) => Ok((outcome, read)),
        Err(ReplayError::Simulate(error)) => Err(refusal(&error).into()),
        Err(error) => Err(trace::refusal(&plan.path, &error, read.requests).into()),
    }
}

struct IntervalCollector<'a> {
    volumes: Vec<CollectedVolume>,
    /// Number of the first volume among all runs.
    first: usize,
    progress: &'a Progress,
}

struct CollectedVolume {
    intervals: Vec<Interval>,
    rows: Rows,
}

impl CollectedVolume {
    fn new(plan: &Plan) -> Self {
        Self { intervals: Vec::new(), rows: Rows::new(plan) }
    }
}

impl Observer for IntervalCollector<'_> {
    fn interval(&mut self, volume: usize, interval: &Interval, latencies: &Percentiles) -> ControlFlow<()> {
        self.progress.reached(self.first + volume, interval.end);
        let kept = &mut self.volumes[volume];
        kept.intervals.push(*interval);
        kept.rows.add(interval, latencies);
        if kept.intervals.len() as u64 >= MOST_INTERVALS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Condenses intervals to the rows of a table. A row ends at a multiple of its step, and also
/// where burst credits end or come back, so that no row mixes both sides of such a change.
struct Rows {
    /// Length of a row; none: every interval is one.
    step: Option<Nanos>,
    done: Vec<Row>,
    open: Option<Row>,
}

#[derive(Clone)]
struct Row {
    sum: Interval,
    /// Whether credits ended or came back at its end: nothing that follows may join it.
    ends_at_change: bool,
    latencies: Percentiles,
}

impl Row {
    fn new(interval: &Interval, latencies: &Percentiles) -> Self {
        Self { sum: *interval, ends_at_change: false, latencies: latencies.clone() }
    }

    /// Adds what followed. Shares of time are weighed by the length of the intervals.
    fn add(&mut self, next: &Interval, latencies: &Percentiles) {
        self.ends_at_change |= self.sum.credits_ended != next.credits_ended;
        self.latencies.add(latencies);
        let sum = self.sum;
        let weight = next.span().as_secs_f64() / (sum.span() + next.span()).as_secs_f64();
        let mix = |a: f64, b: f64| a * (1.0 - weight) + b * weight;
        let (busy, more) = (sum.queue * (1.0 - weight), next.queue * weight);
        self.sum = Interval {
            start: sum.start,
            end: next.end,
            reads: sum.reads + next.reads,
            writes: sum.writes + next.writes,
            read_bytes: sum.read_bytes + next.read_bytes,
            write_bytes: sum.write_bytes + next.write_bytes,
            p50: self.latencies.at(0.50),
            p99: self.latencies.at(0.99),
            queue: mix(sum.queue, next.queue),
            // The I/O's time is the integral of the queue, which is what its shares weigh.
            throttled_share: (sum.throttled_share * busy + next.throttled_share * more)
                / (busy + more).max(f64::MIN_POSITIVE),
            volume_iops_exceeded: mix(sum.volume_iops_exceeded, next.volume_iops_exceeded),
            volume_throughput_exceeded: mix(sum.volume_throughput_exceeded, next.volume_throughput_exceeded),
            instance_iops_exceeded: mix(sum.instance_iops_exceeded, next.instance_iops_exceeded),
            instance_throughput_exceeded: mix(
                sum.instance_throughput_exceeded,
                next.instance_throughput_exceeded,
            ),
            ..*next
        };
    }
}

impl Rows {
    fn new(plan: &Plan) -> Self {
        let step = (!plan.interval_given).then(|| first_step(plan.interval, plan.ends));
        Self { step, done: Vec::new(), open: None }
    }

    fn add(&mut self, interval: &Interval, latencies: &Percentiles) {
        let row = match self.open.take() {
            Some(mut open) => {
                open.add(interval, latencies);
                open
            }
            None => {
                let before = self.done.last().is_some_and(|row| row.sum.credits_ended);
                let mut row = Row::new(interval, latencies);
                row.ends_at_change = !self.done.is_empty() && before != interval.credits_ended;
                row
            }
        };
        if row.ends_at_change || self.step.is_none_or(|step| interval.end.0.is_multiple_of(step.0)) {
            self.done.push(row);
        } else {
            self.open = Some(row);
        }
        if self.step.is_some() && self.done.len() as u64 >= ROWS * 2 {
            self.halve();
        }
    }

    /// Where the end was not known: twice the step, half the rows.
    fn halve(&mut self) {
        let step = Nanos(self.step.map_or(1, |step| step.0 * 2));
        self.step = Some(step);
        let mut halved: Vec<Row> = Vec::new();
        for row in self.done.drain(..) {
            match halved.last_mut() {
                Some(last) if !last.ends_at_change && !last.sum.end.0.is_multiple_of(step.0) => {
                    last.add(&row.sum, &row.latencies);
                }
                _ => halved.push(row),
            }
        }
        self.done = halved;
    }

    fn finish(mut self) -> Vec<Interval> {
        self.done.extend(self.open.take());
        self.done.into_iter().map(|row| row.sum).collect()
    }
}

/// The shortest step that people count in with at most 40 rows to a known end.
fn first_step(interval: Nanos, ends: Option<Nanos>) -> Nanos {
    let Some(ends) = ends else { return interval };
    let steps = STEPS_S.iter().map(|&seconds| Nanos::from_secs(seconds));
    let fits = |step: &Nanos| *step >= interval && ends.0.div_ceil(step.0) <= ROWS;
    steps.filter(fits).min().unwrap_or(Nanos(ends.0.div_ceil(ROWS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(second: u64, credits_ended: bool) -> Interval {
        Interval {
            start: Nanos::from_secs(second),
            end: Nanos::from_secs(second + 1),
            reads: second,
            writes: 0,
            read_bytes: 4096 * second,
            write_bytes: 0,
            p50: None,
            p99: None,
            queue: 2.0,
            throttled_share: 0.5,
            volume_iops_exceeded: 1.0,
            volume_throughput_exceeded: 0.0,
            instance_iops_exceeded: 0.0,
            instance_throughput_exceeded: 0.0,
            credits_ended,
            credit_share: None,
            instance_io_share: None,
            instance_byte_share: None,
        }
    }

    fn rows(step: Option<u64>, seconds: u64, ended_from: u64) -> Vec<Interval> {
        let mut rows = Rows { step: step.map(Nanos::from_secs), done: Vec::new(), open: None };
        for second in 0..seconds {
            rows.add(&interval(second, second >= ended_from), &Percentiles::default());
        }
        rows.finish()
    }

    fn bounds(rows: &[Interval]) -> Vec<u64> {
        rows.iter().map(|row| row.end.0 / 1_000_000_000).collect()
    }

    #[test]
    fn a_row_ends_at_its_step_and_where_the_credits_end() {
        let rows = rows(Some(10), 35, 17);
        assert_eq!(bounds(&rows), [10, 18, 20, 30, 35]);
        assert_eq!(rows[0].reads, 45);
        assert!((rows[0].queue - 2.0).abs() < 1e-9 && (rows[0].throttled_share - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_run_without_a_known_end_condenses_as_it_goes_and_loses_nothing() {
        let rows = rows(Some(1), 10_000, 5_000);
        assert!((20..=80).contains(&rows.len()), "{}", rows.len());
        assert_eq!(rows.iter().map(|row| row.reads).sum::<u64>(), (0..10_000).sum::<u64>());
        assert!(rows.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(bounds(&rows).contains(&5_001), "{:?}", bounds(&rows));
    }

    #[test]
    fn an_explicit_interval_shows_every_one() {
        assert_eq!(rows(None, 500, 500).len(), 500);
    }

    #[test]
    fn a_known_end_gives_at_most_forty_rows_of_a_length_that_people_count_in() {
        let step = |seconds| first_step(Nanos::SECOND, Some(Nanos::from_secs(seconds))).0 / 1_000_000_000;
        assert_eq!((step(30), step(60), step(3_600), step(10_800), step(86_400)), (1, 2, 120, 300, 3_600));
    }
}
