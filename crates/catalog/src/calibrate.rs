//! Service times of a real volume, read off a fio result.

/// What a calibration is called and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FitOptions {
    /// The catalogue type that the measured volume is (`gp3`).
    pub kind: String,
    /// The name of the new type that gets the measured times; none: they replace the type's own.
    pub name: Option<String>,
    /// Where and when it was measured, for the entry's `source`.
    pub source: String,
    /// Day of the measurement, like 2026-11-20.
    pub date: String,
    /// The volume's IOPS limit, where known: a run that reached it is refused.
    pub iops_limit: Option<u64>,
    /// The volume's throughput limit in MiB/s, where known.
    pub throughput_limit_mib_s: Option<u64>,
}

/// Service times that a run showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// (percent, microseconds) of reads, where the run had any.
    pub read: Option<Vec<(f64, f64)>>,
    /// (percent, microseconds) of writes, where the run had any.
    pub write: Option<Vec<(f64, f64)>>,
    /// (percent, microseconds) of flushes, where the run had any.
    pub flush: Option<Vec<(f64, f64)>>,
    /// What to be careful about.
    pub warnings: Vec<String>,
    /// The entry for the overrides file.
    pub toml: String,
}

/// A fio result that gives no service times.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// No fio JSON.
    #[error("this is not a fio result in JSON (run fio with --output-format=json): {0}")]
    NotFio(String),
    /// No job read or wrote anything.
    #[error("the fio result has no completed reads or writes")]
    Empty,
    /// The run was throttled: its latencies are the limit's and not the volume's.
    #[error(
        "the run was throttled ({evidence}), so its latencies show the limit and not the service time; \
         measure again at a lower queue depth or rate, such as iodepth=1"
    )]
    Throttled {
        /// The figures that show it.
        evidence: String,
    },
}

/// Reads service times off a fio result (`--output-format=json` or `json+`).
///
/// # Errors
/// No fio result, an empty one, or one whose latencies are a throttle's.
pub fn fit(_fio_json: &str, _options: &FitOptions) -> Result<Fitted, CalibrateError> {
    unimplemented!("the signature is published first")
}
