//! The conditions of a part of a trial.

use serde::{Deserialize, Serialize};

/// Where a part of a trial is, seen from its backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Around {
    /// Before it.
    Before,
    /// While it ran.
    During,
    /// After it.
    After,
}

/// What was the same throughout a part of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Regime {
    /// Where it is, seen from the backup; none where the trial has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Around>,
    /// Whether the batch job ran.
    pub batch: bool,
    /// Whether a volume had used up its burst credits; none where no volume has any to lose.
    pub credits_gone: Option<bool>,
    /// How many changes of a limit's ceiling are before it.
    pub phase: u32,
}
