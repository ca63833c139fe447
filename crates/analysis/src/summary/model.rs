//! What a summary holds: plain data, one figure for each thing that a report shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::comparison::{Compared, CurveGain, Repetition};
use super::regime::Regime;
use crate::claim::JudgedClaim;
use crate::cost::Costs;
use crate::record::{LimitShares, Role};
use crate::stats::Interval;

/// The summary of a run: figures by arm, comparisons, and both in words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The arms, in the order of the experiment; one that has no trial yet is here too.
    pub arms: Vec<ArmSummary>,
    /// The comparisons, in the order of the experiment; one line for each pair of regimes that compare.
    pub comparisons: Vec<Compared>,
    /// What an option gains over connections, where arms differ in their connections alone: [`Self::comparisons`] in
    /// groups.
    #[serde(default)]
    pub curves: Vec<CurveGain>,
    /// How much equal things differed.
    pub noise: Noise,
    /// What was found, in sentences, the most useful first. For people; the wording may change.
    pub findings: Vec<String>,
    /// What a reader must know before believing it, in sentences: unsteady or disqualified trials, too
    /// few of them, a busy machine.
    pub notes: Vec<Note>,
    /// What documents claim about the experiment, held against this run; empty where it has no claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<JudgedClaim>,
    /// What the volumes of the arms cost a month; none where the run is from a program without prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_cost: Option<Costs>,
    /// The run held against earlier ones of the same experiment; none where none were named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Repetition>,
}

/// A sentence about an arm, or about the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The arm's name; none: the whole run.
    pub arm: Option<String>,
    /// The sentence.
    pub text: String,
}

/// An arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// Its name.
    pub name: String,
    /// How its trials ended.
    pub trials: TrialCounts,
    /// All measured seconds of the trials that count, warm-up cut; none where no trial counts.
    pub whole: Option<Figures>,
    /// What TPC-C is measured by, over the same seconds; none where the load is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpcc: Option<TpccFigures>,
    /// How far the replicas were behind, over the same seconds; none without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<LagFigures>,
    /// The volumes of the first replica, over the same seconds; empty without replicas. All replicas of an arm are alike.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replica_volumes: BTreeMap<Role, VolumeFigures>,
    /// What clients got no answer to, over all measured seconds of the trials that count; none where no trial counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerFigures>,
    /// What its backups took, over the trials that count; none where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupFigures>,
    /// The same seconds, split where the conditions changed; empty where they never did.
    pub regimes: Vec<RegimeSummary>,
    /// What each trial's series showed, in the order of the trials; trials without seconds are left out.
    pub windows: Vec<TrialWindow>,
}

/// What clients got no answer to, over the trials of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerFigures {
    /// The longest time in which no transaction of any client was finished, s: whole seconds.
    pub silent_s: Across,
    /// Errors of the server with code 1205, lock wait timeout exceeded.
    pub lock_timeouts: Across,
    /// Errors of the server by code, all trials together, those that were done again included.
    pub errors: Vec<ErrorFigures>,
}

/// How often a server error came, over the trials of an arm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorFigures {
    /// The server's code.
    pub code: u16,
    /// How often, in all trials.
    pub count: u64,
    /// The first one's words.
    pub message: String,
}

/// What TPC-C is measured by, over the trials of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TpccFigures {
    /// New-Order transactions a minute: of the seconds that the throughput is of. Those that are rolled back for their
    /// unused item count (clause 5.4.2).
    pub tpmc: Measured,
    /// The mean as a share of the most that the specification allows for the warehouses, percent. Over 100: the clients
    /// did not wait.
    pub ceiling_pct: f64,
    /// Statements by transaction, COMMIT and ROLLBACK included.
    pub statements_per_transaction: f64,
    /// The five transactions, in the order of the specification.
    pub transactions: Vec<TransactionFigures>,
}

/// How far the replica was behind that was farthest, over the trials of an arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LagFigures {
    /// Mean of a trial's seconds, s.
    pub mean_s: Across,
    /// 95th percentile of a trial's seconds, s.
    pub p95_s: Across,
    /// At the end of a trial, s: a replica that does not keep up is farther behind than on average.
    pub end_s: Across,
    /// Transactions of the source that the replica had not applied, mean of a trial's seconds; none where the servers
    /// do not number them.
    pub transactions: Option<Across>,
    /// The same at the end of a trial.
    pub end_transactions: Option<Across>,
}

/// A kind of transaction, over the trials of an arm: from their first measured second to their last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionFigures {
    /// Its name.
    pub transaction: String,
    /// How many finished, in all trials.
    pub count: u64,
    /// Its share of all transactions, percent, mean of the trials.
    pub share_pct: f64,
    /// Median response time, us; 0 where none finished.
    pub p50_us: Across,
    /// 90th percentile of the response time, us; 0 where none finished.
    #[serde(default)]
    pub p90_us: Across,
    /// What the specification allows for the 90th percentile (clause 5.2.5.7), s.
    #[serde(default)]
    pub limit_s: f64,
    /// 95th percentile of the response time, us; 0 where none finished.
    pub p95_us: Across,
    /// 99th percentile of the response time, us; 0 where none finished.
    pub p99_us: Across,
    /// The longest response time, us; 0 where none finished.
    #[serde(default)]
    pub max_us: Across,
}

/// How trials ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialCounts {
    /// Measured, and believed.
    pub measured: u32,
    /// Measured, and not believed; in no figure.
    pub disqualified: u32,
    /// Never measured.
    pub failed: u32,
}

/// What backups took, over the trials of an arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BackupFigures {
    /// From its begin to its end, s.
    pub took_s: Across,
    /// Size, bytes: of the files on the target, or of the blocks of a snapshot.
    pub bytes: Across,
    /// Bytes that the volumes of the server that was backed up read meanwhile.
    pub read_bytes: Across,
    /// Bytes that they wrote meanwhile, those of the target apart.
    pub written_bytes: Across,
    /// Burst credits of those volumes that it saw used up, as a share of a full bucket: of the volume that lost most; none
    /// where no volume has any.
    pub credits_used: Option<Across>,
    /// The same of the target; none where it is a snapshot, or has no credits.
    pub target_credits_used: Option<Across>,
    /// From the begin of its restore until the restored server had answered every check, s.
    pub restored_s: Across,
}

/// A regime of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegimeSummary {
    /// What was the same in it.
    pub regime: Regime,
    /// The same in words, such as `after the credits`.
    pub label: String,
    /// Its figures.
    pub figures: Figures,
}

/// What the series of a trial showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialWindow {
    /// Which repeat of the arm.
    pub repeat: u32,
    /// Where the warm-up ended, s of the measurement.
    pub from_s: f64,
    /// The end, s.
    pub to_s: f64,
    /// Whether no regime drifts and no change of level is without a known cause.
    pub steady: bool,
    /// Largest drift of any regime over its length, as a share of its mean; negative: it fell.
    pub drift: f64,
    /// Changes of level, in order.
    pub changes: Vec<WindowChange>,
    /// The parts between them.
    pub parts: Vec<Part>,
}

/// A part of a trial in one regime.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its regime.
    pub regime: Regime,
    /// Its begin, s of the measurement.
    pub from_s: f64,
    /// Its end, s.
    pub to_s: f64,
    /// Mean transactions a second.
    pub tps: f64,
}

/// Where the conditions, or the level, of a trial changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowChange {
    /// When, s of the measurement.
    pub t_s: f64,
    /// Why.
    pub cause: Cause,
}

/// Why conditions changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A volume's burst credits came to their end.
    CreditsEnded,
    /// Credits came back.
    CreditsBack,
    /// The batch job joined.
    BatchJoined,
    /// The batch job left.
    BatchLeft,
    /// The backup began.
    BackupBegan,
    /// The backup ended.
    BackupEnded,
    /// The operations or the bytes at which a limit held the volume changed.
    CeilingChanged,
    /// No record shows the reason.
    Unknown,
}

/// A figure over trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Mean over the trials.
    pub mean: f64,
    /// 95% interval of the mean; none with fewer than two trials.
    pub interval: Option<Interval>,
    /// Standard deviation between trials as a share of the mean; none with fewer than two.
    pub spread: Option<f64>,
    /// The smallest trial.
    pub min: f64,
    /// The largest trial.
    pub max: f64,
}

/// A figure over trials, in the unit of its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Across {
    /// The median trial.
    pub median: f64,
    /// The smallest trial.
    pub min: f64,
    /// The largest trial.
    pub max: f64,
}

/// What was measured, over the trials of an arm or of a regime of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Trials in it.
    pub trials: u32,
    /// Seconds in it, over all trials.
    pub seconds: f64,
    /// Transactions a second.
    pub tps: Measured,
    /// Statements a second.
    pub qps: Measured,
    /// Median response time, us.
    pub p50_us: Across,
    /// 95th percentile of the response time, us.
    pub p95_us: Across,
    /// 99th percentile of the response time, us.
    pub p99_us: Across,
    /// 99.9th percentile of the response time, us.
    pub p99_9_us: Across,
    /// Errors, of all trials.
    pub errors: u64,
    /// What a transaction cost; none where none finished.
    pub per_transaction: Option<PerTransaction>,
    /// The volumes.
    pub volumes: BTreeMap<Role, VolumeFigures>,
    /// The server; none where it was never asked.
    pub server: Option<ServerFigures>,
    /// The machine.
    pub host: HostFigures,
    /// What held the throughput back.
    pub limiter: Limiter,
}

/// The figures of one trial: of its measured seconds without warm-up, as all other results of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialFigures {
    /// Transactions a second, mean of the seconds.
    pub tps: f64,
    /// Statements a second.
    pub qps: f64,
    /// Median response time, us.
    pub p50_us: f64,
    /// 95th percentile of the response time, us.
    pub p95_us: f64,
    /// 99th percentile of the response time, us.
    pub p99_us: f64,
    /// 99.9th percentile of the response time, us.
    pub p99_9_us: f64,
}

/// What a transaction cost, all volumes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PerTransaction {
    /// Reads and writes, as the guest submitted them. What is called I/Os a transaction everywhere is
    /// [`Self::consumed_ios`].
    pub ios: f64,
    /// Reads.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// I/Os a transaction: operations as the volume's IOPS limit counts them, which is what its IOPS are held
    /// against. On EBS's SSD volumes up to 256 KiB in a row are one, and larger I/O is several.
    pub consumed_ios: f64,
    /// KiB read.
    pub read_kib: f64,
    /// KiB written.
    pub written_kib: f64,
    /// Flushes.
    pub flushes: f64,
    /// Redo bytes; none where the server was not asked, like all below but the processors.
    pub redo_bytes: Option<f64>,
    /// Binary log bytes.
    pub binlog_bytes: Option<f64>,
    /// Pages read from the device: misses of the buffer pool.
    pub page_reads: Option<f64>,
    /// Pages written.
    pub page_writes: Option<f64>,
    /// Pages written through the doublewrite buffer.
    pub doublewrite_pages: Option<f64>,
    /// Row lock waits.
    pub row_lock_waits: Option<f64>,
    /// Processor time of the server, us.
    pub server_cpu_us: f64,
    /// Processor time of the load, us.
    pub load_cpu_us: f64,
}

/// A volume: means over the seconds of all trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeFigures {
    /// Reads a second.
    pub read_iops: f64,
    /// Writes a second.
    pub write_iops: f64,
    /// Operations a second as the limits count them.
    pub consumed_iops: f64,
    /// MiB/s read.
    pub read_mib: f64,
    /// MiB/s written.
    pub write_mib: f64,
    /// Mean latency of a read, us; 0 without any.
    pub read_us: f64,
    /// Mean latency of a write, us; 0 without any.
    pub write_us: f64,
    /// Mean queue length.
    pub queue: f64,
    /// Burst credits at the begin, mean of the trials, share of 0 to 1; none for types without.
    pub credits_first: Option<f64>,
    /// Burst credits at the end.
    pub credits_last: Option<f64>,
    /// Share of the time in which I/O waited for some limit.
    pub limited: f64,
    /// The same, limit by limit.
    pub limits: LimitShares,
}

/// The server: means over the seconds of all trials; none where this server does not report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFigures {
    /// Checkpoint age, bytes.
    pub checkpoint_age: Option<f64>,
    /// Checkpoint age as a share of the one at which writers wait.
    pub checkpoint_share: Option<f64>,
    /// Share of the buffer pool's pages that were dirty.
    pub dirty_share: Option<f64>,
    /// Share of the page requests that missed the buffer pool.
    pub miss_share: Option<f64>,
    /// Of the pages flushed, the share that the LRU list flushed to make room.
    pub lru_share: Option<f64>,
    /// Pages flushed a second because the redo log was about to be full.
    pub sync_flushed: Option<f64>,
    /// Waits for a free page a second.
    pub wait_free: Option<f64>,
    /// Waits of the log buffer a second.
    pub log_waits: Option<f64>,
    /// Row lock waits a second.
    pub row_lock_waits: Option<f64>,
    /// Threads running.
    pub threads_running: Option<f64>,
    /// Pages written through the doublewrite buffer a second.
    #[serde(default)]
    pub doublewrite_pages: Option<f64>,
    /// Doublewrite batches a second.
    #[serde(default)]
    pub doublewrite_batches: Option<f64>,
    /// Mean number of threads in the doublewrite files' I/O; none where the doublewrite buffer is part of a data file.
    #[serde(default)]
    pub doublewrite_wait: Option<f64>,
    /// Mean number of threads that wait for the doublewrite buffer's mutex.
    #[serde(default)]
    pub doublewrite_mutex_wait: Option<f64>,
    /// Mean number of threads in the redo log's file I/O.
    pub redo_wait: Option<f64>,
    /// Mean number of threads in data files' I/O.
    #[serde(default)]
    pub data_wait: Option<f64>,
    /// Mean number of threads in the binary log's file I/O.
    #[serde(default)]
    pub binlog_wait: Option<f64>,
}

/// The machine: means over the seconds of all trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFigures {
    /// Processors that the server kept busy.
    pub server_cpus: f64,
    /// Processors that the load kept busy.
    pub load_cpus: f64,
    /// Processors that all of the machine kept busy.
    pub busy_cpus: f64,
    /// Processors that neither the server, the load nor the sampling kept busy: the volumes' own work,
    /// and strangers.
    pub other_cpus: f64,
    /// Processors' worth of time that the hypervisor took away.
    pub steal_cpus: f64,
    /// Memory of the server and its page cache, bytes.
    pub memory_bytes: f64,
    /// How late the volumes answered, 99th percentile, us; the worst trial.
    pub pacing_p99_us: f64,
    /// What sampling took, processors.
    pub sampler_cpus: f64,
}

/// What held the throughput back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limiter {
    /// Which it was.
    pub what: Bottleneck,
    /// The volume; none where it is not a volume's or the instance's limit.
    pub volume: Option<Role>,
    /// Share of the time for which it held, 0 to 1.
    pub share: f64,
}

/// What can hold a throughput back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// A volume's IOPS limit.
    VolumeIops,
    /// A volume's throughput limit.
    VolumeThroughput,
    /// The instance's IOPS limit.
    InstanceIops,
    /// The instance's throughput limit.
    InstanceThroughput,
    /// The processors of this machine: ratios are then of processors and not of volumes.
    Processors,
    /// The redo log: the checkpoint age is where writers wait, and flushing goes slower than the volume
    /// would let it.
    Checkpoint,
    /// Row locks.
    RowLocks,
    /// The latency of a volume below its limits: more connections would carry more.
    VolumeLatency,
    /// The rate of the open loop: the server carried all that was asked.
    OfferedRate,
    /// Nothing that was recorded.
    #[default]
    Unknown,
}

/// How much equal things differed in this run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Standard deviation between the trials of an arm as a share of its mean, all arms together; none
    /// without two trials of an arm.
    pub between_trials: Option<f64>,
    /// By how much two equal arms would differ in 19 of 20 such runs, from that spread.
    pub expected_aa: Option<f64>,
    /// The largest difference that was seen between equal arms; none where no two were compared.
    pub observed_aa: Option<f64>,
    /// A difference below this is not called one, whatever its interval: the largest of 1% and
    /// `observed_aa`.
    pub floor: f64,
    /// Processors' worth of time that the hypervisor took away, mean over the run.
    pub steal_cpus: f64,
    /// The most that any trial lost so.
    pub worst_steal_cpus: f64,
    /// Processors that neither server, load nor sampling used, mean over the run.
    pub other_cpus: f64,
    /// Load average when the run began.
    pub load_before: f64,
}
