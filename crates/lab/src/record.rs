//! What a run leaves behind: plain data, from which everything else is computed.

use std::collections::BTreeMap;

use ebbtide_catalog::Catalog;
use ebbtide_load::ErrorCount;
use ebbtide_mysql::Binary;
use serde::{Deserialize, Serialize};

use ebbtide_analysis::record::{
    Arrivals, BackupRecord, ErrorRecord, Response, RunRecord, TpccRecord, TransactionRecord, TrialRecord,
};
pub use ebbtide_analysis::record::{
    HostSecond, LimitShares, LoadSecond, Outcome, ReplicaSecond, Second, ServerSecond, VolumeSecond,
};

use crate::experiment::{BackedUp, BackupMethod, Experiment, Role};
pub use crate::load_report::{LoadReport, TpccLoad};

/// A whole run of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabRun {
    /// When it began, ns since 1970.
    pub started_ns: u64,
    /// The command that runs it again.
    pub command: String,
    /// This program's version.
    pub ebbtide: String,
    /// What was asked.
    pub experiment: Experiment,
    /// Overrides of the built-in catalogue of volumes and instances, as the user's file had it; none
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

impl LabRun {
    /// The catalogue that the run's volumes came from: the built-in one where this program does not
    /// understand the overrides any more.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        catalog_of(self.overrides.as_deref())
    }

    /// What summaries read of it.
    #[must_use]
    pub fn record(&self) -> RunRecord<'_> {
        RunRecord {
            design: self.experiment.design(),
            started_ns: self.started_ns,
            seed: self.experiment.seed,
            ebbtide: &self.ebbtide,
            cpus: self.host.cpus,
            cpu_model: &self.host.cpu_model,
            load_before: self.host.load_before,
            trials: self.trials.iter().map(Trial::record).collect(),
        }
    }
}

impl Trial {
    /// What summaries read of it.
    #[must_use]
    pub fn record(&self) -> TrialRecord<'_> {
        let load = self.load.as_ref();
        TrialRecord {
            arm: &self.arm,
            repeat: self.repeat,
            outcome: &self.outcome,
            seconds: &self.seconds,
            response: load.map(LoadReport::response).map(|response| Response {
                p50_us: response.p50_us,
                p95_us: response.p95_us,
                p99_us: response.p99_us,
                p99_9_us: response.p99_9_us,
            }),
            errors: load.map_or(&[][..], |load| load.errors().as_slice()).iter().map(error).collect(),
            arrivals: load.and_then(|load| load.open_loop().as_ref()).map(|open_loop| Arrivals {
                due: open_loop.due,
                shed: open_loop.shed,
                unfinished: open_loop.unfinished,
                oldest_unfinished_ms: open_loop.oldest_unfinished_ms,
            }),
            tpcc: load.and_then(LoadReport::tpcc).map(tpcc),
            backup: self.backup.as_ref().map(BackupUse::record),
            notes: &self.notes,
        }
    }
}

/// What summaries read of an error.
fn error(error: &ErrorCount) -> ErrorRecord<'_> {
    ErrorRecord { code: error.code, count: error.count, message: &error.message }
}

/// What summaries read of a load of TPC-C.
fn tpcc(load: &TpccLoad) -> TpccRecord<'_> {
    let report = &load.tpcc;
    let transactions = report.by_transaction.iter().map(|of| TransactionRecord {
        transaction: &of.transaction,
        count: of.response.count,
        p50_us: of.response.p50_us,
        p90_us: of.response.p90_us,
        p95_us: of.response.p95_us,
        p99_us: of.response.p99_us,
        max_us: of.response.max_us,
        limit_s: of.limit_s,
    });
    TpccRecord {
        ceiling_tpmc: report.ceiling_tpmc,
        statements_per_transaction: report.statements_per_transaction,
        transactions: transactions.collect(),
    }
}

/// The built-in catalogue with a run's overrides; without them where this program does not understand them.
#[must_use]
pub fn catalog_of(overrides: Option<&str>) -> Catalog {
    let overridden = overrides.map(|text| Catalog::with_overrides_text("the run", text));
    overridden.and_then(Result::ok).unwrap_or_else(Catalog::builtin)
}

/// The machine that everything ran on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Processors.
    pub cpus: u32,
    /// Threads of a core; none where it was not written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_per_core: Option<u32>,
    /// What the processor calls itself.
    pub cpu_model: String,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
    /// What the host's disk carries through a live volume; labels and values with their units.
    pub calibration: Vec<(String, String)>,
    /// A message to another thread and its answer, both processors idle before, us: what each statement of a client on this
    /// machine waits for at least; the median of some hundred. None where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_round_trip_us: Option<f64>,
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
    /// The servers of the load that are another program than this one, by arm name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, ProgramFacts>,
    /// The replicas that are another program than this one, by arm name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replicas: BTreeMap<String, ProgramFacts>,
}

/// A server program that an arm names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFacts {
    /// The program.
    pub path: String,
    /// `mariadb`, `mysql` or `percona`.
    pub flavour: String,
    /// Version in the program's own words.
    pub version: String,
}

impl From<&Binary> for ProgramFacts {
    fn from(binary: &Binary) -> Self {
        Self {
            path: binary.path.display().to_string(),
            flavour: format!("{:?}", binary.flavour).to_lowercase(),
            version: binary.text.clone(),
        }
    }
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
    pub load: Option<LoadReport>,
    /// The measured seconds, settling not included.
    pub seconds: Vec<Second>,
    /// The batch job that ran alongside the load; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchUse>,
    /// The backup that was made while the load ran; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupUse>,
    /// The promotion of a replica at its end; none where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,
    /// What should be known about it, such as a host that was busy.
    pub notes: Vec<String>,
}

/// The promotion of a replica after its source was killed under its load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Promotion {
    /// From the source's end until the replica had applied what it had fetched, s.
    pub applied_s: f64,
    /// From the source's end until the replica had committed its first own write, s. Nobody had to notice that the source
    /// was gone, and no client had to find the replica.
    pub took_s: f64,
    /// Transactions that the source had acknowledged to the load, warm-up included.
    pub acknowledged: u64,
    /// Those of them that the promoted replica does not have.
    pub lost: u64,
    /// Clients that have lost some.
    pub clients: u32,
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

/// A backup that was made while the load ran, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackupUse {
    /// How it was made.
    pub method: BackupMethod,
    /// Of which server.
    pub of: BackedUp,
    /// When it began, s of the measurement.
    pub began_s: f64,
    /// When it ended, all of it on its volume, s of the measurement. Later than the measurement where the load had ended
    /// before it.
    pub ended_s: f64,
    /// Its size: of the files on the backup volume, or of the blocks of a snapshot that hold data, bytes.
    pub bytes: u64,
    /// The volumes of the server that was backed up, from begin to end.
    pub volumes: BTreeMap<Role, BackupVolume>,
    /// What restoring it showed.
    pub restored: Restored,
}

/// What a backup used of a volume; the load's part is not told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BackupVolume {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Operations as the limits count them.
    pub consumed_ops: u64,
    /// Burst credits at its begin, share of 0 to 1; none for types without.
    pub credits_before: Option<f64>,
    /// The same at its end.
    pub credits_after: Option<f64>,
}

/// What restoring a backup showed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Restored {
    /// From its begin until the last check was answered, s.
    pub took_s: f64,
    /// What was checked and holds, in sentences.
    pub checked: Vec<String>,
    /// Why the backup is not usable; none where every check holds.
    pub failed: Option<String>,
}

impl BackupUse {
    /// What summaries read of it.
    fn record(&self) -> BackupRecord {
        let is_target = |role: &Role| *role == Role::Backup;
        let own = || self.volumes.iter().filter(|(role, _)| !is_target(role)).map(|(_, volume)| volume);
        let used = |volume: &BackupVolume| Some(volume.credits_before? - volume.credits_after?);
        BackupRecord {
            began_s: self.began_s,
            ended_s: self.ended_s,
            bytes: self.bytes as f64,
            read_bytes: own().map(|volume| volume.read_bytes as f64).sum(),
            written_bytes: own().map(|volume| volume.written_bytes as f64).sum(),
            credits_used: own().filter_map(used).reduce(f64::max),
            target_credits_used: self.volumes.get(&Role::Backup).and_then(used),
            restored_s: self.restored.took_s,
        }
    }
}
