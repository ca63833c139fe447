//! Drives the planned volumes and keeps what they report.

use std::ops::ControlFlow;

use ebbtide_twin::trace::{Record, TraceError};
use ebbtide_twin::{
    Interval, Observer, Outcome, Percentiles, ReplayError, ReplaySetup, Setup, SimulateError, Totals,
    VolumeOutcome, replay, replay_closed, simulate,
};
use ebbtide_volume::{Array, Instance, Nanos, Op};

use super::plan::{MOST_INTERVALS, STEPS_S, SimulationPlan};
use super::trace::TraceRead;

/// Rows of a condensed table: what fits a screen.
const ROWS: u64 = 40;

/// What came out for one volume.
#[derive(Debug)]
pub struct SimulatedRun {
    /// Virtual time from the start to the end.
    pub duration: Nanos,
    /// What the model says of it.
    pub outcome: VolumeOutcome,
    /// All jobs together.
    pub totals: Totals,
    /// Every interval.
    pub intervals: Vec<Interval>,
    /// The table: the intervals, or several of them in one.
    pub rows: Vec<Interval>,
    /// What was read of the trace; none of jobs, and before the caller adds it.
    pub trace: Option<TraceRead>,
}

impl SimulatedRun {
    /// Whether the table has figures of reads, or of writes.
    pub(super) fn shows(&self, plan: &SimulationPlan, op: Op) -> bool {
        match (&self.trace, op) {
            (None, _) => plan.does(op),
            (Some(_), Op::Read) => self.totals.read.ios > 0,
            (Some(_), _) => self.totals.write.ios > 0,
        }
    }
}

/// Volumes that run in one virtual time: all of them on one instance, or one alone.
#[derive(Debug)]
pub struct VolumeGroup {
    /// Number of the first volume among all of the plan.
    first: usize,
    arrays: Vec<Array>,
}

/// Is called with the number of a volume and the virtual time that it has reached.
pub type Reached<'a> = &'a (dyn Fn(usize, Nanos) + Sync);

impl VolumeGroup {
    /// The groups of a plan. They do not depend on each other.
    #[must_use]
    pub fn all(plan: &SimulationPlan) -> Vec<Self> {
        let arrays = plan.arrays();
        if plan.together {
            return vec![Self { first: 0, arrays }];
        }
        let alone = |(first, array)| Self { first, arrays: vec![array] };
        arrays.into_iter().enumerate().map(alone).collect()
    }

    /// Runs the jobs of the plan.
    ///
    /// # Errors
    /// A job that does not fit a volume, or a run that would never end.
    pub fn run_jobs(
        self,
        plan: &SimulationPlan,
        reached: Reached<'_>,
    ) -> Result<Vec<SimulatedRun>, SimulateError> {
        let mut collector = self.collector(plan, reached);
        let SimulationPlan { workload, seed, interval, .. } = plan;
        let setup = Setup {
            volumes: self.arrays,
            instance: instance(plan),
            workload,
            seed: *seed,
            interval: *interval,
        };
        let outcome = simulate(setup, &mut collector)?;
        Ok(collector.finish(outcome))
    }

    /// Replays the requests of a trace. What was read of it is left to the caller, which has the file.
    ///
    /// # Errors
    /// A trace that cannot be read on or has no latencies, a request that does not fit a volume, or a run that would never end.
    pub fn replay(
        self,
        plan: &SimulationPlan,
        think_times: bool,
        records: &mut dyn Iterator<Item = Result<Record, TraceError>>,
        reached: Reached<'_>,
    ) -> Result<Vec<SimulatedRun>, ReplayError> {
        let mut collector = self.collector(plan, reached);
        let setup = ReplaySetup {
            volumes: self.arrays,
            instance: instance(plan),
            seed: plan.seed,
            interval: plan.interval,
        };
        let outcome = if think_times {
            replay_closed(setup, records, &mut collector)
        } else {
            replay(setup, records, &mut collector)
        };
        Ok(collector.finish(outcome?))
    }

    fn collector<'a>(&self, plan: &SimulationPlan, reached: Reached<'a>) -> IntervalCollector<'a> {
        let volumes = self.arrays.iter().map(|_| CollectedVolume::new(plan)).collect();
        IntervalCollector { volumes, first: self.first, reached }
    }
}

fn instance(plan: &SimulationPlan) -> Option<Instance> {
    plan.instance.as_ref().map(|instance| Instance::new(instance.limits))
}

struct IntervalCollector<'a> {
    volumes: Vec<CollectedVolume>,
    /// Number of the first volume among all runs.
    first: usize,
    reached: Reached<'a>,
}

impl IntervalCollector<'_> {
    fn finish(self, outcome: Outcome) -> Vec<SimulatedRun> {
        let kept = self.volumes.into_iter().zip(outcome.volumes);
        let runs = kept.map(|(kept, volume)| SimulatedRun {
            duration: outcome.duration,
            totals: volume.totals(),
            outcome: volume,
            rows: kept.rows.finish(),
            intervals: kept.intervals,
            trace: None,
        });
        runs.collect()
    }
}

struct CollectedVolume {
    intervals: Vec<Interval>,
    rows: Rows,
}

impl CollectedVolume {
    fn new(plan: &SimulationPlan) -> Self {
        Self { intervals: Vec::new(), rows: Rows::new(plan) }
    }
}

impl Observer for IntervalCollector<'_> {
    fn interval(&mut self, volume: usize, interval: &Interval, latencies: &Percentiles) -> ControlFlow<()> {
        (self.reached)(self.first + volume, interval.end);
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
    fn new(plan: &SimulationPlan) -> Self {
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
