//! What a crash run keeps: every stint of an arm, every cut, and what was found in its image.

use ebbtide_lab::experiment::{Experiment, Moment, Role};
use ebbtide_lab::record::{HostFacts, LabRun, ServerFacts};
use ebbtide_lab::results::Header;
use ebbtide_lab::summary::Summary;
use serde::{Deserialize, Serialize};

/// Where the results of what the risk buys are, in the directory of a crash run.
pub const GAIN_DIR: &str = "gain";

/// A crash run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashRun {
    /// When it began, ns since 1970.
    pub started_ns: u64,
    /// The command that runs it again.
    pub command: String,
    /// The program's version.
    pub ebbtide: String,
    /// The machine.
    pub host: HostFacts,
    /// The server.
    pub server: ServerFacts,
    /// Overrides of the built-in catalogue; None where there were none.
    #[serde(default)]
    pub overrides: Option<String>,
    /// The experiment, its canary arms included.
    pub experiment: Experiment,
    /// The stints, in the order in which they ran.
    pub stints: Vec<Stint>,
    /// The cuts, in the order in which they were judged.
    pub cuts: Vec<Cut>,
    /// What the risk buys, where the experiment names one that measures it; none until that has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gained>,
}

/// What the risk buys: an experiment of the lab, run after the cuts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gained {
    /// Its run, and the summary of it; None: it was not measured.
    pub measured: Option<GainRun>,
    /// Why not all of its trials count, or there are none; none where all do.
    pub failed: Option<String>,
}

/// A run of the lab, as a crash run keeps it: its own results are in the directory [`GAIN_DIR`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GainRun {
    /// The run, without its trials.
    pub run: LabRun,
    /// Its summary.
    pub summary: Summary,
}

impl GainRun {
    /// Keeps a run of the lab.
    #[must_use]
    pub fn of(run: &LabRun, summary: &Summary) -> Self {
        Self { run: Header::from(run).into(), summary: summary.clone() }
    }
}

/// A stretch of an arm's load: first its throughput is measured, undisturbed; then its power is cut
/// again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stint {
    /// The arm's name.
    pub arm: String,
    /// Which repeat of the arm, from 0.
    pub repeat: u32,
    /// When it began, ns since 1970.
    pub started_ns: u64,
    /// How long it took, s.
    pub took_s: f64,
    /// How long the cuts and their judgement took, s: from the first cut to the last verdict.
    pub cutting_s: f64,
    /// Cuts that were judged in that time; those that could not be verified are not counted. Cuts of a stretch that
    /// was broken off, and gone on with later, are in neither.
    pub verified: u32,
    /// Where the processors' time went meanwhile; none where it did not come to that, where servers were killed, and in
    /// results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutting_cpu: Option<CuttingCpu>,
    /// What was measured before the first cut; none where it did not come to that.
    pub throughput: Option<Throughput>,
    /// Why it ended before its last cut; none where it did not.
    pub failed: Option<Failure>,
    /// What should be known about it.
    pub notes: Vec<String>,
}

/// Where the time of the machine's processors went while a stint was cutting. What is in none of the parts went into the
/// servers that recovered ([`CutCpu`]), tools such as `innochecksum`, the kernel's threads, and other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CuttingCpu {
    /// How long it was looked, s.
    pub seconds: f64,
    /// Processors that the tester may use.
    pub cpus: u32,
    /// Of all processors, working, s.
    pub busy_s: f64,
    /// Of all processors, taken away by the hypervisor, s.
    pub steal_s: f64,
    /// Of the server under load, and a replica's source, s.
    pub servers_s: f64,
    /// Of the load's threads, s.
    pub load_s: f64,
    /// Of the tester's other threads, s: they serve volumes, take images, and judge.
    pub tester_s: f64,
}

impl CuttingCpu {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            cpus: self.cpus.max(other.cpus),
            busy_s: self.busy_s + other.busy_s,
            steal_s: self.steal_s + other.steal_s,
            servers_s: self.servers_s + other.servers_s,
            load_s: self.load_s + other.load_s,
            tester_s: self.tester_s + other.tester_s,
        }
    }
}

/// What an arm carries while nobody cuts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Length of the measurement, s.
    pub seconds: f64,
    /// Transactions a second: those that a primary has acknowledged, those that a replica has applied.
    pub tps: f64,
    /// Median response time of a transaction, us; none for a replica, for which nobody waits.
    pub p50_us: Option<f64>,
    /// 95th percentile of it, us.
    pub p95_us: Option<f64>,
    /// 99th percentile of it, us.
    pub p99_us: Option<f64>,
    /// Writes a second of all volumes, as the guest submitted them.
    pub write_iops: f64,
    /// What they wrote, bytes a second.
    pub write_bytes_s: f64,
    /// Why it must not be believed: the load generator or the host could not keep up. It is in no figure then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disqualified: Option<String>,
}

impl Stint {
    /// The throughput that counts; none where there is none, or the host could not keep up.
    #[must_use]
    pub fn counted(&self) -> Option<&Throughput> {
        self.throughput.as_ref().filter(|throughput| throughput.disqualified.is_none())
    }
}

/// A stint that ended early, or a start that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Why.
    pub why: String,
    /// The end of the server's log.
    pub log: Vec<String>,
}

/// One cut, and what was found in its image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// The arm's name.
    pub arm: String,
    /// Which repeat of the arm, from 0.
    pub repeat: u32,
    /// Number of the cut in its arm, from 0, over all repeats.
    pub number: u32,
    /// Decides the wait before it, and about every atomic unit in flight; names it for `--replay`.
    pub seed: u64,
    /// The moment that was looked for.
    pub moment: Moment,
    /// Whether it was met; otherwise the cut came at another time, after a patient wait.
    pub met: bool,
    /// When, s since the load began.
    pub at_s: f64,
    /// How long no write of the live volumes could complete, us.
    pub paused_us: f64,
    /// The writes in flight, by what they belong to; the largest where there were many.
    pub in_flight: Vec<InFlight>,
    /// How many writes were in flight altogether.
    pub writes_in_flight: u64,
    /// Units of answered writes that a volatile cache lost.
    pub cached_units_lost: u64,
    /// Pages in the image that were invalid before the server looked at them.
    pub torn_before: Vec<PageFound>,
    /// Page writes of which the image has a part: what the pages were, should have become, and are. The
    /// first few where there are many.
    pub torn_writes: Vec<TornWrite>,
    /// What is wrong; empty where it recovered clean.
    pub verdicts: Vec<Verdict>,
    /// Acknowledged transactions that are gone; none where all are there or nobody could look.
    pub loss: Option<Loss>,
    /// How the server recovered; none where it did not.
    pub recovery: Option<Recovery>,
    /// How a replica went on after its recovery; none for a primary, and where it did not come to that.
    #[serde(default)]
    pub resumed: Option<Resumed>,
    /// Where the tester's time went.
    pub took: Took,
    /// Whether the image is kept, so that `--replay` can judge it again.
    pub kept: bool,
}

/// A write in flight at the moment of the cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The volume.
    pub role: Role,
    /// What it was a write of.
    pub kind: FileKind,
    /// The file, relative to its directory on the volume; empty where it belongs to the file system.
    pub file: String,
    /// Where in the file, bytes; on the volume for the file system's own.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Its atomic units.
    pub units: u64,
    /// How many of them are new in the image: all, none, or a torn write.
    pub new_units: u64,
}

impl InFlight {
    /// Whether the image has a part of it.
    #[must_use]
    pub const fn is_torn(&self) -> bool {
        self.new_units > 0 && self.new_units < self.units
    }
}

/// A page write of which the image has a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TornWrite {
    /// The file, relative to its directory.
    pub file: String,
    /// The page's number in it.
    pub page: u64,
    /// Its atomic units in their order: whether each is new.
    pub new: Vec<bool>,
    /// The page before the write.
    pub before: PageState,
    /// The page as the server wrote it.
    pub after: PageState,
    /// The page as the image has it.
    pub found: PageState,
}

/// What a page's header and trailer hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageState {
    /// Log sequence number of its last change, from its head.
    pub lsn: u64,
    /// The low half of it, from the page's last bytes; another one than the head's is a torn page.
    pub lsn_tail: u32,
    /// Its type, in words.
    pub kind: String,
    /// Whether it is nothing but zeroes: never written.
    pub blank: bool,
}

/// What a part of a volume holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// The header of the redo log, where checkpoints are written.
    Checkpoint,
    /// The redo log.
    Redo,
    /// The doublewrite area.
    Doublewrite,
    /// Pages of tables, indexes and undo logs.
    Page,
    /// The binary log and its index.
    Binlog,
    /// Other files of the server.
    Other,
    /// The file system's own: its journal and metadata, and space that belonged to no file when the map was
    /// drawn.
    FileSystem,
}

/// A page that a check of checksums names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PageFound {
    /// The file, relative to its directory.
    pub file: String,
    /// The page's number in it.
    pub page: u64,
    /// The check's message.
    #[serde(alias = "said")]
    pub message: String,
    /// Log position of the newest valid copy of it in the doublewrite buffer, for pages that were invalid before
    /// recovery; none where there was none.
    #[serde(default)]
    pub copy: Option<u64>,
}

/// What is wrong with a recovered image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Verdict {
    /// The file system or the server could not make sense of what it found.
    Corrupt {
        /// How it showed.
        how: Corruption,
        /// Messages of the server or the tool, log lines above all.
        #[serde(alias = "said")]
        messages: Vec<String>,
        /// Pages that are damaged after recovery, where they are known.
        pages: Vec<PageFound>,
    },
    /// Acknowledged transactions are gone: [`Cut::loss`] has their number.
    LostCommits,
    /// A transaction is there in part, one that was rolled back is there, or one that was never sent.
    Partial {
        /// Each rule that does not hold, with what it expects and what was found.
        findings: Vec<String>,
    },
    /// The tables and the binary log have different transactions.
    BinlogDisagrees {
        /// Transactions that the tables have and the binary log lacks: a replica would miss them.
        missing_in_binlog: u64,
        /// Transactions that the binary log has and the tables lack: a replica would have more.
        missing_in_tables: u64,
        /// The clients that differ, and what each side has of them.
        #[serde(alias = "said")]
        differences: Vec<String>,
    },
    /// A replica does not go on where it was: it stopped with an error, or went on and has other transactions
    /// than its source.
    ReplicationBroken {
        /// Messages of the replica, and what does not hold.
        #[serde(alias = "said")]
        messages: Vec<String>,
        /// Where it was when it went on.
        place: String,
    },
    /// Something could not be looked at. It is not known to be clean.
    Unverified {
        /// What, and why not.
        why: String,
        /// The end of the server's log.
        log: Vec<String>,
    },
}

impl Verdict {
    /// The kind alone.
    #[must_use]
    pub const fn kind(&self) -> VerdictKind {
        match self {
            Self::Corrupt { .. } => VerdictKind::Corrupt,
            Self::LostCommits => VerdictKind::LostCommits,
            Self::Partial { .. } => VerdictKind::Partial,
            Self::BinlogDisagrees { .. } => VerdictKind::BinlogDisagrees,
            Self::ReplicationBroken { .. } => VerdictKind::ReplicationBroken,
            Self::Unverified { .. } => VerdictKind::Unverified,
        }
    }
}

/// The kinds of verdict, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// Corrupt.
    Corrupt,
    /// Phantom or partial.
    Partial,
    /// Lost commits.
    LostCommits,
    /// Binary log disagrees.
    BinlogDisagrees,
    /// Replication broken.
    ReplicationBroken,
    /// Unverified.
    Unverified,
}

impl VerdictKind {
    /// All kinds, the worst first.
    pub const ALL: [Self; 6] = [
        Self::Corrupt,
        Self::Partial,
        Self::LostCommits,
        Self::BinlogDisagrees,
        Self::ReplicationBroken,
        Self::Unverified,
    ];
}

/// How corruption showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corruption {
    /// The file system could not be mounted, or its check found errors.
    FileSystem,
    /// The server refused to start, or died while it recovered.
    NoStart,
    /// The server started, and its log reports that something is corrupt.
    Log,
    /// Rows do not fit their checksums, or an index does not agree with its table.
    Rows,
    /// CHECK TABLE reports that a table is.
    CheckTable,
    /// A table's file is missing, or is another table's: the server reads the table, and its next start loses it.
    Files,
    /// Pages with wrong checksums are there after recovery.
    Pages,
}

/// Acknowledged transactions that are gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// How many, at least: those whose acknowledgement the client had read.
    pub transactions: u64,
    /// From the first lost acknowledgement to the cut, s.
    pub seconds: f64,
    /// Of which clients: number, last acknowledged, last recovered.
    pub clients: Vec<(u32, u64, u64)>,
}

/// How the server recovered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// From its start to its first answer, s, on the volumes' own limits.
    pub seconds: f64,
    /// Reads until then.
    pub reads: u64,
    /// What they read, bytes.
    pub read_bytes: u64,
    /// Writes until then.
    pub writes: u64,
    /// What they wrote, bytes.
    pub written_bytes: u64,
    /// Pages that the doublewrite buffer gave back, by the server's log.
    pub doublewrite_pages: u64,
    /// Unfinished transactions that it found, by the server's log: they are rolled back.
    pub rolled_back: u64,
    /// How a first start ended, where a second one recovered: the time and the I/O are those of both. None where the first
    /// one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_start: Option<Failure>,
}

/// How a replica went on after its recovery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// Where it was, in its own words, before it went on.
    pub place: String,
    /// Transactions that it had applied before the cut and lacked after it, at least: its source has them still.
    pub to_fetch_again: u64,
    /// From its start as a replica until it had them all and some of the next, s; none where it never had.
    pub caught_up_s: Option<f64>,
}

/// Where the tester's time for a cut went, s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Taking the images.
    pub image: f64,
    /// Copying and attaching them, and mounting the copies: the journal is replayed.
    pub attach: f64,
    /// Unmounting them, checking the file systems.
    pub file_system: f64,
    /// Looking at pages, before and after.
    pub pages: f64,
    /// The server's start, recovery included.
    pub start: f64,
    /// Asking the server: invariants, CHECK TABLE, binary log.
    pub ask: f64,
    /// Having a replica go on, and asking it again.
    #[serde(default)]
    pub resume: f64,
    /// Ending the server, detaching and deleting.
    pub clear: f64,
    /// All of it.
    pub total: f64,
    /// How long the checker had waited for the image before, which is in no other time, s: it had nothing to do. None where
    /// servers were killed, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaited: Option<f64>,
    /// Processor time in it; none in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CutCpu>,
}

/// Processor time of a cut's judgement, s. Tools that run in processes of their own, such as `innochecksum`, are not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CutCpu {
    /// Of the server until it answered, in the kernel's clock ticks of 10 ms; 0 where it did not answer.
    pub start: f64,
    /// Of the server from then until it was to end, in the same ticks.
    pub ask: f64,
    /// Of the checker's own thread: it reads pages, the binary log, and the server's answers.
    pub checker: f64,
}
