//! Why an arm cannot be run as it is written.

use ebbtide_catalog::{CatalogError, SpecError};
use ebbtide_mysql::SettingError;
use ebbtide_volume::MIB;

/// What the whole of an arm, a server or the catalogue does not allow.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArmError {
    /// A volume spec that is none.
    #[error("its {role} volume {spec}: {error}")]
    Spec {
        /// What the volume holds.
        role: &'static str,
        /// The spec.
        spec: String,
        /// What is wrong with it.
        error: SpecError,
    },
    /// A volume that the catalogue refuses.
    #[error("its {role} volume {spec}: {}", with_hint(error))]
    Volume {
        /// What it holds.
        role: &'static str,
        /// Its spec.
        spec: String,
        /// Why.
        error: CatalogError,
    },
    /// A setting that the server lacks, or a value that it does not take.
    #[error("{}", chain(.0))]
    Setting(SettingError),
    /// A volume for a log that the server does not write.
    #[error("it has a volume for the binary log, and log_bin is off: set log_bin = true")]
    NoBinlog,
    /// A volume for both logs of a server that writes one of them.
    #[error(
        "its redo log and its binary log share a volume, and log_bin is off: set log_bin = true, or name the volume redo in \
         place of redo+binlog"
    )]
    LogsWithoutBinlog,
    /// A backup that is written nowhere.
    #[error(
        "its backup of the {of} has no volume to be written to: give the {of} volumes.backup, or set backup.method = \"snapshot\""
    )]
    NoTarget {
        /// The server.
        of: &'static str,
    },
    /// A volume for a backup that nobody makes.
    #[error(
        "its {of} has a volume for backups, and no dump or physical copy of the {of} is made: set backup.method and \
         backup.of, or volumes.backup = \"none\""
    )]
    TargetWithoutBackup {
        /// The server.
        of: &'static str,
    },
    /// A backup of a replica that is not there.
    #[error("backup.of = \"replica\": it has no replica; set topology.replicas")]
    NoReplica,
    /// A snapshot of a server whose files are on several volumes.
    #[error(
        "its snapshot is of the data volume alone, and the server recovers from the {role} volume too: put the {role} on \
         the data volume with volumes.{key} = \"none\""
    )]
    SnapshotOfPart {
        /// What else it has a volume for.
        role: &'static str,
        /// The key of that volume.
        key: &'static str,
    },
    /// A backup while the source is killed.
    #[error("it has a backup and topology.promote: leave out one of them")]
    BackupAndPromotion,
    /// A backup in an experiment that cuts the power.
    #[error("[backup] is for 'ebbtide run': take it out, or the section [crash]")]
    CutBackup,
    /// A volume for relay logs of a server that follows nobody.
    #[error(
        "it has a volume for relay logs, and only replicas write these: set it in [topology.replica.volumes]"
    )]
    RelayOfSource,
    /// A buffer pool that does not fit.
    #[error(
        "its buffer pool of {} MiB and the {} MiB that a server needs besides do not fit into the instance's memory \
         of {} MiB: set a smaller buffer_pool_size or a larger instance.memory",
        pool / MIB,
        besides / MIB,
        memory / MIB
    )]
    Memory {
        /// The buffer pool, bytes.
        pool: u64,
        /// What the server needs besides, bytes.
        besides: u64,
        /// The instance's, bytes.
        memory: u64,
    },
    /// A volume that is smaller than what will be on it.
    #[error("its {volume} has {} MiB, and needs {} MiB: {why}; take a larger volume or {or}", size / MIB, needed / MIB)]
    Room {
        /// The volume, as messages call it.
        volume: String,
        /// Its size, bytes.
        size: u64,
        /// What it needs, bytes.
        needed: u64,
        /// What for.
        why: String,
        /// What else helps.
        or: &'static str,
    },
    /// A volume on which no file system is made.
    #[error("its {volume} has {} MiB, and a file system is made on {} MiB or more: take a larger volume", size / MIB, least / MIB)]
    Small {
        /// The volume, as messages call it.
        volume: String,
        /// Its size, bytes.
        size: u64,
        /// The smallest that is possible, bytes.
        least: u64,
    },
    /// An instance type that the catalogue does not have.
    #[error("{}", with_hint(.0))]
    Instance(CatalogError),
    /// More volumes than its instance takes.
    #[error(
        "its {volumes} volumes do not fit on an {instance}, which takes {slots}: use fewer volumes or a larger instance"
    )]
    Slots {
        /// How many it has.
        volumes: u32,
        /// The instance type.
        instance: String,
        /// How many that takes.
        slots: u32,
    },
    /// An arm that would run the same as another one.
    #[error(
        "it is the same as '{twin}' in volumes, settings, instance, load and batch: change one of them, or say \
         equal_arms = true where noise is what you want to see"
    )]
    Same {
        /// The other one.
        twin: String,
    },
    /// An arm to be measured whose power is cut.
    #[error("its power is cut: run it with 'ebbtide crash {experiment}'")]
    IsCut {
        /// The experiment.
        experiment: String,
    },
    /// An arm to be cut without settings of its cuts.
    #[error("it says nothing about cuts: give the file a section [crash]")]
    NotCut,
    /// More clients than the tables with invariants are made for.
    #[error("load.connections = {clients}: the load with invariants has 1 to {most} clients")]
    Clients {
        /// The clients.
        clients: u32,
        /// The most that there may be.
        most: u32,
    },
    /// A replica that cannot run as it is written.
    #[error("as a replica: {why}")]
    OfReplica {
        /// What is wrong with it.
        why: Box<ArmError>,
    },
    /// The source of a replica whose power is cut, and which cannot run as it is written.
    #[error("the source of its replica: {why}")]
    OfSource {
        /// What is wrong with it.
        why: Box<ArmError>,
    },
    /// Replicas of a server that writes no binary log.
    #[error(
        "its replicas have nothing to follow: set log_bin = true in [topology.source.settings] or [settings]"
    )]
    SourceWithoutBinlog,
    /// A promotion after a load that leaves no marks.
    #[error(
        "topology.promote counts lost transactions by marks that transactions with writes leave: take a workload that has \
         them (TPC-C, or one of sysbench's, without skip_trx), or promote = false"
    )]
    PromotionWithoutMarks,
    /// A server program that is named and not there, or is none.
    #[error(
        "its server '{server}' cannot be used: {why}; fetch one with `./dev servers NAME` (`--list` has the names), or name \
         a program or the directory of an unpacked server"
    )]
    NoProgram {
        /// What the experiment names.
        server: String,
        /// Why it cannot be used.
        why: String,
    },
    /// A replica of another product than its source.
    #[error(
        "its replica is {replica}, and its source {followed}: MariaDB and MySQL do not follow each other; give both servers of \
         one of them (--server, topology.source.server, topology.replica.server, crash.source)"
    )]
    OtherProduct {
        /// Name and version of the source.
        followed: String,
        /// Those of the replica.
        replica: String,
    },
    /// A replica that is older than its source.
    #[error(
        "its replica, {replica}, is older than its source, {followed}: a replica has its source's version or a newer one; \
         change topology.replica.server, or the source's (--server, topology.source.server, crash.source)"
    )]
    OlderReplica {
        /// Name and version of the source.
        followed: String,
        /// Those of the replica.
        replica: String,
    },
    /// Replicas in an experiment that cuts the power.
    #[error(
        "[topology] is for 'ebbtide run': the crash lab gives a replica its source by itself, where crash.role is \
         \"replica\"; the server whose power is cut is that of --server, and its source may be another one (crash.source)"
    )]
    CutTopology,
}

/// What the catalogue refuses, and what to do about it.
pub(super) fn with_hint(error: &CatalogError) -> String {
    error.hint().map_or_else(|| chain(error), |hint| format!("{} {hint}", chain(error)))
}

/// An error and its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
