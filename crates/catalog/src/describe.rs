//! One line of what a volume is.

use ebbtide_text::{seconds, size};

use crate::{Raid0, Spec, VolumeFigures};

/// Like `gp2, 100 GiB, 300 IOPS (3000 for 33 min 20 s on full credits, refilled in 5 h), 128 MiB/s`.
pub(crate) fn line(spec: &Spec, figures: &VolumeFigures) -> String {
    let volume = &spec.volume;
    let mut parts = vec![match volume.as_of {
        Some(as_of) => format!("{} as of {as_of}", volume.kind),
        None => volume.kind.clone(),
    }];
    parts.extend(volume.size_bytes.map(size));
    parts.extend(figures.iops.map(|iops| match figures.burst_iops {
        Some(burst) => format!("{iops} IOPS ({burst}{})", lasting(figures)),
        None => format!("{iops} IOPS"),
    }));
    parts.extend(figures.throughput_mib_s.map(|rate| match figures.burst_throughput_mib_s {
        Some(burst) => format!("{} MiB/s ({}{})", rounded(rate), rounded(burst), lasting(figures)),
        None => format!("{} MiB/s", rounded(rate)),
    }));
    if figures.iops.is_none() && figures.throughput_mib_s.is_none() {
        parts.push("no limits".into());
    }
    let one = parts.join(", ");
    match spec.raid0 {
        Some(Raid0 { members, chunk_bytes: Some(chunk) }) => {
            format!("RAID 0 of {members}, chunk {}, each: {one}", size(chunk))
        }
        Some(Raid0 { members, .. }) => format!("RAID 0 of {members}, each: {one}"),
        None => one,
    }
}

fn lasting(figures: &VolumeFigures) -> String {
    match (figures.burst_seconds, figures.refill_seconds) {
        (Some(burst), Some(refill)) => {
            format!(" for {} on full credits, refilled in {}", seconds(burst), seconds(refill))
        }
        _ => String::new(),
    }
}

/// To two decimals at most; a rate below that keeps its own digits.
fn rounded(rate: f64) -> f64 {
    let rounded = (rate * 100.0).round() / 100.0;
    if rounded > 0.0 { rounded } else { rate }
}
