//! What a run leaves behind: plain data, from which everything else is computed.

use std::collections::BTreeMap;

use ebbtide_catalog::Catalog;
use ebbtide_load::RunReport;
/// The server in a second: differences of its status over the second, gauges at its end; none where the
/// server does not tell.
pub use ebbtide_mysql::status::Rates as ServerSecond;
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Role};

/// A whole run of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// When it began, ns since 1970.
    pub started_ns: u64,
    /// The command that runs it again.
    pub command: String,
    /// This program's version.
    pub ebbtide: String,
    /// What was asked.
    pub experiment: Experiment,
    /// What was laid over the built-in catalogue of volumes and instances, as the user's file had it; none
    /// where there was no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<String>,
    /// The machine.
    pub host: HostFacts,
    /// The server.
    pub server: ServerFacts,
    /// The trials, in the order in which they ran.
    pub trials: Vec<Trial>,
}

impl Run {
    /// The catalogue that the run's volumes came from: the built-in one where this program does not
    /// understand the overrides any more.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        catalog_of(self.overrides.as_deref())
    }
}

/// The built-in catalogue with what a run laid over it: without that where this program does not understand it.
pub(crate) fn catalog_of(overrides: Option<&str>) -> Catalog {
    let overridden = overrides.map(|text| Catalog::with_overrides_text("the run", text));
    overridden.and_then(Result::ok).unwrap_or_else(Catalog::builtin)
}

/// The machine that everything ran on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Processors.
    pub cpus: u32,
    /// What the processor calls itself.
    pub cpu_model: String,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
    /// What the host's disk carries through a live volume; labels and values with their units.
    pub calibration: Vec<(String, String)>,
    /// Load average over a minute when the run began.
    pub load_before: f64,
    /// The home of the run, absolute; empty where it was not written down.
    #[serde(default)]
    pub home: String,
}

/// The server that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// The program.
    pub path: String,
    /// `mariadb`, `mysql` or `percona`.
    pub flavour: String,
    /// Version in the program's own words.
    pub version: String,
    /// The option lines that each arm's server was started with, by arm name.
    pub options: BTreeMap<String, Vec<String>>,
}

/// One timed run of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The arm's name.
    pub arm: String,
    /// Which repeat of the arm, from 0.
    pub repeat: u32,
    /// When it began, ns since 1970.
    pub started_ns: u64,
    /// How long all of it took, s.
    pub took_s: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// What the load measured; none where it never ran. Its own samples are left out: [`Self::seconds`]
    /// has them.
    pub load: Option<RunReport>,
    /// The measured seconds, settling not included.
    pub seconds: Vec<Second>,
    /// The batch job beside the load; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchUse>,
    /// What should be known about it, such as a host that was busy.
    pub notes: Vec<String>,
}

/// What a batch job got done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchUse {
    /// When its first statement was sent, in seconds of the measurement; none where it never came to that.
    pub began_s: Option<f64>,
    /// When it was ended or the measurement was, in seconds of the measurement.
    pub ended_s: f64,
    /// Statements answered.
    pub statements: u64,
    /// How long an answered statement took, mean, s; 0 without any.
    pub mean_s: f64,
    /// The longest, s.
    pub max_s: f64,
    /// Statements that failed, the one that was under way at its end not included.
    pub errors: u64,
    /// The first error's words.
    pub first_error: Option<String>,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Outcome {
    /// Measured.
    Measured,
    /// Measured, and not to be believed: the generator or the host could not keep up.
    Disqualified {
        /// Why.
        why: String,
    },
    /// It did not come to a measurement.
    Failed {
        /// Why.
        why: String,
        /// The end of the server's log.
        log: Vec<String>,
    },
}

/// One second of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// The end of the second, s since the start of the measurement.
    pub t_s: f64,
    /// The load.
    pub load: LoadSecond,
    /// The volumes.
    pub volumes: BTreeMap<Role, VolumeSecond>,
    /// The server; none where it could not be asked.
    pub server: Option<ServerSecond>,
    /// The machine.
    pub host: HostSecond,
}

/// The load in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSecond {
    /// Transactions a second.
    pub tps: f64,
    /// Statements a second.
    pub qps: f64,
    /// Median response time, us.
    pub p50_us: f64,
    /// 95th percentile, us.
    pub p95_us: f64,
    /// 99th percentile, us.
    pub p99_us: f64,
    /// 99.9th percentile, us.
    pub p99_9_us: f64,
    /// Largest, us.
    pub max_us: f64,
    /// Errors.
    pub errors: u64,
}

/// A volume in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeSecond {
    /// Completed reads a second, as the guest submitted them.
    pub read_iops: f64,
    /// Completed writes a second, as the guest submitted them.
    pub write_iops: f64,
    /// Operations a second as the limits count them.
    pub consumed_iops: f64,
    /// MiB/s read.
    pub read_mib: f64,
    /// MiB/s written.
    pub write_mib: f64,
    /// Mean latency of the reads, us; 0 without any.
    pub read_us: f64,
    /// Mean latency of the writes, us; 0 without any.
    pub write_us: f64,
    /// Mean queue length.
    pub queue: f64,
    /// Flushes a second.
    pub flushes: f64,
    /// Burst credits left, share of 0 to 1; none for types without.
    pub credits: Option<f64>,
    /// Share of the second in which I/O waited for a limit: the volume's IOPS or throughput, or the
    /// instance's, whichever was longest; 0 to 1.
    pub limited: f64,
    /// The same, limit by limit.
    pub limits: LimitShares,
}

/// Shares of a second (0 to 1) in which I/O waited for each limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitShares {
    /// The volume's IOPS.
    pub volume_iops: f64,
    /// The volume's throughput.
    pub volume_throughput: f64,
    /// The instance's IOPS.
    pub instance_iops: f64,
    /// The instance's throughput.
    pub instance_throughput: f64,
}

/// The machine in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSecond {
    /// Processors that the server kept busy.
    pub server_cpus: f64,
    /// Processors that this program's load kept busy.
    pub load_cpus: f64,
    /// Processors that all of the machine kept busy.
    pub busy_cpus: f64,
    /// Processors' worth of time that the hypervisor took away.
    pub steal_cpus: f64,
    /// Memory of the server's cgroup, page cache included, bytes.
    pub memory_bytes: f64,
    /// How much later than the model the volumes answered, 99th percentile so far, us.
    pub pacing_p99_us: f64,
    /// What sampling itself took, processors.
    pub sampler_cpus: f64,
}
