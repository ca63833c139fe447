//! Figures, intervals and limits of a prediction in words.

use crate::prediction::{PredictedPoint, mib};
pub(super) use ebbtide_text::rate;
use ebbtide_twin::accuracy::Figure;
use ebbtide_twin::innodb::{FileKind, Limiter, ModelLoad, RoleOutcome};

/// A figure: `221`, `43.0 ms`, `12%`; a dash without transactions, or where no credits end.
pub(super) fn value(point: &PredictedPoint, figure: Figure) -> String {
    point.figure(figure).map_or_else(|| "-".to_owned(), |value| written(figure, value))
}

/// An interval: `204 to 245`; None without transactions.
pub(super) fn range(point: &PredictedPoint, figure: Figure) -> Option<String> {
    let (low, high) = point.range(figure)?;
    Some(match figure {
        Figure::Cpu => format!("{low:.0} to {high:.0}%"),
        Figure::CreditsEnd => format!("{low:.0} to {high:.0} s"),
        _ => format!("{} to {}", written(figure, low), written(figure, high)),
    })
}

fn written(figure: Figure, value: f64) -> String {
    match figure {
        Figure::P50 | Figure::P95 | Figure::P99 | Figure::P999 => ebbtide_text::latency(value),
        Figure::Tps | Figure::Iops | Figure::MibS | Figure::Reads | Figure::Writes => rate(value),
        Figure::Cpu => format!("{value:.0}%"),
        Figure::CreditsEnd => format!("{value:.0} s"),
    }
}

/// What limits, in words. Of several volumes that of the data is named as such.
pub(super) fn limiter(point: &PredictedPoint, limiter: Limiter) -> String {
    let words = limiter.words();
    if point.outcome.volumes.len() > 1 {
        words.replace("the volume's", "the data volume's")
    } else {
        words.to_owned()
    }
}

/// Everything that limits, with its share of the time: `the volume's IOPS 52%, the processors 48%`.
pub(super) fn limits(point: &PredictedPoint) -> String {
    let share =
        |(kind, share): (Limiter, f64)| format!("{} {}", limiter(point, kind), ebbtide_text::percent(share));
    point.limits().map(share).collect::<Vec<_>>().join(", ")
}

/// A rate of a kind of file with its interval: `1,493 (1,486 to 1,634)`.
pub(super) fn of_file(point: &PredictedPoint, kind: FileKind, figure: Figure) -> (String, String) {
    let (value, low, high) = point.file_rate(kind, figure);
    (rate(value), format!("{} to {}", rate(low), rate(high)))
}

/// What the volume of a role waited for: `its IOPS 99% of the time`; empty for nothing.
pub(super) fn waits(volume: &RoleOutcome) -> String {
    let waited = [(volume.iops_waited, "IOPS"), (volume.throughput_waited, "throughput")];
    let waited = waited.into_iter().filter(|(share, _)| *share >= 0.005);
    let waits =
        waited.map(|(share, limit)| format!("its {limit} {} of the time", ebbtide_text::percent(share)));
    waits.collect::<Vec<_>>().join(", ")
}

/// IOPS and MiB/s of the volume of a role.
pub(super) fn of_role(point: &PredictedPoint, volume: &RoleOutcome) -> (String, String) {
    let seconds = point.outcome.measured.as_secs_f64().max(1e-9);
    (rate(volume.operations as f64 / seconds), rate(mib(volume.bytes as f64 / seconds)))
}

/// A load in a table: `16 clients`, `100 tps`.
pub(super) fn short_load(given: ModelLoad) -> String {
    given.rate.map_or_else(|| load(given), |rate| format!("{rate} tps"))
}

/// A load: `16 clients`, `100 transactions a second`.
pub(super) fn load(load: ModelLoad) -> String {
    match (load.rate, load.clients) {
        (Some(rate), _) => format!("{rate} transactions a second"),
        (None, 1) => "1 client".to_owned(),
        (None, clients) => format!("{clients} clients"),
    }
}
