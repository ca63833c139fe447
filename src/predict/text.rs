//! The prediction for a terminal.

use std::fmt::Write as _;
use std::path::Path;

use ebbtide_catalog::NO_LIMITS;
use ebbtide_forecast::prediction::{PredictedPoint, PredictedVolume, PredictionPlan, interval, knee, mib};
use ebbtide_forecast::volumes::description;
use ebbtide_twin::Balance;
use ebbtide_twin::accuracy::Figure;
use ebbtide_twin::innodb::{FileKind, Limiter, ModelLoad, RoleOutcome, Shorter};
use ebbtide_twin::profile::PlannedPoint;
use ebbtide_volume::Nanos;

/// What is known before the runs: the seed first.
pub(super) fn heading(plan: &PredictionPlan) -> String {
    let mut text = format!("seed {}\n", plan.seed);
    let name = if plan.profile.name.is_empty() {
        plan.path.display().to_string()
    } else {
        plan.profile.name.clone()
    };
    let _ = writeln!(text, "profile {name}");
    let settings = &plan.planned.settings;
    let _ = writeln!(
        text,
        "server {}, buffer pool {}, redo log {}; workload {}; {} processors",
        settings.flavour,
        ebbtide_volume::format_size(settings.buffer_pool_bytes),
        ebbtide_volume::format_size(settings.redo_capacity_bytes),
        plan.planned.shape.name,
        plan.planned.machine.vcpus,
    );
    if let Some(bytes) = plan.page_cache_bytes() {
        let _ = writeln!(text, "page cache {} MiB of data files", ebbtide_text::whole(mib(bytes)));
    }
    for one in &plan.set {
        let _ = writeln!(text, "predicted with {one}");
    }
    for note in &plan.calibration.notes {
        let _ = writeln!(text, "calibrated {note}");
    }
    for (n, (residual, span)) in plan.calibration.residuals.iter().zip(&plan.calibration.spans).enumerate() {
        let off = (residual - 1.0) * 100.0;
        let over = span_words(span.time);
        let why = span.shorter.map_or_else(String::new, |why| shorter_words(why, plan.planned.points.get(n)));
        let _ = writeln!(
            text,
            "point {}: the model gives {off:+.1}% of the measured throughput over {over}{why}",
            n + 1
        );
    }
    let first = interval(plan, plan.loads[0]);
    let _ = writeln!(text, "interval {}", first.words());
    for one in plan.loads.iter().skip(1) {
        let other = interval(plan, *one);
        if other.outside() != first.outside() {
            let outside = if other.outside().is_empty() {
                "within what was compared".to_owned()
            } else {
                format!("wider, since {}", other.outside().join(", and "))
            };
            let _ = writeln!(text, "interval at {}: {outside}", load(*one));
        }
    }
    if let Some(what) = plan.not_modelled() {
        let _ = writeln!(text, "not modelled: {what}");
    }
    if let Some(instance) = &plan.instance {
        let limits = if instance.has_limits() { String::new() } else { format!(": {NO_LIMITS}") };
        let _ = writeln!(text, "instance {}{limits}", instance.name);
    }
    if plan.divided_by > 1 {
        let by = plan.divided_by;
        let _ =
            writeln!(text, "volumes and EBS limits are divided by {by}: size, IOPS, throughput and credits");
    }
    text
}

fn span_words(time: Nanos) -> String {
    ebbtide_text::span(std::time::Duration::from_nanos(time.0))
}

/// Why a point is not compared over the time of the predictions.
fn shorter_words(why: Shorter, point: Option<&PlannedPoint>) -> String {
    let why = match why {
        Shorter::Cold => "it begins with an empty buffer pool".to_owned(),
        Shorter::CreditsEnd(end) => {
            format!("its burst credits end within the time of the predictions (after {})", span_words(end))
        }
    };
    let time = match point.and_then(|point| point.time) {
        Some(_) => "its time",
        None => "about what 6,000 transactions take (30 s to 10 min), as it has no time",
    };
    format!(": {time}, since {why}")
}

/// A table for each volume, or one line for each volume of a sweep.
pub(super) fn body(plan: &PredictionPlan, predicted: &[PredictedVolume<'_>], html: Option<&Path>) -> String {
    let mut text = String::new();
    let one_load = plan.loads.len() == 1;
    if one_load && predicted.len() > 1 {
        side_by_side(plan, predicted, &mut text);
    } else {
        for volume in predicted {
            of_volume(volume, &mut text);
        }
    }
    if let Some(path) = html {
        let _ = writeln!(text, "\ncharts: {}", path.display());
    }
    text
}

const HEADINGS: &str =
    "       tps       (low to high)       p50       p95       p99      IOPS    MiB/s   cpu  limited by";

fn figures(point: &PredictedPoint) -> String {
    let (low, high) = point.range(Figure::Tps).unwrap_or_default();
    let at = |quantile| point.latency_us(quantile).map_or_else(|| "-".to_owned(), ebbtide_text::latency);
    let (limiter, share) = point.outcome.limiter();
    format!(
        "{:>10}{:>20}{:>10}{:>10}{:>10}{:>10}{:>9}{:>6}  {} ({})",
        rate(point.outcome.tps()),
        format!("({} to {})", rate(low), rate(high)),
        at(0.5),
        at(0.95),
        at(0.99),
        rate(point.outcome.iops()),
        rate(mib(point.outcome.bytes_per_second())),
        format!("{:.0}%", point.outcome.processors_busy * 100.0),
        limiter_words(point, limiter),
        ebbtide_text::percent(share),
    )
}

/// The intervals of the other figures.
fn ranges(point: &PredictedPoint, prefix: &str, text: &mut String) {
    let of = |figure: Figure| Some(format!("{} {}", words(figure), range(point, figure)?));
    // Transactions a second have theirs in the table, and reads and writes by kind of file.
    let here = |figure: &Figure| !matches!(figure, Figure::Tps | Figure::Reads | Figure::Writes);
    let all: Vec<String> = Figure::ALL.into_iter().filter(here).filter_map(of).collect();
    let _ = writeln!(text, "{prefix}{}", all.join(", "));
}

const fn words(figure: Figure) -> &'static str {
    match figure {
        Figure::Tps => "tps",
        Figure::P50 => "p50",
        Figure::P95 => "p95",
        Figure::P99 => "p99",
        Figure::P999 => "p99.9",
        Figure::Iops => "IOPS",
        Figure::MibS => "MiB/s",
        Figure::Reads => "reads",
        Figure::Writes => "writes",
        Figure::Cpu => "cpu",
        Figure::CreditsEnd => "credits end after",
    }
}

/// An interval; none without transactions.
pub(super) fn range(point: &PredictedPoint, figure: Figure) -> Option<String> {
    let (low, high) = point.range(figure)?;
    Some(match figure {
        Figure::P50 | Figure::P95 | Figure::P99 | Figure::P999 => {
            format!("{} to {}", ebbtide_text::latency(low), ebbtide_text::latency(high))
        }
        Figure::Tps | Figure::Iops | Figure::MibS | Figure::Reads | Figure::Writes => {
            format!("{} to {}", rate(low), rate(high))
        }
        Figure::Cpu => format!("{low:.0} to {high:.0}%"),
        Figure::CreditsEnd => format!("{low:.0} to {high:.0} s"),
    })
}

/// What limits, in words. Of several volumes that of the data is named as such.
pub(super) fn limiter_words(point: &PredictedPoint, limiter: Limiter) -> String {
    let words = limiter.words();
    if point.outcome.volumes.len() > 1 {
        words.replace("the volume's", "the data volume's")
    } else {
        words.to_owned()
    }
}

/// Everything that limits, with its share of the time.
pub(super) fn limits(point: &PredictedPoint) -> String {
    let one = |(limiter, share): (Limiter, f64)| {
        format!("{} {}", limiter_words(point, limiter), ebbtide_text::percent(share))
    };
    point.limits().map(one).collect::<Vec<_>>().join(", ")
}

/// Operations and bytes a second of a kind of file, with their intervals.
pub(super) fn file(point: &PredictedPoint, kind: FileKind) -> String {
    let with = |figure| {
        let (value, low, high) = point.file_rate(kind, figure);
        format!("{} ({} to {})", rate(value), rate(low), rate(high))
    };
    format!("{} IOPS {}, MiB/s {}", kind.name(), with(Figure::Iops), with(Figure::MibS))
}

/// What limits, and the I/O by kind of file, a line each.
fn details(point: &PredictedPoint, prefix: &str, text: &mut String) {
    let _ = writeln!(text, "{prefix}limited by {}", limits(point));
    for kind in FileKind::ALL.into_iter().filter(|kind| point.file_iops(*kind) > 0.0) {
        let _ = writeln!(text, "{prefix}{}", file(point, kind));
    }
    if let Some(pages) = point.page_cache_reads() {
        let _ = writeln!(text, "{prefix}page cache: {} pages a second are read from it", rate(pages));
    }
    if point.outcome.volumes.len() > 1 {
        for volume in &point.outcome.volumes {
            let _ = writeln!(text, "{prefix}{}", of_role(point, volume));
        }
    }
}

/// What a volume of several did: `redo volume: IOPS 950, MiB/s 4.1, waits for its IOPS 99% of the time`.
pub(super) fn of_role(point: &PredictedPoint, volume: &RoleOutcome) -> String {
    let seconds = point.outcome.measured.as_secs_f64().max(1e-9);
    let mut text = format!(
        "{} volume: IOPS {}, MiB/s {}",
        volume.role.name(),
        rate(volume.operations as f64 / seconds),
        rate(mib(volume.bytes as f64 / seconds))
    );
    for (share, what) in [(volume.iops_waited, "IOPS"), (volume.throughput_waited, "throughput")] {
        if share >= 0.005 {
            let _ = write!(text, ", waits for its {what} {} of the time", ebbtide_text::percent(share));
        }
    }
    text
}

fn side_by_side(plan: &PredictionPlan, predicted: &[PredictedVolume<'_>], text: &mut String) {
    let width = predicted.iter().map(|volume| volume.volume.spec.chars().count()).max().unwrap_or(0).max(6);
    let _ = writeln!(text, "\n{}", load(predicted[0].points[0].load));
    let _ = writeln!(text, "{:width$}{HEADINGS}", "volume");
    for volume in predicted {
        let _ = writeln!(text, "{:width$}{}", volume.volume.spec, figures(&volume.points[0]));
    }
    text.push_str("Intervals:\n");
    for volume in predicted {
        ranges(&volume.points[0], &format!("{:width$}  ", volume.volume.spec), text);
    }
    for volume in predicted {
        credits(&volume.points[0], &format!("{}: ", volume.volume.spec), text);
    }
    // A sweep has up to 200 volumes: --json and --html have their files.
    if plan.swept.is_some() {
        return;
    }
    text.push_str("Limits and files:\n");
    for volume in predicted {
        details(&volume.points[0], &format!("{:width$}  ", volume.volume.spec), text);
    }
}

fn of_volume(volume: &PredictedVolume<'_>, text: &mut String) {
    let _ = writeln!(text, "\n== {}: {}", volume.volume.spec, description(&volume.volume.resolved));
    let open = volume.points.iter().any(|point| point.load.rate.is_some());
    let _ = writeln!(text, "{:>10}{HEADINGS}", if open { "rate" } else { "clients" });
    for point in &volume.points {
        let load = point.load.rate.map_or_else(|| point.load.clients.to_string(), rate);
        let _ = writeln!(text, "{load:>10}{}", figures(point));
    }
    text.push_str("Intervals:\n");
    for point in &volume.points {
        let load = point.load.rate.map_or_else(|| point.load.clients.to_string(), rate);
        ranges(point, &format!("{load:>10}  "), text);
    }
    if let Some(knee) = knee(&volume.points) {
        let _ = writeln!(text, "The knee of the load line is at {}.", load(volume.points[knee].load));
    }
    for point in &volume.points {
        credits(point, &format!("{}: ", load(point.load)), text);
    }
    text.push_str("Limits and files:\n");
    for point in &volume.points {
        let load = point.load.rate.map_or_else(|| point.load.clients.to_string(), rate);
        details(point, &format!("{load:>10}  "), text);
    }
}

fn credits(point: &PredictedPoint, prefix: &str, text: &mut String) {
    let several = point.outcome.volumes.len() > 1;
    let changes = |volume: &'_ RoleOutcome| {
        let role = volume.role.name();
        volume.changes.iter().take(3).map(move |change| (role, *change)).collect::<Vec<_>>()
    };
    for (role, change) in point.outcome.volumes.iter().flat_map(changes) {
        let of = match change.balance {
            Balance::InstanceIo | Balance::InstanceBytes => " of the instance".to_owned(),
            Balance::Volume if several => format!(" of the {role} volume"),
            Balance::Volume => String::new(),
        };
        let what = if change.ended { "end" } else { "are back" };
        let at = change.at.as_secs_f64();
        let span = ebbtide_text::span(std::time::Duration::from_nanos(
            Nanos::from_secs(change.at.0 / 1_000_000_000).0,
        ));
        let _ = writeln!(text, "{prefix}burst credits{of} {what} after {at:.0} s ({span})");
    }
}

/// A load in words.
pub(super) fn load(load: ModelLoad) -> String {
    match (load.rate, load.clients) {
        (Some(rate), _) => format!("{rate} transactions a second"),
        (None, 1) => "1 client".to_owned(),
        (None, clients) => format!("{clients} clients"),
    }
}

fn rate(value: f64) -> String {
    if value >= 99.95 { ebbtide_text::whole(value) } else { ebbtide_text::fixed(value, 1) }
}
