//! What a claim may be about: the figures of an arm, and the conditions under which they are looked at.

use serde::{Deserialize, Serialize};

/// A figure of an arm that a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimMetric {
    /// Transactions a second.
    Tps,
    /// TPC-C: New-Orders a minute.
    Tpmc,
    /// Median response time, ms.
    P50Ms,
    /// 95th percentile of the response time, ms.
    P95Ms,
    /// 99th percentile of the response time, ms.
    P99Ms,
    /// Operations a second as the limits of the volumes count them, all volumes together.
    ConsumedIops,
    /// Reads a second, all volumes together.
    ReadIops,
    /// Writes a second, all volumes together.
    WriteIops,
    /// Mean latency of a read of the data volume, ms.
    ReadMs,
    /// Mean latency of a write of the data volume, ms.
    WriteMs,
    /// Mean queue length of the data volume, I/Os.
    Queue,
    /// Operations by transaction, as the limits of the volumes count them.
    IosPerTransaction,
    /// KiB written by transaction.
    WrittenKibPerTransaction,
    /// Processors that the server kept busy, percent of all of them.
    ServerCpuPct,
    /// Mean number of threads in the redo log's file I/O.
    RedoWait,
    /// Mean lag of the replica that is farthest behind, s.
    LagS,
    /// The longest time in which no transaction of any client was finished, s.
    SilentS,
    /// Errors of the server with code 1205, lock wait timeout exceeded, in a trial.
    LockTimeouts,
    /// How long a backup took, s.
    BackupS,
    /// Size of a backup, MiB.
    BackupMib,
    /// Cuts with a bad verdict, percent.
    BadPct,
    /// Cuts after which tables or pages were corrupt, percent.
    CorruptPct,
    /// Cuts that lost acknowledged transactions, percent.
    LostPct,
    /// Time from the start of a crashed server to its first answer, median of the cuts, s.
    RecoveryS,
}

/// Which lab measures a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// `ebbtide run`.
    Run,
    /// `ebbtide crash`.
    Crash,
    /// Both.
    Both,
}

impl ClaimMetric {
    /// Every metric with its name in experiment files, its unit, and the lab that measures it.
    pub const ALL: [(Self, &'static str, &'static str, Of); 24] = [
        (Self::Tps, "tps", "transactions/s", Of::Both),
        (Self::Tpmc, "tpmc", "New-Orders/min", Of::Run),
        (Self::P50Ms, "p50_ms", "ms", Of::Run),
        (Self::P95Ms, "p95_ms", "ms", Of::Run),
        (Self::P99Ms, "p99_ms", "ms", Of::Run),
        (Self::ConsumedIops, "consumed_iops", "IOPS", Of::Run),
        (Self::ReadIops, "read_iops", "reads/s", Of::Run),
        (Self::WriteIops, "write_iops", "writes/s", Of::Both),
        (Self::ReadMs, "read_ms", "ms", Of::Run),
        (Self::WriteMs, "write_ms", "ms", Of::Run),
        (Self::Queue, "queue", "I/Os", Of::Run),
        (Self::IosPerTransaction, "ios_per_transaction", "I/Os", Of::Run),
        (Self::WrittenKibPerTransaction, "written_kib_per_transaction", "KiB", Of::Run),
        (Self::ServerCpuPct, "server_cpu_pct", "%", Of::Run),
        (Self::RedoWait, "redo_wait", "threads", Of::Run),
        (Self::LagS, "lag_s", "s", Of::Run),
        (Self::SilentS, "silent_s", "s", Of::Run),
        (Self::LockTimeouts, "lock_timeouts", "errors", Of::Run),
        (Self::BackupS, "backup_s", "s", Of::Run),
        (Self::BackupMib, "backup_mib", "MiB", Of::Run),
        (Self::BadPct, "bad_pct", "% of the cuts", Of::Crash),
        (Self::CorruptPct, "corrupt_pct", "% of the cuts", Of::Crash),
        (Self::LostPct, "lost_pct", "% of the cuts", Of::Crash),
        (Self::RecoveryS, "recovery_s", "s", Of::Crash),
    ];

    fn row(self) -> (&'static str, &'static str, Of) {
        let row = Self::ALL.iter().find(|(metric, ..)| *metric == self);
        row.map(|(_, name, unit, of)| (*name, *unit, *of)).expect("every metric has its row")
    }

    /// Its name in experiment files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Its unit, for people.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.row().1
    }

    /// The lab that measures it.
    #[must_use]
    pub fn of(self) -> Of {
        self.row().2
    }

    /// The metric of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, ..)| *known == name).map(|(metric, ..)| *metric)
    }
}

/// A condition under which a figure is looked at: a part of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimPhase {
    /// While the batch job ran.
    Batch,
    /// While it did not.
    NoBatch,
    /// While every volume had burst credits.
    CreditsLeft,
    /// While a volume had used up its burst credits.
    CreditsGone,
    /// Before the backup.
    BeforeBackup,
    /// While the backup ran.
    DuringBackup,
    /// After the backup.
    AfterBackup,
}

impl ClaimPhase {
    /// Every phase with its name in experiment files.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Batch, "batch"),
        (Self::NoBatch, "no-batch"),
        (Self::CreditsLeft, "credits-left"),
        (Self::CreditsGone, "credits-gone"),
        (Self::BeforeBackup, "before-backup"),
        (Self::DuringBackup, "during-backup"),
        (Self::AfterBackup, "after-backup"),
    ];

    /// Its name in experiment files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(phase, _)| *phase == self).map_or("", |(_, name)| name)
    }

    /// The phase of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(phase, _)| *phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_and_phases_are_found_by_the_names_that_they_have() {
        for (metric, name, unit, of) in ClaimMetric::ALL {
            assert_eq!(ClaimMetric::parse(name), Some(metric));
            assert_eq!((metric.name(), metric.unit(), metric.of()), (name, unit, of));
            assert_eq!(serde_word(&format!("{metric:?}")), name.replace('_', ""));
        }
        for (phase, name) in ClaimPhase::ALL {
            assert_eq!(ClaimPhase::parse(name), Some(phase));
            assert_eq!(serde_word(&format!("{phase:?}")), name.replace('-', ""));
        }
    }

    /// The name of a variant without capitals, as files and JSON have it without their separators.
    fn serde_word(variant: &str) -> String {
        variant.to_lowercase()
    }
}
