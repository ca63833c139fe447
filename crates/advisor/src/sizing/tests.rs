//! What carries a load, what is the cheapest, and what the figures of a load say of themselves.
#![allow(clippy::unwrap_used)] // a test fails by a panic

mod carrying;
mod cheapest;
mod figures;
mod platforms;
mod simulated;

use ebbtide_catalog::{Catalog, Resolved, Spec};
use ebbtide_observe::{LoadInterval, VolumeLoad};

/// A load of 16 KiB operations, half of them reads: (operations a second, seconds).
fn load(steps: &[(f64, f64)]) -> VolumeLoad {
    of_size(16_384.0, steps)
}

/// The same of operations of so many bytes.
fn of_size(bytes: f64, steps: &[(f64, f64)]) -> VolumeLoad {
    let mut start_s = 0.0;
    let interval = |&(ios, seconds): &(f64, f64)| {
        let at = start_s;
        start_s += seconds;
        LoadInterval {
            start_s: at,
            seconds,
            reads: ios / 2.0,
            writes: ios / 2.0,
            read_bytes: ios / 2.0 * bytes,
            written_bytes: ios / 2.0 * bytes,
            ..LoadInterval::default()
        }
    };
    VolumeLoad { intervals: steps.iter().map(interval).collect() }
}

/// A load of requests of other sizes for reads and for writes, as (requests a second, bytes of one), for so many seconds.
pub(super) fn of_sides(reads: (f64, f64), writes: (f64, f64), seconds: f64) -> VolumeLoad {
    let interval = LoadInterval {
        seconds,
        reads: reads.0,
        read_bytes: reads.0 * reads.1,
        writes: writes.0,
        written_bytes: writes.0 * writes.1,
        ..LoadInterval::default()
    };
    VolumeLoad { intervals: vec![interval] }
}

fn volume(spec: &str) -> Resolved {
    Catalog::builtin().resolve(&Spec::parse(spec).unwrap()).unwrap()
}
