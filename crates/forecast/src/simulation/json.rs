//! The JSON that `--json` prints; `docs/json/simulate.schema.json` is its contract.

use ebbtide_catalog::{Initialization, MonthlyCost};
use ebbtide_twin::trace::NotUsed;
use ebbtide_twin::{Balance, Interval, OpTotals, Totals};
use ebbtide_volume::{Nanos, Op};
use serde::Serialize;

use super::figures::{mib, per_second, short, us};
use super::plan::{SimulatedVolume, SimulationPlan};
use super::run::SimulatedRun;
use super::sentences::{self, Held};

/// What `simulate` prints.
#[derive(Serialize)]
#[serde(untagged)]
pub enum SimulationFigures<'a> {
    /// Of one volume.
    Single(Box<Single<'a>>),
    /// Of several.
    Several(Several<'a>),
}

/// What `simulate` prints for several volumes.
#[derive(Serialize)]
pub struct Several<'a> {
    /// The runs, in the order of the volumes given.
    runs: Vec<Single<'a>>,
}

/// What `simulate` prints for one volume.
#[derive(Serialize)]
pub struct Single<'a> {
    /// The spec as it was given.
    volume: &'a str,
    /// The volume in words, with its limits.
    description: &'a str,
    /// What the volume costs a month; null where its type has no price in the region.
    monthly_cost: Option<&'a MonthlyCost>,
    /// The jobs as they were given; several are joined with ` + `. Empty with a trace.
    job: &'a str,
    /// The trace that was replayed; null with jobs.
    trace: Option<TraceFigures>,
    /// Seed; gives the same run again.
    seed: u64,
    /// Length of an interval, s.
    interval_s: f64,
    /// The instance type that the volume is attached to; null without one.
    instance: Option<&'a str>,
    /// Whether all volumes share one instance.
    instance_shared: bool,
    /// The loading of the volume from a snapshot; null where all blocks were there from the beginning.
    initialization: Option<Loaded>,
    /// The command line that makes this run again, for a shell.
    command: &'a str,
    /// What in the job has no effect here or differs from fio.
    notes: &'a [String],
    /// The whole run.
    totals: WholeRun,
    /// Every job.
    jobs: Vec<OneJob<'a>>,
    /// When burst credits ended or came back.
    changes: Vec<CreditChange>,
    /// What happened, in sentences. For people; the wording may change.
    verdict: Vec<String>,
    /// The run over time.
    intervals: Vec<OneInterval>,
}

/// The loading of a volume from a snapshot that has all of its blocks, at the end of the run.
#[derive(Serialize)]
struct Loaded {
    /// `lazy`, or a rate such as `rate=200MiB/s`.
    mode: Initialization,
    /// Blocks of 512 KiB that the snapshot has.
    blocks: u64,
    /// Blocks that were not there yet.
    missing: u64,
    /// Blocks that were loaded because an I/O touched them.
    touched: u64,
    /// Blocks that were loaded in the background.
    background: u64,
    /// Blocks that were written as a whole before they were loaded.
    overwritten: u64,
}

/// A trace that was replayed.
#[derive(Serialize)]
struct TraceFigures {
    /// The file.
    path: String,
    /// Its format.
    format: &'static str,
    /// Its requests: reads, writes and flushes.
    requests: u64,
    /// Lines or events that are no request to the volume, or are another device's: those of `not_used`.
    discarded: u64,
    /// Lines and events that are not replayed, by kind: requests first, the most frequent kinds first.
    not_used: Vec<NotUsedRows>,
    /// Percent of the rows of requests that are not replayed. Above 1% the report's first line says so.
    not_used_pct: f64,
    /// Recordings that stand one behind another in the file. Each is replayed behind the one before it.
    recordings: u64,
    /// Requests that stand more than 10 s or 65,536 requests too late in the file.
    late: u64,
    /// Bytes that were read, unpacked.
    bytes: u64,
    /// Whether each request waited for the answer that its client had waited for (`--think-times`).
    think_times: bool,
    /// Median of the latencies that the trace has, us; null where it has none.
    recorded_p50_us: Option<f64>,
    /// 99th percentile of the latencies that the trace has, us; null where it has none.
    recorded_p99_us: Option<f64>,
}

/// Lines or events of a trace that are not replayed.
#[derive(Serialize)]
struct NotUsedRows {
    /// Their kind, for people: `discards (DS)`.
    kind: String,
    /// How many there are.
    rows: u64,
    /// Whether they are requests that a replay should have; false for headings, other stages of requests, and the requests of
    /// other devices.
    requests: bool,
}

/// The whole run: the figures of reads and writes together, and more.
#[derive(Serialize)]
struct WholeRun {
    /// Virtual time from the start to the end, s.
    duration_s: f64,
    /// Reads and writes together.
    #[serde(flatten)]
    all: Figures,
    /// Reads by themselves; null where no job reads.
    read: Option<Figures>,
    /// Writes by themselves; null where no job writes.
    write: Option<Figures>,
    /// Completed flushes.
    flushes: u64,
    /// Reads and writes that had not completed; they are in no other figure.
    in_flight_at_end: u64,
    /// Burst credits left at the end, percent; null where the type has none.
    credit_pct: Option<f64>,
    /// Percent of the time in which I/O waited for each limit.
    limited_pct: Limited,
}

/// Percent of the time in which I/O waited for each limit.
#[derive(Serialize)]
struct Limited {
    /// The volume's IOPS, percent.
    volume_iops: f64,
    /// The volume's throughput, percent.
    volume_throughput: f64,
    /// The instance's IOPS, percent.
    instance_iops: f64,
    /// The instance's throughput, percent.
    instance_throughput: f64,
}

/// Figures of completed operations.
#[derive(Serialize)]
struct Figures {
    /// Completed operations, as the job submits them.
    ios: u64,
    /// Bytes moved.
    bytes: u64,
    /// Operations a second, mean over the duration of the run; null where the run took no time.
    iops: Option<f64>,
    /// MiB (2^20 bytes) a second, mean over the duration of the run; null where the run took no time.
    mib_s: Option<f64>,
    /// Mean latency, us; null without I/O.
    mean_us: Option<f64>,
    /// Median latency, us; to 0.1%; null without I/O.
    p50_us: Option<f64>,
    /// 90th percentile of the latency, us; null without I/O.
    p90_us: Option<f64>,
    /// 99th percentile of the latency, us; null without I/O.
    p99_us: Option<f64>,
    /// 99.9th percentile of the latency, us; null without I/O.
    p999_us: Option<f64>,
    /// Largest latency, us; null without I/O.
    max_us: Option<f64>,
    /// Percent of the I/O's time that was waiting for a limit.
    throttled_pct: f64,
}

/// A job.
#[derive(Serialize)]
struct OneJob<'a> {
    /// The section of the job file, the word `name`, or `job`.
    name: &'a str,
    /// Depth of every clone.
    iodepth: u32,
    /// Clones.
    numjobs: u32,
    /// Its reads; null where it reads nothing.
    read: Option<Figures>,
    /// Its writes; null where it writes nothing.
    write: Option<Figures>,
    /// Completed flushes.
    flushes: u64,
}

/// Burst credits that ended or came back.
#[derive(Serialize)]
struct CreditChange {
    /// When, to the second, s.
    t_s: f64,
    /// Whose credits: `volume`, `instance_io` or `instance_bytes`.
    balance: &'static str,
    /// True where the credits ended, false where they came back.
    ended: bool,
    /// The change in words.
    text: String,
}

/// An interval of the run.
#[derive(Serialize)]
struct OneInterval {
    /// End of the interval, s; the first one starts at 0, and the last one may be shorter.
    t_s: f64,
    /// Reads and writes completed, a second.
    iops: f64,
    /// MiB moved, a second.
    mib_s: f64,
    /// Median latency, us; null where nothing completed.
    p50_us: Option<f64>,
    /// 99th percentile of the latency, us; null where nothing completed.
    p99_us: Option<f64>,
    /// Mean number of reads and writes in flight.
    queue: f64,
    /// Burst credits left at the end of the interval, percent; null where the type has none.
    credit_pct: Option<f64>,
    /// Reads completed, a second.
    read_iops: f64,
    /// Writes completed, a second.
    write_iops: f64,
    /// Percent of the I/O's time that was waiting for a limit.
    throttled_pct: f64,
    /// The instance's I/O credits left, percent; null without an instance or where its size sustains its maximum.
    instance_io_pct: Option<f64>,
    /// The instance's byte credits left, percent; null without an instance or where its size sustains its maximum.
    instance_byte_pct: Option<f64>,
}

/// One object: of the run where there is one volume, of `runs` where there are several.
#[must_use]
pub fn figures<'a>(plan: &'a SimulationPlan, runs: &[SimulatedRun]) -> SimulationFigures<'a> {
    let mut runs: Vec<Single<'_>> =
        plan.volumes.iter().zip(runs).map(|(volume, run)| single(plan, volume, run)).collect();
    if runs.len() == 1
        && let Some(only) = runs.pop()
    {
        return SimulationFigures::Single(Box::new(only));
    }
    SimulationFigures::Several(Several { runs })
}

fn single<'a>(plan: &'a SimulationPlan, volume: &'a SimulatedVolume, run: &SimulatedRun) -> Single<'a> {
    let jobs = plan.workload.jobs.iter().zip(&run.outcome.jobs);
    Single {
        volume: &volume.spec,
        description: &volume.resolved.description,
        monthly_cost: volume.cost.as_ref(),
        job: &plan.job,
        trace: plan.trace.as_ref().zip(run.trace.as_ref()).map(|(trace, read)| TraceFigures {
            path: trace.path.display().to_string(),
            format: read.format.name(),
            requests: read.requests,
            discarded: read.discarded,
            not_used: read.not_used.iter().map(not_used).collect(),
            not_used_pct: pct(read.left_out_share()),
            recordings: read.recordings,
            late: read.late,
            bytes: read.bytes,
            think_times: read.think_times,
            recorded_p50_us: read.recorded.at(0.50).map(us),
            recorded_p99_us: read.recorded.at(0.99).map(us),
        }),
        seed: plan.seed,
        interval_s: plan.interval.as_secs_f64(),
        instance: plan.instance.as_ref().map(|instance| instance.name.as_str()),
        instance_shared: plan.together,
        initialization: run.outcome.loading.map(|loading| Loaded {
            mode: plan.initialization,
            blocks: loading.blocks(),
            missing: loading.missing,
            touched: loading.counts.touched,
            background: loading.counts.background,
            overwritten: loading.counts.overwritten,
        }),
        command: &plan.command,
        notes: &plan.workload.notes,
        totals: whole_run(plan, run),
        jobs: jobs.map(|(job, done)| one_job(job, done, run.duration)).collect(),
        changes: changes(run),
        verdict: sentences::verdict(plan, run),
        intervals: run.intervals.iter().map(one_interval).collect(),
    }
}

fn whole_run(plan: &SimulationPlan, run: &SimulatedRun) -> WholeRun {
    let held = Held::of(run);
    let side = |op, part: &OpTotals| run.shows(plan, op).then(|| figures_of(part, run.duration));
    WholeRun {
        duration_s: run.duration.as_secs_f64(),
        all: figures_of(&run.totals.all(), run.duration),
        read: side(Op::Read, &run.totals.read),
        write: side(Op::Write, &run.totals.write),
        flushes: run.totals.flushes,
        in_flight_at_end: run.outcome.in_flight,
        credit_pct: run.outcome.stats.credit_share.map(pct),
        limited_pct: Limited {
            volume_iops: pct(held.volume_iops),
            volume_throughput: pct(held.volume_throughput),
            instance_iops: pct(held.instance_iops),
            instance_throughput: pct(held.instance_throughput),
        },
    }
}

fn not_used(rows: &NotUsed) -> NotUsedRows {
    NotUsedRows { kind: rows.kind.clone(), rows: rows.rows, requests: rows.requests }
}

fn figures_of(part: &OpTotals, duration: Nanos) -> Figures {
    let at = |quantile| part.percentiles.at(quantile).map(us);
    Figures {
        ios: part.ios,
        bytes: part.bytes,
        iops: per_second(part.ios as f64, duration).map(short),
        mib_s: per_second(mib(part.bytes as f64), duration).map(short),
        mean_us: part.mean().map(us),
        p50_us: at(0.50),
        p90_us: at(0.90),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: at(1.0),
        throttled_pct: pct(part.throttled_ns as f64 / (part.latency_ns as f64).max(1.0)),
    }
}

fn one_job<'a>(job: &'a ebbtide_twin::Job, done: &Totals, duration: Nanos) -> OneJob<'a> {
    let side = |op, part: &OpTotals| job.does(op).then(|| figures_of(part, duration));
    OneJob {
        name: &job.name,
        iodepth: job.depth,
        numjobs: job.clones,
        read: side(Op::Read, &done.read),
        write: side(Op::Write, &done.write),
        flushes: done.flushes,
    }
}

fn changes(run: &SimulatedRun) -> Vec<CreditChange> {
    let described = sentences::changes(run).into_iter().zip(&run.outcome.changes);
    let change = described.map(|(described, change)| CreditChange {
        t_s: change.at.as_secs_f64(),
        balance: match change.balance {
            Balance::Volume => "volume",
            Balance::InstanceIo => "instance_io",
            Balance::InstanceBytes => "instance_bytes",
        },
        ended: change.ended,
        text: described.sentence,
    });
    change.collect()
}

fn one_interval(interval: &Interval) -> OneInterval {
    OneInterval {
        t_s: interval.end.as_secs_f64(),
        iops: short(interval.iops()),
        mib_s: short(mib(interval.bytes_per_second())),
        p50_us: interval.p50.map(us),
        p99_us: interval.p99.map(us),
        queue: short(interval.queue),
        credit_pct: interval.credit_share.map(pct),
        read_iops: short(interval.read_iops()),
        write_iops: short(interval.write_iops()),
        throttled_pct: pct(interval.throttled_share),
        instance_io_pct: interval.instance_io_share.map(pct),
        instance_byte_pct: interval.instance_byte_share.map(pct),
    }
}

/// A share as a percentage with three decimals.
fn pct(share: f64) -> f64 {
    short(share * 100.0)
}
