//! An experiment as it is run: every default filled in, every arm spelt out.

use std::collections::BTreeMap;

use ebbtide_analysis::claim::Claim;
use ebbtide_analysis::record::{BatchSpan, Design, DesignArm};
pub use ebbtide_analysis::record::{Comparison, Role};
use ebbtide_load::Arrival;
use ebbtide_load::tpcc::{Isolation, Statements, WaitMode};
use ebbtide_mysql::Settings;
use ebbtide_workload::Distribution;
use ebbtide_workload::sysbench::{Mix, RowLengths};
use serde::{Deserialize, Serialize};

use super::topology::{ServerRole, ServerSpec, Topology};
use super::{BackupPlan, CrashPlan, LoadKind};

/// A whole experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name, as the command line takes it.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What it asks, in a sentence or two.
    pub question: String,
    /// Where the comparison comes from; empty where it is the user's own.
    pub source: String,
    /// Its scale relative to its source, and what that changes; empty where it has none.
    pub scale: String,
    /// The rows that every arm starts from.
    pub data: DataPlan,
    /// How often trials run.
    pub trial: TrialPlan,
    /// The arms, in the order of the file.
    pub arms: Vec<Arm>,
    /// Which arms are held against which, in the order of the report.
    pub comparisons: Vec<Comparison>,
    /// What documents claim about it; of all arms of the file, of which this form may have fewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// The experiment of the lab that measures what the risk buys, for the crash lab: a shipped one's name or a
    /// path; none where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<String>,
    /// The AWS region whose prices the report shows; none: the catalogue's default. Nothing that is measured depends
    /// on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether it runs although the host is slower than what a volume may do at most: for devices that this load does
    /// not take there. The trials are marked with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_limit: bool,
    /// Arms of the file that this short form leaves to the full one; empty in the full form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_to_full: Vec<String>,
    /// Arms that this run lacks, since the server or their volumes cannot have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Seed of the order, the load and the volumes' draws.
    pub seed: u64,
}

/// An arm that a run lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub arm: String,
    /// Why, in the words of the server or of the plan.
    pub why: String,
    /// Whether the experiment permits it; otherwise it is a hole.
    pub optional: bool,
}

impl LeftOut {
    /// As a sentence without a full stop.
    #[must_use]
    pub fn words(&self) -> String {
        format!("arm '{}' is left out: {}", self.arm, self.why)
    }
}

/// The rows that every arm starts from: sysbench's tables or TPC-C's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPlan {
    /// Number of tables.
    pub tables: u32,
    /// Rows per table; 0 for TPC-C's tables, each of which has its own size.
    pub rows: u32,
    /// Whether the index on column k is worn before the data are kept: half of the rows get another k at
    /// random, and purge comes to its end. The pages of an index that was just
    /// built are full, and the first write to each splits it, which more than doubles the redo of a
    /// transaction; those of a table in use are not.
    #[serde(default)]
    pub aged: bool,
    /// Warehouses of TPC-C; none for sysbench's tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warehouses: Option<u32>,
    /// Lengths of the text columns of sysbench's tables; none: sysbench's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengths: Option<RowLengths>,
}

/// How often trials run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// Trials of each arm.
    pub repeats: u32,
}

/// How a trial comes to its working state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmupPlan {
    /// Whether all tables are read through once, on a volume without limits.
    pub read_tables: bool,
    /// How long the load runs before that on volumes whose limits are multiplied, s: in that time the
    /// redo log and the dirty pages come as far as in [`Self::lead_in_speed`] times as long on the
    /// real ones.
    pub lead_in_s: u32,
    /// By which the limits are multiplied for it, 1 to 100. Without any limits, a full redo log would be
    /// written back at once, and for minutes all pages would come due together.
    pub lead_in_speed: u32,
    /// How long the load runs on the real limits before measuring, s.
    pub settle_s: u32,
}

/// One combination of volumes, settings and load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name: the options of the axes, joined by ` / `.
    pub name: String,
    /// Which option of each axis it is, in the order of the axes.
    pub options: Vec<(String, String)>,
    /// The volumes of the server that the load goes to, as volume specs; [`Role::Data`] is always there.
    pub volumes: BTreeMap<Role, String>,
    /// The settings of that server.
    pub settings: Settings,
    /// The program of that server, as `--server` names it; none: the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The servers that follow it; none by default.
    #[serde(default, skip_serializing_if = "Topology::is_single")]
    pub topology: Topology,
    /// The machine.
    pub instance: InstancePlan,
    /// The load.
    pub load: LoadPlan,
    /// A batch job that runs alongside the load.
    pub batch: Option<Batch>,
    /// A backup that is made while the load runs; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupPlan>,
    /// Time measured in each trial, s; what the detection of warm-up cuts off comes out of it.
    pub measure_s: u32,
    /// How each of its trials comes to its working state.
    pub warmup: WarmupPlan,
    /// How its power is cut; none where it is measured instead.
    #[serde(default)]
    pub crash: Option<CrashPlan>,
    /// Whether it is left out on a server that lacks one of its settings; otherwise that is an error.
    #[serde(default)]
    pub optional: bool,
}

impl Experiment {
    /// What summaries read of it.
    #[must_use]
    pub fn design(&self) -> Design {
        Design {
            arms: self.arms.iter().map(Arm::design).collect(),
            comparisons: self.comparisons.clone(),
            repeats: self.trial.repeats,
        }
    }

    /// Whether the crash lab runs it: the power of an arm is cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.arms.iter().any(|arm| arm.crash.is_some())
    }

    /// The command that runs these arms where the short form leaves one of them out; None where it does not.
    #[must_use]
    pub fn full_form(&self, arms: &[&str]) -> Option<String> {
        let is_left = arms.iter().any(|arm| self.left_to_full.iter().any(|left| left == arm));
        let lab = if self.is_cut() { "crash" } else { "run" };
        let arms = ebbtide_text::shell_words::quoted(&arms.join(","));
        is_left.then(|| format!("ebbtide {lab} {} --arms {arms}", self.name))
    }
}

impl Arm {
    /// A replica of this arm, as an arm with a single server; none where there are no replicas.
    #[must_use]
    pub fn replica(&self) -> Option<Self> {
        let ServerSpec { volumes, settings, server } = self.topology.replica.clone();
        (!self.topology.is_single()).then(|| Self {
            volumes,
            settings,
            server: server.or_else(|| self.server.clone()),
            topology: Topology::default(),
            ..self.clone()
        })
    }

    /// The program of the source that its server follows while its power is cut; none for a primary, and where it is its
    /// server's own.
    pub(crate) fn cut_replicas_source(&self) -> Option<&str> {
        self.crash.as_ref().filter(|crash| crash.role == ServerRole::Replica)?.source.as_deref()
    }

    /// What summaries read of it.
    #[must_use]
    pub fn design(&self) -> DesignArm {
        let batch = self.batch.as_ref().map(|batch| BatchSpan { start_s: batch.start_s, end_s: batch.end_s });
        DesignArm {
            name: self.name.clone(),
            options: self.options.clone(),
            connections: self.load.connections,
            offered: self.load.arrival.per_second(),
            batch,
            conditions: self.conditions(),
        }
    }

    /// What its server is put under, its connections apart: the arm without its name, and without how long it is
    /// measured.
    fn conditions(&self) -> String {
        let alike = Self {
            name: String::new(),
            options: Vec::new(),
            measure_s: 0,
            warmup: WarmupPlan { read_tables: true, lead_in_s: 0, lead_in_speed: 1, settle_s: 0 },
            load: LoadPlan { connections: 0, ..self.load.clone() },
            ..self.clone()
        };
        serde_json::to_string(&alike).expect("an arm is written to results.json like that")
    }
}

/// The machine that the server runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstancePlan {
    /// Memory of the server and its page cache, bytes.
    pub memory_bytes: u64,
    /// The EC2 instance type whose EBS limits hold, such as `r5.large`.
    pub kind: Option<String>,
    /// The file system, `xfs` or `ext4`.
    pub fs: String,
    /// By which every volume's size, IOPS, throughput and credits, and the instance's EBS limits, are
    /// divided: 8 makes an eighth of the machine that is named. Latencies stay. 1 to 1000.
    pub divided_by: u32,
    /// Whether the volumes report that they are rotating disks. MariaDB writes neighbouring pages
    /// together only on those, whatever `flush_neighbors` is; MySQL 5.7 did so on all.
    pub rotational: bool,
    /// Whether an instance whose EBS limits burst for half an hour a day has that half hour before it.
    pub burst: bool,
}

impl Default for InstancePlan {
    /// 2 GiB, no EC2 type, XFS, the volumes as they are named.
    fn default() -> Self {
        Self {
            memory_bytes: 2 * ebbtide_volume::GIB,
            kind: None,
            fs: "xfs".to_owned(),
            divided_by: 1,
            rotational: false,
            burst: true,
        }
    }
}

/// The load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// What is run.
    pub workload: LoadKind,
    /// Connections.
    pub connections: u32,
    /// The round trip of an emulated network between clients and server, us: 0 to 10,000,000.
    #[serde(default, skip_serializing_if = "is_default")]
    pub round_trip_us: u32,
    /// When transactions start.
    pub arrival: Arrival,
    /// How rows are chosen; TPC-C has its own draws.
    pub distribution: Distribution,
    /// How many statements of each kind; TPC-C has its own.
    pub mix: Mix,
    /// TPC-C: the isolation level of all connections.
    #[serde(default, skip_serializing_if = "is_default")]
    pub isolation: Isolation,
    /// TPC-C: whether clients wait for keying and think times.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wait: WaitMode,
    /// TPC-C: how the work of a transaction is divided into statements.
    #[serde(default, skip_serializing_if = "is_default")]
    pub statements: Statements,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A batch job that runs alongside the load: one connection that repeats a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// When it joins, in seconds of the measurement.
    pub start_s: u32,
    /// When it leaves; none: stays to the end.
    pub end_s: Option<u32>,
    /// Connections that run it.
    pub connections: u32,
    /// The statement; `{table}` becomes each table in turn.
    pub sql: String,
}
