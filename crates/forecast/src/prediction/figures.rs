//! A prediction as figures for programs; `docs/json/predict.schema.json` is the contract.

use crate::prediction::{PredictedPoint, PredictedVolume, PredictionPlan, interval, knee, mib};
use crate::volumes::description;
use ebbtide_twin::Balance;
use ebbtide_twin::accuracy::{Figure, Uncertainty};
use ebbtide_twin::innodb::{FileKind, Limiter, RoleOutcome};
use serde::Serialize;

/// What `predict` prints.
#[derive(Serialize)]
pub struct Prediction<'a> {
    /// The profile.
    profile: ProfileFigures<'a>,
    /// Seed; gives the same prediction again.
    seed: u64,
    /// Virtual time that each point is the mean of, s.
    duration_s: f64,
    /// The instance type whose limits hold; null where nothing but the volume limits.
    instance: Option<&'a str>,
    /// By which size, IOPS, throughput and credits of the volumes are divided, and the instance's limits; 1: whole ones.
    divided_by: u32,
    /// Keys of the profile that were given another value with --set, as `KEY = VALUE`.
    set: &'a [String],
    /// The volumes, in the order given; of a sweep by its values.
    volumes: Vec<VolumeFigures<'a>>,
}

/// The profile that was used.
#[derive(Serialize)]
struct ProfileFigures<'a> {
    /// Its file.
    path: String,
    /// Its name; empty where it has none.
    name: &'a str,
    /// Its server.
    flavour: &'static str,
    /// Its workload.
    workload: &'a str,
    /// Whether predictions of this server with this workload were compared with measurements.
    validated: bool,
    /// Processor time of a transaction on a core of its own, us.
    cpu_us: f64,
    /// Pages read, times those of the workload.
    reads_factor: f64,
    /// Pages written, times those of the workload.
    writes_factor: f64,
    /// Of each measured point, the model's transactions a second divided by the measured ones, in a run of `residual_times_s`.
    residuals: &'a [f64],
    /// Virtual time of each of these runs, s: `duration_s`, but that of the measurement for a point that begins cold, and for one
    /// whose burst credits would end.
    residual_times_s: Vec<f64>,
    /// What was found of the points, and what was not. For people; the wording may change.
    notes: &'a [String],
    /// How the intervals of the first load came about, of several volumes the widest. For people; the wording may change.
    interval: String,
    /// The intervals of all figures, of the first load. Of several volumes the widest: that of logs on volumes of their own,
    /// where one has them. The ends of each volume's own intervals are in its `points`.
    intervals: Vec<IntervalFigures>,
    /// What the server does on one of the volumes and the model does not. For people; the wording may change. Null where it has all.
    not_modelled: Option<String>,
    /// Bytes of data files that the page cache of the system holds; null where data files do not go through it, or the memory
    /// is not known.
    page_cache_bytes: Option<f64>,
}

/// The interval of a figure, relative to its prediction.
#[derive(Serialize)]
struct IntervalFigures {
    /// `tps`, `p50`, `p95`, `p99`, `p999`, `iops`, `mib_s`, `reads` (of data files), `writes` (of all files), `cpu` or
    /// `credits_end`.
    figure: &'static str,
    /// Its lower end, times the prediction.
    low: f64,
    /// Its upper end, times the prediction.
    high: f64,
    /// Comparisons of predictions with measurements that it rests on.
    comparisons: usize,
    /// The figure that was compared, as in `figure`: another one where there are too few comparisons of its own.
    of: &'static str,
    /// Whether it is wider than those comparisons: they are of another figure, or of other servers, workloads or loads.
    wider: bool,
}

/// A volume.
#[derive(Serialize)]
struct VolumeFigures<'a> {
    /// The spec as it was given, or those of each role; of a sweep with the value.
    volume: &'a str,
    /// The volume in words, with its limits.
    description: String,
    /// A prediction for each load, in the order given.
    points: Vec<PointFigures<'a>>,
    /// The place in `points` of the knee of the load line: of clients the first point with 90% of the highest
    /// throughput, of rates the last that is carried. Null with fewer than three points, or where the line does not bend.
    knee: Option<usize>,
}

/// A prediction.
#[derive(Serialize)]
struct PointFigures<'a> {
    /// Connections.
    clients: u32,
    /// Transactions a second that arrive; null in a closed loop.
    rate: Option<f64>,
    /// Transactions a second that are finished.
    tps: f64,
    /// The least to expect.
    tps_low: f64,
    /// The most to expect.
    tps_high: f64,
    /// Median latency of a transaction, us; null without transactions.
    p50_us: Option<f64>,
    /// The least to expect of it, us.
    p50_low_us: Option<f64>,
    /// The most to expect of it, us.
    p50_high_us: Option<f64>,
    /// 95th percentile, us; null without transactions.
    p95_us: Option<f64>,
    /// The least to expect of it, us.
    p95_low_us: Option<f64>,
    /// The most to expect of it, us.
    p95_high_us: Option<f64>,
    /// 99th percentile, us; null without transactions.
    p99_us: Option<f64>,
    /// The least to expect of it, us.
    p99_low_us: Option<f64>,
    /// The most to expect of it, us.
    p99_high_us: Option<f64>,
    /// 99.9th percentile, us; null without transactions.
    p999_us: Option<f64>,
    /// The least to expect of it, us.
    p999_low_us: Option<f64>,
    /// The most to expect of it, us.
    p999_high_us: Option<f64>,
    /// Operations a second that the volume counts.
    iops: f64,
    /// The least to expect of them.
    iops_low: f64,
    /// The most to expect of them.
    iops_high: f64,
    /// MiB (2^20 bytes) a second.
    mib_s: f64,
    /// The least to expect of them.
    mib_s_low: f64,
    /// The most to expect of them.
    mib_s_high: f64,
    /// What limits for the most time: `load`, `cpu`, `volume_iops`, `volume_throughput`, `redo_volume_iops`,
    /// `redo_volume_throughput`, `binlog_volume_iops`, `binlog_volume_throughput`, `logs_volume_iops`,
    /// `logs_volume_throughput`, `instance_iops`, `instance_throughput`, `redo_capacity`, `free_pages`, `read_latency`,
    /// `commit_latency` or `clients`.
    limiter: &'static str,
    /// Everything that limits, with its percent of the time, the most first.
    limits: Vec<LimitFigures>,
    /// Processors busy, percent of all.
    cpu_pct: f64,
    /// The least to expect of it.
    cpu_low_pct: f64,
    /// The most to expect of it.
    cpu_high_pct: f64,
    /// I/O by kind of file.
    files: Vec<FileFigures>,
    /// Pages a second that clients read from the page cache of the system: no I/O is in `files` for them.
    page_cache_reads: f64,
    /// Each volume by what lies on it, that of the data first.
    volumes: Vec<RoleFigures>,
    /// When burst credits ended for the first time, s since the start of the run, which is 40 s before the figures
    /// begin; null where they lasted or the type has none.
    credits_end_s: Option<f64>,
    /// The least to expect of it, s.
    credits_end_low_s: Option<f64>,
    /// The most to expect of it, s; it may be after the end of the run.
    credits_end_high_s: Option<f64>,
    /// What of this point lies outside of what was compared, which makes its intervals wider. For people; the wording
    /// may change.
    outside: &'a [String],
    /// The run over time, in at most 240 spans.
    spans: Vec<SpanFigures>,
}

/// Something that limits.
#[derive(Serialize)]
struct LimitFigures {
    /// Its name, as in `limiter`.
    limiter: &'static str,
    /// Percent of the time.
    pct: f64,
}

/// I/O of one kind of file.
#[derive(Serialize)]
struct FileFigures {
    /// `data_read`, `data_write`, `doublewrite`, `redo` or `binlog`.
    kind: &'static str,
    /// Operations a second that the volume counts.
    iops: f64,
    /// The least to expect of them.
    iops_low: f64,
    /// The most to expect of them.
    iops_high: f64,
    /// MiB (2^20 bytes) a second.
    mib_s: f64,
    /// The least to expect of them.
    mib_s_low: f64,
    /// The most to expect of them.
    mib_s_high: f64,
}

/// A volume of a server, by what lies on it.
#[derive(Serialize)]
struct RoleFigures {
    /// `data`, `redo`, `binlog`, or `redo+binlog` for a volume that both logs share.
    role: &'static str,
    /// The kinds of files on it, as in `files`.
    files: Vec<&'static str>,
    /// Operations a second that it counts.
    iops: f64,
    /// MiB (2^20 bytes) a second.
    mib_s: f64,
    /// Percent of the time in which I/O waited for its IOPS limit.
    iops_waited_pct: f64,
    /// Percent of the time in which I/O waited for its throughput limit.
    throughput_waited_pct: f64,
    /// When its burst credits ended for the first time, s since the start of the run; null where they lasted or the type has
    /// none.
    credits_end_s: Option<f64>,
}

/// A span of the run.
#[derive(Serialize)]
struct SpanFigures {
    /// Its end, s since the start of the run.
    t_s: f64,
    /// Transactions a second in it.
    tps: f64,
    /// Operations a second in it.
    iops: f64,
    /// Burst credits of the data's volume left at its end, percent; null where the type has none.
    credit_pct: Option<f64>,
}

/// The prediction as an object.
pub fn figures<'a>(plan: &'a PredictionPlan, predicted: &'a [PredictedVolume<'a>]) -> Prediction<'a> {
    let calibration = &plan.calibration;
    let uncertainty = interval(plan, plan.loads[0]);
    Prediction {
        profile: ProfileFigures {
            path: plan.path.display().to_string(),
            name: &plan.profile.name,
            flavour: plan.planned.settings.flavour.name(),
            workload: &plan.planned.shape.name,
            validated: uncertainty.kind_compared(),
            cpu_us: short(calibration.costs.cpu_us),
            reads_factor: short(calibration.costs.reads),
            writes_factor: short(calibration.costs.writes),
            residuals: &calibration.residuals,
            residual_times_s: calibration.spans.iter().map(|span| short(span.time.as_secs_f64())).collect(),
            notes: &calibration.notes,
            interval: uncertainty.words(),
            intervals: intervals(&uncertainty),
            not_modelled: plan.not_modelled(),
            page_cache_bytes: plan.page_cache_bytes().map(f64::round),
        },
        seed: plan.seed,
        duration_s: plan.span.as_secs_f64(),
        instance: plan.instance.as_ref().map(|instance| instance.name.as_str()),
        divided_by: plan.divided_by,
        set: &plan.set,
        volumes: predicted.iter().map(volume).collect(),
    }
}

fn intervals(all: &Uncertainty) -> Vec<IntervalFigures> {
    let of = |figure: Figure| {
        let interval = all.of(figure);
        IntervalFigures {
            figure: figure.name(),
            low: short(interval.low),
            high: short(interval.high),
            comparisons: interval.rows,
            of: interval.of.name(),
            wider: interval.wider,
        }
    };
    Figure::ALL.map(of).into()
}

fn volume<'a>(predicted: &'a PredictedVolume<'a>) -> VolumeFigures<'a> {
    VolumeFigures {
        volume: &predicted.volume.spec,
        description: description(&predicted.volume.resolved),
        points: predicted.points.iter().map(point).collect(),
        knee: knee(&predicted.points),
    }
}

fn point(point: &PredictedPoint) -> PointFigures<'_> {
    let outcome = &point.outcome;
    let low = |figure| point.range(figure).map(|(low, _)| short(low));
    let high = |figure| point.range(figure).map(|(_, high)| short(high));
    // A rate has a value even without transactions.
    let rate_low = |figure| low(figure).unwrap_or_default();
    let rate_high = |figure| high(figure).unwrap_or_default();
    let limit = |(limiter, share): (Limiter, f64)| LimitFigures {
        limiter: limiter.name(),
        pct: short(share * 100.0),
    };
    let at = |quantile| point.latency_us(quantile).map(short);
    PointFigures {
        clients: point.load.clients,
        rate: point.load.rate,
        tps: short(outcome.tps()),
        tps_low: rate_low(Figure::Tps),
        tps_high: rate_high(Figure::Tps),
        p50_us: at(0.5),
        p50_low_us: low(Figure::P50),
        p50_high_us: high(Figure::P50),
        p95_us: at(0.95),
        p95_low_us: low(Figure::P95),
        p95_high_us: high(Figure::P95),
        p99_us: at(0.99),
        p99_low_us: low(Figure::P99),
        p99_high_us: high(Figure::P99),
        p999_us: at(0.999),
        p999_low_us: low(Figure::P999),
        p999_high_us: high(Figure::P999),
        iops: short(outcome.iops()),
        iops_low: rate_low(Figure::Iops),
        iops_high: rate_high(Figure::Iops),
        mib_s: short(mib(outcome.bytes_per_second())),
        mib_s_low: rate_low(Figure::MibS),
        mib_s_high: rate_high(Figure::MibS),
        limiter: outcome.limiter().0.name(),
        limits: point.limits().map(limit).collect(),
        cpu_pct: short(outcome.processors_busy * 100.0),
        cpu_low_pct: rate_low(Figure::Cpu),
        cpu_high_pct: rate_high(Figure::Cpu),
        files: FileKind::ALL.into_iter().map(|kind| file(point, kind)).collect(),
        page_cache_reads: short(point.page_cache_reads().unwrap_or_default()),
        volumes: outcome.volumes.iter().map(|one| role(one, outcome.measured.as_secs_f64())).collect(),
        credits_end_s: point.credits_end_s(),
        credits_end_low_s: low(Figure::CreditsEnd),
        credits_end_high_s: high(Figure::CreditsEnd),
        outside: point.uncertainty.outside(),
        spans: spans(point),
    }
}

fn file(point: &PredictedPoint, kind: FileKind) -> FileFigures {
    let (iops, iops_low, iops_high) = point.file_rate(kind, Figure::Iops);
    let (mib_s, mib_s_low, mib_s_high) = point.file_rate(kind, Figure::MibS);
    FileFigures {
        kind: kind.name(),
        iops: short(iops),
        iops_low: short(iops_low),
        iops_high: short(iops_high),
        mib_s: short(mib_s),
        mib_s_low: short(mib_s_low),
        mib_s_high: short(mib_s_high),
    }
}

fn role(of: &RoleOutcome, measured_s: f64) -> RoleFigures {
    let credits = of.changes.iter().find(|change| change.ended && change.balance == Balance::Volume);
    RoleFigures {
        role: of.role.key(),
        files: of.files.iter().map(|kind| kind.name()).collect(),
        iops: short(of.operations as f64 / measured_s.max(1e-9)),
        mib_s: short(mib(of.bytes as f64 / measured_s.max(1e-9))),
        iops_waited_pct: short(of.iops_waited * 100.0),
        throughput_waited_pct: short(of.throughput_waited * 100.0),
        credits_end_s: credits.map(|change| change.at.as_secs_f64()),
    }
}

fn spans(point: &PredictedPoint) -> Vec<SpanFigures> {
    let mut before = 0.0;
    let span = |span: &ebbtide_twin::innodb::Span| {
        let end = span.end.as_secs_f64();
        let seconds = (end - before).max(1e-9);
        before = end;
        SpanFigures {
            t_s: end,
            tps: short(span.transactions as f64 / seconds),
            iops: short(span.operations as f64 / seconds),
            credit_pct: span.credit_share.map(|share| short(share * 100.0)),
        }
    };
    point.outcome.spans.iter().map(span).collect()
}

/// Three decimals.
pub(super) fn short(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
