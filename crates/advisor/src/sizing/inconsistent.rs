//! Metrics that EBS cannot have counted, and those that today's volume cannot have given.

use ebbtide_catalog::Resolved;
use ebbtide_observe::{LoadInterval, VolumeLoad};
use ebbtide_volume::{MIB, RateLimit};
use serde::Serialize;

/// Figures of metrics that cannot be right, and that no single interval shows to be damaged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inconsistency {
    /// What does not agree, with the figures. For people; the wording may change.
    pub what: String,
    /// Start of the interval where it is clearest, s since 1970.
    pub at_s: f64,
    /// Percent of the time in which it is so.
    pub time_pct: f64,
}

/// The most that EBS counts as one operation of any volume, bytes: of an HDD volume. Of an SSD volume it is 256 KiB:
/// <https://docs.aws.amazon.com/ebs/latest/userguide/ebs-io-characteristics.html>.
pub(super) const LARGEST_UNIT: u32 = 1 << 20;
/// Times its bound that a figure is above it: minutes of two metrics may be cut a moment apart.
const ROOM: f64 = 1.1;
/// From this number of operations in an interval on, their mean size is judged.
const FEW: f64 = 10.0;

/// What does not agree in metrics of EBS. `today` is the volume that is said to have carried the load.
pub(super) fn inconsistencies(load: &VolumeLoad, today: Option<&Resolved>) -> Vec<Inconsistency> {
    let mut all = Vec::new();
    type Side = fn(&LoadInterval) -> (f64, f64);
    let sides: [(&str, Side); 2] =
        [("reads", |one| (one.reads, one.read_bytes)), ("writes", |one| (one.writes, one.written_bytes))];
    let unit = u64::from(today.map_or(LARGEST_UNIT, |volume| volume.members[0].accounting.unit_bytes));
    let of = today.map_or("any volume", |volume| &volume.spec.volume.kind);
    for (kind, side) in sides {
        let size = |one: &LoadInterval| {
            let (ios, bytes) = side(one);
            if ios * one.seconds >= FEW { bytes / ios } else { 0.0 }
        };
        all.extend(above(load, unit as f64, size).map(|above| {
            above.because(format!(
                "its {kind} have {} each, and EBS counts at most {} as one operation of {of}: operations are probably \
                 given as a rate, not as a sum, or bytes as a sum of something else",
                ebbtide_text::bytes(above.figure),
                ebbtide_text::size(unit)
            ))
        }));
    }
    if let Some(volume) = today {
        let spec = super::change::short(&volume.spec);
        let most = |rate: Option<RateLimit>| {
            rate.map_or(f64::INFINITY, |rate| rate.ceiling as f64 * f64::from(volume.spec.members()))
        };
        let said = |above: &Above, unit: f64, name: &str| {
            above.because(format!(
                "it shows {} {name}, and {spec} gives at most {}: another volume carried the load, or it was changed later",
                ebbtide_text::figure(above.figure / unit),
                ebbtide_text::figure(above.bound / unit)
            ))
        };
        let iops = above(load, most(volume.members[0].iops), LoadInterval::ios);
        all.extend(iops.map(|above| said(&above, 1.0, "IOPS")));
        let bytes = above(load, most(volume.members[0].throughput), LoadInterval::bytes);
        all.extend(bytes.map(|above| said(&above, MIB as f64, "MiB/s")));
    }
    all
}

/// Where a figure is above its bound.
struct Above {
    figure: f64,
    bound: f64,
    at_s: f64,
    time_pct: f64,
}

impl Above {
    fn because(&self, what: String) -> Inconsistency {
        Inconsistency { what, at_s: self.at_s, time_pct: self.time_pct }
    }
}

/// The interval with the highest figure, where that is above its bound.
fn above(load: &VolumeLoad, bound: f64, figure: impl Fn(&LoadInterval) -> f64) -> Option<Above> {
    let over = load.intervals.iter().filter(|one| figure(one) > bound * ROOM);
    let seconds: f64 = over.clone().map(|one| one.seconds).sum();
    let all: f64 = load.intervals.iter().map(|one| one.seconds).sum();
    let highest = over.max_by(|a, b| figure(a).total_cmp(&figure(b)))?;
    Some(Above { figure: figure(highest), bound, at_s: highest.start_s, time_pct: seconds / all * 100.0 })
}
