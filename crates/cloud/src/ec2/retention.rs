//! What is stored of a snapshot's storage tier and of its lock, and their states at a time.

use serde::{Deserialize, Serialize};

/// Milliseconds of a day.
pub(super) const DAY_MS: u64 = 86_400_000;

/// Milliseconds of an hour.
const HOUR_MS: u64 = 3_600_000;

/// What was done to the tier of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Operation {
    Archival,
    TemporaryRestore,
    PermanentRestore,
}

/// The latest change of a snapshot's storage tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tiering {
    pub(super) operation: Operation,
    pub(super) started_ms: u64,
    pub(super) completes_ms: u64,
    /// When the archiving ended, or will end.
    pub(super) archived_ms: u64,
    /// Of a temporary restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) days: Option<u64>,
}

impl Tiering {
    /// When a temporary restore ends.
    pub(super) fn expires_ms(&self) -> Option<u64> {
        self.days.map(|days| self.completes_ms.saturating_add(days.saturating_mul(DAY_MS)))
    }

    pub(super) fn is_over(&self, now: u64) -> bool {
        self.expires_ms().is_some_and(|expires_ms| expires_ms <= now)
    }

    pub(super) fn is_running(&self, now: u64) -> bool {
        now < self.completes_ms
    }

    pub(super) fn is_archived(&self, now: u64) -> bool {
        match self.operation {
            Operation::Archival => now >= self.completes_ms,
            Operation::TemporaryRestore => true,
            Operation::PermanentRestore => now < self.completes_ms,
        }
    }

    /// Whether it can be read and made volumes of.
    pub(super) fn is_usable(&self, now: u64) -> bool {
        match self.operation {
            Operation::Archival => now < self.completes_ms,
            Operation::TemporaryRestore => now >= self.completes_ms && !self.is_over(now),
            Operation::PermanentRestore => now >= self.completes_ms,
        }
    }

    /// As `LastTieringOperationStatus` has it.
    pub(super) fn status(&self, now: u64) -> &'static str {
        match (self.operation, self.is_running(now)) {
            (Operation::Archival, true) => "archival-in-progress",
            (Operation::Archival, false) => "archival-completed",
            (Operation::TemporaryRestore, true) => "temporary-restore-in-progress",
            (Operation::TemporaryRestore, false) if self.is_over(now) => "archival-completed",
            (Operation::TemporaryRestore, false) => "temporary-restore-completed",
            (Operation::PermanentRestore, true) => "permanent-restore-in-progress",
            (Operation::PermanentRestore, false) => "permanent-restore-completed",
        }
    }

    /// In percent.
    pub(super) fn progress(&self, now: u64) -> u64 {
        if !self.is_running(now) {
            return 100;
        }
        let span = self.completes_ms.saturating_sub(self.started_ms).max(1);
        (now.saturating_sub(self.started_ms).saturating_mul(100) / span).min(99)
    }
}

/// Who may end a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mode {
    /// Who has the right to.
    Governance,
    /// Nobody, once the cooling-off period is over.
    Compliance,
}

/// A lock of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lock {
    pub(super) mode: Mode,
    pub(super) created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cool_off_hours: Option<u64>,
    /// Whole days, also where the call has named a time.
    pub(super) days: u64,
    /// When the lock begins to count: a pending snapshot's with its completion.
    pub(super) starts_ms: u64,
    pub(super) expires_ms: u64,
}

impl Lock {
    pub(super) fn cools_until_ms(&self) -> Option<u64> {
        self.cool_off_hours.map(|hours| self.created_ms.saturating_add(hours.saturating_mul(HOUR_MS)))
    }

    pub(super) fn state(&self, now: u64) -> &'static str {
        if self.expires_ms <= now {
            return "expired";
        }
        match self.mode {
            Mode::Governance => "governance",
            Mode::Compliance if self.cools_until_ms().is_some_and(|until_ms| now < until_ms) => {
                "compliance-cooloff"
            }
            Mode::Compliance => "compliance",
        }
    }
}
