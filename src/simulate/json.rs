//! The JSON that `--json` prints; `docs/json/simulate.md` is its contract.

use ebbtide_catalog::MonthlyCost;
use ebbtide_twin::{Balance, Interval, OpTotals, Totals};
use ebbtide_volume::{Nanos, Op};
use serde::Serialize;

use super::figures::{mib, short, us};
use super::plan::{Plan, Planned};
use super::run::Run;
use super::words::{self, Held};

#[derive(Serialize)]
struct Several<'a> {
    runs: Vec<Single<'a>>,
}

#[derive(Serialize)]
struct Single<'a> {
    volume: &'a str,
    description: &'a str,
    monthly_cost: Option<&'a MonthlyCost>,
    job: &'a str,
    seed: u64,
    interval_s: f64,
    instance: Option<&'a str>,
    instance_shared: bool,
    command: &'a str,
    notes: &'a [String],
    totals: WholeRun,
    jobs: Vec<OneJob<'a>>,
    changes: Vec<Change>,
    verdict: Vec<String>,
    intervals: Vec<OneInterval>,
}

#[derive(Serialize)]
struct WholeRun {
    duration_s: f64,
    #[serde(flatten)]
    all: Figures,
    read: Option<Figures>,
    write: Option<Figures>,
    flushes: u64,
    in_flight_at_end: u64,
    credit_pct: Option<f64>,
    limited_pct: Limited,
}

#[derive(Serialize)]
struct Limited {
    volume_iops: f64,
    volume_throughput: f64,
    instance_iops: f64,
    instance_throughput: f64,
}

#[derive(Serialize)]
struct Figures {
    ios: u64,
    bytes: u64,
    iops: f64,
    mib_s: f64,
    mean_us: Option<f64>,
    p50_us: Option<f64>,
    p90_us: Option<f64>,
    p99_us: Option<f64>,
    p999_us: Option<f64>,
    max_us: Option<f64>,
    throttled_pct: f64,
}

#[derive(Serialize)]
struct OneJob<'a> {
    name: &'a str,
    iodepth: u32,
    numjobs: u32,
    read: Option<Figures>,
    write: Option<Figures>,
    flushes: u64,
}

#[derive(Serialize)]
struct Change {
    t_s: f64,
    balance: &'static str,
    ended: bool,
    text: String,
}

#[derive(Serialize)]
struct OneInterval {
    t_s: f64,
    iops: f64,
    mib_s: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    queue: f64,
    credit_pct: Option<f64>,
    read_iops: f64,
    write_iops: f64,
    throttled_pct: f64,
    instance_io_pct: Option<f64>,
    instance_byte_pct: Option<f64>,
}

/// One object: of the run where there is one volume, of `runs` where there are several.
pub(super) fn text(plan: &Plan, runs: &[Run]) -> String {
    let mut runs: Vec<Single<'_>> =
        plan.volumes.iter().zip(runs).map(|(volume, run)| single(plan, volume, run)).collect();
    let text = match (runs.pop(), runs.is_empty()) {
        (Some(only), true) => serde_json::to_string(&only),
        (last, _) => {
            runs.extend(last);
            serde_json::to_string(&Several { runs })
        }
    };
    text.expect("a run is plain data with finite numbers") + "\n"
}

fn single<'a>(plan: &'a Plan, volume: &'a Planned, run: &Run) -> Single<'a> {
    let jobs = plan.workload.jobs.iter().zip(&run.outcome.jobs);
    Single {
        volume: &volume.spec,
        description: &volume.resolved.description,
        monthly_cost: volume.cost.as_ref(),
        job: &plan.job,
        seed: plan.seed,
        interval_s: plan.interval.as_secs_f64(),
        instance: plan.instance.as_ref().map(|instance| instance.name.as_str()),
        instance_shared: plan.together,
        command: &plan.command,
        notes: &plan.workload.notes,
        totals: whole_run(plan, run),
        jobs: jobs.map(|(job, done)| one_job(job, done, run.duration)).collect(),
        changes: changes(run),
        verdict: words::verdict(plan, run),
        intervals: run.intervals.iter().map(one_interval).collect(),
    }
}

fn whole_run(plan: &Plan, run: &Run) -> WholeRun {
    let held = Held::of(run);
    let side = |op, part: &OpTotals| plan.does(op).then(|| figures(part, run.duration));
    WholeRun {
        duration_s: run.duration.as_secs_f64(),
        all: figures(&run.totals.all(), run.duration),
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

fn figures(part: &OpTotals, duration: Nanos) -> Figures {
    let seconds = duration.as_secs_f64();
    let at = |quantile| part.percentiles.at(quantile).map(us);
    Figures {
        ios: part.ios,
        bytes: part.bytes,
        iops: short(part.ios as f64 / seconds),
        mib_s: short(mib(part.bytes as f64) / seconds),
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
    let side = |op, part: &OpTotals| job.does(op).then(|| figures(part, duration));
    OneJob {
        name: &job.name,
        iodepth: job.depth,
        numjobs: job.clones,
        read: side(Op::Read, &done.read),
        write: side(Op::Write, &done.write),
        flushes: done.flushes,
    }
}

fn changes(run: &Run) -> Vec<Change> {
    let described = words::changes(run).into_iter().zip(&run.outcome.changes);
    let change = described.map(|(described, change)| Change {
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
