//! What was recorded, as far as summaries read it: plain data.
//!
//! Whoever measures keeps more than this. It hands the part that is judged over as a [`RunRecord`].

use std::collections::BTreeMap;

/// The server in a second: differences of its status over the second, gauges at its end; none where the
/// server does not report.
pub use ebbtide_observe::Rates as ServerSecond;
pub use ebbtide_observe::Role;
use serde::{Deserialize, Serialize};

/// A run, as far as it is summed up.
#[derive(Debug, Clone)]
pub struct RunRecord<'a> {
    /// What was compared.
    pub design: Design,
    /// When it began, ns since 1970.
    pub started_ns: u64,
    /// Its seed.
    pub seed: u64,
    /// Version of the program that measured it.
    pub ebbtide: &'a str,
    /// Processors of the machine.
    pub cpus: u32,
    /// What the processor calls itself.
    pub cpu_model: &'a str,
    /// Load average over a minute when the run began.
    pub load_before: f64,
    /// The trials, in the order in which they ran.
    pub trials: Vec<TrialRecord<'a>>,
}

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// The arms, in the order of the experiment.
    pub arms: Vec<DesignArm>,
    /// Which arms are held against which, in the order of the report.
    pub comparisons: Vec<Comparison>,
    /// Trials of each arm.
    pub repeats: u32,
}

/// An arm of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct DesignArm {
    /// Its name.
    pub name: String,
    /// Which option of each axis it is, in the order of the axes.
    pub options: Vec<(String, String)>,
    /// Connections of its load.
    pub connections: u32,
    /// Transactions a second that an open loop offers; None for a closed loop.
    pub offered: Option<f64>,
    /// When a batch job runs alongside the load; None without one.
    pub batch: Option<BatchSpan>,
    /// Everything else that its server is put under, written out: arms are alike where this and their connections are
    /// the same text and number.
    pub conditions: String,
}

/// When a batch job runs, in seconds of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSpan {
    /// When it joins.
    pub start_s: u32,
    /// When it leaves; None: it stays to the end.
    pub end_s: Option<u32>,
}

/// Which arms are held against which: those that differ in one axis alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The axis.
    pub axis: String,
    /// The arm to compare, as an index into [`Design::arms`].
    pub arm: usize,
    /// The arm that it is held against.
    pub baseline: usize,
}

/// One timed run of an arm, as far as it is summed up.
#[derive(Debug, Clone)]
pub struct TrialRecord<'a> {
    /// The arm's name.
    pub arm: &'a str,
    /// Which repeat of the arm, from 0.
    pub repeat: u32,
    /// How it ended.
    pub outcome: &'a Outcome,
    /// The measured seconds.
    pub seconds: &'a [Second],
    /// Response times over all of it; None where the load reported none.
    pub response: Option<Response>,
    /// Errors of the server by code, over all of it.
    pub errors: Vec<ErrorRecord<'a>>,
    /// What became of the arrivals of an open loop; None in a closed one.
    pub arrivals: Option<Arrivals>,
    /// What TPC-C measured; None for another load.
    pub tpcc: Option<TpccRecord<'a>>,
    /// The backup that was made meanwhile; None without one.
    pub backup: Option<BackupRecord>,
    /// What should be known about it.
    pub notes: &'a [String],
}

/// How often a server error came in a trial.
#[derive(Debug, Clone, Copy)]
pub struct ErrorRecord<'a> {
    /// The server's code, such as 1205 (lock wait timeout).
    pub code: u16,
    /// How often.
    pub count: u64,
    /// The first one's words.
    pub message: &'a str,
}

/// A backup under load, as far as it is summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BackupRecord {
    /// When it began, s of the measurement.
    pub began_s: f64,
    /// When it ended, s of the measurement; later than the measurement where the load had ended before.
    pub ended_s: f64,
    /// Its size, bytes.
    pub bytes: f64,
    /// Bytes that the volumes of the server that was backed up read meanwhile.
    pub read_bytes: f64,
    /// Bytes that they wrote meanwhile, those of the target apart.
    pub written_bytes: f64,
    /// Burst credits that were used up, as a share of a full bucket: of the volume that lost most; None where no volume
    /// has any.
    pub credits_used: Option<f64>,
    /// The same of the target; None where there is none, or it has no credits.
    pub target_credits_used: Option<f64>,
    /// How long restoring and checking it took, s.
    pub restored_s: f64,
}

/// A trial of TPC-C, as far as it is summed up.
#[derive(Debug, Clone)]
pub struct TpccRecord<'a> {
    /// New-Orders a minute that the specification allows for its warehouses.
    pub ceiling_tpmc: f64,
    /// Statements by transaction.
    pub statements_per_transaction: f64,
    /// By kind of transaction, in the order of the specification.
    pub transactions: Vec<TransactionRecord<'a>>,
}

/// A kind of transaction in a trial.
#[derive(Debug, Clone, Copy)]
pub struct TransactionRecord<'a> {
    /// Its name.
    pub transaction: &'a str,
    /// How many finished.
    pub count: u64,
    /// Median response time, us.
    pub p50_us: f64,
    /// 90th percentile, us.
    pub p90_us: f64,
    /// 95th percentile, us.
    pub p95_us: f64,
    /// 99th percentile, us.
    pub p99_us: f64,
    /// The longest, us.
    pub max_us: f64,
    /// What the specification allows for the 90th percentile, s.
    pub limit_s: f64,
}

/// Percentiles of the response time, us.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p99_9_us: f64,
}

/// Arrivals of an open loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrivals {
    /// Arrivals that were due.
    pub due: u64,
    /// Those that were dropped because the backlog was full.
    pub shed: u64,
    /// Those that were not answered when the time was over.
    pub unfinished: u64,
    /// The longest wait of an unfinished one, ms.
    pub oldest_unfinished_ms: f64,
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
    /// The replica that is farthest behind its source; none without replicas, and where none could be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<ReplicaSecond>,
    /// The volumes of each replica, in the order of the replicas; empty without replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replica_volumes: Vec<BTreeMap<Role, VolumeSecond>>,
}

/// How far a replica is behind its source at the end of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplicaSecond {
    /// Age of the newest heartbeat that the replica has applied, s. The source gets one each tenth of a second, so
    /// that a replica that applies everything at once shows about as much.
    pub lag_s: f64,
    /// Transactions of the source's binary log that the replica has not applied; none where the servers do not
    /// number them (MySQL without GTIDs).
    pub lag_transactions: Option<f64>,
    /// The replica's own estimate, `Seconds_Behind_Source` or `Seconds_Behind_Master`; none where it gives none.
    pub behind_s: Option<f64>,
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
