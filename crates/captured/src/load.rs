//! Loads of volumes over time, as a tool recorded them.

use std::collections::BTreeMap;

use ebbtide_observe::{DeviceIo, LoadInterval, VolumeLoad};

/// The loads of volumes or devices, by their name. CloudWatch's metrics of one volume may name none: its name is empty then.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The tool that recorded them.
    pub tool: &'static str,
    /// Whether reads and writes are not told apart: each has its share of figures of both.
    pub together: bool,
    /// The loads.
    pub loads: BTreeMap<String, VolumeLoad>,
    /// What has to be known of the figures.
    pub notes: Vec<String>,
}

/// An interval. `both_s` is the mean time of an operation of either kind, s, where none of its own is known.
pub(super) fn interval(start_s: f64, seconds: f64, io: &DeviceIo, both_s: Option<f64>) -> LoadInterval {
    LoadInterval {
        start_s,
        seconds,
        reads: io.reads,
        writes: io.writes,
        read_bytes: io.read_bytes,
        written_bytes: io.written_bytes,
        queue: Some(io.queue),
        read_s: io.read_s.or(both_s).filter(|_| io.reads > 0.0),
        write_s: io.write_s.or(both_s).filter(|_| io.writes > 0.0),
        ..LoadInterval::default()
    }
}
