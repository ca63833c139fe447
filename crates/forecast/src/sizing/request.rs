//! What is asked of a sizing, as plain values.

use std::path::PathBuf;

use ebbtide_twin::trace::Format;
use ebbtide_volume::Nanos;

/// Volumes in an array, at most: more share one failure, and AWS's own databases stripe over four.
pub const MOST_MEMBERS: u16 = 16;

/// What to size for.
#[derive(Debug, Clone, PartialEq)]
pub struct SizingRequest {
    /// What was recorded of the load: files of other tools or directories of them, a trace, the directory of a run, or a profile.
    pub from: Vec<PathBuf>,
    /// The volume of today, as text.
    pub volume: Option<String>,
    /// The EC2 instance type of today.
    pub instance: Option<String>,
    /// Whether no other instance type is looked for.
    pub keep_instance: bool,
    /// Processors of the instance; None: those of today's.
    pub processors: Option<Processors>,
    /// Usable size that is needed, bytes; None: that of today's volume, or that of the profile's data.
    pub size_bytes: Option<u64>,
    /// The device or volume whose load is taken, where the files have several; of a run what lies on it.
    pub device: Option<String>,
    /// The format of a trace; None: known by its first lines.
    pub trace_format: Option<Format>,
    /// Nanoseconds of the unit of a trace's times, in formats that do not fix it.
    pub trace_unit_ns: Option<u64>,
    /// The arm of a run whose load is taken.
    pub arm: Option<String>,
    /// Length of an interval, where the files do not tell it.
    pub interval: Option<Nanos>,
    /// Transactions a second that are to be carried.
    pub tps: Option<f64>,
    /// Transactions a second that the recorded load had at its peak.
    pub tps_measured: Option<f64>,
    /// 99 of 100 I/Os, or with a profile transactions, are to take at most this.
    pub p99: Option<Nanos>,
    /// So many times the load has to be carried, from 1 on.
    pub headroom: f64,
    /// Growth of load and size in a year: 0.3 for 30%.
    pub yearly_growth: f64,
    /// Months until when it has to be enough.
    pub horizon_months: u32,
    /// Share of the time in which no I/O may wait for a limit, 0.5 to 1.
    pub carried: f64,
    /// Volumes in a RAID 0, at most, 1 to [`MOST_MEMBERS`]; None: the answer is a single volume where one will do.
    pub most_members: Option<u16>,
    /// AWS region whose prices hold; None: that of the first price list, or of the catalogue.
    pub region: Option<String>,
    /// Decides every draw of the model of a profile.
    pub seed: u64,
}

/// Processors of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processors {
    /// Intel and AMD.
    X86,
    /// AWS's own (Graviton).
    Arm,
    /// Either.
    Any,
}
